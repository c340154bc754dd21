#!/usr/bin/env python3
"""Every operator alone, at sizes of real models, beside ONNX Runtime: a model of one node for each row of operator_cases.py and
operator_cases_further.py, both sides in turns in one process, outputs compared. Nothing is tuned.

Times are the least of all calls, which other work on the machine moves least; the ratio is ONNX Runtime's over Sylvite's. --missing
lists operators of ONNX that no case has. Needs sylvite on PYTHONPATH, numpy, onnx and onnxruntime. Exit status 1 when anything
disagrees or fails; what only ONNX Runtime refuses has no ratio.
"""
import argparse
import collections
import json
import math
import pathlib
import re
import statistics
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import helper, numpy_helper

import operator_cases
import operator_cases_further

sys.path.insert(1, str(pathlib.Path(__file__).parents[1] / "models"))
import published_models

OPSETS = {"": 21, "ai.onnx.ml": 3, "com.microsoft": 1}
COLUMNS = ("name", "us", "peer_us", "ratio", "error", "kernels", "host")


def save_model(path, case):
    """Names and arrays of what a run is given. Constants of the case are initializers."""
    inputs, weights, names, feeds = [], [], [], {}
    for i, given in enumerate(case.inputs):
        name = "" if given is None else f"i{i}"
        names.append(name)
        if given is None:
            continue
        if given.is_constant:
            weights.append(numpy_helper.from_array(given.array, name))
            continue
        feeds[name] = given.array
        dtype = onnx.TensorProto.STRING if given.array.dtype == object else helper.np_dtype_to_tensor_dtype(given.array.dtype)
        inputs.append(helper.make_tensor_value_info(name, dtype, given.array.shape))
    results = [f"o{i}" if i in case.kept else "" for i in range(max(case.kept) + 1)]
    node = helper.make_node(case.operator, names, results, domain=case.domain, **case.attributes)
    outputs = [onnx.ValueInfoProto(name=name) for name in results if name]
    graph = helper.make_graph([node], "one", inputs, outputs, weights)
    opsets = {**OPSETS, case.domain: case.version or OPSETS[case.domain]}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*item) for item in opsets.items()], ir_version=10)
    onnx.save(model, path)
    return feeds


def least_times(ways, rounds, seconds):
    """Microseconds of the fastest call of each way, in turns."""
    least = dict.fromkeys(ways, math.inf)
    for _ in range(rounds):
        for name, call in ways.items():
            end = time.perf_counter() + seconds
            while True:
                start = time.perf_counter()
                call()
                stop = time.perf_counter()
                least[name] = min(least[name], stop - start)
                if stop > end:
                    break
    return {name: 1e6 * seconds for name, seconds in least.items()}


def measure(case, options):
    import sylvite

    row = {"name": case.name, "operator": case.operator, "threads": options.threads}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        feeds = save_model(path, case)
        try:
            session = published_models.open_peer(path, options.threads, is_exact=True)
            expected = session.run(None, feeds)
        except Exception as error:  # onnxruntime has no common base of its errors
            session, row["peer_failed"] = None, str(error).splitlines()[0][:200]
        try:
            knobs = {"compile.threads": options.threads, "cache.dir": f"{folder}/cache", "db.enabled": False}
            start = time.perf_counter()
            model = sylvite.compile(path, options=knobs)
            actual = model(feeds)
            row["ready"] = time.perf_counter() - start
        except sylvite.Error as error:
            return row | {"failed": str(error).splitlines()[0][:300]}
    row |= {"kernels": model.report.get("kernels"), "host": len(model.host_steps)}
    if session is not None and not case.is_random:
        row["error"] = max(map(far_apart, actual, expected), default=0.0)
    ordered = [feeds[name] for name in model.input_names]
    ways = {"us": lambda: model(*ordered)}
    if session is not None:
        ways["peer_us"] = lambda: session.run(None, feeds)
    row |= least_times(ways, options.rounds, options.seconds)
    if session is not None:
        row["ratio"] = row["peer_us"] / row["us"]
    return row


def far_apart(actual, expected):
    """As published_models.difference, but integers of 8 bits may be one step apart: halves are rounded this way or that."""
    if isinstance(expected, np.ndarray) and expected.dtype in (np.uint8, np.int8) and np.shape(actual) == expected.shape:
        steps = np.abs(np.asarray(actual, np.int64) - expected.astype(np.int64)).max(initial=0)
        return float(max(steps - 1, 0)) / 255
    return published_models.difference(actual, expected)


def is_bad(row, tolerance):
    return "failed" in row or not row.get("error", 0.0) <= tolerance


def print_row(row):
    texts = [f"{row[key]:.3g}" if isinstance(row.get(key), float) else str(row.get(key, "")) for key in COLUMNS]
    print("| " + " | ".join(texts) + " | " + row.get("failed", row.get("peer_failed", "")) + " |", flush=True)


def print_missing(cases):
    have = {(case.domain, case.operator) for case in cases}
    missing = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas():
        if not schema.deprecated and (schema.domain, schema.name) not in have:
            missing[schema.domain].append(schema.name)
    for domain, names in missing.items():
        print(f"{domain or 'ai.onnx'}: {', '.join(sorted(names))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="a regular expression that names of cases are searched for")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.05, help="of each turn")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="of the largest magnitude of an output")
    parser.add_argument("--json", help="rows are appended to this file, a line each")
    parser.add_argument("--missing", action="store_true")
    options = parser.parse_args()
    cases = [*operator_cases.cases(), *operator_cases_further.cases()]
    if options.missing:
        print_missing(cases)
        return
    print("| case | us | ONNX Runtime, us | ratio | difference | kernels | host steps | |\n|---|---|---|---|---|---|---|---|")
    rows = []
    for case in cases:
        if not re.search(options.only, case.name):
            continue
        rows.append(measure(case, options))
        print_row(rows[-1])
        if options.json:
            with open(options.json, "a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"\n{len(ratios)} cases: {mean:.2f} in geometric mean, {sum(ratio < 1 for ratio in ratios)} below 1.0, least {min(ratios):.2f}")
    sys.exit(1 if any(is_bad(row, options.tolerance) for row in rows) else 0)


if __name__ == "__main__":
    main()
