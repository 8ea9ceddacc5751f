#!/usr/bin/env python3
"""Draws one step of a trace (samebytes profile --trace, bench_side_by_side --trace) as SVG: a lane for each device.

    benchmarks/timeline.py trace.json docs/side_by_side.svg [--step 5] [--title TEXT]

Launches are coloured by the first name of their layer's path; those of the reverse pass are lighter.
"""
import argparse
import html
import json
import sys

WIDTH, LEFT, RIGHT, LANE, GAP, TOP = 1000, 84, 16, 46, 18, 62
COLOURS = ["#4c72b0", "#dd8452", "#55a868", "#8172b3", "#937860", "#c44e52"]
OTHER = "#8c8c8c"


def part_of(layer):
    return layer.split(".")[0].split(" ")[0] if layer else "update"


def text(x, y, words, size=11, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{html.escape(words)}</text>'


def draw(trace, step, title):
    events = trace["traceEvents"]
    launches = [e for e in events if e["ph"] == "X" and e.get("cat") in ("forward", "gradient")]
    if not launches:
        sys.exit("timeline: the trace has no launches")
    steps = sorted({e["args"]["step"] for e in launches})
    step = steps[len(steps) // 2] if step is None else step
    launches = [e for e in launches if e["args"]["step"] == step]
    if not launches:
        sys.exit(f"timeline: the trace has no step {step}; it has {steps[0]} to {steps[-1]}")
    pid = launches[0]["pid"]
    devices = [e for e in events if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"] == pid]
    begin = min(e["ts"] for e in launches)
    end = max(e["ts"] + e["dur"] for e in launches)
    scale = (WIDTH - LEFT - RIGHT) / (end - begin)
    parts = []
    for e in launches:
        part = part_of(e["args"]["layer"])
        if part not in parts:
            parts.append(part)
    colour = {p: COLOURS[i] if i < len(COLOURS) else OTHER for i, p in enumerate(parts)}

    lanes = []
    for device in sorted(devices, key=lambda d: d["tid"]):
        lanes.append([e for e in launches if e["tid"] == device["tid"]])
    both = overlap(lanes)
    height = TOP + len(lanes) * (LANE + GAP) + 34
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
           f'height="{height}" font-family="sans-serif" fill="#222">',
           text(LEFT, 18, f"{title}: {(end - begin) / 1e3:.2f} ms, {both / 1e3:.2f} ms of them on all devices at once",
                13)]
    x = LEFT
    for part in parts:
        out.append(f'<rect x="{x}" y="30" width="10" height="10" fill="{colour[part]}"/>')
        out.append(text(x + 14, 39, part))
        x += 34 + 7 * len(part)
    out.append(text(x + 8, 39, "lighter: gradients"))
    for i, lane in enumerate(lanes):
        y = TOP + i * (LANE + GAP)
        busy = sum(e["dur"] for e in lane)
        out.append(text(LEFT - 8, y + LANE / 2 - 2, f"device {i}", 12, "end"))
        out.append(text(LEFT - 8, y + LANE / 2 + 12, f"{100 * busy / (end - begin):.0f} % busy", 10, "end"))
        out.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH - LEFT - RIGHT}" height="{LANE}" fill="#f4f4f4"/>')
        for e in lane:
            args = e["args"]
            words = f'{e["name"]} {args["shape"]} {args["layer"]} {e["dur"] / 1e3:.3f} ms'
            opacity = 0.55 if e["cat"] == "gradient" else 1
            out.append(f'<rect x="{LEFT + (e["ts"] - begin) * scale:.2f}" y="{y}" '
                       f'width="{max(e["dur"] * scale, 0.3):.2f}" height="{LANE}" '
                       f'fill="{colour[part_of(args["layer"])]}" fill-opacity="{opacity}" stroke="#fff" '
                       f'stroke-width="0.4"><title>{html.escape(words)}</title></rect>')
    y = TOP + len(lanes) * (LANE + GAP)
    for tick in ticks((end - begin) / 1e3):
        x = LEFT + tick * 1e3 * scale
        out.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{y - GAP + 6}" stroke="#bbb" stroke-width="0.5"/>')
        out.append(text(x, y + 2, f"{tick:g}", 10, "middle"))
    out.append(text(WIDTH - RIGHT, y + 18, "ms", 10, "end"))
    return "\n".join(out + ["</svg>", ""])


def overlap(lanes):
    """Microseconds in which every lane has a launch running."""
    points = []
    for i, lane in enumerate(lanes):
        for e in lane:
            points += [(e["ts"], 1, i), (e["ts"] + e["dur"], -1, i)]
    running, last, total = [0] * len(lanes), None, 0.0
    for at, change, lane in sorted(points):
        if last is not None and all(running):
            total += at - last
        running[lane] += change
        last = at
    return total


def ticks(length):
    step = next(s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e9) if length / s <= 12)
    return [round(i * step, 6) for i in range(int(length / step) + 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("svg")
    parser.add_argument("--step", type=int)
    parser.add_argument("--title", default="one step")
    options = parser.parse_args()
    with open(options.trace, encoding="utf-8") as file:
        trace = json.load(file)
    with open(options.svg, "w", encoding="utf-8") as file:
        file.write(draw(trace, options.step, options.title))


if __name__ == "__main__":
    main()
