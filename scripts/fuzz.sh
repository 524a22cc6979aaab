#!/usr/bin/env bash
# Runs the fuzz targets of the repository one after the other, each for a time.
# What is found is a failure, and a new file under that package's testdata/fuzz.
# Usage: scripts/fuzz.sh DURATION [PATTERN]   e.g. 10m, and capture/rtsp or FuzzFramer
set -u
cd "$(dirname "$0")/.." || exit 1
duration=${1:?"usage: scripts/fuzz.sh DURATION [PATTERN]"}
pattern=${2:-}
failed=()
count=0

# "PACKAGE TARGET" a line
targets() {
  grep -rnoE --include='*_test.go' --exclude-dir='.?*' --exclude-dir=node_modules '^func Fuzz[A-Za-z0-9_]*\(f \*testing\.F\)' . |
    sed -E 's|^(.*)/[^/]*_test\.go:[0-9]+:func (Fuzz[A-Za-z0-9_]*).*|\1 \2|' | sort
}

trap 'echo "fuzz: interrupted"; exit 130' INT TERM
while read -r package target; do
  [[ "$package $target" == *"$pattern"* ]] || continue
  count=$((count + 1))
  printf '==> %s %s, %s\n' "$package" "$target" "$duration"
  if ! go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" "$package" </dev/null; then
    failed+=("$package $target")
  fi
done < <(targets)

if [ $count = 0 ]; then
  echo "fuzz: no target fits '$pattern'"
  exit 1
fi
if [ ${#failed[@]} != 0 ]; then
  printf 'fuzz: %d of %d targets found something:' ${#failed[@]} $count
  printf ' [%s]' "${failed[@]}"
  echo
  exit 1
fi
printf 'fuzz: nothing found by %d targets, %s each\n' $count "$duration"
