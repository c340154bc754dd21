#!/usr/bin/env python3
"""Make networks of blocks whose work ahead of a product may take it off a GPU's templates, with random weights.

usage: make_block_models.py FOLDER [--batch N]

Writes se_blocks.onnx (MobileNetV3: expand, depthwise, squeeze-and-excite, project), transition_blocks.onnx (DenseNet:
norm and ReLU ahead of every convolution, concatenations, transitions), efficientnet_like.onnx (fused and plain inverted
residuals as in EfficientNetV2, means with and without dims of one pixel), and gated_matmuls.onnx (an MLP whose rows are
scaled ahead of its matmuls). Convolutions have their norms folded in, as exporters write them. `gpu_plan MODEL` says what
each kernel would run on with a card; `sylvite explain MODEL --summary --device cuda` how long it takes. Needs numpy and
onnx.
"""
import argparse
import os

import numpy as np
from onnx import TensorProto

from make_further_models import RNG, Graph

FLOAT = TensorProto.FLOAT


def conv(g, x, before, channels, size=1, stride=1, groups=1, bias=True):
    pad = size // 2
    fan_in = before // groups * size * size
    inputs = [x, g.weight(RNG.standard_normal((channels, before // groups, size, size)) * np.sqrt(2 / fan_in))]
    if bias:
        inputs.append(g.weight(0.1 * RNG.standard_normal(channels)))
    return g.op("Conv", *inputs, strides=[stride, stride], pads=[pad] * 4, group=groups)


def silu(g, x):
    return g.op("Mul", x, g.op("Sigmoid", x))


def mean(g, x, keepdims=1):
    return g.op("ReduceMean", x, g.weight(np.array([2, 3])), keepdims=keepdims)


def squeeze_and_excite(g, x, channels, squeezed):
    """x scaled by what two small products make of its means."""
    hidden = silu(g, conv(g, mean(g, x), channels, squeezed))
    return g.op("Mul", x, g.op("Sigmoid", conv(g, hidden, squeezed, channels)))


def inverted_residual(g, x, before, channels, expand, size=3, stride=1, squeezed=0, fused=False):
    """Expand, depthwise, squeeze and excite, project; `fused`: expand and depthwise are one convolution."""
    wide = before * expand
    y = silu(g, conv(g, x, before, wide, size if fused else 1, stride if fused else 1))
    if not fused:
        y = silu(g, conv(g, y, wide, wide, size, stride, wide))
    if squeezed:
        y = squeeze_and_excite(g, y, wide, squeezed)
    y = conv(g, y, wide, channels)
    return g.op("Add", x, y) if stride == 1 and before == channels else y


def classify(g, x, channels, keepdims):
    pooled = mean(g, x, keepdims)
    if keepdims:
        pooled = g.op("Flatten", pooled, axis=1)
    return g.op("Gemm", pooled, g.normal(channels, 1000), g.weight(np.zeros(1000)))


def save(g, path, dims, result):
    g.save(path, {"x": (FLOAT, dims)}, {"y": (result, FLOAT, [dims[0], 1000])})


def se_blocks(path, batch):
    g = Graph()
    x = conv(g, "x", 3, 24, 3, 2)
    x = inverted_residual(g, x, 24, 40, 3, 5, 2, 24)
    for _ in range(2):
        x = inverted_residual(g, x, 40, 40, 3, 5, 1, 32)
    x = inverted_residual(g, x, 40, 112, 6, 3, 2, 64)
    x = inverted_residual(g, x, 112, 112, 6, 3, 1, 168)
    save(g, path, [batch, 3, 128, 128], classify(g, x, 112, 1))


def transition_blocks(path, batch, growth=32):
    def norm_relu(x, channels):
        scaled = g.op("Mul", x, g.weight(RNG.uniform(0.5, 1.5, (1, channels, 1, 1))))
        return g.op("Relu", g.op("Add", scaled, g.weight(0.1 * RNG.standard_normal((1, channels, 1, 1)))))

    g = Graph()
    x, channels = conv(g, "x", 3, 64, 7, 2), 64
    for _ in range(2):
        for _ in range(4):
            y = conv(g, norm_relu(x, channels), channels, 4 * growth, bias=False)
            y = conv(g, norm_relu(y, 4 * growth), 4 * growth, growth, 3, bias=False)
            x, channels = g.op("Concat", x, y, axis=1), channels + growth
        x = conv(g, norm_relu(x, channels), channels, channels // 2, bias=False)
        x, channels = g.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]), channels // 2
    save(g, path, [batch, 3, 128, 128], classify(g, norm_relu(x, channels), channels, 1))


def efficientnet_like(path, batch):
    g = Graph()
    x = silu(g, conv(g, "x", 3, 24, 3, 2))
    x = inverted_residual(g, x, 24, 48, 4, 3, 2, fused=True)
    x = inverted_residual(g, x, 48, 48, 4, 3, 1, fused=True)
    x = inverted_residual(g, x, 48, 128, 4, 3, 2, 12)
    for _ in range(3):
        x = inverted_residual(g, x, 128, 128, 4, 3, 1, 32)
    x = inverted_residual(g, x, 128, 160, 6, 3, 2, 32)
    x = inverted_residual(g, x, 160, 160, 6, 3, 1, 40)
    x = silu(g, conv(g, x, 160, 1280))
    save(g, path, [batch, 3, 224, 224], classify(g, x, 1280, 0))


def gated_matmuls(path, batch, rows=256, width=1024):
    g = Graph()
    x = "x"
    for _ in range(4):
        gate = g.op("Sigmoid", g.op("MatMul", g.op("ReduceMean", x, g.weight(np.array([1])), keepdims=1),
                                    g.normal(width, width)))
        x = g.op("Add", x, g.op("MatMul", g.op("Mul", x, gate), g.normal(width, width)))
    y = g.op("MatMul", g.op("ReduceMean", x, g.weight(np.array([1])), keepdims=0), g.normal(width, 1000))
    save(g, path, [batch, rows, width], y)


MODELS = {"se_blocks": se_blocks, "transition_blocks": transition_blocks, "efficientnet_like": efficientnet_like,
          "gated_matmuls": gated_matmuls}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--batch", type=int, default=32)
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    for name, make in MODELS.items():
        make(os.path.join(arguments.folder, name + ".onnx"), arguments.batch)
        print(name)


if __name__ == "__main__":
    main()
