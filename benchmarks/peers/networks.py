"""The networks that ONNX Runtime and OpenVINO read, exported by PyTorch with the weights that its own peer has.

    networks.py --to DIR WORKLOAD...      what is there and was made by the same PyTorch and code stays

Of each workload: NAME.onnx (weights beside it in NAME.onnx.data), NAME.xml and NAME.bin (OpenVINO's own, converted from
the PyTorch model, f32), NAME.npz (inputs, a sample of PyTorch's outputs for them), NAME.json (what made them). gpt-small
has 1 GB of them.
"""

import argparse
import hashlib
import json
import os
import sys

OPSET = 20
MOST_SAMPLES = 100_000  # of the outputs that are kept to compare with


class Expected:
    """What PyTorch, eager and in f32, gives for the batch of a workload."""

    def __init__(self, folder, name):
        self.path = os.path.join(folder, name + ".npz") if folder else ""

    def inputs(self):
        import numpy

        with numpy.load(self.path) as kept:
            return [kept[f"input{i}"] for i in range(int(kept["inputs"]))]

    def parameters(self):
        import numpy

        with numpy.load(self.path) as kept:
            return int(kept["parameters"])

    def error(self, sample):
        """The largest difference in shares of the largest output, None without a file. sample(stride) gives every
        stride-th of all outputs in a row, as a NumPy array."""
        if not self.path or not os.path.exists(self.path):
            return None
        import numpy

        with numpy.load(self.path) as kept:
            outputs, stride = kept["outputs"], int(kept["stride"])
        found = sample(stride)
        if found.shape != outputs.shape or not numpy.isfinite(found).all():
            return float("inf")
        return float(numpy.abs(found - outputs).max() / numpy.abs(outputs).max())


def made_by():
    """The versions and the code that decide what is written."""
    import torch

    digest = hashlib.sha256()
    for name in ("torch_models.py", "workloads.py", "networks.py"):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "rb") as file:
            digest.update(file.read())
    made = {"torch": torch.__version__, "code": digest.hexdigest(), "opset": OPSET}
    for package in ("onnx", "openvino"):
        try:
            made[package] = __import__(package).__version__
        except ImportError:
            made[package] = None
    return made


def write(workload, folder, made):
    import numpy
    import torch
    from torch_models import make_batch, make_model

    path = os.path.join(folder, workload.name)
    model = make_model(workload).eval()
    inputs, _ = make_batch(workload)
    with torch.no_grad():
        outputs = model(*inputs).reshape(-1)
    stride = max(1, len(outputs) // MOST_SAMPLES)
    arrays = {f"input{i}": array.numpy() for i, array in enumerate(inputs)}
    parameters = sum(p.numel() for p in model.parameters())
    numpy.savez(
        path + ".npz",
        **arrays,
        **{"inputs": len(inputs), "outputs": outputs[::stride].numpy(), "stride": stride, "parameters": parameters},
    )
    del outputs
    for package, export in (("onnx", export_onnx), ("openvino", export_openvino)):
        if made[package]:
            export(model, inputs, path)
    with open(path + ".json", "w") as file:
        json.dump(made, file)


def export_onnx(model, inputs, path):
    import torch

    names = [f"input{i}" for i in range(len(inputs))]
    with torch.no_grad():
        torch.onnx.export(
            model, inputs, path + ".onnx", input_names=names, output_names=["output"], opset_version=OPSET,
            dynamo=True, external_data=True, optimize=True, verbose=False,
        )  # fmt: skip


def export_openvino(model, inputs, path):
    import openvino

    network = openvino.convert_model(model, example_input=inputs, input=[list(x.shape) for x in inputs])
    openvino.save_model(network, path + ".xml", compress_to_fp16=False)


def main():
    from workloads import WORKLOADS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", required=True, metavar="DIR")
    parser.add_argument("workloads", nargs="+", choices=sorted(WORKLOADS))
    options = parser.parse_args()
    os.makedirs(options.to, exist_ok=True)
    made = made_by()
    for name in options.workloads:
        try:
            with open(os.path.join(options.to, name + ".json")) as file:
                if json.load(file) == made:
                    continue
        except (OSError, ValueError):
            pass
        print(f"exporting {name}", flush=True)
        write(WORKLOADS[name], options.to, made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
