#!/usr/bin/env python3
"""Whether tuning can be trusted to come out the same: one model tuned several times from nothing.

usage: tune_repeats.py BUILD MODEL.onnx [--times 5] [--budget 60s] [--threads 1] [--rounds 9] [--folder FOLDER]
BUILD holds bin/sylvite and bin/rerace. Prints a table: what each tuning left, run in turns with the others and with default
schedules; how far the times lie apart; and how many of the races that its winners won against the incumbent, and how many of all
that were won, are won again. Exits with 0 when the times lie within 3 % and 95 % of the winners' claims hold. Missing weights are random. With --folder the tunings stay there, and those that
are there are not made again.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

MOST_SPREAD = 1.03
LEAST_HELD = 0.95


def command(options, verb, folder, *words):
    return [os.path.join(options.build, "bin", "sylvite"), verb, options.model, "--threads", str(options.threads),
            "--random-weights", "0", "--db", os.path.join(folder, "trials.db"), "--cache-dir",
            os.path.join(folder, "objects"), "--progress", "none", *words]


def tune(options, folder):
    if os.path.exists(os.path.join(folder, "trials.db")):
        return
    os.makedirs(folder)
    subprocess.run(command(options, "tune", folder, "--budget", options.budget), check=True, stdout=subprocess.DEVNULL)


def bench(options, folder, *words):
    report = os.path.join(folder, "report.json")
    subprocess.run(command(options, "bench", folder, "--no-profile", "--warmup", "0.2s", "--duration", "1s", "--json", report,
                           *words), check=True, stdout=subprocess.DEVNULL)
    with open(report) as file:
        return json.load(file)["latency_ms"]["median"]


def rerace(options, folder):
    words = [os.path.join(options.build, "bin", name) for name in ("rerace", "sylvite")]
    done = subprocess.run([*words, os.path.join(folder, "trials.db")], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("model")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder")
    return parser.parse_args()


def compare(options, top):
    folders = [os.path.join(top, str(number)) for number in range(options.times)]
    for folder in folders:
        tune(options, folder)
    contestants = {f"tuning {i + 1}": (folder, ()) for i, folder in enumerate(folders)}
    contestants["default"] = (folders[0], ("--set", "db.enabled=false"))
    times = {name: [] for name in contestants}
    for _ in range(options.rounds):
        for name, (folder, words) in contestants.items():
            times[name].append(bench(options, folder, *words))
    # Each round is as fast as the machine is then: compared with the first tuning in the same round.
    relative = {name: statistics.median(own / first for own, first in zip(all_of_it, times["tuning 1"]))
                for name, all_of_it in times.items()}
    claims = {f"tuning {i + 1}": rerace(options, folder) for i, folder in enumerate(folders)}
    columns = ("claims", "hold", "races", "races_hold")
    print(f"{'':10} {'median ms':>10} {'relative':>9} {'winners':>8} {'hold':>5} {'races won':>10} {'hold':>5}")
    for name in contestants:
        own = [claims[name][column] if name in claims else "" for column in columns]
        print(f"{name:10} {statistics.median(times[name]):10.4f} {relative[name]:9.3f} {own[0]:>8} {own[1]:>5} {own[2]:>10} "
              f"{own[3]:>5}")
    tuned = [relative[name] for name in claims]
    return max(tuned) / min(tuned), sum(own["claims"] for own in claims.values()), sum(own["hold"] for own in claims.values())


def main():
    options = parse_options()
    if options.folder:
        os.makedirs(options.folder, exist_ok=True)
        spread, claims, hold = compare(options, options.folder)
    else:
        with tempfile.TemporaryDirectory() as folder:
            spread, claims, hold = compare(options, folder)
    share = hold / claims if claims else 1.0
    print(f"slowest over fastest tuning: {spread:.3f} (at most {MOST_SPREAD}); {hold} of {claims} claims hold: {share:.1%} "
          f"(at least {LEAST_HELD:.0%})")
    sys.exit(0 if spread <= MOST_SPREAD and share >= LEAST_HELD else 1)


if __name__ == "__main__":
    main()
