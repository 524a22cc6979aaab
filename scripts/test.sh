#!/usr/bin/env bash
# Runs every check, goes on after a failure, and ends with one line that tells
# how it went. `make test` calls it once everything is set up and built.
set -u -o pipefail
cd "$(dirname "$0")/.."
started=$SECONDS
passed=0
failed=()

check() { # TITLE COMMAND…: output as it comes
  local title=$1 at=$SECONDS
  shift
  printf '==> %s\n' "$title"
  if "$@"; then
    passed=$((passed + 1))
    printf '    ok (%d s)\n' $((SECONDS - at))
  else
    failed+=("$title")
    printf '    FAILED: %s (%d s)\n' "$title" $((SECONDS - at))
  fi
}

# No check asks git: it refuses a checkout of another user, and an archive has none.
formatted() {
  local bad
  bad=$(find . \( -name '.?*' -o -name node_modules \) -prune -o -name '*.go' -exec gofmt -l {} +) || return 1
  [ -z "$bad" ] || { echo "    gofmt would change: $bad"; return 1; }
}

# Packages that hold tests which the race detector would falsify (allocation
# and speed ceilings are tagged !race) run a second time without it: whole, as
# frames lie in mapped memory only there.
unraced_packages() {
  grep -rlE --include='*_test.go' --exclude-dir='.?*' --exclude-dir=node_modules '^//go:build .*!race' . | xargs -r -n 1 dirname | sort -u
}
unraced() {
  local packages
  packages=$(unraced_packages)
  [ -n "$packages" ] || { echo "    found none of them"; return 1; }
  # shellcheck disable=SC2086 # one word per package is wanted
  go test -timeout 10m $packages
}

# raced PACKAGE…: with the race detector. Go's detector may end a test program
# that uses testing/synctest, by a check or a fault of its own (on goroutine 0, which
# runs no code of ours), and with no test at fault
# (golang.org/issue/78156): such a package is run again, any other failure stands.
raced() {
  local report attempt again
  report=$(mktemp)
  for attempt in 1 2 3; do
    if go test -race -tags framedebug -timeout 14m "$@" 2>&1 | tee "$report"; then
      rm -f "$report"
      return 0
    fi
    again=$(crashed "$report") || break
    echo "    the race detector itself ended, attempt $attempt: $again"
    # shellcheck disable=SC2086 # one word per package is wanted
    set -- $again
  done
  rm -f "$report"
  return 1
}
# crashed REPORT names the packages that failed by the detector alone; it fails
# where another did.
crashed() {
  awk '
    /^ThreadSanitizer: CHECK failed|^goroutine 0 .*synctest bubble/ { detector = 1; next }
    /--- FAIL|^panic:|DATA RACE|^fatal error:/ { test = 1 }
    /^FAIL\t/ { if (detector && !test) again = again " " $2; else real = 1 }
    /^(FAIL|ok  |\?   )\t/ { detector = test = 0 }
    END { if (real || again == "") exit 1; print substr(again, 2) }
  ' "$1"
}

trap 'echo "test: interrupted"; exit 130' INT TERM

check "gofmt" formatted
check "go vet" go vet ./...
check "go vet without cgo" env CGO_ENABLED=0 go vet ./...
check "go build for arm64 (Jetson) without cgo" env GOARCH=arm64 CGO_ENABLED=0 go build -buildvcs=false ./...
check "go vet of assembly for arm64" env GOARCH=arm64 CGO_ENABLED=0 go vet ./preprocess ./infer
check "go test of the twins of assembly" go test -tags noasm -timeout 5m ./preprocess ./infer
check "go test with the race detector" raced ./...
check "go test of allocation and speed ceilings" unraced
check "dashboard: unit tests" npm --prefix web/ui --silent test
check "dashboard in Chromium: every state" npm --prefix web/ui --silent run e2e:states
check "dashboard in Chromium: the real program" scripts/e2e.sh

total=$((passed + ${#failed[@]}))
if [ ${#failed[@]} = 0 ]; then
  printf 'test: all %d checks passed in %d s\n' $total $((SECONDS - started))
else
  printf 'test: %d of %d checks FAILED in %d s:' ${#failed[@]} $total $((SECONDS - started))
  printf ' [%s]' "${failed[@]}"
  echo
  exit 1
fi
