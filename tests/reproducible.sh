#!/usr/bin/env bash
# Two builds of one commit in two folders give the same bytes: the static and the shared library, the command, and every
# object file of them.
#   tests/reproducible.sh [-D...]...   options of CMake; works in $SAMEBYTES_BUILD/reproducible
# It compiles everything twice, and no compiler cache helps. SAMEBYTES_REPRODUCIBLE=TARGETS builds less of it, such
# as samebytes_small, the rooms of training, models and ONNX.
set -euo pipefail
# shellcheck source=cmake/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"
work=$SAMEBYTES_BUILD/reproducible
rm -rf "$work"
mkdir -p "$work"
export CCACHE_DISABLE=1
read -ra targets <<<"${SAMEBYTES_REPRODUCIBLE:-samebytes_static samebytes_shared samebytes_cli}"

commit=$(git -C "$SAMEBYTES_TOP" rev-parse HEAD)  # the checkout may go on meanwhile
folders=("$work/one" "$work/another/folder_with_a_longer_name")
for folder in "${folders[@]}"; do
  git clone -q --no-tags "$SAMEBYTES_TOP" "$folder"
  git -C "$folder" checkout -q "$commit"
  cmake -S "$folder" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
    -DSAMEBYTES_TESTS=OFF -DSAMEBYTES_BENCHMARKS=OFF -DSAMEBYTES_EXAMPLES=OFF -DSAMEBYTES_UNITY=ON "$@" \
    >"$work/configure.log" 2>&1 || { tail -n 30 "$work/configure.log"; exit 1; }
  cmake --build "$folder/build" -j "$(nproc)" --target "${targets[@]}" >"$work/build.log" 2>&1 ||
    { tail -n 30 "$work/build.log"; exit 1; }
done

differ=0
files=0
while read -r file; do
  files=$((files + 1))
  cmp -s "${folders[0]}/build/$file" "${folders[1]}/build/$file" && continue
  differ=$((differ + 1))
  echo "differs: $file"
  diff <(strings -a "${folders[0]}/build/$file") <(strings -a "${folders[1]}/build/$file") | head -n 6 || true
done < <(cd "${folders[0]}/build" && find . -name '*.o' -o -name '*.a' -o -name 'libsamebytes.so.*' ! -type l -o -type f -name samebytes | sort)
echo "$files files of ${commit:0:8} built in two folders, $differ differ"
[ -n "${SAMEBYTES_REPRODUCIBLE:-}" ] || for file in libsamebytes.a libsamebytes.so samebytes; do
  [ -f "${folders[1]}/build/$file" ] || { echo "was not built: $file"; exit 1; }
done
[ "$differ" -eq 0 ] && [ "$files" -gt 1 ]
