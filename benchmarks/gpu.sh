#!/usr/bin/env bash
# One visit of at most ten minutes to a bare machine with a GPU and no network, which has PyTorch (a python3 with torch
# and CUDA), 16 cores and glibc 2.36 or newer, but none of our libraries:
#   benchmarks/gpu.sh pack FOLDER          here: the programs of build/, the libraries and the Python files that they
#                                          need into FOLDER/bundle.tar.xz, and a copy of this script
#   FOLDER/gpu.sh run OUT [PART...]        there: the parts, all of them by default, in this order
#     devices   the devices that are found
#     rates     operations of measure_gpu_rates: OUT/rates.jsonl
#     torch     the same in PyTorch: OUT/rates_torch.jsonl, and both side by side: OUT/rates.md
#     bench     training of the workloads beside PyTorch (gpu_bench.py): OUT/bench.jsonl, OUT/bench.md
#     suite     the test programs in 14 processes at once: OUT/suite.txt, OUT/suite.log.xz
#     tune      a short search for tiles: OUT/tune.txt
# OUT/log.txt has what was printed, OUT/all.tar.xz everything; it is made anew after each part. A part that fails or
# takes too long ends no other one. SAMEBYTES_GPU_SUITE_SECONDS and so on are other limits of time, SAMEBYTES_GPU_BENCH,
# _RATES, _TORCH and _TUNE other options of these programs; SAMEBYTES_GPU_PYTHON is the Python that has PyTorch,
# OCL_ICD_VENDORS a folder of drivers instead of the GPU vendor's.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
suite=(runtime:1 graph:2 plan:2 nn:2 optim:1 train:2 ops:4) # test programs and in how many processes each
python=${SAMEBYTES_GPU_PYTHON:-python3}
most_bytes=45000000

# ---- here

pack() { # pack FOLDER
  local folder=$1 build=${SAMEBYTES_BUILD:-$here/../build} work program programs size
  work=$(mktemp -d)
  # shellcheck disable=SC2064  # the folder of now
  trap "rm -rf '$work'" EXIT
  mkdir -p "$folder" "$work/build" "$work/libraries" "$work/benchmarks/peers"
  programs=(samebytes measure_gpu_rates)
  for program in "${suite[@]}"; do programs+=("test_${program%:*}"); done
  for program in "${programs[@]}"; do strip -o "$work/build/$program" "$build/$program"; done
  for program in "${programs[@]}"; do ldd "$build/$program"; done | awk '$3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so' | xargs cp -L -t "$work/libraries"
  cp "$here"/{gpu_bench,gpu_rates,compare_report,compare_trials,compare_worker}.py "$work/benchmarks"
  cp "$here"/peers/{worker,workloads,networks,torch_models,torch_peer}.py "$work/benchmarks/peers"
  # One dictionary over all of it: the library is in every program, and is kept once.
  tar -c -C "$work" . | xz --lzma2=preset=1,dict=192MiB >"$folder/bundle.tar.xz"
  cp "${BASH_SOURCE[0]}" "$folder/gpu.sh"
  size=$(stat -c %s "$folder/bundle.tar.xz")
  echo "$folder/bundle.tar.xz: $size bytes, of $(du -sb "$work" | cut -f 1)"
  [ "$size" -lt "$most_bytes" ] || { echo "gpu.sh: more than $most_bytes bytes" >&2; return 1; }
}

# ---- there

say() { echo "[$SECONDS s] $*"; }

limit() { # limit PART DEFAULT: seconds
  local name="SAMEBYTES_GPU_${1^^}_SECONDS"
  echo "${!name:-$2}"
}

words() { # words PART DEFAULT...: the options of a part, into the array `options`
  local name="SAMEBYTES_GPU_${1^^}"
  if [ -n "${!name+set}" ]; then read -ra options <<<"${!name}"; else options=("${@:2}"); fi
}

# Our libraries are for our programs alone: a compiler that PyTorch starts has its own. A script, since gpu_bench.py
# starts it, too.
with_libraries() { # with_libraries PROGRAM: a script that runs it
  local script=$work/$1
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$libraries" "$work/build/$1" >"$script"
  chmod +x "$script"
}

