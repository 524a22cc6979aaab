#!/usr/bin/env bash
# The pipeline's own bench, and beside it what a user would write instead
# (scripts/peer_opencv.py) where Python has its packages: the same clip and
# model, one after the other on the same machine, compared by the frames that
# are analysed in one second of processor time.
set -eu -o pipefail
cd "$(dirname "$0")/.."

export ORT_DISABLE_TELEMETRY=1 # Python's onnxruntime would report to its maker; edgecam sees to its own

model=infer/builtin/nanodet-g-416.onnx
clip=internal/sim/pets-s2l1-20s.mp4
python=${PYTHON:-python3}

bin/edgecam bench pipeline "$@"

if ! "$python" -c 'import cv2, onnxruntime, numpy' 2>/dev/null; then
  echo
  echo "No comparison: it needs Python with opencv-python-headless, onnxruntime and numpy (PYTHON= names another interpreter)."
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo
echo "Against Python with OpenCV and ONNX Runtime, one after the other, about a minute:"
for precision in fp32 int8; do
  bin/edgecam bench pipeline --precision "$precision" --json >"$work/$precision.json" 2>"$work/$precision.log" ||
    { cat "$work/$precision.log" >&2; exit 1; }
done
"$python" scripts/peer_opencv.py --model "$model" "$clip" >"$work/peer.json" 2>"$work/peer.log" ||
  { cat "$work/peer.log" >&2; exit 1; }

"$python" - "$work" <<'PYTHON'
import json, sys
read = lambda name: json.load(open(f"{sys.argv[1]}/{name}.json"))
peer = read("peer")
print(f"  {'':24}{'frames/s':>10}{'frames per CPU second':>24}{'ratio':>8}")
print(f"  {'OpenCV + ONNX Runtime':24}{peer['fps']:10.1f}{peer['frames_per_cpu_s']:24.1f}{1:8.2f}")
for precision in ("fp32", "int8"):
    r = read(precision)
    each = r["frames_per_cpu_second"]
    print(f"  {'edgecam, ' + precision:24}{r['fps']:10.1f}{each:24.1f}{each / peer['frames_per_cpu_s']:8.2f}")
PYTHON
