#!/usr/bin/env python3
"""What PyTorch makes of the operations of measures/gpu_rates.cpp, under the same names, and the two side by side.

    benchmarks/gpu_rates.py > torch.jsonl            PyTorch on the GPU that it finds: one line of JSON for each row
    benchmarks/gpu_rates.py --compare ours.jsonl torch.jsonl      a Markdown table
"""

import argparse
import json
import statistics
import sys
import time

ROUNDS, ROUND_SECONDS = 7, 0.03


def rows(torch, shrink):
    """(name, work, unit, make): make() gives a function that enqueues the operation."""
    import torch.nn.functional as F

    def values(*shape, dtype, grad=False):
        return (torch.rand(*shape, device="cuda") * 2 - 1).to(dtype).requires_grad_(grad)

    types = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
    lines, width = 65536 // shrink, 1024
    passes = (
        ("negate", 2, torch.neg),
        ("gelu", 2, F.gelu),
        ("sum", 1, torch.sum),
        ("sum of rows", 1, lambda x: x.sum(1)),
        ("sum of columns", 1, lambda x: x.sum(0)),
        ("softmax", 2, lambda x: x.softmax(1)),
        ("layer_norm", 2, lambda x: F.layer_norm(x, (width,))),
        ("transpose", 2, lambda x: x.t().contiguous()),
    )
    for word in ("f32", "bf16"):
        dtype = types[word]
        moved = lines * width * (4 if word == "f32" else 2)
        for name, factor, op in passes:

            def make(op=op, dtype=dtype):
                x = values(lines, width, dtype=dtype)
                return lambda: op(x)

            yield f"pass {name} {word}", factor * moved, "GB/s", make

        def make_add(dtype=dtype):
            x, y = values(lines, width, dtype=dtype), values(lines, width, dtype=dtype)
            return lambda: x + y

        yield f"pass add {word}", 3 * moved, "GB/s", make_add

    products = (
        ("8192", 8192, 8192, 8192, 0, 0),
        ("4096", 4096, 4096, 4096, 0, 0),
        ("4096 A'B", 4096, 4096, 4096, 1, 0),
        ("4096 AB'", 4096, 4096, 4096, 0, 1),
        ("2048", 2048, 2048, 2048, 0, 0),
        ("1024", 1024, 1024, 1024, 0, 0),
        ("8192x768x3072", 8192, 768, 3072, 0, 1),
        ("768x3072x8192", 768, 3072, 8192, 1, 0),
    )
    for word, dtype in types.items():
        for name, m, n, k, a, b in products:
            m, n, k = m // shrink, n // shrink, k // shrink

            def make(m=m, n=n, k=k, a=a, b=b, dtype=dtype):
                left = values(*((k, m) if a else (m, k)), dtype=dtype)
                right = values(*((n, k) if b else (k, n)), dtype=dtype)
                return lambda: (left.t() if a else left) @ (right.t() if b else right)

            yield f"product {name} {word}", 2 * m * n * k, "TFLOP/s", make

    for word in ("f32", "bf16"):
        dtype = types[word]
        n, size, channels = 128 // shrink, 56, 64
        work = 2 * n * size * size * channels * channels * 9

        def convolution(grad, dtype=dtype, n=n):
            last = torch.channels_last
            x = values(n, channels, size, size, dtype=dtype).to(memory_format=last).requires_grad_(grad == "x")
            w = values(channels, channels, 3, 3, dtype=dtype).to(memory_format=last).requires_grad_(grad == "w")
            if not grad:
                return lambda: F.conv2d(x, w, padding=1)
            dy = torch.ones_like(F.conv2d(x, w, padding=1))
            which = [grad == "x", grad == "w", False]
            return lambda: torch.ops.aten.convolution_backward(
                dy, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, which
            )

        for name, grad in (("", ""), (", by input", "x"), (", by filter", "w")):
            yield (
                f"conv2d 128x56x56x64 3x3{name} {word}",
                work,
                "TFLOP/s",
                lambda grad=grad, make=convolution: make(grad),
            )

        batch, length, heads, depth = 8, 2048 // shrink, 16, 64
        scores = batch * heads * length * length * depth / 2

        def attention(grad, dtype=dtype, length=length):
            q, k, v = (values(batch, heads, length, depth, dtype=dtype, grad=grad) for _ in range(3))

            def run():
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                return torch.autograd.grad(y.sum(), (q, k, v))[0] if grad else y

            return run

        for name, factor, grad in (("", 4, False), (", with gradient", 18, True)):
            yield (
                f"attention 8x2048x16x64 causal{name} {word}",
                factor * scores,
                "TFLOP/s",
                lambda grad=grad, make=attention: make(grad),
            )


def measure(shrink, part):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True

    for name, work, unit, make in rows(torch, shrink):
        if part not in name:
            continue
        try:
            run = make()

            def many(n, run=run):
                begin = time.perf_counter()
                for _ in range(n):
                    run()
                torch.cuda.synchronize()
                return time.perf_counter() - begin

            first = many(1)
            many(2)
            times = min(200, max(1, int(ROUND_SECONDS / many(1))))
            each = statistics.median(many(times) / times for _ in range(ROUNDS))
            rate = work / each / (1e9 if unit == "GB/s" else 1e12)
            print(json.dumps(dict(name=name, unit=unit, rate=rate, ms=1e3 * each, first_ms=1e3 * first)), flush=True)
        except Exception as error:
            print(json.dumps(dict(name=name, error=str(error)[:200])), flush=True)


def read(path):
    with open(path) as file:
        return {row["name"]: row for row in map(json.loads, file)}


def compare(ours, theirs):
    print("| operation | unit | Samebytes | PyTorch | ratio |\n|---|---|---:|---:|---:|")
    for name, row in ours.items():
        other = theirs.get(name, {})
        if "rate" not in row or "rate" not in other:
            print(f"| {name} | | {row.get('error', '')} | {other.get('error', '')} | |")
            continue
        print(f"| {name} | {row['unit']} | {row['rate']:.4g} | {other['rate']:.4g} | {row['rate'] / other['rate']:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", nargs=2, metavar=("OURS", "TORCH"))
    parser.add_argument("--shrink", type=int, default=0, metavar="N", help="sizes by 2^-N, for smaller devices")
    parser.add_argument("part", nargs="?", default="", help="rows whose name contains this")
    options = parser.parse_args()
    if options.compare:
        compare(*map(read, options.compare))
    else:
        measure(1 << options.shrink, options.part)


if __name__ == "__main__":
    sys.exit(main())
