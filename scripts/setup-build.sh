#!/usr/bin/env bash
# What the build needs beside Go and Node: a C compiler, and FFmpeg's headers.
# Does nothing, and needs no network, where they are there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/apt.sh"

tool() { # COMMAND MINIMUM-MAJOR.MINOR FOUND WHERE-FROM
  local want=$2 have=$3
  if [ "$(printf '%s\n%s\n' "$want" "$have" | sort -V | head -n 1)" != "$want" ]; then
    echo "build: $1 $want or newer is needed, found ${have:-none}; $4" >&2
    exit 1
  fi
}
go_version=$(go env GOVERSION 2>/dev/null | sed 's/^go//') || true
tool go 1.26 "${go_version:-}" "get it from go.dev"
node_version=$(node --version 2>/dev/null | sed 's/^v//') || true
tool node 20.19 "${node_version:-}" "get it from nodejs.org or your distribution"
command -v npm >/dev/null 2>&1 || { echo "build: npm is needed; it comes with Node" >&2; exit 1; }

if pkg-config --exists libavcodec libavutil 2>/dev/null && command -v "${CC:-gcc}" >/dev/null 2>&1; then
  exit 0
fi
need_packages build libavcodec-dev libavutil-dev pkg-config gcc libc6-dev
