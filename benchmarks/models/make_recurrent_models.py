#!/usr/bin/env python3
"""Make recurrent models with random weights, and measure them beside ONNX Runtime.

usage: make_recurrent_models.py FOLDER [--compare SYLVITE [--threads 2] [--rounds 7] [--seconds 1] [--only NAME,...]]

Writes a model for each row of CASES. With --compare, each runs in turns in ONNX Runtime and in SYLVITE: the time until
ready with empty caches, median times in ms, and the largest difference of an output. Needs numpy and onnx, and onnxruntime
to compare.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from onnx import TensorProto

from make_further_models import Graph, lstm_layer

Case = collections.namedtuple("Case", "kind layers directions steps batch hidden")
CASES = {
    "lstm_300": Case("LSTM", 2, 2, 300, 1, 128),
    "lstm_1200": Case("LSTM", 2, 2, 1200, 1, 128),
    "gru_294": Case("GRU", 1, 1, 294, 1, 256),
    "lstm_one_way": Case("LSTM", 1, 1, 300, 1, 128),
    "lstm_wide": Case("LSTM", 1, 1, 100, 1, 512),
    "lstm_batch": Case("LSTM", 1, 2, 100, 8, 256),
    "lstm_short": Case("LSTM", 1, 2, 10, 32, 128),
    "lstm_large": Case("LSTM", 1, 1, 50, 32, 512),
    "lstm_widest": Case("LSTM", 1, 2, 50, 16, 1024),
    "gru_long": Case("GRU", 1, 2, 1000, 1, 128),
    "gru_both_ways": Case("GRU", 1, 2, 300, 1, 256),
    "gru_widest": Case("GRU", 1, 1, 100, 4, 1024),
}


def layer(g, case, x, width):
    """[T, B, width] -> [T, directions, B, hidden]"""
    gates, options = (4, {}) if case.kind == "LSTM" else (3, {"linear_before_reset": 1})
    n, hidden = case.directions, case.hidden
    return g.op(case.kind, x, g.normal(n, gates * hidden, width), g.normal(n, gates * hidden, hidden),
                g.normal(n, 2 * gates * hidden), outputs=3 if case.kind == "LSTM" else 2, hidden_size=hidden,
                direction="bidirectional" if n == 2 else "forward", **options)[0]


def make(path, case):
    """All layers but the last are bidirectional LSTM layers."""
    g, x, width = Graph(), "x", case.hidden
    for _ in range(case.layers - 1):
        x, width = lstm_layer(g, x, width, case.hidden), 2 * case.hidden
    y = layer(g, case, x, width)
    g.save(path, {"x": (TensorProto.FLOAT, (case.steps, case.batch, case.hidden))},
           {"y": (y, TensorProto.FLOAT, (case.steps, case.directions, case.batch, case.hidden))})


def peer_runner(path, threads):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


def peer_ms(run, x, seconds):
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        run(x)
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


def compare(sylvite, path, case, threads, rounds, seconds):
    with tempfile.TemporaryDirectory() as folder:
        options = ["--first-answer", "best", "--cache-dir", f"{folder}/cache", "--db", f"{folder}/db", "--threads", str(threads)]
        x = np.random.default_rng(1).standard_normal((case.steps, case.batch, case.hidden)).astype(np.float32)
        np.save(f"{folder}/x.npy", x)
        run = [sylvite, "run", path, "--input", f"x={folder}/x.npy", "--output-dir", f"{folder}/out", *options]
        start = time.perf_counter()
        subprocess.run(run, check=True, capture_output=True)
        ready = time.perf_counter() - start
        peer = peer_runner(path, threads)
        difference = float(np.abs(peer(x) - np.load(f"{folder}/out/0.npy")).max())
        ours, theirs = [], []
        for _ in range(rounds):
            bench = [sylvite, "bench", path, "--duration", f"{int(1e3 * seconds)}ms", "--json", f"{folder}/bench.json", *options]
            subprocess.run(bench, check=True, capture_output=True)
            with open(f"{folder}/bench.json") as file:
                ours.append(json.load(file)["latency_ms"]["median"])
            theirs.append(peer_ms(peer, x, seconds))
        a, b = float(np.median(ours)), float(np.median(theirs))
        return [os.path.basename(path)[:-5], f"{ready:.1f} s", f"{a:.2f}", f"{b:.2f}", f"{b / a:.2f}x", f"{difference:.1g}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--compare", metavar="SYLVITE")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn")
    parser.add_argument("--only", default=",".join(CASES), help="names, separated by commas")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    if arguments.compare:
        print("| model | ready, nothing cached | ms | ONNX Runtime, ms | ratio | largest difference |\n|---|---|---|---|---|---|")
    for name in arguments.only.split(","):
        path = os.path.join(arguments.folder, name + ".onnx")
        make(path, CASES[name])
        if arguments.compare:
            row = compare(arguments.compare, path, CASES[name], arguments.threads, arguments.rounds, arguments.seconds)
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
