#!/usr/bin/env bash
# sysroot.sh ARCH DEST
#
# Makes DEST a Debian 11 root for ARCH (amd64 or arm64) with the headers and
# libraries of glibc 2.31 to build against, and DEST/bin/cc: the machine's own
# compiler for ARCH, that sees nothing but this root. What is built so starts on
# Debian 11 and newer, Ubuntu 20.04 and newer, and JetPack 5 and newer.
#
# Debian's packages stand below with their sums, and are kept in DOWNLOADS
# (.cache/downloads). Needs no network once they are there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/apt.sh"
. "$here/debian.sh"

suite=bullseye
[ $# = 2 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
arch=$1
downloads=${DOWNLOADS:-$here/../.cache/downloads}

# PACKAGE VERSION SHA256. The C++ run time is there for ONNX Runtime: an
# emulator takes this root for the machine's own.
case $arch in
  amd64)
    triplet=x86_64-linux-gnu compiler=gcc-x86-64-linux-gnu
    packages='
libc6          2.31-13+deb11u11 05f7264da867b37f4c5ce49266b558ea1e81e05a9464f623152fca70f3550282
libc6-dev      2.31-13+deb11u11 e7f7b45d9c5cfcf37609f0b6efd3c645272c812144703af89dfd32218fcb0fd3
linux-libc-dev 5.10.223-1       e3be603bd12377bb90fcfb0f2048ca3a81c886e49d6f09945b82159d1c54f7b2
libgcc-s1      10.2.1-6         e478f2709d8474165bb664de42e16950c391f30eaa55bc9b3573281d83a29daf
libstdc++6     10.2.1-6         5c155c58935870bf3b4bfe769116841c0d286a74f59eccfd5645693ac23f06b1' ;;
  arm64)
    triplet=aarch64-linux-gnu compiler=gcc-aarch64-linux-gnu
    packages='
libc6          2.31-13+deb11u11 baaa9aa184e2f21738c5819055e6740cc5b22f198e3f416e33f82b40ff6933d8
libc6-dev      2.31-13+deb11u11 28d478134722dcd4b0bd2045a199301d18713bf95947b9fce66634e7aeacab2e
linux-libc-dev 5.10.223-1       8b6374a64412d33eac61d74f77b8f932da4b8a707ea8a614791e2a35b8917618
libgcc-s1      10.2.1-6         e2fcdb378d3c1ad1bcb64d4fb6b37aab44011152beca12a4944f435a2582df1f
libstdc++6     10.2.1-6         7869aa540cc46e9f3d4267d5bde2af0e5b429a820c1d6f1a4cfccfe788c31890' ;;
  *) echo "sysroot: ARCH is amd64 or arm64, not $arch" >&2; exit 2 ;;
esac

if ! command -v "$triplet-gcc" >/dev/null; then
  # The machine's own architecture has no cross compiler package.
  if [ "$(dpkg --print-architecture)" = "$arch" ]; then compiler=gcc; fi
  need_packages sysroot "$compiler"
fi

# A change of this script or of the compiler makes the root anew.
mkdir -p "$2" "$downloads"
dest=$(cd "$2" && pwd)
downloads=$(cd "$downloads" && pwd)
want=$({ cat "$0"; "$triplet-gcc" -v; } 2>&1 | sha256sum | cut -d ' ' -f 1)
[ "$(cat "$dest/.built" 2>/dev/null || true)" != "$want" ] || exit 0

work=$(mktemp -d "$dest.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/root"

file_of() { printf '%s/%s_%s_%s.deb' "$downloads" "$1" "$2" "$arch"; }
fetch() { # those of the list that are not there
  local name version sum
  while read -r name version sum; do
    if [ -z "$name" ] || { [ -f "$(file_of "$name" "$version")" ] && sum_is "$(file_of "$name" "$version")" "$sum"; }; then continue; fi
    if [ -z "${debian_state:-}" ]; then
      echo "sysroot: fetching Debian 11's C library for $arch (7 MB, and 8 MB of lists)"
      debian_begin "$suite" "$arch" "$work/apt"
    fi
    (cd "$work" && debian_apt download -qq "$name=$version") || { echo "sysroot: cannot fetch $name $version of $suite" >&2; return 1; }
    mv "$work/${name}_$version"_*.deb "$(file_of "$name" "$version")"
    sum_is "$(file_of "$name" "$version")" "$sum" || {
      rm -f "$(file_of "$name" "$version")"
      echo "sysroot: $name $version has another sha256 than expected: nothing of it is used" >&2
      return 1
    }
  done <<<"$packages"
}
fetch

while read -r name version sum; do
  [ -z "$name" ] || dpkg-deb -x "$(file_of "$name" "$version")" "$work/root"
done <<<"$packages"
rm -rf "$work/root/usr/share"
# Links to / would lead out of the root, to the machine's own libraries.
find "$work/root" -type l -lname '/*' | while read -r link; do
  ln -sfnr "$work/root$(readlink "$link")" "$link"
done

# The compiler's own directories (for a foreign architecture: the newer glibc
# that came with it) must not step in: only its headers are named, and our
# libraries come first.
mkdir -p "$work/root/bin"
cat >"$work/root/bin/cc" <<TEXT
#!/bin/sh
root=\$(cd "\${0%/*}/.." && pwd) || exit 1
exec $triplet-gcc --sysroot="\$root" -ffile-prefix-map="\$root"=/sysroot \\
  -nostdinc -isystem "$("$triplet-gcc" -print-file-name=include)" -isystem "\$root/usr/include/$triplet" -isystem "\$root/usr/include" \\
  -B"\$root/usr/lib/$triplet" -L"\$root/usr/lib/$triplet" -L"\$root/lib/$triplet" -static-libgcc "\$@"
TEXT
chmod 0755 "$work/root/bin/cc"
printf '%s\n' "$want" >"$work/root/.built"
rm -rf "$dest"
mv "$work/root" "$dest"
echo "sysroot: $dest holds glibc $(sed -n 's/^libc6  *\([0-9.]*\).*/\1/p' <<<"$packages") for $arch"
