#!/usr/bin/env python3
"""Networks that PyTorch exports, read by Samebytes: outputs, the gradients of all parameters, and the file it writes again.

    onnx_networks.py [--only NAME,...] [--exporters script,dynamo] [--double] [--keep DIR] [--rows FILE.json]
                     [--page docs/onnx.md]
    onnx_networks.py --layout [--page docs/onnx.md]     what only changes a layout in one pass of three networks

benchmarks/onnx_networks.sh makes an environment with what it needs (torch, torchvision, transformers, onnx, onnxscript
and onnxruntime) and runs it there. It also needs a build with onnx_network_runner ($SAMEBYTES_BUILD, else build). Prints a table of Markdown; --page writes it between the page's markers.
Exit status 1 where a network fails. The measure of a difference is the largest one, divided by the largest value of the
tensor; a gradient's is divided by at least 10^-4 of the network's largest gradient, because some are zero but for rounding.

Where rounding decides which value is the largest, or the sign in front of a ReLU, one gradient goes another way, and no
two programs agree. So the inputs are the first ones, of seeds 1 to 20, at which PyTorch's gradients in double keep within
a quarter of the limit when the parameters change by about 10^-6 of their values, four times. With --double everything is in double, at the inputs of seed 1, and the
limits are 10^-8.
"""

import argparse
import copy
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy
import onnx
import onnxruntime
import torch
from onnx import numpy_helper

from onnx_page import TOP, difference, write_between
from onnx_zoo import NETWORKS

OUTPUT_LIMIT, GRADIENT_LIMIT, DOUBLE_LIMIT = 1e-4, 1e-3, 1e-8
MARKERS = ("<!-- networks -->", "<!-- end of networks -->")
LAYOUT_MARKERS = ("<!-- layout -->", "<!-- end of layout -->")
LAYOUT_NETWORKS, MOST_RELAYOUTS = ("resnet18", "mobilenet_v2", "yolo"), 3


def diff(g, x, times, axis, before, after):
    """aten::diff, once, which the older exporter does not know: x[1:] - x[:-1] along an axis, `before` in front of x."""
    kinds = torch.onnx.symbolic_helper
    (axis,) = [kinds._get_const(axis, "i", "dim")]
    if kinds._get_const(times, "i", "n") != 1 or not kinds._is_none(after):
        raise ValueError("diff: only once, and with nothing behind")
    joined = x if kinds._is_none(before) else g.op("Concat", before, x, axis_i=axis)

    def part(first, last):
        ends = [g.op("Constant", value_t=torch.tensor([n])) for n in (first, last, axis)]
        return g.op("Slice", joined, *ends)

    return g.op("Sub", part(1, 2**31 - 1), part(0, -1))


torch.onnx.register_custom_op_symbolic("aten::diff", diff, 17)


def export(net, inputs, path, exporter):
    quiet = io.StringIO()
    stdout, sys.stdout = sys.stdout, quiet
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if exporter == "script":
                torch.onnx.export(net, inputs, str(path), dynamo=False, do_constant_folding=False, opset_version=17,
                                  training=torch.onnx.TrainingMode.PRESERVE)
            else:
                options = {"dynamo": True, "external_data": False, "verbose": False}
                try:
                    torch.onnx.export(net, inputs, str(path), optimize=False, **options)
                except torch.onnx.OnnxExporterError:  # of T5's attention it takes a copy out, but for inference alone
                    with torch.no_grad():
                        torch.onnx.export(net, inputs, str(path), optimize=False, **options)
                model = onnx.load(str(path))
                if any(node.op_type == "SplitToSequence" for node in model.graph.node):
                    without_sequences(model.graph)  # its optimizer does that, too, but folds parameters
                    onnx.save(model, str(path))
    finally:
        sys.stdout = stdout


