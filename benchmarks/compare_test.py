#!/usr/bin/env python3
"""Tests of compare.py's rules, with made-up peers: which variant counts, what is measured again, what is marked.

Needs Python's standard library only; CTest runs it as `compare` where there is a Python.
"""

import json
import os
import sys
import types
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [FOLDER, os.path.join(FOLDER, "peers")]
sys.dont_write_bytecode = True

import compare_plot  # noqa: E402
import compare_quiet  # noqa: E402
import compare_report  # noqa: E402
import compare_run  # noqa: E402
import compare_trials  # noqa: E402
import worker  # noqa: E402
from compare_worker import Failed  # noqa: E402
from workloads import WORKLOADS  # noqa: E402


def tried_with(peer, workload, mode, speed):
    """All that is tried of a peer whose variants have these speeds."""
    tried = {}
    while (variant := compare_trials.next_trial(peer, workload, mode, tried)) is not None:
        tried[variant] = speed(variant)
    return tried


class Trials(unittest.TestCase):
    def test_waiting_threads_that_sleep_and_one_thread_are_tried(self):
        for mode in compare_report.MODES:
            for workload in WORKLOADS:
                tried = tried_with("torch", workload, mode, lambda variant: 1)
                self.assertTrue({"eager", "eager+passive"} <= set(tried))
                self.assertTrue(any(compare_trials.has(v, "one_thread") for v in tried), tried)

    def test_a_peer_counts_with_sleeping_threads_where_a_core_is_taken(self):
        def speed(variant):
            return 18900 if compare_trials.has(variant, "passive") else 520

        tried = tried_with("torch", "mlp", "train", speed)
        self.assertTrue(compare_trials.has(compare_trials.best_of(tried), "passive"))
        self.assertIn("compile+passive", tried)

    def test_every_layout_and_the_other_waiting_of_the_best_are_tried_for_images(self):
        tried = tried_with("torch", "cnn", "train", lambda v: {"eager": 2, "compile+channels_last": 3}.get(v, 1))
        self.assertTrue({"eager+channels_last", "compile", "compile+channels_last"} <= set(tried))
        self.assertTrue({"compile+channels_last+passive", "compile+channels_last+one_thread"} <= set(tried))

    def test_freezing_is_a_variant_of_inference_alone(self):
        infer, train = (tried_with("torch", "cnn", mode, lambda variant: 1) for mode in ("infer", "train"))
        self.assertTrue(any(compare_trials.has(v, "freezing") for v in infer))
        self.assertFalse(any(compare_trials.has(v, "freezing") for v in train))

    def test_onnx_runtime_and_openvino_take_part_in_inference_alone(self):
        for peer in ("onnxruntime", "openvino"):
            self.assertIsNone(compare_trials.next_trial(peer, "mlp", "train", {}))
            self.assertGreaterEqual(len(tried_with(peer, "mlp", "infer", lambda variant: 1)), 4)

    def test_variants_that_fail_end_the_trial_of_a_peer_and_not_the_run(self):
        for peer in compare_trials.PEERS:
            tried = tried_with(peer, "cnn", "infer", lambda variant: None)
            self.assertIsNone(compare_trials.best_of(tried))
        self.assertEqual(compare_trials.take_turns({"torch": {"eager": None}}), [])

    def test_a_peer_far_behind_the_best_takes_no_turns(self):
        sides = compare_trials.take_turns({"torch": {"eager": 100, "compile": 90}, "mlx": {"": 39}, "jax": {"": 41}})
        self.assertEqual(sides, [("torch", "eager"), ("jax", "")])


class Quiet(unittest.TestCase):
    def test_ten_percent_is_the_limit(self):
        row = compare_quiet.judge({"loops": [[1.0, 1.09], [0.91]]}, 1.0)
        self.assertTrue(row["quiet"])
        row = compare_quiet.judge({"loops": [[1.0, 1.11], [1.0]]}, 1.0)
        self.assertFalse(row["quiet"])
        self.assertAlmostEqual(row["loop_deviation"], 0.11)

    def test_a_run_whose_loop_varies_is_not_quiet(self):
        calibration = types.SimpleNamespace(times=[1.0] * 17 + [1.3] * 3)
        self.assertFalse(compare_quiet.verdict(calibration)["quiet"])
        calibration.times = [1.0] * 19 + [1.3]  # one hiccup
        self.assertTrue(compare_quiet.verdict(calibration)["quiet"])

    def test_the_loop_takes_about_the_time_that_it_should(self):
        calibration = compare_quiet.Calibration(1)
        self.assertEqual(len(calibration.probe()), compare_quiet.PROBE_LOOPS)
        self.assertGreater(calibration.median(), 0)

    def test_the_quietest_rounds_are_kept_in_their_order(self):
        taken = [{"loops": [d], "turns": i} for i, d in enumerate((1.0, 1.5, 0.98, 1.02, 1.2))]
        self.assertEqual([r["turns"] for r in compare_run.quietest(taken, 3, 1.0)], [0, 2, 3])


