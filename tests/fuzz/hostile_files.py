"""Hostile models whose file is wrong: its bytes, the extents and data of its tensors, the files that it names."""
import os
import random

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from hostile_case import case, changed, good, info, model, node, save


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
    for name, dims in {"negative": [-2, 2], "huge": [1 << 40], "overflow": [1 << 31, 1 << 31, 1 << 31], "tall": [1 << 30, 1 << 30],
                       "of_100_ranks": [1] * 100}.items():
        case("dims", f"input_{name}", input_dims(*dims))
    case("dims", "input_of_40_ranks", input_dims(*[1] * 40), may_succeed=True)

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
