#!/usr/bin/env bash
# Builds the tests and runs them; the last line reads "N passed, N failed[, N skipped]".
#   tests/run.sh          the library's, with the kernels for the kind of device that this machine has
#   tests/run.sh --all    every test: kernels for both kinds of devices, the command, examples, ranks, long trainings
#   tests/run.sh -R nn    of every test those that ctest selects by these arguments
# Real data is looked for in $SAMEBYTES_DATA, else in data/ of the checkout; without it those tests skip and say so.
# SAMEBYTES_CMAKE_OPTIONS adds options to the build, SAMEBYTES_KERNEL_CACHE moves the folder of compiled kernels.
set -euo pipefail
# shellcheck source=cmake/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

selection=("$@")
target=all
case ${1:-} in
  '') selection=(-L library) target=library_tests; export SAMEBYTES_TEST_PERSONALITIES=own ;;
  --all) selection=("${@:2}") ;;
  -h | --help) sed -n '2,7s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
esac

samebytes_packages run test
read -ra options <<<"${SAMEBYTES_CMAKE_OPTIONS:-}"
samebytes_build -DSAMEBYTES_TESTS=ON -DSAMEBYTES_BENCHMARKS=ON -DSAMEBYTES_EXAMPLES=ON "${options[@]}" -- "$target"

reports=$SAMEBYTES_BUILD/test-reports
rm -rf "$reports"
mkdir -p "$reports"
status=0
ctest --test-dir "$SAMEBYTES_BUILD" -j "$(nproc)" --output-on-failure --no-tests=error \
  --output-junit "$reports/ctest.xml.all" "${selection[@]}" || status=$?

# Counts the GoogleTest cases in the reports, and as one each the CTest entries that wrote none.
awk -v reports="$reports" '
  function attribute(name) { return match($0, " " name "=\"[^\"]*\"") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4) : "" }
  function count(file,    cases, bad) {
    cases = 0; bad = 0
    while ((getline < file) > 0) {
      if ($0 ~ /<testcase /) {
        ++cases; suite = attribute("classname"); name = attribute("name"); failed_now = 0
        if (attribute("status") == "notrun") --cases
      }
      if ($0 ~ /<skipped/) {
        ++skipped; reason = attribute("message"); sub(/^.*&#x0A;/, "", reason); gsub(/&quot;/, "\"", reason)
        why[reason] = why[reason] == "" ? suite "." name : why[reason] ", " suite "." name
        --cases
      }
      if ($0 ~ /<failure/ && !failed_now) { failed_now = 1; ++bad; print "failed: " suite "." name }
    }
    close(file)
    passed += cases - bad; failed += bad
    return cases < 0 || bad > 0 ? bad : (cases > 0 ? 0 : -1)
  }
  /<testcase / {
    entry = attribute("name"); ran = attribute("status")
    file = reports "/" entry ".xml"
    known = (getline line < file) > 0
    close(file)
    if (known) {
      bad = count(file)
      if (ran == "fail" && bad <= 0) { ++failed; print "failed: " entry " (all its cases passed, the program did not)" }
    } else if (ran == "run") ++passed
    else if (ran == "fail") { ++failed; print "failed: " entry " (it ended without a report)" }
  }
  END {
    for (reason in why) print "skipped: " why[reason] ": " (reason == "" ? "no reason given" : reason)
    line = passed + 0 " passed, " failed + 0 " failed"
    print skipped ? line ", " skipped " skipped" : line
    exit failed > 0
  }' "$reports/ctest.xml.all" || status=1
exit "$status"
