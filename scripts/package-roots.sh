#!/usr/bin/env bash
# package-roots.sh DEST
#
# Makes the Debian roots that packages are tested in, DEST/SUITE.tar of Debian
# 11, 12 and 13 with systemd and little else, and DEST/bookworm-arm64.tar with
# arm64's C and C++ run time added, whose programs an emulator can run. What is
# there is left alone, without network.
set -eu -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/debian.sh"
mkdir -p "$1"
dest=$(realpath "$1")

work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT

keep() { # NAME: the root in $work becomes DEST/NAME.tar
  rm -rf "$work"/var/cache/apt/archives/*.deb "$work"/var/log/bootstrap.log
  chmod 0755 "$work" # mktemp's is for its owner alone, and the service has a user of its own
  tar -C "$work" -cf "$dest/$1.tar.part" .
  mv "$dest/$1.tar.part" "$dest/$1.tar"
  rm -rf "$work"
  work=
}

base() { # SUITE
  local mirror
  [ ! -f "$dest/$1.tar" ] || return 0
  mirror=$(debian_uris | awk '$1 == "main" {print $2; exit}')
  work=$(mktemp -d)
  # Without a mirror of its own debootstrap asks Debian's.
  "$here/step.sh" "make a root of Debian, $1" debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus "$1" "$work" ${mirror:+"$mirror"}
  keep "$1"
}

arm64() { # SUITE
  [ ! -f "$dest/$1-arm64.tar" ] || return 0
  work=$(mktemp -d)
  tar -C "$work" -xf "$dest/$1.tar"
  cp /etc/resolv.conf "$work/etc/resolv.conf"
  "$here/step.sh" "add arm64's run time to Debian, $1" unshare --mount --pid --fork --mount-proc="$work/proc" chroot "$work" \
    /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -ec '
    dpkg --add-architecture arm64
    apt-get -qq -o Acquire::Retries=3 update
    apt-get -qq -y --no-install-recommends install libc6:arm64 libgcc-s1:arm64 libstdc++6:arm64
    rm -rf /var/lib/apt/lists/*'
  rm -f "$work/etc/resolv.conf"
  keep "$1-arm64"
}

for suite in bullseye bookworm trixie; do base $suite; done
arm64 bookworm