# The driver of the GPU's vendor, where it is found, else those of the system.
find_driver() {
  local driver
  [ -z "${OCL_ICD_VENDORS:-}" ] || return 0
  driver=$({ ldconfig -p 2>/dev/null || true; } | awk '$1 == "libnvidia-opencl.so.1" { print $NF; exit }')
  [ -n "$driver" ] || driver=$(find /usr/local/nvidia -name libnvidia-opencl.so.1 -print -quit 2>/dev/null || true)
  export OCL_ICD_VENDORS=/etc/OpenCL/vendors
  [ -n "$driver" ] || return 0
  OCL_ICD_VENDORS=$work/vendors
  mkdir -p "$OCL_ICD_VENDORS"
  echo "$driver" >"$OCL_ICD_VENDORS/nvidia.icd"
}

guarded() { # guarded SECONDS COMMAND...: its errors go to $errors and errors.txt; where it fails, the last are printed
  local code=0 seconds=$1
  shift
  errors=$(mktemp -p "$work")
  timeout -k 5 "$seconds" "$@" 2>"$errors" || code=$?
  { echo "=== $*: $code"; tail -c 100000 "$errors"; } >>"$work/errors.txt"
  [ "$code" -ne 124 ] || echo "  stopped after $seconds s: ${1##*/}"
  [ "$code" -eq 0 ] || tail -n 5 "$errors" | cut -c 1-300 | sed 's/^/  /'
  return "$code"
}

devices() {
  guarded "$(limit devices 30)" "$work/samebytes" devices
}

rates() {
  words rates
  guarded "$(limit rates 90)" "$work/measure_gpu_rates" "${options[@]}" >"$out/rates.jsonl"
}

torch() {
  local script=$work/benchmarks/gpu_rates.py
  words torch
  guarded "$(limit torch 60)" "$python" -B "$script" "${options[@]}" >"$out/rates_torch.jsonl" || true
  touch "$out/rates.jsonl"
  "$python" -B "$script" --compare "$out/rates.jsonl" "$out/rates_torch.jsonl" >"$out/rates.md"
}

bench() {
  local script=$work/benchmarks/gpu_bench.py seconds
  seconds=$(limit bench 200)
  words bench
  guarded "$seconds" "$python" -B "$script" --samebytes "$work/samebytes" --budget $((seconds - 8)) "${options[@]}" \
    >"$out/bench.jsonl" || true
  sed 's/^/  /' "$errors" # its progress
  "$python" -B "$script" --table "$out/bench.jsonl" >"$out/bench.md"
  cat "$out/bench.md"
}

# Counts of GoogleTest's lines of all logs one after the other, what failed, was skipped and why, and where it ended.
report() {
  awk '
    /^\[==========\] Running / { wanted += $3 }
    /^\[ RUN      \]/ { running = $4; why = "" }
    /: Skipped$/ { getline why }
    /^\[       OK \]/ { ++passed; running = "" }
    /^\[  SKIPPED \] .* \([0-9]+ ms\)$/ { ++skipped; sub(/: .*/, "", why); ++reasons[why]; running = "" }
    /^\[  FAILED  \] .* \([0-9]+ ms\)$/ { ++failed; names[failed] = $4; running = "" }
    /^=== end of / {
      if (running != "" && ($5 == 124 || $5 == 137)) stopped[++stops] = $4 " after " $6 " s in " running
      else if (running != "") { ++failed; names[failed] = running " (the program ended in it: " $5 ")" }
      else if ($5 > 1) stopped[++stops] = $4 " with status " $5 " and no test running"
      running = ""
    }
    END {
      left = wanted - passed - failed - skipped
      printf "%d passed, %d failed, %d skipped, %d not run\n", passed, failed, skipped, left
      for (i = 1; i <= stops; ++i) print "  ended early: " stopped[i]
      for (i = 1; i <= failed; ++i) print "  failed: " names[i]
      for (why in reasons) print "  skipped: " reasons[why] " (" why ")"
    }' "$@"
}

shard() { # shard PROGRAM INDEX COUNT SECONDS
  local log=$work/logs/$1.$2.log code=0
  SAMEBYTES_TEST_PERSONALITIES=own SAMEBYTES_TUNING=off GTEST_TOTAL_SHARDS=$3 GTEST_SHARD_INDEX=$2 \
    timeout -k 5 "$4" "$work/test_$1" >"$log" 2>&1 || code=$?
  printf '\n=== end of test_%s.%s %s %s\n' "$1" "$2" "$code" "$4" >>"$log"
}

