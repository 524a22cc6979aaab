#!/usr/bin/env bash
# The pipeline's own bench, and beside it what a user would write instead
# (scripts/peer_opencv.py) where Python has its packages: the same clip, the
# same model, one after the other on the same machine.
set -eu
cd "$(dirname "$0")/.."

bin/edgecam bench pipeline "$@"

if python3 -c 'import cv2, onnxruntime, numpy' 2>/dev/null && [ -n "${MODEL:-}" ]; then
  echo
  echo "peer (OpenCV and ONNX Runtime in Python), same clip:"
  python3 scripts/peer_opencv.py --model "$MODEL" internal/sim/pets-s2l1-20s.mp4
else
  echo
  echo "no peer run: needs Python with opencv-python-headless, onnxruntime and numpy"
fi
