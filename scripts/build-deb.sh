#!/usr/bin/env bash
# build-deb.sh ARCH VERSION BINARY ORTLIB OUTDIR
#
# Makes OUTDIR/edgecam_VERSION_ARCH.deb (ARCH amd64 or arm64) of a program that
# is built and ONNX Runtime's library for the processor. The same input gives
# the same bytes; SOURCE_DATE_EPOCH is the date of every file in it.
set -eu -o pipefail
[ $# = 5 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
arch=$1 version=$2 binary=$(realpath "$3") library=$(realpath "$4")
mkdir -p "$5"
out=$(realpath "$5")
cd "$(dirname "$0")/.."
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-1767225600}" LC_ALL=C TZ=UTC
umask 022

die() { echo "build-deb: $*" >&2; exit 1; }
dpkg --validate-version "$version" || die "Debian takes no version such as $version"
machine() { LC_ALL=C readelf -h "$1" | sed -n 's/^ *Machine: *//p'; }
case $arch in
  amd64) want="Advanced Micro Devices X86-64" ;;
  arm64) want=AArch64 ;;
  *) die "no packages are made for $arch" ;;
esac
for file in "$binary" "$library"; do
  [ "$(machine "$file")" = "$want" ] || die "$file is not for $arch"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
put() { install -D -m "$1" "$2" "$tree$3"; }
packed() { # SOURCE TARGET: without a name or a time inside
  install -d "$(dirname "$tree$2")"
  gzip -9nc "$1" >"$tree$2"
  chmod 0644 "$tree$2"
}

put 0755 "$binary" /usr/bin/edgecam
put 0644 "$library" /usr/lib/edgecam/libonnxruntime.so.1
# /lib and not /usr/lib: Debian 11's deb-systemd-helper knows no other place, and
# it is the same one wherever /lib is a link.
sed 's|/usr/local/bin/edgecam|/usr/bin/edgecam|g' systemd/edgecam.service >"$work/unit"
put 0644 "$work/unit" /lib/systemd/system/edgecam.service
put 0644 systemd/edgecam.sysusers /usr/lib/sysusers.d/edgecam.conf
put 0644 systemd/edgecam.tmpfiles /usr/lib/tmpfiles.d/edgecam.conf
# Not for everybody's eyes from the moment on when it is unpacked; postinst lets
# the service read it.
put 0640 internal/config/edgecam.yaml /etc/edgecam/edgecam.yaml

# The program describes itself, one built for this machine without foreign
# libraries: the one in the package may be for another.
CGO_ENABLED=0 GOARCH= GOOS= go build -trimpath -buildvcs=false -ldflags "-X main.version=$version" -o "$work/self" ./cmd/edgecam
"$work/self" man >"$work/man"
packed "$work/man" /usr/share/man/man1/edgecam.1.gz
for shell in bash zsh fish; do
  "$work/self" completion $shell >"$work/$shell"
done
put 0644 "$work/bash" /usr/share/bash-completion/completions/edgecam
put 0644 "$work/zsh" /usr/share/zsh/vendor-completions/_edgecam
put 0644 "$work/fish" /usr/share/fish/vendor_completions.d/edgecam.fish

doc=/usr/share/doc/edgecam
version_of() { sed -n 's/^version=//p' "scripts/$1"; }
sed "s/@FFMPEG@/$(version_of build-ffmpeg.sh)/g; s/@ORT@/$(version_of fetch-onnxruntime.sh)/" packaging/copyright >"$work/copyright"
put 0644 "$work/copyright" $doc/copyright
put 0644 NOTICE $doc/NOTICE
packed THIRD_PARTY_NOTICES.md $doc/THIRD_PARTY_NOTICES.md.gz
packed /usr/share/common-licenses/LGPL-2.1 $doc/COPYING.LGPLv2.1.gz
put 0644 internal/config/edgecam.yaml $doc/examples/edgecam.yaml
cat >"$work/changelog" <<TEXT
edgecam ($version) stable; urgency=medium

  * Release $version.

 -- $(sed -n 's/^Maintainer: //p' packaging/control)  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
TEXT
packed "$work/changelog" $doc/changelog.gz
put 0644 packaging/lintian-overrides /usr/share/lintian/overrides/edgecam

# Every file counts in whole KiB, every directory as one: as dpkg-gencontrol does.
size=$(find "$tree" -printf '%y %s\n' | awk '{n += $1 == "f" ? int(($2 + 1023) / 1024) : 1} END {print n}')
mkdir -p "$tree/DEBIAN"
sed "s/@VERSION@/$version/; s/@ARCH@/$arch/; s/@SIZE@/$size/" packaging/control >"$tree/DEBIAN/control"
(cd "$tree" && find etc -type f -printf '/%p\n' | sort) >"$tree/DEBIAN/conffiles"
(cd "$tree" && find . -path ./DEBIAN -prune -o -path ./etc -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
for script in postinst prerm postrm; do
  install -m 0755 packaging/$script "$tree/DEBIAN/$script"
done
chmod 0644 "$tree"/DEBIAN/{control,conffiles,md5sums}

find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$tree" "$work/deb" >/dev/null
mv "$work/deb" "$out/edgecam_${version}_$arch.deb"
echo "build-deb: $out/edgecam_${version}_$arch.deb, $(($(stat -c %s "$out/edgecam_${version}_$arch.deb") / 1000)) kB"
