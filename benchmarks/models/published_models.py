#!/usr/bin/env python3
"""Tries models as their publishers ship them, as a new user would: nothing is said about sizes, nothing is tuned.

A row for each file: whether all outputs agree with ONNX Runtime's at --sizes random combinations of sizes, evaluated and
compiled, each beside its own largest element; seconds to the first answer in a fresh process without a cache, of these the
processor's (of all threads), and in a second process; milliseconds at the first combination and the ratio to ONNX Runtime, turn by turn. With --first-answers nothing waits for
compiled kernels. Sizes are drawn until ONNX Runtime takes them. Needs sylvite on PYTHONPATH, numpy and onnxruntime. Exit status 1
when anything disagrees or fails.
"""
import argparse
import itertools
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

OTHERS = {"bool": "bool", "float": "float32", "double": "float64"}
IMAGE, BATCH = {"height", "width", "h", "w"}, {"batch", "batchsize", "bs", "n", "b"}
TRIES = 60
WAYS = ("named", "alike", "states")


def words_of(name):
    return set(re.findall("[a-z]+", re.sub("([a-z])([A-Z])", r"\1 \2", str(name or "")).lower()))


def kind_of(name, axis, rank):
    words = words_of(name)
    for kind, known in (("batch", BATCH), ("image", IMAGE)):
        if words & known:
            return kind
    if axis == 0:
        return "batch"
    return "image" if rank == 4 and axis >= 2 else "sequence"


def draw_size(kind, random, usual):
    if usual:
        return {"batch": 1, "image": 224, "sequence": 128}[kind]
    return int({"batch": random.integers(1, 5), "image": 32 * random.integers(2, 9), "sequence": random.choice([random.integers(2, 300), 512])}[kind])


def draw(session, random, usual, way):
    """Inputs of random sizes. Ways: dims are as they are named; dims of one kind are "alike", and integers are ones; for models
    with "states" only the last dims are drawn."""
    import numpy as np

    sizes, feeds = {}, {}
    for value in session.get_inputs():
        shape = []
        for axis, dim in enumerate(value.shape):
            if isinstance(dim, int) and dim > 0:
                shape.append(dim)
                continue
            kind = kind_of(dim, axis, len(value.shape))
            key = kind if way == "alike" else dim if isinstance(dim, str) else (value.name, axis)
            size = 1 if way == "states" and axis < len(value.shape) - 1 else draw_size(kind, random, usual)
            shape.append(sizes.setdefault(key, size))
        name = value.type[7:-1]
        if name == "string":
            feeds[value.name] = random.choice(["a", "ni", "hao", "7", ""], shape).astype(object)
            continue
        dtype = np.dtype(OTHERS.get(name, name))
        if dtype.kind == "f":
            feeds[value.name] = random.standard_normal(shape).astype(dtype)
        elif value.name in ("sr", "sample_rate"):
            feeds[value.name] = np.full(shape, 16000, dtype)
        else:
            feeds[value.name] = np.ones(shape, dtype) if way == "alike" else random.integers(0, 2 if dtype.kind == "b" else 20, shape).astype(dtype)
    return feeds


def tells(output):
    """Is there a number to compare?"""
    import numpy as np

    return not isinstance(output, np.ndarray) or output.dtype.kind != "f" or output.size == 0 or bool(np.isfinite(output).any())


def draw_runnable(session, random, usual):
    """Inputs and ONNX Runtime's outputs; the first few tries keep what names say. Outputs that are NaN throughout, as masks of other
    numbers than 0 and 1 make them, are taken only where nothing else was drawn."""
    drawn = None
    for tried in range(TRIES):
        feeds = draw(session, random, usual and tried < 6, WAYS[tried % 3])
        try:
            outputs = session.run(None, feeds)
        except Exception as error:  # what does not fit, in the words of ONNX Runtime
            last = error
            continue
        if all(map(tells, outputs)):
            return feeds, outputs
        drawn = drawn or (feeds, outputs)
    if drawn is not None:
        return drawn
    raise SystemExit(f"ONNX Runtime takes no sizes that were tried: {str(last)[:200]}")


def as_arrays(value):
    """The arrays of an output: of a sequence each item's, of a list of maps (ZipMap's) the table of their values."""
    import numpy as np

    if isinstance(value, dict):
        return [np.asarray(list(value.values()))]
    if not isinstance(value, (list, tuple)):
        return [np.asarray(value)]
    if value and isinstance(value[0], dict):
        return [np.asarray([list(each.values()) for each in value], np.float32)]
    return [array for each in value for array in as_arrays(each)]


def difference(actual, expected):
    """Of the worst element as a share of the largest; infinity where types, shapes or special values differ, texts do, or zeros
    throughout are none."""
    pairs = list(itertools.zip_longest(as_arrays(actual), as_arrays(expected)))
    return max((difference_of_arrays(*pair) for pair in pairs), default=0.0)


def difference_of_arrays(actual, expected):
    import numpy as np

    if actual is None or expected is None or actual.shape != expected.shape:
        return math.inf
    if expected.dtype.kind in "OUS":
        return 0.0 if np.array_equal(actual, expected) else math.inf
    if actual.dtype != expected.dtype:
        return math.inf
    ours, theirs = actual.astype(np.float64), expected.astype(np.float64)
    keep = np.isfinite(theirs)
    if not np.array_equal(ours[~keep], theirs[~keep], equal_nan=True) or not np.isfinite(ours[keep]).all():
        return math.inf
    worst = np.abs(ours - theirs)[keep].max(initial=0)
    return float(worst / np.abs(theirs[keep]).max()) if worst and theirs[keep].any() else math.inf if worst else 0.0


