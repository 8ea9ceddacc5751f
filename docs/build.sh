#!/usr/bin/env bash
# Makes the documentation as one static site, the guide and the reference of all public headers, with a search that needs
# no server: build/docs/html/index.html. Installs Doxygen if it is missing. A warning is an error.
set -euo pipefail
# shellcheck source=cmake/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

samebytes_packages docs
cd "$SAMEBYTES_TOP"
site=$SAMEBYTES_BUILD/docs
rm -rf "$site"
mkdir -p "$site"
(cat docs/site/Doxyfile && printf 'OUTPUT_DIRECTORY = "%s"\n' "$site") | doxygen - 2>"$site/warnings.txt"
if [ -s "$site/warnings.txt" ]; then
  cat "$site/warnings.txt" >&2
  exit 1
fi
echo "$site/html/index.html"
