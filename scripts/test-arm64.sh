#!/usr/bin/env bash
# test-arm64.sh
#
# Builds tests and program for arm64 and runs them here, on QEMU's user mode:
# nothing of the machine is changed, and it needs no root but for packages that
# are missing. On an arm64 machine make test does the same and more.
#
# The emulated processor is a Cortex-A76, the nearest that QEMU 7.2 has to a
# Jetson Orin's A78AE: it has the int8 dot product, without SVE. What a test with
# QEMU cannot show is how long things take, and stores that come in another order
# than the program's: the x86 underneath keeps it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/apt.sh"
cd "$here/.."
root=$(pwd -P)
started=$SECONDS

need_packages "tests for arm64" qemu-user-static gcc-aarch64-linux-gnu g++-aarch64-linux-gnu ffmpeg
sysroot=$root/.cache/sysroot-arm64 ffmpeg=$root/.cache/ffmpeg-arm64 onnxruntime=$root/.cache/onnxruntime/$(sed -n 's/^version=//p' "$here/fetch-onnxruntime.sh")-arm64
"$here/build-ffmpeg.sh" "$ffmpeg" arm64
[ -f "$onnxruntime/libonnxruntime.so.1" ] || "$here/fetch-onnxruntime.sh" "$onnxruntime" arm64

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# emulated DIR LIBRARIES: a root in which QEMU looks for files first. It has the
# processor's description, as QEMU hands the machine's own through and ONNX
# Runtime's look for the kind of an Arm core ends the process at an x86's.
emulated() {
  mkdir -p "$1/proc" "$1/lib" "$1/etc"
  ln -s "$2/ld-linux-aarch64.so.1" "$1/lib/"
  ln -s "$2" "$1/lib/aarch64-linux-gnu"
  # The machine's may know another C library for arm64: half of one and half of
  # the other hang.
  : >"$1/etc/ld.so.cache"
  local n
  for n in $(seq 0 $(($(nproc) - 1))); do
    printf 'processor\t: %d\nBogoMIPS\t: 125.00\nFeatures\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp ssbs\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x4\nCPU part\t: 0xd0b\nCPU revision\t: 1\n\n' "$n"
  done >"$1/proc/cpuinfo"
}
# Tests build stand-ins of libraries with this machine's compiler: they run with
# its C library. The program runs with the oldest that it promises to.
emulated "$work/tests" /usr/aarch64-linux-gnu/lib
emulated "$work/program" "$sysroot/lib/aarch64-linux-gnu"
emulator="qemu-aarch64-static -cpu cortex-a76"

# Programs that the tests start are the machine's own, but for compilers.
mkdir "$work/bin"
ln -s "$(command -v aarch64-linux-gnu-gcc)" "$work/bin/gcc"
ln -s "$(command -v aarch64-linux-gnu-gcc)" "$work/bin/cc"
ln -s "$(command -v aarch64-linux-gnu-g++)" "$work/bin/g++"
runner() { # FILE OPTIONS
  cat >"$1" <<RUN
#!/bin/sh
export EDGECAM_TEST_RUNNER="$emulator $2 -L $work/tests" PATH="$work/bin:\$PATH"
exec \$EDGECAM_TEST_RUNNER "\$@"
RUN
  chmod +x "$1"
}
runner "$work/run" ""
runner "$work/run-64k" "-p 65536"

failed=()
tests() { # TITLE RUNNER ARGUMENT…
  local title=$1 run=$2
  shift 2
  echo "==> arm64: $title"
  env GOOS=linux GOARCH=arm64 GOARM64=v8.0 CGO_ENABLED=1 CC="$sysroot/bin/cc" PKG_CONFIG_LIBDIR="$ffmpeg/lib/pkgconfig" PKG_CONFIG_PATH= \
    EDGECAM_ONNXRUNTIME="$onnxruntime/libonnxruntime.so.1" \
    go test -count=1 -tags staticffmpeg -timeout 5m -exec "$run" "$@" || failed+=("$title")
}

tests "memory, platform, preprocessing, inference, configuration" "$work/run" \
  ./framepool ./platform ./platform/avcodec ./platform/cuda ./platform/doctor ./platform/nvml \
  ./preprocess ./infer ./infer/track ./infer/candidates ./infer/builtin ./infer/model/... ./internal/config ./internal/testkit
# Kernels with pages of 64 KiB are common on arm64 servers, and optional on Jetsons.
tests "frame pools on a kernel with pages of 64 KiB" "$work/run-64k" ./framepool
# An emulated run of the model takes seconds in int8, and minutes in fp32: QEMU
# computes floating point in software. So the boxes of int8 are compared, which is
# what precision: auto takes on this processor, and tests stay out that run fp32
# often to compare runs with each other.
tests "ONNX Runtime" "$work/run" -skip 'TestRunIsConcurrent' ./platform/onnxruntime
tests "decoder, pool, preprocessing, engine: the boxes that amd64 finds" "$work/run" -run 'TestReferenceThroughTheWholePath/int8' ./internal/pipeline

# The program as it is released, in Debian 11's root.
echo "==> arm64: the program"
program=$root/.cache/release/arm64/edgecam
"$here/build-release.sh" arm64 "$program"
if report=$($emulator -L "$work/program" "$program" bench pipeline --provider cpu --precision int8 --frames 4 --json \
  --library "$onnxruntime/libonnxruntime.so.1" 2>"$work/errors"); then
  # shellcheck disable=SC2016 # the script is JavaScript
  node -e '
    const r = JSON.parse(process.argv[1]);
    console.log(`    ${r.machine}: ${r.frames} pictures, ${r.objects} objects, ${r.damaged} damaged, ${r.copied_bytes} bytes copied`);
    if (r.frames !== 4 || r.damaged !== 0 || r.copied_bytes !== 0 || r.objects < 8) process.exit(1);
  ' "$report" || failed+=("the program")
else
  cat "$work/errors" >&2
  failed+=("the program")
fi

if [ ${#failed[@]} = 0 ]; then
  echo "test-arm64: passed in $((SECONDS - started)) s"
else
  printf 'test-arm64: FAILED after %d s:' $((SECONDS - started))
  printf ' [%s]' "${failed[@]}"
  echo
  exit 1
fi
