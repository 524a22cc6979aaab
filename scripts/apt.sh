# Sourced by the setup scripts: need_packages WHAT PACKAGE… installs Debian
# packages that are missing, or says exactly which command would.

# missing_packages prints those of its arguments that dpkg does not have.
missing_packages() {
  local p
  for p in "$@"; do
    dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q '^install ok installed$' || printf '%s ' "$p"
  done
}

# need_packages WHAT PACKAGE… installs as root; anybody else gets the command
# to run and exit status 1. It touches neither apt nor the network when nothing
# is missing.
need_packages() {
  local what=$1 missing
  shift
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "$what: this machine has no apt-get; install the equivalents of: $*" >&2
    return 1
  fi
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    echo "$what: packages are missing. Run as root, then try again:" >&2
    echo "    apt-get update && apt-get install -y --no-install-recommends $missing" >&2
    return 1
  fi
  echo "  $what: installing $missing"
  export DEBIAN_FRONTEND=noninteractive
  "$here/step.sh" "read the package lists" apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 update || return 1
  # shellcheck disable=SC2086 # one word per package is wanted
  "$here/step.sh" "install packages for $what" \
    apt-get -qq -y -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 --no-install-recommends install $missing
}
