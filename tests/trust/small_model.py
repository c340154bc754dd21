"""A model with its weights that is tuned in seconds: a convolution, matmuls, a softmax."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def small_model():
    random = np.random.default_rng(0)
    weights = []

    def weight(name, *dims):
        values = random.normal(0, (dims[-1] if len(dims) == 2 else dims[1] * 9) ** -0.5, dims).astype(np.float32)
        weights.append(numpy_helper.from_array(values, name))
        return name

    nodes = [
        helper.make_node("Conv", ["x", weight("filters", 32, 16, 3, 3)], ["features"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["features"], ["kept"]),
        helper.make_node("GlobalAveragePool", ["kept"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("MatMul", ["flat", weight("w1", 32, 256)], ["wide"]),
        helper.make_node("Relu", ["wide"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", weight("w2", 256, 64)], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["y"], axis=1),
    ]
    floats = TensorProto.FLOAT
    graph = helper.make_graph(nodes, "small", [helper.make_tensor_value_info("x", floats, [8, 16, 28, 28])],
                              [helper.make_tensor_value_info("y", floats, [8, 64])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def write_small_model(path):
    onnx.save(small_model(), path)
    return path
