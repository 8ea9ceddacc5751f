# Shared by tests/drivers.sh and tests/distributions.sh: roots of other distributions, and counts of GoogleTest's lines.
# Source cmake/setup.sh before. Making a root and working in one needs root's rights.
# shellcheck shell=bash

# root_of SUITE FOLDER: a root in FOLDER/SUITE with apt, from the archive of Debian or Ubuntu that has the suite; with
# SAMEBYTES_ARCHITECTURES=amd64,arm64 it takes packages of both. Snapshots of mirrors may be older than their dates allow.
root_of() {
  local suite=$1 root=$2/$1 sources=()
  [ -e "$root/samebytes-root" ] && return
  samebytes_packages deb || return 1
  rm -rf "$root"
  mkdir -p "$2"
  case $suite in
    jammy | noble | resolute)
      # Debian 12 has no package of Ubuntu's keys; where they are installed, packages are checked by them.
      local mirror=${SAMEBYTES_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu} how="[trusted=yes]" keys=/usr/share/keyrings
      [ ! -e "$keys/ubuntu-archive-keyring.gpg" ] || how="[signed-by=$keys/ubuntu-archive-keyring.gpg]"
      sources=("deb $how $mirror $suite main universe" "deb $how $mirror $suite-updates main universe") ;;
    *) sources=("deb ${SAMEBYTES_MIRROR:-http://deb.debian.org/debian} $suite main") ;;
  esac
  mmdebstrap --quiet --variant=apt ${SAMEBYTES_ARCHITECTURES:+--architectures="$SAMEBYTES_ARCHITECTURES"} --aptopt='Acquire::Check-Valid-Until "false"' "$suite" "$root" "${sources[@]}" \
    >"$root.log" 2>&1 && in_root "$root" apt-get -qq update >>"$root.log" 2>&1 && touch "$root/samebytes-root"
}

# sources_into ROOT: the checkout's files, uncommitted ones too, in ROOT/samebytes.
sources_into() {
  mkdir -p "$1/samebytes"
  git -C "$SAMEBYTES_TOP" ls-files -z --cached --others --exclude-standard --deduplicate |
    tar -C "$SAMEBYTES_TOP" --null -T - --ignore-failed-read -c 2>/dev/null | tar -x -C "$1/samebytes"
}

# in_root ROOT COMMAND...: with the little of a machine that compilers and PoCL need; SAMEBYTES_BOUND=FOLDER lies there too.
in_root() {
  # shellcheck disable=SC2016  # expanded by the inner shell
  unshare -m --propagation private bash -c 'root=$1; bound=$2; shift 2
    mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" && mount --rbind /dev "$root/dev" || exit 1
    if [ -n "$bound" ]; then mkdir -p "$root$bound" && mount --bind "$bound" "$root$bound" || exit 1; fi
    cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null
    exec chroot "$root" env HOME=/root LC_ALL=C.UTF-8 "$@"' _ "$1" "${SAMEBYTES_BOUND:-}" "${@:2}"
}

# report NAME LOG: what failed, what was skipped and why, and "NAME: N passed, N failed, N skipped" of GoogleTest's lines
# and of lines "=== end of PROGRAM STATUS" behind each program's. Fails where a test did.
report() {
  awk -v name="$1" '
    /^\[ RUN      \]/ { running = $4; why = "" }
    /: Skipped$/ { getline why }
    /^\[       OK \]/ { ++passed; running = "" }
    /^\[  SKIPPED \] .* \([0-9]+ ms\)$/ { ++skipped; sub(/: .*/, "", why); ++reasons[why]; running = "" }
    /^\[  FAILED  \] .* \([0-9]+ ms\)$/ { ++failed; names[failed] = $4; running = "" }
    /^=== end of / {
      if (running != "") { ++failed; names[failed] = running " (the program ended in it: " $5 ")" }
      else if ($5 > 1) { ++failed; names[failed] = $4 " (the program ended with status " $5 ")" }
      running = ""
    }
    END {
      for (i = 1; i <= failed; ++i) print "  failed: " names[i]
      for (why in reasons) print "  skipped: " reasons[why] " (" why ")"
      printf "%s: %d passed, %d failed, %d skipped\n", name, passed, failed, skipped
      exit failed > 0
    }' "$2"
}