class Loops:
    """A calibration whose loops are told."""

    def __init__(self, times=()):
        self.told, self.times = list(times), [1.0]

    def loop(self):
        self.times.append(self.told.pop(0) if self.told else 1.0)
        return self.times[-1]

    def median(self):
        return 1.0

    def is_quiet(self, loops):
        return compare_quiet.deviation(loops, 1.0) <= compare_quiet.MOST


class Side:
    """A worker: speed(turn), where turn is "trial" or "turn"."""

    def __init__(self, workload, speed, is_alone):
        self.workload, self.speed, self.is_alone = workload, speed, is_alone

    def await_ready(self):
        keys = ("device", "platform", "driver", "memory_mode", "personality")
        return {"version": "1", **{key: "" for key in keys}}

    def tell(self, command, seconds=0):
        word = command.split()[0]
        if word == "memory":
            return {"peak_bytes": 10, "resident_bytes": 20}
        if word == "run":
            speed = self.speed("trial" if self.is_alone else "turn")
            return {"samples_per_second": speed, "step_ms_p50": 1.0}
        return {"parameters": self.workload.parameters, "first_step_seconds": 0.1}

    def stop(self):
        pass


class Made(compare_run.Comparison):
    """A comparison of made-up sides: speeds is {side: speed(variant, kind)}."""

    def __init__(self, speeds, loops=(), rounds=3):
        peers = [side for side in speeds if side != "samebytes"]
        super().__init__(types.SimpleNamespace(
            peers=peers, rounds=rounds, seconds=0, patience=1, threads=1, environment="", modes=("train",)
        ))  # fmt: skip
        self.speeds, self.calibration, self.is_trial, self.starts = speeds, Loops(loops), False, []

    def say(self, text):
        pass

    def try_out(self, *arguments):
        self.is_trial = True
        try:
            return super().try_out(*arguments)
        finally:
            self.is_trial = False

    def start(self, side, variant, workload):
        if not self.is_trial:
            self.starts.append(side)
        self.living[side] = Side(workload, lambda kind: self.speeds[side](variant, kind), self.is_trial)
        return self.living[side]


def measured(speeds, **more):
    comparison = Made(speeds, **more)
    return comparison.measure(WORKLOADS["mlp"], "train"), comparison


compare_run.PAUSE_SECONDS = 0


class Rounds(unittest.TestCase):
    def test_a_steady_peer_takes_its_turns_once(self):
        row, comparison = measured({"samebytes": lambda v, k: 200, "jax": lambda v, k: 100})
        self.assertEqual(comparison.starts, ["samebytes", "jax"])
        self.assertEqual(row["sides"]["jax"]["samples_per_second"], [100] * 3)
        self.assertAlmostEqual(row["ratio"]["median"], 2)
        self.assertEqual(row["lagging"], {})

    def test_turns_below_the_trial_are_taken_again_and_marked(self):
        row, comparison = measured({"samebytes": lambda v, k: 200, "jax": lambda v, k: 100 if k == "trial" else 80})
        self.assertEqual(comparison.starts, ["samebytes", "jax"] * 2)
        self.assertAlmostEqual(row["lagging"]["jax"], 0.2)
        self.assertTrue(compare_report.is_marked(row))
        self.assertIn("jax's turns are 20 % below its trial", compare_report.marks([row])[0])

    def test_a_lucky_trial_is_found_out_by_trying_again(self):
        trials = iter([100, 30, 81])  # of "", of one thread, of "" again

        def jax(variant, kind):
            return next(trials) if kind == "trial" else 80

        row, comparison = measured({"samebytes": lambda v, k: 200, "jax": jax})
        self.assertEqual(comparison.starts, ["samebytes", "jax"])
        self.assertFalse(compare_report.is_marked(row))
        self.assertEqual(row["sides"]["jax"]["tried_before"], {"default": 100})

    def test_turns_that_recover_replace_those_that_lagged(self):
        turns = iter([70, 70, 70, 99, 99, 99])
        row, _ = measured({"samebytes": lambda v, k: 200, "jax": lambda v, k: 100 if k == "trial" else next(turns)})
        self.assertEqual(row["sides"]["jax"]["samples_per_second"], [99] * 3)
        self.assertEqual(row["lagging"], {})

    def test_a_round_beside_which_the_loop_varied_is_taken_again(self):
        loops = [1.0, 1.0, 1.0, 1.0, 1.5, 1.0]  # three of a round: the second one is loud
        turns = iter([100, 10, 100, 100])
        row, _ = measured({"samebytes": lambda v, k: 200, "jax": lambda v, k: 100 if k == "trial" else next(turns)},
                          loops=loops)  # fmt: skip
        self.assertEqual(row["sides"]["jax"]["samples_per_second"], [100] * 3)
        self.assertTrue(compare_quiet.judge(row, 1.0)["quiet"])

    def test_a_machine_that_stays_loud_is_marked_after_twice_the_rounds(self):
        row, comparison = measured({"samebytes": lambda v, k: 200, "jax": lambda v, k: 100}, loops=[1.0, 1.5] * 100)
        self.assertEqual(len(comparison.calibration.times) - 1, 2 * 3 * 3)
        self.assertEqual(len(row["sides"]["jax"]["samples_per_second"]), 3)
        self.assertFalse(compare_quiet.judge(row, 1.0)["quiet"])
        self.assertTrue(compare_report.ratio_text(row).endswith(" !"))

    def test_a_strict_run_refuses_a_machine_that_is_not_quiet(self):
        comparison = Made({"samebytes": lambda v, k: 200})
        comparison.options.strict = True
        comparison.calibration.probe = lambda: [1.0, 1.5] * 10
        with self.assertRaisesRegex(Failed, "not quiet"):
            comparison.run()


