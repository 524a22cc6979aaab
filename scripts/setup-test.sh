#!/usr/bin/env bash
# The real peers that the tests run against: FFmpeg's command to make streams,
# GStreamer's RTSP server and VLC as cameras, Chromium as the viewer, systemd's
# own checks for the unit, and the compilers that build the GPU kernels, for the
# card (clang) and for the host (g++).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/apt.sh"

packages=(
  ffmpeg
  gstreamer1.0-rtsp gstreamer1.0-plugins-base gstreamer1.0-plugins-good
  gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly gstreamer1.0-libav
  python3-gi gir1.2-gst-rtsp-server-1.0
  vlc-bin vlc-plugin-base
  systemd
  clang-19 g++
)
# Any Chromium-family browser will do; only where there is none, Debian's.
browser=
for b in chromium chromium-browser google-chrome google-chrome-stable; do
  command -v "$b" >/dev/null 2>&1 && browser=$b && break
done
[ -n "$browser" ] || packages+=(chromium)

need_packages test "${packages[@]}"
