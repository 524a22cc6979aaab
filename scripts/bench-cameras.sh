#!/usr/bin/env bash
# How many cameras this machine takes without a GPU, at 5 analysed frames a second
# each and with 95 % of the frames younger than 400 ms, and what a frame costs
# against what a user would write instead (scripts/peer_opencv.py): the same
# simulated cameras for both, one after the other. About five minutes. CLIP= names
# an MP4 file that the cameras play; without it edgecam makes one of 1080p30 with
# ffmpeg. OUT= keeps the JSON reports.
set -eu -o pipefail
cd "$(dirname "$0")/.."

export ORT_DISABLE_TELEMETRY=1 # Python's onnxruntime would report to its maker; edgecam sees to its own

python=${PYTHON:-python3}
cameras=${CAMERAS:-2}
seconds=${SECONDS_EACH:-20}
clip=()
[ -z "${CLIP:-}" ] || clip=(--clip "$CLIP")

work=$(mktemp -d)
sim=
stop() {
  [ -z "$sim" ] || { kill "$sim" 2>/dev/null || true; wait "$sim" 2>/dev/null || true; }
  rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
keep() { [ -z "${OUT:-}" ] || { mkdir -p "$OUT" && cp "$1" "$OUT/"; }; }

search() { # name, arguments
  local name=$1
  shift
  bin/edgecam bench cameras --find-max --detect-fps 5 --p95 400ms --most 64 --json "$@" >"$work/$name.json" 2>"$work/$name.log" ||
    { cat "$work/$name.log" >&2; exit 1; }
  keep "$work/$name.json"
}
echo "The most cameras at 5 analysed frames a second with p95 <= 400 ms:"
search hd "${clip[@]}"
search pets --clip builtin

node - "$work/hd.json" "$work/pets.json" <<'NODE'
const { readFileSync } = require('node:fs');
for (const file of process.argv.slice(2)) {
  const r = JSON.parse(readFileSync(file, 'utf8'));
  const b = r.best;
  const age = b ? b.stages.at(-1) : null;
  console.log(`  ${r.max} cameras of ${r.video}` + (b ? `: age p50 ${age.p50_ms.toFixed(0)}, p95 ${age.p95_ms.toFixed(0)} ms, ${b.cores.toFixed(2)} cores` : ''));
  console.log(`    what stops more: ${r.stops ?? r.cut_short}`);
}
NODE

if ! "$python" -c 'import cv2, onnxruntime, numpy' 2>/dev/null; then
  echo
  echo "No comparison: it needs Python with opencv-python-headless, onnxruntime and numpy (PYTHON= names another interpreter)."
  exit 0
fi

echo
echo "Against Python with OpenCV and ONNX Runtime, $cameras cameras of the built-in clip, 5 frames a second each:"
# bash reads the addresses from the simulator, which goes on playing.
exec 3< <(exec bin/edgecam sim --listen 127.0.0.1:0 --cameras "$cameras" 2>"$work/sim.log")
sim=$!
urls=() flags=()
for _ in $(seq "$cameras"); do
  read -r -t 20 url <&3 || { cat "$work/sim.log" >&2; exit 1; }
  urls+=("$url") flags+=(--url "$url")
done
OPENCV_FFMPEG_CAPTURE_OPTIONS='rtsp_transport;tcp' "$python" scripts/peer_opencv.py --model infer/builtin/nanodet-g-416.onnx \
  --fps 5 --seconds "$seconds" "${urls[@]}" >"$work/peer.json" 2>"$work/peer.log" || { cat "$work/peer.log" >&2; exit 1; }
keep "$work/peer.json"
for precision in fp32 int8; do
  bin/edgecam bench cameras "${flags[@]}" --count "$cameras" --detect-fps 5 --p95 400ms \
    --duration "${seconds}s" --precision "$precision" --json >"$work/$precision.json" 2>"$work/$precision.log" ||
    { cat "$work/$precision.log" >&2; exit 1; }
  keep "$work/$precision.json"
done

node - "$work" <<'NODE'
const { readFileSync } = require('node:fs');
const read = (name) => JSON.parse(readFileSync(`${process.argv[2]}/${name}.json`, 'utf8'));
const row = (name, fps, each, ratio) => console.log(`  ${name.padEnd(24)}${fps.padStart(10)}${each.padStart(24)}${ratio.padStart(8)}`);
const peer = read('peer');
row('', 'frames/s', 'frames per CPU second', 'ratio');
row('OpenCV + ONNX Runtime', peer.fps.toFixed(1), peer.frames_per_cpu_s.toFixed(1), '1.00');
for (const precision of ['fp32', 'int8']) {
  const t = read(precision).best;
  const each = t.frames_per_cpu_second;
  row(`edgecam, ${precision}`, t.analysed_fps.toFixed(1), each.toFixed(1), (each / peer.frames_per_cpu_s).toFixed(2));
}
NODE
