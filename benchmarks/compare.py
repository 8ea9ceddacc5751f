#!/usr/bin/env python3
"""Compares `samebytes bench` with other frameworks on the same cores, workload by workload.

Every side is a worker process that keeps its model and waits between its turns (peers/worker.py, `samebytes bench
--serve`), so each is measured in the same way: first every peer, in each of its variants, is tried for a moment, which
also fills the caches of compiled kernels; then ours and the best variant of every peer that is not far behind are
started again and take turns (A B C A B C ...). The ratio of a round is our samples/s over that of the best peer; the
table has the median over the rounds, and the least and the largest. Peers loop over one batch that lies ready; ours has
its loader on, with the workload's augmentation. See benchmarks/README.md.

Needs Python's standard library only; the peers' packages are in the environment that peers/setup.sh makes.
"""

import argparse
import datetime
import json
import os
import platform
import select
import shlex
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "peers"))
sys.dont_write_bytecode = True

import compare_report  # noqa: E402
from workloads import WORKLOADS  # noqa: E402

IMAGES = ("cnn", "resnet20", "transit")  # where the order of channels matters
VARIANTS = {  # of each peer, and for which workloads
    "torch": {
        "eager": WORKLOADS,
        "compile": WORKLOADS,
        "eager+channels_last": IMAGES,
        "compile+channels_last": IMAGES,
    },
    "jax": {"": WORKLOADS},
    "mlx": {"": WORKLOADS},
    "tinygrad": {"": WORKLOADS},
}
TRIAL_SECONDS = 0.7
FAR_BEHIND = 0.4  # of the best peer in its trial: such a peer is listed with its trial and takes no turns
PAUSE_SECONDS = 0.1  # after a turn: threads that still spin go to sleep
ANSWER_SECONDS = 60  # for what should come soon
# For the announcement: measured on two cores of an AMD EPYC with nothing cached. Of a workload's trials, and of
# starting those that take turns.
TRIAL_COST = {"torch": 48, "jax": 14, "mlx": 30, "tinygrad": 48}
START_COST = 12
OUTSIDERS = ("mlx", "tinygrad")  # their patience ends first: what compiles so long there is slow afterwards, too


class Failed(Exception):
    """A worker could not do what it was told; the text is the reason."""


class Worker:
    """One process: ours or a peer's."""

    def __init__(self, command, environment):
        self.log = tempfile.TemporaryFile("w+")
        self.buffer = b""
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=environment
        )
        self.ready = None

    def await_ready(self):
        self.ready = self.ready or self.answer(ANSWER_SECONDS)
        return self.ready

    def answer(self, seconds):
        end = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise Failed(f"no answer within {seconds:.0f} s")
            read = os.read(self.process.stdout.fileno(), 65536)
            if not read:
                raise Failed(self.last_words())
            self.buffer += read
        line, self.buffer = self.buffer.split(b"\n", 1)
        try:
            values = json.loads(line)
        except ValueError:
            return self.answer(end - time.monotonic())  # something that a library prints
        if "error" in values:
            raise Failed(values["error"])
        return values

    def last_words(self):
        status = self.process.wait()
        self.log.seek(0)
        lines = [line.strip() for line in self.log.read().splitlines() if line.strip()]
        return f"ended with status {status}" + (f": {lines[-1][:200]}" if lines else "")

    def tell(self, command, seconds=ANSWER_SECONDS):
        try:
            self.process.stdin.write((command + "\n").encode())
            self.process.stdin.flush()
        except OSError:
            raise Failed(self.last_words()) from None
        return self.answer(seconds)

    def stop(self):
        try:
            self.process.stdin.close()
            self.process.wait(2)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.log.close()


