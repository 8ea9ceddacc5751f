"""Which variants of a peer compare.py tries, in which order, and which one then takes turns.

Everything here is a function of what was tried so far ({variant: samples/s, None where it failed}), so that it can be
tested without a peer. A variant is words joined by +, see peers/worker.py.
"""

IMAGES = ("cnn", "resnet20", "transit")  # where the order of channels matters
PEERS = ("torch", "onnxruntime", "openvino", "jax", "mlx", "tinygrad")
INFERENCE_ONLY = ("onnxruntime", "openvino")  # they read networks that PyTorch exported
READ_NETWORKS = ("torch", *INFERENCE_ONLY)  # the ones whose outputs are compared with PyTorch's
FAR_BEHIND = 0.4  # of the best peer in its trial: such a peer is listed with its trial and takes no turns


def takes_part(peer, mode):
    return mode == "infer" or peer not in INFERENCE_ONLY


def plus(variant, *words):
    return "+".join(word for word in [*variant.split("+"), *words] if word)


def without(variant, word):
    return "+".join(kept for kept in variant.split("+") if kept != word)


def has(variant, word):
    return word in variant.split("+")


def best_of(tried, variants=None):
    """The fastest variant, None where none of them ran."""
    ran = {v: speed for v, speed in tried.items() if speed and (variants is None or v in variants)}
    return max(ran, key=ran.get) if ran else None


def torch_stage(workload, mode, tried):
    """Waiting first, since where another process takes a core every variant that spins collapses; then what is
    compiled and how it is laid out; then the best of these with the other way of waiting and with one thread."""
    first = ["eager", "eager+passive"]
    if not all(variant in tried for variant in first):
        return first
    waiting = ["passive"] if best_of(tried, first) == "eager+passive" else []
    codes = ["compile"]
    if workload in IMAGES:
        codes = ["eager+channels_last", "compile", "compile+channels_last"]
    second = [plus(code, *waiting) for code in codes]
    if not all(variant in tried for variant in second):
        return second
    third = []
    compiled = best_of(tried, [variant for variant in second if has(variant, "compile")])
    if mode == "infer" and compiled:
        third.append(plus(compiled, "freezing"))
    if not all(variant in tried for variant in third):
        return third
    best = best_of(tried, [v for v in tried if not has(v, "one_thread") and has(v, "passive") == bool(waiting)])
    if not best:
        return []
    other = without(best, "passive") if waiting else plus(best, "passive")
    return [other, plus(without(best, "passive"), "one_thread")]


def openvino_stage(workload, mode, tried):
    """The way into OpenVINO first, then how many batches are under way, then one thread."""
    first = ["latency", "latency+converted"]
    if not all(variant in tried for variant in first):
        return first
    best = best_of(tried, first)
    if not best:
        return []
    return [best.replace("latency", "throughput"), plus(best, "one_thread")]


STAGES = {
    "torch": torch_stage,
    "onnxruntime": lambda workload, mode, tried: ["", "passive", "one_thread", "streams"],
    "openvino": openvino_stage,
    "jax": lambda workload, mode, tried: ["", "one_thread"],
    "mlx": lambda workload, mode, tried: [""],
    "tinygrad": lambda workload, mode, tried: [""],
}


def next_trial(peer, workload, mode, tried):
    """What to try next, None when all has been."""
    if not takes_part(peer, mode):
        return None
    return next((variant for variant in STAGES[peer](workload, mode, tried) if variant not in tried), None)


def take_turns(trials):
    """Of {peer: tried}: [(peer, its best variant)] for those that are not far behind the best of all."""
    best = {peer: best_of(tried) for peer, tried in trials.items()}
    fastest = max((trials[peer][variant] for peer, variant in best.items() if variant is not None), default=0)
    return [(peer, v) for peer, v in best.items() if v is not None and trials[peer][v] >= FAR_BEHIND * fastest]


LAGGING = 0.88  # of its trial: a peer whose turns are slower is tried again


def lagging(turns, trial):
    """By how much a peer's turns are below its trial, 0 where it is little enough."""
    return 1 - turns / trial if trial and turns < LAGGING * trial else 0
