#!/usr/bin/env bash
# Samebytes in fresh roots of other distributions, as a newcomer meets it there: examples/quickstart.sh installs what is
# missing, builds the command and trains; then some of the tests are built and run. One table row each:
#   tests/distributions.sh [--page docs/devices.md]             all of them
#   tests/distributions.sh [--page docs/devices.md] NAME...     some of debian12 debian13 sid ubuntu22.04 ubuntu24.04 ubuntu26.04
# As root. About 15 minutes each on two cores. The sources are those of the checkout, uncommitted ones too. --page writes
# the rows between the page's markers; those of names that were not run stay.
# SAMEBYTES_ROOTS=FOLDER keeps roots and logs (build/roots); what a root has built is not built again.
# SAMEBYTES_DISTRIBUTION_TESTS="core plan" names the programs (default: core runtime graph plan).
set -euo pipefail
# shellcheck source=cmake/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"
# shellcheck source=tests/support/roots.sh
source "$SAMEBYTES_TOP/tests/support/roots.sh"
work=${SAMEBYTES_ROOTS:-$SAMEBYTES_BUILD/roots}
read -ra programs <<<"${SAMEBYTES_DISTRIBUTION_TESTS:-core runtime graph plan}"
mkdir -p "$work"
status=0
page=
if [ "${1:-}" = --page ]; then
  page=${2:?--page needs a file}
  shift 2
fi

suite_of() { # suite_of NAME: "suite, as the table calls it"
  case $1 in
    debian12) echo "bookworm Debian 12" ;;
    debian13) echo "trixie Debian 13" ;;
    sid) echo "sid Debian sid" ;;
    ubuntu22.04) echo "jammy Ubuntu 22.04" ;;
    ubuntu24.04) echo "noble Ubuntu 24.04" ;;
    ubuntu26.04) echo "resolute Ubuntu 26.04" ;;
    *) echo "distributions.sh: no distribution '$1'" >&2; return 2 ;;
  esac
}

# row NAME SUITE TITLE: a line "NAME | TITLE | tools | driver | accuracy | tests" in rows/NAME
row() {
  local name=$1 suite=$2 title=$3 root=$work/$2 log=$work/$1.log started=$SECONDS tools built=no trained= tests=
  if ! root_of "$suite" "$work"; then
    echo "$name: not run, no root of $suite could be made (see $root.log)"
    status=1
    return
  fi
  sources_into "$root"
  echo "$name: installs, builds and trains"
  if in_root "$root" bash -c 'cd /samebytes && examples/quickstart.sh --json' >"$log" 2>&1; then
    built="yes, $((SECONDS - started)) s"
    trained=$(grep -oE '"test_accuracy": *[0-9.]+' "$log" | tail -n 1 | awk -F': *' '{ printf "%.1f %%", $2 <= 1 ? $2 * 100 : $2 }')
  else
    tail -n 20 "$log"
    status=1
  fi
  tools=$(in_root "$root" bash -c 'printf "%s, CMake %s, PoCL %s" "$(c++ --version | sed -n "1s/ (.*) / /p" | sed "s/^c++/GCC/; s/^g++/GCC/")" \
    "$(cmake --version | sed -n "1s/.* //p")" "$(dpkg-query -W -f "\${Version}" pocl-opencl-icd | sed "s/-.*//")"' 2>/dev/null || true)
  if [ "$built" != no ]; then
    echo "$name: ${programs[*]} of the tests"
    # shellcheck disable=SC2016  # expanded inside
    if in_root "$root" bash -c 'cd /samebytes && source cmake/setup.sh && samebytes_packages test &&
        samebytes_build -DSAMEBYTES_TESTS=ON -DSAMEBYTES_EXAMPLES=OFF -DSAMEBYTES_BENCHMARKS=OFF -- "${@/#/test_}"' _ \
        "${programs[@]}" >>"$log" 2>&1; then
      # shellcheck disable=SC2016
      in_root "$root" bash -c 'cd /samebytes && for program in "$@"; do
          SAMEBYTES_TEST_PERSONALITIES=own timeout 1800 "build/test_$program"; echo "=== end of test_$program $?"
        done' _ "${programs[@]}" >"$work/$name.tests" 2>&1
      report "$name" "$work/$name.tests" | tee "$work/$name.report" || status=1
      tests=$(sed -n "s/^$name: //p" "$work/$name.report")
    else
      tail -n 20 "$log"
      tests="not built"
      status=1
    fi
  fi
  mkdir -p "$work/rows"
  echo "| $title | $tools | $built | $trained | $tests |" | tee "$work/rows/$name"
}

everything=(debian12 debian13 sid ubuntu22.04 ubuntu24.04 ubuntu26.04)
names=("$@")
[ "$#" -gt 0 ] || names=("${everything[@]}")
for name in "${names[@]}"; do
  described=$(suite_of "$name") || exit 2
  row "$name" "${described%% *}" "${described#* }"
done

if [ -n "$page" ]; then
  table=$work/table
  {
    echo "| distribution | tools and driver | quickstart | digits, test accuracy | ${programs[*]} |"
    echo "|---|---|---|---:|---|"
    for name in "${everything[@]}"; do
      title=$(suite_of "$name" | cut -d ' ' -f 2-)
      if [ -e "$work/rows/$name" ]; then cat "$work/rows/$name"; else grep -F "| $title |" "$page" || true; fi
    done
  } >"$table"
  awk -v table="$table" '
    /^<!-- distributions -->$/ { print; print ""; while ((getline line < table) > 0) print line; print ""; inside = 1; next }
    /^<!-- end of distributions -->$/ { inside = 0 }
    !inside' "$page" >"$page.new" && mv "$page.new" "$page"
fi
exit "$status"
