#!/usr/bin/env python3
"""Shows where a quantised (QDQ) model differs from onnxruntime, and that only the order of sums makes it differ.

usage: check_quantised.py SYLVITE MODEL.onnx [--set key=value]...

The model runs in default mode as it is, and again with every quantised value and what it was made of as outputs; both must
give the same. Each QuantizeLinear and DequantizeLinear must give, to the bit, what ONNX defines in f32 for the values
that it was given: saturate(round_half_even(x / scale) + zero_point) and (x - zero_point) * scale. Then every quantised value
is compared with onnxruntime's, nothing optimised. The first ones that differ were given the same quantised values, so
they must be ties but for the rounding of a sum. Needs numpy, onnx and onnxruntime.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

from check_against_onnxruntime import draw_inputs, open_session

KINDS = ("QuantizeLinear", "DequantizeLinear")


def with_values_as_outputs(model):
    """The inputs and outputs of every quantisation of a computed value become outputs; returns those nodes."""
    graph = model.graph
    weights = {tensor.name for tensor in graph.initializer}
    nodes = [node for node in graph.node if node.op_type in KINDS and node.input[0] not in weights]
    known = weights | {value.name for value in list(graph.output) + list(graph.input)}
    names = dict.fromkeys(name for node in nodes for name in (node.input[0], node.output[0]) if name not in known)
    inferred = {value.name: value for value in onnx.shape_inference.infer_shapes(model).graph.value_info}
    graph.output.extend(inferred.get(name) or helper.make_empty_tensor_value_info(name) for name in names)
    return nodes


def run_sylvite(command, model, arguments, settings, folder):
    """Outputs by name."""
    out = os.path.join(folder, "out")
    subprocess.run([command, "run", model, *arguments, "--output-dir", out, "--first-answer", "best", *settings], check=True,
                   stdout=subprocess.DEVNULL)
    names = [value.name for value in onnx.load(model).graph.output]
    return {name: np.load(os.path.join(out, f"{i}.npy")) for i, name in enumerate(names)}


def defined(node, x, tensors):
    """What ONNX defines, one scale for all elements, step by step in f32."""
    scale, zero = (numpy_helper.to_array(tensors[name]) for name in node.input[1:3])
    assert scale.size == 1 and x.dtype == (np.float32 if node.op_type == "QuantizeLinear" else zero.dtype)
    if node.op_type == "DequantizeLinear":
        return (x.astype(np.float32) - zero.astype(np.float32)) * scale
    limits = np.iinfo(zero.dtype)
    return np.clip(np.rint(x / scale) + zero.astype(np.float32), limits.min, limits.max).astype(zero.dtype)


def count_undefined(nodes, values, tensors):
    """Prints and counts the elements that are not what ONNX defines for the values given."""
    total = 0
    for node in nodes:
        wrong = int(np.sum(defined(node, values[node.input[0]], tensors) != values[node.output[0]]))
        if wrong:
            print(f"{node.op_type} '{node.output[0]}': {wrong} elements are not as defined")
        total += wrong
    return total


def first_differences(nodes, ours, theirs, tensors):
    """Prints, per quantised value, how many integers differ; returns whether the first that do are ties."""
    is_first, is_explained = True, True
    for node in nodes:
        a, b = (values[node.output[0]].astype(int) for values in (ours, theirs))
        if node.op_type != "QuantizeLinear" or np.array_equal(a, b):
            continue
        differs = a != b
        print(f"{node.output[0]:44} {differs.sum():7d} of {a.size:7d} differ, by {np.abs(a - b).max()} at most")
        if not is_first:
            continue
        is_first = False
        scale = float(numpy_helper.to_array(tensors[node.input[1]]))
        x, y = (values[node.input[0]].astype(np.float64) for values in (ours, theirs))
        from_tie = np.abs(np.abs(x / scale - np.floor(x / scale)) - 0.5)[differs].max()
        apart = np.abs(x - y).max() / np.abs(x).max()
        print(f"  these are the first: at most {from_tie:.1e} of a step from a tie; the sums before differ by {apart:.1e} of "
              "their scale")
        is_explained = from_tie < 1e-3 and apart < 1e-5
    return is_explained


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite")
    parser.add_argument("model")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    options = parser.parse_args()
    settings = [word for setting in options.settings for word in ("--set", setting)]
    model = onnx.load(options.model)
    outputs = [value.name for value in model.graph.output]
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes = with_values_as_outputs(model)
    with tempfile.TemporaryDirectory() as folder:
        traced = os.path.join(folder, "traced.onnx")
        onnx.save(model, traced)
        session = open_session(traced, "disabled")
        feeds, arguments = draw_inputs(session, folder)
        theirs = dict(zip([value.name for value in session.get_outputs()], session.run(None, feeds))) | feeds
        ours = run_sylvite(options.sylvite, traced, arguments, settings, folder) | feeds
        plain = run_sylvite(options.sylvite, options.model, arguments, settings, folder)
    is_same = all(np.array_equal(plain[name], ours[name]) for name in outputs)
    print("the model as it is gives", "the same outputs" if is_same else "OTHER OUTPUTS")
    wrong = count_undefined(nodes, ours, tensors)
    print(f"{len(nodes)} quantisations, {sum(ours[node.output[0]].size for node in nodes)} elements: {wrong} not as defined")
    is_explained = first_differences(nodes, ours, theirs, tensors)
    for name in outputs:
        print(f"output '{name}': {np.sum(ours[name] != theirs[name])} of {ours[name].size} elements differ, by "
              f"{np.abs(ours[name] - theirs[name]).max():.4g} at most")
    sys.exit(0 if is_same and wrong == 0 and is_explained else 1)


if __name__ == "__main__":
    main()
