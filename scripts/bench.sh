#!/usr/bin/env bash
# The pipeline's own bench, and beside it what a user would write instead
# (scripts/peer_opencv.py) where Python has its packages: the same clip and
# model, one after the other on the same machine, and the ratio of frames that
# are analysed in one second of processor time.
set -eu -o pipefail
cd "$(dirname "$0")/.."

model=infer/builtin/nanodet-g-416.onnx
clip=internal/sim/pets-s2l1-20s.mp4
python=${PYTHON:-python3}

bin/edgecam bench pipeline "$@"

if ! "$python" -c 'import cv2, onnxruntime, numpy' 2>/dev/null; then
  echo
  echo "No comparison: it needs Python with opencv-python-headless, onnxruntime and numpy (PYTHON= names another interpreter)."
  exit 0
fi
echo
echo "The same in Python, OpenCV and ONNX Runtime:"
"$python" scripts/peer_opencv.py --model "$model" "$clip"