suite() {
  local each name count i seconds running=()
  seconds=$(limit suite 120)
  mkdir -p "$work/logs"
  cd "$work"
  for each in "${suite[@]}"; do
    name=${each%:*} count=${each#*:}
    with_libraries "test_$name"
    for ((i = 0; i < count; ++i)); do
      shard "$name" "$i" "$count" "$seconds" &
      running+=($!)
    done
  done
  wait "${running[@]}"
  report "$work"/logs/*.log >"$out/suite.txt"
  head -n 60 "$out/suite.txt"
  cat "$work"/logs/*.log | "$python" -c 'if True:
    import lzma, shutil, sys
    with lzma.open(sys.argv[1], "w", preset=1) as file:
        shutil.copyfileobj(sys.stdin.buffer, file)' "$out/suite.log.xz"
}

tune() {
  local seconds
  seconds=$(limit tune 60)
  words tune --seconds $((seconds - 15))
  guarded "$seconds" "$work/samebytes" tune "${options[@]}" >"$out/tune.txt" || true
  cut -c 1-160 "$out/tune.txt" | tail -n 20
  guarded 10 "$work/samebytes" tune --show >>"$out/tune.txt" || true
}

keep() { # everything so far, and what was measured of the device, into OUT/all.tar.xz
  "$python" -c 'if True:
    import os, sys, tarfile
    out, work = sys.argv[1:]
    path = os.path.join(out, "all.tar.xz")
    with tarfile.open(path + ".part", "w:xz", preset=1) as tar:
        for name in sorted(os.listdir(out)):
            if not name.startswith("all.tar.xz"):
                tar.add(os.path.join(out, name), name)
        for name in ("errors.txt", "cache/samebytes"):
            if os.path.exists(os.path.join(work, name)):
                tar.add(os.path.join(work, name), name)
    os.replace(path + ".part", path)' "$out" "$work"
}

run_parts() { # run_parts PART...
  local part code
  "$python" -W ignore -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' \
    "$here/bundle.tar.xz" "$work"
  find_driver
  libraries=$work/libraries:/usr/local/nvidia/lib64:/usr/local/nvidia/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  with_libraries samebytes
  with_libraries measure_gpu_rates
  export HOME=$work XDG_CACHE_HOME=$work/cache
  export TORCHINDUCTOR_CACHE_DIR=$work/cache/inductor TRITON_CACHE_DIR=$work/cache/triton
  say "unpacked; $(nproc) cores; drivers: $(grep -hs . "$OCL_ICD_VENDORS"/*.icd | tr '\n' ' ')"
  nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,memory.total --format=csv,noheader 2>/dev/null || true
  for part in "$@"; do
    say "$part"
    code=0
    ("$part") || code=$?
    [ "$code" -eq 0 ] || say "$part: failed ($code)"
    keep || true
  done
  say "end"
}

case ${1:-} in
  pack)
    [ "$#" -eq 2 ] || { echo "gpu.sh pack FOLDER" >&2; exit 2; }
    pack "$2" ;;
  run)
    [ "$#" -ge 2 ] || { echo "gpu.sh run OUT [PART...]" >&2; exit 2; }
    mkdir -p "$2"
    out=$(cd "$2" && pwd)
    parts=("${@:3}")
    [ "${#parts[@]}" -gt 0 ] || parts=(devices rates torch bench suite tune)
    for part in "${parts[@]}"; do
      case $part in
        devices | rates | torch | bench | suite | tune) ;;
        *) echo "gpu.sh: no part '$part'" >&2; exit 2 ;;
      esac
    done
    work=$(mktemp -d "${TMPDIR:-/tmp}/samebytes-gpu.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    run_parts "${parts[@]}" 2>&1 | tee "$out/log.txt"
    keep || true ;; # with all of the log
  -h | --help) sed -n '2,17s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" ;;
  *) echo "gpu.sh pack FOLDER, or gpu.sh run OUT [PART...]" >&2; exit 2 ;;
esac
