#!/usr/bin/env python3
"""Write tests/data/expected: what ONNX Runtime computes for the stripped models of tests/data/models.

Weights and inputs come from the generator of frontend/onnx/weights.h, computed here in NumPy to the same bits
(seed 0). Float inputs have unit variance (factor sqrt(3)), integer inputs are uniform in [0, 1000).

For each model NAME the folder gets
  NAME.output.npy   at most 4096 elements of the first output: flat elements 0, stride, 2 * stride, ...
  expected.json     per model: input and output names and shapes, stride, and the largest magnitude of the output

usage: make_expected.py [MODEL.onnx ...]      (needs: pip install numpy onnx onnxruntime)
"""
import json
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

HERE = os.path.dirname(os.path.abspath(__file__))
MASK = (1 << 64) - 1
MAX_STORED = 4096
INTEGER_LIMIT = 1000


def fnv1a64(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def splitmix64(name, count, seed=0):
    with np.errstate(over="ignore"):
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = np.uint64(seed ^ fnv1a64(name)) + steps
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def random_floats(name, dims, factor):
    bits = (splitmix64(name, int(np.prod(dims))) >> np.uint64(40)).astype(np.float32)
    unit = bits * np.float32(2.0**-23) - np.float32(1)
    return (unit * np.float32(factor)).reshape(dims)


def random_integers(name, dims, limit):
    bits = splitmix64(name, int(np.prod(dims))) >> np.uint64(32)
    return (bits % np.uint64(limit)).astype(np.int64).reshape(dims)


def fan_in_for(node, dims):
    last = float(dims[-1]) if dims else 1.0
    if node.op_type.startswith("Conv"):
        return float(np.prod(dims[1:])) / 2
    if node.op_type == "MatMul":
        return float(dims[-2]) if len(dims) > 1 else last
    if node.op_type == "Gemm" and dims:
        return last if any(a.name == "transB" and a.i for a in node.attribute) else float(dims[0])
    if node.op_type == "Gather":
        return 1.0
    if node.op_type == "Transpose" and len(dims) == 2:
        return last
    return 0.0


def fan_in(graph, tensor):
    dims = list(tensor.dims)
    for node in graph.node:
        if tensor.name in node.input:
            found = fan_in_for(node, dims)
            if found > 0:
                return max(found, 0.5)
    return max(float(dims[-1]) if dims else 1.0, 0.5)


def fill_weights(model):
    for tensor in model.graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        factor = np.sqrt(3.0 / fan_in(model.graph, tensor))
        values = random_floats(tensor.name, list(tensor.dims), factor)
        del tensor.external_data[:]
        tensor.data_location = onnx.TensorProto.DEFAULT
        tensor.raw_data = values.tobytes()


def make_input(value_info):
    dims = [d.dim_value or 1 for d in value_info.type.tensor_type.shape.dim]
    if value_info.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
        return random_floats(value_info.name, dims, np.sqrt(3.0))
    return random_integers(value_info.name, dims, INTEGER_LIMIT)


def run(path, out_dir):
    model = onnx.load(path, load_external_data=False)
    fill_weights(model)
    inputs = {i.name: make_input(i) for i in model.graph.input}
    with tempfile.TemporaryDirectory() as folder:
        filled = os.path.join(folder, "model.onnx")
        onnx.save_model(model, filled, save_as_external_data=True, location="model.weights")
        session = onnxruntime.InferenceSession(filled, providers=["CPUExecutionProvider"])
        output = session.run(None, inputs)[0]
    stride = max(1, -(-output.size // MAX_STORED))
    name = os.path.splitext(os.path.basename(path))[0]
    np.save(os.path.join(out_dir, name + ".output.npy"), output.reshape(-1)[::stride])
    return name, {
        "inputs": {key: list(value.shape) for key, value in inputs.items()},
        "output": model.graph.output[0].name,
        "output_shape": list(output.shape),
        "stride": stride,
        "max_abs": float(np.abs(output).max()),
    }


def main():
    models = os.path.join(HERE, "models")
    paths = sys.argv[1:] or sorted(os.path.join(models, f) for f in os.listdir(models) if f.endswith(".onnx"))
    out_dir = os.path.join(HERE, "expected")
    os.makedirs(out_dir, exist_ok=True)
    index_path = os.path.join(out_dir, "expected.json")
    index = json.load(open(index_path)) if os.path.exists(index_path) else {}
    for path in paths:
        name, entry = run(path, out_dir)
        index[name] = entry
        print(name, entry, flush=True)
    with open(index_path, "w") as file:
        json.dump(index, file, indent=1, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main()
