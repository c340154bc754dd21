"""An ONNX graph as a torch.fx module, for torch.compile: the operators that convolutional networks are exported with.

A node becomes one call of torch's own function; weights are buffers, so that freezing folds them as it likes.
Transformers are better compared as plain modules (torch_models.py), where attention is one call.
"""

import operator

import onnx
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper


def window(given):
    """Strides, padding and dilations of a two-dimensional window; torch pads both sides alike."""
    pads = given.get("pads", [0, 0, 0, 0])
    if pads[:2] != pads[2:] or given.get("auto_pad", b"NOTSET") != b"NOTSET":
        raise NotImplementedError(f"pads {pads}: torch pads both sides alike")
    return {"stride": given.get("strides", [1, 1]), "padding": pads[:2], "dilation": given.get("dilations", [1, 1])}


def conv(x, weight, bias=None, **given):
    return F.conv2d, (x, weight, bias), {**window(given), "groups": given.get("group", 1)}


def max_pool(x, **given):
    return F.max_pool2d, (x, given["kernel_shape"]), {**window(given), "ceil_mode": bool(given.get("ceil_mode", 0))}


def clip(x, low=None, high=None, **_):
    return F.hardtanh, (x, float(low), float(high)), {}


def mean(x, axes=None, **given):
    dims = given["axes"] if axes is None else axes.tolist()
    return torch.mean, (x, dims, bool(given.get("keepdims", 1))), {}


def reshape(x, shape, **_):
    return torch.reshape, (x, shape.tolist()), {}


def gemm(a, b, c=None, **given):
    if given.get("transA") or not given.get("transB") or given.get("alpha", 1) != 1 or given.get("beta", 1) != 1:
        raise NotImplementedError("Gemm other than x * transpose(w) + b")
    return F.linear, (a, b, c), {}


def same(function):
    return lambda *inputs, **_: (function, inputs, {})


OPERATORS = {"Conv": conv, "MaxPool": max_pool, "Clip": clip, "ReduceMean": mean, "Reshape": reshape, "Gemm": gemm,
             "Relu": same(F.relu), "Sigmoid": same(torch.sigmoid), "Add": same(operator.add), "Mul": same(operator.mul)}


def load(path):
    """The model of an ONNX file, f32, on the CPU, for inference; images keep channels last."""
    onnx_graph = onnx.load(path).graph
    constants = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in onnx_graph.initializer}
    root, graph, values = torch.nn.Module(), torch.fx.Graph(), {}
    for value in onnx_graph.input:
        if value.name not in constants:
            values[value.name] = graph.placeholder(f"input{len(values)}")
    for node in onnx_graph.node:
        if node.op_type not in OPERATORS:
            raise NotImplementedError(f"{path}: torch_graph.py has no row for {node.op_type}")
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        folds = node.op_type in ("Clip", "ReduceMean", "Reshape")  # their further inputs are numbers
        inputs = []
        for number, name in enumerate(node.input):
            if name in constants and not (folds and number > 0) and name not in values:
                attribute = f"weight{len(values)}"
                root.register_buffer(attribute, constants[name])
                values[name] = graph.get_attr(attribute)
            inputs.append(values[name] if name in values else constants.get(name))
        function, arguments, keywords = OPERATORS[node.op_type](*inputs, **given)
        values[node.output[0]] = graph.call_function(function, tuple(arguments), keywords)
    graph.output(tuple(values[value.name] for value in onnx_graph.output))
    return torch.fx.GraphModule(root, graph).eval().requires_grad_(False).to(memory_format=torch.channels_last)
