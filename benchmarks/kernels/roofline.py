#!/usr/bin/env python3
"""How far each kernel of a model is from what the machine can do, as `sylvite explain --summary` measures it, with a
chart. docs/command.md says what the limits are.
"""
import argparse
import json
import math
import os
import subprocess
import tempfile

WIDTH, HEIGHT, LEFT, TOP = 640, 420, 70, 40


def explain(options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        command = [options.sylvite, "explain", options.model, "--summary", "--measure-peaks", "--json", path,
                   "--progress", "none", "--mode", options.mode, "--threads", str(options.threads), "--precision",
                   options.precision]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
        with open(path) as file:
            return json.load(file)


def kernel_rows(report):
    rows = []
    for name, kernel in report["kernels"].items():
        us = kernel["each_us"]
        rows.append({**kernel, "kernel": name, "name": kernel["first_launch"], "us": us,
                     "share": kernel["bound_us"] / us if us else 0.0})
    return sorted(rows, key=lambda row: -row["us"] * row["launches"])


def table(rows):
    head = f"{'kernel':<16}  {'class':<13} {'launches':>8} {'each us':>9} {'GFLOP/s':>8} {'GB/s':>7} {'bound':>8} {'of it':>6}"
    lines = [head + "  first launch"]
    for row in rows:
        rate = row["operations"] / row["us"] * 1e-3 if row["us"] else 0
        traffic = row["bytes"] / row["us"] * 1e-3 if row["us"] else 0
        lines.append(f"{row['kernel']:<16}  {row['class']:<13} {row['launches']:>8} {row['us']:>9.1f} {rate:>8.1f} "
                     f"{traffic:>7.1f} {row['bound']:>8} {row['share']:>6.2f}  {row['name']}")
    return "\n".join(lines)


def summary(rows):
    total = sum(row["us"] * row["launches"] for row in rows)
    least = sum(row["bound_us"] * row["launches"] for row in rows)
    by_bound = {}
    for row in rows:
        by_bound[row["bound"]] = by_bound.get(row["bound"], 0) + row["bound_us"] * row["launches"]
    parts = ", ".join(f"{name} {value / 1e3:.2f}" for name, value in sorted(by_bound.items()))
    return {"kernels_ms": total / 1e3, "bound_ms": least / 1e3, "share": least / total, "by_bound": parts}


def draw(rows, peaks, title, path):
    """Operations a second over operations a byte, both logarithmic; a circle's area is the kernel's time."""
    points = [row for row in rows if row["operations"] > 0 and row["us"] > 0]
    if not points:
        return
    roofs = peaks["operations"]
    intensities = [row["operations"] / row["bytes"] for row in points]
    x0, x1 = math.log10(min(intensities + [0.1])), math.log10(max(intensities + [1000]))
    speeds = [row["operations"] / row["us"] * 1e6 for row in points]
    y0, y1 = math.log10(min(speeds + [1e9])), math.log10(max(roofs.values()) * 1.5)

    def x_of(value):
        return LEFT + (math.log10(value) - x0) / (x1 - x0) * WIDTH

    def y_of(value):
        return TOP + HEIGHT - (math.log10(value) - y0) / (y1 - y0) * HEIGHT

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 120}" height="{TOP + HEIGHT + 50}" '
             'font-family="sans-serif" font-size="12">', f'<text x="{LEFT}" y="20">{title}</text>',
             f'<clipPath id="area"><rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}"/></clipPath>',
             f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>']
    for power in range(math.ceil(x0), math.floor(x1) + 1):
        parts.append(f'<text x="{x_of(10 ** power):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{10.0 ** power:g}</text>')
    for power in range(math.ceil(y0), math.floor(y1) + 1):
        parts.append(f'<text x="{LEFT - 6}" y="{y_of(10 ** power) + 4:.1f}" text-anchor="end">{10.0 ** (power - 9):g}</text>')
    parts.append(f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 36}" text-anchor="middle">operations a byte in and out</text>')
    parts.append(f'<text x="16" y="{TOP + HEIGHT / 2}" transform="rotate(-90 16 {TOP + HEIGHT / 2})" text-anchor="middle">GFLOP/s</text>')
    for name, roof in roofs.items():
        parts.append(f'<line x1="{LEFT}" y1="{y_of(roof):.1f}" x2="{LEFT + WIDTH}" y2="{y_of(roof):.1f}" stroke="#333"/>')
        parts.append(f'<text x="{LEFT + WIDTH + 4}" y="{y_of(roof) + 4:.1f}">{name} peak</text>')
    for name, label in (("l2_rate", "L2"), ("weight_rate", "weights' place")):
        low, high = 10 ** x0, 10 ** x1
        parts.append(f'<line clip-path="url(#area)" x1="{x_of(low):.1f}" y1="{y_of(low * peaks[name]):.1f}" x2="{x_of(high):.1f}" '
                     f'y2="{y_of(high * peaks[name]):.1f}" stroke="#888" stroke-dasharray="4"/>')
        at = 10 ** (x0 + 0.03 * (x1 - x0))
        parts.append(f'<text x="{x_of(at):.1f}" y="{max(TOP + 12, y_of(at * peaks[name]) - 4):.1f}" fill="#666">{label}</text>')
    total = sum(row["us"] * row["launches"] for row in points)
    colours = {"compute": "#3a7d44", "L2": "#3a5f9d", "weights": "#b5483a"}
    for row, intensity, speed in zip(points, intensities, speeds, strict=True):
        radius = max(2.0, 40 * math.sqrt(row["us"] * row["launches"] / total))
        parts.append(f'<circle cx="{x_of(intensity):.1f}" cy="{y_of(speed):.1f}" r="{radius:.1f}" fill="{colours[row["bound"]]}" '
                     f'fill-opacity="0.45"><title>{row["name"]}: {row["share"]:.2f} of its bound ({row["bound"]})</title></circle>')
    parts.append("</svg>\n")
    with open(path, "w") as file:
        file.write("\n".join(parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite")
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--mode", default="default")
    parser.add_argument("--json")
    parser.add_argument("--svg")
    options = parser.parse_args()
    report = explain(options)
    peaks = report["peaks"]
    rows = kernel_rows(report)
    totals = summary(rows)
    named = ", ".join(f"{name} {rate / 1e9:.0f} GFLOP/s" for name, rate in peaks["operations"].items())
    print(f"{peaks['cpu']}, {options.threads} thread(s), {options.precision}: {named}, L2 {peaks['l2_rate'] / 1e9:.1f} GB/s, "
          f"weights {peaks['weight_rate'] / 1e9:.1f} GB/s")
    print(table(rows))
    print(f"kernels {totals['kernels_ms']:.2f} ms, their bounds {totals['bound_ms']:.2f} ms ({totals['by_bound']}): "
          f"{totals['share']:.2f}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"model": options.model, "precision": options.precision, "peaks": peaks, "totals": totals,
                       "kernels": rows}, file, indent=1)
    if options.svg:
        draw(rows, peaks, f"{options.model.split('/')[-1]}, {options.precision}, {options.threads} thread(s)", options.svg)


if __name__ == "__main__":
    main()
