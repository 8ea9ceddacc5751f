#!/usr/bin/env bash
# The installed library as its users meet it: what the shared library exports, sizes, find_package and pkg-config with
# both libraries in a tree that was moved after its installation, and uninstall. tests/parts.sh has add_subdirectory and
# FetchContent; tests/deb.sh has Debian's packages.
#   tests/packages.sh [FOLDER]    works in FOLDER, build/packages by default; builds the library in build/
set -euo pipefail
# shellcheck source=cmake/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"
work=${1:-$SAMEBYTES_BUILD/packages}
rm -rf "$work"
mkdir -p "$work"

fail() { # fail EXPECTED GOT
  printf 'expected %s, got\n%s\n' "$1" "$2" >&2
  exit 1
}

samebytes_build -DBUILD_SHARED_LIBS=OFF -DSAMEBYTES_BOTH=ON -- samebytes_cli samebytes_static samebytes_shared
cmake --install "$SAMEBYTES_BUILD" --prefix "$work/installed" >"$work/install.log"
listed=$(sed -n '1p' "$SAMEBYTES_BUILD/install_manifest.txt")
[[ $listed == "$work/installed/"* ]] || fail "a list of installed files" "$listed"
for file in bin/samebytes share/man/man1/samebytes.1 share/bash-completion/completions/samebytes \
  share/zsh/site-functions/_samebytes share/fish/vendor_completions.d/samebytes.fish share/doc/samebytes/LICENSE \
  share/doc/samebytes/examples/04_mnist_cnn.cpp; do
  [ -s "$work/installed/$file" ] || fail "$file" "no such file"
done

# --- uninstall, and again for the rest
cp -r "$work/installed" "$work/moved"
cmake --build "$SAMEBYTES_BUILD" --target uninstall >>"$work/install.log"
left=$(find "$work/installed" ! -type d -o -ipath '*/samebytes*')
[ -z "$left" ] || fail "nothing left after uninstall" "$left"

# --- the shared library
prefix=$work/moved
library=$(find "$prefix" -name libsamebytes.so)
folder=$(dirname "$library")
soname=$(objdump -p "$library" | awk '$1 == "SONAME" { print $2 }')
[ "$soname" = libsamebytes.so.1 ] || fail "the soname libsamebytes.so.1" "$soname"
nm -D --defined-only --format=posix "$library" | awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }' >"$work/symbols"
names=$(c++filt --no-params <"$work/symbols")
foreign=$(grep -vE '^([a-zA-Z -]+ (for|to) )?samebytes::' <<<"$names" || true)
[ -z "$foreign" ] || fail "symbols of samebytes alone" "$(head -n 20 <<<"$foreign")"
# What the public headers do not declare stays inside; kernels' files and launches stand for it.
inside=$(grep -E 'samebytes::(detail::(embedded_kernels|Planner|Runtime|Storage|Launch|KernelLibrary|Op)|onnx::detail)\b' <<<"$names" || true)
[ -z "$inside" ] || fail "no symbols of the engine's own" "$(head -n 20 <<<"$inside")"
strip -o "$work/stripped.so" "$library"
bytes=$(stat -c %s "$work/stripped.so")
[ "$bytes" -le 12000000 ] || fail "a stripped library of at most 12 MB" "$bytes bytes"

# --- find_package, in the moved tree
for kind in shared static; do
  cmake -S "$SAMEBYTES_TOP/tests/outside" -B "$work/$kind" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$prefix" -DSAMEBYTES_COMPONENTS="$kind" >"$work/$kind.log" 2>&1 ||
    fail "find_package(Samebytes COMPONENTS $kind)" "$(cat "$work/$kind.log")"
  cmake --build "$work/$kind" -j "$(nproc)" >>"$work/$kind.log" 2>&1 || fail "to build with the $kind library" "$(tail -n 30 "$work/$kind.log")"
  "$work/$kind/outside"
done
if [ -d "$SAMEBYTES_DATA/mnist" ]; then
  mkdir -p "$work/run"
  ln -sfn "$SAMEBYTES_DATA" "$work/run/data"
  (cd "$work/run" && "$work/shared/04_mnist_cnn")
fi
# What the library needs is its own concern: a program names it and the compiler's libraries.
named=$(objdump -p "$work/shared/06_own_data" | awk '$1 == "NEEDED" { print $2 }' | grep -vE '^(lib(stdc\+\+|m|gcc_s|c)|ld-linux.*)\.so' || true)
[ "$named" = libsamebytes.so.1 ] || fail "a program that names libsamebytes.so.1 alone" "$named"

# --- pkg-config, in the moved tree
PKG_CONFIG_PATH=$folder/pkgconfig
export PKG_CONFIG_PATH
paths=$(grep -nE '(^|[ =])/|-D' "$PKG_CONFIG_PATH/samebytes.pc" || true)
[ -z "$paths" ] || fail "no absolute paths and no defines in samebytes.pc" "$paths"
read -ra flags < <(pkg-config --cflags --libs samebytes)
g++ -std=c++20 "$SAMEBYTES_TOP/tests/outside/main.cpp" -o "$work/by_pkg_config" "${flags[@]}" -Wl,-rpath,"$folder"
"$work/by_pkg_config"
read -ra flags < <(pkg-config --static --cflags --libs samebytes)
g++ -std=c++20 "$SAMEBYTES_TOP/tests/outside/main.cpp" -o "$work/by_pkg_config_static" \
  "${flags[@]/#-lsamebytes/-l:libsamebytes.a}"
"$work/by_pkg_config_static"

# --- the command, from where it was moved; the op that it writes builds and is right
"$prefix/bin/samebytes" --version
"$prefix/bin/samebytes" new op cubed --output "$work"
read -ra flags < <(pkg-config --cflags --libs samebytes)
g++ -std=c++20 -O2 -Wall -Wextra -Werror "$work/cubed.cpp" -o "$work/cubed" "${flags[@]}" -Wl,-rpath,"$folder"
"$work/cubed"

# --- how long a file takes to compile that includes everything, against standard headers alone, so that a busy or slow
# machine says the same: on one where those take 0.62 s, 2.4 times as much are 1.5 s. The median of rounds in which one
# follows the other, since a machine that is shared changes its speed within seconds.
printf '#include <samebytes/samebytes.h>\nint main() {}\n' >"$work/everything.cpp"
printf '#include <%s>\n' chrono filesystem functional map memory optional span string vector >"$work/standard.cpp"
TIMEFORMAT=%U
compile_seconds() { # compile_seconds UNIT
  { time g++ -std=c++20 -O2 -I"$prefix/include" -c "$work/$1.cpp" -o "$work/$1.o"; } 2>&1
}
for _ in 1 2 3 4 5 6 7 8 9 10 11; do
  echo "$(compile_seconds standard) $(compile_seconds everything)"
done | awk '{ print $2 / $1, $1, $2 }' | sort -g >"$work/times"
read -r ratio standard everything < <(sed -n 6p "$work/times")
awk -v ratio="$ratio" 'BEGIN { exit ratio > 2.4 }' ||
  fail "samebytes.h to compile within 2.4 times the time of standard headers" "$(cat "$work/times")"

echo "$(wc -l <"$work/symbols") symbols, $bytes bytes stripped, $everything s to compile samebytes.h, $ratio times standard headers ($standard s)"
