#!/usr/bin/env bash
# The library's tests with other OpenCL drivers than this machine's own, one table row each:
#   tests/drivers.sh             all of them
#   tests/drivers.sh NAME...     some of pocl, basic, two, gpu, rusticl, intel, pocl6, pocl7
# pocl: the installed PoCL; basic: its device that works inside the calls; two: both of its devices in one platform;
# gpu: PoCL that says it is a discrete GPU with coarse memory, as NVIDIA's driver does (tests/drivers/as_gpu_preload.cpp);
# rusticl: Mesa on llvmpipe; intel: Intel's CPU runtime, from PyPI; pocl6, pocl7: PoCL in roots of Debian 13 and sid.
# The programs are those of this build, so that only the driver differs: a root gets the libraries they need beside its
# own. Kernels are those for the kind of device that the driver offers. As root for pocl6 and pocl7.
# SAMEBYTES_DRIVERS=FOLDER keeps environments, roots and logs (build/drivers). SAMEBYTES_DRIVER_TESTS="runtime plan"
# names the programs (default: runtime graph plan ops nn optim train), SAMEBYTES_DRIVER_FILTER the tests.
set -euo pipefail
# shellcheck source=cmake/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"
# shellcheck source=tests/support/roots.sh
source "$SAMEBYTES_TOP/tests/support/roots.sh"
work=${SAMEBYTES_DRIVERS:-$SAMEBYTES_BUILD/drivers}
read -ra programs <<<"${SAMEBYTES_DRIVER_TESTS:-runtime graph plan ops nn optim train}"
filter=${SAMEBYTES_DRIVER_FILTER:-*}
limit=${SAMEBYTES_DRIVER_SECONDS:-1800}  # for each program
mkdir -p "$work"
status=0

vendors() { # vendors NAME DRIVER.icd...: a folder with these drivers alone
  local folder=$work/$1.vendors
  shift
  rm -rf "$folder"
  mkdir -p "$folder"
  cp "$@" "$folder"
  echo "$folder"
}

intel() { # Intel's CPU runtime from PyPI; the packages that it needs beside its declared ones have the compiler's libraries
  local env=$work/intel
  if [ ! -e "$env/lib/libintelocl.so" ]; then
    python3 -m venv "$env" && "$env/bin/pip" install -q intel-opencl-rt intel-cmplr-lib-rt >"$work/intel.log" 2>&1 || return 1
  fi
  echo "$env/lib/libintelocl.so" >"$work/intelocl.icd"
}

# What a program of this system needs in a root whose C library is newer: its libraries without those of the C and C++
# runtime and the OpenCL loader.
give_libraries() { # give_libraries ROOT
  local folder=$1/samebytes-libraries program
  mkdir -p "$folder"
  for program in "${programs[@]}"; do ldd "$SAMEBYTES_BUILD/test_$program"; done | awk '$3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|libstdc\+\+|libgcc_s|libOpenCL|ld-linux[^/]*)\.so' |
    xargs cp -L -t "$folder"
}

run() { # run NAME COMMAND...: every program behind the command
  local name=$1 log=$work/$1.tests program code
  shift
  : >"$log"
  for program in "${programs[@]}"; do
    code=0
    SAMEBYTES_TEST_PERSONALITIES=own SAMEBYTES_TUNING=off "$@" timeout "$limit" "$SAMEBYTES_BUILD/test_$program" \
      --gtest_filter="$filter" >>"$log" 2>&1 || code=$?
    echo "=== end of test_$program $code" >>"$log"
  done
  report "$name" "$log" || status=1
}

names=("$@")
[ "$#" -gt 0 ] || names=(pocl basic two gpu rusticl intel pocl6 pocl7)
for name in "${names[@]}"; do
  case $name in
    pocl) OCL_ICD_VENDORS=$(vendors pocl /etc/OpenCL/vendors/pocl.icd) run pocl env ;;
    basic) OCL_ICD_VENDORS=$(vendors basic /etc/OpenCL/vendors/pocl.icd) run basic env POCL_DEVICES=basic ;;
    two) OCL_ICD_VENDORS=$(vendors two /etc/OpenCL/vendors/pocl.icd) run two env "POCL_DEVICES=pthread basic" ;;
    gpu) OCL_ICD_VENDORS=$(vendors gpu /etc/OpenCL/vendors/pocl.icd) run gpu env LD_PRELOAD="$SAMEBYTES_BUILD/libas_gpu_preload.so" ;;
    rusticl) OCL_ICD_VENDORS=$(vendors rusticl /etc/OpenCL/vendors/rusticl.icd) run rusticl env RUSTICL_ENABLE=llvmpipe ;;
    intel)
      if intel; then
        OCL_ICD_VENDORS=$(vendors intel "$work/intelocl.icd") run intel env
      else
        echo "intel: not run, PyPI gave no intel-opencl-rt (see $work/intel.log)"
      fi ;;
    pocl6 | pocl7)
      suite=trixie
      [ "$name" = pocl6 ] || suite=sid
      if root_of "$suite" "$work" && in_root "$work/$suite" apt-get -qq install -y --no-install-recommends pocl-opencl-icd \
          ocl-icd-libopencl1 >>"$work/$suite.log" 2>&1; then
        give_libraries "$work/$suite"
        SAMEBYTES_BOUND=$SAMEBYTES_TOP run "$name" in_root "$work/$suite" env LD_LIBRARY_PATH=/samebytes-libraries
      else
        echo "$name: not run, no root of $suite could be made (see $work/$suite.log)"
      fi ;;
    *) echo "drivers.sh: no driver '$name'" >&2; exit 2 ;;
  esac
done
exit "$status"
