"""BERT-base, GPT-2 small, ViT-B/16 and ResNet-50 as plain PyTorch modules, with the weights of an ONNX graph.

Attention is scaled_dot_product_attention; BERT's three projections are apart, as its users have them. ResNet-50 has its
normalisations folded into the convolutions, as its graph has, and keeps channels last; or, `as_published`, has them as
modules of their own and torch's default layout, as its users' code (torchvision's) does. Weights are taken in the order
in which the graph uses them, so names do not matter.
"""

import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper
from torch import nn

HEADS, WIDTH = 12, 768


class Weights:
    """The graph's weights by kind, in order of use."""

    def __init__(self, path):
        model = onnx.load(path)
        self.arrays = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in model.graph.initializer}
        self.linears, self.norms, self.tables, self.others = [], [], [], []
        readers = {name: node for node in model.graph.node for name in node.input}
        for node in model.graph.node:
            self.take(node, readers)

    def take(self, node, readers):
        given = [self.arrays.get(name) for name in node.input]
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "MatMul" and given[1] is not None:
            after = readers.get(node.output[0])
            biases = [self.arrays[n] for n in after.input if n in self.arrays] if after and after.op_type == "Add" else []
            self.linears.append((given[1].t(), biases[0] if biases and biases[0].dim() == 1 else None))
        elif node.op_type == "Gemm":
            weight = given[1] if attributes.get("transB") else given[1].t()
            self.linears.append((weight, given[2] if len(given) > 2 else None))
        elif node.op_type == "LayerNormalization":
            self.norms.append((given[1], given[2], attributes.get("epsilon", 1e-5)))
        elif node.op_type == "Gather" and given[0] is not None and given[0].is_floating_point():
            self.tables.append(given[0])
        elif node.op_type == "Conv":
            self.others.append((given[1], given[2] if len(given) > 2 else None))
        elif node.op_type == "Expand" and given[0] is not None:
            self.others.append(given[0])
        elif node.op_type == "Concat":  # a class token, at batch 1
            self.others.extend(array for array in given if array is not None and array.is_floating_point())

    def linear(self):
        weight, bias = self.linears.pop(0)
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
        layer.weight = nn.Parameter(weight.contiguous())
        if bias is not None:
            layer.bias = nn.Parameter(bias)
        return layer

    def conv(self, stride=1):
        weight, bias = self.others.pop(0)
        filters, channels, size, _ = weight.shape
        layer = nn.Conv2d(channels, filters, size, stride, size // 2, bias=bias is not None)
        layer.weight = nn.Parameter(weight)
        if bias is not None:
            layer.bias = nn.Parameter(bias)
        return layer

    def norm(self):
        weight, bias, epsilon = self.norms.pop(0)
        layer = nn.LayerNorm(weight.shape[0], eps=epsilon)
        layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(bias)
        return layer

    def table(self):
        return nn.Embedding.from_pretrained(self.tables.pop(0))


def attention(q, k, v, causal=False):
    batch, rows, _ = q.shape
    q, k, v = (t.view(batch, rows, HEADS, -1).transpose(1, 2) for t in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).reshape(batch, rows, -1)


class BertLayer(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.q, self.k, self.v, self.out = (weights.linear() for _ in range(4))
        self.norm1, self.up, self.down, self.norm2 = weights.norm(), weights.linear(), weights.linear(), weights.norm()

    def forward(self, x):
        x = self.norm1(self.out(attention(self.q(x), self.k(x), self.v(x))) + x)
        return self.norm2(self.down(F.gelu(self.up(x))) + x)


class Bert(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.words, self.types, self.positions = (weights.table() for _ in range(3))
        self.norm = weights.norm()
        self.layers = nn.ModuleList(BertLayer(weights) for _ in range(12))

    def forward(self, x):
        h = self.words(x) + self.types.weight[0] + self.positions.weight[:x.shape[1]]
        h = self.norm(h)
        for layer in self.layers:
            h = layer(h)
        return h


class PreNormLayer(nn.Module):
    """Of GPT-2 (causal, gelu by tanh) and ViT."""

    def __init__(self, weights, causal):
        super().__init__()
        self.causal = causal
        self.norm1, self.qkv, self.out = weights.norm(), weights.linear(), weights.linear()
        self.norm2, self.up, self.down = weights.norm(), weights.linear(), weights.linear()

    def forward(self, x):
        x = x + self.out(attention(*self.qkv(self.norm1(x)).split(WIDTH, -1), self.causal))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh" if self.causal else "none"))


class Gpt2(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.words, self.positions = weights.table(), weights.table()
        self.layers = nn.ModuleList(PreNormLayer(weights, causal=True) for _ in range(12))
        self.norm = weights.norm()

    def forward(self, x):
        h = self.words(x) + self.positions.weight[:x.shape[1]]
        for layer in self.layers:
            h = layer(h)
        return F.linear(self.norm(h), self.words.weight)


class Vit(nn.Module):
    def __init__(self, weights):
        super().__init__()
        conv = next(w for w in weights.others if isinstance(w, tuple))
        self.patches = nn.Conv2d(3, WIDTH, 16, 16, bias=conv[1] is not None)
        self.patches.weight = nn.Parameter(conv[0])
        if conv[1] is not None:
            self.patches.bias = nn.Parameter(conv[1])
        self.token = nn.Parameter(next(w for w in weights.others if not isinstance(w, tuple)))
        self.positions = nn.Parameter(weights.arrays["encoder.pos_embedding"])
        self.layers = nn.ModuleList(PreNormLayer(weights, causal=False) for _ in range(12))
        self.norm, self.head = weights.norm(), weights.linear()

    def forward(self, x):
        h = self.patches(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.token.expand(h.shape[0], -1, -1), h], 1) + self.positions
        for layer in self.layers:
            h = layer(h)
        return self.head(self.norm(h)[:, 0])


def unfolded(conv):
    """The same function as a convolution without bias and a normalisation."""
    norm = nn.BatchNorm2d(conv.out_channels)
    norm.weight = nn.Parameter(torch.full_like(norm.weight, (1 + norm.eps) ** 0.5))
    norm.bias = conv.bias
    conv.bias = None
    return nn.Sequential(conv, norm)


def unfold(module):
    for name, child in module.named_children():
        if isinstance(child, nn.Conv2d):
            setattr(module, name, unfolded(child))
        else:
            unfold(child)


class Bottleneck(nn.Module):
    def __init__(self, weights, stride, is_first):
        super().__init__()
        self.reduce, self.spatial, self.expand = weights.conv(), weights.conv(stride), weights.conv()
        self.shortcut = weights.conv(stride) if is_first else nn.Identity()

    def forward(self, x):
        h = self.expand(F.relu(self.spatial(F.relu(self.reduce(x)))))
        return F.relu(h + self.shortcut(x))


class ResNet50(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.stem = weights.conv(2)
        self.blocks = nn.Sequential(*(Bottleneck(weights, 2 if block == 0 and stage > 0 else 1, block == 0)
                                      for stage, blocks in enumerate((3, 4, 6, 3)) for block in range(blocks)))
        self.head = weights.linear()
        self.to(memory_format=torch.channels_last)

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.stem(x)), 3, 2, 1)
        return self.head(self.blocks(h).mean((2, 3)))


MODELS = {"bert_base": Bert, "gpt2_small": Gpt2, "vit_b_16": Vit, "resnet50": ResNet50}


def load(name, path, as_published=False):
    """The model of an ONNX file, f32, on the CPU, for inference."""
    model = MODELS[name](Weights(path))
    if as_published and name == "resnet50":
        unfold(model)
        model.to(memory_format=torch.contiguous_format)
    return model.eval().requires_grad_(False)
