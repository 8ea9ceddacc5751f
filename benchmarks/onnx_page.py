"""What the scripts that compare ONNX models share: where the checkout lies, a measure, tables in pages."""

import pathlib

import numpy

TOP = pathlib.Path(__file__).resolve().parent.parent


def difference(got, want, floor=0.0):
    """The largest difference, divided by the largest value, or by `floor` where that is larger."""
    if got.shape != want.shape:
        return float("inf")
    if want.size == 0:
        return 0.0
    scale = max(float(numpy.abs(want).max()), floor, 1e-30)
    return float(numpy.abs(got.astype(numpy.float64) - want).max()) / scale


def write_between(path, markers, text):
    page = path.read_text()
    first, last = (page.index(marker) for marker in markers)
    path.write_text(page[: first + len(markers[0])] + "\n\n" + text + "\n\n" + page[last:])
