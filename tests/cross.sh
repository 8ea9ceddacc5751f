#!/usr/bin/env bash
# Builds the library and the command for 64-bit Arm with Debian's cross compiler, in a root of Debian 12 that holds arm64
# libraries beside its own, and runs what was built under qemu-user with a PoCL for arm64:
#   tests/cross.sh            `samebytes devices`, and the program core of the tests
# As root. SAMEBYTES_ROOTS=FOLDER keeps the root and its logs (build/roots). SAMEBYTES_CROSS_TESTS="core plan" names the
# programs. qemu interprets each instruction, so nothing here is a measure of speed.
set -euo pipefail
# shellcheck source=cmake/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"
# shellcheck source=tests/support/roots.sh
source "$SAMEBYTES_TOP/tests/support/roots.sh"
work=${SAMEBYTES_ROOTS:-$SAMEBYTES_BUILD/roots}
read -ra programs <<<"${SAMEBYTES_CROSS_TESTS:-core}"
mkdir -p "$work"

# Tools run here, libraries are for there; headers alone are for both.
both=(cmake ninja-build crossbuild-essential-arm64 qemu-user pkg-config protobuf-compiler opencl-headers
  opencl-clhpp-headers libeigen3-dev nlohmann-json3-dev libcli11-dev libdlpack-dev)
there=(ocl-icd-opencl-dev libclblast-dev libfmt-dev zlib1g-dev libarchive-dev libyaml-cpp-dev libutf8proc-dev
  libpcre2-dev libkissfft-dev libpng-dev libjpeg-dev libonnx-dev libprotobuf-dev libgtest-dev libgmock-dev)
SAMEBYTES_ARCHITECTURES=amd64,arm64 root_of bookworm "$work/cross" ||
  { echo "cross.sh: no root could be made (see $work/cross/bookworm.log)" >&2; exit 1; }
root=$work/cross/bookworm
in_root "$root" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${both[@]}" \
  "${there[@]/%/:arm64}" >>"$root.log" 2>&1 || { tail -n 20 "$root.log" >&2; exit 1; }
# PoCL for arm64 cannot be installed beside a compiler for this machine, and nothing of it need run here: what it needs is
# unpacked into the root's /arm64, where qemu looks first.
if [ ! -e "$root/arm64/etc/OpenCL/vendors/pocl.icd" ]; then
  rm -rf "$root/arm64"
  mmdebstrap --quiet --variant=extract --architectures=arm64 --aptopt='Acquire::Check-Valid-Until "false"' \
    --include="pocl-opencl-icd,libgomp1,$(IFS=,; echo "${there[*]}")" bookworm "$root/arm64" \
    "deb ${SAMEBYTES_MIRROR:-http://deb.debian.org/debian} bookworm main" >>"$root.log" 2>&1 || { tail -n 20 "$root.log" >&2; exit 1; }
fi
sources_into "$root"

in_root "$root" bash -c 'cd /samebytes && cmake --preset aarch64 -DSAMEBYTES_MPI=OFF -DSAMEBYTES_BENCHMARKS=OFF -DSAMEBYTES_EXAMPLES=OFF &&
  cmake --build build-aarch64 -j "$(nproc)" "${@/#/--target=}"' _ samebytes_cli samebytes_shared "${programs[@]/#/test_}"
in_root "$root" bash -c 'file=/samebytes/build-aarch64/samebytes; od -An -tx1 -j18 -N1 "$file" | grep -q b7' ||
  { echo "cross.sh: expected a program for machine 0xb7 (AArch64)" >&2; exit 1; }
# PoCL links its kernels with the ld that it finds first, by names of libraries alone, and finds its own files by a path
# with "..", which qemu takes as it is.
in_root "$root" bash -c 'mkdir -p /opt/arm && ln -sfn /arm64/usr/share/pocl /usr/share/pocl &&
  printf "#!/bin/sh\nexec aarch64-linux-gnu-ld -L%s -L/usr/aarch64-linux-gnu/lib \"\$@\"\n" \
    "$(dirname "$(aarch64-linux-gnu-gcc -print-libgcc-file-name)")" >/opt/arm/ld && chmod +x /opt/arm/ld'
emulated() { in_root "$root" env PATH="/opt/arm:/usr/sbin:/usr/bin:/sbin:/bin" qemu-aarch64 -L /arm64 "$@"; }
emulated /samebytes/build-aarch64/samebytes --version
emulated /samebytes/build-aarch64/samebytes devices
log=$work/cross/tests
: >"$log"
for program in "${programs[@]}"; do
  code=0
  emulated "/samebytes/build-aarch64/test_$program" >>"$log" 2>&1 || code=$?
  echo "=== end of test_$program $code" >>"$log"
done
report aarch64 "$log"
