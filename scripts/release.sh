#!/usr/bin/env bash
# release.sh [ARCH…]
#
# Makes everything of a release in dist/, for amd64 and arm64 where none is
# named: the Debian packages, the tarballs, FFmpeg's source, and SHA256SUMS over
# them. The dashboard must be built (make does it). What is there and made from
# the same sources stays; without anything to fetch it needs no network.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- amd64 arm64
ort_version=$(sed -n 's/^version=//p' scripts/fetch-onnxruntime.sh)
VERSION=$(scripts/version.sh)
SOURCE_DATE_EPOCH=$(scripts/version.sh --epoch)
export VERSION SOURCE_DATE_EPOCH
mkdir -p dist .cache/release

# sources prints a sum over everything that a release is made of: the tree and
# the compilers.
sources() {
  {
    find . \( -name .git -o -name node_modules -o -path ./.cache -o -path ./bin -o -path ./dist -o -path ./web/dist \) -prune -o -type f -print0 |
      LC_ALL=C sort -z | xargs -0 sha256sum
    find web/dist -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
    go env GOVERSION
    dpkg-query -W gcc dpkg-dev tar gzip xz-utils 2>/dev/null || true
    echo "$VERSION $SOURCE_DATE_EPOCH"
  } | sha256sum | cut -d ' ' -f 1
}
tree=$(sources)

# library ARCH prints where its ONNX Runtime lies.
library() {
  local dir=.cache/onnxruntime/$ort_version
  [ "$(dpkg --print-architecture)" = "$1" ] || dir=$dir-$1
  echo "$dir/libonnxruntime.so.1"
}

made=()
for arch in "$@"; do
  binary=.cache/release/$arch/edgecam
  deb=edgecam_${VERSION}_$arch.deb tarball=edgecam-$VERSION-linux-$arch.tar.gz
  made+=("$deb" "$tarball")
  [ "$(cat ".cache/release/$arch.built" 2>/dev/null || true)" = "$tree" ] && [ -f "$binary" ] && [ -f "dist/$deb" ] && [ -f "dist/$tarball" ] && continue
  scripts/fetch-onnxruntime.sh "$(dirname "$(library "$arch")")" "$arch"
  scripts/check-symbols.sh --c++ "$(library "$arch")"
  scripts/build-release.sh "$arch" "$binary"
  scripts/step.sh "pack $deb" scripts/build-deb.sh "$arch" "$VERSION" "$binary" "$(library "$arch")" dist
  scripts/step.sh "pack $tarball" scripts/build-tarball.sh "$arch" "$VERSION" "$binary" "$(library "$arch")" dist
  echo "$tree" >".cache/release/$arch.built"
done

# Whoever hands out a binary with FFmpeg inside hands out FFmpeg's source too.
source=$(scripts/build-ffmpeg.sh --source)
cmp -s "$source" "dist/$(basename "$source")" || cp "$source" dist/
made+=("$(basename "$source")")

# Of an older version nothing stays beside this one.
find dist -maxdepth 1 -type f \( -name 'edgecam*' -o -name 'ffmpeg*' \) | while read -r file; do
  case " ${made[*]} " in *" $(basename "$file") "*) ;; *) rm -f "$file" ;; esac
done
(cd dist && sha256sum "${made[@]}" >SHA256SUMS)
echo "release: edgecam $VERSION in dist/:"
(cd dist && du -h --apparent-size -- "${made[@]}" | sed 's/^/  /')
