#!/usr/bin/env python3
"""Make models of further kinds, with weights: recurrent, quantised, and a detection head.

usage: make_further_models.py FOLDER [--resnet18 RESNET18.onnx]

Writes lstm_tagger.onnx (two bidirectional LSTM layers), gru_forecast.onnx (GRU with sequence lengths), detection_head.onnx
(convolutions, anchors, box decoding, NonMaxSuppression and what it keeps) and, given a ResNet-18 with its weights,
resnet18_qdq.onnx, which onnxruntime's quantiser makes of it, and resnet18_qdq_exact.onnx, the same with powers of two for
scales: there every sum is exact, whatever its order. check_against_onnxruntime.py and check_quantised.py compare them.
Needs numpy, onnx and onnxruntime.
"""
import argparse
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(11)


class Graph:
    """Nodes and weights of a model under construction."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, value):
        value = np.asarray(value)
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value.astype(np.float32) if value.dtype == np.float64 else value, name))
        return name

    def normal(self, *dims):
        return self.weight(RNG.standard_normal(dims) / np.sqrt(dims[-1]))

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def save(self, path, inputs, outputs):
        self.nodes += [helper.make_node("Identity", [source], [name]) for name, (source, _, _) in outputs.items()]
        infos = [helper.make_tensor_value_info(name, kind, dims) for name, (kind, dims) in inputs.items()]
        results = [helper.make_tensor_value_info(name, kind, dims) for name, (_, kind, dims) in outputs.items()]
        model = helper.make_model(helper.make_graph(self.nodes, "further", infos, results, self.weights),
                                  opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def lstm_layer(g, x, width, hidden):
    """[T, B, width] -> [T, B, 2 hidden]"""
    y, _, _ = g.op("LSTM", x, g.normal(2, 4 * hidden, width), g.normal(2, 4 * hidden, hidden), g.normal(2, 8 * hidden),
                   outputs=3, hidden_size=hidden, direction="bidirectional")
    return g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.weight(np.array([0, 0, -1])))


def lstm_tagger(path):
    g = Graph()
    x = g.op("Gather", g.normal(100, 64), g.op("Transpose", "tokens", perm=[1, 0]))
    x = lstm_layer(g, lstm_layer(g, x, 64, 48), 96, 48)
    tags = g.op("LogSoftmax", g.op("Add", g.op("MatMul", x, g.normal(96, 17)), g.normal(17)), axis=-1)
    g.save(path, {"tokens": (TensorProto.INT64, [2, 20])},
           {"tags": (g.op("Transpose", tags, perm=[1, 0, 2]), TensorProto.FLOAT, [2, 20, 17])})


def gru_forecast(path):
    g = Graph()
    lengths = g.weight(np.array([24, 17, 5], np.int32))
    y, last = g.op("GRU", "series", g.normal(1, 192, 8), g.normal(1, 192, 64), g.normal(1, 384), lengths,
                   outputs=2, hidden_size=64, linear_before_reset=1)
    forecast = g.op("Gemm", g.op("Squeeze", last, g.weight(np.array([0]))), g.normal(12, 64), g.normal(12), transB=1)
    g.save(path, {"series": (TensorProto.FLOAT, [24, 3, 8])},
           {"forecast": (forecast, TensorProto.FLOAT, [3, 12]), "states": (y, TensorProto.FLOAT, [24, 1, 3, 64])})


def anchors(cells, stride, sides):
    """Centres and sizes in pixels, [cells * cells * len(sides), 2] each: every cell of a grid has one anchor of each side."""
    centres = (np.stack(np.meshgrid(np.arange(cells), np.arange(cells), indexing="ij"), -1) + 0.5) * stride
    sizes = np.broadcast_to(np.array(sides)[:, None], (cells, cells, len(sides), 2))
    return np.broadcast_to(centres[:, :, None], sizes.shape).reshape(-1, 2), sizes.reshape(-1, 2)


def detection_head(path):
    """768 anchors with 5 classes each: boxes decoded, suppressed class by class above a threshold, and gathered."""
    g = Graph()
    x = "image"
    for before, after in ((3, 16), (16, 32), (32, 32)):
        x = g.op("Relu", g.op("Conv", x, g.weight(RNG.standard_normal((after, before, 3, 3)) / np.sqrt(9 * before)),
                              g.normal(after), pads=[1, 1, 1, 1], strides=[2, 2]))

    def per_anchor(width):
        """[1, 3 * width, 16, 16] -> [1, 768, width]"""
        y = g.op("Conv", x, g.weight(RNG.standard_normal((3 * width, 32, 1, 1)) / 3))
        y = g.op("Transpose", g.op("Reshape", y, g.weight(np.array([1, 3, width, 256]))), perm=[0, 3, 1, 2])
        return g.op("Reshape", y, g.weight(np.array([1, 768, width])))

    centres, sizes = anchors(16, 8, (12, 24, 48))
    shift, growth = g.op("Split", per_anchor(4), outputs=2, axis=2, num_outputs=2)
    middle = g.op("Add", g.op("Mul", shift, g.weight(sizes * 0.1)), g.weight(centres))
    half = g.op("Mul", g.op("Exp", g.op("Mul", growth, g.weight(np.array(0.2)))), g.weight(sizes * 0.5))
    boxes = g.op("Concat", g.op("Sub", middle, half), g.op("Add", middle, half), axis=2)
    boxes = g.op("Clip", boxes, g.weight(np.array(0.0)), g.weight(np.array(128.0)))
    scores = g.op("Transpose", g.op("Sigmoid", per_anchor(5)), perm=[0, 2, 1])
    kept = g.op("NonMaxSuppression", boxes, scores, g.weight(np.array([60])), g.weight(np.array([0.4], np.float32)),
                g.weight(np.array([0.55], np.float32)))
    batch_and_box = g.op("Gather", kept, g.weight(np.array([0, 2])), axis=1)
    g.save(path, {"image": (TensorProto.FLOAT, [1, 3, 128, 128])},
           {"boxes": (boxes, TensorProto.FLOAT, [1, 768, 4]), "scores": (scores, TensorProto.FLOAT, [1, 5, 768]),
            "kept": (kept, TensorProto.INT64, ["count", 3]),
            "kept_boxes": (g.op("GatherND", boxes, batch_and_box), TensorProto.FLOAT, ["count", 4]),
            "kept_scores": (g.op("GatherND", scores, kept), TensorProto.FLOAT, ["count"])})


def quantised(source, path):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Images(CalibrationDataReader):
        def __init__(self):
            graph = onnx.load(source, load_external_data=False).graph
            weights = {tensor.name for tensor in graph.initializer}
            name = next(value.name for value in graph.input if value.name not in weights)
            self.batches = iter([{name: RNG.standard_normal((1, 3, 224, 224)).astype(np.float32)} for _ in range(4)])

        def get_next(self):
            return next(self.batches, None)

    quantize_static(source, path, Images(), quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8, per_channel=True)


def with_exact_scales(model):
    """The nearest power of two for every scale; a bias has the scale of its sums, as ONNX asks."""
    graph = model.graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    producers = {name: node for node in graph.node for name in node.output}

    def scale_of(value):
        return numpy_helper.to_array(tensors[producers[value].input[1]])

    def set_scale(node, scale):
        name = node.input[1]
        tensors[name].CopyFrom(numpy_helper.from_array(np.asarray(scale, np.float32), name))

    for node in graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            set_scale(node, np.exp2(np.round(np.log2(numpy_helper.to_array(tensors[node.input[1]])))))
    for node in graph.node:
        if node.op_type in ("Conv", "Gemm") and len(node.input) == 3:
            x, w, bias = node.input
            set_scale(producers[bias], np.broadcast_to(scale_of(x) * scale_of(w), scale_of(bias).shape))
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--resnet18")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    for make in (lstm_tagger, gru_forecast, detection_head):
        make(os.path.join(options.folder, make.__name__ + ".onnx"))
    if options.resnet18:
        path = os.path.join(options.folder, "resnet18_qdq.onnx")
        quantised(options.resnet18, path)
        onnx.save(with_exact_scales(onnx.load(path)), os.path.join(options.folder, "resnet18_qdq_exact.onnx"))


if __name__ == "__main__":
    main()
