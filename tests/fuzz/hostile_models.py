#!/usr/bin/env python3
"""Make 200 hostile models, run each through the command, and check that it fails well.

usage: hostile_models.py SYLVITE [--keep FOLDER] [--only TEXT]

Every run is a process of its own: no signal, at most 5 s and 1 GB, and either an exit code between 2 and 8 with one message
on stderr, or, for models that are odd but valid, success. Exit status 1 when any misbehaves. Needs numpy and onnx.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

OPSET = 21
CASES = []  # (class, name, writer(folder) -> path of the model, may succeed)


def case(group, name, write, may_succeed=False):
    CASES.append((group, name, write, may_succeed))


# ---- making models

def info(name, dims=(2, 3), kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, dims)


def floats(name, dims, value=1.0):
    return numpy_helper.from_array(np.full(dims, value, np.float32), name)


def integers(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def model(nodes, inputs=None, outputs=None, weights=(), functions=(), opset=OPSET):
    graph = helper.make_graph(nodes, "hostile", [info("x")] if inputs is None else inputs,
                              [helper.make_empty_tensor_value_info("y")] if outputs is None else outputs, list(weights))
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=list(functions))


def good():
    """x -> Relu -> Add -> MatMul -> Reshape -> y"""
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Add", ["a", "bias"], ["b"]),
             helper.make_node("MatMul", ["b", "weight"], ["c"]), helper.make_node("Reshape", ["c", "shape"], ["y"])]
    return model(nodes, weights=[floats("bias", (3,)), floats("weight", (3, 2)), integers("shape", [4])])


def node(op, inputs, **attributes):
    return helper.make_node(op, inputs, ["y"], **attributes)


def save(proto):
    def write(folder):
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(proto if isinstance(proto, bytes) else proto.SerializeToString())
        return path
    return write


def changed(change):
    proto = good()
    change(proto)
    return save(proto)


# ---- bytes

def varint(value):
    out = b""
    while True:
        out += bytes([(value & 0x7f) | (0x80 if value > 0x7f else 0)])
        value >>= 7
        if value == 0:
            return out


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def nested(path, depth):
    """Messages inside each other: the field numbers of `path`, again and again."""
    payload = b""
    for i in range(depth):
        payload = field(path[i % len(path)], payload)
    return field(7, payload)


def sparse_file(size, head=b""):
    def write(folder):
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(head)
            file.truncate(size)
        return path
    return write


def add_byte_cases():
    data = good().SerializeToString()
    for i in range(20):
        case("truncated", f"truncated_{i}", save(data[:len(data) * i // 20]))
    rng = random.Random(1)
    for i in range(20):
        flipped = bytearray(data)
        for _ in range(1 + i % 5):
            flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
        case("flipped", f"flipped_{i}", save(bytes(flipped)), may_succeed=True)
    case("bytes", "empty", save(b""))
    case("bytes", "text", save(b"#!/bin/sh\nexit 0\n" * 50))
    case("bytes", "random", save(random.Random(2).randbytes(100_000)))
    case("bytes", "ones", save(b"\xff" * 10_000))
    case("bytes", "length_beyond_end", save(varint(7 << 3 | 2) + varint(1 << 40) + b"x"))
    case("bytes", "length_of_2_gb", save(varint(7 << 3 | 2) + varint(2**31 - 1) + b"x"))
    for depth in (10, 90, 1_000, 30_000):
        case("deep", f"graphs_{depth}", save(nested([6, 5, 1], depth)))  # attribute.g, node.attribute, graph.node
    case("deep", "unknown_groups", save(varint(99 << 3 | 3) * 50_000))
    case("size", "3_gb_of_nothing", sparse_file(3 << 30))
    case("size", "2_gb_less_a_byte", sparse_file((1 << 31) - 1))
    case("size", "2_gb_of_weights", sparse_file((1 << 31) - 1, varint(7 << 3 | 2) + varint((1 << 31) - 40)))
    case("path", "folder", lambda folder: folder)
    case("path", "absent", lambda folder: os.path.join(folder, "none.onnx"))

    def pipe(folder):
        os.mkfifo(os.path.join(folder, "model.onnx"))
        return os.path.join(folder, "model.onnx")
    case("path", "pipe", pipe)
    case("path", "device", lambda folder: "/dev/zero")


# ---- dims and data

def add_dims_cases():
    def bias_dims(*dims):
        def change(proto):
            del proto.graph.initializer[0].dims[:]
            proto.graph.initializer[0].dims.extend(dims)
        return changed(change)
    for name, dims in {"negative": [-3], "overflow": [1 << 40, 1 << 40], "wraps_to_3": [1 << 63 >> 1, 4, 3], "huge": [1 << 50],
                       "beyond_data": [300], "less_than_data": [2], "many_ones": [1] * 100_000, "zero_times_huge": [0, 1 << 62]
                       }.items():
        case("dims", f"weight_{name}", bias_dims(*dims), may_succeed=name == "zero_times_huge")

    def input_dims(*dims):
        return save(model([node("Relu", ["x"])], inputs=[info("x", dims)]))
    for name, dims in {"negative": [-1, 2], "huge": [1 << 40], "overflow": [1 << 31, 1 << 31, 1 << 31], "tall": [1 << 30, 1 << 30],
                       "of_100_ranks": [1] * 100}.items():
        case("dims", f"input_{name}", input_dims(*dims), may_succeed=name == "of_100_ranks")

    def data(change):
        def apply(proto):
            tensor = proto.graph.initializer[0]
            tensor.ClearField("raw_data")
            change(tensor)
        return changed(apply)
    case("data", "no_data", data(lambda t: None))
    case("data", "two_kinds", data(lambda t: (t.float_data.extend([1, 2, 3]), t.int64_data.extend([1, 2, 3]))), may_succeed=True)
    case("data", "wrong_kind", data(lambda t: t.int64_data.extend([1, 2, 3])))
    case("data", "undefined_type", data(lambda t: setattr(t, "data_type", 0)))
    case("data", "type_of_the_future", data(lambda t: setattr(t, "data_type", 9999)))
    case("data", "strings", data(lambda t: (setattr(t, "data_type", TensorProto.STRING), t.string_data.extend([b"a"] * 3))))
    case("data", "complex", data(lambda t: (setattr(t, "data_type", TensorProto.COMPLEX64), t.float_data.extend([1.0] * 6))))
    case("data", "segment", data(lambda t: (t.segment.__setattr__("begin", 0), t.segment.__setattr__("end", 1 << 60))))
    case("data", "raw_too_long", changed(lambda p: setattr(p.graph.initializer[0], "raw_data", b"\0" * 13)))

    def sparse(values, indices, dims, index_dims=None):
        tensor = onnx.SparseTensorProto()
        tensor.values.CopyFrom(numpy_helper.from_array(np.array(values, np.float32), "s"))
        tensor.indices.CopyFrom(numpy_helper.from_array(np.array(indices, np.int64).reshape(index_dims or (len(indices),)), "i"))
        tensor.dims.extend(dims)
        proto = model([node("Add", ["x", "s"])])
        proto.graph.sparse_initializer.append(tensor)
        return save(proto)
    case("data", "sparse_index_beyond", sparse([1], [99], [2, 3]))
    case("data", "sparse_index_negative", sparse([1], [-1], [2, 3]))
    case("data", "sparse_dims_huge", sparse([1], [0], [1 << 40, 1 << 20]))
    case("data", "sparse_4_gb", sparse([1], [0], [1 << 30]))
    case("data", "sparse_counts_differ", sparse([1, 2], [0], [2, 3]))
    case("data", "sparse_pairs_beyond", sparse([1], [0, 3], [2, 3], (1, 2)))
    case("data", "sparse_bad_rank", sparse([1], [0, 0, 0], [2, 3], (1, 3)))


# ---- external data

def external(location, before=None, **entries):
    def write(folder):
        os.makedirs(os.path.join(folder, "model"))
        for name in ("secret.bin", "model/good.bin"):
            np.ones(3, np.float32).tofile(os.path.join(folder, name))
        if before:
            before(folder)
        proto = good()
        tensor = proto.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        where = location(folder) if callable(location) else location
        for key, value in dict(location=where, **entries).items():
            tensor.external_data.add(key=key, value=value)
        path = os.path.join(folder, "model", "model.onnx")
        with open(path, "wb") as file:
            file.write(proto.SerializeToString())
        return path
    return write


def add_external_cases():
    inside = lambda *parts: lambda folder: os.path.join(folder, "model", *parts)
    secret = lambda folder: os.path.join(folder, "secret.bin")
    case("external", "up", external("../secret.bin"))
    case("external", "up_in_the_middle", external("./sub/../../secret.bin"))
    case("external", "absolute", external(secret))
    case("external", "device", external("/dev/zero"))
    case("external", "home", external("~/secret.bin"))
    case("external", "backslashes", external("..\\secret.bin"))
    case("external", "empty", external(""))
    case("external", "folder", external("."))
    case("external", "nul", external("good.bin\0.txt"))
    case("external", "long", external("a/" * 5_000 + "b"))
    case("external", "absent", external("none.bin"))
    case("external", "symlink", external("link", lambda f: os.symlink(secret(f), inside("link")(f))))
    case("external", "symlinked_folder", external("up/secret.bin", lambda f: os.symlink(f, inside("up")(f))))
    case("external", "hardlink", external("hard", lambda f: os.link(secret(f), inside("hard")(f))))
    case("external", "pipe", external("pipe", lambda f: os.mkfifo(inside("pipe")(f))))
    for name, value in {"beyond": "4", "negative": "-4", "overflow": "9223372036854775807", "word": "x", "real": "1e3"}.items():
        case("external", f"offset_{name}", external("good.bin", offset=value))
    for name, value in {"beyond": "64", "negative": "-12", "short": "4", "overflow": "99999999999999999999"}.items():
        case("external", f"length_{name}", external("good.bin", length=value))
    case("external", "unknown_key", external("good.bin", program="rm"), may_succeed=True)

    def in_attribute(folder):
        tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="/etc/hostname")
        return save(model([node("Constant", [], value=tensor)]))(folder)
    case("external", "in_an_attribute", in_attribute)

    def in_sparse(folder):
        tensor = onnx.SparseTensorProto(dims=[2, 3])
        for part, name in ((tensor.values, "s"), (tensor.indices, "i")):
            part.name, part.data_type, part.data_location = name, TensorProto.FLOAT, TensorProto.EXTERNAL
            part.dims.append(1)
            part.external_data.add(key="location", value="/etc/hostname")
        tensor.indices.data_type = TensorProto.INT64
        proto = model([node("Add", ["x", "s"])])
        proto.graph.sparse_initializer.append(tensor)
        return save(proto)(folder)
    case("external", "in_a_sparse_weight", in_sparse)


# ---- graphs

def chain(count, op="Identity"):
    names = ["x"] + [f"t{i}" for i in range(count - 1)] + ["y"]
    return [helper.make_node(op, [names[i]], [names[i + 1]]) for i in range(count)]


def function(name, nodes, inputs=("a",), outputs=("c",)):
    return helper.make_function("local", name, list(inputs), list(outputs), nodes,
                                [helper.make_opsetid("", OPSET), helper.make_opsetid("local", 1)])


def call(name, source, target):
    return helper.make_node(name, [source], [target], domain="local")


def if_node(condition, then_branch, else_branch):
    return node("If", [condition], then_branch=then_branch, else_branch=else_branch)


def branch(nodes, output):
    return helper.make_graph(nodes, "branch", [], [helper.make_empty_tensor_value_info(output)])


def nested_ifs(depth):
    graph = branch([helper.make_node("Relu", ["x"], ["r"])], "r")
    for i in range(depth):
        inner = helper.make_node("If", ["flag"], [f"r{i}"], then_branch=graph, else_branch=graph)
        graph = branch([inner], f"r{i}")
    return graph


def loop(trips, body_nodes, condition=""):
    body = helper.make_graph(body_nodes, "body", [info("i", (), TensorProto.INT64), info("go", (), TensorProto.BOOL), info("s")],
                             [info("go", (), TensorProto.BOOL), helper.make_empty_tensor_value_info("t")])
    return model([node("Loop", ["trips", condition, "x"], body=body)], weights=[numpy_helper.from_array(np.array(trips), "trips")])


def add_graph_cases():
    def rename(index, kind, at, name):
        return changed(lambda p: getattr(p.graph.node[index], kind).__setitem__(at, name))
    case("graph", "cycle", rename(0, "input", 0, "c"))
    case("graph", "reads_itself", rename(1, "input", 0, "b"))
    case("graph", "missing_input", rename(1, "input", 1, "nothing"))
    case("graph", "two_producers", rename(1, "output", 0, "a"))
    case("graph", "shadows_an_input", rename(1, "output", 0, "x"))
    case("graph", "shadows_a_weight", rename(1, "output", 0, "weight"))
    case("graph", "unnamed_output", rename(1, "output", 0, ""))
    case("graph", "no_output_of_that_name", changed(lambda p: setattr(p.graph.output[0], "name", "z")))
    case("graph", "no_outputs", changed(lambda p: p.graph.ClearField("output")))
    case("graph", "no_graph", changed(lambda p: p.ClearField("graph")))
    case("graph", "no_nodes", changed(lambda p: p.graph.ClearField("node")))
    case("graph", "no_opset", changed(lambda p: p.ClearField("opset_import")))
    case("graph", "opset_negative", changed(lambda p: setattr(p.opset_import[0], "version", -5)))
    case("graph", "opset_of_the_future", changed(lambda p: setattr(p.opset_import[0], "version", 1 << 40)))
    case("graph", "ir_of_the_future", changed(lambda p: setattr(p, "ir_version", 1 << 40)))
    case("graph", "unknown_operator", changed(lambda p: setattr(p.graph.node[0], "op_type", "Frobnicate")))
    case("graph", "unknown_domain", changed(lambda p: setattr(p.graph.node[0], "domain", "com.evil")))
    case("graph", "operator_without_name", changed(lambda p: setattr(p.graph.node[0], "op_type", "")))
    case("graph", "name_of_a_megabyte", changed(lambda p: setattr(p.graph.node[0], "op_type", "A" * (1 << 20))))
    case("graph", "control_characters", changed(lambda p: setattr(p.graph.node[0], "op_type", "\x1b[2J\x07")))
    case("graph", "two_inputs_of_one_name", changed(lambda p: p.graph.input.append(p.graph.input[0])))
    case("graph", "two_weights_of_one_name", changed(lambda p: p.graph.initializer.append(p.graph.initializer[0])))
    case("graph", "input_is_a_sequence", save(model([node("Relu", ["x"])], inputs=[
        helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [2])])), may_succeed=True)  # refused when it runs
    case("graph", "input_without_type", save(model([node("Relu", ["x"])], inputs=[onnx.ValueInfoProto(name="x")])))
    case("graph", "chain_of_300000", save(model(chain(300_000))), may_succeed=True)
    case("graph", "chain_of_20000_sums", save(model([
        helper.make_node("Add", [f"t{i}" if i else "x", "x"], [f"t{i + 1}" if i < 19_999 else "y"]) for i in range(20_000)])),
        may_succeed=True)
    case("graph", "doubling", save(model([
        helper.make_node("Concat", [f"t{i}" if i else "x"] * 2, [f"t{i + 1}" if i < 59 else "y"], axis=0) for i in range(60)])))
    double = [helper.make_node("Add", [f"t{i}" if i else "w", f"t{i}" if i else "w"], [f"t{i + 1}" if i < 59 else "y"])
              for i in range(60)]
    case("graph", "doubling_constants", save(model(double, weights=[floats("w", (2, 3))])), may_succeed=True)
    case("graph", "input_read_20000_times", save(model([node("Sum", ["x"] * 20_000)])), may_succeed=True)
    case("graph", "function_calls_itself", save(model([call("f", "x", "y")], functions=[function("f", [call("f", "a", "c")])])))
    case("graph", "functions_call_each_other", save(model([call("f", "x", "y")], functions=[
        function("f", [call("g", "a", "c")]), function("g", [call("f", "a", "c")])])))
    bombs = [function(f"f{i}", [call(f"f{i + 1}", "a", "b"), call(f"f{i + 1}", "b", "c")]) for i in range(40)]
    bombs.append(function("f40", [helper.make_node("Relu", ["a"], ["c"])]))
    case("graph", "functions_that_double", save(model([call("f0", "x", "y")], functions=bombs)))
    case("graph", "function_twice", save(model([call("f", "x", "y")], functions=[
        function("f", [helper.make_node("Relu", ["a"], ["c"])])] * 2)))
    case("graph", "function_without_output", save(model([call("f", "x", "y")], functions=[
        function("f", [helper.make_node("Relu", ["a"], ["b"])])])))
    case("graph", "function_with_too_many_inputs", save(model([helper.make_node("f", ["x", "x", "x"], ["y"], domain="local")],
                                                             functions=[function("f", [helper.make_node("Relu", ["a"], ["c"])])])))
    flag = [numpy_helper.from_array(np.array(True), "flag")]
    for depth in (10, 13):
        graph = nested_ifs(depth)
        case("graph", f"ifs_nested_{depth}", save(model([if_node("flag", graph, graph)], weights=flag)), may_succeed=True)
        case("graph", f"ifs_nested_{depth}_at_run_time", save(model([if_node("flag", graph, graph)], inputs=[
            info("x"), info("flag", (), TensorProto.BOOL)])), may_succeed=True)
    case("graph", "loop_of_2_60_trips", save(loop(1 << 60, [helper.make_node("Relu", ["s"], ["t"])])))
    case("graph", "loop_of_negative_trips", save(loop(-1, [helper.make_node("Relu", ["s"], ["t"])])), may_succeed=True)
    case("graph", "loop_of_big_work", save(loop(100_000, [helper.make_node("MatMul", ["s", "s"], ["t"])])))
    case("graph", "loop_without_body", save(model([node("Loop", ["", "", "x"])])))
    case("graph", "scan_without_inputs", save(model([node("Scan", ["x"], num_scan_inputs=99, body=branch(chain(1), "y"))])))
    case("graph", "if_without_branches", save(model([node("If", ["x"])])))


# ---- operators

def add_operator_cases():
    image = [info("x", (1, 4, 8, 8))]

    def bad(name, op, weights=(), inputs=None, may_succeed=False, nodes_inputs=None, **attributes):
        names = nodes_inputs or ["x"] + [w.name for w in weights]
        case("operator", name, save(model([node(op, names, **attributes)], inputs=inputs, weights=weights)), may_succeed)
    for axis in (99, -99, 1 << 62):
        bad(f"softmax_axis_{axis}", "Softmax", axis=axis)
    bad("gather_beyond", "Gather", [integers("i", [7])], may_succeed=True)
    bad("gather_far_beyond", "Gather", [integers("i", [1 << 62])], may_succeed=True)
    bad("gather_nd_beyond", "GatherND", [integers("i", [[9, 9]])], may_succeed=True)
    bad("gather_elements_beyond", "GatherElements", [integers("i", [[-9, 9, 9]])], may_succeed=True)
    bad("scatter_beyond", "ScatterElements", [integers("i", [[9, 9, 9]]), floats("u", (1, 3))], may_succeed=True)
    bad("scatter_nd_beyond", "ScatterND", [integers("i", [[9, 9]]), floats("u", (1,))], may_succeed=True)
    bad("scatter_shapes", "ScatterND", [integers("i", [[0]]), floats("u", (7, 7, 7))])
    bad("slice_huge", "Slice", [integers("s", [-(1 << 63)]), integers("e", [(1 << 63) - 1])], may_succeed=True)
    bad("slice_step_0", "Slice", [integers("s", [0]), integers("e", [2]), integers("a", [0]), integers("t", [0])])
    bad("slice_step_huge", "Slice", [integers("s", [-1]), integers("e", [-(1 << 63)]), integers("a", [0]),
                                     integers("t", [-(1 << 63)])], may_succeed=True)
    bad("slice_axis_twice", "Slice", [integers("s", [0, 0]), integers("e", [1, 1]), integers("a", [0, 0])], may_succeed=True)
    bad("reshape_two_unknown", "Reshape", [integers("s", [-1, -1])])
    bad("reshape_overflow", "Reshape", [integers("s", [1 << 32, 1 << 32, 6])])
    bad("reshape_negative", "Reshape", [integers("s", [-2, -3])])
    bad("reshape_unknown_of_none", "Reshape", [integers("s", [-1, 0])], inputs=[info("x", (0, 3))], allowzero=1)
    bad("transpose_not_a_permutation", "Transpose", perm=[0, 0])
    bad("transpose_short", "Transpose", perm=[0])
    bad("expand_huge", "Expand", [integers("s", [1 << 40, 2, 3])])
    bad("expand_negative", "Expand", [integers("s", [-1, 3])])
    bad("tile_huge", "Tile", [integers("r", [1 << 40, 1])])
    bad("tile_overflow", "Tile", [integers("r", [1 << 62, 1 << 62])])
    bad("pad_huge", "Pad", [integers("p", [1 << 40, 0, 0, 0])])
    bad("pad_away", "Pad", [integers("p", [-9, 0, 0, 0])])
    bad("pad_reflect_beyond", "Pad", [integers("p", [50, 0, 50, 0])], mode="reflect", may_succeed=True)
    bad("pad_overflow", "Pad", [integers("p", [(1 << 63) - 1, 0, (1 << 63) - 1, 0])])
    bad("split_beyond", "Split", [integers("s", [99, -97])])
    bad("split_into_million", "Split", num_outputs=1_000_000)
    bad("range_huge", "Range", [numpy_helper.from_array(np.array(v), n) for n, v in (("a", 0), ("b", 1 << 60), ("c", 1))],
        nodes_inputs=["a", "b", "c"])
    bad("range_step_0", "Range", [numpy_helper.from_array(np.array(v), n) for n, v in (("a", 0), ("b", 9), ("c", 0))],
        nodes_inputs=["a", "b", "c"])
    bad("range_nan", "Range", [numpy_helper.from_array(np.array(v, np.float32), n)
                               for n, v in (("a", 0), ("b", np.nan), ("c", 1))], nodes_inputs=["a", "b", "c"], may_succeed=True)
    bad("constant_of_shape_huge", "ConstantOfShape", [integers("s", [1 << 40])], nodes_inputs=["s"])
    case("operator", "sum_of_a_constant_of_4_gb", save(model([
        helper.make_node("ConstantOfShape", ["s"], ["c"]), node("ReduceSum", ["c"])], weights=[integers("s", [1 << 30])])),
        may_succeed=True)
    bad("constant_of_shape_negative", "ConstantOfShape", [integers("s", [-5])], nodes_inputs=["s"])
    bad("one_hot_huge", "OneHot", [integers("d", [1 << 40]), floats("v", (2,))], inputs=[info("x", (2,), TensorProto.INT64)])
    bad("eye_like_of_vector", "EyeLike", inputs=[info("x", (5,))])
    bad("top_k_beyond", "TopK", [integers("k", [99])])
    bad("top_k_negative", "TopK", [integers("k", [-1])])
    bad("resize_huge", "Resize", [numpy_helper.from_array(np.array([1, 1, 1e9, 1e9], np.float32), "s")], inputs=image,
        nodes_inputs=["x", "", "s"])
    bad("resize_nan", "Resize", [numpy_helper.from_array(np.array([1, 1, np.nan, 1], np.float32), "s")], inputs=image,
        nodes_inputs=["x", "", "s"])
    bad("resize_negative", "Resize", [integers("s", [1, 4, -8, 8])], inputs=image, nodes_inputs=["x", "", "", "s"])
    filters = [floats("w", (4, 4, 3, 3))]
    bad("conv_stride_0", "Conv", filters, inputs=image, strides=[0, 0])
    bad("conv_stride_negative", "Conv", filters, inputs=image, strides=[-1, -1])
    bad("conv_dilation_huge", "Conv", filters, inputs=image, dilations=[1 << 62, 1])
    bad("conv_pads_huge", "Conv", filters, inputs=image, pads=[1 << 62, 0, 1 << 62, 0])
    bad("conv_pads_negative", "Conv", filters, inputs=image, pads=[-9, -9, -9, -9])
    bad("conv_groups_0", "Conv", filters, inputs=image, group=0)
    bad("conv_groups_3", "Conv", filters, inputs=image, group=3)
    bad("conv_groups_negative", "Conv", filters, inputs=image, group=-4)
    bad("conv_kernel_empty", "Conv", [floats("w", (4, 4, 0, 0))], inputs=image, may_succeed=True)
    bad("conv_of_scalar", "Conv", filters, inputs=[info("x", ())])
    bad("conv_transpose_huge", "ConvTranspose", [floats("w", (4, 4, 3, 3))], inputs=image, strides=[1 << 40, 1 << 40])
    bad("pool_kernel_0", "MaxPool", inputs=image, kernel_shape=[0, 0])
    bad("pool_kernel_huge", "AveragePool", inputs=image, kernel_shape=[1 << 40, 1], pads=[1 << 40, 0, 1 << 40, 0])
    bad("pool_kernel_missing", "MaxPool", inputs=image)
    bad("depth_to_space_0", "DepthToSpace", inputs=image, blocksize=0)
    bad("depth_to_space_huge", "DepthToSpace", inputs=image, blocksize=1 << 32)
    bad("lrn_huge", "LRN", inputs=image, size=1 << 40)
    bad("group_norm_0", "GroupNormalization", [floats("s", (4,)), floats("b", (4,))], inputs=image, num_groups=0)
    bad("einsum_garbage", "Einsum", equation="->->,,..i...")
    bad("einsum_megabyte", "Einsum", equation="ij->" + "i" * (1 << 20))
    bad("einsum_outer", "Einsum", nodes_inputs=["x"] * 14, may_succeed=True,
        equation=",".join(chr(97 + i) + chr(65 + i) for i in range(14)) + "->" + "".join(map(chr, range(97, 111))))
    bad("lstm_hidden_huge", "LSTM", [floats("w", (1, 8, 3)), floats("r", (1, 8, 2))], inputs=[info("x", (4, 1, 3))],
        hidden_size=1 << 40)
    bad("lstm_of_nothing", "LSTM")
    bad("attention_heads", "Attention", nodes_inputs=["x", "x", "x"], inputs=[info("x", (1, 4, 6))], q_num_heads=5, kv_num_heads=0)
    bad("matmul_shapes", "MatMul", [floats("w", (7, 7))])
    bad("gemm_of_rank_3", "Gemm", [floats("w", (3, 3, 3))])
    bad("dft_length_huge", "DFT", [numpy_helper.from_array(np.array(1 << 50), "n")], inputs=[info("x", (1, 8, 1))])
    bad("mel_huge", "MelWeightMatrix", [numpy_helper.from_array(np.array(v, t), n) for n, v, t in (
        ("a", 1 << 30, np.int64), ("b", 1 << 30, np.int64), ("c", 8000, np.int64), ("d", 0, np.float32), ("e", 4000, np.float32))],
        nodes_inputs=["a", "b", "c", "d", "e"])
    bad("quantize_zero_scale", "QuantizeLinear", [numpy_helper.from_array(np.array(0, np.float32), "s")], may_succeed=True)
    bad("quantize_axis", "QuantizeLinear", [floats("s", (77,))], axis=1)
    bad("cast_nowhere", "Cast", to=12345)
    bad("attribute_of_wrong_type", "Softmax", axis="last")
    bad("attribute_unknown", "Relu", teleport=1, may_succeed=True)
    bad("too_many_inputs", "Relu", nodes_inputs=["x", "x", "x"], may_succeed=True)
    bad("no_inputs", "Add", nodes_inputs=[""])
    bad("mixed_types", "Add", nodes_inputs=["x", "z"], inputs=[info("x"), info("z", (2, 3), TensorProto.INT32)])
    bad("not_of_floats", "Not")
    big = floats("w", (1 << 11, 1 << 11))
    bad("constant_product", "MatMul", [big], nodes_inputs=["w", "w"], may_succeed=True)
    reference = helper.make_node("Softmax", ["x"], ["y"])
    reference.attribute.append(AttributeProto(name="axis", ref_attr_name="ghost", type=AttributeProto.INT))
    case("operator", "reference_outside_a_function", save(model([reference])), may_succeed=True)


ADDERS = (add_byte_cases, add_dims_cases, add_external_cases, add_graph_cases, add_operator_cases)


# ---- running them

# Small, because the peak of a child counts from its fork.
RUNNER = """
import json, resource, subprocess, sys, time
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
start = time.monotonic()
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
try:
    error = child.communicate(timeout=20)[1].decode(errors="replace")
