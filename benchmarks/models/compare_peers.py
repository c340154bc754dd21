#!/usr/bin/env python3
"""Sylvite beside ONNX Runtime and OpenVINO: the same filled models and inputs, turn by turn, outputs compared.

Each round times Sylvite for some seconds in a process of its own, then every peer for as long; a figure is the median
over rounds of the medians. The ratio says how much longer the best peer takes than Sylvite: the median over rounds of
the ratios in one round, since a shared machine's clock may change between rounds. Both sides of a row are held to the
same cores, one thread each, the next ones for every row: which core a program gets may decide how fast AMX is there.
Tune first, or give a budget with --set tune.budget=...: a mode of max-autotune tunes before the first round, untimed.
Errors are against ONNX Runtime in f32, by norms, means over some inputs (JSON has the largest differences beside). f32 is
also ONNX Runtime's column in every other precision but int8-dynamic, for which its own quantiser makes the model.
Models must hold their weights. Needs: pip install numpy onnx, and the peers: onnxruntime, openvino (absent ones are
left out, and said so).
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(1, str(pathlib.Path(__file__).parents[1] / "shared"))
import chart
import peers


def machine_name():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores"


def whole_cores():
    """A processor of each core that this process may use."""
    first = {}
    for processor in sorted(os.sched_getaffinity(0)):
        try:
            with open(f"/sys/devices/system/cpu/cpu{processor}/topology/core_cpus_list") as file:
                first.setdefault(file.read().strip(), processor)
        except OSError:
            first[processor] = processor
    return list(first.values())


def hold_to_cores(row_number, threads):
    """From here on for this process, threads and processes that it starts; all cores where there are too few."""
    cores = whole_cores()
    if len(cores) >= threads:
        start = row_number * threads
        os.sched_setaffinity(0, {cores[(start + i) % len(cores)] for i in range(threads)})
    return sorted(os.sched_getaffinity(0))


def run_sylvite(options, verb, path, words):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        command = [options.sylvite, verb, path, "--json", report, "--progress", "none", *words]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
        with open(report) as file:
            return json.load(file)


def time_peer(run, inputs, seconds):
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        run(inputs)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def share(difference, expected, size):
    return float(size(difference)) / (float(size(expected)) or 1.0)


def error_of(actual, expected):
    """Differences as shares of what was expected, by norms and by largest magnitudes; of several outputs the worst."""
    sizes = {"norm": np.linalg.norm, "largest": lambda values: np.abs(values).max()}
    pairs = [(wanted.ravel().astype(np.float64), got.ravel() - wanted.ravel().astype(np.float64))
             for got, wanted in zip(actual, expected, strict=True)]
    return {name: max(share(difference, wanted, size) for wanted, difference in pairs) for name, size in sizes.items()}


def mean_error(run, drawn, expected):
    """The mean over inputs. One input alone says little of the largest difference."""
    errors = [error_of(run(inputs), wanted) for inputs, wanted in zip(drawn, expected, strict=True)]
    return {name: statistics.mean(error[name] for error in errors) for name in errors[0]}


def sylvite_words(case, options):
    words = ["--mode", case["mode"], "--threads", str(case["threads"]), "--precision", case["precision"]]
    return words + [word for setting in options.settings for word in ("--set", setting)]


def as_files(inputs, folder):
    words = []
    for i, (name, array) in enumerate(inputs.items()):
        np.save(f"{folder}/{i}.npy", array)
        words += ["--input", f"{name}={folder}/{i}.npy"]
    return words


def sylvite_outputs(case, inputs, words, options):
    with tempfile.TemporaryDirectory() as folder:
        words = [*words, *as_files(inputs, folder), "--output-dir", os.path.join(folder, "out"), "--first-answer", "best"]
        run_sylvite(options, "run", case["path"], words)
        names = sorted(os.listdir(os.path.join(folder, "out")), key=lambda n: (len(n), n))
        return [np.load(os.path.join(folder, "out", name)) for name in names if name.endswith(".npy")]


def reference_outputs(case, drawn):
    run = peers.load_onnxruntime(case["path"], case["threads"], "f32")
    return [run(inputs) for inputs in drawn]


def ratio_in_turns(rounds, medians):
    """The best peer's time over Sylvite's, the median over rounds: only neighbours in time share a clock rate."""
    best = min((name for name in medians if name != "sylvite"), key=medians.get)
    return statistics.median(theirs / ours for theirs, ours in zip(rounds[best], rounds["sylvite"], strict=True))


def time_in_turns(case, loaded, inputs, words, options):
    """Milliseconds by program, round by round."""
    rounds = {name: [] for name in ["sylvite", *loaded]}
    with tempfile.TemporaryDirectory() as folder:
        timing = [*words, *as_files(inputs, folder), "--warmup", "0.3s", "--duration", f"{options.seconds}s", "--no-profile"]
        for _ in range(options.rounds):
            rounds["sylvite"].append(run_sylvite(options, "bench", case["path"], timing)["latency_ms"]["median"])
            for name, run in loaded.items():
                time.sleep(0.2)  # threads of the last one may still spin
                rounds[name].append(time_peer(run, inputs, options.seconds))
            time.sleep(0.2)
    return rounds


def measure(row_number, case, options):
    """One row of the report. Runs in a process of its own: peers size their pools by the cores of the first row."""
    drawn = [peers.draw_inputs(case["path"], seed) for seed in range(options.inputs)]
    expected = reference_outputs(case, drawn)
    words = sylvite_words(case, options)
    error = {"sylvite": mean_error(lambda inputs: sylvite_outputs(case, inputs, words, options), drawn, expected)}
    cores = hold_to_cores(row_number, case["threads"])
    loaded = {name: peers.LOADERS[name](case["path"], case["threads"], case["precision"]) for name in options.peers}
    error.update({name: mean_error(run, drawn, expected) for name, run in loaded.items()})
    rounds = time_in_turns(case, loaded, drawn[0], words, options)
    medians = {name: statistics.median(times) for name, times in rounds.items()}
    return {**case, "error": error, "cores": cores, "rounds_ms": rounds, "ms": medians,
            "ratio": ratio_in_turns(rounds, medians)}


def print_header(options):
    columns = "".join(f"{name + ' ms':>16}" for name in ["sylvite", *options.peers])
    print(f"{'model':<20}{'threads':>8}{'precision':>10}{'mode':>14}{columns}{'ratio':>8}{'error':>10}{'peer':>10}", flush=True)


def peer_error(row):
    """Of the peer that is timed against: the least error of those that compute in the row's precision, by norms."""
    is_own = row["precision"] == "int8-dynamic"  # elsewhere its f32 is the reference
    return min(error["norm"] for name, error in row["error"].items()
               if name != "sylvite" and (name != "onnxruntime" or is_own or len(row["error"]) == 2))


