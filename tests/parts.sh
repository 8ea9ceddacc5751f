#!/usr/bin/env bash
# The library without the parts that may be left out (docs/building.md), as a part of somebody else's project
# (tests/outside): runs a program for tabular data with it, and checks what that program links, what a call of a missing
# part throws, and that the project gets nothing it did not ask for. Then the same from a copy of the checkout in another
# folder: the preset configures there, and what is compiled there has the same bytes.
#   tests/parts.sh [FOLDER]    builds in FOLDER, build/parts by default
set -euo pipefail
# shellcheck source=cmake/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"
SAMEBYTES_BUILD=${1:-$SAMEBYTES_BUILD/parts}
mkdir -p "$SAMEBYTES_BUILD"

fail() { # fail EXPECTED GOT
  printf 'expected %s, got\n%s\n' "$1" "$2" >&2
  exit 1
}

# Nobody waits for this program, so it is built fast rather than to be fast.
options=(-G Ninja -DCMAKE_CXX_FLAGS=-O0 -DSAMEBYTES_LOOP_FLAGS=-O1 -DBUILD_SHARED_LIBS=ON -DSAMEBYTES_UNITY=ON -DSAMEBYTES_NATIVE=ON -DSAMEBYTES_MPI=OFF
  -DSAMEBYTES_IMAGES=OFF -DSAMEBYTES_ARCHIVES=OFF -DSAMEBYTES_TEXT=OFF -DSAMEBYTES_SOUND=OFF -DSAMEBYTES_ONNX=OFF)
if command -v ccache >/dev/null; then
  options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
untracked() { git -C "$SAMEBYTES_TOP" ls-files --others --exclude='/build*'; }
before=$(untracked)
for from in add_subdirectory FetchContent; do
  cmake -S "$SAMEBYTES_TOP/tests/outside" -B "$SAMEBYTES_BUILD" -DSAMEBYTES_FROM=$from "${options[@]}" \
    >"$SAMEBYTES_BUILD/configure.log" 2>&1 || fail "to configure with $from" "$(cat "$SAMEBYTES_BUILD/configure.log")"
  cmake --build "$SAMEBYTES_BUILD" -j "$(nproc)"
  "$SAMEBYTES_BUILD/outside"
done
# Both lie in one folder, so the second one compiles nothing again.
asked=$(sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=//p' "$SAMEBYTES_BUILD/CMakeCache.txt")
[ -z "$asked" ] || fail "no build type, as the project set none" "$asked"
targets=$(ninja -C "$SAMEBYTES_BUILD" -t targets all | grep -E '(^|/)(test_|bench_|samebytes_cli|install/)[a-z_]*: phony' || true)
[ -z "$targets" ] || fail "no tests, benchmarks or command in a subproject" "$targets"
elsewhere=$(find "$SAMEBYTES_BUILD" -maxdepth 1 -name '*samebytes*')
[ -z "$elsewhere" ] || fail "the library's files in its own build folder" "$elsewhere"
written=$(comm -13 <(printf '%s\n' "$before") <(untracked))
[ -z "$written" ] || fail "nothing written into the sources" "$written"

program=$SAMEBYTES_BUILD/06_own_data
"$program" >"$SAMEBYTES_BUILD/parts.out"
links=$(ldd "$program")
[ "$(wc -l <<<"$links")" -le 12 ] || fail "at most 12 libraries" "$links"

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
library=$SAMEBYTES_BUILD/_deps/samebytes-build
c++ -std=c++20 -I"$SAMEBYTES_TOP/include" "$SAMEBYTES_BUILD/missing.cpp" -o "$SAMEBYTES_BUILD/missing" \
  -L"$library" -lsamebytes -Wl,-rpath,"$library"
message=$("$SAMEBYTES_BUILD/missing")
[[ $message == *"-DSAMEBYTES_SOUND=ON"* ]] || fail "an error that names SAMEBYTES_SOUND" "$message"
echo "without its parts the library links $(wc -l <<<"$links") libraries and names what is missing"

copy=$SAMEBYTES_BUILD/elsewhere/a_copy
rm -rf "$copy"
mkdir -p "$copy"
git -C "$SAMEBYTES_TOP" ls-files -z --cached --others --exclude-standard | (cd "$SAMEBYTES_TOP" && xargs -0 cp --parents -t "$copy")
(cd "$copy" && cmake --preset release) >"$SAMEBYTES_BUILD/preset.log" 2>&1 || fail "the preset to configure" "$(tail "$SAMEBYTES_BUILD/preset.log")"
cmake -S "$copy/tests/outside" -B "$copy/build-parts" -DSAMEBYTES_FROM=FetchContent "${options[@]}" >"$SAMEBYTES_BUILD/copy.log" 2>&1
# A few files stand for all: the embedded kernels, host loops, and sources that name their own files.
objects=_deps/samebytes-build/CMakeFiles
together=$(cd "$SAMEBYTES_BUILD" && grep -lr --include='*.o' samebytes/engine/ $objects/samebytes_objects.dir/Unity | sort -V | tail -n 1)
checked=("$objects/samebytes_objects.dir/generated/embedded_kernels.cpp.o" "$together"
  "$objects/samebytes_baseline.dir/engine/ops/host_sums_native.cpp.o")
cmake --build "$copy/build-parts" -j "$(nproc)" "${checked[@]/#/--target=}"
for object in "${checked[@]}"; do
  cmp "$SAMEBYTES_BUILD/$object" "$copy/build-parts/$object" || fail "the same bytes from another folder" "$object"
done
rm -rf "$copy"
echo "compiled in another folder, ${#checked[@]} files have the same bytes"
