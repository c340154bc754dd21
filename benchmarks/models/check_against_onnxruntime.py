#!/usr/bin/env python3
"""Check that Sylvite's outputs agree with onnxruntime's, model by model and mode by mode.

usage: check_against_onnxruntime.py SYLVITE MODEL.onnx... [--modes default,max-autotune] [--set key=value]...
                                    [--level disabled] [--rtol 0 --atol 0]

Every model must hold its weights. Inputs are drawn with a fixed seed; floats are standard normal, integers below 100.
An output agrees when |a - b| <= atol * max|b| + rtol * |b| everywhere. --level is onnxruntime's graph optimisation. Needs numpy, onnx and onnxruntime.
Exit status 1 when anything disagrees or fails.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

LEVELS = {"disabled": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
          "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
          "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
          "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL}
NUMPY_TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}


def draw_inputs(session, folder):
    rng = np.random.default_rng(7)
    feeds, arguments = {}, []
    for value in session.get_inputs():
        shape = [dim if isinstance(dim, int) else 1 for dim in value.shape]
        dtype = NUMPY_TYPES[value.type]
        is_float = np.issubdtype(dtype, np.floating)
        feeds[value.name] = (rng.standard_normal(shape) if is_float else rng.integers(0, 100, shape)).astype(dtype)
        path = os.path.join(folder, f"{value.name}.npy")
        np.save(path, feeds[value.name])
        arguments += ["--input", f"{value.name}={path}"]
    return feeds, arguments


def worst_error(actual, expected, rtol, atol):
    """1.0 is the limit."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return float("inf")
    scale = float(np.max(np.abs(expected))) if expected.size else 0.0
    limit = atol * scale + rtol * np.abs(expected)
    error = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    return float(np.max(error / np.maximum(limit, 1e-30))) if np.all(np.isfinite(actual)) else float("inf")


def open_session(model, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.log_severity_level = 3  # errors; the warnings are about how models were written
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def check(command, model, modes, settings, level, rtol, atol):
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        session = open_session(model, level)
        feeds, arguments = draw_inputs(session, folder)
        expected = session.run(None, feeds)
        del session
        for mode in modes:
            out = os.path.join(folder, mode)
            start = time.time()
            run = subprocess.run(
                [command, "run", model, *arguments, "--output-dir", out, "--set", f"compile.mode={mode}",
                 "--first-answer", "best", *settings],
                capture_output=True, text=True)
            seconds = time.time() - start
            if run.returncode != 0:
                print(f"{os.path.basename(model):28} {mode:18} FAILED {run.stderr.strip()[-300:]}", flush=True)
                failures += 1
                continue
            worst = max(worst_error(np.load(os.path.join(out, f"{i}.npy")), expected[i], rtol, atol)
                        for i in range(len(expected)))
            verdict = "agrees" if worst <= 1 else "DISAGREES"
            failures += worst > 1
            print(f"{os.path.basename(model):28} {mode:18} {verdict:10} error {worst:8.4f} of the limit  {seconds:7.1f} s",
                  flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--modes", default="default,reduce-overhead,max-autotune")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--level", choices=LEVELS, default="all")
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--atol", type=float, default=1e-4)
    options = parser.parse_args()
    settings = [word for setting in options.settings for word in ("--set", setting)]
    failures = sum(check(options.sylvite, model, options.modes.split(","), settings, options.level, options.rtol,
                         options.atol)
                   for model in options.models)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
