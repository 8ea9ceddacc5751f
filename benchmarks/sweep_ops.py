#!/usr/bin/env python3
"""Every public op at three sizes, forward and with its gradient, beside PyTorch on the same number of threads.

    benchmarks/sweep_ops.py                     all rows, about eight minutes
    benchmarks/sweep_ops.py --filter pool       rows whose name matches
    benchmarks/sweep_ops.py --write             also docs/sweep_ops.md
    benchmarks/sweep_ops.py --from FILE --again the rows below 0.5 of a file of --json, measured again

build/bench_sweep_ops has our side and says which shapes it takes; peers/torch_ops.py has the same rows in PyTorch
(eager; the faster of channels first and channels last). The two take turns, each for a few hundredths of a second, with
warm plans and caches; a ratio is PyTorch's time over ours, the median over the rounds. Forward runs under no_grad; a
gradient is forward and backward together, on both sides. Rows below 0.5 are measured again, with five times the rounds,
which tells a burst of other work from a slow kernel, and those that stay there are listed at the end.

Needs the environment that peers/setup.sh makes.
"""

import argparse
import datetime
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import textwrap
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(FOLDER)
BUILD = os.environ.get("SAMEBYTES_BUILD", os.path.join(ROOT, "build"))
PEERS = os.environ.get("SAMEBYTES_PEERS", os.path.join(BUILD, "peers"))
SIZES = ("small", "medium", "large")
PASSES = ("forward", "gradient")
BEHIND = 0.5
MORE_ROUNDS = 5  # times as many for a row below BEHIND
PAUSE_SECONDS = 0.002  # after a turn: threads that still spin go to sleep
MOST_IN_ROUND = 20000


def in_peers_environment():
    """Starts this script again with the interpreter that has PyTorch."""
    python = os.path.join(PEERS, "bin", "python")
    if os.path.realpath(sys.prefix) == os.path.realpath(PEERS) or not os.path.exists(python):
        return
    os.execv(python, [python, os.path.abspath(__file__), *sys.argv[1:]])


class Ours:
    """build/bench_sweep_ops --serve."""

    def __init__(self):
        command = [os.path.join(BUILD, "bench_sweep_ops"), "--serve"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.about = json.loads(self.process.stdout.readline())

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"bench_sweep_ops ended at: {line}")
        answer = json.loads(answer)
        if "fault" in answer:
            raise ValueError(answer["fault"])
        return answer

    def round(self, seconds, cpu):
        return self.ask(f"run {seconds}")["cpu_us" if cpu else "us"]


class Peer:
    """One row in PyTorch; the fastest way of those that the row knows."""

    def __init__(self, torch, ops, name, about, gradient):
        self.torch, self.gradient, self.count = torch, gradient, 0
        self.forward, prepare = ops.ROWS[name]
        self.wrt = about["wrt"]
        tensors = [self.tensor(i) for i in about["inputs"]]
        self.shape = ((about["outputs"],),) if name in ops.WITH_SHAPE else ()
        best = None
        ways = prepare(*tensors)
        for way in ways:
            self.choose(way)
            if len(ways) > 1:
                self.seconds(1)
                once = self.seconds(1)
                if best is None or once < best[0]:
                    best = (once, way)
        if best:
            self.choose(best[1])
        if self.outputs != about["outputs"]:
            raise ValueError(f"{name}: {self.outputs} elements in PyTorch, {about['outputs']} in ours")

    def tensor(self, about):
        torch, shape = self.torch, about["shape"]
        if about["dtype"] == "bool":
            return torch.rand(shape) > 0.5
        if about["dtype"] == "i32":
            return torch.randint(int(about["low"]), int(about["high"]) + 1, shape, dtype=torch.int32)
        if about["dtype"] == "u8":
            return torch.randint(0, 256, shape, dtype=torch.uint8)
        tensor = torch.rand(shape) * (about["high"] - about["low"]) + about["low"]
        whole = {about["low"], about["high"]} == {-1.0, 1.0}  # the targets of margins are signs
        return torch.sign(tensor) if whole else tensor

    def choose(self, way):
        torch = self.torch
        self.way = way
        for tensor in way[: self.wrt] if self.gradient else ():
            tensor.requires_grad_(True)
        with torch.set_grad_enabled(self.gradient):
            result = self.first(self.forward(*way, *self.shape))
        self.outputs = result.numel()
        self.dy = torch.rand_like(result) if self.gradient and result.numel() > 1 else None

    def first(self, result):
        return result if isinstance(result, self.torch.Tensor) else result[0]

    def call(self):
        result = self.forward(*self.way, *self.shape)
        if self.gradient:
            self.torch.autograd.grad(self.first(result), self.way[: self.wrt], self.dy)

    def seconds(self, count):
        with self.torch.set_grad_enabled(self.gradient):
            start = time.perf_counter()
            for _ in range(count):
                self.call()
            return time.perf_counter() - start

    def round(self, seconds, cpu):
        if self.count == 0:
            self.seconds(1)
            once, self.count = self.seconds(1), 1
            while once < seconds / 8 and self.count < MOST_IN_ROUND:
                self.count *= 2
                once = self.seconds(self.count)
            self.count = max(1, min(MOST_IN_ROUND, int(self.count * seconds / once)))
        before = time.process_time()
        each = self.seconds(self.count) / self.count
        return 1e6 * ((time.process_time() - before) / self.count if cpu else each)