except subprocess.TimeoutExpired:
    child.kill()
    error = child.communicate()[1].decode(errors="replace")
megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(json.dumps([child.returncode, time.monotonic() - start, megabytes, error]))
"""


def run(command, path, cache):
    """Exit code, seconds, megabytes and what was said on stderr."""
    words = [command, "compile", path, "--cache-dir", os.path.join(cache, "objects"), "--set", "db.enabled=false"]
    return json.loads(subprocess.run([sys.executable, "-S", "-c", RUNNER, *words], capture_output=True, check=True).stdout)


def verdict(code, seconds, megabytes, error, may_succeed):
    if code < 0 or code >= 128:
        return f"ended by signal {-code}"
    if seconds > 5:
        return f"took {seconds:.1f} s"
    if megabytes > 1024:
        return f"took {megabytes:.0f} MB"
    if code == 0:
        return "" if may_succeed else "succeeded"
    lines = [line for line in error.splitlines() if line.startswith("sylvite: error: ")]
    if not 2 <= code <= 8 or len(lines) != 1 or len(lines[0]) < 30:
        return f"exit code {code}"
    if any(ord(c) < 32 for c in lines[0]) or len(lines[0]) > 2000:
        return "a message that is no plain line"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sylvite")
    parser.add_argument("--keep", help="folder to leave the models in")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    for add in ADDERS:
        add()
    root = options.keep or tempfile.mkdtemp(prefix="hostile_")
    failures = count = refused = 0
    slowest = largest = 0.0
    for group, name, write, may_succeed in CASES:
        if options.only not in f"{group}/{name}":
            continue
        folder = os.path.join(root, f"{group}_{name}")
        os.makedirs(folder, exist_ok=True)
        path = write(folder)
        code, seconds, megabytes, error = run(options.sylvite, path, root)
        if not options.keep:
            shutil.rmtree(folder)
        problem = verdict(code, seconds, megabytes, error, may_succeed)
        count += 1
        failures += problem != ""
        refused += code != 0
        slowest, largest = max(slowest, seconds), max(largest, megabytes)
        if problem or options.verbose:
            print(f"{group}/{name}: {problem or 'fine'} ({seconds:.2f} s, {megabytes:.0f} MB) {error.strip()[-300:]}", flush=True)
    if not options.keep:
        shutil.rmtree(root)
    print(f"{count} models: {refused} refused, {count - refused} taken, {failures} misbehaved; "
          f"at most {slowest:.2f} s and {largest:.0f} MB")
    sys.exit(1 if failures or count == 0 else 0)


if __name__ == "__main__":
    main()