def without_sequences(graph):
    """SplitToSequence with the SequenceAt nodes that read it becomes Split."""
    numbers = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            numbers[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    nodes = []
    for node in graph.node:
        readers = {int(numbers[other.input[1]]): other for other in graph.node
                   if other.op_type == "SequenceAt" and other.input[0] == node.output[0]}
        if node.op_type == "SplitToSequence":
            sizes = numbers[node.input[1]]
            count = sizes.size if sizes.ndim == 1 else 1 + max(readers)
            outputs = [readers[i].output[0] if i in readers else f"{node.output[0]}_{i}" for i in range(count)]
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            inputs, options = (node.input, {}) if sizes.ndim == 1 else (node.input[:1], {"num_outputs": count})
            nodes.append(onnx.helper.make_node("Split", inputs, outputs, axis=axis, **options))
        elif node.op_type != "SequenceAt":
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def tell_apart(net):
    """Moves what is all of one value: the older exporter keeps equal parameters once. A row of padding gets its gradient:
    a file does not say which one it is."""
    for module in net.modules():
        if isinstance(module, torch.nn.Embedding):
            module.padding_idx = None
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.dim() <= 1:
                parameter.add_(0.05 * torch.randn_like(parameter))
            elif torch.all(parameter == parameter.flatten()[0]):
                parameter.mul_(1 + 0.05 * torch.randn_like(parameter))


def listed(outputs):
    return [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)


def write_given(path, names, inputs, cotangents):
    graph = onnx.GraphProto()
    for name, value in [*zip(names, inputs), *cotangents.items()]:
        graph.initializer.append(numpy_helper.from_array(value.detach().numpy(), name))
    path.write_bytes(graph.SerializeToString())


def expected(net, inputs, names):
    """Outputs, their cotangents, and the gradient of each parameter by all of its names."""
    outputs = listed(net(*inputs))
    generator = torch.Generator().manual_seed(7)
    cotangents = [torch.randn(y.shape, generator=generator).to(y.dtype) for y in outputs]
    parameters = [parameter for parameter in net.parameters() if parameter.requires_grad]
    loss = sum((y * c).sum() for y, c in zip(outputs, cotangents))
    made = torch.autograd.grad(loss, parameters, allow_unused=True)
    gradients = {}
    for name, parameter in net.named_parameters(remove_duplicate=False):
        for one, gradient in zip(parameters, made):
            if one is parameter:
                gradients.setdefault(id(one), ([], gradient))[0].append(name)
    return ([y.detach().numpy() for y in outputs], {"cotangent " + n: c for n, c in zip(names, cotangents)},
            list(gradients.values()))


def in_double(net, inputs):
    return copy.deepcopy(net).double(), tuple(x.double() if x.is_floating_point() else x for x in inputs)


def shift_of(net, inputs, gradients, draw):
    """How far the gradients move with the parameters."""
    moved = copy.deepcopy(net)
    generator = torch.Generator().manual_seed(draw)
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.mul_(1 + 1e-6 * torch.randn(parameter.shape, generator=generator))
    _, _, made = expected(moved, inputs, [""])
    results = {"gradient " + names[0]: gradient.numpy() for names, gradient in made if gradient is not None}
    return worst_gradient(results, gradients)[0]


def steady_seed(net, make):
    """The seed of inputs at which rounding decides nothing."""
    for seed in range(1, 21):
        exact, wide = in_double(net, make(seed))
        _, _, precise = expected(exact, wide, [""])
        if all(shift_of(exact, wide, precise, draw) < GRADIENT_LIMIT / 4 for draw in range(4)):
            return seed
    return 1


def worst_gradient(results, gradients):
    """The largest difference, and the names of the parameters that the file does not have."""
    largest = max((float(g.abs().max()) for _, g in gradients if g is not None and g.numel()), default=0.0)
    worst, missing = 0.0, []
    for names, gradient in gradients:
        made = [results["gradient " + name] for name in names if "gradient " + name in results]
        if gradient is None:
            continue
        if not made:
            missing.append(names[0])
            continue
        worst = max(worst, difference(sum(made), gradient.numpy(), 1e-4 * largest))
    return worst, missing


def check(name, exporter, runner, folder, is_double, known_seed):
    """A row: what was compared, as (text, is good) for outputs, gradients and the round trip."""
    torch.manual_seed(0)
    net, make = NETWORKS[name]()
    tell_apart(net)
    seed = 1 if is_double else known_seed or steady_seed(net, make)
    inputs = make(seed)
    others = make(seed + 1)
    if is_double:
        (net, inputs), (_, others) = in_double(net, inputs), in_double(net, others)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        export(net, inputs, folder / "model.onnx", exporter)
    except Exception as error:  # noqa: BLE001  what PyTorch cannot export is a row, too
        lines = [line for line in str(error).strip().splitlines() if line]
        return {"note": "PyTorch does not export it: " + (lines[0][:100] if lines else type(error).__name__)}
    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    weights = {tensor.name for tensor in model.graph.initializer}
    input_names = [i.name for i in model.graph.input if i.name not in weights]
    output_names = [o.name for o in model.graph.output]
    outputs, cotangents, gradients = expected(net, inputs, output_names)
    write_given(folder / "given.pb", input_names, inputs, cotangents)
    done = subprocess.run([runner, str(folder)], capture_output=True, text=True, timeout=3600)
    line = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {"error": f"status {done.returncode}: {done.stderr[-300:]}"}
    row = {"seed": seed, "is_double": is_double, "parameters": sum(p.numel() for p in net.parameters()), "nodes": len(model.graph.node)}
    if "error" in line:
        row["note"] = line["error"]
    graph = onnx.GraphProto.FromString((folder / "results.pb").read_bytes())
    results = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    if line.get("outputs"):
        row["outputs"] = max(difference(results[n], y) for n, y in zip(output_names, outputs))
    if line.get("gradients"):
        row["gradients"], missing = worst_gradient(results, gradients)
        if missing:
            row["note"] = f"{len(missing)} parameters are not in the file: " + ", ".join(missing[:4])
    if line.get("saved"):
        try:
            row["saved"] = round_trip(folder / "saved.onnx", net, input_names, others)
        except Exception as error:  # noqa: BLE001  what ONNX's checker and ONNX Runtime throw
            row["note"] = "the saved file: " + str(error)
    return row


def round_trip(path, net, names, inputs):
    """ONNX Runtime's outputs of the saved file against PyTorch's, for inputs that were not traced."""
    onnx.checker.check_model(str(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    given = {}
    for port in session.get_inputs():
        value = inputs[names.index(port.name)].numpy()
        given[port.name] = value.astype(numpy.int32) if port.type == "tensor(int32)" else value
    with torch.no_grad():
        want = listed(net(*inputs))
    return max(difference(got, y.numpy()) for got, y in zip(session.run(None, given), want))


def layouts(command, exporters, folder):
    """A table of what `samebytes run --explain` counts, and whether all of it is within the limit."""
    lines, is_within = ["| network | exporter | launches | relayouts |", "|---|---|---|---|"], True
    for name in LAYOUT_NETWORKS:
        torch.manual_seed(0)
        net, make = NETWORKS[name]()
        for exporter in exporters:
            path = folder / f"{name}_{exporter}.onnx"
            export(net, make(1), path, exporter)
            words = [command, "run", str(path), "--random", "--explain", "plan"]
            told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            launches, relayouts = (int(re.search(form, told).group(1)) for form in (r"plan of (\d+)", r"relayouts: (\d+)"))
            is_within = is_within and relayouts <= MOST_RELAYOUTS
            lines.append(f"| {name} | {exporter} | {launches} | {relayouts} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines), is_within


def is_good(row):
    output, gradient = (DOUBLE_LIMIT, DOUBLE_LIMIT) if row.get("is_double") else (OUTPUT_LIMIT, GRADIENT_LIMIT)
    return ("note" not in row and row.get("outputs", 1) <= output and row.get("gradients", 1) <= gradient
            and row.get("saved", 1) <= output)


def table(rows):
    def shown(row, key):
        return f"{row[key]:.0e}" if key in row else "no"

    lines = ["| network | exporter | parameters | nodes | outputs | gradients | saved, in ONNX Runtime | |", "|" + "---|" * 8]
    for (name, exporter), row in rows.items():
        note = re.sub(r"\s+", " ", row.get("note", "")).replace("|", "/")[:160]
        lines.append(f"| {name} | {exporter} | {row.get('parameters', '')} | {row.get('nodes', '')} | {shown(row, 'outputs')} | "
                     f"{shown(row, 'gradients')} | {shown(row, 'saved')} | {note} |")
    networks = {name for name, _ in rows}
    whole = {name for name in networks if any(is_good(row) for (n, _), row in rows.items() if n == name)}
    lines += ["", f"{len(whole)} of {len(networks)} networks are within all limits by at least one exporter, "
              f"{sum(is_good(row) for row in rows.values())} of {len(rows)} files."]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(NETWORKS))
    parser.add_argument("--exporters", default="script,dynamo")
    parser.add_argument("--double", action="store_true", help="all values in double")
    parser.add_argument("--keep", help="a folder for the files, which stay there")
    parser.add_argument("--rows", type=pathlib.Path, help="a file that keeps the rows; those that it has are not run again")
    parser.add_argument("--layout", action="store_true", help="count what only changes a layout, and nothing else")
    parser.add_argument("--page", type=pathlib.Path, help="the page that gets the table")
    given = parser.parse_args()
    build = pathlib.Path(os.environ.get("SAMEBYTES_BUILD", TOP / "build"))
    if given.layout:
        with tempfile.TemporaryDirectory() as folder:
            text, is_within = layouts(str(build / "samebytes"), given.exporters.split(","), pathlib.Path(folder))
        print(text)
        if given.page:
            write_between(given.page, LAYOUT_MARKERS, text)
        return 0 if is_within else 1
    runner = str(build / "onnx_network_runner")
    rows = {}
    if given.rows and given.rows.exists():
        rows = {tuple(key.split()): row for key, row in json.loads(given.rows.read_text()).items()}
    with tempfile.TemporaryDirectory() as temporary:
        for name in given.only.split(","):
            for exporter in given.exporters.split(","):
                if (name, exporter) in rows:
                    continue
                folder = pathlib.Path(given.keep or temporary) / f"{name}_{exporter}"
                seeds = [row["seed"] for (known, _), row in rows.items() if known == name and "seed" in row]
                rows[name, exporter] = row = check(name, exporter, runner, folder, given.double, next(iter(seeds), None))
                if given.rows:
                    given.rows.write_text(json.dumps({" ".join(key): row for key, row in rows.items()}, indent=1))
                print(name, exporter, "good" if is_good(row) else row, file=sys.stderr, flush=True)
    order = {name: at for at, name in enumerate(NETWORKS)}
    text = table(dict(sorted(rows.items(), key=lambda row: order[row[0][0]])))
    print(text)
    if given.page:
        write_between(given.page, MARKERS, text)
    return 0 if all(is_good(row) for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
