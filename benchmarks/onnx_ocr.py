#!/usr/bin/env python3
"""The three networks of rapidocr-onnxruntime (text detection, direction, recognition): outputs and speed beside ONNX Runtime.

    onnx_ocr.py [--seconds S] [--page docs/onnx.md]      without --seconds nothing is timed

Needs rapidocr-onnxruntime, onnx and onnxruntime in the Python that runs it, and a build with onnx_network_runner
($SAMEBYTES_BUILD, else build). Times are medians of one inference with its outputs on the host; both run one after the
other for S seconds each, seven times, and the ratio is of the medians. Nothing else may run. Inputs are pages of written
words, because noise has no text and all outputs near zero. Outputs are probabilities; exit status 1 where one differs by
more than 10^-3.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnx
import onnxruntime
import rapidocr_onnxruntime
from PIL import Image, ImageDraw, ImageFont
from onnx import numpy_helper

from onnx_page import TOP, difference, write_between

LIMIT = 1e-3
MARKERS = ("<!-- ocr -->", "<!-- end of ocr -->")
# The part of a file's name, and shapes of its input.
NETWORKS = {
    "det": [(1, 3, 320, 320), (1, 3, 640, 480), (1, 3, 736, 736), (2, 3, 320, 320)],
    "cls": [(1, 3, 48, 192), (6, 3, 48, 192)],
    "rec": [(1, 3, 48, 160), (1, 3, 48, 320), (6, 3, 48, 320)],
}


def page(height, width, seed):
    """Lines of dark words on a light ground, [3, height, width] from -1 to 1."""
    generator = numpy.random.default_rng(seed)
    image = Image.new("RGB", (width, height), (230, 225, 215))
    font = ImageFont.load_default(size=max(12, height // 16))
    for top in range(8, max(9, height - 20), max(18, height // 10)):
        words = "".join(generator.choice(list("abcdefghij KLMNOP0123"), max(4, width // 14)))
        ImageDraw.Draw(image).text((10, top), words, fill=(20, 20, 40), font=font)
    return numpy.asarray(image, dtype=numpy.float32).transpose(2, 0, 1) / 127.5 - 1


def seconds_of(session, name, x, most):
    times, begin = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < most:
        start = time.perf_counter()
        session.run(None, {name: x})
        if time.perf_counter() - begin > most / 5 or not times:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure(path, shape, most, runner, folder):
    """What one input gives; `most` seconds for each of the two, 0: no times."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    x = numpy.stack([page(*shape[2:], seed) for seed in range(1, shape[0] + 1)])
    want = session.run(None, {name: x})
    (folder / "model.onnx").unlink(missing_ok=True)
    (folder / "model.onnx").symlink_to(path)
    graph = onnx.GraphProto()
    graph.initializer.append(numpy_helper.from_array(x, name))
    (folder / "given.pb").write_bytes(graph.SerializeToString())
    mine, theirs = [], []
    for _ in range(7 if most else 1):
        theirs.append(seconds_of(session, name, x, most))
        done = subprocess.run([runner, "--seconds", str(most or 0.01), str(folder)], capture_output=True, text=True, check=True)
        line = json.loads(done.stdout.splitlines()[-1])
        if "error" in line:
            return {"note": line["error"]}
        mine.append(line["seconds"])
    graph = onnx.GraphProto.FromString((folder / "results.pb").read_bytes())
    results = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    worst = max(difference(results[o.name], y, 1.0) for o, y in zip(session.get_outputs(), want))
    return {"difference": worst, "mine": statistics.median(mine), "theirs": statistics.median(theirs)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--page", type=pathlib.Path, help="the page that gets the table")
    given = parser.parse_args()
    runner = os.path.join(os.environ.get("SAMEBYTES_BUILD", TOP / "build"), "onnx_network_runner")
    times = ["here", "ONNX Runtime", "speed"] if given.seconds else []
    lines = ["| " + " | ".join(["network", "input", "largest difference", *times]) + " |", "|" + "---|" * (3 + len(times))]
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        for part, shapes in NETWORKS.items():
            (path,) = pathlib.Path(rapidocr_onnxruntime.__file__).parent.glob(f"models/*_{part}_*.onnx")
            for shape in shapes:
                row = measure(path, shape, given.seconds, runner, pathlib.Path(folder))
                is_good = is_good and row.get("difference", 1) <= LIMIT
                size = " x ".join(map(str, shape))
                cells = [path.stem, size, row.get("note") or f"{row['difference']:.0e}"]
                if times and "note" not in row:
                    cells += [f"{row['mine'] * 1e3:.2f} ms", f"{row['theirs'] * 1e3:.2f} ms",
                              f"{row['theirs'] / row['mine']:.2f}"]
                lines.append("| " + " | ".join(cells) + " |")
                print(lines[-1], file=sys.stderr, flush=True)
    print("\n".join(lines))
    if given.page:
        write_between(given.page, MARKERS, "\n".join(lines))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
