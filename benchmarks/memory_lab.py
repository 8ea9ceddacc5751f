#!/usr/bin/env python3
"""The ledger of memory of one training step: a row for each technique, alone and all together.

Each row is a process of its own (`samebytes bench gpt --serve`): two steps, then what it has grown by at its largest,
as the kernel counts it from outside (VmHWM of /proc/PID/status, less what lay in memory when the device was open and
nothing else was there).

    benchmarks/memory_lab.py                              # GPT-2 medium, batch 2, context 1024: every row
    benchmarks/memory_lab.py --rows baseline,all --time   # two of them, and the time of a step
    benchmarks/memory_lab.py --size nano --context 64     # a minute, to see that everything runs
    benchmarks/memory_lab.py --list

Bytes per parameter are counted from what each technique keeps: weights 4, gradients 4 (with release: a segment, 0
here), Adam's two moments 8 (in bf16: 4), 16-bit working copies 2. Kernels that the driver's cache does not have yet are
compiled in the process, which adds 0.1 GB or so: for small models run it twice and take the second table. A row whose option the command does not have is
left out, and said so.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# name: what it adds to the command; weights, gradients, moments in bytes per parameter.
RELEASE = ["--release-gradients", "--clip-norm", "0"]
ROWS = {
    "baseline": ([], (4, 4, 8)),
    "release": (RELEASE, (4, 0, 8)),
    "moments": (["--moments", "bf16"], (4, 4, 4)),
    "precision": (["--precision", "bf16"], (6, 2, 8)),
    "checkpointing": (["--gradient-checkpointing", "block"], (4, 4, 8)),
    "micro-batch": (["--micro-batch", "1"], (4, 4, 8)),
    "release+moments": (RELEASE + ["--moments", "bf16"], (4, 0, 4)),
    "all": (
        RELEASE + ["--moments", "bf16", "--precision", "bf16", "--gradient-checkpointing", "block"],
        (6, 0, 4),
    ),
    "all-f32": (RELEASE + ["--moments", "bf16", "--gradient-checkpointing", "block"], (4, 0, 4)),
}


def status_bytes(pid, key):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{key}:\s+(\d+) kB", text, re.MULTILINE)[1]) * 1024


def measure(command, with_time):
    """One row: (bytes grown at most, what `train` said, seconds of a step or None)."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:

        def answer():
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(process.stderr.read().strip().splitlines()[0])
            reply = json.loads(line)
            if "error" in reply:
                raise RuntimeError(reply["error"])
            return reply

        answer()  # ready: the device is open
        idle = status_bytes(process.pid, "VmRSS")
        # The kernel counts the largest from here on; where it may not be set back, the start of a process is smaller
        # than a model anyway.
        try:
            pathlib.Path(f"/proc/{process.pid}/clear_refs").write_text("5")
        except OSError:
            pass
        process.stdin.write("train\n")
        process.stdin.flush()
        trained = answer()  # the first step, and at least one more
        grown = status_bytes(process.pid, "VmHWM") - idle
        seconds = None
        if with_time:
            process.stdin.write("run 0.001\n")
            process.stdin.flush()
            seconds = answer()["step_ms_p50"] / 1e3
        process.stdin.write("quit\n")
        process.stdin.flush()
        process.wait(timeout=60)
        return grown, trained, seconds
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "build" / "samebytes"))
    parser.add_argument("--size", default="medium", choices=["nano", "small", "medium"])
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--rows", help="a comma list; default: all of them")
    parser.add_argument("--time", action="store_true", help="one step more for each row, timed")
    parser.add_argument("--json", metavar="FILE", help="the rows as JSON")
    parser.add_argument("--list", action="store_true", help="print the rows and end")
    arguments = parser.parse_args()
    if arguments.list:
        for name, (options, _) in ROWS.items():
            print(f"{name:<16} {' '.join(options)}")
        return 0
    names = arguments.rows.split(",") if arguments.rows else list(ROWS)
    for name in names:
        if name not in ROWS:
            parser.error(f"there is no row {name}; there are {', '.join(ROWS)}")
    if not os.access(arguments.binary, os.X_OK):
        parser.error(f"{arguments.binary} is not there; build it, or name it with --binary")
    help_text = subprocess.run([arguments.binary, "bench", "--help"], capture_output=True, text=True).stdout

    base = [arguments.binary, "bench", "gpt", "--size", arguments.size, "--context", str(arguments.context)]
    base += ["--batch", str(arguments.batch), "--serve", "--quiet"]
    print(f"gpt {arguments.size}, context {arguments.context}, batch {arguments.batch}; grown: VmHWM less idle\n")
    print(f"{'row':<16}{'grown':>10}{'of baseline':>13}{'weights':>9}{'grads':>7}{'moments':>9}{'B/param':>9}{'state':>10}", end="")
    print(f"{'step':>9}" if arguments.time else "")
    rows, baseline = [], None
    for name in names:
        options, (weights, gradients, moments) = ROWS[name]
        missing = [o for o in options if o.startswith("--") and o not in help_text]
        if missing:
            print(f"{name:<16}left out: this command has no {', '.join(missing)}")
            continue
        try:
            grown, trained, seconds = measure(base + options, arguments.time)
        except RuntimeError as error:
            print(f"{name:<16}failed: {error}")
            continue
        baseline = grown if name == "baseline" else baseline
        share = f"{100 * (grown / baseline - 1):+.1f} %" if baseline else ""
        per_parameter = weights + gradients + moments
        state = per_parameter * trained["parameters"]
        print(f"{name:<16}{grown / 1e9:>7.2f} GB{share:>13}{weights:>9}{gradients:>7}{moments:>9}{per_parameter:>9}"
              f"{state / 1e9:>7.2f} GB", end="")
        print(f"{seconds:>7.2f} s" if seconds is not None else "", flush=True)
        rows.append({"row": name, "options": options, "grown_bytes": grown, "parameters": trained["parameters"],
                     "weights": weights, "gradients": gradients, "moments": moments, "bytes_per_parameter": per_parameter,
                     "step_seconds": seconds, "loss": trained["loss"]})
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
