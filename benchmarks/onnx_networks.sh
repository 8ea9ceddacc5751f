#!/usr/bin/env bash
# Makes a virtual environment with PyTorch, torchvision, transformers and ONNX's packages, and runs onnx_networks.py there.
#   benchmarks/onnx_networks.sh --page docs/onnx.md         the environment in build/onnx_peers
#   SAMEBYTES_ONNX_PEERS=DIR benchmarks/onnx_networks.sh    one that exists, or another place
# About 1 GB is downloaded. Nothing of it is needed to build or to test Samebytes.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
peers=${SAMEBYTES_ONNX_PEERS:-${SAMEBYTES_BUILD:-$top/build}/onnx_peers}
if ! [ -x "$peers/bin/python" ]; then
  python3 -m venv "$peers"
  # Their builds for the CPU where the index of those can be reached.
  "$peers/bin/pip" install -q --retries 1 --timeout 20 --index-url https://download.pytorch.org/whl/cpu torch torchvision ||
    "$peers/bin/pip" install -q torch torchvision
  "$peers/bin/pip" install -q transformers onnx onnxscript onnxruntime
fi
exec "$peers/bin/python" "$top/benchmarks/onnx_networks.py" "$@"
