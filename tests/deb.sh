#!/usr/bin/env bash
# Debian's packages: builds them from build/, has lintian look at them, and installs, uses and removes them in a fresh
# root. As root, on Debian.
#   tests/deb.sh [FOLDER]    packages and the root in FOLDER, build/deb by default
set -euo pipefail
# shellcheck source=cmake/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"
work=${1:-$SAMEBYTES_BUILD/deb}
root=$work/root
samebytes_packages run deb
rm -rf "$work"
mkdir -p "$work"

fail() { # fail EXPECTED GOT
  printf 'expected %s, got\n%s\n' "$1" "$2" >&2
  exit 1
}

# The same objects as ever; only the command is linked anew, against the shared library.
samebytes_build -DBUILD_SHARED_LIBS=ON -DSAMEBYTES_BOTH=ON -DCMAKE_INSTALL_PREFIX=/usr -- \
  samebytes_cli samebytes_static samebytes_shared
(cd "$work" && SOURCE_DATE_EPOCH=$(git -C "$SAMEBYTES_TOP" log -1 --format=%ct) \
  cpack --config "$SAMEBYTES_BUILD/CPackConfig.cmake" -B "$work" >cpack.log 2>&1) || fail "packages" "$(cat "$work/cpack.log")"
samebytes_build -DBUILD_SHARED_LIBS=OFF -DCMAKE_INSTALL_PREFIX=/usr/local -- samebytes_cli
mapfile -t debs < <(find "$work" -maxdepth 1 -name '*.deb' | sort)
[ "${#debs[@]}" -eq 4 ] || fail "four packages" "${debs[*]}"
said=$(lintian --allow-root --fail-on none --suppress-tags initial-upload-closes-no-bugs "${debs[@]}")
[ -z "$said" ] || fail "a quiet lintian" "$said"

# A fresh root with what the packages depend on and what their use needs; this system's own sources of packages.
needed=$(for deb in "${debs[@]}"; do dpkg-deb -f "$deb" Depends; done | tr ',' '\n' | sed -E 's/\|.*//; s/\(.*//; s/ //g' |
  grep -v samebytes | sort -u | paste -sd,)
mapfile -t sources < <(find /etc/apt/sources.list /etc/apt/sources.list.d -name '*.list' -o -name '*.sources' 2>/dev/null)
mmdebstrap --quiet --variant=apt --include="$needed,g++,cmake,make,pkg-config,pocl-opencl-icd" \
  "$(lsb_release -cs 2>/dev/null || sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" "$root" "${sources[@]}" >"$work/root.log" 2>&1 ||
  fail "a fresh root" "$(tail -n 20 "$work/root.log")"
chroot "$root" sh -c 'find / -xdev ! -path "/proc/*" ! -path "/var/*" ! -path "/tmp/*" ! -path "/root/*" | sort' >"$work/before"

cp "${debs[@]}" "$root/tmp"
mkdir -p "$root/tmp/project/tests"
cp -r "$SAMEBYTES_TOP/tests/outside" "$root/tmp/project/tests"
inside() { # inside COMMAND: in the root, with the little of a machine that PoCL and the compilers need
  unshare -m sh -c 'mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev" &&
    exec chroot "$0" sh -ec "$1"' "$root" "$1"
}
inside 'dpkg -i /tmp/*.deb' >"$work/installed.log" 2>&1 || fail "the packages to install" "$(cat "$work/installed.log")"
inside 'samebytes --version; samebytes devices; cd /tmp && samebytes train digits --epochs 1 | tail -n 3'
# The examples are those of samebytes-doc; the static library's own needs are packages that libsamebytes-dev suggests.
inside 'gzip -t /usr/share/man/man1/samebytes.1.gz
  bash -n /usr/share/bash-completion/completions/samebytes
  cp -r /usr/share/doc/samebytes-doc/examples /tmp/project
  cd /tmp && cmake -S project/tests/outside -B by_cmake && cmake --build by_cmake --target outside && by_cmake/outside
  g++ -std=c++20 project/tests/outside/main.cpp -o by_pkg_config $(pkg-config --cflags --libs samebytes) && ./by_pkg_config' \
  >"$work/used.log" 2>&1 || fail "programs to be built and to run" "$(tail -n 30 "$work/used.log")"
inside 'dpkg -P samebytes samebytes-doc libsamebytes-dev libsamebytes1' >"$work/removed.log" 2>&1 ||
  fail "the packages to be removed" "$(cat "$work/removed.log")"
chroot "$root" sh -c 'find / -xdev ! -path "/proc/*" ! -path "/var/*" ! -path "/tmp/*" ! -path "/root/*" | sort' >"$work/after"
left=$(comm -13 "$work/before" "$work/after" | grep -i samebytes || true)
[ -z "$left" ] || fail "nothing left after removal" "$left"
echo "four packages: lintian quiet, installed, used and removed in a fresh root"
for deb in "${debs[@]}"; do printf '%9d bytes  %s\n' "$(stat -c %s "$deb")" "$(basename "$deb")"; done
rm -rf "$root"
