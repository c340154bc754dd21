#!/usr/bin/env python3
"""Runs the light models of the ONNX backend tests with random weights, and compares with ONNX Runtime.

The models as they are shipped make every weight by ConstantOfShape, so that their outputs are constants and prove
structure only. Here each such weight becomes a random initializer, scaled by its fan-in; the variances of batch
normalisations stay positive. What the last Softmax reads is compared, too: its result is often a one among zeros.

usage: check_light_models.py path/to/sylvite
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

from check_against_onnxruntime import open_session


def randomized(model, generator):
    """The model with random initializers in place of its constant weights."""
    graph = model.graph
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            shapes[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    variances = {node.input[4] for node in graph.node if node.op_type == "BatchNormalization"}
    kept = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = shapes[node.input[0]].astype(int).tolist()
        fan_in = max(int(np.prod(shape[1:])), 1)
        weight = generator.standard_normal(shape) * (2 / fan_in) ** 0.5
        if node.output[0] in variances:
            weight = np.abs(weight) + 0.5
        graph.initializer.append(numpy_helper.from_array(weight.astype(np.float32), node.output[0]))
    del graph.node[:]
    graph.node.extend(kept)
    return model


def with_logits(model):
    """What the last Softmax reads becomes an output, if there is one."""
    last = [node for node in model.graph.node if node.op_type == "Softmax"][-1:]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(node.input[0]) for node in last)
    return onnx.shape_inference.infer_shapes(model)


def compare(name, actual, expected):
    scale = float(np.abs(expected).max())
    error = float(np.abs(actual - expected).max()) / scale
    spread = float(expected.std()) / scale
    print(f"{name:34} largest error {error:.1e} of the scale {scale:.3g}; spread {spread:.2g}", flush=True)
    return error < 1e-4 and spread > 0


def check(command, path, folder, generator):
    model = with_logits(randomized(onnx.load(path), generator))
    changed = folder / path.name
    onnx.save(model, changed)
    session = open_session(str(changed), "all")
    given = session.get_inputs()[0]
    x = generator.standard_normal(given.shape).astype(np.float32)
    expected = session.run(None, {given.name: x})
    np.save(folder / "x.npy", x)
    subprocess.run([command, "run", str(changed), "--input", f"{given.name}={folder / 'x.npy'}", "--output-dir",
                    str(folder / "out"), "--first-answer", "best"], check=True, stdout=subprocess.DEVNULL)
    outputs = json.loads((folder / "out" / "outputs.json").read_text())
    names = [path.stem, "  before its Softmax"]
    return all([compare(name, np.load(folder / "out" / output["file"]), value)
                for name, output, value in zip(names, outputs, expected)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite")
    command = parser.parse_args().sylvite
    data = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    generator = np.random.default_rng(20261121)
    models = sorted(data.glob("*.onnx"))
    with tempfile.TemporaryDirectory() as folder:
        results = [check(command, path, pathlib.Path(folder), generator) for path in models]
    print(f"{sum(results)} of {len(results)} agree")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
