#!/usr/bin/env bash
# Fetches Python's package onnx into a temporary folder, makes its node tests, runs them by build/onnx_node_tests, and
# writes the table of docs/onnx.md. Needs python3-venv and a build.
#   benchmarks/onnx_table.sh          or with a folder of node tests that exists
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cases=${1:-}
if [ -z "$cases" ]; then
  python3 -m venv "$folder/venv"
  "$folder/venv/bin/pip" install -q 'onnx==1.23.2' pillow
  "$folder/venv/bin/python" -c '
import sys
from types import SimpleNamespace
import onnx.backend.test.case.node as node
import onnx.backend.test.cmd_tools as tools
tools.model_test = node
tools.generate_data(SimpleNamespace(output=sys.argv[1]))' "$folder/data" >"$folder/made" 2>&1
  cases=$folder/data/node
fi
"${SAMEBYTES_BUILD:-$top/build}/onnx_node_tests" "$cases" 2>"$folder/reasons" >"$folder/table" || cat "$folder/reasons" >&2
sed '/<!-- table -->/q' "$top/docs/onnx.md" >"$folder/page"
{ cat "$folder/page"; echo; cat "$folder/table"; } >"$top/docs/onnx.md"
