#!/usr/bin/env bash
# The dashboard in Chromium against the real program: `edgecam sim` plays two
# cameras over RTSP, `edgecam run` watches them and a third that is switched off
# at the wall. Everything is on loopback, on ports that are free.
set -eu -o pipefail
cd "$(dirname "$0")/.."

for b in chromium chromium-browser google-chrome google-chrome-stable; do
  [ -z "${CHROMIUM:-}" ] && CHROMIUM=$(command -v "$b" 2>/dev/null) || true
done
export CHROMIUM=${CHROMIUM:?no Chromium: run scripts/setup-test.sh}

# Three ports that are free now.
read -r rtsp web closed < <(node -e '
  const net = require("node:net");
  const servers = [1, 2, 3].map(() => net.createServer().listen(0, "127.0.0.1"));
  Promise.all(servers.map((s) => new Promise((ready) => s.on("listening", ready)))).then(() => {
    console.log(servers.map((s) => s.address().port).join(" "));
    servers.forEach((s) => s.close());
  });')

work=$(mktemp -d)
sim=
stop() {
  if [ -n "$sim" ]; then
    kill "$sim" 2>/dev/null || true
    wait "$sim" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

cat >"$work/edgecam.yaml" <<YAML
version: 1
server: {listen: "127.0.0.1:$web"}
cameras:
  gate: {name: Front gate, url: "rtsp://127.0.0.1:$rtsp/cam1"}
  hall: {name: Hall, url: "rtsp://127.0.0.1:$rtsp/cam2"}
  shed: {name: Shed, url: "rtsp://127.0.0.1:$closed/stream"}
YAML
bin/edgecam check "$work/edgecam.yaml"
bin/edgecam sim --listen "127.0.0.1:$rtsp" --cameras 2 >"$work/sim.log" 2>&1 &
sim=$!

# The program's log is shown only where something failed.
if ! node web/ui/e2e/demo.mjs --url "http://127.0.0.1:$web" --stopped shed ${SHOTS:+--shots "$SHOTS"} \
  --start "bin/edgecam run --config $work/edgecam.yaml >$work/run.log 2>&1"; then
  echo "    last lines of edgecam run:"
  tail -n 30 "$work/run.log" | sed 's/^/      /'
  exit 1
fi
