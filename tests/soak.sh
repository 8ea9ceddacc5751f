#!/usr/bin/env bash
# Mixed work for HOURS: tests/soak.sh HOURS (a fraction is fine). build/soak trains, evaluates, changes shapes, saves and
# loads, makes errors and opens engines in one process, whose memory, files and threads must stay; beside it the command
# trains, is interrupted, goes on, and tests. The last line says what was done; the status is 0 if nothing grew or broke.
set -uo pipefail
hours=${1:?usage: tests/soak.sh HOURS}
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${SAMEBYTES_BUILD:-$top/build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seconds=$(awk -v h="$hours" 'BEGIN { printf "%d", h * 3600 }')
"$build/soak" "$seconds" "$work" >"$work/soak.log" 2>&1 &
soak=$!
rounds=0
bad=0
complain() {
  echo "soak: $1"
  tail -n 3 "$work/command.log"
  bad=$((bad + 1))
}
run() { # run STATUS WORD...
  local expected=$1 status
  shift
  "$build/samebytes" "$@" >"$work/command.log" 2>&1
  status=$?
  [ "$status" -eq "$expected" ] || complain "samebytes $1 ended with $status, expected $expected"
}
while kill -0 "$soak" 2>/dev/null; do
  rm -rf "$work/state"
  timeout --preserve-status -s INT 2 "$build/samebytes" train digits --epochs 100000 --quiet --checkpoint "$work/state" \
    --checkpoint-every 20 >"$work/command.log" 2>&1
  status=$?
  [ "$status" -eq 130 ] || complain "an interrupted run ended with $status, expected 130"
  run 0 train digits --epochs 1 --quiet --save "$work/net.safetensors"
  run 0 eval digits --load "$work/net.safetensors"
  run 1 eval digits --load "$work/missing"
  run 2 train digits --batch 0
  rounds=$((rounds + 1))
done
wait "$soak"
[ $? -eq 0 ] || bad=$((bad + 1))
tail -n 2 "$work/soak.log"
cycles=$(grep -c ' cycle ' "$work/soak.log")
echo "soak: $hours h, $cycles cycles in one process and $rounds rounds of the command, $bad bad"
[ "$bad" -eq 0 ]
