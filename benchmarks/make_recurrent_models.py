#!/usr/bin/env python3
"""Make recurrent models of many steps, with random weights, and measure them beside ONNX Runtime.

usage: make_recurrent_models.py FOLDER [--compare SYLVITE [--threads 2] [--rounds 7]]

Writes lstm_300.onnx and lstm_1200.onnx (two bidirectional LSTM layers, hidden 128, of so many steps) and gru_294.onnx (one
GRU layer, hidden 256). With --compare, each runs in turns in ONNX Runtime and in SYLVITE: the time until ready with empty
caches, median times in ms, and the largest difference of an output. Needs numpy and onnx, and onnxruntime to compare.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
from onnx import TensorProto

from make_further_models import Graph, lstm_layer


def lstm(path, steps, width=128, hidden=128):
    g = Graph()
    y = lstm_layer(g, lstm_layer(g, "x", width, hidden), 2 * hidden, hidden)
    g.save(path, {"x": (TensorProto.FLOAT, (steps, 1, width))}, {"y": (y, TensorProto.FLOAT, (steps, 1, 2 * hidden))})


def gru(path, steps=294, width=256, hidden=256):
    g = Graph()
    y, _ = g.op("GRU", "x", g.normal(1, 3 * hidden, width), g.normal(1, 3 * hidden, hidden), g.normal(1, 6 * hidden),
                outputs=2, hidden_size=hidden, linear_before_reset=1)
    g.save(path, {"x": (TensorProto.FLOAT, (steps, 1, width))}, {"y": (y, TensorProto.FLOAT, (steps, 1, 1, hidden))})


def peer_runner(path, threads):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


def peer_ms(run, x, seconds=1.0):
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        run(x)
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


def compare(sylvite, path, threads, rounds):
    with tempfile.TemporaryDirectory() as folder:
        options = ["--first-answer", "best", "--cache-dir", f"{folder}/cache", "--db", f"{folder}/db", "--threads", str(threads)]
        x = np.random.default_rng(1).standard_normal((int(re.search(r"_(\d+)", path)[1]), 1, 256 if "gru" in path else 128))
        x = x.astype(np.float32)
        np.save(f"{folder}/x.npy", x)
        run = [sylvite, "run", path, "--input", f"x={folder}/x.npy", "--output-dir", f"{folder}/out", *options]
        start = time.perf_counter()
        subprocess.run(run, check=True, capture_output=True)
        ready = time.perf_counter() - start
        peer = peer_runner(path, threads)
        difference = float(np.abs(peer(x) - np.load(f"{folder}/out/0.npy")).max())
        ours, theirs = [], []
        for _ in range(rounds):
            bench = [sylvite, "bench", path, "--duration", "1s", "--json", f"{folder}/bench.json", *options]
            subprocess.run(bench, check=True, capture_output=True)
            with open(f"{folder}/bench.json") as file:
                ours.append(json.load(file)["latency_ms"]["median"])
            theirs.append(peer_ms(peer, x))
        a, b = float(np.median(ours)), float(np.median(theirs))
        return [os.path.basename(path)[:-5], f"{ready:.1f} s", f"{a:.2f}", f"{b:.2f}", f"{b / a:.2f}x", f"{difference:.1g}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--compare", metavar="SYLVITE")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    paths = {name: os.path.join(arguments.folder, name + ".onnx") for name in ("lstm_300", "lstm_1200", "gru_294")}
    lstm(paths["lstm_300"], 300)
    lstm(paths["lstm_1200"], 1200)
    gru(paths["gru_294"])
    if not arguments.compare:
        return
    print("| model | ready, nothing cached | ms | ONNX Runtime, ms | ratio | largest difference |\n|---|---|---|---|---|---|")
    for path in paths.values():
        print("| " + " | ".join(compare(arguments.compare, path, arguments.threads, arguments.rounds)) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
