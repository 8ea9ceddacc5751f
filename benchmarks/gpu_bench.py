#!/usr/bin/env python3
"""Training on a GPU: `samebytes bench` beside PyTorch, eager and compiled, in f32 (no TF32) and in bf16.

Every side of every workload is a worker process (peers/worker.py, `samebytes bench --serve`). First all of them are
made, as many at a time as the machine has cores, since importing and compiling take most of the time; then, with all of
them idle, one after the other takes a turn. --budget bounds the whole: who is not ready in time is left out, and turns
get shorter. PyTorch loops over one batch that lies on the GPU; ours has its loader on.

    benchmarks/gpu_bench.py > bench.jsonl                a line of JSON for each side as it is measured
    benchmarks/gpu_bench.py --table bench.jsonl          a Markdown table of them
    benchmarks/gpu_bench.py --device cpu --workloads mlp --seconds 0.2       PyTorch on the CPU, to see that it runs

Run it with the Python that has PyTorch.
"""

import argparse
import json
import os
import shlex
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed, wait

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "peers"))
sys.dont_write_bytecode = True

from compare_report import rate  # noqa: E402
from compare_trials import IMAGES  # noqa: E402
from compare_worker import Failed, Worker  # noqa: E402
from workloads import WORKLOADS  # noqa: E402

OURS = "samebytes"
DTYPES = ("f32", "bf16")
VARIANTS = ("eager", "eager+channels_last", "compile", "compile+channels_last", "graphs", "graphs+channels_last")
KINDS = {"eager": "eager", "compile": "compiled", "graphs": "CUDA graphs"}  # columns of the table
FIRST_SECONDS = 20  # that the first side of all is alone, at most
PREPARE_SHARE = 0.55  # of the budget, at most, until the first turn
TURN_COST, TURN_PATIENCE = 0.2, 15  # seconds of a turn beside the measured ones; beyond them, for a side that hangs
SETTLE_SECONDS = 0.2  # before a turn, for the clocks of a GPU that was idle, and cuDNN's choices
LEAST_SECONDS = 0.3


class Side:
    """One workload in one dtype: ours (no variant), or PyTorch's in a variant."""

    def __init__(self, workload, dtype, variant):
        self.workload, self.dtype, self.variant = workload, dtype, variant
        self.worker, self.made = None, None

    def row(self, **values):
        name = f"torch {self.variant}" if self.variant else OURS
        return {"workload": self.workload.name, "dtype": self.dtype, "side": name, "variant": self.variant, **values}

    def command(self, options):
        workload = self.workload
        if not self.variant:
            command = [options.samebytes, "bench", *workload.ours, "--batch", str(workload.batch), "--serve"]
            return command + ["--precision", self.dtype] * (self.dtype != "f32") + shlex.split(options.ours)
        words = [self.variant, "passive"] + ["cuda"] * (options.device == "cuda") + ["bf16"] * (self.dtype == "bf16")
        peer = os.path.join(FOLDER, "peers", "torch_peer.py")
        return [sys.executable, peer, "--workload", workload.name, "--variant", "+".join(words)]

    def prepare(self, options, environment, end):
        """The process, the model, its first step and the warm-up. Raises Failed."""

        def left():
            if time.monotonic() >= end:
                raise Failed("not ready in time")
            return end - time.monotonic()

        try:
            left()
            self.worker = Worker(self.command(options), environment)
            self.worker.ready = self.worker.answer(left())
            made = self.worker.tell("train", left())
            if made["parameters"] != self.workload.parameters:
                raise Failed(f"{made['parameters']} parameters, {self.workload.parameters} expected")
            self.made = {key: made.get(key) for key in ("first_step_seconds", "parameters", "batch")}
            self.made["first_loss"] = made.get("loss")
            for key in ("version", "device", "driver", "memory_mode", "personality"):
                if key in self.worker.ready:
                    self.made[key] = self.worker.ready[key]
        except Exception:
            self.stop()
            raise

    def turn(self, seconds):
        self.worker.tell(f"run {SETTLE_SECONDS}", TURN_PATIENCE)
        return self.worker.tell(f"run {seconds:.3f}", seconds + TURN_PATIENCE)

    def stop(self):
        if self.worker:
            self.worker.stop()
            self.worker = None


def sides_of(options):
    """In the order of their turns."""
    sides = []
    for name in options.workloads:
        for dtype in options.dtypes:
            variants = [v for v in options.variants if "channels_last" not in v or name in IMAGES]
            sides += [Side(WORKLOADS[name], dtype, variant) for variant in ["", *variants]]
    return sides


def say(begin, text):
    print(f"{time.monotonic() - begin:5.1f} s  {text}", file=sys.stderr, flush=True)


def emit(row):
    print(json.dumps(row), flush=True)


