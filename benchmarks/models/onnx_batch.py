#!/usr/bin/env python3
"""An exported model at another batch or length: graphs that PyTorch exports say both in shapes.

usage: onnx_batch.py MODEL.onnx FOLDER [--batch N] [--rows N]   writes FOLDER/NAME-bN-rN.onnx with its weights
Zero biases (as exported from fresh modules) become random, so that no compiler can drop them; inputs and outputs in
floating point become bf16 on request, as a model that was cast with .bfloat16() has them.
"""

import argparse
import os
import shutil

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def batched_shape(shape, batch, rows):
    """A reshape's target at batch 1 with the batch put in; `rows`: the sequence, which some models put first."""
    shape = list(shape)
    if shape[0] == 1:
        shape[0] = batch
    elif shape[0] == rows and len(shape) > 2:  # [rows, batch, ...], or [rows, batch * heads, depth]
        shape[1] *= batch
    elif shape[0] == rows and shape[1] != -1:
        shape[0] *= batch
    return shape


def sequence_of(graph):
    """Rows that attention works on; 0 without any."""
    initial = {tensor.name: tensor for tensor in graph.initializer}
    shapes = [numpy_helper.to_array(initial[node.input[1]]) for node in graph.node if node.op_type == "Reshape"]
    return next((int(dim) for shape in shapes for dim in shape if dim in (128, 197, 512)), 0)


def set_batch(graph, batch):
    initial = {tensor.name: tensor for tensor in graph.initializer}
    rows = sequence_of(graph)
    for value in [*graph.input, *graph.output]:
        value.type.tensor_type.shape.dim[0].dim_value = batch
    for name in {node.input[1] for node in graph.node if node.op_type == "Reshape"}:
        shape = batched_shape(numpy_helper.to_array(initial[name]), batch, rows)
        initial[name].CopyFrom(numpy_helper.from_array(np.array(shape, np.int64), name))
    for node in [node for node in graph.node if node.op_type == "Concat"]:
        for i, name in enumerate(node.input):  # a class token stands once for all
            if name not in initial:
                continue
            shape = numpy_helper.from_array(np.array([batch, 1, 1], np.int64), name + "_batch")
            graph.initializer.append(shape)
            graph.node.insert(0, helper.make_node("Expand", [name, shape.name], [name + "_expanded"]))
            node.input[i] = name + "_expanded"


def lengthened(array, old, rows):
    """A shape, a run of positions or a mask of `old` rows, for `rows`; None for anything else."""
    if array.ndim == 1 and array.size <= 8 and old in array:
        return np.where(array == old, rows, array)
    if array.ndim == 2 and np.array_equal(array, np.arange(old)[None]):
        return np.arange(rows, dtype=array.dtype)[None]
    if array.dtype == bool and array.shape[-2:] == (old, old) and array.all():
        return np.ones([*array.shape[:-2], rows, rows], bool)
    return None


def set_rows(graph, rows):
    """Of a transformer whose positions are constants and whose masks hide nothing, such as BERT's."""
    old = sequence_of(graph)
    for value in [*graph.input, *graph.output]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value == old:
                dim.dim_value = rows
    for tensor in graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL or tensor.data_type not in (TensorProto.INT64, TensorProto.BOOL):
            continue
        array = lengthened(numpy_helper.to_array(tensor), old, rows)
        if array is not None:
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    del graph.value_info[:]


def fill_zero_biases(graph):
    random = np.random.default_rng(0)
    for tensor in graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL or tensor.data_type != TensorProto.FLOAT:
            continue
        array = numpy_helper.to_array(tensor)
        if array.ndim == 1 and not array.any():
            drawn = random.standard_normal(array.shape).astype(np.float32) * np.float32(0.02)
            tensor.CopyFrom(numpy_helper.from_array(drawn, tensor.name))


def use_bf16_ports(graph):
    for value in graph.input:
        if value.type.tensor_type.elem_type != TensorProto.FLOAT:
            continue
        value.type.tensor_type.elem_type = TensorProto.BFLOAT16
        for node in graph.node:
            for i, name in enumerate(node.input):
                if name == value.name:
                    node.input[i] = value.name + "_f32"
        graph.node.insert(0, helper.make_node("Cast", [value.name], [value.name + "_f32"], to=TensorProto.FLOAT))
    for value in graph.output:
        graph.node.append(helper.make_node("Cast", [value.name], [value.name + "_bf16"], to=TensorProto.BFLOAT16))
        value.name += "_bf16"
        value.type.tensor_type.elem_type = TensorProto.BFLOAT16


def rewrite(path, folder, batch, bf16):
    """The rewritten model in `folder`, with a copy of its weights."""
    name = os.path.splitext(os.path.basename(path))[0]
    model = onnx.load(path, load_external_data=False)
    set_batch(model.graph, batch)
    fill_zero_biases(model.graph)
    if bf16:
        use_bf16_ports(model.graph)
    if not os.path.exists(os.path.join(folder, name + ".weights")):
        shutil.copy(os.path.splitext(path)[0] + ".weights", folder)
    result = os.path.join(folder, f"{name}-{batch}-{'bf16' if bf16 else 'f32'}.onnx")
    onnx.save_model(model, result)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("folder")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    name = os.path.splitext(os.path.basename(options.model))[0]
    model = onnx.load(options.model, load_external_data=False)
    if options.rows:
        set_rows(model.graph, options.rows)
    if options.batch != 1:
        set_batch(model.graph, options.batch)
    os.makedirs(options.folder, exist_ok=True)
    shutil.copy(os.path.splitext(options.model)[0] + ".weights", options.folder)
    rows = f"-r{options.rows}" if options.rows else ""
    onnx.save_model(model, os.path.join(options.folder, f"{name}-b{options.batch}{rows}.onnx"))


if __name__ == "__main__":
    main()
