#!/usr/bin/env bash
# Puts what was built in its place. DESTDIR stages it for a packager, PREFIX
# (default /usr/local) says where; a configuration that exists is never touched.
set -eu
cd "$(dirname "$0")/.."
: "${DESTDIR:=}" "${PREFIX:=/usr/local}" "${ORT_DIR:?}"
etc=$DESTDIR/etc/edgecam
say() { printf '  %s\n' "$*"; }

put() { # MODE SOURCE TARGET
  install -D -m "$1" "$2" "$DESTDIR$3"
  say "$DESTDIR$3"
}

put 0755 bin/edgecam "$PREFIX/bin/edgecam"

# The library goes where the program looks: lib/edgecam beside its own bin.
library=$(find "$ORT_DIR" -name 'libonnxruntime.so*' -type f | sort | head -n 1)
[ -n "$library" ] || { echo "install: no libonnxruntime.so under $ORT_DIR; run make build" >&2; exit 1; }
put 0644 "$library" "$PREFIX/lib/edgecam/libonnxruntime.so.1"

unit=$(mktemp)
trap 'rm -f "$unit"' EXIT
sed "s|/usr/local/bin/edgecam|$PREFIX/bin/edgecam|g" systemd/edgecam.service >"$unit"
put 0644 "$unit" "$PREFIX/lib/systemd/system/edgecam.service"
put 0644 systemd/edgecam.sysusers "$PREFIX/lib/sysusers.d/edgecam.conf"
put 0644 systemd/edgecam.tmpfiles "$PREFIX/lib/tmpfiles.d/edgecam.conf"
for doc in LICENSE NOTICE THIRD_PARTY_NOTICES.md; do
  put 0644 "$doc" "$PREFIX/share/doc/edgecam/$doc"
done

if [ -e "$etc/edgecam.yaml" ]; then
  say "$etc/edgecam.yaml exists: left as it is"
else
  install -d -m 0755 "$etc"
  install -m 0640 internal/config/edgecam.yaml "$etc/edgecam.yaml"
  say "$etc/edgecam.yaml"
fi

if [ -n "$DESTDIR" ] || [ "$(id -u)" != 0 ]; then
  exit 0
fi
# A real installation: the user, its directories, and the unit become known now.
systemd-sysusers "$PREFIX/lib/sysusers.d/edgecam.conf"
systemd-tmpfiles --create "$PREFIX/lib/tmpfiles.d/edgecam.conf"
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
cat <<TEXT

Next:
  1. put your cameras into /etc/edgecam/edgecam.yaml
  2. edgecam check /etc/edgecam/edgecam.yaml && edgecam doctor
  3. systemctl enable --now edgecam
TEXT
