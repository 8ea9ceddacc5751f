#!/usr/bin/env bash
# Fetches Python's package onnx into a temporary folder, runs its node tests by build/onnx_node_tests, and writes the table
# of docs/onnx.md. Needs python3-venv and a build.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cases=${1:-}
if [ -z "$cases" ]; then
  python3 -m venv "$folder/venv"
  "$folder/venv/bin/pip" install -q 'onnx==1.19.1'
  cases=$(echo "$folder"/venv/lib/python3*/site-packages/onnx/backend/test/data/node)
fi
"${SAMEBYTES_BUILD:-$top/build}/onnx_node_tests" "$cases" 2>"$folder/reasons" >"$folder/table" || cat "$folder/reasons" >&2
sed '/<!-- table -->/q' "$top/docs/onnx.md" >"$folder/page"
{ cat "$folder/page"; echo; cat "$folder/table"; } >"$top/docs/onnx.md"
