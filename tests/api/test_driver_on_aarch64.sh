#!/usr/bin/env bash
# The layer of the CUDA driver for 64-bit ARM, under an emulator: with a played driver (tests/fake_device/driver) its programs
# print what they print on this machine, and without one they name the reason.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
for needed in cc aarch64-linux-gnu-gcc qemu-aarch64; do
  command -v "$needed" >/dev/null || { echo "skipped: no $needed (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user)"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-std=c11 -O1 -D_POSIX_C_SOURCE=200809L -I. -Itests/support/cross -Wall -Wextra -Werror -DHARTSIFT_HAVE_CUDA=1 -DHARTSIFT_HAVE_ZSTD=0
  -DHARTSIFT_DRIVER_VERSION=12000 -DHARTSIFT_KERNELS_VERSION=12080 '-DHARTSIFT_CUDA_ARCHITECTURE_NAMES="87-real, 90-real, 90-virtual"'
  '-DFAKE_CUDA=""' '-DFAKE_CUDA_LACKING=""')
sources=(tests/fake_device/driver/test_driver.c tests/support/test_list.c cuda/runtime/*.c os/*_posix.c)

# build FOLDER COMPILER
build() {
  mkdir -p "$work/$1"/{driver,lacking}
  "$2" "${flags[@]}" -shared -fPIC tests/fake_device/driver/fake_cuda.c -o "$work/$1/driver/libcuda.so.1" &
  "$2" "${flags[@]}" -DFAKE_CUDA_LACKS_A_FUNCTION -shared -fPIC tests/fake_device/driver/fake_cuda.c -o "$work/$1/lacking/libcuda.so.1"
  "$2" "${flags[@]}" "${sources[@]}" -o "$work/$1/program" -ldl -lpthread -lm
  wait $!
}
build here cc
build aarch64 aarch64-linux-gnu-gcc

# run DRIVER SETTINGS MODE: on both; what the emulated one prints.
run() {
  FAKE_CUDA=$2 LD_LIBRARY_PATH=$work/here/$1 TEST_DRIVER_MODE=$3 "$work/here/program" >"$work/here.txt"
  FAKE_CUDA=$2 TEST_DRIVER_MODE=$3 qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$work/aarch64/$1" "$work/aarch64/program" \
    >"$work/aarch64.txt"
  cat "$work/aarch64.txt"
}
compared=0
while IFS='|' read -r driver settings mode; do
  run "$driver" "$settings" "$mode" >/dev/null
  diff "$work/here.txt" "$work/aarch64.txt" || { echo "failed: $driver '$settings' $mode: this machine's lines differ from aarch64's"; exit 1; }
  compared=$((compared + 1))
done <<'END'
driver|version=12000|reason
driver|version=12040 major=8|reason
driver|version=13000 major=13|reason
driver|version=11080|reason
driver|init=999|reason
driver|load=209|reason
lacking|version=12040|reason
driver||contexts
driver||launches
driver||lists
driver||capture
driver||rows
END
run absent "" reason | grep -q "^0 devices: no CUDA driver"
run driver version=12040 reason | grep -q "^fake GPU 0, 9.2, driver 12040"
run lacking version=12040 reason | grep -q "lacks the function cuGraphExecKernelNodeSetParams_v2"
echo "$compared runs on aarch64 print what this machine's do"
