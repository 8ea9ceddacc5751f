"""The measuring of compare.py: trials, rounds, and what is taken again where a machine or a peer was not itself."""

import datetime
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time

import compare_quiet
import compare_report
import compare_trials
from compare_worker import ANSWER_SECONDS, Failed, Worker
from workloads import WORKLOADS

FOLDER = os.path.dirname(os.path.abspath(__file__))
OURS = "samebytes"
TRIAL_SECONDS = 0.5
PAUSE_SECONDS = 0.1  # after a turn: threads that still spin go to sleep
OUTSIDERS = ("mlx", "tinygrad")  # their patience ends first: what compiles so long there is slow afterwards, too
EXPORT_SECONDS = 300
# For the announcement: of a trial, and of starting those that take turns; kernels cached, two cores.
TRIAL_COST = {OURS: 2, "torch": 6, "onnxruntime": 2, "openvino": 3, "jax": 8, "mlx": 30, "tinygrad": 48}
START_COST = 9


class Comparison:
    def __init__(self, options):
        self.options = options
        self.environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", CUDA_VISIBLE_DEVICES="")
        self.environment.pop("OMP_WAIT_POLICY", None)  # a variant's
        self.networks = os.path.join(options.environment, "networks")
        self.calibration = compare_quiet.Calibration(options.threads)
        self.versions, self.device = {}, {}
        self.living = {}  # workers by side
        self.begin = time.monotonic()

    def say(self, text):
        spent = time.monotonic() - self.begin
        print(f"{spent // 60:3.0f}:{spent % 60:02.0f} {text}", file=sys.stderr, flush=True)

    # ---- processes

    def start(self, side, variant, workload):
        options = self.options
        if side == OURS:
            command = [options.samebytes, "bench", *workload.ours, "--batch", str(workload.batch), "--serve"]
            command += ["--device", "cpu", "--threads", str(options.threads)]
            command += ["--fixed-batch"] if options.fixed_batch else []
        else:
            python = os.path.join(options.environment, "bin", "python")
            if not os.path.exists(python):
                raise Failed(f"not installed: {options.environment} is not there, run benchmarks/peers/setup.sh")
            command = [python, os.path.join(FOLDER, "peers", side + "_peer.py"), "--workload", workload.name]
            command += ["--threads", str(options.threads)] + (["--variant", variant] if variant else [])
            if side in compare_trials.READ_NETWORKS:
                command += ["--networks", self.networks]
        self.living[side] = Worker(command, self.environment)
        return self.living[side]

    def await_ready(self, side):
        ready = self.living[side].await_ready()
        if side == OURS:
            self.device = {k: ready[k] for k in ("device", "platform", "driver", "memory_mode", "personality")}
        self.versions[side] = ready["version"]

    def make(self, side, workload, mode):
        """The model, its first step, the check of its outputs and the warm-up."""
        made = self.living[side].tell(mode, self.options.patience * (1 if side in OUTSIDERS else 4))
        if made["parameters"] != workload.parameters:
            raise Failed(f"{made['parameters']} parameters, {workload.parameters} expected")
        return {key: made.get(key) for key in ("first_step_seconds", "output_error")}

    def stop(self, side):
        if side in self.living:
            self.living.pop(side).stop()

    def stop_all(self):
        for side in list(self.living):
            self.stop(side)

    def export(self, workload):
        """The networks that some peers read, and PyTorch's outputs."""
        python = os.path.join(self.options.environment, "bin", "python")
        if not os.path.exists(python) or not set(self.options.peers) & set(compare_trials.READ_NETWORKS):
            return
        command = [python, os.path.join(FOLDER, "peers", "networks.py"), "--to", self.networks, workload.name]
        try:
            done = subprocess.run(
                command, env=self.environment, capture_output=True, text=True, timeout=EXPORT_SECONDS
            )
            trouble = done.returncode and (done.stderr.strip().splitlines() or ["no reason"])[-1]
        except subprocess.TimeoutExpired:
            trouble = f"not done in {EXPORT_SECONDS} s"
        if trouble:
            self.say(f"  {workload.name} was not exported: {trouble}")

    # ---- trials

    def try_out(self, side, variant, workload, mode):
        """A moment in a process of its own: speed, first step and memory, or {"reason": ...}."""
        try:
            worker = self.start(side, variant, workload)
            self.await_ready(side)
            made = self.make(side, workload, mode)
            found = {**worker.tell(f"run {TRIAL_SECONDS}"), **made, **worker.tell("memory")}
        except Failed as failure:
            found = {"reason": str(failure)}
        self.stop(side)
        result = found.get("reason") or f"{found['samples_per_second']:.4g} samples/s"
        self.say(f"  {workload.name:9} {mode:5} {f'{side} {variant}'.strip():40} {result}")
        return found

    def try_all(self, workload, mode):
        """{side: {variant: what try_out found}}"""
        trials = {OURS: {"": self.try_out(OURS, "", workload, mode)}}
        if "reason" in trials[OURS][""]:
            raise Failed(f"samebytes {workload.name} {mode}: {trials[OURS]['']['reason']}")
        for peer in self.options.peers:
            while True:
                variant = compare_trials.next_trial(peer, workload.name, mode, speeds(trials.get(peer, {})))
                if variant is None:
                    break
                trials.setdefault(peer, {})[variant] = self.try_out(peer, variant, workload, mode)
        return trials

    # ---- rounds

    def take_rounds(self, sides, workload, mode):
        """{side: entry of the row}, and the loops beside each round that is kept."""
        entries = {}
        for side, variant in sides:  # loaded side by side, made one after the other
            self.start(side, variant, workload)
        for side, variant in sides:
            entries[side] = {"variant": variant}
            try:
                self.await_ready(side)
            except Failed as failure:
                entries[side]["reason"] = str(failure)
                self.stop(side)
        for side in [side for side in entries if side in self.living]:
            try:
                entries[side].update(self.make(side, workload, mode))
            except Failed as failure:
                entries[side]["reason"] = str(failure)
                self.stop(side)
        taken = []
        while sum(self.calibration.is_quiet(r["loops"]) for r in taken) < self.options.rounds:
            if len(taken) == 2 * self.options.rounds:
                break
            taken.append(self.take_round(entries))
        kept = quietest(taken, self.options.rounds, self.calibration.median())
        for side, worker in self.living.items():
            for key in ("samples_per_second", "step_ms_p50"):
                entries[side][key] = [r["turns"][side][key] for r in kept]
            entries[side].update(worker.tell("memory"))
        self.stop_all()
        return entries, [r["loops"] for r in kept]

    def take_round(self, entries):
        turns, loops = {}, []
        for side, worker in list(self.living.items()):
            loops.append(self.calibration.loop())
            try:
                turns[side] = worker.tell(f"run {self.options.seconds}", ANSWER_SECONDS + self.options.seconds)
            except Failed as failure:
                if side == OURS:
                    raise
                entries[side]["reason"] = str(failure)
                self.stop(side)
            time.sleep(PAUSE_SECONDS)
        loops.append(self.calibration.loop())
        return {"turns": turns, "loops": loops}

    def measure(self, workload, mode):
        """One row of the result."""
        trials = self.try_all(workload, mode)
        sides = with_ours(trials)
        entries, loops = self.take_rounds(sides, workload, mode)
        late = lagging(entries, trials)
        if late:
            self.say(f"  {workload.name:9} {mode:5} {shares(late)} below the trial: tried again")
            for peer in late:
                variant = entries[peer]["variant"]
                again = self.try_out(peer, variant, workload, mode)
                if "samples_per_second" in again:
                    again["tried_before"] = trials[peer][variant]["samples_per_second"]
                    trials[peer][variant] = again
            if with_ours(trials) != sides or lagging(entries, trials):
                entries, loops = self.better(entries, loops, trials, workload, mode)
        row = {"workload": workload.name, "mode": mode, "batch": workload.batch, "sides": entries, "loops": loops}
        row["lagging"] = lagging(entries, trials)
        add_trials(row, trials)
        return compare_report.with_ratio(row)

    def better(self, entries, loops, trials, workload, mode):
        """Rounds anew in fresh processes; the former ones where the peers lag less in those."""
        new, new_loops = self.take_rounds(with_ours(trials), workload, mode)
        former, now = (max(lagging(e, trials).values(), default=0) for e in (entries, new))
        same = all(entries.get(side, {}).get("variant") == entry["variant"] for side, entry in new.items())
        return (entries, loops) if same and former < now else (new, new_loops)

    def run(self):
        begin = datetime.datetime.now().astimezone()
        probe = compare_quiet.spread(self.calibration.probe())
        if probe > compare_quiet.MOST:
            text = f"the machine is not quiet: a loop that is always the same varies by {100 * probe:.0f} %"
            if self.options.strict:
                raise Failed(text)
            self.say(text + "; rows will be marked")
        rows = []
        for name in self.options.workloads:
            if "infer" in self.options.modes:
                self.export(WORKLOADS[name])
            for mode in self.options.modes:
                rows.append(self.measure(WORKLOADS[name], mode))
                self.say(compare_report.one_line(rows[-1]))
        for row in rows:
            compare_quiet.judge(row, self.calibration.median())
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
            "calibration": compare_quiet.verdict(self.calibration),
            "versions": self.versions,
            "rows": rows,
            "geometric_mean": compare_report.geometric_means(rows),
        }


