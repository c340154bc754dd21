#!/usr/bin/env python3
"""Sylvite beside ONNX Runtime: the same filled model, the same input, turn by turn (ABAB), outputs compared.

usage: compare_ort.py SYLVITE MODEL.onnx ... [-- SYLVITE-OPTION ...]     (needs: pip install numpy onnx onnxruntime)
Models must hold their weights (shared graphs are filled first, e.g. by a script that writes external data).
Each round times Sylvite for some seconds in its own process, then ONNX Runtime for as long; medians over rounds.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

ROUNDS = 5
SECONDS = 3.0


def make_inputs(session):
    rng = np.random.default_rng(0)
    inputs = {}
    for info in session.get_inputs():
        dims = [d if isinstance(d, int) else 1 for d in info.shape]
        if "int" in info.type:
            inputs[info.name] = rng.integers(0, 1000, dims).astype(np.int64)
        else:
            inputs[info.name] = rng.standard_normal(dims).astype(np.float32)
    return inputs


def ort_session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def time_ort(session, inputs):
    times = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or not times:
        start = time.perf_counter()
        session.run(None, inputs)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def sylvite(command, verb, path, extra):
    json_path = tempfile.mktemp(suffix=".json")
    subprocess.run([command, verb, path, "--json", json_path, *extra], check=True, stdout=subprocess.DEVNULL)
    with open(json_path) as file:
        report = json.load(file)
    os.unlink(json_path)
    return report


def compare(command, path, options):
    with tempfile.TemporaryDirectory() as folder:
        session = ort_session(path, os.cpu_count())
        inputs = make_inputs(session)
        given = []
        for i, (name, array) in enumerate(inputs.items()):
            np.save(f"{folder}/{i}.npy", array)
            given += ["--input", f"{name}={folder}/{i}.npy"]
        sylvite(command, "run", path, [*given, "--output-dir", folder + "/out", *options])
        worst = 0.0
        for i, wanted in enumerate(session.run(None, inputs)):
            scale = float(np.abs(wanted).max()) or 1.0
            worst = max(worst, float(np.abs(np.load(f"{folder}/out/{i}.npy") - wanted).max()) / scale)
        own, peer = [], []
        timing = [*given, "--warmup", "0.5s", "--duration", f"{SECONDS}s", "--no-profile", *options]
        for _ in range(ROUNDS):
            own.append(sylvite(command, "bench", path, timing)["latency_ms"]["median"])
            peer.append(time_ort(session, inputs))
    return statistics.median(own), statistics.median(peer), worst


def main():
    words = sys.argv[1:]
    options = words[words.index("--") + 1:] if "--" in words else []
    words = words[: words.index("--")] if "--" in words else words
    if len(words) < 2:
        sys.exit(__doc__)
    print(f"{'model':<20} {'sylvite ms':>11} {'ort ms':>9} {'ort/sylvite':>12} {'error':>9}")
    for path in words[1:]:
        own, peer, worst = compare(words[0], path, options)
        name = os.path.splitext(os.path.basename(path))[0]
        print(f"{name:<20} {own:>11.3f} {peer:>9.3f} {peer / own:>12.2f} {worst:>9.1e}", flush=True)


if __name__ == "__main__":
    main()