def open_peer(path, threads, is_exact=False, is_plain=False):
    """Without `is_exact` sums of 8-bit products overflow 16 bits on processors without VNNI: fast, and wrong by a tenth and more.
    With `is_plain` nothing is optimised."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if is_plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", "1" if is_exact else "0")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def race(ways, rounds, seconds):
    """Medians of each way in turns, in milliseconds, and the median of the second over the first."""
    times = {name: [] for name in ways}
    for _ in range(rounds):
        for name, call in ways.items():
            call()
            start, calls = time.perf_counter(), []
            while not calls or time.perf_counter() - start < seconds:
                begin = time.perf_counter()
                call()
                calls.append(time.perf_counter() - begin)
            times[name].append(statistics.median(calls))
    ours, theirs = times.values()
    return statistics.median(ours) * 1e3, statistics.median(theirs) * 1e3, statistics.median(b / a for a, b in zip(ours, theirs))


def text_of(feeds):
    return " ".join("x".join(map(str, array.shape)) or "scalar" for array in feeds.values())


def first_process(path, options, cache):
    import numpy as np
    import sylvite

    session = open_peer(path, options.threads, is_exact=True)
    random = np.random.default_rng(options.seed)
    feeds, expected = draw_runnable(session, random, True)
    row = {"sizes": text_of(feeds), "wrong": []}
    knobs = {"compile.threads": options.threads, "cache.dir": cache, "db.enabled": False}

    def compare(label, feeds, actual, expected):
        worst = max((difference(a, b) for a, b in zip(actual, expected)), default=0.0)
        row["error"] = max(row.get("error", 0.0), worst)
        if not worst <= options.tolerance:
            plain = open_peer(path, options.threads, is_exact=True, is_plain=True).run(None, feeds)
            own = max((difference(a, b) for a, b in zip(plain, expected)), default=0.0)
            row["wrong"].append(f"{label} at {text_of(feeds)}: {worst:.2g} (ONNX Runtime from itself unoptimised {own:.2g})")

    is_open = any(not isinstance(dim, int) or dim < 1 for value in session.get_inputs() for dim in value.shape)
    others = [draw_runnable(session, random, False) for _ in range(options.sizes if is_open else 1)]
    start, used = time.perf_counter(), time.process_time()
    model = sylvite.compile(path, options=knobs, first_answer="fast")
    answer = model(feeds)
    row["cold"], row["processor"] = time.perf_counter() - start, time.process_time() - used
    compare("evaluated", feeds, answer, expected)
    for other, wanted in others:
        compare("evaluated", other, model(other), wanted)
    if options.first_answers:
        return row
    model.wait()
    row["ready"] = time.perf_counter() - start
    for other, wanted in [(feeds, expected), *others]:
        model(other)  # at new sizes it is evaluated, and compiled behind
        model.wait()
        compare("compiled", other, model(other), wanted)
    ordered = [feeds[name] for name in model.input_names]
    session = open_peer(path, options.threads)
    row["ms"], row["peer_ms"], row["ratio"] = race(
        {"ours": lambda: model(*ordered), "theirs": lambda: session.run(None, feeds)}, options.rounds, options.seconds)
    row["kernels"], row["host"] = model.report.get("kernels"), len(model.host_steps)
    return row


def second_process(path, options, cache):
    import numpy as np
    import sylvite

    session = open_peer(path, options.threads)
    feeds, _ = draw_runnable(session, np.random.default_rng(options.seed), True)
    knobs = {"compile.threads": options.threads, "cache.dir": cache, "db.enabled": False}
    start = time.perf_counter()
    sylvite.compile(path, options=knobs, first_answer="fast")(feeds)
    return {"second": time.perf_counter() - start}


def in_process(way, path, cache, options):
    words = [sys.executable, __file__, *sys.argv[1:], "--child", way, path, cache]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=options.limit, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": "timeout"}
    if done.returncode != 0:
        return {"failed": (done.stderr.strip() or f"exit {done.returncode}").splitlines()[-1][:300], "code": done.returncode}
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="ONNX files")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sizes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--limit", type=float, default=600, help="seconds a process may take")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--first-answers", action="store_true")
    parser.add_argument("--json", help="rows are appended to this file, a line each")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        way, path, cache = options.child
        print(json.dumps({"first": first_process, "second": second_process}[way](path, options, cache)))
        return
    print("| model | agrees | cold, s | processor | second, s | ms | ONNX Runtime | ratio |\n|---|---|---|---|---|---|---|---|")
    rows = []
    for path in options.models:
        with tempfile.TemporaryDirectory() as cache:
            row = {"model": os.path.basename(path), "wrong": [], **in_process("first", path, cache, options)}
            if "failed" not in row and not options.first_answers:
                row |= in_process("second", path, cache, options)
        rows.append(row)
        if options.json:
            with open(options.json, "a") as file:
                file.write(json.dumps(row) + "\n")
        said = row.get("failed") or "; ".join(row["wrong"]) or f"yes, {row['error']:.1g}"
        numbers = [f"{row[key]:.3g}" if key in row else "" for key in ("cold", "processor", "second", "ms", "peer_ms", "ratio")]
        print(f"| {row['model']} | {said} | " + " | ".join(numbers) + " |", flush=True)
    sys.exit(1 if any(row.get("failed") or row["wrong"] for row in rows) else 0)


if __name__ == "__main__":
    main()
