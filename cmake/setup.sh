# Shared by examples/quickstart.sh, tests/run.sh and .ci/run: source it, then
#   samebytes_packages GROUP...            installs what is missing of run, test, ci, docs, bench, deb, peers; quick when
#                                          nothing is
#   samebytes_build [-D...]... -- TARGET   configures build/ (Release, Ninja) and builds TARGET with all cores
# It sets SAMEBYTES_TOP, SAMEBYTES_BUILD, SAMEBYTES_DATA, and POCL_CACHE_DIR if SAMEBYTES_KERNEL_CACHE is set; else kernels
# lie where PoCL keeps them, so that no checkout and no later run compiles them again.
# shellcheck shell=bash

SAMEBYTES_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SAMEBYTES_BUILD=${SAMEBYTES_BUILD:-$SAMEBYTES_TOP/build}
export SAMEBYTES_DATA=${SAMEBYTES_DATA:-$SAMEBYTES_TOP/data}
if [ -n "${SAMEBYTES_KERNEL_CACHE:-}" ]; then
  export POCL_CACHE_DIR=$SAMEBYTES_KERNEL_CACHE
  mkdir -p "$POCL_CACHE_DIR"
fi
# Without it a compiler cache refuses precompiled headers.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros,include_file_mtime,include_file_ctime}
# What one checkout compiled serves every other one on the machine.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$SAMEBYTES_TOP} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}

samebytes_run_packages=(g++ cmake ninja-build pkg-config ocl-icd-opencl-dev opencl-headers opencl-clhpp-headers
  libclblast-dev pocl-opencl-icd libeigen3-dev libfmt-dev nlohmann-json3-dev zlib1g-dev libarchive-dev libcli11-dev
  libyaml-cpp-dev libutf8proc-dev libpcre2-dev libkissfft-dev libpng-dev libjpeg-dev libopenmpi-dev
  openmpi-bin libonnx-dev libprotobuf-dev)
samebytes_test_packages=(libgtest-dev libgmock-dev libbenchmark-dev libdlpack-dev python3-numpy mesa-opencl-icd)
samebytes_ci_packages=(git ccache clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14 llvm-14 libomp-14-dev oclgrind)
samebytes_docs_packages=(doxygen)
samebytes_bench_packages=(libopenblas-dev libdnnl-dev)
samebytes_deb_packages=(lintian mmdebstrap)
samebytes_peers_packages=(g++ python3 python3-venv python3-dev)

# What the command needs where packages come from dnf, pacman or zypper, by those names as far as they are known: nothing
# was ever installed by them here. Nothing is installed; CMake says what is still missing.
samebytes_dnf_packages=(gcc-c++ cmake ninja-build pkgconf-pkg-config ocl-icd-devel opencl-headers clblast-devel pocl
  eigen3-devel fmt-devel json-devel zlib-devel libarchive-devel cli11-devel yaml-cpp-devel utf8proc-devel pcre2-devel
  kiss-fft-devel libpng-devel libjpeg-turbo-devel)
samebytes_pacman_packages=(gcc cmake ninja pkgconf ocl-icd opencl-headers opencl-clhpp clblast pocl eigen fmt nlohmann-json
  zlib libarchive cli11 yaml-cpp libutf8proc pcre2 kissfft libpng libjpeg-turbo)
samebytes_zypper_packages=(gcc-c++ cmake ninja pkgconf ocl-icd-devel opencl-headers opencl-cpp-headers clblast-devel pocl
  eigen3-devel fmt-devel nlohmann_json-devel zlib-devel libarchive-devel cli11-devel yaml-cpp-devel utf8proc-devel
  pcre2-devel kiss_fft-devel libpng16-devel libjpeg8-devel)

samebytes_other_packages() {
  local install=()
  if command -v dnf >/dev/null; then
    install=(dnf install "${samebytes_dnf_packages[@]}")
  elif command -v pacman >/dev/null; then
    install=(pacman -S --needed "${samebytes_pacman_packages[@]}")
  elif command -v zypper >/dev/null; then
    install=(zypper install "${samebytes_zypper_packages[@]}")
  else
    return 0
  fi
  printf 'Packages that the build needs; as root, run, unless they are installed:\n  %s\n' "${install[*]}" >&2
}

samebytes_packages() {
  local wanted=() installed missing=() group package as_root=() install log
  for group in "$@"; do
    case $group in
      run) wanted+=("${samebytes_run_packages[@]}") ;;
      test) wanted+=("${samebytes_test_packages[@]}") ;;
      ci) wanted+=("${samebytes_ci_packages[@]}") ;;
      docs) wanted+=("${samebytes_docs_packages[@]}") ;;
      bench) wanted+=("${samebytes_bench_packages[@]}") ;;
      deb) wanted+=("${samebytes_deb_packages[@]}") ;;
      peers) wanted+=("${samebytes_peers_packages[@]}") ;;
      *) echo "samebytes_packages: no group '$group'" >&2; return 1 ;;
    esac
  done
  if ! command -v dpkg-query >/dev/null; then
    samebytes_other_packages
    return
  fi
  # shellcheck disable=SC2016  # the ${...} are dpkg-query's own
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null || true)
  for package in "${wanted[@]}"; do
    grep -qxF "$package installed" <<<"$installed" || missing+=("$package")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0

  install="apt-get install -y --no-install-recommends ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
      as_root=(sudo)
    else
      printf 'Some packages are missing. As root, run:\n  apt-get update && %s\n' "$install" >&2
      return 1
    fi
  fi
  echo "Installing ${missing[*]}"
  log=$(mktemp)
  if ! { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 \
      install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    printf 'Installing failed. Try as root:\n  apt-get update && %s\n' "$install" >&2
    return 1
  fi
  rm -f "$log"
}

samebytes_build() {
  # Several files of the library at once: about a quarter of the time, where all of them are compiled.
  local options=(-DCMAKE_BUILD_TYPE=Release -DSAMEBYTES_UNITY=ON)
  while [ "$#" -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  [ "$#" -eq 0 ] || shift
  if command -v ccache >/dev/null; then
    options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  cmake -S "$SAMEBYTES_TOP" -B "$SAMEBYTES_BUILD" -G Ninja "${options[@]}" >"$SAMEBYTES_BUILD.configure.log" 2>&1 || {
    cat "$SAMEBYTES_BUILD.configure.log" >&2
    return 1
  }
  rm -f "$SAMEBYTES_BUILD.configure.log"
  cmake --build "$SAMEBYTES_BUILD" -j "$(nproc)" "${@/#/--target=}"
}