def measure(ours, torch, ops, name, size, gradient, options, rounds):
    about = ours.ask(f"open {name} {size} {PASSES[gradient]}")
    if gradient and about["wrt"] == 0:
        return None
    try:
        peer = Peer(torch, ops, name, about, gradient)
    except ImportError as missing:
        print(f"{name}: no peer: {missing}", file=sys.stderr)
        return None
    mine, theirs = [], []
    for _ in range(rounds):
        mine.append(ours.round(options.seconds, options.cpu))
        theirs.append(peer.round(options.seconds, options.cpu))
        time.sleep(PAUSE_SECONDS)
    return {
        "row": name,
        "size": SIZES[size],
        "pass": PASSES[gradient],
        "ours_us": statistics.median(mine),
        "torch_us": statistics.median(theirs),
        "ratio": statistics.median(t / m for m, t in zip(mine, theirs)),
    }


class Bench:
    """Both sides, ready to measure."""

    def __init__(self, options):
        import torch

        sys.path.insert(0, os.path.join(FOLDER, "peers"))
        sys.dont_write_bytecode = True
        import torch_ops

        self.options, self.torch, self.ops, self.ours = options, torch, torch_ops, Ours()
        torch.set_num_threads(self.ours.about["threads"])
        torch.manual_seed(1)

    def measured(self, name, size, gradient, rounds):
        """A result; None if there is nothing to measure."""
        try:
            return measure(self.ours, self.torch, self.ops, name, size, gradient, self.options, rounds)
        except (ValueError, TypeError, RuntimeError) as fault:
            print(f"{name} {SIZES[size]} {PASSES[gradient]}: {fault}", flush=True)
            return None

    def all_rows(self):
        wanted = [name for name in names() if re.search(self.options.filter, name)]
        missing = [name for name in wanted if name not in self.ops.ROWS]
        if missing:
            raise SystemExit("peers/torch_ops.py lacks: " + ", ".join(missing))
        results = []
        for name in wanted:
            for size in map(int, self.options.sizes.split(",")):
                for gradient in (False, True):
                    result = self.measured(name, size, gradient, self.options.rounds)
                    if result is not None:
                        results.append(result)
                        print(line(result), flush=True)
        return results

    def again(self, results):
        """Measures those below BEHIND with more rounds, in place."""
        for i, result in enumerate(results):
            if result["ratio"] >= BEHIND:
                continue
            size, gradient = SIZES.index(result["size"]), PASSES.index(result["pass"]) == 1
            more = self.measured(result["row"], size, gradient, MORE_ROUNDS * self.options.rounds)
            if more is not None:
                results[i] = more
                print("again " + line(more), flush=True)


