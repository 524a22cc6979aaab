#!/usr/bin/env bash
# check-reproducible.sh [--whole] [ARCH…]
#
# Builds the release a second time, in a copy of the tree in another directory
# and without git, and compares every byte with what lies in dist/. Made anew
# are the program, its links, the packages and the tarballs. With --whole
# nothing but downloads is taken over: FFmpeg, the dashboard and all that the Go
# command has in its cache are made anew too (a quarter of an hour on two cores).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(pwd)
whole=
if [ "${1:-}" = --whole ]; then whole=1; shift; fi
[ $# -gt 0 ] || set -- amd64 arm64
VERSION=$(scripts/version.sh)
SOURCE_DATE_EPOCH=$(scripts/version.sh --epoch)
export VERSION SOURCE_DATE_EPOCH
[ -f dist/SHA256SUMS ] || { echo "check-reproducible: dist/ is empty; run make release" >&2; exit 1; }

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
copy=$work/another/place/for/the/tree
mkdir -p "$copy/.cache"
tar --exclude=.git --exclude=node_modules --exclude=./.cache --exclude=./bin --exclude=./dist -cf - . | tar -xf - -C "$copy"
cp -r .cache/downloads .cache/onnxruntime "$copy/.cache/"
cp -r web/ui/node_modules "$copy/web/ui/"
if [ -n "$whole" ]; then
  export GOCACHE="$work/gocache"
  find "$copy/web/dist" -mindepth 1 ! -name .keep -delete
  npm --prefix "$copy/web/ui" run build >"$work/npm.log" 2>&1 || { tail "$work/npm.log" >&2; exit 1; }
  touch "$copy/web/dist/.keep"
else
  for arch in "$@"; do cp -r ".cache/sysroot-$arch" ".cache/ffmpeg-$arch" "$copy/.cache/"; done
fi
"$copy/scripts/release.sh" "$@"

cd "$copy/dist"
bad=0
while read -r sum file; do
  if [ ! -f "$root/dist/$file" ]; then
    echo "check-reproducible: $root/dist has no $file" >&2
    bad=1
  elif ! cmp "$root/dist/$file" "$file" >&2; then
    bad=1
  fi
done <SHA256SUMS
[ $bad = 0 ] || { echo "check-reproducible: two builds of the same sources differ" >&2; exit 1; }
echo "check-reproducible: $(wc -l <SHA256SUMS) files are the same, byte for byte, from $root and from another directory"
