#!/usr/bin/env bash
# What `make release` and the tests of its packages need beside what the build
# needs: Debian's tools to make and judge packages, fresh Debian roots, and the
# emulator that runs arm64's programs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/apt.sh"

need_packages package dpkg-dev xz-utils binutils lintian man-db debootstrap debian-archive-keyring \
  util-linux procps curl qemu-user-static
