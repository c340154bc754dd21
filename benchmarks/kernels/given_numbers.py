#!/usr/bin/env python3
"""Graphs whose sizes are values of inputs or computed from data, beside ONNX Runtime, in turns by the processor's time.

Each has six inputs whose numbers differ: "same" is the first of them again and again, "vary" all in turn. Runs go on until what
follows steps on the host is compiled for all of them (docs/terms.md, tail), and outputs are compared. Needs sylvite on
PYTHONPATH, numpy, onnx and onnxruntime. Exit status 1 when shapes differ or an output is further off than 1e-4 of its largest.
"""
import argparse
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import sylvite

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
RANDOM = np.random.default_rng(0)
CONSTANTS = {"zero": [0], "one": [1], "two": [2], "four": [4], "halves": [2, 2], "zeros": [0, 0], "axes": [2, 3]}


def image(height, width):
    return (RANDOM.random((1, 3, height, width)) * 255).astype(np.float32)


def ints(*numbers):
    return np.array(numbers, np.int64)


def node(operator, inputs, output, **attributes):
    return helper.make_node(operator, inputs.split(","), [output], **attributes)


X = [("x", FLOAT, [1, 3, "h", "w"])]
LINEAR = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
LETTERBOX = [
    node("Shape", "x", "shape"), node("Slice", "shape,two,four", "area"), node("Cast", "area", "from", to=FLOAT),
    node("Cast", "t", "to", to=FLOAT), node("Div", "to,from", "ratios"), node("ReduceMin", "ratios", "ratio", keepdims=1),
    node("Mul", "from,ratio", "wide"), node("Floor", "wide", "whole"), node("Cast", "whole", "part", to=INT),
    node("Slice", "shape,zero,two", "images"), node("Concat", "images,part", "sizes", axis=0),
    node("Resize", "x,,,sizes", "small", **LINEAR), node("Sub", "t,part", "rest"), node("Div", "rest,halves", "before"),
    node("Sub", "rest,before", "behind"), node("Concat", "zeros,before,zeros,behind", "pads", axis=0), node("Pad", "small,pads", "y"),
]  # fmt: skip
CROP = [node("Slice", "x,b,e,axes", "part"), node("Neg", "part", "y")]
ENDS = X + [("b", INT, [2]), ("e", INT, [2])]

# Name: nodes, inputs, and the feeds of run i.
GRAPHS = {
    "pads": ([node("Pad", "x,p", "part"), node("Relu", "part", "y")], X + [("p", INT, [8])],
             lambda i: {"x": image(224, 224), "p": ints(0, 0, i % 3, 2, 0, 0, 3, (i + 1) % 3)}),
    "crops": (CROP, ENDS, lambda i: {"x": image(480, 640), "b": ints(10 * i, 20), "e": ints(300 + 2 * i, 500)}),
    "crops from the end": (CROP, ENDS, lambda i: {"x": image(480, 640), "b": ints(5, 1), "e": ints(-3 - i, -2)}),
    "letterbox": (LETTERBOX, X + [("t", INT, [2])],
                  lambda i: {"x": image(*[(300, 400), (400, 300), (333, 333), (200, 500), (640, 100), (480, 640)][i]), "t": ints(320, 320)}),
    "resize by scales": ([node("Resize", "x,,s", "y", **LINEAR)], X + [("s", FLOAT, [4])],
                         lambda i: {"x": image(224 + 8 * i, 224), "s": np.array([1, 1, 0.5 + 0.25 * i, 1.5], np.float32)}),
    "resize by sizes": ([node("Resize", "x,,,s", "y", **LINEAR)], X + [("s", INT, [4])],
                        lambda i: {"x": image(224, 224 + 8 * i), "s": ints(1, 3, 320 + i, 256)}),
    "tile": ([node("Tile", "x,s", "part"), node("Relu", "part", "y")], X + [("s", INT, [4])],
             lambda i: {"x": image(64, 80), "s": ints(1, 1, 1 + i % 3, 2)}),
}  # fmt: skip


def save(path, nodes, inputs):
    weights = [numpy_helper.from_array(ints(*numbers), name) for name, numbers in CONSTANTS.items()]
    ports = [helper.make_tensor_value_info(*each) for each in inputs]
    graph = helper.make_graph(nodes, "given", ports, [helper.make_tensor_value_info("y", FLOAT, None)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def least_times(ways, rounds):
    """Of the processor, microseconds, in turns."""
    least = dict.fromkeys(ways, 1e9)
    for _ in range(rounds):
        for name, call in ways.items():
            start = time.process_time()
            for _ in range(30):
                call()
            least[name] = min(least[name], (time.process_time() - start) / 30 * 1e6)
    return least


def warm(model, feeds):
    for _ in range(60):  # short steps on the host are compiled once they have taken some time
        for feed in feeds:
            model(feed)
    model.wait()
    for _ in range(10):
        for feed in feeds:
            model(feed)
            model.wait()


def race(name, options):
    import onnxruntime

    nodes, inputs, feed = GRAPHS[name]
    feeds = [feed(i) for i in range(6)]
    with tempfile.TemporaryDirectory() as folder:
        save(f"{folder}/model.onnx", nodes, inputs)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads, settings.log_severity_level = options.threads, 3
        peer = onnxruntime.InferenceSession(f"{folder}/model.onnx", settings)
        knobs = {"compile.threads": options.threads, "cache.dir": f"{folder}/cache", "db.enabled": False}
        model = sylvite.compile(f"{folder}/model.onnx", options=knobs, first_answer="fast")
        warm(model, feeds)
        error = 0.0
        for each in feeds:
            actual, expected = model(each)[0], peer.run(None, each)[0]
            is_same = actual.shape == expected.shape
            error = max(error, float(np.abs(actual - expected).max() / np.abs(expected).max()) if is_same else 1.0)
        row = f"| {name} | {error:.1e} |"
        for chosen in (feeds[:1], feeds):
            ways = {"us": lambda: [model(each) for each in chosen], "peer": lambda: [peer.run(None, each) for each in chosen]}
            least = least_times(ways, options.rounds)
            row += f" {least['us'] / len(chosen):.0f} ({least['peer'] / len(chosen):.0f}) {least['peer'] / least['us']:.2f} |"
        print(row, flush=True)
    return error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of a graph's name")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print("| graph | error | same: us (ONNX Runtime) ratio | vary |")
    errors = [race(name, options) for name in GRAPHS if options.only in name]
    return int(any(error > 1e-4 for error in errors))


if __name__ == "__main__":
    sys.exit(main())