def speeds(trials):
    return {variant: found.get("samples_per_second") for variant, found in trials.items()}


def with_ours(trials):
    peers = {peer: speeds(tried) for peer, tried in trials.items() if peer != OURS}
    return [(OURS, ""), *compare_trials.take_turns(peers)]


def quietest(taken, count, median):
    """So many rounds, those beside which the loop differed least, in the order in which they were taken."""
    by_noise = sorted(taken, key=lambda r: compare_quiet.deviation(r["loops"], median))
    kept = by_noise[:count]
    return [r for r in taken if any(r is k for k in kept)]


def lagging(entries, trials):
    """{peer: share that its turns are below its trial}"""
    late = {}
    for peer, entry in entries.items():
        if peer != OURS and entry.get("samples_per_second"):
            trial = trials[peer][entry["variant"]].get("samples_per_second")
            late[peer] = compare_trials.lagging(statistics.median(entry["samples_per_second"]), trial)
    return {peer: share for peer, share in late.items() if share}


def shares(late):
    return ", ".join(f"{peer} {100 * share:.0f} %" for peer, share in late.items())


def add_trials(row, trials):
    """What the trials said, also of those that took no turns: speed and memory of each variant."""
    for side, tried in trials.items():
        entry = row["sides"].setdefault(side, {})
        entry["trials"] = {v or "default": f.get("samples_per_second", f.get("reason")) for v, f in tried.items()}
        entry["tried_before"] = {v or "default": f["tried_before"] for v, f in tried.items() if "tried_before" in f}
        entry["memory"] = {
            v or "default": {key: f.get(key) for key in ("peak_bytes", "resident_bytes")}
            for v, f in tried.items()
            if "reason" not in f
        }
        best = compare_trials.best_of(speeds(tried))
        if best is None:
            entry["reason"] = next(iter(tried.values())).get("reason", "")
        elif not entry.get("samples_per_second"):
            entry.update(variant=best, trial_samples_per_second=tried[best]["samples_per_second"])
            for key in ("first_step_seconds", "peak_bytes", "resident_bytes"):
                entry[key] = tried[best].get(key)
            entry.setdefault("reason", "far behind the best peer, so it was only tried")


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
    """About how long it takes; more where a peer has to compile for the first time or rounds are taken again."""
    total = 0
    for workload in options.workloads:
        for mode in options.modes:
            total += TRIAL_COST[OURS] + START_COST
            sides = 1
            for peer in options.peers:
                tried = {}
                while (variant := compare_trials.next_trial(peer, workload, mode, tried)) is not None:
                    tried[variant] = 1
                    total += TRIAL_COST[peer]
                sides += bool(tried) and peer not in OUTSIDERS
            turn = options.seconds + PAUSE_SECONDS + compare_quiet.LOOP_SECONDS
            total += options.rounds * sides * turn
    return total
