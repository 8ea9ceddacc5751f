#!/usr/bin/env bash
# The library without the parts that may be left out (docs/building.md): builds it as a shared library, runs a program
# for tabular data with it, and checks what that program links and what a call of a missing part throws.
#   tests/parts.sh [FOLDER]    builds in FOLDER, build/parts by default
set -euo pipefail
# shellcheck source=cmake/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"
SAMEBYTES_BUILD=${1:-$SAMEBYTES_BUILD/parts}

# Nobody waits for this program, so it is built fast rather than to be fast.
samebytes_build -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DBUILD_SHARED_LIBS=ON -DSAMEBYTES_TESTS=OFF \
  -DSAMEBYTES_BENCHMARKS=OFF -DSAMEBYTES_EXAMPLES=ON -DSAMEBYTES_CLI=OFF -DSAMEBYTES_MPI=OFF -DSAMEBYTES_IMAGES=OFF -DSAMEBYTES_ARCHIVES=OFF -DSAMEBYTES_TEXT=OFF \
  -DSAMEBYTES_SOUND=OFF -DSAMEBYTES_ONNX=OFF -- samebytes example_06_own_data

program=$SAMEBYTES_BUILD/examples/06_own_data
"$program" >"$SAMEBYTES_BUILD/parts.out"
links=$(ldd "$program")
if [ "$(wc -l <<<"$links")" -gt 12 ]; then
  printf 'expected at most 12 libraries, got\n%s\n' "$links" >&2
  exit 1
fi

cat >"$SAMEBYTES_BUILD/missing.cpp" <<'PROGRAM'
#include <samebytes/data.h>

#include <cstdio>

int main() {
  try {
    samebytes::data::Spectrogram spectrogram;
  } catch (const samebytes::Error& error) {
    std::puts(error.what());
    return 0;
  }
  return 1;
}
PROGRAM
c++ -std=c++20 -I"$SAMEBYTES_TOP/include" "$SAMEBYTES_BUILD/missing.cpp" -o "$SAMEBYTES_BUILD/missing" \
  -L"$SAMEBYTES_BUILD" -lsamebytes -Wl,-rpath,"$SAMEBYTES_BUILD"
message=$("$SAMEBYTES_BUILD/missing")
if [[ $message != *"-DSAMEBYTES_SOUND=ON"* ]]; then
  printf 'expected an error that names SAMEBYTES_SOUND, got\n%s\n' "$message" >&2
  exit 1
fi
echo "without its parts the library links $(wc -l <<<"$links") libraries and names what is missing"
