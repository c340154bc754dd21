#!/usr/bin/env python3
"""Make a decoder with random weights as ONNX Runtime's model builder writes it, and generate tokens beside ONNX Runtime.

usage: decoder.py make MODEL [--layers 12 ...]
       decoder.py compare MODEL [--threads 2] [--capacity 512] [--tokens 128] [--sequence 1] [--rounds 5]

Its products are MatMulNBits with blocks of 32 weights, its attention is GroupQueryAttention with packed queries, keys and
values, rotation and caches: past_key_values.N.key becomes present.N.key. `compare` holds the caches as states, which are
extended in place, and gives ONNX Runtime one buffer for past and present. Both sides take the same tokens, some in a step,
in turns of all of them; every step's logits are compared. Weights a second are the packed bytes of all products but the
embedding, with their scales, over the time of a step; beside them is the rate at which as many threads read memory. Needs
numpy and onnx, and to compare onnxruntime and the package sylvite.
"""
import argparse
import math
import statistics
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCK = 32


class Writer:
    """Nodes and weights of one graph."""

    def __init__(self, options):
        self.options = options
        self.rng = np.random.default_rng(options.seed)
        self.nodes, self.weights = [], []

    def weight(self, name, array):
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def op(self, kind, inputs, outputs, domain="", **attributes):
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=f"{kind}_{len(self.nodes)}", domain=domain, **attributes))
        return outputs[0]

    def product(self, name, x, depth, columns):
        """x by a weight [depth, columns] of a few bits, with results of the size of x."""
        bits = self.options.bits
        blocks = math.ceil(depth / BLOCK)
        spread = (2**bits) / math.sqrt(12)
        scales = self.rng.uniform(0.5, 1.5, (columns, blocks)) / spread / math.sqrt(depth)
        inputs = [x, self.weight(f"{name}.weight", self.rng.integers(0, 256, (columns, blocks, BLOCK * bits // 8), np.uint8)),
                  self.weight(f"{name}.scales", scales.astype(np.float32))]
        if self.options.zeros:
            inputs.append(self.weight(f"{name}.zeros", self.rng.integers(0, 256, (columns, math.ceil(blocks * bits / 8)), np.uint8)))
        return self.op("MatMulNBits", inputs, [f"{name}.out"], "com.microsoft", K=depth, N=columns, bits=bits, block_size=BLOCK,
                       accuracy_level=self.options.accuracy_level)

    def norm(self, name, x, residual):
        """The norm of the sum of both, and the sum."""
        scale = self.weight(f"{name}.scale", np.ones(self.options.width, np.float32))
        if residual is None:
            return self.op("SimplifiedLayerNormalization", [x, scale], [f"{name}.out"], axis=-1, epsilon=1e-5), x
        self.op("SkipSimplifiedLayerNormalization", [residual, x, scale], [f"{name}.out", "", "", f"{name}.sum"], "com.microsoft",
                epsilon=1e-5)
        return f"{name}.out", f"{name}.sum"


def lengths(w):
    """How many tokens there are, less one, and the length of the cache with them: from the mask."""
    one = w.weight("one", np.array([1], np.int64))
    w.op("ReduceSum", ["attention_mask", one], ["token_count"], keepdims=0)
    w.op("Sub", ["token_count", one], ["last_token"])
    w.op("Cast", ["last_token"], ["seqlens_k"], to=TensorProto.INT32)
    w.op("Shape", ["attention_mask"], ["mask_shape"])
    w.op("Gather", ["mask_shape", w.weight("first", np.array(1, np.int64))], ["mask_length"], axis=0)
    w.op("Cast", ["mask_length"], ["total_sequence_length"], to=TensorProto.INT32)


def layer(w, i, x, residual):
    o = w.options
    name = f"layer{i}"
    normed, residual = w.norm(f"{name}.input_norm", x, residual)
    qkv = w.product(f"{name}.qkv", normed, o.width, (o.heads + 2 * o.kv_heads) * o.head_size)
    past = [f"past_key_values.{i}.{part}" for part in ("key", "value")]
    present = [f"present.{i}.{part}" for part in ("key", "value")]
    attended = w.op("GroupQueryAttention", [qkv, "", "", *past, "seqlens_k", "total_sequence_length", "cosine", "sine"],
                    [f"{name}.attention", *present], "com.microsoft", num_heads=o.heads, kv_num_heads=o.kv_heads, do_rotary=1,
                    rotary_interleaved=0, scale=1 / math.sqrt(o.head_size))
    projected = w.product(f"{name}.output", attended, o.heads * o.head_size, o.width)
    normed, residual = w.norm(f"{name}.middle_norm", projected, residual)
    gate = w.product(f"{name}.gate", normed, o.width, o.hidden)
    up = w.product(f"{name}.up", normed, o.width, o.hidden)
    w.op("Sigmoid", [gate], [f"{name}.sigmoid"])
    w.op("Mul", [gate, f"{name}.sigmoid"], [f"{name}.silu"])
    gated = w.op("Mul", [f"{name}.silu", up], [f"{name}.gated"])
    return w.product(f"{name}.down", gated, o.hidden, o.width), residual


def make(options):
    w = Writer(options)
    o = options
    lengths(w)
    angles = np.outer(np.arange(o.longest), 1e4 ** (-np.arange(0, o.head_size, 2) / o.head_size))
    w.weight("cosine", np.cos(angles).astype(np.float32))
    w.weight("sine", np.sin(angles).astype(np.float32))
    table = w.weight("embedding", w.rng.standard_normal((o.vocabulary, o.width)).astype(np.float32))
    x, residual = w.op("Gather", [table, "input_ids"], ["embedded"]), None
    for i in range(o.layers):
        x, residual = layer(w, i, x, residual)
    normed, _ = w.norm("final_norm", x, residual)
    w.nodes.append(helper.make_node("Identity", [w.product("head", normed, o.width, o.vocabulary)], ["logits"]))
    ints = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.INT64, dims)
    floats = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    inputs = [ints("input_ids", ["batch", "sequence"]), ints("attention_mask", ["batch", "total"])]
    outputs = [floats("logits", ["batch", "sequence", o.vocabulary])]
    for i in range(o.layers):
        for part in ("key", "value"):
            inputs.append(floats(f"past_key_values.{i}.{part}", ["batch", o.kv_heads, "past", o.head_size]))
            outputs.append(floats(f"present.{i}.{part}", ["batch", o.kv_heads, "present", o.head_size]))
    graph = helper.make_graph(w.nodes, "decoder", inputs, outputs, w.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)],
                              ir_version=10)
    onnx.save(model, o.model)
    count = sum(math.prod(node_dims) for node_dims in product_dims(model))
    print(f"{o.model}: {(count + o.vocabulary * o.width) / 1e6:.0f} M parameters, {packed_bytes(model) / 1e6:.1f} MB of packed weights")


