#!/usr/bin/env bash
# step.sh TITLE COMMAND [ARGUMENT…]
#
# Runs a long command quietly: one line says what is being done, a ticker says
# for how long, and the command's own output is shown only where it fails (or
# with VERBOSE=1). The exit status is the command's.
set -u
title=$1
shift
started=$SECONDS

if [ "${VERBOSE:-0}" = 1 ]; then
  printf '==> %s\n' "$title"
  "$@"
  status=$?
  printf '==> %s: %s after %d s\n' "$title" "$([ $status = 0 ] && echo done || echo "failed ($status)")" $((SECONDS - started))
  exit $status
fi

log=$(mktemp -t edgecam-step.XXXXXX) || exit 1
tty=0
[ -t 1 ] && tty=1

tick() {
  local n=0
  while sleep 1; do
    n=$((n + 1))
    if [ $tty = 1 ]; then
      printf '\r  … %s (%d s)\033[K' "$title" $n
    elif [ $((n % 15)) = 0 ]; then
      printf '  … still: %s (%d s)\n' "$title" $n
    fi
  done
}

[ $tty = 1 ] || printf '  … %s\n' "$title"
tick &
ticker=$!
cleanup() {
  kill "$ticker" 2>/dev/null
  wait "$ticker" 2>/dev/null
  rm -f "$log"
}
trap 'cleanup; exit 130' INT
trap 'cleanup; exit 143' TERM

"$@" >"$log" 2>&1 </dev/null
status=$?

kill "$ticker" 2>/dev/null
wait "$ticker" 2>/dev/null
[ $tty = 1 ] && printf '\r\033[K'
if [ $status = 0 ]; then
  printf '  ✓ %s (%d s)\n' "$title" $((SECONDS - started))
else
  printf '  ✗ %s: exit status %d after %d s; its last lines:\n' "$title" $status $((SECONDS - started))
  tail -n 60 "$log" | sed 's/^/    /'
fi
rm -f "$log"
exit $status