def print_row(row, options):
    columns = "".join(f"{row['ms'][name]:>16.3f}" if name in row["ms"] else f"{'-':>16}"
                      for name in ["sylvite", *options.peers])
    print(f"{row['model']:<20}{row['threads']:>8}{row['precision']:>10}{row['mode']:>14}{columns}"
          f"{row['ratio']:>8.2f}{row['error']['sylvite']['norm']:>10.2e}{peer_error(row):>10.2e}", flush=True)


def installed(names):
    found = []
    for name in names:
        try:
            peers.version(name)
            found.append(name)
        except peers.importlib.metadata.PackageNotFoundError:
            print(f"compare_peers.py: {name} is not installed: left out", file=sys.stderr)
    return found


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite", help="the command")
    parser.add_argument("models", nargs="+", metavar="MODEL.onnx")
    parser.add_argument("--threads", default="1,2", help="counts, separated by commas (default: 1,2)")
    parser.add_argument("--precision", default="f32", help="f32, bf16, ... separated by commas (default: f32)")
    parser.add_argument("--mode", default="max-autotune")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE")
    parser.add_argument("--peers", default="onnxruntime,openvino")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each turn (default: 2)")
    parser.add_argument("--inputs", type=int, default=4, help="drawn for the errors, which are means over them (default: 4)")
    parser.add_argument("--json", help="write everything measured")
    parser.add_argument("--svg", help="draw the ratios as bars")
    options = parser.parse_args()
    options.peers = installed(options.peers.split(","))
    if not options.peers:
        sys.exit("compare_peers.py: no peer is installed: pip install onnxruntime openvino")
    return options


def main():
    options = parse_options()
    cases = [{"model": os.path.splitext(os.path.basename(path))[0], "path": path, "threads": int(threads),
              "precision": precision, "mode": options.mode}
             for precision in options.precision.split(",")
             for threads in options.threads.split(",") for path in options.models]
    print(f"{machine_name()}; " + ", ".join(f"{name} {peers.version(name)}" for name in options.peers))
    print_header(options)
    rows = []
    context = multiprocessing.get_context("spawn")
    for number, case in enumerate(cases):
        with context.Pool(1) as pool:
            rows.append(pool.apply(measure, (number, case, options)))
        print_row(rows[-1], options)
    ratios = [row["ratio"] for row in rows]
    print(f"geometric mean of {len(ratios)} ratios {statistics.geometric_mean(ratios):.3f}, least {min(ratios):.2f}")
    if options.json:
        versions = {name: peers.version(name) for name in options.peers}
        with open(options.json, "w") as file:
            json.dump({"machine": machine_name(), "versions": versions, "rows": rows}, file, indent=1)
    if options.svg:
        chart.draw(rows, options.svg)


if __name__ == "__main__":
    main()
