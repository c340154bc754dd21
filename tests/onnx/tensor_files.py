"""Compares the .pb files that the command reads and writes with what the onnx package makes of them: every element
type, odd numbers of elements, raw and typed data, strings, sequences and optionals.

usage: tensor_files.py SYLVITE_COMMAND WORK_FOLDER
"""

import pathlib
import shutil
import subprocess
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

UNSUPPORTED = ["UNDEFINED", "COMPLEX64", "COMPLEX128"]
COUNTS = [1, 2, 3, 4, 5, 7, 8, 9]


def numbers(element, count):
    """A tensor with every bit pattern in turn, or strings."""
    if element == TensorProto.STRING:
        return helper.make_tensor("x", element, [count], [f"s{i}".encode() for i in range(count)])
    dtype = helper.tensor_dtype_to_np_dtype(element)
    if dtype == numpy.bool_:
        values = numpy.arange(count) % 3 == 0
    elif "int" in dtype.name:
        values = (numpy.arange(count) - count // 2).astype(numpy.int64).astype(dtype)
    else:
        values = (numpy.arange(count, dtype=numpy.float32) - count // 2).astype(dtype)
    return numpy_helper.from_array(values, "x")


def in_typed_field(tensor):
    """The same in the field of its type. Those of less than a byte lie in int32_data as in raw_data."""
    typed = TensorProto()
    typed.CopyFrom(tensor)
    typed.ClearField("raw_data")
    name = TensorProto.DataType.Name(tensor.data_type)
    field, bits = {
        "FLOAT": ("float_data", "<f4"), "DOUBLE": ("double_data", "<f8"), "INT64": ("int64_data", "<i8"),
        "UINT32": ("uint64_data", "<u4"), "UINT64": ("uint64_data", "<u8"), "INT32": ("int32_data", "<i4"),
        "INT16": ("int32_data", "<i2"), "INT8": ("int32_data", "<i1"), "UINT16": ("int32_data", "<u2"),
        "FLOAT16": ("int32_data", "<u2"), "BFLOAT16": ("int32_data", "<u2"),
    }.get(name, ("int32_data", "<u1"))
    getattr(typed, field).extend(numpy.frombuffer(tensor.raw_data, bits).tolist())
    return typed


def same(actual, expected):
    a = numpy_helper.to_array(actual)
    b = numpy_helper.to_array(expected)
    if actual.data_type != expected.data_type or a.shape != b.shape:
        return False
    return a.tolist() == b.tolist() if expected.data_type == TensorProto.STRING else a.tobytes() == b.tobytes()


def run(command, folder, model, files):
    """The outputs, as bytes, of the model with these input files."""
    onnx.save(model, folder / "model.onnx")
    words = [command, "run", folder / "model.onnx", "--output-dir", folder / "out", "--output-format", "pb",
             "--db", folder / "trials.db", "--cache-dir", folder / "objects", "--first-answer", "best"]
    for name, message in files.items():
        (folder / f"{name}.pb").write_bytes(message.SerializeToString())
        words += ["--input", f"{name}={folder / name}.pb"]
    if subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        sys.exit(f"{model.graph.name}: the command fails")
    return [(folder / "out" / f"{i}.pb").read_bytes() for i in range(len(model.graph.output))]


def identity_model(name, types):
    nodes = [helper.make_node("Identity", [port], [port + "_out"]) for port in types]
    inputs = [helper.make_value_info(port, value) for port, value in types.items()]
    outputs = [helper.make_value_info(port + "_out", value) for port, value in types.items()]
    graph = helper.make_graph(nodes, name, inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12)


def check_tensors(command, folder, elements):
    given = {}
    for element in elements:
        for count in COUNTS:
            name = f"{TensorProto.DataType.Name(element)}_{count}"
            given[name] = numbers(element, count)
            if element != TensorProto.STRING:
                given[name + "_typed"] = in_typed_field(given[name])
    types = {name: helper.make_tensor_type_proto(value.data_type, list(value.dims)) for name, value in given.items()}
    outputs = run(command, folder, identity_model("tensors", types), given)
    return [name for name, data in zip(given, outputs) if not same(TensorProto.FromString(data), given[name])]


def check_others(command, folder):
    floats = [numpy.arange(3, dtype=numpy.float32), numpy.ones((2, 2), numpy.float32)]
    tensor_type = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    sequence_type = helper.make_sequence_type_proto(tensor_type)
    sequence = numpy_helper.from_list(floats, "s")
    given = {
        "sequence": (sequence_type, sequence, numpy_helper.to_list),
        "full": (helper.make_optional_type_proto(tensor_type), numpy_helper.from_optional(floats[0], "o"),
                 numpy_helper.to_optional),
        "full_sequence": (helper.make_optional_type_proto(sequence_type), numpy_helper.from_optional(floats, "o"),
                          numpy_helper.to_optional),
        "empty": (helper.make_optional_type_proto(tensor_type), onnx.OptionalProto(name="e"), numpy_helper.to_optional),
    }
    model = identity_model("others", {name: row[0] for name, row in given.items()})
    outputs = run(command, folder, model, {name: row[1] for name, row in given.items()})
    wrong = []
    for (name, (_, message, decode)), data in zip(given.items(), outputs):
        actual, expected = decode(type(message).FromString(data)), decode(message)
        if repr(actual) != repr(expected):
            wrong.append(f"{name}: {actual!r}, expected {expected!r}")
    return wrong


def main():
    command, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    elements = [element for name, element in TensorProto.DataType.items() if name not in UNSUPPORTED]
    elements.remove(TensorProto.STRING)
    wrong = check_tensors(command, folder, elements)
    wrong += check_tensors(command, folder, [TensorProto.STRING]) + check_others(command, folder)
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
