"""What compare.py makes of its rounds: ratios, the leanest, the tables, the block of the README."""

import math
import re
import statistics
import textwrap

from compare_trials import PEERS

MODES = {"train": "training", "infer": "inference"}
SIDES = ("samebytes", *PEERS)
NAMES = {"samebytes": "Samebytes", "torch": "PyTorch", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO",
         "jax": "JAX", "mlx": "MLX", "tinygrad": "tinygrad"}  # fmt: skip
BEGIN, END = "<!-- compare.py: begin -->", "<!-- compare.py: end -->"
SHORT_BEGIN, SHORT_END = "<!-- compare.py: short begin -->", "<!-- compare.py: short end -->"


def with_ratio(row):
    """Adds medians, the best peer, and the ratio to it round by round."""
    for side in row["sides"].values():
        if side.get("samples_per_second"):
            side["median"] = statistics.median(side["samples_per_second"])
    peers = {name: side["median"] for name, side in row["sides"].items() if name != "samebytes" and "median" in side}
    if peers:
        row["best"] = max(peers, key=peers.get)
        ours, theirs = (row["sides"][name]["samples_per_second"] for name in ("samebytes", row["best"]))
        rounds = [a / b for a, b in zip(ours, theirs)]
        row["ratio"] = {
            "median": statistics.median(rounds),
            "least": min(rounds),
            "largest": max(rounds),
            "rounds": rounds,
        }
    return row


def geometric_means(rows):
    means = {}
    for mode in MODES:
        ratios = [row["ratio"]["median"] for row in rows if row["mode"] == mode and "ratio" in row]
        if ratios:
            means[mode] = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return means


def leanest(row, key="peak_bytes"):
    """(side, variant, bytes) of the least memory among all that ran, each peer in any of its variants. None where
    nothing is known."""
    known = []
    for side, entry in row["sides"].items():
        figures = {v: m.get(key) for v, m in entry.get("memory", {}).items()} if side != "samebytes" else {}
        # Of the variant that took turns, those are the figure.
        figures[entry.get("variant") or "default"] = entry.get(key)
        known += [(side, variant, size) for variant, size in figures.items() if size is not None]
    return min(known, key=lambda one: one[2], default=None)


def rate(value):
    """Four digits, as people read them."""
    if value is None:
        return ""
    if value >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def megabytes(value):
    if value is None:
        return ""
    return f"{value / 1e6:.1f}" if value < 1e7 else f"{value / 1e6:,.0f}".replace(",", " ")


def seconds(value):
    return "" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def is_marked(row):
    """The machine was not quiet, or a peer lagged behind its own trial. Runs that did not look are not marked."""
    return not row.get("quiet", True) or bool(row.get("lagging"))


def ratio_text(row):
    ratio = row.get("ratio")
    if not ratio:
        return ""
    mark = " !" if is_marked(row) else ""
    return f"{ratio['median']:.2f} ({ratio['least']:.2f} .. {ratio['largest']:.2f}){mark}"


def one_line(row):
    ours = row["sides"]["samebytes"]["median"]
    best = row.get("best")
    theirs = f", {best} {rate(row['sides'][best]['median'])}: {ratio_text(row)}" if best else ", no peer"
    return f"{row['workload']} {MODES[row['mode']]}: samebytes {rate(ours)} samples/s{theirs}"


def speed_cell(row, name):
    """~ before one that was only tried."""
    side = row["sides"].get(name, {})
    value = side.get("median") or side.get("trial_samples_per_second")
    if not value:
        return ""
    return ("" if "median" in side else "~") + rate(value)


def memory_cell(row, name):
    """Grown by, and in all where that was measured."""
    side = row["sides"].get(name, {})
    grown, whole = megabytes(side.get("peak_bytes")), megabytes(side.get("resident_bytes"))
    return f"{grown} / {whole}" if whole else grown


def leanest_text(row, key):
    found = leanest(row, key)
    if not found:
        return ""
    side, variant, size = found
    return " ".join(filter(None, [NAMES[side], "" if variant == "default" else variant, megabytes(size)]))


