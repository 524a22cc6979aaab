#!/usr/bin/env bash
# Compiles the CUDA kernels to PTX with Debian's clang; no CUDA toolkit is needed:
#   scripts/ptx.sh           beside the sources, where Go embeds them
#   scripts/ptx.sh DIR       into DIR, for the test that compares
# PTX ISA 6.3 for sm_53 loads on everything from Jetson Nano to today's cards: the
# driver translates it. Nothing is contracted to fused operations unasked, so that
# the kernels compute on every GPU what their build for the host computes.
set -eu
cd "$(dirname "$0")/.."

if ! command -v clang-19 >/dev/null 2>&1; then
  echo "ptx: clang-19 is needed; run as root: apt-get install -y --no-install-recommends clang-19" >&2
  exit 1
fi
find . -name '*.cu' -not -path './web/*' -not -path './.cache/*' | sort | while read -r source; do
  out=${source%.cu}.ptx
  [ $# = 0 ] || out=$1/$(basename "$out")
  clang-19 -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_53 \
    -Xclang -target-feature -Xclang +ptx63 -Xclang -fcuda-short-ptr -mllvm --nvptx-short-ptr -std=c++17 -O3 -ffp-contract=off -fno-ident \
    -Wall -Wextra -Werror -S -o "$out" "$source"
done
