#!/bin/sh
# Compiles the kernels to PTX with Debian's clang, no CUDA toolkit needed:
#   preprocess/kernels/build.sh [OUTDIR]      default: beside the sources
# PTX ISA 6.3 for sm_53 loads on everything from Jetson Nano on.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here}
for f in "$here"/*.cu; do
  name=$(basename "$f" .cu)
  clang-19 -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_53 \
    -Xclang -target-feature -Xclang +ptx63 -O3 -ffp-contract=off -fno-ident -S -o "$out/$name.ptx" "$f"
done
