"""What the peers share: options, protocol, timing, memory, and the check of what they compute.

A peer is a process that lives as long as it is measured: PEER_peer.py --workload NAME [--variant WORDS] [--threads N].
It prints one line of JSON when it is ready and one for each line that it reads:

    train | infer   makes what the mode needs, runs the first step and warms up: first_step_seconds, parameters, loss;
                    output_error where the outputs of inference were compared with PyTorch's
    run SECONDS     runs steps of that mode for so long, one at least: samples_per_second, steps, seconds, step_ms_p50
    memory          resident_bytes: the largest resident size since `train` or `infer`, the framework's own included;
                    peak_bytes: that less the size at that moment; null where /proc cannot say
    quit            (or the end of the input) ends it

A variant is words joined by +, those of the peer and those that every peer knows: `passive` (threads that wait sleep,
OMP_WAIT_POLICY), `one_thread`, and `cuda`: the peer may see the machine's GPU, which else is hidden from it.

A line {"error": ...} says what went wrong; the process ends after it. `samebytes bench --serve` speaks the same.
"""

import argparse
import json
import math
import os
import statistics
import sys
import time

from workloads import WORKLOADS

WARM_STEPS, WARM_SECONDS = 4, 0.5  # both are reached, but for slow steps
LONGEST_WARM_SECONDS = 6.0
LONGEST_STEP_SECONDS = 30.0  # a peer with slower steps is not worth the wait
# Of the largest output. f32 summed in another order differs by 1e-6 to 1e-5 of it, a network in bf16 by 1e-3 and more.
LARGEST_OUTPUT_ERROR = 1e-4


class TooSlow(Exception):
    """A step takes longer than LONGEST_STEP_SECONDS."""


class WrongOutputs(Exception):
    """What a peer computes is not what PyTorch computes with the same weights and inputs."""


def parse(description, variant=""):
    """The options of a peer, and `words` of its variant. Threads are limited here and told how to wait, so call it
    before the framework is imported."""
    parser = argparse.ArgumentParser(
        description=description + " Reads commands from its standard input, see worker.py."
    )
    parser.add_argument("--workload", required=True, choices=sorted(WORKLOADS))
    parser.add_argument("--variant", default=variant, help="words joined by +")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: all cores")
    parser.add_argument("--networks", default="", metavar="DIR", help="what networks.py wrote")
    options = parser.parse_args()
    options.words = set(options.variant.split("+"))
    if "one_thread" in options.words:
        options.threads = 1
    if "passive" in options.words:
        os.environ["OMP_WAIT_POLICY"] = "passive"
    if "cuda" not in options.words:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    cores = sorted(os.sched_getaffinity(0))
    if options.threads < len(cores):
        os.sched_setaffinity(0, cores[: options.threads])
    return options


def reset_resident_peak():
    """The largest resident size is counted from now on. False where the kernel has no such thing."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        return True
    except OSError:
        return False


def resident_peak():
    """Bytes of the largest resident size (VmHWM), or None."""
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


class Session:
    """One framework's side of a workload. make(mode) returns (step, parameters): step() enqueues a step and returns
    something that wait() waits for, and loss_of() turns into a number (train) or None (infer)."""

    def __init__(self, peer, version, workload):
        self.peer, self.version, self.workload = peer, version, workload

    def load(self, mode):
        """What the framework itself still has to load for that mode: none of the model's memory or time."""

    def make(self, mode):
        raise NotImplementedError

    def before_turn(self):
        """What the framework should decide when the machine is quiet."""

    def wait(self, handle):
        """Blocks until the step of this handle has run."""

    def loss_of(self, handle):
        return None

    def output_error(self, handle):
        """Of inference: the largest difference from PyTorch's outputs, in shares of the largest of them. None where
        nothing is known to compare with."""
        return None


def say(**values):
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def run_steps(session, step, seconds, most_steps=None):
    """Steps for so long, with at most one more enqueued while one runs; all have run at the end. Returns total
    seconds, the times from step to step, and the last handle."""
    times = []
    begin = last = time.perf_counter()
    before = None
    while True:
        handle = step()
        if before is not None:
            session.wait(before)
        before = handle
        now = time.perf_counter()
        times.append(now - last)
        last = now
        if now - begin >= seconds or len(times) == most_steps:
            break
    session.wait(before)
    return time.perf_counter() - begin, times, before


def prepare(session, mode):
    """The model, its first step and the warm-up. Returns step."""
    begin = time.perf_counter()
    step, parameters = session.make(mode)
    if parameters != session.workload.parameters:
        raise ValueError(f"the model has {parameters} parameters, ours {session.workload.parameters}")
    handle = step()
    session.wait(handle)
    first = time.perf_counter() - begin
    output_error = session.output_error(handle) if mode == "infer" else None
    if output_error is not None and not output_error <= LARGEST_OUTPUT_ERROR:
        raise WrongOutputs(f"outputs differ from PyTorch's by {output_error:.1e} of the largest")
    loss = session.loss_of(handle)
    if loss is not None and not math.isfinite(loss):
        raise ValueError(f"the loss is {loss}")
    spent, steps = 0.0, 0
    while spent < LONGEST_WARM_SECONDS and (steps < WARM_STEPS or spent < WARM_SECONDS):
        took, _, _ = run_steps(session, step, 0)
        spent, steps = spent + took, steps + 1
        if took > LONGEST_STEP_SECONDS:
            raise TooSlow(f"a step takes {took:.0f} s")
    say(
        mode=mode,
        first_step_seconds=first,
        parameters=parameters,
        loss=loss,
        output_error=output_error,
        batch=session.workload.batch,
    )
    return step


def serve(options, session):
    """Obeys until the input ends."""
    say(
        ready=True,
        peer=session.peer,
        version=session.version,
        variant=options.variant,
        workload=options.workload,
        threads=options.threads,
    )
    step, base = None, None
    for line in sys.stdin:
        words = line.split()
        if not words:
            continue
        try:
            if words[0] in ("train", "infer"):
                step = None
                session.load(words[0])
                base = resident_peak() if reset_resident_peak() else None
                step = prepare(session, words[0])
            elif words[0] == "run":
                if step is None:
                    raise ValueError("run: say train or infer first")
                session.before_turn()
                seconds, times, _ = run_steps(session, step, float(words[1]))
                say(
                    samples_per_second=session.workload.batch * len(times) / seconds,
                    steps=len(times),
                    seconds=seconds,
                    step_ms_p50=1e3 * statistics.median(times),
                )
            elif words[0] == "memory":
                resident = None if base is None else resident_peak()
                say(peak_bytes=None if base is None else resident - base, resident_bytes=resident)
            elif words[0] == "quit":
                return 0
            else:
                raise ValueError(f"there is no command {words[0]}; there are train, infer, run, memory, quit")
        except Exception as error:  # whatever a framework throws is the reason of a blank in the table
            text = str(error).strip().splitlines()
            say(error=f"{type(error).__name__}: {text[0] if text else ''}"[:300])
            return 1
    return 0
