#!/usr/bin/env python3
"""The ledger of memory of one training step: a row for each technique, alone and together.

    benchmarks/memory_lab.py                              # GPT-2 medium, batch 2, context 1024: every row
    benchmarks/memory_lab.py --rows baseline,all --steps 4
    benchmarks/memory_lab.py --time                       # times too: each step in turn with one of the baseline
    benchmarks/memory_lab.py --size nano --context 64     # a minute, to see that everything runs
    benchmarks/memory_lab.py --plan                       # no step: what is planned, in seconds
    benchmarks/memory_lab.py --from FILE.json             # the table of an earlier run
    benchmarks/memory_lab.py --list

Planned is the peak of the exact plan (`samebytes estimate`). Each row then is a process of its own (`samebytes bench
gpt --serve`), and measured is what it has grown by at its largest, as the kernel counts it from outside (VmHWM of
/proc/PID/status, less what lay in memory when the device was open and nothing else was there). All steps see one
batch, so that its loss must fall; the loss is that before the first step and that before the last one.

Bytes per parameter are those that a technique leaves: weights 4, gradients 4 (released: a segment of them, 0 here),
Adam's two moments 8 (in bf16: 4), 16-bit working copies 2, whose gradients are 2. Kernels that the driver's cache does
not have yet are compiled in the process, which adds 0.1 GB or so: for small models run it twice and take the second
table. A row whose option the command does not have is left out, and said so.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

from compare_worker import Failed, Worker

ROOT = pathlib.Path(__file__).resolve().parent.parent
LONGEST = 3600  # seconds, for an answer

RELEASE = ["--release-gradients", "--clip-norm", "0"]
MOMENTS = ["--moments", "bf16"]
BF16 = ["--precision", "bf16"]
BLOCKS = ["--gradient-checkpointing", "block"]
HEAD = ["--head-chunks", "8"]
WEIGHTS = ["--weights", "bf16"]
# name: what it adds to the command; weights, gradients, moments in bytes per parameter.
ROWS = {
    "baseline": (["--recompute", "0"], (4, 4, 8)),
    "as it is": ([], (4, 4, 8)),
    "precision f16": (["--precision", "f16"], (6, 2, 8)),
    "precision bf16": (BF16, (6, 2, 8)),
    "checkpointing sqrt": (["--gradient-checkpointing", "sqrt"], (4, 4, 8)),
    "checkpointing block": (BLOCKS, (4, 4, 8)),
    "micro-batch 1": (["--micro-batch", "1"], (4, 4, 8)),
    "release": (RELEASE, (4, 0, 8)),
    "moments": (MOMENTS, (4, 4, 4)),
    "chunked head": (HEAD, (4, 4, 8)),
    "weights bf16": (BF16 + WEIGHTS, (2, 2, 8)),
    "document's three": (BF16 + BLOCKS + ["--micro-batch", "1"], (6, 4, 8)),
    "release+moments": (RELEASE + MOMENTS, (4, 0, 4)),
    "all bf16": (RELEASE + MOMENTS + BLOCKS + BF16, (6, 0, 4)),
    "all": (RELEASE + MOMENTS + BLOCKS, (4, 0, 4)),
    "all+head": (RELEASE + MOMENTS + BLOCKS + HEAD, (4, 0, 4)),
    "all+weights": (RELEASE + MOMENTS + BLOCKS + BF16 + WEIGHTS, (2, 0, 4)),
    "all+head+weights": (RELEASE + MOMENTS + BLOCKS + HEAD + BF16 + WEIGHTS, (2, 0, 4)),
}


def status_bytes(pid, key):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{key}:\s+(\d+) kB", text, re.MULTILINE)[1]) * 1024


class Lab:
    def __init__(self, arguments):
        self.arguments = arguments
        self.form = ["gpt", "--size", arguments.size, "--context", str(arguments.context)]
        self.form += ["--batch", str(arguments.batch)]
        self.help = self.command(["bench", "--help"])
        self.estimate_help = self.command(["estimate", "--help"])
        self.reference = None  # the baseline, which stays in memory to take turns with the others

    def command(self, words):
        return subprocess.run([self.arguments.binary, *words], capture_output=True, text=True, check=True).stdout

    def planned(self, options):
        if any(o.startswith("--") and o not in self.estimate_help for o in options):
            return None  # an older command
        try:
            return json.loads(self.command(["estimate", *self.form, *options, "--json"]))["exact"]["total"]
        except subprocess.CalledProcessError as error:
            raise Failed(error.stderr.strip().splitlines()[0]) from None

    def start(self, options):
        command = [self.arguments.binary, "bench", *self.form, *options, "--fixed-batch", "--serve", "--quiet"]
        worker = Worker(command, os.environ)
        worker.ready = worker.answer(LONGEST)
        return worker

    def grown(self, options):
        """What one row says of itself: bytes that it has grown by at most, parameters, losses."""
        worker = self.start(options)
        try:
            pid = worker.process.pid
            idle = status_bytes(pid, "VmRSS")
            # The kernel counts the largest from here on; where it may not be set back, the start of a process is
            # smaller than a model anyway.
            try:
                pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
            except OSError:
                pass
            first = worker.tell("train 2", LONGEST)
            last = dict(first, loss=first.get("last_loss"))
            turns = []
            for _ in range(self.arguments.steps):
                baseline = self.baseline_seconds()
                last = worker.tell("steps 1", LONGEST)
                turns.append((baseline, last["seconds"] / last["steps"]))
            return {
                "measured_bytes": status_bytes(pid, "VmHWM") - idle,
                "ledger_bytes": last.get("ledger_peak_bytes"),
                "parameters": first["parameters"],
                "first_loss": first["loss"],
                "last_loss": last["loss"],
                "turns": turns,
            }
        finally:
            worker.stop()

    def baseline_seconds(self):
        if not self.arguments.time:
            return None
        if not self.reference:
            self.reference = self.start(ROWS["baseline"][0])
            self.reference.tell("train 1", LONGEST)
        last = self.reference.tell("steps 1", LONGEST)
        return last["seconds"] / last["steps"]

    def stop(self):
        if self.reference:
            self.reference.stop()

    def row(self, name):
        options, (weights, gradients, moments) = ROWS[name]
        missing = [o for o in options if o.startswith("--") and o not in self.help]
        if missing:
            raise Failed(f"left out: this command has no {', '.join(missing)}")
        row = {"row": name, "options": options, "weights": weights, "gradients": gradients, "moments": moments,
               "bytes_per_parameter": weights + gradients + moments, "planned_bytes": self.planned(options)}
        if not self.arguments.plan:
            row.update(self.grown(options))
        return row


def print_table(rows, heading):
    def share(row, key):
        base = next((r for r in rows if r["row"] == "baseline"), {})
        if row.get(key) is None:
            return "", ""
        text = f"{row[key] / 1e9:.2f} GB"
        return text, f"{100 * (row[key] / base[key] - 1):+.1f} %" if base.get(key) else ""

    print(heading + "\n")
    print("| row | weights, gradients, moments: bytes a parameter | planned | | measured | | loss | time of a step |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        split = f"{row['weights']} + {row['gradients']} + {row['moments']} = {row['bytes_per_parameter']}"
        loss = f"{row['first_loss']:.3f} to {row['last_loss']:.3f}" if row.get("last_loss") else ""
        turns = [(baseline, own) for baseline, own in row.get("turns", []) if baseline]
        ratio = ""
        if turns:
            ratio = f"{statistics.median(own for _, own in turns):.3g} s"
            if row["row"] != "baseline":
                ratio += f", x {statistics.median(own / baseline for baseline, own in turns):.2f}"
        print(f"| {row['row']} | {split} | {' | '.join(share(row, 'planned_bytes'))} | "
              f"{' | '.join(share(row, 'measured_bytes'))} | {loss} | {ratio} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "build" / "samebytes"))
    parser.add_argument("--size", default="medium", choices=["nano", "small", "medium"])
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--rows", help="a comma list, first words will do; default: all of them")
    parser.add_argument("--steps", type=int, default=2, help="steps after the first two; default: 2")
    parser.add_argument("--time", action="store_true", help="each of these in turn with one of a baseline beside it")
    parser.add_argument("--plan", action="store_true", help="plan alone; nothing runs")
    parser.add_argument("--json", metavar="FILE", help="the rows as JSON; rows that FILE has already are kept")
    parser.add_argument("--from", dest="earlier", metavar="FILE", help="print an earlier run")
    parser.add_argument("--list", action="store_true", help="print the rows and end")
    arguments = parser.parse_args()
    heading = f"gpt {arguments.size}, context {arguments.context}, batch {arguments.batch}"
    if arguments.list:
        for name, (options, _) in ROWS.items():
            print(f"{name:<22} {' '.join(options)}")
        return 0
    if arguments.earlier:
        earlier = json.loads(pathlib.Path(arguments.earlier).read_text())
        print_table(earlier["rows"], earlier["what"])
        return 0
    names = []
    for wanted in arguments.rows.split(",") if arguments.rows else ROWS:
        found = [wanted] if wanted in ROWS else [name for name in ROWS if name.startswith(wanted)]
        if not found:
            parser.error(f"there is no row {wanted}; there are {', '.join(ROWS)}")
        names += found
    if not os.access(arguments.binary, os.X_OK):
        parser.error(f"{arguments.binary} is not there; build it, or name it with --binary")

    lab, rows = Lab(arguments), []
    file = pathlib.Path(arguments.json) if arguments.json else None
    if file and file.exists():
        rows = [row for row in json.loads(file.read_text())["rows"] if row["row"] not in names]
    for name in names:
        try:
            rows.append(lab.row(name))
        except Failed as failure:
            print(f"{name}: {failure}", file=sys.stderr)
            continue
        found = rows[-1].get("measured_bytes") or rows[-1]["planned_bytes"] or 0
        print(f"{name}: {found / 1e9:.2f} GB", file=sys.stderr, flush=True)
        rows.sort(key=lambda row: list(ROWS).index(row["row"]) if row["row"] in ROWS else len(ROWS))
        if file:
            file.write_text(json.dumps({"what": heading, "rows": rows}, indent=1) + "\n")
    lab.stop()
    print_table(rows, heading)
    return 0


if __name__ == "__main__":
    sys.exit(main())
