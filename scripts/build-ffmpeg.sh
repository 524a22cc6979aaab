#!/bin/sh
# Builds the trimmed, static FFmpeg that the self-contained binary is linked
# with: only the decoders, parsers, hardware accelerations and filters that
# edgecam uses, LGPL parts only, from Debian's source package.
#
#   scripts/build-ffmpeg.sh DEST     installs include/ and lib/ (with pkgconfig/) below DEST
#
# Use it with  PKG_CONFIG_PATH=DEST/lib/pkgconfig go build -tags staticffmpeg …
# Needs root for the packages that are missing; offline once DEST is complete.
set -eu

VERSION=5.1.9-0+deb12u1
UPSTREAM=5.1.9
CONFIG="--disable-everything --disable-autodetect --disable-network --disable-programs --disable-doc
 --disable-avdevice --disable-avfilter --disable-avformat --disable-swscale --disable-swresample --disable-postproc
 --enable-pic --enable-static --disable-shared --disable-debug
 --enable-decoder=h264,hevc,mjpeg --enable-encoder=mjpeg
 --enable-parser=h264,hevc,mjpeg --enable-bsf=h264_mp4toannexb,hevc_mp4toannexb,mjpeg2jpeg"
if [ "$(uname -m)" = x86_64 ] || [ "$(uname -m)" = aarch64 ]; then
  CONFIG="$CONFIG --enable-ffnvcodec --enable-cuda --enable-nvdec --enable-cuvid
   --enable-hwaccel=h264_nvdec,hevc_nvdec,mjpeg_nvdec --enable-decoder=h264_cuvid,hevc_cuvid,mjpeg_cuvid"
fi

[ $# -eq 1 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
dest=$(cd "$1" && pwd)
stamp="$dest/.built"
want="$VERSION $(printf %s "$CONFIG" | sha256sum | cut -d' ' -f1)"
[ "$(cat "$stamp" 2>/dev/null || true)" = "$want" ] && exit 0

missing=
for p in gcc make nasm pkg-config dpkg-dev libffmpeg-nvenc-dev xz-utils; do
  dpkg -s "$p" >/dev/null 2>&1 || missing="$missing $p"
done
if [ -n "$missing" ]; then
  if [ "$(id -u)" -ne 0 ]; then
    echo "build-ffmpeg: these packages are missing; run as root: apt-get install$missing" >&2
    exit 1
  fi
  echo "build-ffmpeg: installing$missing"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# The machine's own Debian sources, asked for source packages in a list of their
# own, so that nothing of the machine's apt set-up changes.
mkdir parts lists
for f in /etc/apt/sources.list.d/*.sources; do
  [ -e "$f" ] && grep -q debian-archive-keyring "$f" && sed 's/^Types:.*/Types: deb-src/' "$f" > "parts/$(basename "$f")"
done
grep -hs '^deb .*debian' /etc/apt/sources.list | sed 's/^deb /deb-src /' > parts/src.list || true
opts="-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=$work/parts -o Dir::State::lists=$work/lists -o APT::Sandbox::User=root"
echo "build-ffmpeg: fetching the source of ffmpeg $VERSION"
apt-get $opts update -qq
apt-get $opts source -qq --download-only "ffmpeg=7:$VERSION" >/dev/null
tar xf "ffmpeg_$UPSTREAM.orig.tar.xz"
cd "ffmpeg-$UPSTREAM"
echo "build-ffmpeg: building, some minutes"
# shellcheck disable=SC2086 # CONFIG is a list of words
./configure --prefix="$dest" $CONFIG > configure.log || { tail -5 configure.log ffbuild/config.log >&2; exit 1; }
make -s -j"$(nproc)" > make.log 2>&1 || { tail -20 make.log >&2; exit 1; }
rm -rf "$dest/include" "$dest/lib"
make -s install > install.log 2>&1
cp COPYING.LGPLv2.1 "$dest/"
printf '%s\n' "$want" > "$stamp"
echo "build-ffmpeg: done, $(du -sh "$dest/lib/libavcodec.a" | cut -f1)B libavcodec.a"
