#!/usr/bin/env python3
"""Memory and time of training in f32, f16 and bf16, workload by workload.

    benchmarks/precision_lab.py                             # transit, resnet20, gpt
    benchmarks/precision_lab.py --workloads gpt-small       # gpt of the size small
    benchmarks/precision_lab.py --workloads transit --rounds 7
    benchmarks/precision_lab.py --from FILE.json            # the table of an earlier run

The precisions of a workload are processes (`samebytes bench WORKLOAD --serve`) that wait for their turns, so that a
machine which gets slower does so for all of them: a round is one turn of each. Time is the median step of a turn and
the ratio that of one round, of which the table has the median, the least and the largest. Memory is what the ledger
has at its peak (arrays, gradients, moments, batches: `ledger`), and what the process has grown by at its largest
(`resident`, with the kernels that the driver loads). Nothing else on the machine should be busy.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys

from compare_worker import Worker

ROOT = pathlib.Path(__file__).resolve().parent.parent
LONGEST = 900  # seconds, for an answer
PRECISIONS = ("f32", "f16", "bf16")
WORKLOADS = {"transit": ["transit"], "resnet20": ["resnet20"], "gpt": ["gpt"], "gpt-small": ["gpt", "--size", "small"],
             "mlp": ["mlp"], "cnn": ["cnn"]}
USUAL = ("transit", "resnet20", "gpt")


def measure(arguments, workload):
    workers, turns = {}, {precision: [] for precision in PRECISIONS}
    try:
        for precision in PRECISIONS:
            command = [arguments.binary, "bench", *WORKLOADS[workload], "--precision", precision]
            workers[precision] = Worker(command + ["--serve", "--quiet"], os.environ)
            workers[precision].ready = workers[precision].answer(LONGEST)
            workers[precision].tell("train", LONGEST)
        for _ in range(arguments.rounds):
            for precision, worker in workers.items():
                turns[precision].append(worker.tell(f"run {arguments.seconds}", LONGEST))
        rows = []
        for precision, worker in workers.items():
            ratios = [own["step_ms_p50"] / base["step_ms_p50"] for own, base in zip(turns[precision], turns["f32"])]
            rows.append({
                "workload": workload,
                "precision": precision,
                "ledger_bytes": turns[precision][-1]["ledger_peak_bytes"],
                "resident_bytes": worker.tell("memory", LONGEST)["peak_bytes"],
                "step_ms": statistics.median(turn["step_ms_p50"] for turn in turns[precision]),
                "time_ratio": [statistics.median(ratios), min(ratios), max(ratios)],
                "launches": turns[precision][-1]["launches_per_step"],
            })
        return rows
    finally:
        for worker in workers.values():
            worker.stop()


def print_table(rows):
    print("| workload | precision | ledger | | resident | | ms a step | time of f32's |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        base = next(r for r in rows if r["workload"] == row["workload"] and r["precision"] == "f32")
        median, least, most = row["time_ratio"]
        memory = [f"{row[key] / 1e6:.1f} MB | {100 * row[key] / base[key]:.0f} %" for key in ("ledger_bytes", "resident_bytes")]
        print(f"| {row['workload']} | {row['precision']} | {' | '.join(memory)} | {row['step_ms']:.1f} | "
              f"{median:.2f} ({least:.2f} .. {most:.2f}) |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "build" / "samebytes"))
    parser.add_argument("--workloads", default=",".join(USUAL))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1, help="of a turn")
    parser.add_argument("--json", metavar="FILE", help="the rows as JSON; workloads that FILE has already are kept")
    parser.add_argument("--from", dest="earlier", metavar="FILE", help="print an earlier run")
    arguments = parser.parse_args()
    if arguments.earlier:
        print_table(json.loads(pathlib.Path(arguments.earlier).read_text()))
        return 0
    names = arguments.workloads.split(",")
    for name in names:
        if name not in WORKLOADS:
            parser.error(f"there is no workload {name} here; there are {', '.join(WORKLOADS)}")
    file = pathlib.Path(arguments.json) if arguments.json else None
    rows = json.loads(file.read_text()) if file and file.exists() else []
    rows = [row for row in rows if row["workload"] not in names]
    for name in names:
        rows += measure(arguments, name)
        if file:
            file.write_text(json.dumps(rows, indent=1) + "\n")
    print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
