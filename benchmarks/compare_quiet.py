"""Whether the machine was quiet: a fixed piece of arithmetic beside the turns, whose time should not change.

The piece is a hash of the same bytes by as many threads as every side has, about LOOP_SECONDS long, so that it feels
whoever takes a core, or a part of one. Its time between turns is compared with its median over the whole run.
"""

import hashlib
import statistics
import threading
import time

LOOP_SECONDS = 0.06
PROBE_LOOPS = 25  # before anything is measured
MOST = 0.10  # of the median: what a loop may differ by
BLOCK = bytes(1 << 20)


class Calibration:
    """The loop, and its times so far."""

    def __init__(self, threads):
        self.threads, self.blocks, self.times = threads, 1, []

    def probe(self):
        """Fixes the length of the loop and takes first times. Returns its times."""
        for _ in range(3):  # the first one wakes the cores
            spent = self.spend()
            self.blocks = max(1, round(self.blocks * LOOP_SECONDS / spent))
        return [self.loop() for _ in range(PROBE_LOOPS)]

    def spend(self):
        def work():
            digest = hashlib.sha256()
            for _ in range(self.blocks):
                digest.update(BLOCK)  # without the interpreter's lock

        others = [threading.Thread(target=work) for _ in range(self.threads - 1)]
        begin = time.perf_counter()
        for other in others:
            other.start()
        work()
        for other in others:
            other.join()
        return time.perf_counter() - begin

    def loop(self):
        self.times.append(self.spend())
        return self.times[-1]

    def median(self):
        return statistics.median(self.times)

    def is_quiet(self, loops):
        """Of a round, by what is known so far."""
        return deviation(loops, self.median()) <= MOST


def deviation(loops, median):
    """The largest distance of a loop from the median, in shares of it."""
    return max((abs(loop / median - 1) for loop in loops), default=0.0)


def spread(times):
    """From the 10th to the 90th percentile, in shares of the median."""
    ordered = sorted(times)
    last = len(ordered) - 1
    return (ordered[round(0.9 * last)] - ordered[round(0.1 * last)]) / statistics.median(ordered)


def verdict(calibration):
    """Of the whole run, for the JSON."""
    times = calibration.times
    median = statistics.median(times)
    return {
        "loops": len(times),
        "median_ms": 1e3 * median,
        "least_ms": 1e3 * min(times),
        "largest_ms": 1e3 * max(times),
        "spread": spread(times),
        "quiet": spread(times) <= MOST,
    }


def judge(row, median):
    """Marks a row beside whose rounds a loop differed by more than MOST from the run's median."""
    row["loop_deviation"] = deviation([loop for loops in row.pop("loops") for loop in loops], median)
    row["quiet"] = row["loop_deviation"] <= MOST
    return row