def product_nodes(model):
    return [node for node in model.graph.node if node.op_type == "MatMulNBits"]


def product_dims(model):
    for node in product_nodes(model):
        attributes = {each.name: each.i for each in node.attribute}
        yield attributes["K"], attributes["N"]


def packed_bytes(model):
    """That a token reads: of all products with their scales and zero points."""
    sizes = {each.name: len(each.raw_data) for each in model.graph.initializer}
    return sum(sizes[name] for node in product_nodes(model) for name in node.input[1:])


class Peer:
    """ONNX Runtime with one buffer for past and present."""

    def __init__(self, path, cache_dims, threads, capacity):
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.caches = {name: ort.OrtValue.ortvalue_from_numpy(np.zeros((dims[0], dims[1], capacity, dims[3]), np.float32))
                       for name, dims in cache_dims.items()}
        self.binding.bind_output("logits")
        for name, value in self.caches.items():
            self.binding.bind_ortvalue_input(name, value)
            self.binding.bind_ortvalue_output(name.replace("past_key_values", "present"), value)

    def step(self, tokens, position):
        self.binding.bind_cpu_input("input_ids", tokens)
        self.binding.bind_cpu_input("attention_mask", np.ones((1, position + tokens.shape[1]), np.int64))
        self.binding.bind_output("logits")  # anew: its size may be another
        self.session.run_with_iobinding(self.binding)
        return self.binding.get_outputs()[0].numpy()


