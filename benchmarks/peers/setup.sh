#!/usr/bin/env bash
# Makes the virtual environment that benchmarks/compare.py measures against: PyTorch (its build for the CPU where its own
# index can be reached, else as pip installs it), ONNX Runtime, OpenVINO, JAX with optax, MLX's CPU build, tinygrad.
# What does not install is named and left out; compare.py then has a blank there.
#   benchmarks/peers/setup.sh              into build/peers
#   SAMEBYTES_PEERS=DIR benchmarks/peers/setup.sh
# Several GB are downloaded. Nothing of it is needed to build or to test Samebytes.
set -euo pipefail
# shellcheck source=cmake/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/setup.sh"

case ${1:-} in
  '') ;;
  -h | --help) sed -n '2,7s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) echo "setup.sh takes no arguments; SAMEBYTES_PEERS=DIR says where to" >&2; exit 2 ;;
esac

peers=${SAMEBYTES_PEERS:-$SAMEBYTES_BUILD/peers}
python=${PYTHON:-python3}

# torch.compile calls g++ on code that includes Python.h.
has_all() {
  command -v g++ >/dev/null && "$python" -c '
import ensurepip, os, sys, sysconfig, venv
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' 2>/dev/null
}
has_all || samebytes_packages peers
has_all || echo "$python has no Python.h or g++ is missing: torch.compile will not work" >&2
samebytes_packages run # PoCL, which tinygrad runs on

[ -x "$peers/bin/python" ] || "$python" -m venv "$peers"
"$peers/bin/python" -m pip install --quiet --upgrade pip || true

missing=()
for wanted in 'numpy' 'torch' 'onnxruntime onnx onnxscript' 'openvino' 'jax optax' 'mlx' 'tinygrad'; do
  packages=$wanted
  # Without CUDA's libraries, which would only take memory.
  if [ "$wanted" = torch ] && "$peers/bin/python" -m pip install --quiet --disable-pip-version-check --retries 1 \
    --timeout 20 --index-url https://download.pytorch.org/whl/cpu torch 2>/dev/null; then
    echo "Installed torch for the CPU"
    continue
  fi
  # On Linux the plain package has no backend.
  if [ "$wanted" = mlx ] && [ "$(uname -s)" = Linux ]; then packages='mlx[cpu]'; fi
  echo "Installing $wanted"
  # shellcheck disable=SC2086  # a list of packages
  if ! "$peers/bin/python" -m pip install --quiet --disable-pip-version-check $packages; then
    missing+=("${wanted%% *}")
  fi
done

[ "${#missing[@]}" -eq 0 ] || echo "Not installed: ${missing[*]}"
echo "Peers are in $peers"