class Other(worker.Session):
    """A peer whose outputs are off by so much."""

    def __init__(self, error):
        super().__init__("other", "1", WORKLOADS["mlp"])
        self.error = error

    def make(self, mode):
        return (lambda: None), self.workload.parameters

    def output_error(self, handle):
        return self.error


class Outputs(unittest.TestCase):
    def test_a_network_in_bf16_or_another_one_is_not_measured(self):
        for error in (4e-3, float("inf"), float("nan")):
            with self.assertRaises(worker.WrongOutputs):
                worker.prepare(Other(error), "infer")


def row_of(sides, mode="train"):
    return compare_report.with_ratio({"workload": "mlp", "mode": mode, "batch": 64, "sides": sides})


class Report(unittest.TestCase):
    def sides(self):
        return {
            "samebytes": {"samples_per_second": [3.0], "peak_bytes": 28_000_000, "resident_bytes": 131_000_000},
            "torch": {"variant": "eager", "samples_per_second": [1.0], "peak_bytes": 21_000_000},
            "jax": {"variant": "", "samples_per_second": [2.0], "peak_bytes": 161_000_000},
        }

    def test_the_leanest_is_named_and_not_the_fastest(self):
        row = row_of(self.sides())
        self.assertEqual(row["best"], "jax")
        self.assertEqual(compare_report.leanest(row), ("torch", "eager", 21_000_000))
        self.assertEqual(compare_report.leanest_text(row, "peak_bytes"), "PyTorch eager 21")

    def test_each_peer_has_its_own_memory(self):
        row = row_of(self.sides())
        self.assertEqual([compare_report.memory_cell(row, s) for s in ("samebytes", "torch", "jax")],
                         ["28 / 131", "21", "161"])  # fmt: skip

    def test_a_leaner_variant_that_took_no_turns_counts(self):
        sides = self.sides()
        sides["jax"]["memory"] = {"default": {"peak_bytes": 150_000_000}, "one_thread": {"peak_bytes": 9_000_000}}
        self.assertEqual(compare_report.leanest(row_of(sides)), ("jax", "one_thread", 9_000_000))

    def baselines(self):
        folder = os.path.join(FOLDER, "baseline")
        for name in os.listdir(folder):
            with open(os.path.join(folder, name)) as file:
                result = json.load(file)
            if "geometric_mean" in result:
                yield result

    def baseline(self):
        return next(self.baselines())

    def test_every_run_that_is_kept_is_printed_and_drawn(self):
        for result in self.baselines():
            self.assertIn("leanest", compare_report.table(result))
            self.assertIn("<svg", compare_plot.plot(result))

    def test_the_readme_has_the_block_between_its_marks_and_the_rest_stays(self):
        page = f"before\n{compare_report.BEGIN}\nold\n{compare_report.END}\nafter\n"
        made = compare_report.with_block(page, self.baseline(), "benchmarks/baseline/x.json")
        self.assertTrue(made.startswith("before\n") and made.endswith("\nafter\n"))
        self.assertNotIn("old\n", made)
        self.assertIn("(benchmarks/baseline/x.json)", made)
        self.assertEqual(made, compare_report.with_block(made, self.baseline(), "benchmarks/baseline/x.json"))

    def test_the_pages_say_what_the_file_says_that_they_name(self):
        for name, begin, end in (
            ("README.md", compare_report.SHORT_BEGIN, compare_report.SHORT_END),
            ("docs/measured.md", compare_report.BEGIN, compare_report.END),
        ):
            path = os.path.join(os.path.dirname(FOLDER), name)
            with open(path) as file:
                page = file.read()
            block = page[page.index(begin) : page.index(end)]
            source = block[block.rindex("](") + 2 : block.index(")", block.rindex("]("))]
            with open(os.path.join(os.path.dirname(path), source)) as file:
                self.assertEqual(compare_report.with_block(page, json.load(file), source), page)

    def test_a_page_without_the_marks_is_refused(self):
        with self.assertRaises(ValueError):
            compare_report.with_block("no marks", self.baseline(), "")


if __name__ == "__main__":
    unittest.main()
