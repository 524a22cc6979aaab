#!/usr/bin/env bash
# build-ffmpeg.sh DEST [ARCH]
# build-ffmpeg.sh --source
#
# Builds the trimmed, static FFmpeg that the self-contained binary is linked
# with, and installs its include/, lib/ and lib/pkgconfig/ below DEST: only the
# decoders, parsers and hardware accelerations that edgecam uses, LGPL parts
# only, unchanged, from the source that Debian has.
#
# With ARCH (amd64 or arm64) it is built against .cache/sysroot-ARCH, for
# releases: the same compiler gives the same bytes in every directory. Without,
# it is for this machine, with its own C library.
#
# With --source it prints where the source lies, and fetches it where it does not.
#
# Use it with  PKG_CONFIG_LIBDIR=DEST/lib/pkgconfig go build -tags staticffmpeg …
# Needs root for packages that are missing; offline once the source is in
# DOWNLOADS (.cache/downloads).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/apt.sh"
. "$here/debian.sh"

version=5.1.9
source_sha256=d9b593bb2ba93d4b50f74177e0cdcd41747e708596367deed0c30348a71dd176
debian_suite=bookworm
config=(--disable-everything --disable-autodetect --disable-network --disable-programs --disable-doc
  --disable-avdevice --disable-avfilter --disable-avformat --disable-swscale --disable-swresample --disable-postproc
  --enable-pic --enable-static --disable-shared --disable-debug
  --enable-decoder=h264,hevc,mjpeg --enable-encoder=mjpeg
  --enable-parser=h264,hevc,mjpeg --enable-bsf=h264_mp4toannexb,hevc_mp4toannexb,mjpeg2jpeg)
nvidia=(--enable-ffnvcodec --enable-cuda --enable-nvdec --enable-cuvid
  --enable-hwaccel=h264_nvdec,hevc_nvdec,mjpeg_nvdec --enable-decoder=h264_cuvid,hevc_cuvid,mjpeg_cuvid)

[ $# = 1 ] || [ $# = 2 ] || { sed -n '2,19s/^# \{0,1\}//p' "$0" >&2; exit 2; }
downloads=${DOWNLOADS:-$here/../.cache/downloads}
mkdir -p "$downloads"
source=$(cd "$downloads" && pwd)/ffmpeg_$version.orig.tar.xz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fetch() {
  if [ -f "$source" ] && sum_is "$source" "$source_sha256"; then return; fi
  echo "build-ffmpeg: fetching the source of FFmpeg $version (10 MB, and as much of lists)" >&2
  debian_begin "$debian_suite" "$(dpkg --print-architecture)" "$work/apt"
  # Any revision of Debian's has the same upstream source.
  local revision
  revision=$(apt-cache -c "$debian_state/apt.conf" showsrc --only-source ffmpeg | sed -n "s/^Version: \(.*:$version-.*\)/\1/p" | sort -V | tail -n 1)
  [ -n "$revision" ] || {
    echo "build-ffmpeg: Debian's $debian_suite has no FFmpeg $version any more: put ffmpeg_$version.orig.tar.xz (Debian's archive of snapshots has it) into ${source%/*}, or move version and source_sha256 in $0 on" >&2
    return 1
  }
  (cd "$work" && debian_apt source -qq --download-only "ffmpeg=$revision" >/dev/null)
  sum_is "$work/ffmpeg_$version.orig.tar.xz" "$source_sha256" || {
    echo "build-ffmpeg: the source of FFmpeg $version has another sha256 than expected: nothing of it is used" >&2
    return 1
  }
  mv "$work/ffmpeg_$version.orig.tar.xz" "$source"
}
if [ "$1" = --source ]; then
  fetch
  echo "$source"
  exit
fi

arch=${2:-} sysroot=
mkdir -p "$1"
dest=$(cd "$1" && pwd)
need_packages "FFmpeg" gcc libc6-dev make nasm pkg-config xz-utils libffmpeg-nvenc-dev
compiler=gcc
case ${arch:-$(uname -m)} in
  amd64 | x86_64) config+=("${nvidia[@]}" --arch=x86_64) triplet=x86_64-linux-gnu ;;
  arm64 | aarch64) config+=("${nvidia[@]}" --arch=aarch64) triplet=aarch64-linux-gnu ;;
  *) [ -z "$arch" ] || { echo "build-ffmpeg: ARCH is amd64 or arm64, not $arch" >&2; exit 2; } ;;
esac
if [ -n "$arch" ]; then
  sysroot=$here/../.cache/sysroot-$arch
  "$here/sysroot.sh" "$arch" "$sysroot"
  compiler=$(cd "$sysroot/bin" && pwd)/cc
  # What Debian hardens its own FFmpeg with: it reads what cameras send.
  config+=(--enable-cross-compile --target-os=linux "--cross-prefix=$triplet-" "--extra-cflags=-fstack-protector-strong -D_FORTIFY_SOURCE=2")
fi

# A change of this script, of the compiler or of what it sees builds it anew.
want=$({ cat "$0"; "$compiler" -v 2>&1; pkg-config --modversion ffnvcodec; [ -z "$sysroot" ] || cat "$sysroot/.built"; } | sha256sum | cut -d ' ' -f 1)
[ "$(cat "$dest/.built" 2>/dev/null || true)" != "$want" ] || exit 0
fetch
tar -xJf "$source" -C "$work" --no-same-owner
cd "$work/ffmpeg-$version"

# configure writes its arguments into the library, so none of them is a path of
# this machine: tools come by PATH, and the headers of NVIDIA's interfaces,
# which are the same for every architecture, from beside the source.
mkdir bin nvidia
# Not a link: the compiler finds its root by its own name.
printf '#!/bin/sh\nexec "%s" "$@"\n' "$compiler" >bin/edgecam-cc
chmod 0755 bin/edgecam-cc
cp -r "$(pkg-config --variable=includedir ffnvcodec)/ffnvcodec" nvidia/
sed "s|^includedir=.*|includedir=$PWD/nvidia|; s|^prefix=.*|prefix=$PWD|" "$(pkg-config --path ffnvcodec)" >bin/ffnvcodec.pc
export PATH="$PWD/bin:$PATH" PKG_CONFIG_LIBDIR="$PWD/bin"
fail() { tail -n 20 "$@" >&2; exit 1; }
echo "build-ffmpeg: building for ${arch:-this machine}, some minutes"
./configure --prefix=/usr --cc=edgecam-cc --pkg-config=pkg-config "${config[@]}" >configure.log 2>&1 || fail configure.log ffbuild/config.log
make -s -j"$(nproc)" >make.log 2>&1 || fail make.log
make -s install DESTDIR="$work/out" >install.log 2>&1 || fail install.log

# Where the libraries lie is found from where pkg-config finds them. Neither
# architecture needs libatomic for what FFmpeg does.
sed -i -E 's|^prefix=.*|prefix=${pcfiledir}/../..|; s|^libdir=.*|libdir=${prefix}/lib|; s|^includedir=.*|includedir=${prefix}/include|; s| -latomic||' \
  "$work"/out/usr/lib/pkgconfig/*.pc
rm -rf "$dest/include" "$dest/lib" "$dest/share"
mv "$work/out/usr/include" "$work/out/usr/lib" "$dest/"
cp COPYING.LGPLv2.1 "$dest/"
printf '%s\n' "$want" >"$dest/.built"
echo "build-ffmpeg: done, $(du -sh "$dest/lib/libavcodec.a" | cut -f 1)B libavcodec.a"
