#!/usr/bin/env bash
# The tests on a real NVIDIA card, package by package:
#   scripts/test-hw.sh                                all of them
#   SANITIZER=compute-sanitizer scripts/test-hw.sh    those that make sense under NVIDIA's memory checker
# EDGECAM_ONNXRUNTIME names the GPU build of ONNX Runtime, LD_LIBRARY_PATH the places of what it needs.
# HW_BIN is a directory of test binaries built before (infer_ort.test and so on), for a box without Go;
# HW_LIMIT is how many seconds each package may take; HW_SHORT=1 leaves figures and crowds out.
set -u
cd "$(dirname "$0")/.."
sanitizer=${SANITIZER:-}
limit=${HW_LIMIT:-600}
short=${HW_SHORT:+-test.short}
failed=()

binary() { # PACKAGE: where its test binary is
  local name=${1//\//_}.test
  if [ -n "${HW_BIN:-}" ]; then
    [ -x "$HW_BIN/$name" ] && echo "$HW_BIN/$name"
    return
  fi
  go test -tags hw -c -o "$built/$name" "./$1" && echo "$built/$name"
}

run() { # PACKAGE PATTERN [ARGUMENT…]
  local package=$1 pattern=$2 at=$SECONDS path status
  shift 2
  printf '==> %s %s\n' "$package" "$pattern"
  if ! path=$(binary "$package"); then
    failed+=("$package: no test binary")
    return
  fi
  local command=("$path" -test.v -test.run "$pattern" -test.timeout "${limit}s" "$@")
  [ -z "$sanitizer" ] || command=("$sanitizer" --tool memcheck --report-api-errors no --error-exitcode 9 "${command[@]}")
  (cd "$package" && timeout --kill-after=5 "$limit" "${command[@]}") </dev/null
  status=$?
  if [ $status = 0 ]; then
    printf '    ok (%d s)\n' $((SECONDS - at))
  else
    failed+=("$package")
    printf '    FAILED: exit status %d (%d s)\n' $status $((SECONDS - at))
  fi
}

if [ -z "${HW_BIN:-}" ]; then
  built=$(mktemp -d -t edgecam-hw.XXXXXX) || exit 1
  trap 'rm -rf "$built"' EXIT
fi
if [ -n "$sanitizer" ]; then
  # A checked kernel runs a hundred times slower: what is for figures is left out, and of the
  # whole model, whose kernels are ONNX Runtime's, one short run is enough.
  run infer/candidates '^TestHardwareFilterAgreesWithDecode$' -test.short
  run platform/cuda '^TestHardware' -test.short
  run preprocess '^TestHardware(Letterbox|Preview)' -test.short
  run internal/pipeline/bench '^TestHardwareMemoryTable$' -test.short
  run infer/ort '^TestHardwareReferenceBoxes$' -test.short
else
  # Engines that TensorRT builds stay for the tests that follow.
  export EDGECAM_TEST_STATE=${EDGECAM_TEST_STATE:-$(mktemp -d -t edgecam-state.XXXXXX)}
  for package in platform/cuda preprocess infer/candidates capture/decode internal/pipeline/bench infer/ort internal/pipeline; do
    # shellcheck disable=SC2086 # one word or none
    run "$package" "${HW_RUN:-^TestHardware}" $short
  done
fi

if [ ${#failed[@]} = 0 ]; then
  printf 'test-hw: all passed in %d s\n' $SECONDS
else
  printf 'test-hw: FAILED in %d s:' $SECONDS
  printf ' [%s]' "${failed[@]}"
  echo
  exit 1
fi
