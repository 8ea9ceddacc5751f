#!/usr/bin/env python3
"""docs/comparison.md: what sharing memory gives, measured on this machine, beside what is known of others.

    benchmarks/comparison_page.py                                   # measures, writes JSON and page; ten minutes
    benchmarks/comparison_page.py --from benchmarks/baseline/comparison.json   # the page of an earlier run
    benchmarks/comparison_page.py --workloads mlp --rounds 1 --steps 10        # a minute, to see that everything runs

Every pair is measured in turns (A B A B ...), each turn a process of `samebytes bench WORKLOAD --mode train`; a row has
the medians, and the median of the ratios. What this machine does not have stays blank.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

import compare_report
from compare_report import rate

ROOT = pathlib.Path(__file__).resolve().parent.parent
# what, options and environment of the one side and of the other
PAIRS = [
    ("shared memory, and copies of everything", ([], {}), ([], {"SAMEBYTES_MEMORY": "copy"})),
    ("two slots of batches, and one", ([], {}), (["--slots", "1"], {})),
    ("the whole device, and two halves of it", ([], {}), (["--split-device", "1,1"], {})),
    ("all threads, and PoCL's single one", ([], {}), ([], {"POCL_DEVICES": "basic"})),
]
STEPS = {"mlp": 2000, "cnn": 250, "transit": 70}
# Of the brief's machines, which nobody here has: sizes are the maker's, speeds stay blank.
OTHERS = [("Apple M4, 16 GB, 120 GB/s", "MLX, Metal"), ("Apple M4 Pro, 24 to 64 GB, 273 GB/s", "MLX, Metal")]
# Where the bytes of an array lie, by the projects' own documentation.
FRAMEWORKS = [
    ("Samebytes", "yes, SVM", "yes; the ledger counts each copy", "any OpenCL device"),
    ("MLX", "yes, on Apple silicon", "yes", "Apple silicon; CPU and CUDA on Linux"),
    ("PyTorch", "no: tensors belong to a device, `.to()` copies", "between host and CPU tensors", "many"),
    ("ONNX Runtime", "no: values belong to a provider's device", "of host arrays, by I/O binding", "many, inference"),
    ("OpenVINO", "no; remote tensors on Intel GPUs can be shared", "of host arrays, as tensors over them",
     "CPUs, Intel GPUs and NPUs, inference"),
    ("JAX", "no: arrays belong to a device", "on CPU, for aligned arrays (DLPack)", "many"),
    ("tinygrad", "no: buffers belong to a device", "no", "many, OpenCL too"),
]
PEER_OF = {name: side for side, name in compare_report.NAMES.items()}


def bench(arguments, words, environment):
    command = [arguments.binary, "bench", *words, "--json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no reason"])[0])
    return json.loads(done.stdout)


def measure_pair(arguments, workload, pair):
    what, *sides = pair
    steps = arguments.steps or STEPS.get(workload, 60)
    words = [workload, "--mode", "train", "--steps", str(steps)]
    rounds = [[bench(arguments, words + options, environment)[0] for options, environment in sides]
              for _ in range(arguments.rounds)]
    speeds = [[side["samples_per_second"] for side in turn] for turn in rounds]
    ratios = [a / b for a, b in speeds]
    return {
        "what": what,
        "workload": workload,
        "options": [" ".join([*(f"{k}={v}" for k, v in environment.items()), *options])
                    for options, environment in sides],
        "samples_per_second": [statistics.median(side) for side in zip(*speeds)],
        "bytes_copied_per_step": [side["bytes_copied_per_step"] for side in rounds[-1]],
        "memory_mode": [side["memory_mode"] for side in rounds[-1]],
        "ratio": statistics.median(ratios),
        "least": min(ratios),
        "largest": max(ratios),
    }


def measure(arguments):
    result = {
        "date": datetime.date.today().isoformat(),
        "command": " ".join(["benchmarks/comparison_page.py", *sys.argv[1:]]),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "rounds": arguments.rounds,
        "pairs": [],
        "blanks": [],
    }
    for pair in PAIRS:
        for workload in arguments.workloads:
            try:
                result["pairs"].append(measure_pair(arguments, workload, pair))
                print(f"{workload}: {pair[0]}: {result['pairs'][-1]['ratio']:.2f}", file=sys.stderr, flush=True)
            except RuntimeError as error:
                result["blanks"].append({"what": pair[0], "workload": workload, "reason": str(error)})
                print(f"{workload}: {pair[0]}: {error}", file=sys.stderr, flush=True)
    listed = json.loads(subprocess.run([arguments.binary, "devices", "--json"], capture_output=True, text=True).stdout)
    result["devices"] = listed["devices"]
    result["rows"] = bench(arguments, [*arguments.workloads, "--device", "all", "--largest-batch"], {})
    return result


def cell(value, text="{}"):
    return "" if value is None else text.format(value)


def pairs_table(result):
    lines = ["| | workload | samples/s | bytes copied a step | | samples/s | bytes copied a step | ratio |",
             "|---|---|---|---|---|---|---|---|"]
    for row in result["pairs"]:
        a, b = row["samples_per_second"]
        copied = [rate(v) if v >= 1000 else f"{v:.0f}" for v in row["bytes_copied_per_step"]]
        lines.append(f"| {row['what']} | {row['workload']} | {rate(a)} | {copied[0]} | `{row['options'][1]}` | "
                     f"{rate(b)} | {copied[1]} | {row['ratio']:.2f} ({row['least']:.2f} .. {row['largest']:.2f}) |")
    for row in result["blanks"]:
        lines.append(f"| {row['what']} | {row['workload']} | | | | | | {row['reason']} |")
    return lines


def devices_table(result):
    lines = ["| device | workload | mode | batch | samples/s | ms p50 | ms p95 | largest batch | GFLOP/s | of peak | "
             "GB/s | of stream | bytes copied a step | J/sample |", "|" + "---|" * 14]
    for row in result["rows"]:
        lines.append(" | ".join([
            f"| {row['device']}, {row['memory_mode']}, {row['personality']} kernels", row["workload"], row["mode"],
            str(row["batch"]), rate(row["samples_per_second"]),
            f"{row['step_ms_p50']:.2f}", f"{row['step_ms_p95']:.2f}",
            cell(row["largest_batch"]), f"{row['gflops']:.0f}", f"{100 * row['fraction_of_peak']:.0f} %",
            f"{row['gigabytes_per_second']:.1f}", f"{100 * row['fraction_of_bandwidth']:.0f} %",
            f"{row['bytes_copied_per_step']:.0f}", cell(row["joules_per_sample"], "{:.3g}")]) + " |")
    for name, runtime in OTHERS:
        lines.append(f"| {name} ({runtime}) |" + " |" * 13)
    kinds = {device["type"] for device in result["devices"] if not device["refused"]}
    if "gpu" not in kinds:
        lines.append("| a GPU: see [devices](devices.md) |" + " |" * 13)
    return lines


def frameworks_table(baseline):
    rows = {row["mode"]: row for row in baseline["rows"] if row["workload"] == "cnn"}
    lines = ["| | host and device share memory | without copies | runs on | cnn, training, samples/s | inference |",
             "|---|---|---|---|---|---|"]
    for name, unified, copies, platforms in FRAMEWORKS:
        side = PEER_OF[name]
        speeds = [compare_report.speed_cell(rows[mode], side) if mode in rows else "" for mode in ("train", "infer")]
        lines.append(f"| {name} | {unified} | {copies} | {platforms} | {speeds[0]} | {speeds[1]} |")
    return lines


def page(result, baseline):
    compared = json.loads(baseline.read_text())
    return "\n".join([
        "# Shared memory, compared",
        "",
        f"Written by `{result['command']}` from its JSON, {result['date']}; {result['machine']}.",
        "Blank cells were not measured.",
        "",
        "## One thing changed at a time",
        "",
        f"Training in f32, alternating, {result['rounds']} runs of each: medians, and the ratio of the first to the second side",
        "with its smallest and largest value.",
        "",
        *pairs_table(result),
        "",
        "## Devices",
        "",
        "From `samebytes bench --device all`. The largest batch is the largest whose step fits into memory. GB/s count the bytes",
        "that launches read and write, so cached bytes can exceed the stream. Joules are the processor's, if its counters are",
        "readable. GFLOP/s count the multiplications of plain convolutions, of which minimal filtering saves some, and the peak",
        "was measured at another time, so a share can exceed 100 %.",
        "",
        *devices_table(result),
        "",
        "## Frameworks",
        "",
        f"Speeds are from `benchmarks/baseline/{baseline.name}`, {compared['threads']} threads of one machine,",
        "alternating; method and fairness: [benchmarks/README.md](../benchmarks/README.md).",
        "",
        *frameworks_table(compared),
        "",
        "## Every workload",
        "",
        compare_report.table(compared),
        "",
    ])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "build" / "samebytes"))
    parser.add_argument("--workloads", default="mlp,cnn,transit", type=lambda text: text.split(","))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="of a turn; default: about two seconds of them")
    parser.add_argument("--json", default=str(ROOT / "benchmarks" / "baseline" / "comparison.json"), metavar="FILE")
    parser.add_argument("--page", default=str(ROOT / "docs" / "comparison.md"), metavar="FILE.md")
    parser.add_argument("--baseline", default=str(ROOT / "benchmarks" / "baseline" / "epyc_zen4_2_cores.json"))
    parser.add_argument("--from", dest="earlier", metavar="FILE", help="no measuring: the page of an earlier run")
    arguments = parser.parse_args()
    if arguments.earlier:
        result = json.loads(pathlib.Path(arguments.earlier).read_text())
    else:
        if not os.access(arguments.binary, os.X_OK):
            parser.error(f"{arguments.binary} is not there; build it, or name it with --binary")
        result = measure(arguments)
        pathlib.Path(arguments.json).write_text(json.dumps(result, indent=1) + "\n")
    pathlib.Path(arguments.page).write_text(page(result, pathlib.Path(arguments.baseline)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
