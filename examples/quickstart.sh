#!/usr/bin/env bash
# From a bare Debian 12 or Ubuntu 24.04 to a trained network: installs what is missing, builds the command to
# build/samebytes, and trains a small convolutional network on the handwritten digits that the command carries. Arguments
# go to `samebytes train digits`.
set -euo pipefail
# shellcheck source=cmake/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

samebytes_packages run
# A build folder that also holds the tests keeps them; a new one gets the command only.
options=()
if [ ! -f "$SAMEBYTES_BUILD/CMakeCache.txt" ]; then
  options=(-DSAMEBYTES_TESTS=OFF -DSAMEBYTES_BENCHMARKS=OFF -DSAMEBYTES_EXAMPLES=OFF)
fi
samebytes_build "${options[@]}" -- samebytes_cli samebytes_shared  # all that `cmake --install` needs
exec "$SAMEBYTES_BUILD/samebytes" train digits "$@"