class Ours:
    def __init__(self, path, cache_dims, threads, capacity, sequence):
        import sylvite

        self.mask = np.zeros((1, capacity), np.int64)
        states = {name: name.replace("past_key_values", "present") for name in cache_dims}
        self.model = sylvite.compile(path, options={"compile.threads": threads}, states=states,
                                     dims={"batch": 1, "sequence": sequence, "total": capacity, "past": capacity})

    def step(self, tokens, position):
        self.mask[:] = 0
        self.mask[:, : position + tokens.shape[1]] = 1
        return self.model(input_ids=tokens, attention_mask=self.mask)[0]


def read_rate(threads, size=1 << 28):
    """Bytes a second that so many threads read from memory: the best of some times."""
    from concurrent.futures import ThreadPoolExecutor

    parts = np.split(np.ones(size // 8, np.int64), threads)
    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(10):
            start = time.perf_counter()
            list(pool.map(np.bitwise_or.reduce, parts))
            best = max(best, size / (time.perf_counter() - start))
    return best


def run(side, tokens, sequence):
    times, results = [], []
    for position in range(0, len(tokens), sequence):
        step = tokens[position : position + sequence].reshape(1, -1)
        start = time.perf_counter()
        results.append(side.step(step, position).copy())
        times.append(time.perf_counter() - start)
    return statistics.median(times), results


def compare(options):
    model = onnx.load(options.model, load_external_data=False)
    read = packed_bytes(model)
    dims = {each.name: [d.dim_value or 1 for d in each.type.tensor_type.shape.dim] for each in model.graph.input
            if each.name.startswith("past")}
    vocabulary = model.graph.output[0].type.tensor_type.shape.dim[-1].dim_value
    tokens = np.random.default_rng(5).integers(0, vocabulary, options.tokens)
    peer = Peer(options.model, dims, options.threads, options.capacity)
    ours = Ours(options.model, dims, options.threads, options.capacity, options.sequence)
    seconds, errors, rates = {"ONNX Runtime": [], "Sylvite": []}, [], []
    for _ in range(options.rounds):
        peer_seconds, expected = run(peer, tokens, options.sequence)
        our_seconds, actual = run(ours, tokens, options.sequence)
        seconds["ONNX Runtime"].append(peer_seconds)
        seconds["Sylvite"].append(our_seconds)
        rates.append(read_rate(options.threads))
        errors += [np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in zip(actual, expected)]
    rate = statistics.median(rates)
    print(f"| {options.threads} threads, capacity {options.capacity}, steps of {options.sequence} | ms a step | tokens a second | GB/s of weights | of {rate / 1e9:.1f} GB/s |")
    print("|---|---|---|---|---|")
    for name, values in seconds.items():
        median = statistics.median(values)
        print(f"| {name} | {1e3 * median:.2f} | {options.sequence / median:.0f} | {read / median / 1e9:.1f} | {100 * read / median / rate:.0f} % |")
    ratios = [a / b for a, b in zip(seconds["ONNX Runtime"], seconds["Sylvite"])]
    print(f"\n{statistics.median(ratios):.2f}x ONNX Runtime; logits differ by {max(errors):.1e} of their norm at most, over {options.tokens} tokens")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    maker = verbs.add_parser("make")
    maker.add_argument("model")
    for name, value in {"layers": 12, "width": 768, "heads": 12, "kv-heads": 4, "head-size": 64, "hidden": 2048, "vocabulary": 32000,
                        "longest": 4096, "bits": 4, "accuracy-level": 4, "zeros": 0, "seed": 1}.items():
        maker.add_argument(f"--{name}", type=int, default=value)
    comparer = verbs.add_parser("compare")
    comparer.add_argument("model")
    for name, value in {"threads": 2, "capacity": 512, "tokens": 128, "rounds": 5, "sequence": 1}.items():
        comparer.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    {"make": make, "compare": compare}[options.verb](options)


if __name__ == "__main__":
    sys.exit(main())
