#!/usr/bin/env python3
"""Inference in int8 beside ONNX Runtime and OpenVINO, and beside our own f32; two threads each.

    int8_peers.py [--rounds N] [--only NAME,...] [--rows FILE.json]

Needs torch, onnx, onnxruntime and openvino, and a build with measure_int8 ($SAMEBYTES_BUILD, else build). The peers get what onnxruntime.quantization.quantize_static writes (QDQ, u8 inputs, i8
weights with a scale for each channel, ranges from one batch); OpenVINO reads the same file. Each round runs all sides
one after the other; a table of Markdown has medians and their ratios. Random weights; nothing else may run.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy
import onnxruntime
import openvino
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from torch import nn

BUILD = pathlib.Path(os.environ.get("SAMEBYTES_BUILD", pathlib.Path(__file__).resolve().parent.parent / "build"))
THREADS = 2
PRODUCTS = [(64, 784, 512), (512, 768, 3072), (512, 3072, 768), (4096, 1024, 1024), (1, 768, 3072)]
IMAGES = [(8, 224), (1, 224)]


class Block(nn.Module):
    def __init__(self, inside, out, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(inside, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
                                  nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
        self.short = nn.Identity() if inside == out else nn.Sequential(
            nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


def resnet18():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    for width in (64, 128, 256, 512):
        before = 64 if width == 64 else width // 2
        layers += [Block(before, width, 1 if width == 64 else 2), Block(width, width, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class OneBatch(CalibrationDataReader):
    def __init__(self, x):
        self.left = [{"x": x}]

    def get_next(self):
        return self.left.pop() if self.left else None


def seconds_of(call):
    """The shorter of two after one that warms up, as measure_int8 takes them."""
    call()
    times = []
    for _ in range(2):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def peers_of(net, x, folder):
    """Functions that run the network once, by the names of the sides."""
    plain, quantised = folder / "f32.onnx", folder / "int8.onnx"
    torch.onnx.export(net.eval(), torch.from_numpy(x), str(plain), dynamo=False, input_names=["x"], opset_version=17)
    quantize_static(str(plain), str(quantised), OneBatch(x), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = THREADS
    sides = {}
    for name, path in (("ONNX Runtime f32", plain), ("ONNX Runtime int8", quantised)):
        session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
        sides[name] = lambda session=session: session.run(None, {"x": x})
    core = openvino.Core()
    network = core.compile_model(core.read_model(str(quantised)), "CPU",
                                 {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": THREADS})
    request = network.create_infer_request()
    request.set_input_tensor(0, openvino.Tensor(x, shared_memory=True))
    sides["OpenVINO int8"] = lambda: request.infer()
    return sides


def measure(name, words, net, x, rounds):
    with tempfile.TemporaryDirectory() as folder:
        sides = peers_of(net, x, pathlib.Path(folder))
        times = {}
        for _ in range(rounds):
            for side, call in sides.items():
                times.setdefault(side, []).append(seconds_of(call))
            ours = json.loads(subprocess.run([BUILD / "measure_int8", *words, "3"], check=True, capture_output=True,
                                             text=True).stdout)
            for side, key in (("Samebytes f32", "f32"), ("Samebytes int8", "int8"),
                              ("Samebytes int8, dynamic", "int8_dynamic")):
                times.setdefault(side, []).append(ours[key])
    return {"name": name, **{side: statistics.median(values) for side, values in times.items()}}


def row_text(row):
    ours = row["Samebytes int8"]
    best = min(row["ONNX Runtime int8"], row["OpenVINO int8"])
    milliseconds = [f"{1e3 * row[side]:.3f}" for side in
                    ("Samebytes f32", "Samebytes int8", "Samebytes int8, dynamic", "ONNX Runtime int8", "OpenVINO int8")]
    return (f"| {row['name']} | " + " | ".join(milliseconds) +
            f" | {row['Samebytes f32'] / ours:.2f} | {best / ours:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="names, with commas between them")
    parser.add_argument("--rows", help="a file for the figures as JSON")
    options = parser.parse_args()
    torch.manual_seed(0)
    cases = [(f"product {m} x {k} x {n}", ["product", str(m), str(k), str(n)], lambda k=k, n=n: nn.Linear(k, n), (m, k))
             for m, k, n in PRODUCTS]
    cases += [(f"ResNet-18 {size} x {size}, batch {batch}", ["resnet18", str(batch), str(size)], resnet18,
               (batch, 3, size, size)) for batch, size in IMAGES]
    wanted = options.only.split(",") if options.only else []
    rows = []
    print("| what | f32, ms | int8 | int8, dynamic | ONNX Runtime int8 | OpenVINO int8 | f32 by int8 | "
          "best peer by int8 |\n|---|---|---|---|---|---|---|---|")
    for name, words, make, shape in cases:
        if wanted and not any(word in name for word in wanted):
            continue
        x = numpy.random.default_rng(0).standard_normal(shape).astype(numpy.float32)
        rows.append(measure(name, words, make(), x, options.rounds))
        print(row_text(rows[-1]), flush=True)
    ratios = [min(row["ONNX Runtime int8"], row["OpenVINO int8"]) / row["Samebytes int8"] for row in rows]
    gains = [row["Samebytes f32"] / row["Samebytes int8"] for row in rows]
    print(f"\nGeometric mean: {statistics.geometric_mean(gains):.2f} of f32, {statistics.geometric_mean(ratios):.2f} "
          "of the best peer's int8.")
    if options.rows:
        pathlib.Path(options.rows).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