def names():
    listed = subprocess.run(
        [os.path.join(BUILD, "bench_sweep_ops"), "--list"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    return list(dict.fromkeys(line.split()[0] for line in listed.splitlines()))


def line(result):
    mark = "  <" if result["ratio"] < BEHIND else ""
    return (
        f"{result['row']:<38} {result['size']:<7} {result['pass']:<9} {result['ours_us']:>11.1f}"
        f" {result['torch_us']:>11.1f} {result['ratio']:>7.2f}{mark}"
    )


# What the rows that stay below have in common, by size, pass and name; the first that matches counts.
CAUSES = (
    ("small", ".*", "building the graph of several operations and looking up its plan: half a microsecond for each node, which is most of the "
     "row; PyTorch calls one function"),
    ("medium", "(forward|gradient) (operator|max|min|exp|log|sqrt|abs|square|sign|floor|relu|clip|leaky|tanh|sigmoid|astype|"
     "full|arange|broadcast_to|sum|mean|where|equal|less|greater|not_equal)",
     "the cost of a launch in addition to ten microseconds of work; queued calls write to several buffers in turn, whereas "
     "PyTorch reuses one that stays in the cache"),
    ("(medium|large)", "forward multinomial/replacement",
     "the kernel draws noise for each class and sample, whereas PyTorch searches a running sum"),
    ("(medium|large)", "(forward|gradient) (top_k|sort)", "the kernel makes keys from the values and gathers the values by index afterwards"),
    ("large", ".*", "the kernel itself"),
    ("medium", ".*", "launches with little work"),
)


def cause(result):
    text = f"{result['pass']} {result['row']}"
    return next(why for size, name, why in CAUSES if re.fullmatch(size, result["size"]) and re.match(name, text))


def page(report, behind):
    """docs/sweep_ops.md."""
    lines = [
        "# Every op beside PyTorch",
        "",
        "Written by `" + report["command"] + "`; `--from FILE --write` rewrites it from a `--json` file. A row is one",
        "public op called in one way; `tests/house/sweep_test.cpp` checks that every op has one. A ratio is PyTorch's time over",
        "ours: above 1, ours is faster. Gradient columns time the forward and backward pass together, on both sides. Rows below",
        f"{BEHIND} were measured again with {MORE_ROUNDS} times the rounds, and these figures count.",
        "",
        f"{report['date']}, {report['machine']}, {report['device']}, {report['threads']} threads each, PyTorch",
        f"{report['torch']} (eager), {report['clock']}. The geometric mean of {len(report['results'])} ratios is"
        f" {mean_of(report['results']):.2f}; {len(behind)} {'is' if len(behind) == 1 else 'are'} below {BEHIND}.",
        "",
        "| row | small: forward | gradient | medium: forward | gradient | large: forward | gradient |",
        "|---|---|---|---|---|---|---|",
    ]
    ratios = {(r["row"], r["size"], r["pass"]): r["ratio"] for r in report["results"]}
    for name in dict.fromkeys(r["row"] for r in report["results"]):
        cells = [ratios.get((name, size, way)) for size in SIZES for way in PASSES]
        lines.append(f"| {name} | " + " | ".join("" if c is None else f"{c:.2f}" for c in cells) + " |")
    lines += ["", f"## Below {BEHIND}", "", "Microseconds per call, grouped by what they are spent on;"]
    lines += ["[co_execution.md](decisions/co_execution.md) says what was tried.", ""]
    for why in dict.fromkeys(cause(r) for r in behind):
        lines += ["", textwrap.fill(f"{why[0].upper()}{why[1:]}:", 120), ""]
        lines += ["| row | size | pass | ours | PyTorch | ratio |", "|---|---|---|---|---|---|"]
        for r in behind:
            if cause(r) == why:
                lines.append(
                    f"| {r['row']} | {r['size']} | {r['pass']} | {r['ours_us']:.1f} | {r['torch_us']:.1f} | {r['ratio']:.2f} |"
                )
    with open(os.path.join(ROOT, "docs", "sweep_ops.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def mean_of(results):
    return math.exp(statistics.fmean(math.log(r["ratio"]) for r in results))


def main():
    in_peers_environment()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="a regular expression of names")
    parser.add_argument("--sizes", default="0,1,2")
    parser.add_argument("--seconds", type=float, default=0.04, help="of a turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="processor time of all threads: where others use the machine")
    parser.add_argument("--json", help="file for the results")
    parser.add_argument("--from", dest="source", help="a file of --json to print, instead of measuring")
    parser.add_argument("--again", action="store_true", help="with --from: measure its rows below 0.5 again")
    parser.add_argument("--write", action="store_true", help="write docs/sweep_ops.md")
    options = parser.parse_args()

    if options.source:
        with open(options.source, encoding="utf-8") as file:
            report = json.load(file)
        if options.again:
            Bench(options).again(report["results"])
    else:
        bench, begin = Bench(options), time.time()
        results = bench.all_rows()
        bench.again(results)
        report = {
            "command": "benchmarks/sweep_ops.py --write" + (" --cpu" if options.cpu else ""),
            "clock": "processor time of all threads" if options.cpu else "wall-clock time",
            "date": datetime.date.today().isoformat(),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
            "device": bench.ours.about["device"],
            "threads": bench.ours.about["threads"],
            "torch": bench.torch.__version__,
            "seconds": round(time.time() - begin),
            "results": results,
        }
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)

    results = report["results"]
    behind = sorted((r for r in results if r["ratio"] < BEHIND), key=lambda r: r["ratio"])
    print(f"\n{len(behind)} of {len(results)} below {BEHIND}:")
    for result in behind:
        print(line(result))
    if results:
        print(f"\ngeometric mean {mean_of(results):.2f}; {report['seconds']} s")
    if options.write:
        page(report, behind)


if __name__ == "__main__":
    main()
