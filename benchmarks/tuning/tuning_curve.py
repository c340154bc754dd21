#!/usr/bin/env python3
"""How far tuning gets in how much time: a short and a long search of one model from nothing, and the model as each left it,
turn by turn.

usage: tuning_curve.py SYLVITE MODEL.onnx [--short 3m] [--long 30m] [--threads 2] [--folder FOLDER] [--svg FILE]
       [--json FILE]
The curve is of the long search: the sum over the model's launches of the best median so far, kernel by kernel, as a share
of what default schedules take; a machine that becomes faster meanwhile bends it, too. The turns say what the searches are
worth in the whole model. With --folder the searches stay there, and are not made again: only the turns are.
"""
import argparse
import contextlib
import datetime
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time

WIDTH, HEIGHT, LEFT, TOP = 640, 320, 60, 30


def command(options, verb, folder, *words):
    return [options.sylvite, verb, options.model, "--mode", "max-autotune", "--threads", str(options.threads), "--db",
            os.path.join(folder, "trials.db"), "--cache-dir", os.path.join(folder, "objects"), "--progress", "none", *words]


def bench(options, folder, *words):
    report = os.path.join(folder, "report.json")
    subprocess.run([*command(options, "bench", folder, "--json", report, *words), "--set", "tune.enabled=false"], check=True,
                   stdout=subprocess.DEVNULL)
    with open(report) as file:
        return json.load(file)


@contextlib.contextmanager
def searches_in(folder):
    """The folder, which stays, or one that does not."""
    if folder:
        os.makedirs(folder, exist_ok=True)
        yield folder
    else:
        with tempfile.TemporaryDirectory() as temporary:
            yield temporary


def search(options, folder, budget):
    """When the search began, and the seconds it took; one that is there already is not made again."""
    record = os.path.join(folder, "search.json")
    if os.path.exists(record):
        with open(record) as file:
            return json.load(file)
    shutil.rmtree(folder, ignore_errors=True)  # of a search that was broken off
    os.makedirs(folder)
    start = time.time()
    subprocess.run(command(options, "tune", folder, "--budget", budget), check=True, stdout=subprocess.DEVNULL)
    took = time.time() - start
    with open(record, "w") as file:
        json.dump([start, took], file)
    return start, took


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def curve(database, start, launches):
    """(seconds since the start, microseconds of the model by the best medians so far); a kernel's first is the default's."""
    rows = sqlite3.connect(database).execute(
        "SELECT kernel, median_us, created_at FROM trials WHERE verdict = 'ok' ORDER BY id").fetchall()
    best = {}
    for kernel, us, _ in rows:
        best.setdefault(kernel, us)
    points = [(0.0, sum(us * launches.get(kernel, 0) for kernel, us in best.items()))]
    for kernel, us, created in rows:
        if us < best[kernel]:
            best[kernel] = us
            total = sum(us * launches.get(kernel, 0) for kernel, us in best.items())
            points.append((max(seconds_of(created) - start, 0.0), total))
    return points


def draw(points, end, title, path):
    first = points[0][1]
    least = min(us for _, us in points) / first
    low = max(0.0, least - 0.05)
    place = lambda seconds, share: (LEFT + seconds / end * WIDTH, TOP + (1 - share) / (1 - low) * HEIGHT)
    steps = []
    for (seconds, us), (_, before) in zip(points, [points[0], *points]):
        steps += [place(seconds, before / first), place(seconds, us / first)]
    steps.append(place(end, points[-1][1] / first))
    text = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 30}" height="{TOP + HEIGHT + 50}" '
            'font-family="sans-serif" font-size="12">', f'<text x="{LEFT}" y="18">{title}</text>']
    for share in (1.0, (1 + low) / 2, low):
        x, y = place(0, share)
        text.append(f'<text x="{x - 8}" y="{y + 4:.0f}" text-anchor="end">{share:.2f}</text>')
        text.append(f'<line x1="{x}" y1="{y:.0f}" x2="{LEFT + WIDTH}" y2="{y:.0f}" stroke="#ddd"/>')
    for part in range(5):
        x, y = place(end * part / 4, low)
        text.append(f'<text x="{x:.0f}" y="{y + 18:.0f}" text-anchor="middle">{end * part / 4 / 60:.1f} min</text>')
    path_text = " ".join(f"{x:.1f},{y:.1f}" for x, y in steps)
    text.append(f'<polyline points="{path_text}" fill="none" stroke="#3a7d44" stroke-width="2"/></svg>\n')
    with open(path, "w") as file:
        file.write("\n".join(text))


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite")
    parser.add_argument("model")
    parser.add_argument("--short", default="3m")
    parser.add_argument("--long", default="30m")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", help="where the searches stay")
    parser.add_argument("--svg")
    parser.add_argument("--json")
    return parser.parse_args()


def main():
    options = parse_options()
    name = os.path.splitext(os.path.basename(options.model))[0]
    with searches_in(options.folder) as top:
        folders = {budget: os.path.join(top, budget) for budget in (options.short, options.long)}
        for budget, folder in folders.items():
            start, took = search(options, folder, budget)
            print(f"{name}: a search of {budget} ended after {took:.0f} s", flush=True)
        launches = {}
        for launch in bench(options, folder, "--warmup", "0s", "--duration", "0s")["profile"]:
            launches[launch["kernel"]] = launches.get(launch["kernel"], 0) + 1
        points = curve(os.path.join(folder, "trials.db"), start, launches)
        if points[0][1] == 0:
            raise SystemExit(f"{name}: the search of {options.long} measured nothing: run `sylvite tune` to see why")
        turns = {budget: [] for budget in folders}
        for _ in range(options.rounds):
            for budget, folder in folders.items():
                report = bench(options, folder, "--no-profile", "--warmup", "0.2s", "--duration", "1s")
                turns[budget].append(report["latency_ms"]["median"])
    for seconds, us in points:
        if us == points[0][1] or us == points[-1][1]:
            print(f"  after {seconds:7.1f} s: {us / 1e3:9.3f} ms, {us / points[0][1]:.3f} of the beginning")
    medians = {budget: statistics.median(times) for budget, times in turns.items()}
    ratio = statistics.median(short / long for short, long in zip(turns[options.short], turns[options.long]))
    print(f"  the model, turn by turn: {medians} ms; {options.short} takes {ratio:.3f} of what {options.long} takes")
    if options.svg:
        draw(points, took, f"{name}: kernels' best times so far, as a share of default schedules'", options.svg)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"model": name, "threads": options.threads, "curve": points, "turns_ms": turns, "ratio": ratio}, file)


if __name__ == "__main__":
    main()