class Comparison:
    def __init__(self, options):
        self.options = options
        self.environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", CUDA_VISIBLE_DEVICES="")
        self.versions, self.device = {}, {}
        self.living = {}  # workers by side and variant

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def start(self, side, variant, workload):
        options = self.options
        if side == "samebytes":
            command = [options.samebytes, "bench", *workload.ours, "--batch", str(workload.batch), "--serve"]
            command += ["--device", "cpu", "--threads", str(options.threads)]
            command += ["--fixed-batch"] if options.fixed_batch else []
        else:
            python = os.path.join(options.environment, "bin", "python")
            if not os.path.exists(python):
                raise Failed(f"not installed: {options.environment} is not there, run benchmarks/peers/setup.sh")
            command = [python, os.path.join(FOLDER, "peers", side + "_peer.py"), "--workload", workload.name]
            command += ["--threads", str(options.threads)] + (["--variant", variant] if variant else [])
        worker = Worker(command, self.environment)
        self.living[side, variant] = worker
        return worker

    def await_ready(self, side, variant):
        ready = self.living[side, variant].await_ready()
        if side == "samebytes":
            self.device = {k: ready[k] for k in ("device", "platform", "driver", "memory_mode", "personality")}
        self.versions[side] = ready["version"]

    def stop(self, side, variant):
        self.living.pop((side, variant)).stop()

    def stop_all(self):
        for key in list(self.living):
            self.stop(*key)

    def patience(self, side):
        return self.options.patience * (1 if side in OUTSIDERS else 4)

    def try_out(self, side, variant, workload):
        """A moment of each mode in a process of its own: {mode: answer or {"reason": ...}}."""
        found, worker, trouble = {}, None, None
        for mode in self.options.modes:
            try:
                if trouble:
                    raise Failed(trouble)
                if not worker:
                    worker = self.start(side, variant, workload)
                    self.await_ready(side, variant)
                made = worker.tell(mode, self.patience(side))
                if made["parameters"] != workload.parameters:
                    raise Failed(f"{made['parameters']} parameters, {workload.parameters} expected")
                found[mode] = {**worker.tell(f"run {TRIAL_SECONDS}"), "first_step_seconds": made["first_step_seconds"]}
            except Failed as failure:
                trouble = str(failure)
                found[mode] = {"reason": trouble}
        if worker:
            self.stop(side, variant)
        label = f"{side} {variant}".strip()
        for mode, answer in found.items():
            result = answer.get("reason") or f"{answer['samples_per_second']:.4g} samples/s"
            self.say(f"  {workload.name:9} {mode:5} {label:28} {result}")
        return found

    def take_turns(self, workload, mode, trials):
        """One row of the result: rounds of ours and of every peer that is worth it."""
        best = {}  # of each peer: variant and its speed in the trial
        for (side, variant), found in trials.items():
            speed = found[mode].get("samples_per_second")
            if side != "samebytes" and speed and speed > best.get(side, ("", 0))[1]:
                best[side] = (variant, speed)
        fastest = max((speed for _, speed in best.values()), default=0)
        sides = [("samebytes", "")]
        sides += [(side, variant) for side, (variant, speed) in best.items() if speed >= FAR_BEHIND * fastest]
        row = {"workload": workload.name, "mode": mode, "batch": workload.batch, "sides": {}}
        workers = {}
        for key in sides:  # those of the mode before live on; the others are loaded side by side
            if key not in self.living:
                self.start(*key, workload)
        for side, variant in sides:
            try:
                self.await_ready(side, variant)
                workers[side] = self.living[side, variant]
                made = workers[side].tell(mode, self.patience(side))
                row["sides"][side] = {
                    "variant": variant,
                    "first_step_seconds": made["first_step_seconds"],
                    "samples_per_second": [],
                    "step_ms_p50": [],
                }
            except Failed as failure:
                row["sides"][side] = {"variant": variant, "reason": str(failure)}
                workers.pop(side, None)
                self.stop(side, variant)
        for _ in range(self.options.rounds):
            for side, worker in workers.items():
                turn = worker.tell(f"run {self.options.seconds}", ANSWER_SECONDS + self.options.seconds)
                for key in ("samples_per_second", "step_ms_p50"):
                    row["sides"][side][key].append(turn[key])
                time.sleep(PAUSE_SECONDS)
        for side, worker in workers.items():
            row["sides"][side]["peak_bytes"] = worker.tell("memory")["peak_bytes"]
        self.add_trials(row, mode, trials, best)
        return compare_report.with_ratio(row)

    @staticmethod
    def add_trials(row, mode, trials, best):
        """What the trials said, also of those that took no turns."""
        for (side, variant), found in trials.items():
            entry = row["sides"].setdefault(side, {})
            trial = found[mode].get("samples_per_second", found[mode].get("reason"))
            entry.setdefault("trials", {})[variant or "default"] = trial
            if side in best and best[side][0] == variant and not entry.get("samples_per_second"):
                entry.update(variant=variant, trial_samples_per_second=best[side][1])
                entry.setdefault("reason", "far behind the best peer, so it was only tried")
                entry["first_step_seconds"] = found[mode]["first_step_seconds"]
            elif side not in best and side != "samebytes":
                entry["reason"] = found[mode].get("reason", "")

    def run(self):
        begin = datetime.datetime.now().astimezone()
        rows = []
        for name in self.options.workloads:
            workload = WORKLOADS[name]
            sides = [("samebytes", "")]
            sides += [(p, v) for p in self.options.peers for v, where in VARIANTS[p].items() if name in where]
            trials = {side: self.try_out(*side, workload) for side in sides}
            for mode in self.options.modes:
                if "reason" in trials["samebytes", ""][mode]:
                    raise Failed(f"samebytes {name} {mode}: {trials['samebytes', ''][mode]['reason']}")
                rows.append(self.take_turns(workload, mode, trials))
                self.say(compare_report.one_line(rows[-1]))
            self.stop_all()
        return {
            "date": begin.isoformat(timespec="seconds"),
            "command": shlex.join([os.path.relpath(sys.argv[0]), *sys.argv[1:]]),
            "minutes": round((datetime.datetime.now().astimezone() - begin).total_seconds() / 60, 1),
            "machine": machine(),
            "device": self.device,
            "threads": self.options.threads,
            "rounds": self.options.rounds,
            "seconds": self.options.seconds,
            "loader": "fixed batch" if self.options.fixed_batch else "on",
            "versions": self.versions,
            "rows": rows,
            "geometric_mean": compare_report.geometric_means(rows),
        }


