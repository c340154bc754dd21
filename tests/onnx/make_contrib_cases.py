#!/usr/bin/env python3
"""Make the cases of tests/data/contrib: models of operators outside the default domain, with ONNX Runtime's answers.

usage: make_contrib_cases.py FOLDER [--only TEXT]

Each case is one file, a model that holds its own inputs and outputs: the initialization graph of its first training_info has
them as initializers by name. metadata_props rtol and atol are the tolerances, if they are not the usual ones. What ONNX
Runtime does not compute on a CPU is computed with NumPy here. Needs numpy, onnx and onnxruntime, which the tests themselves
do not.
"""
import argparse
import os
import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import contrib_attention_cases
import contrib_fused_cases
import contrib_gate_cases
import contrib_ml_cases
import contrib_quantized_cases
import contrib_stream_cases
import contrib_text_cases


def tensor(array, name):
    if array.dtype.kind in "OSU":
        return helper.make_tensor(name, TensorProto.STRING, array.shape, [str(s).encode() for s in array.flatten()])
    return numpy_helper.from_array(np.array(array, order="C"), name)


def element_type(array):
    return TensorProto.STRING if array.dtype.kind in "OSU" else helper.np_dtype_to_tensor_dtype(array.dtype)


def build(case):
    """The model without its values. Inputs that are None are absent; those in case.weights are initializers."""
    inputs = [name if value is not None else "" for name, value in case.inputs.items()]
    node = helper.make_node(case.op, inputs, case.outputs, name="node", domain=case.domain, **case.attributes)
    values = {name: value for name, value in case.inputs.items() if value is not None}
    free = [helper.make_tensor_value_info(name, element_type(value), value.shape)
            for name, value in values.items() if name not in case.weights]
    weights = [tensor(value, name) for name, value in values.items() if name in case.weights]
    outputs = [helper.make_empty_tensor_value_info(name) for name in case.outputs if name]
    graph = helper.make_graph([node], case.name, free, outputs, weights)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1),
              helper.make_opsetid("ai.onnx.ml", case.ml_opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def answers(case):
    """What ONNX Runtime says, to the inputs of case.reference if it has such: the same in a form that it serves."""
    if case.expected is not None:
        return case.expected
    import onnxruntime
    own = case.inputs
    case.inputs = case.reference(own) if case.reference else own
    model = build(case)
    given = {i.name: case.inputs[i.name] for i in model.graph.input}
    case.inputs = own
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, given)


def write(case, folder):
    model = build(case)
    outputs = dict(zip([name for name in case.outputs if name], answers(case)))
    values = model.training_info.add().initialization
    for i in model.graph.input:
        values.initializer.append(tensor(case.inputs[i.name], i.name))
    for name, array in outputs.items():
        values.initializer.append(tensor(np.asarray(array), name))
    for info in model.graph.output:
        if info.name in outputs:
            array = np.asarray(outputs[info.name])
            info.CopyFrom(helper.make_tensor_value_info(info.name, element_type(array), array.shape))
    for key, value in case.tolerances.items():
        prop = model.metadata_props.add()
        prop.key, prop.value = key, str(value)
    with open(os.path.join(folder, case.name + ".onnx"), "wb") as file:
        file.write(model.SerializeToString())


class Case:
    """`inputs`: arrays by name, in order. The generator of random numbers is the case's own."""

    def __init__(self, name, op, inputs, outputs=("y",), weights=(), domain="com.microsoft", expected=None, ml_opset=3,
                 tolerances=None, reference=None, **attributes):
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.name, self.op, self.domain, self.outputs = name, op, domain, list(outputs)
        self.inputs = inputs(rng) if callable(inputs) else inputs
        self.weights, self.ml_opset, self.tolerances = set(weights), ml_opset, tolerances or {}
        self.attributes, self.reference = attributes, reference
        self.expected = expected(self.inputs) if callable(expected) else expected


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    seen = set()
    for family in (contrib_fused_cases, contrib_attention_cases, contrib_gate_cases, contrib_stream_cases, contrib_quantized_cases,
                   contrib_ml_cases, contrib_text_cases):
        for arguments in family.cases():
            name = arguments["name"]
            if name in seen:
                raise SystemExit(f"two cases are called {name}")
            seen.add(name)
            if options.only not in name:
                continue
            try:
                write(Case(**arguments), options.folder)
            except Exception as error:
                print(f"{name}: {str(error)[:300]}")


if __name__ == "__main__":
    main()
