#!/usr/bin/env python3
"""How long a model with a gigabyte of external data takes to open, and what is copied.

    onnx_open.py [--layers 16] [--page docs/onnx.md]

The file has products with weights of 64 MiB each, which lie in one file beside it, without a place on the disk. Needs onnx
in the Python that runs it, and a build with onnx_network_runner ($SAMEBYTES_BUILD, else build). Exit status 1 where opening
takes 50 ms or more, or copies a byte.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import onnx
from onnx import helper

from onnx_page import TOP, write_between

MARKERS = ("<!-- open -->", "<!-- end of open -->")
SIDE = 4096


def make(folder, layers):
    nodes, weights = [], []
    for i in range(layers):
        tensor = onnx.TensorProto(name=f"w{i}", data_type=onnx.TensorProto.FLOAT, dims=[SIDE, SIDE],
                                  data_location=onnx.TensorProto.EXTERNAL)
        for key, value in [("location", "weights.bin"), ("offset", i * SIDE * SIDE * 4), ("length", SIDE * SIDE * 4)]:
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
        nodes.append(helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]))
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", SIDE]) for name in ("x0", f"x{layers}")]
    graph = helper.make_graph(nodes, "open", ends[:1], ends[1:], weights)
    (folder / "model.onnx").write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    with open(folder / "weights.bin", "wb") as file:
        file.truncate(layers * SIDE * SIDE * 4)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--page", type=pathlib.Path, help="the page that gets the table")
    given = parser.parse_args()
    runner = os.path.join(os.environ.get("SAMEBYTES_BUILD", TOP / "build"), "onnx_network_runner")
    with tempfile.TemporaryDirectory() as name:
        make(pathlib.Path(name), given.layers)
        done = subprocess.run([runner, "--open", name + "/model.onnx"], capture_output=True, text=True, check=True)
    row = json.loads(done.stdout.splitlines()[-1])
    lines = ["| external data | first time in a process | again | copied | allocated | touched |", "|---|---|---|---|---|---|",
             f"| {given.layers * SIDE * SIDE * 4 / 2**30:g} GiB | {row['first'] * 1e3:.1f} ms | {row['seconds'] * 1e3:.1f} ms | "
             f"{row['copied']} bytes | {row['allocated']} bytes | {row['touched'] / 2**20:.1f} MB |"]
    print("\n".join(lines))
    if given.page:
        write_between(given.page, MARKERS, "\n".join(lines))
    return 0 if max(row["first"], row["seconds"]) < 0.05 and row["copied"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