def machine():
    cpu = platform.processor()
    try:
        with open("/proc/cpuinfo") as file:
            cpu = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), cpu)
    except OSError:
        pass
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": cpu, "cores": os.cpu_count(), "memory_bytes": memory, "system": platform.platform()}


def expected_seconds(options):
    """About how long it takes; more where a peer has to compile for the first time."""
    trials = sum(TRIAL_COST[peer] for peer in options.peers) + 6
    turns = START_COST + 3 * options.rounds * (options.seconds + PAUSE_SECONDS + 0.2)
    return len(options.workloads) * (trials + len(options.modes) * turns)


def words(known):
    def parse(text):
        chosen = [word for word in text.split(",") if word]
        for word in chosen:
            if word not in known:
                raise argparse.ArgumentTypeError(f"there is no {word}; there are {', '.join(known)}")
        return chosen

    return parse


def parse_options():
    top = os.path.dirname(FOLDER)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--workloads", type=words(list(WORKLOADS)), default=list(WORKLOADS), metavar="A,B",
        help=f"default: all of {', '.join(WORKLOADS)}")  # fmt: skip
    add("--peers", type=words(list(VARIANTS)), default=list(VARIANTS), metavar="A,B",
        help=f"default: all of {', '.join(VARIANTS)}; '' for none")  # fmt: skip
    add("--mode", choices=("train", "infer", "both"), default="both", help="default: both")
    add("--rounds", type=int, default=5, metavar="N", help="turns of each side; default: 5")
    add("--seconds", type=float, default=1.5, metavar="S", help="of a turn, one step at least; default: 1.5")
    add("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N",
        help="of each side; default: all cores")  # fmt: skip
    add("--patience", type=float, default=45, metavar="S",
        help="for MLX's and tinygrad's first step and warm-up, four times that for the others; default: 45")  # fmt: skip
    add("--fixed-batch", action="store_true", help="ours loops over one batch, too, instead of using its loader")
    add("--json", metavar="FILE", help="write everything that was measured")
    add("--baseline", metavar="NAME", help="the same to benchmarks/baseline/NAME.json")
    add("--plot", metavar="FILE.svg", help="draw the ratios")
    add("--from", dest="source", metavar="FILE.json", help="measure nothing: table and plot of an earlier run")
    add("--samebytes", metavar="PATH", default=os.path.join(top, "build", "samebytes"), help="default: build/samebytes")
    add("--environment", metavar="DIR", default=os.environ.get("SAMEBYTES_PEERS", os.path.join(top, "build", "peers")),
        help="what peers/setup.sh made; default: $SAMEBYTES_PEERS, else build/peers")  # fmt: skip
    options = parser.parse_args()
    options.modes = ("train", "infer") if options.mode == "both" else (options.mode,)
    if options.rounds < 1 or options.seconds <= 0 or options.threads < 1:
        parser.error("--rounds, --seconds and --threads must be more than 0")
    if not options.source and not os.access(options.samebytes, os.X_OK):
        parser.error(f"{options.samebytes} is not there; build it, or say --samebytes PATH")
    return options


def main():
    options = parse_options()
    if options.source:
        with open(options.source) as file:
            result = json.load(file)
    else:
        comparison = Comparison(options)
        comparison.say(f"About {expected_seconds(options) / 60:.0f} minutes, less where compiled kernels are cached.")
        try:
            result = comparison.run()
        except Failed as failure:
            comparison.say(f"compare.py: {failure}")
            return 1
        except KeyboardInterrupt:
            return 130
        finally:
            comparison.stop_all()
    print(compare_report.table(result))
    files = [options.json] if options.json else []
    if options.baseline:
        files.append(os.path.join(FOLDER, "baseline", options.baseline + ".json"))
    for path in files:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, "w") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    if options.plot:
        with open(options.plot, "w") as file:
            file.write(compare_report.plot(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
