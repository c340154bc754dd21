"""What hostile models are made of: a list of cases, and small builders of models."""
import os

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET = 21
CASES = []  # (class, name, writer(folder) -> path of the model, may succeed)


def case(group, name, write, may_succeed=False):
    CASES.append((group, name, write, may_succeed))


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
