"""The picture of a comparison: bars of the ratios."""

from xml.sax.saxutils import escape

from compare_report import MODES, is_marked

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
            mark = " !" if is_marked(row) else ""
            label = f"{ratio['median']:.2f}{mark}  {MODES[row['mode']]}, {best}"
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
