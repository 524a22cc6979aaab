#!/usr/bin/env bash
# check-symbols.sh [--c++] FILE…
#
# Fails, and names what is wrong, where a program or library would not start on
# Debian 11, Ubuntu 20.04 or JetPack 5: it may need symbols of glibc up to 2.31,
# and no library outside of it. With --c++ it may need the C++ run time of those
# systems too, which ONNX Runtime does. No FFmpeg may be seen from outside: that
# of the system, opened beside ours, would call into it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/apt.sh"
command -v readelf >/dev/null || need_packages check-symbols binutils

libraries='lib(c|m|pthread|dl|rt|resolv)\.so\.[0-9]+|ld-linux(-x86-64|-aarch64)\.so\.[0-9]+'
newest='GLIBC_2.31'
if [ "${1:-}" = --c++ ]; then
  shift
  libraries="$libraries|libstdc\+\+\.so\.6|libgcc_s\.so\.1"
  newest="$newest GLIBCXX_3.4.28 CXXABI_1.3.12 GCC_10.0.0"
fi
[ $# -gt 0 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }

# too_new prints the symbols of a listing that are newer than newest says.
too_new() {
  awk -v newest="$newest" '
    function newer(a, b,  x, y, n, i) {
      n = split(a, x, "."); split(b, y, ".")
      for (i = 1; i <= n; i++) if (x[i] + 0 != y[i] + 0) return x[i] + 0 > y[i] + 0
      return 0
    }
    BEGIN { n = split(newest, w, " "); for (i = 1; i <= n; i++) { split(w[i], p, "_"); limit[p[1]] = p[2] } }
    $7 == "UND" && split($8, s, /@+/) == 2 {
      cut = match(s[2], /_[0-9]/); family = cut ? substr(s[2], 1, cut - 1) : s[2]
      if (!(family in limit) || newer(substr(s[2], cut + 1), limit[family])) print s[1] " of " s[2]
    }'
}

bad=0
complain() { echo "check-symbols: $1" >&2; bad=1; }
for file in "$@"; do
  dynamic=$(readelf -dW "$file") && symbols=$(readelf --dyn-syms -W "$file") || { complain "$file cannot be read"; continue; }
  [ -n "$symbols" ] || { complain "$file is no dynamic program or library"; continue; }
  for library in $(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic"); do
    [[ $library =~ ^($libraries)$ ]] || complain "$file needs the library $library"
  done
  new=$(too_new <<<"$symbols")
  [ -z "$new" ] || complain "$file needs more than ${newest// /, }: $(head -n 5 <<<"$new" | paste -sd , | sed 's/,/, /g') ($(wc -l <<<"$new") in all)"
  exported=$(awk '$7 != "UND" && $5 == "GLOBAL" && $8 ~ /^(av|avcodec|ff)_/ { print $8 }' <<<"$symbols" | head -n 3 | paste -sd ' ')
  [ -z "$exported" ] || complain "$file shows FFmpeg's symbols to other libraries: $exported …"
  case $dynamic in *TEXTREL*) complain "$file writes into its code while it starts (TEXTREL)" ;; esac
done
exit $bad
