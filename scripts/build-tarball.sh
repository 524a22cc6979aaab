#!/usr/bin/env bash
# build-tarball.sh ARCH VERSION BINARY ORTLIB OUTDIR
#
# Makes OUTDIR/edgecam-VERSION-linux-ARCH.tar.gz for systems without dpkg: to be
# unpacked anywhere and run from there. The same input gives the same bytes;
# SOURCE_DATE_EPOCH is the date of every file in it.
set -euo pipefail
[ $# = 5 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
arch=$1 version=$2 binary=$(realpath "$3") library=$(realpath "$4")
mkdir -p "$5"
out=$(realpath "$5")
cd "$(dirname "$0")/.."
epoch=$(scripts/version.sh --epoch)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=edgecam-$version-linux-$arch
put() { install -D -m "$1" "$2" "$work/$name/$3"; }
put 0755 "$binary" bin/edgecam
put 0644 "$library" lib/edgecam/libonnxruntime.so.1
put 0644 "$(dirname "$library")/LICENSE" licences/onnxruntime.LICENSE
put 0644 ".cache/ffmpeg-$arch/COPYING.LGPLv2.1" licences/ffmpeg.COPYING.LGPLv2.1
for file in LICENSE NOTICE THIRD_PARTY_NOTICES.md; do put 0644 "$file" "$file"; done
for file in edgecam.service edgecam.sysusers edgecam.tmpfiles; do put 0644 "systemd/$file" "systemd/$file"; done
put 0644 internal/config/edgecam.yaml edgecam.yaml

tar -C "$work" --format=ustar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w -cf - "$name" |
  gzip -9n >"$work/out"
chmod 0644 "$work/out"
mv "$work/out" "$out/$name.tar.gz"
