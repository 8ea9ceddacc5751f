#!/usr/bin/env python3
"""Latency at batch 1 beside ONNX Runtime: one inference from its input on the host to its output there, two threads each.

    latency.py [--seconds S] [--rounds N] [--only NAME,...] [--batch N] [--page docs/measured.md]

Needs torch, torchvision, transformers, onnx and onnxruntime in the Python that runs it, and a build with
onnx_network_runner ($SAMEBYTES_BUILD, else build). PyTorch exports each network with random weights; both read the same
file. The two take turns of S seconds, N times each; a table has the medians of p50 and p99 over the turns, and the ratio
of the p50. Outputs must agree within 10^-4 of the largest. Nothing else may run.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy
import onnx
import onnxruntime
import torch
from onnx import numpy_helper

from onnx_page import TOP, difference, write_between
from onnx_zoo import torchvision

sys.path.insert(0, str(TOP / "benchmarks" / "peers"))
from torch_models import make_batch, make_model  # noqa: E402
from workloads import WORKLOADS  # noqa: E402

THREADS = 2
LIMIT = 1e-4
MARKERS = ("<!-- latency -->", "<!-- end of latency -->")


def of_workload(name):
    workload = WORKLOADS[name]
    return make_model(workload).eval(), tuple(x[:1] for x in make_batch(workload)[0])


def of_torchvision(name):
    return getattr(torchvision.models, name)(weights=None).eval(), (torch.randn(1, 3, 224, 224),)


class Encoder(torch.nn.Module):
    """The shapes of all-MiniLM-L6-v2, for a sentence of 32 tokens."""

    def __init__(self):
        super().__init__()
        import transformers

        config = transformers.BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
        config._attn_implementation = "eager"
        self.net = transformers.BertModel(config, add_pooling_layer=False).eval()

    def forward(self, ids):
        return self.net(input_ids=ids)[0].mean(1)


NETWORKS = {
    "mlp": lambda: of_workload("mlp"),
    "cnn": lambda: of_workload("cnn"),
    "resnet20": lambda: of_workload("resnet20"),
    "resnet18 224x224": lambda: of_torchvision("resnet18"),
    "mobilenet_v2 224x224": lambda: of_torchvision("mobilenet_v2"),
    "MiniLM, 32 tokens": lambda: (Encoder().eval(), (torch.randint(0, 30000, (1, 32)),)),
}


def export(name, batch, folder):
    torch.manual_seed(1)
    net, inputs = NETWORKS[name]()
    inputs = tuple(torch.cat([x] * batch) for x in inputs)
    path = folder / "model.onnx"
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, inputs, str(path), dynamo=False, opset_version=17)
    names = [value.name for value in onnx.load(str(path), load_external_data=False).graph.input]
    given = {key: x.numpy() for key, x in zip(names, inputs)}
    graph = onnx.GraphProto()
    graph.initializer.extend(numpy_helper.from_array(x, key) for key, x in given.items())
    (folder / "given.pb").write_bytes(graph.SerializeToString())
    return path, given


class Peer:
    def __init__(self, path, given):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        for key, x in given.items():
            self.binding.bind_cpu_input(key, x)
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name)

    def outputs(self):
        self.session.run_with_iobinding(self.binding)
        return self.binding.copy_outputs_to_cpu()

    def turn(self, seconds):
        times, begin = [], time.perf_counter()
        while len(times) < 5 or time.perf_counter() - begin < seconds:
            start = time.perf_counter()
            self.session.run_with_iobinding(self.binding)
            if time.perf_counter() - begin > seconds / 5:
                times.append(time.perf_counter() - start)
        times.sort()
        return times[len(times) // 2], times[len(times) * 99 // 100]


def measure(name, given_options, folder):
    path, given = export(name, given_options.batch, folder)
    peer = Peer(path, given)
    want = peer.outputs()
    runner = os.path.join(os.environ.get("SAMEBYTES_BUILD", TOP / "build"), "onnx_network_runner")
    mine, theirs = [], []
    for _ in range(given_options.rounds):
        theirs.append(peer.turn(given_options.seconds))
        done = subprocess.run([runner, "--seconds", str(given_options.seconds), str(folder)], capture_output=True, text=True,
                              check=True)
        line = json.loads(done.stdout.splitlines()[-1])
        if "error" in line:
            raise SystemExit(f"{name}: {line['error']}")
        mine.append((line["seconds"], line["p99"]))
    graph = onnx.GraphProto.FromString((folder / "results.pb").read_bytes())
    results = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    worst = max(difference(results[o.name], y, 1.0) for o, y in zip(peer.session.get_outputs(), want))
    return [statistics.median(times[i] for times in side) for side in (mine, theirs) for i in (0, 1)] + [worst]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--only", help="names, with commas between them", default=",".join(NETWORKS).replace(", ", "; "))
    parser.add_argument("--page", type=pathlib.Path, help="the page that gets the table")
    options = parser.parse_args()
    wanted = [name.strip() for name in options.only.split(",")]
    chosen = [name for name in NETWORKS if any(name.replace(",", ";") == word or name.split()[0].strip(",") == word for word in wanted)]
    titles = ["network", "p50, ms", "p99", "ONNX Runtime p50", "p99", "ratio of p50", "p99 / p50"]
    lines = ["| " + " | ".join(titles) + " |", "|---|" + "---:|" * (len(titles) - 1)]
    ratios, is_good = [], True
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            p50, p99, their50, their99, worst = measure(name, options, pathlib.Path(folder))
        is_good = is_good and worst <= LIMIT
        ratios.append(their50 / p50)
        cells = [f"{1e3 * t:.3f}" for t in (p50, p99, their50, their99)] + [f"{ratios[-1]:.2f}", f"{p99 / p50:.2f}"]
        lines.append("| " + " | ".join([name, *cells]) + " |")
        print(lines[-1], f"differs by {worst:.0e}", file=sys.stderr, flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    lines += ["", f"Geometric mean of the ratios: {mean:.2f}"]
    print("\n".join(lines))
    if options.page:
        write_between(options.page, MARKERS, "\n".join(lines))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