def prepare_all(options, sides, end):
    """Gives the sides that are ready; the others have their line of JSON."""
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    environment.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(max(1, options.parallel // 4)))
    # Ours and eager ones are soon ready; of those that are compiled, the largest takes longest.
    order = sorted(sides, key=lambda s: (bool(s.variant), "eager" not in s.variant, -s.workload.parameters))
    order.insert(0, order.pop(len(options.workloads) * len(options.dtypes) - 1))  # our smallest
    with ThreadPoolExecutor(options.parallel) as pool:
        running = {}
        for side in order:
            running[pool.submit(side.prepare, options, environment, end)] = side
            if len(running) == 1:  # what the first of ours measures of the device, the others read
                wait(running, FIRST_SECONDS)
        for done in as_completed(running):
            if done.exception():
                emit(running[done].row(error=str(done.exception())[:300]))
    return [side for side in sides if side.made]


def measure(options):
    begin = time.monotonic()
    sides = sides_of(options)
    say(begin, f"{len(sides)} sides, {options.parallel} prepared at a time")
    try:
        ready = prepare_all(options, sides, begin + PREPARE_SHARE * options.budget)
        say(begin, f"{len(ready)} are ready")
        for i, side in enumerate(ready):
            left = begin + options.budget - time.monotonic()
            share = left / (len(ready) - i) - TURN_COST - SETTLE_SECONDS
            if left < LEAST_SECONDS:
                emit(side.row(error="no time was left", **side.made))
                continue
            try:
                emit(side.row(**side.turn(max(LEAST_SECONDS, min(options.seconds, share))), **side.made))
            except Failed as failure:
                emit(side.row(error=str(failure)[:300], **side.made))
                side.stop()
        say(begin, "all were measured")
    finally:
        with ThreadPoolExecutor(len(sides)) as pool:
            for side in sides:
                pool.submit(side.stop)


def speed(row):
    return row.get("samples_per_second") or 0


def table(rows):
    kinds = [k for k in KINDS if any(k in row["variant"] for row in rows)]
    heads = ["workload", "dtype", "Samebytes"] + [f"PyTorch {KINDS[k]}" for k in kinds] + ["ratio", "copied"]
    lines = ["| " + " | ".join(heads) + " |", "|---|---|" + "---:|" * (len(heads) - 2)]
    measured = {(row["workload"], row["dtype"]) for row in rows}
    for name, dtype in [(w, d) for w in WORKLOADS for d in DTYPES if (w, d) in measured]:
        here = [row for row in rows if (row["workload"], row["dtype"]) == (name, dtype)]
        ours = next((row for row in here if not row["variant"]), {})
        cells, best = [name, dtype, rate(ours.get("samples_per_second"))], 0
        for kind in kinds:
            fastest = max((row for row in here if kind in row["variant"]), key=speed, default={})
            mark = " *" if speed(fastest) and "channels_last" in fastest["variant"] else ""
            cells.append(rate(fastest.get("samples_per_second")) + mark)
            best = max(best, speed(fastest))
        cells.append(f"{speed(ours) / best:.2f}" if best and speed(ours) else "")
        copied = ours.get("bytes_copied_per_step")
        cells.append("" if copied is None else f"{copied:.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    notes = ["Training, samples/s; * with channels last; ratio: to PyTorch's best; copied: our bytes per step."]
    about = next((row for row in rows if "device" in row), None)
    theirs = next((row["version"] for row in rows if row["variant"] and "version" in row), "")
    if about:
        notes.append(f"{about['device']}, driver {about['driver']}, {about['memory_mode']} memory; PyTorch {theirs}.")
    notes += [f"- {r['workload']} {r['dtype']}, {r['side']}: {r['error']}" for r in rows if "error" in r]
    return "\n".join([*lines, "", *notes])


def words(known):
    def parse(text):
        for word in text.split(","):
            if word not in known:
                raise argparse.ArgumentTypeError(f"there is no {word}; there are {', '.join(known)}")
        return text.split(",")

    return parse


def main():
    cores = len(os.sched_getaffinity(0))
    built = os.path.join(os.path.dirname(FOLDER), "build", "samebytes")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--workloads", type=words(list(WORKLOADS)), default=list(WORKLOADS), metavar="A,B", help="default: all")
    add("--dtypes", type=words(DTYPES), default=DTYPES, metavar="A,B", help="default: f32,bf16")
    add("--variants", type=words(VARIANTS), default=VARIANTS[:4], metavar="A,B",
        help=f"of PyTorch, from {', '.join(VARIANTS)}; default: the first four")  # fmt: skip
    add("--seconds", type=float, default=2, metavar="S", help="of a turn; default: 2")
    add("--budget", type=float, default=190, metavar="S", help="for everything; default: 190")
    add("--parallel", type=int, default=cores, metavar="N", help="sides prepared at a time; default: all cores")
    add("--device", choices=("cuda", "cpu"), default="cuda", help="PyTorch's; default: cuda")
    add("--samebytes", default=built, metavar="PATH", help="default: build/samebytes")
    add("--ours", default="", metavar="WORDS", help="more options of `samebytes bench`, such as --ours=--fixed-batch")
    add("--table", metavar="FILE.jsonl", help="measure nothing: the table of an earlier run")
    options = parser.parse_args()
    if options.table:
        with open(options.table) as file:
            print(table([json.loads(line) for line in file if line.endswith("}\n")]))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the workers are stopped on the way out
    measure(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