def markdown(header, lines):
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]
    text = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(header, widths)) + " |"]
    text.append("|" + "|".join("-" * (w + 2) for w in widths) + "|")
    text += ["| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths)) + " |" for line in lines]
    return "\n".join(text)


def of_mode(result, mode):
    """The rows of a mode, and the peers that any of them has."""
    rows = [row for row in result["rows"] if row["mode"] == mode]
    return rows, [name for name in PEERS if any(name in row["sides"] for row in rows)]


def mode_table(result, mode):
    rows, peers = of_mode(result, mode)
    header = ["workload", "samebytes", *peers, "ratio to the best (least .. largest)", "best peer"]
    header += ["first step s", "best peer's"]
    lines, memory = [], []
    for row in rows:
        ours, best = row["sides"]["samebytes"], row["sides"].get(row.get("best"), {})
        lines.append(
            [
                row["workload"],
                *(speed_cell(row, name) for name in ("samebytes", *peers)),
                ratio_text(row),
                f"{row.get('best', '')} {best.get('variant', '')}".strip(),
                *(seconds(ours["first_step_seconds"]), seconds(best.get("first_step_seconds"))),
            ]
        )
        leanest_two = (leanest_text(row, key) for key in ("peak_bytes", "resident_bytes"))
        memory.append([row["workload"], *(memory_cell(row, name) for name in ("samebytes", *peers)), *leanest_two])
    text = f"{MODES[mode]}, samples/s\n\n" + markdown(header, lines)
    if mode in result["geometric_mean"]:
        text += f"\n\nGeometric mean of the ratios: {result['geometric_mean'][mode]:.2f}"
    if mode == "train" or "calibration" in result:  # earlier runs inferred in the process that had trained
        header = ["workload", "samebytes", *peers, "leanest", "leanest in all"]
        text += f"\n\n{MODES[mode]}, memory in MB: grown by / in all\n\n" + markdown(header, memory)
    notes = [marks(rows), reasons(rows)]
    if "+cu" in result["versions"].get("torch", ""):
        notes.append(["This build of torch carries CUDA's libraries, some 400 MB of its memory in all."])
    return text + "".join("\n\n" + "\n".join(part) for part in notes if part)


def marks(rows):
    """Why a row has its !"""
    lines = []
    for row in rows:
        if not row.get("quiet", True):
            lines.append(f"! {row['workload']}: the calibration loop differed by up to "
                         f"{100 * row['loop_deviation']:.0f} % from the run's median")  # fmt: skip
        for peer, share in row.get("lagging", {}).items():
            lines.append(f"! {row['workload']}: {peer}'s turns are {100 * share:.0f} % below its trial, twice")
    return lines


def reasons(rows):
    return [
        f"{row['workload']}, {name}: {side['reason']}"
        for row in rows
        for name, side in row["sides"].items()
        if side.get("reason")
    ]


def quiet_text(result):
    loop = result.get("calibration")
    if not loop:
        return "whether the machine was quiet was not measured"
    state = "quiet" if loop["quiet"] else "not quiet"
    return (f"the machine was {state}: a calibration loop of {loop['median_ms']:.0f} ms varied by "
            f"{100 * loop['spread']:.0f} % (10th to 90th percentile of {loop['loops']})")  # fmt: skip


def heading(result):
    machine, device = result["machine"], result["device"]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return (
        f"{machine['cpu']}, {result['threads']} threads; {device['platform']} {device['driver']}, memory mode "
        f"{device['memory_mode']}, {device['personality']} kernels; {versions}\n"
        f"{result['date']}, `{result['command']}`, {result['rounds']} rounds of {result['seconds']} s, "
        f"our loader: {result['loader']}; {quiet_text(result)}; ~: tried only"
    )


def table(result):
    return "\n\n".join([heading(result), *(mode_table(result, m) for m in MODES if any_rows(result, m))])


def any_rows(result, mode):
    return any(row["mode"] == mode for row in result["rows"])


# ---- the README


def in_turns(result, mode):
    """The rows of a mode, and the peers that took turns in any of them."""
    rows, peers = of_mode(result, mode)
    return rows, [name for name in peers if any("median" in row["sides"].get(name, {}) for row in rows)]


def short_block(result, source):
    """One table of ratios and memory; source: where all figures are."""
    means = result["geometric_mean"]
    rows = {mode: {row["workload"]: row for row in in_turns(result, mode)[0]} for mode in MODES}
    header = ["", "training, samples/s", "to the best peer", "inference, samples/s", "to the best peer", "MB", "leanest"]
    lines = []
    for name, row in rows["train"].items():
        inference = rows["infer"].get(name, {"sides": {}})
        lines.append(
            [name, speed_cell(row, "samebytes"), ratio_text(row).split(" (")[0], speed_cell(inference, "samebytes"),
             ratio_text(inference).split(" (")[0], megabytes(row["sides"]["samebytes"].get("peak_bytes")),
             leanest_text(row, "peak_bytes")]
        )  # fmt: skip
    lines.append(["mean", "", f"{means['train']:.2f}" if "train" in means else "", "",
                  f"{means['infer']:.2f}" if "infer" in means else "", "", ""])  # fmt: skip
    machine = result["machine"]["cpu"]
    paragraph = (f"{result['threads']} threads of {article(machine)}, f32, {result['date'][:10]}. Everything measured: "
                 f"[{source}]({source}).")  # fmt: skip
    return f"{textwrap.fill(paragraph, 120, break_long_words=False, break_on_hyphens=False)}\n\n{markdown(header, lines)}"


def full_block(result, source):
    """All tables, and what has to be said about them; source: where all figures are."""
    means = result["geometric_mean"]
    shown = {name for mode in MODES for name in in_turns(result, mode)[1]}
    versions = ", ".join(f"{NAMES[name]} {result['versions'][name]}" for name in PEERS if name in shown)
    machine, device = result["machine"], result["device"]
    paragraph = (
        f"{result['threads']} threads of {article(machine['cpu'])}, {device['platform']} {device['driver']}, f32, "
        f"AdamW, batch 64 (gpt-small 4, context 128), {result['date'][:10]}: samples per second, median of "
        f"{result['rounds']} alternating rounds; {versions}. The ratio is to the best peer, with the smallest and the largest round "
        f"in brackets; {quiet_text(result)}. ~: far behind and only tried. Everything measured: [{source}]({source})."
    )
    if "calibration" not in result:
        paragraph += (" PyTorch's threads spun in this run, where a neighbour that takes a core slows it most; sleeping "
                      "threads, freezing, ONNX Runtime and OpenVINO were not part of it.")  # fmt: skip
    text = [textwrap.fill(paragraph, 120, break_long_words=False, break_on_hyphens=False)]
    for mode in MODES:
        rows, peers = in_turns(result, mode)
        if not rows:
            continue
        header = [MODES[mode], *(NAMES[name] for name in ("samebytes", *peers)), "ratio", "best peer"]
        lines = [
            [row["workload"], *(speed_cell(row, name) for name in ("samebytes", *peers)), ratio_text(row),
             f"{NAMES.get(row.get('best'), '')} {row['sides'].get(row.get('best'), {}).get('variant') or ''}".strip()]
            for row in rows
        ]  # fmt: skip
        text += [markdown(header, lines)]
        if marks(rows):
            text.append("\n".join(f"- {line}" for line in marks(rows)))
    text.append("Geometric mean: " + ", ".join(f"{means[mode]:.2f} in {MODES[mode]}" for mode in means) + ".")
    rows, peers = in_turns(result, "train")
    if rows:
        header = ["training, MB", *(NAMES[name] for name in ("samebytes", *peers)), "leanest"]
        lines = [
            [row["workload"], *(megabytes(row["sides"].get(name, {}).get("peak_bytes")) for name in
                                ("samebytes", *peers)), leanest_text(row, "peak_bytes")]
            for row in rows
        ]  # fmt: skip
        text.append("Memory: growth of the process from before the model is created to its peak, each framework in the\n"
                    "variant with the speed above; the leanest is the best of all variants tried.")  # fmt: skip
        text.append(markdown(header, lines))
    return "\n\n".join(text)


def article(name):
    return f"an {name}" if name[:1] in "AEIO" else f"a {name}"


def with_block(text, result, source):
    """A page with the blocks between its marks made anew."""
    is_marked_page = False
    for begin, end, block in ((BEGIN, END, full_block), (SHORT_BEGIN, SHORT_END, short_block)):
        found = re.search(re.escape(begin) + ".*?" + re.escape(end), text, re.DOTALL)
        if found:
            is_marked_page = True
            text = text[: found.start()] + f"{begin}\n\n{block(result, source)}\n\n{end}" + text[found.end() :]
    if not is_marked_page:
        raise ValueError(f"there is no {BEGIN} ... {END} in the page")
    return text
