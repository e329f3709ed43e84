#!/usr/bin/env bash
# Features of many images by an array of Slurm jobs, each of which does its part:
#   job=$(sbatch --parsable --array=1-100 slurm_array.sh PHOTOS FEATURES [OPTION...])
#   sbatch --dependency="afterany:$job" --wrap 'hartsift merge FEATURES -o FEATURES'
# PHOTOS is a folder or a list and FEATURES a folder, both on storage that all nodes see; options are those of
# "hartsift batch". A task that is lost with its node, preempted or out of time is started again by Slurm, or by
# "scontrol requeue JOB_TASK", and continues where it stopped. A task ends with status 1 where some image failed, so the merge
# waits for the end of all (afterany); it refuses while a part is missing.
#SBATCH --job-name=hartsift
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@60
set -euo pipefail
photos=$1
features=$2
shift 2
exec hartsift batch "$photos" -o "$features" --shard slurm --resume --threads "${SLURM_CPUS_PER_TASK:-0}" "$@"
