#!/usr/bin/env bash
# build-release.sh ARCH OUT
#
# Builds the self-contained program for ARCH (amd64 or arm64) into the file OUT:
# FFmpeg linked in, dashboard and models embedded, everything else opened at run
# time, able to start on glibc 2.31. The dashboard must be built (make does it).
# The same Go and C compilers give the same bytes in every directory.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."

[ $# = 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
arch=$1 out=$2
root=$(pwd -P)
version=$("$here/version.sh")
[ -f web/dist/index.html ] || { echo "build-release: the dashboard is not built; run make release" >&2; exit 1; }

ffmpeg=$root/.cache/ffmpeg-$arch sysroot=$root/.cache/sysroot-$arch
"$here/build-ffmpeg.sh" "$ffmpeg" "$arch"

# The go command looks at flags, and not into the compiler's root or FFmpeg's
# headers: a name made of what they were built from tells it when they changed.
inputs=$(cat "$ffmpeg/.built" "$sysroot/.built" | sha256sum | cut -c 1-16)
mkdir -p "$(dirname "$out")"
settings=(
  GOOS=linux "GOARCH=$arch" GOAMD64=v1 GOARM64=v8.0 GOFLAGS=-mod=readonly GOEXPERIMENT=
  CGO_ENABLED=1 "CC=$sysroot/bin/cc" "PKG_CONFIG_LIBDIR=$ffmpeg/lib/pkgconfig" PKG_CONFIG_PATH=
  CGO_CPPFLAGS= "CGO_CFLAGS=-O2 -g -fstack-protector-strong -D_FORTIFY_SOURCE=2 -DEC_INPUTS_$inputs"
  "CGO_LDFLAGS=-O2 -g"
)
"$here/step.sh" "build edgecam $version for $arch" env "${settings[@]}" \
  go build -trimpath -buildvcs=false -buildmode=pie -tags staticffmpeg \
  -ldflags "-s -w -buildid= -X main.version=$version -linkmode=external -extldflags '-Wl,-z,relro,-z,now,--build-id=none'" -o "$out" ./cmd/edgecam

"$here/check-symbols.sh" "$out"
for path in "$root/.cache" "$root/platform" "$root/cmd" "$(go env GOMODCACHE)" "$(go env GOROOT)/src" "$HOME/"; do
  ! grep -qaF "$path" "$out" || { echo "build-release: $out holds a path of this machine: $path" >&2; exit 1; }
done
