"""Rate of what the actors of hartsift.ray run, in plain processes of one machine, beside `hartsift batch` on the same cores and
devices: for hosts where Ray itself is not at hand. Both read JPEGs and write features to a RAM disk; in turns.

usage: actor_rate.py [--device cpu|cuda] [--processes 1,2,4] [--threads N] [--readers N] [--rounds 3] COMMAND FOLDER
FOLDER holds the images. Start of processes and contexts is not counted, as it is not in batch's own rate.
"""
import argparse
import json
import multiprocessing
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

import pyarrow.parquet as pq

BATCH_SIZE = 32


def work(number, count, arguments, start, done, out):
    """One actor: batch after batch, as Ray hands them over."""
    from hartsift._arrow import options_text, table_of_rows, write_arguments
    from hartsift._extractor import Extractor
    from hartsift._sources import extract_rows, find_images

    images = find_images(arguments.folder)
    sources = images[number::count]
    with Extractor(device=arguments.device, threads=arguments.threads) as extractor:
        text, descriptor = options_text(extractor.options), extractor.options["descriptor"]
        for batch in [images[:2], *(sources[i:i + BATCH_SIZE] for i in range(0, len(sources), BATCH_SIZE))]:
            if batch == images[:2]:
                table_of_rows(list(extract_rows(extractor, batch, readers=arguments.readers)), text, descriptor)
                start.wait()
                continue
            rows = list(extract_rows(extractor, batch, readers=arguments.readers))
            pq.write_table(table_of_rows(rows, text, descriptor), f"{out}/{number}-{batch[0].name.replace('/', '_')}.parquet",
                           **write_arguments())
    done.wait()


def rate_of_processes(count, arguments, images, out):
    context = multiprocessing.get_context("spawn")
    start, done = context.Barrier(count + 1), context.Barrier(count + 1)
    running = [context.Process(target=work, args=(i, count, arguments, start, done, out)) for i in range(count)]
    for process in running:
        process.start()
    start.wait()
    begun = time.perf_counter()
    done.wait()
    seconds = time.perf_counter() - begun
    for process in running:
        process.join()
    return images / seconds


def rate_of_batch(arguments, out):
    device = "cuda:0" if arguments.device == "cuda" else arguments.device
    run = subprocess.run([arguments.command, "batch", arguments.folder, "-o", out, "-q", "--json", "--device", device,
                          "--format", "bin"], stdout=subprocess.PIPE, check=False)
    return json.loads(run.stdout.decode().splitlines()[-1])["summary"]["images_per_second"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", default="1,2")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--readers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("command")
    parser.add_argument("folder")
    arguments = parser.parse_args()
    from hartsift._sources import find_images

    images = len(find_images(arguments.folder))
    counts = [int(count) for count in arguments.processes.split(",")]
    rates = {"hartsift batch": [], **{f"{count} processes": [] for count in counts}}
    place = "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None
    for _ in range(arguments.rounds):
        for name, values in rates.items():
            out = tempfile.mkdtemp(dir=place)
            values.append(rate_of_batch(arguments, out) if name == "hartsift batch"
                          else rate_of_processes(int(name.split()[0]), arguments, images, out))
            shutil.rmtree(out)
    print(f"{images} images, {arguments.device}, {arguments.threads} threads and {arguments.readers} readers a process\n")
    print(f"| way | images/s in {arguments.rounds} rounds | median | of batch |\n|---|---|--:|--:|")
    for name, values in rates.items():
        share = statistics.median(values) / statistics.median(rates["hartsift batch"])
        print(f"| {name} | {', '.join(f'{value:.1f}' for value in values)} | {statistics.median(values):.1f} | {share:.0%} |")


if __name__ == "__main__":
    main()
