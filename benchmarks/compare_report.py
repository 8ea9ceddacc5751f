"""What compare.py makes of its rounds: ratios, the table, the plot."""

import math
import statistics
from xml.sax.saxutils import escape

MODES = {"train": "training", "infer": "inference"}
PEERS = ("torch", "jax", "mlx", "tinygrad")


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


def rate(value):
    """Four digits, as people read them."""
    if value is None:
        return ""
    if value >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def megabytes(value):
    return "" if value is None else f"{value / 1e6:.0f}"


def seconds(value):
    return "" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def ratio_text(row):
    ratio = row.get("ratio")
    return f"{ratio['median']:.2f} ({ratio['least']:.2f} .. {ratio['largest']:.2f})" if ratio else ""


def one_line(row):
    ours = row["sides"]["samebytes"]["median"]
    best = row.get("best")
    theirs = f", {best} {rate(row['sides'][best]['median'])}: {ratio_text(row)}" if best else ", no peer"
    return f"{row['workload']} {MODES[row['mode']]}: samebytes {rate(ours)} samples/s{theirs}"


def peer_cell(row, name):
    """Speed and variant; ~ before one that was only tried."""
    side = row["sides"].get(name, {})
    value = side.get("median") or side.get("trial_samples_per_second")
    if not value:
        return ""
    return ("" if "median" in side else "~") + rate(value)


def markdown(header, lines):
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]
    text = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(header, widths)) + " |"]
    text.append("|" + "|".join("-" * (w + 2) for w in widths) + "|")
    text += ["| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths)) + " |" for line in lines]
    return "\n".join(text)


def mode_table(result, mode):
    rows = [row for row in result["rows"] if row["mode"] == mode]
    peers = [name for name in PEERS if any(name in row["sides"] for row in rows)]
    header = ["workload", "samebytes", *peers, "ratio to the best (least .. largest)", "best peer"]
    header += ["memory MB", "best peer's", "first step s", "best peer's"]
    lines = []
    for row in rows:
        ours, best = row["sides"]["samebytes"], row["sides"].get(row.get("best"), {})
        lines.append(
            [
                row["workload"],
                rate(ours["median"]),
                *(peer_cell(row, name) for name in peers),
                ratio_text(row),
                f"{row.get('best', '')} {best.get('variant', '')}".strip(),
                *(megabytes(ours.get("peak_bytes")), megabytes(best.get("peak_bytes"))),
                *(seconds(ours["first_step_seconds"]), seconds(best.get("first_step_seconds"))),
            ]
        )
    text = f"{MODES[mode]}, samples/s\n\n" + markdown(header, lines)
    if mode in result["geometric_mean"]:
        text += f"\n\nGeometric mean of the ratios: {result['geometric_mean'][mode]:.2f}"
    reasons = [
        f"{row['workload']}, {name}: {side['reason']}"
        for row in rows
        for name, side in row["sides"].items()
        if side.get("reason")
    ]
    return text + ("\n\n" + "\n".join(reasons) if reasons else "")


def heading(result):
    machine, device = result["machine"], result["device"]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return (
        f"{machine['cpu']}, {result['threads']} threads; {device['platform']} {device['driver']}, memory mode "
        f"{device['memory_mode']}, {device['personality']} kernels; {versions}\n"
        f"{result['date']}, `{result['command']}`, {result['rounds']} rounds of {result['seconds']} s, "
        f"our loader: {result['loader']}; ~: tried only"
    )


def table(result):
    return "\n\n".join([heading(result), *(mode_table(result, m) for m in MODES if any_rows(result, m))])


def any_rows(result, mode):
    return any(row["mode"] == mode for row in result["rows"])


# ---- the plot

BAR, GAP, GROUP_GAP = 16, 3, 14  # heights in pixels
LEFT, WIDTH, RIGHT, TOP, BOTTOM = 96, 440, 260, 58, 34
COLOURS = {"train": "#2b6cb0", "infer": "#90b4d8"}
INK, GREY = "#222222", "#888888"


def text_at(x, y, content, size=12, colour=INK, anchor="start"):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}">'
        f"{escape(content)}</text>"
    )


def plot(result):
    """Horizontal bars of the median ratios, whiskers from the least to the largest round, a line at 1."""
    rows = [row for row in result["rows"] if "ratio" in row]
    names = list(dict.fromkeys(row["workload"] for row in rows))
    most = max([row["ratio"]["largest"] for row in rows] + [1.2]) * 1.05
    scale = WIDTH / most
    parts, y = [], TOP
    for name in names:
        group = [row for row in rows if row["workload"] == name]
        middle = y + (len(group) * (BAR + GAP) - GAP) / 2
        parts.append(text_at(LEFT - 8, middle + 4, name, 13, anchor="end"))
        for row in group:
            ratio = row["ratio"]
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{ratio["median"] * scale:.1f}" height="{BAR}" '
                f'fill="{COLOURS[row["mode"]]}"/>'
            )
            whisker = f'M{LEFT + ratio["least"] * scale:.1f} {y + BAR / 2}H{LEFT + ratio["largest"] * scale:.1f}'
            parts.append(f'<path d="{whisker}" stroke="{INK}" stroke-width="1.2"/>')
            best = f"{row['best']} {row['sides'][row['best']]['variant']}".strip()
            label = f"{ratio['median']:.2f}  {MODES[row['mode']]}, {best}"
            parts.append(text_at(LEFT + ratio["largest"] * scale + 6, y + BAR - 4, label, 11))
            y += BAR + GAP
        y += GROUP_GAP
    bottom = y - GROUP_GAP
    step = 0.5 if most <= 4 else 1
    for i in range(int(most / step) + 1):
        x = LEFT + i * step * scale
        parts.append(text_at(x, bottom + 18, f"{i * step:g}", 11, GREY, "middle"))
    one = f'<path d="M{LEFT + scale:.1f} {TOP - 6}V{bottom + 4}" stroke="{INK}" stroke-dasharray="4 3"/>'
    width, height = LEFT + WIDTH + RIGHT, bottom + BOTTOM
    title = "samples/s over those of the best peer, bars: median, lines: all rounds"
    where = f"{result['machine']['cpu']}, {result['threads']} threads, f32, {result['date'][:10]}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif">',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            text_at(LEFT, 22, title, 14),
            text_at(LEFT, 40, where, 11, GREY),
            *parts,
            one,
            "</svg>\n",
        ]
    )
