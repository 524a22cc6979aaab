# Sourced: reads a Debian release other than the machine's own, with apt, in
# directories of its own, so that nothing of the machine's apt set-up changes.
#
#   DEBIAN_MIRROR  a mirror to ask, where the machine's own sources name none or
#                  do not have the release any more

: "${debian_etc:=/etc}" # a test has another one

# debian_uris prints the mirrors that the machine's own sources name for its own
# release: "main URI", and "security URI" where there is one.
debian_uris() {
  local own file
  if [ -n "${DEBIAN_MIRROR:-}" ]; then
    echo "main $DEBIAN_MIRROR"
    return
  fi
  own=$(. "$debian_etc/os-release" && [ "$ID" = debian ] && echo "${VERSION_CODENAME:-stable}") || true
  # One line of the old form becomes a stanza of the new one.
  for file in "$debian_etc"/apt/sources.list "$debian_etc"/apt/sources.list.d/*.list "$debian_etc"/apt/sources.list.d/*.sources; do
    if [ -f "$file" ]; then
      sed -E 's/^deb +(\[[^]]*\] +)?([^ ]+) +([^ ]+) .*/\nURIs: \2\nSuites: \3\n/' "$file"
      echo
    fi
  done |
    awk -v own="${own:-none}" '
      function done(  i) {
        for (i = 1; i <= n; i++) {
          if (suite[i] == own && !main++) print "main", uri
          if (suite[i] == own "-security" && !security++) print "security", uri
        }
        n = 0
      }
      /^URIs:/ { uri = $2 }
      /^Suites:/ { n = split($0, suite); }
      /^$/ { done() }
      END { done() }'
}

# debian_begin SUITE ARCH STATE makes the directory STATE and reads the lists of
# SUITE into it. Afterwards debian_apt asks them.
debian_begin() {
  local suite=$1 arch=$2 kind uri uris keys=/usr/share/keyrings/debian-archive-keyring.gpg
  debian_state=$3
  uris=$(debian_uris)
  if [ -z "$uris" ]; then
    echo "debian: no Debian mirror in this machine's apt sources; name one with DEBIAN_MIRROR=URI" >&2
    return 1
  fi
  [ -f "$keys" ] || { echo "debian: $keys is missing; install debian-archive-keyring" >&2; return 1; }
  mkdir -p "$debian_state/lists/partial" "$debian_state/cache/archives/partial"
  while read -r kind uri; do
    [ "$kind" = main ] || suite=$1-security
    printf 'deb [signed-by=%s] %s %s main\ndeb-src [signed-by=%s] %s %s main\n' "$keys" "$uri" "$suite" "$keys" "$uri" "$suite"
  done <<<"$uris" >"$debian_state/sources.list"
  cat >"$debian_state/apt.conf" <<CONF
Dir::Etc::sourcelist "$debian_state/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$debian_state/lists";
Dir::State::status "/dev/null";
Dir::Cache "$debian_state/cache";
APT::Architecture "$arch";
#clear APT::Architectures;
APT::Architectures { "$arch"; };
APT::Sandbox::User "root";
APT::Get::List-Cleanup "false";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
CONF
  if ! debian_apt update -qq -o APT::Update::Error-Mode=any 2>"$debian_state/errors"; then
    sed 's/^/  apt: /' "$debian_state/errors" >&2
    cat >&2 <<TEXT
debian: cannot read $1 from $(sed 's/^[a-z]* //' <<<"$uris" | paste -sd ' ').
Is the network up? A release that Debian has retired leaves the mirrors for
Debian's archive, which has it for good: give that archive's address, as the page
debian.org/distrib/archive names it, and run again with  DEBIAN_MIRROR=URI
TEXT
    return 1
  fi
}

debian_apt() { apt-get -c "$debian_state/apt.conf" "$@"; }

# sum_is FILE SHA256
sum_is() { [ "$(sha256sum "$1" | cut -d ' ' -f 1)" = "$2" ]; }
