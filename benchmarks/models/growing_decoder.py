#!/usr/bin/env python3
"""Make a GPT-2 with random weights whose caches a concat extends, as exporters write it, and measure a token at several
capacities.

usage: growing_decoder.py make MODEL [--layers 2 --width 768 --heads 12 --tokens 1000]
       growing_decoder.py capacities MODEL [--threads 1] [--capacities 512,4096] [--length 256] [--rounds 7]
       growing_decoder.py compare MODEL [--threads 1] [--capacity 512] [--tokens 128] [--rounds 3]

`capacities` holds the caches as states of each capacity in turn, runs a prompt and then token by token to --length, and prints
the median time of a token: room that is not used must cost nothing. `compare` runs the same tokens with ONNX Runtime,
which is given the caches and gives them back, in turns, and compares the logits. Needs numpy and onnx, the package
sylvite, and to compare onnxruntime.
"""
import argparse
import statistics
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Writer:
    """Nodes and weights of one graph."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def weight(self, array, name=""):
        name = name or f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def matrix(self, rows, columns):
        return self.weight((self.rng.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32))

    def integers(self, *values):
        return self.weight(np.array(values, np.int64))

    def number(self, value):
        return self.weight(np.array(value, np.int64))

    def op(self, kind, *inputs, out="", **attributes):
        out = out or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=f"{kind}_{len(self.nodes)}", **attributes))
        return out

    def size(self, value, axis):
        return self.op("Gather", self.op("Shape", value), self.number(axis), axis=0)

    def listed(self, number):
        return self.op("Unsqueeze", number, self.integers(0))


def attention(w, o, x, i):
    head = o.width // o.heads

    def heads(value):
        shape = w.op("Concat", w.listed(w.size(value, 0)), w.listed(w.size(value, 1)), w.integers(o.heads), w.integers(head), axis=0)
        return w.op("Transpose", w.op("Reshape", value, shape), perm=[0, 2, 1, 3])

    q, k, v = (heads(w.op("MatMul", x, w.matrix(o.width, o.width))) for _ in range(3))
    k = w.op("Concat", f"past_key_values.{i}.key", k, out=f"present.{i}.key", axis=-2)
    v = w.op("Concat", f"past_key_values.{i}.value", v, out=f"present.{i}.value", axis=-2)
    scores = w.op("Div", w.op("MatMul", q, w.op("Transpose", k, perm=[0, 1, 3, 2])), w.weight(np.array(np.sqrt(head), np.float32)))
    low = w.weight(np.array(np.finfo(np.float32).min, np.float32))
    total = w.size(k, 2)
    first = w.op("Sub", total, w.size(q, 2))
    rows = w.op("Slice", "seen", w.listed(first), w.listed(total), w.integers(2))
    seen = w.op("Slice", rows, w.integers(0), w.listed(total), w.integers(3))
    scores = w.op("Add", w.op("Where", seen, scores, low), "given")
    mixed = w.op("Transpose", w.op("MatMul", w.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return w.op("MatMul", w.op("Reshape", mixed, w.integers(0, 0, o.width)), w.matrix(o.width, o.width))


def make(o):
    w = Writer()
    width = o.width

    def norm(x):
        return w.op("LayerNormalization", x, w.weight(np.ones(width, np.float32)), axis=-1)

    table = w.matrix(o.tokens, width)
    x = w.op("Add", w.op("Gather", table, "input_ids"), w.op("Gather", w.matrix(o.positions, width), "position_ids"))
    w.weight(np.tril(np.ones((1, 1, o.positions, o.positions), bool)), "seen")
    mask = w.op("Cast", w.op("Unsqueeze", "attention_mask", w.integers(1, 2)), to=TensorProto.FLOAT)
    hidden = w.op("Sub", w.weight(np.array(1, np.float32)), mask)
    w.op("Mul", hidden, w.weight(np.array(np.finfo(np.float32).min, np.float32)), out="given")
    for i in range(o.layers):
        x = w.op("Add", x, attention(w, o, norm(x), i))
        wide = w.op("MatMul", norm(x), w.matrix(width, 4 * width))
        erf = w.op("Erf", w.op("Div", wide, w.weight(np.array(np.sqrt(2), np.float32))))
        wide = w.op("Mul", w.op("Mul", wide, w.weight(np.array(0.5, np.float32))), w.op("Add", erf, w.weight(np.array(1, np.float32))))
        x = w.op("Add", x, w.op("MatMul", wide, w.matrix(4 * width, width)))
    w.op("MatMul", norm(x), w.op("Transpose", table, perm=[1, 0]), out="logits")
    cache = ["batch", o.heads, "past_sequence", width // o.heads]
    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"]),
              helper.make_tensor_value_info("position_ids", TensorProto.INT64, ["batch", "sequence"]),
              helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "past_sequence + sequence"])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "sequence", o.tokens])]
    for i in range(o.layers):
        for kind in ("key", "value"):
            inputs.append(helper.make_tensor_value_info(f"past_key_values.{i}.{kind}", TensorProto.FLOAT, cache))
            present = ["batch", o.heads, "past_sequence + sequence", width // o.heads]
            outputs.append(helper.make_tensor_value_info(f"present.{i}.{kind}", TensorProto.FLOAT, present))
    graph = helper.make_graph(w.nodes, "growing_decoder", inputs, outputs, w.weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), o.model)


def fed(tokens, position):
    """Inputs for tokens that stand from `position` on."""
    count = len(tokens)
    return {"input_ids": np.array([tokens], np.int64), "position_ids": np.arange(position, position + count, dtype=np.int64)[None],
            "attention_mask": np.ones((1, position + count), np.int64)}


class Ours:
    def __init__(self, path, threads, capacity, prompt=1):
        import sylvite
        dims = {"batch": 1, "past_sequence": f"1..{capacity}", "sequence": f"1..{max(prompt, 2)}@1"}
        self.model = sylvite.compile(path, options={"compile.threads": threads}, states={"past_key_values.*": "present.*"}, dims=dims)

    def step(self, tokens, position):
        return self.model(fed(tokens, position))[0]

    def reset(self):
        self.model.reset_states()


class OnnxRuntime:
    def __init__(self, path, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.pasts = [each for each in self.session.get_inputs() if each.name.startswith("past_key_values")]
        self.reset()

    def reset(self):
        self.caches = {each.name: np.zeros((1, each.shape[1], 0, each.shape[3]), np.float32) for each in self.pasts}

    def step(self, tokens, position):
        logits, *presents = self.session.run(None, {**fed(tokens, position), **self.caches})
        self.caches = dict(zip(self.caches, presents))
        return logits


def token_times(side, tokens, start=0):
    """Seconds of each token, and its logits."""
    times, logits = [], []
    for i in range(start, len(tokens)):
        begin = time.perf_counter()
        logits.append(side.step([tokens[i]], i))
        times.append(time.perf_counter() - begin)
    return times, logits


def sample_tokens(path, count):
    model = onnx.load(path)
    most = next(o for o in model.graph.output if o.name == "logits").type.tensor_type.shape.dim[2].dim_value
    return [int(t) for t in np.random.default_rng(1).integers(0, most, count)]


def capacities(o):
    tokens = sample_tokens(o.model, o.length)
    sides = {capacity: Ours(o.model, o.threads, capacity) for capacity in map(int, o.capacities.split(","))}
    rounds = {capacity: [] for capacity in sides}
    for _ in range(o.rounds):
        for capacity, side in sides.items():
            side.reset()
            rounds[capacity].append(statistics.median(token_times(side, tokens)[0]))
    least = next(iter(rounds.values()))
    for capacity, times in rounds.items():
        ratio = statistics.median(b / a for a, b in zip(least, times))
        print(f"capacity {capacity}: {statistics.median(times) * 1e6:.1f} us a token, {ratio:.3f} of the first")


def compare(o):
    tokens = sample_tokens(o.model, o.tokens)
    ours, theirs = Ours(o.model, o.threads, o.capacity), OnnxRuntime(o.model, o.threads)
    ratios, error = [], 0
    for _ in range(o.rounds):
        ours.reset()
        theirs.reset()
        mine, logits = token_times(ours, tokens)
        other, expected = token_times(theirs, tokens)
        ratios.append(statistics.median(other) / statistics.median(mine))
        error = max(error, *(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(logits, expected)))
    print(f"{statistics.median(mine) * 1e6:.1f} us a token, {statistics.median(ratios):.2f} of ONNX Runtime's speed, error {error:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    making = verbs.add_parser("make")
    for name, default in (("layers", 2), ("width", 768), ("heads", 12), ("tokens", 1000), ("positions", 4096)):
        making.add_argument(f"--{name}", type=int, default=default)
    making.set_defaults(run=make)
    measuring = verbs.add_parser("capacities")
    measuring.add_argument("--capacities", default="512,4096")
    measuring.add_argument("--length", type=int, default=256)
    measuring.add_argument("--rounds", type=int, default=7)
    measuring.set_defaults(run=capacities)
    comparing = verbs.add_parser("compare")
    comparing.add_argument("--capacity", type=int, default=512)
    comparing.add_argument("--tokens", type=int, default=128)
    comparing.add_argument("--rounds", type=int, default=3)
    comparing.set_defaults(run=compare)
    for verb in (making, measuring, comparing):
        verb.add_argument("model")
    for verb in (measuring, comparing):
        verb.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
