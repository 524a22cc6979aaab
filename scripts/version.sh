#!/usr/bin/env bash
# version.sh [--epoch]
#
# Prints the version of this tree, in a form that is right for a Debian package
# too and sorts after every older one: 1.2.3 at the tag v1.2.3, 1.2.3+git.5.HASH
# five commits later, 0.1.0~gitDATE.TIME.HASH before the first tag, 0.1.0~dev
# without git; "+dirty" where files were changed. With --epoch it prints the
# time of the commit instead, for SOURCE_DATE_EPOCH.
#
# VERSION and SOURCE_DATE_EPOCH of the environment come first.
set -euo pipefail
first=0.1.0 # before any tag
epoch=1767225600 # 2026-01-01, without git
cd "$(dirname "$0")/.."

# git refuses a checkout of another user unless told; whoever builds a tree runs
# its scripts, so nothing is lost. An archive may lie inside another repository.
ask() { git -c safe.directory='*' "$@" 2>/dev/null; }
ours() { [ "$(ask rev-parse --show-toplevel)" = "$(pwd -P)" ] && ask rev-parse -q --verify HEAD >/dev/null; }

if [ "${1:-}" = --epoch ]; then
  if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then echo "$SOURCE_DATE_EPOCH"
  elif ours; then ask log -1 --format=%ct
  else echo $epoch
  fi
  exit
fi

[ -z "${VERSION:-}" ] || { echo "$VERSION"; exit; }
ours || { echo "$first~dev"; exit; }
# A hyphen would begin Debian's own revision, and a hash as short as git likes
# depends on what else a clone holds.
if tag=$(ask describe --tags --match 'v[0-9]*' --long --abbrev=10 HEAD); then
  hash=${tag##*-g} tag=${tag%-g*}
  commits=${tag##*-} tag=${tag%-*}
  version=$(sed 's/^v//; s/-/~/; s/-/./g' <<<"$tag")
  [ "$commits" = 0 ] || version="$version+git.$commits.$hash"
else
  version=$first~git$(TZ=UTC ask log -1 --date=format-local:%Y%m%d.%H%M%S --format=%cd).$(ask rev-parse HEAD | cut -c 1-10)
fi
GIT_OPTIONAL_LOCKS=0 ask diff --quiet HEAD -- || version=$version+dirty
echo "$version"
