#!/usr/bin/env python3
"""Compares `samebytes bench` with other frameworks on the same cores, workload by workload.

Every side is a worker process that keeps its model and waits between its turns (peers/worker.py, `samebytes bench
--serve`), so each is measured in the same way: first every peer, in each of its variants, is tried for a moment, which
also fills the caches of compiled kernels; then ours and the best variant of every peer that is not far behind are
started again and take turns (A B C A B C ...). The ratio of a round is our samples/s over that of the best peer; the
table has the median over the rounds, and the least and the largest. Peers loop over one batch that lies ready; ours has
its loader on, with the workload's augmentation. Between turns a loop that is always the same says whether the machine
was quiet: where it varies by more than 10 % a round is taken again, and what stays so is marked with !. See
benchmarks/README.md.

    benchmarks/compare.py --peers torch,onnxruntime,openvino --baseline NAME --page README.md \
        --page docs/measured.md --plot docs/comparison.svg
    benchmarks/compare.py --workloads mlp --peers torch --rounds 1 --seconds 0.3       a minute, to see that it runs

Needs Python's standard library only; the peers' packages are in the environment that peers/setup.sh makes.
"""

import argparse
import json
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "peers"))
sys.dont_write_bytecode = True

import compare_plot  # noqa: E402
import compare_report  # noqa: E402
from compare_run import Comparison, expected_seconds  # noqa: E402
from compare_trials import PEERS  # noqa: E402
from compare_worker import Failed  # noqa: E402
from workloads import WORKLOADS  # noqa: E402


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
    add("--peers", type=words(PEERS), default=list(PEERS), metavar="A,B",
        help=f"default: all of {', '.join(PEERS)}; '' for none")  # fmt: skip
    add("--mode", choices=("train", "infer", "both"), default="both", help="default: both")
    add("--rounds", type=int, default=5, metavar="N", help="turns of each side; default: 5")
    add("--seconds", type=float, default=1.5, metavar="S", help="of a turn, one step at least; default: 1.5")
    add("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N",
        help="of each side; default: all cores")  # fmt: skip
    add("--patience", type=float, default=45, metavar="S",
        help="for MLX's and tinygrad's first step and warm-up, four times that for others; default: 45")  # fmt: skip
    add("--fixed-batch", action="store_true", help="ours loops over one batch, too, instead of using its loader")
    add("--strict", action="store_true", help="refuse a machine that is not quiet, and fail where a row is marked")
    add("--json", metavar="FILE", help="write everything that was measured")
    add("--baseline", metavar="NAME", help="the same to benchmarks/baseline/NAME.json")
    add("--plot", metavar="FILE.svg", help="draw the ratios")
    add("--page", action="append", default=[], metavar="FILE.md", help="write the tables between the marks of that file")
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
            file.write(compare_plot.plot(result))
    for page in options.page:
        with open(page) as file:
            text = file.read()
        with open(page, "w") as file:
            measured = files[-1] if files else options.source or ""
            source = os.path.relpath(measured, os.path.dirname(os.path.abspath(page)))
            file.write(compare_report.with_block(text, result, source))
    marked = any(row.get("lagging") or not row.get("quiet", True) for row in result["rows"])
    return 1 if options.strict and marked else 0


if __name__ == "__main__":
    sys.exit(main())
