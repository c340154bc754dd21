"""Cases of operators.py: operators of ai.onnx on images, rows and blocks of floats."""
import dataclasses
import zlib

import numpy as np


@dataclasses.dataclass
class Given:
    array: np.ndarray
    is_constant: bool = False


@dataclasses.dataclass
class Case:
    """One node. `kept`: which of its outputs the model has; `is_random`: outputs are drawn and compare with nothing."""
    name: str
    operator: str
    inputs: list
    attributes: dict
    kept: tuple = (0,)
    domain: str = ""
    version: int = 0
    is_random: bool = False


def generator_of(shape, salt=0):
    return np.random.default_rng(zlib.crc32(repr((shape, salt)).encode()))


def f(*shape, low=None, high=None, dtype="f4", salt=0):
    """Floats that a run is given: normal, or even between two ends."""
    random = generator_of(shape, salt)
    drawn = random.standard_normal(shape) if low is None else random.uniform(low, high, shape)
    return Given(np.asarray(drawn).astype(dtype))


def n(*shape, low=0, high=100, dtype="i8", salt=0):
    """Integers (or booleans) that a run is given."""
    return Given(np.asarray(generator_of(shape, salt).integers(low, high, shape)).astype(dtype))


def w(*shape, scale=0.05, dtype="f4", salt=0):
    """A weight: floats that the model has."""
    return Given((generator_of(shape, salt).standard_normal(shape) * scale).astype(dtype), True)


def wn(*shape, low=0, high=255, dtype="u1"):
    return Given(generator_of(shape).integers(low, high, shape).astype(dtype), True)


def c(value, dtype="i8"):
    """A constant that is spelled out."""
    return Given(np.array(value, dtype), True)


def b(*shape):
    return n(*shape, low=0, high=2, dtype="?")


def case(operator, inputs, label="", **options):
    """Names of Case's fields behind `operator` and `inputs` are fields; others are attributes."""
    fields = {key: options.pop(key) for key in ("kept", "domain", "version", "is_random") if key in options}
    if not label:
        label = " ".join("x".join(map(str, given.array.shape)) for given in inputs if given is not None and not given.is_constant)
    return Case(f"{operator} {label}", operator, inputs, options, **fields)


def unary():
    image, positive = f(1, 64, 56, 56), f(1, 64, 56, 56, low=0.1, high=0.9)
    names = ("Abs Atan Ceil Celu Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Mish Neg Reciprocal Relu Round Selu Shrink "
             "Sigmoid Sign Sin Sinh Cosh Asinh Softplus Softsign Tan Tanh ThresholdedRelu Identity IsInf IsNaN")
    yield from (case(name, [image]) for name in names.split())
    yield from (case(name, [positive]) for name in "Acos Asin Atanh Log Sqrt".split())
    yield case("Acosh", [f(1, 64, 56, 56, low=1.1, high=9)])
    yield case("Swish", [image], version=24)
    yield case("Gelu", [image], "tanh", approximate="tanh")
    yield case("Clip", [image, c(0, "f4"), c(6, "f4")])
    yield case("PRelu", [image, w(64, 1, 1)])
    yield case("Not", [b(1, 64, 56, 56)])
    yield case("BitwiseNot", [n(1, 64, 56, 56, dtype="i4")])
    for source, target in (("f4", "f2"), ("f2", "f4"), ("f4", "i4"), ("f4", "u1"), ("i8", "f4"), ("f4", "?"), ("f8", "f4"), ("u1", "f4")):
        given = f(200704, dtype=source, low=0, high=100) if source[0] == "f" else n(200704, dtype=source)
        yield case("Cast", [given], f"{source} to {target}", to={"f2": 10, "f4": 1, "i4": 6, "u1": 2, "?": 9}[target])
    yield case("CastLike", [f(200704), c([0], "i4")])
    yield case("Dropout", [image])
    yield case("BitCast", [f(200704)], version=26, to=6)


def binary():
    x, y, row, channel = f(128, 768), f(128, 768, salt=1), f(768), f(1, 64, 1, 1)
    image = f(1, 64, 56, 56)
    for name in "Add Sub Mul Div Max Min PRelu Equal Less LessOrEqual Greater GreaterOrEqual".split():
        yield case(name, [x, y])
    yield case("Add", [image, channel])
    yield case("Mul", [image, channel])
    yield case("Add", [x, row])
    yield case("Add", [f(1, 64, 56, 56, dtype="f2"), f(1, 64, 56, 56, dtype="f2", salt=1)], "f16")
    yield case("Pow", [f(128, 768, low=0.1, high=3), y])
    yield case("Pow", [x, c(2, "f4")], "squares")
    yield case("Mod", [x, y], "fmod", fmod=1)
    yield case("Mod", [n(128, 768, low=-99), n(128, 768, low=1, salt=1)], "i64")
    yield case("Mod", [n(128, 768, low=-99, dtype="i4"), c(7, "i4")], "i32 by 7")
    yield case("Div", [n(128, 768), n(128, 768, low=1, salt=1)], "i64")
    yield case("Add", [n(128, 768), n(128, 768, salt=1)], "i64")
    for name in "Mean Sum".split():
        yield case(name, [x, y, f(128, 768, salt=2)])
    for name in "And Or Xor".split():
        yield case(name, [b(128, 768), n(128, 768, high=2, dtype="?", salt=1)])
    for name in "BitwiseAnd BitwiseOr BitwiseXor".split():
        yield case(name, [n(128, 768, dtype="i4"), n(128, 768, dtype="i4", salt=1)])
    yield case("BitShift", [n(128, 768, dtype="u4"), n(128, 768, high=20, dtype="u4", salt=1)], direction="LEFT")
    yield case("Where", [b(128, 768), x, y])
    yield case("Where", [b(1, 1, 128, 128), f(1, 12, 128, 128), c(-1e9, "f4")])


def reductions():
    rows, image = f(128, 768), f(1, 256, 56, 56)
    for name in "ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare".split():
        yield case(name, [rows, c([1])])
    yield case("ReduceLogSum", [f(128, 768, low=0.1, high=1), c([1])])
    yield case("ReduceMean", [image, c([2, 3])], "image")
    yield case("ReduceSum", [image, c([1])], "channels")
    yield case("ReduceMax", [image, c([0, 1, 2, 3])], "all")
    yield case("ReduceSum", [n(128, 768), c([1])], "i64")
    yield case("ReduceMax", [n(1, 64, 56, 56, dtype="u1"), c([2, 3])], "u8 image")
    for name in "ArgMax ArgMin".split():
        yield case(name, [f(128, 1000)], axis=1)
        yield case(name, [f(1, 21, 256, 256)], "classes of pixels", axis=1)
    yield case("CumSum", [rows, c(1)])
    yield case("CumSum", [f(1, 8192), c(1)])
    yield case("CumSum", [f(512, 256), c(0)], "axis 0")
    yield case("CumProd", [rows, c(1)], version=26)
    for name in "Softmax LogSoftmax Hardmax".split():
        yield case(name, [f(12, 128, 128)], axis=-1)
        yield case(name, [f(1, 21, 128, 128)], "classes of pixels", axis=1)
    yield case("Softmax", [f(8, 32000)], axis=-1)
    yield case("Det", [f(256, 4, 4)])
    yield case("Einsum", [f(4, 64, 128), f(4, 128, 96)], equation="bij,bjk->bik")
    yield case("Einsum", [f(2, 128, 12, 64), f(2, 128, 12, 64, salt=1)], "attention scores", equation="bqhd,bkhd->bhqk")
    yield case("TopK", [f(1, 8400), c([100])], "100 of 8400", kept=(0, 1))
    yield case("TopK", [f(128, 1000), c([5])], "5 of 1000", kept=(0, 1))
    yield case("TopK", [f(1, 1000), c([1000])], "all of 1000", kept=(0, 1))
    yield case("NonZero", [f(1, 64, 56, 56, low=-1, high=0.2)])
    yield case("Unique", [n(8192, high=500)], "ids", sorted=1, kept=(0, 1, 2, 3))
    yield case("Unique", [f(8192)], "floats", sorted=1)
    yield case("Compress", [f(8400, 84), b(8400)], axis=0)
    yield case("Compress", [f(65536), b(65536)])


def norms():
    image = f(1, 64, 56, 56)
    parameters = [w(64), w(64, salt=1)]
    yield case("BatchNormalization", [image, *parameters, w(64, salt=2), Given(np.ones(64, "f4"), True)])
    yield case("InstanceNormalization", [image, *parameters])
    yield case("GroupNormalization", [image, *parameters], num_groups=8)
    yield case("LayerNormalization", [f(128, 768), w(768), w(768, salt=1)])
    yield case("LayerNormalization", [f(128, 768, dtype="f2"), w(768, dtype="f2"), w(768, dtype="f2", salt=1)], "f16")
    yield case("LayerNormalization", [f(3136, 96), w(96), w(96, salt=1)])
    yield case("RMSNormalization", [f(128, 768), w(768)], version=23)
    yield case("LpNormalization", [f(128, 768)])
    yield case("LpNormalization", [f(1, 256, 32, 32)], "channels", axis=1)
    yield case("MeanVarianceNormalization", [image])
    yield case("LRN", [f(1, 96, 55, 55)], size=5)
    yield case("LRN", [f(1, 64, 112, 112)], "size 3", size=3)


def pools():
    image, small = f(1, 64, 112, 112), f(1, 256, 20, 20)
    same = {"pads": [1, 1, 1, 1], "strides": [2, 2], "kernel_shape": [3, 3]}
    for name in "MaxPool AveragePool LpPool".split():
        yield case(name, [image], "3x3 stride 2", **same)
        yield case(name, [f(1, 64, 56, 56)], "2x2 stride 2", kernel_shape=[2, 2], strides=[2, 2])
        yield case(name, [small], "5x5", kernel_shape=[5, 5], pads=[2] * 4)
        yield case(name, [f(1, 512, 7, 7)], "7x7 of 7x7", kernel_shape=[7, 7])
    yield case("AveragePool", [f(1, 64, 56, 56)], "7x7", kernel_shape=[7, 7], pads=[3] * 4)
    yield case("AveragePool", [f(1, 192, 35, 35)], "3x3, pads counted", kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1)
    yield case("MaxPool", [f(1, 64, 57, 57)], "3x3 stride 2, odd", kernel_shape=[3, 3], strides=[2, 2])
    yield case("MaxPool", [f(1, 32, 16, 56, 56)], "3D 3x3x3 stride 2", kernel_shape=[3] * 3, strides=[2] * 3, pads=[1] * 6)
    yield case("MaxPool", [f(1, 32, 16, 56, 56)], "3D 2x2x2 stride 2", kernel_shape=[2] * 3, strides=[2] * 3)
    yield case("MaxPool", [f(1, 32, 16, 28, 28)], "3D 3x3x3", kernel_shape=[3] * 3, pads=[1] * 6)
    yield case("AveragePool", [f(1, 32, 16, 28, 28)], "3D 3x3x3", kernel_shape=[3] * 3, pads=[1] * 6)
    yield case("MaxPool", [f(1, 128, 4000)], "1D", kernel_shape=[3], strides=[2])
    yield case("MaxPool", [f(1, 64, 56, 56)], "with indices", kernel_shape=[2, 2], strides=[2, 2], kept=(0, 1))
    yield case("MaxPool", [n(1, 64, 56, 56, dtype="u1")], "u8", kernel_shape=[2, 2], strides=[2, 2])
    for name in "GlobalAveragePool GlobalMaxPool GlobalLpPool".split():
        yield case(name, [f(1, 512, 14, 14)])
    places = np.arange(64 * 28 * 28).reshape(1, 64, 28, 28) // 28 * 112 + np.arange(28) * 2
    yield case("MaxUnpool", [f(1, 64, 28, 28), Given(places.astype("i8"))], kernel_shape=[2, 2], strides=[2, 2])
    boxes = np.array([[0, x, y, x + 60, y + 90] for x in range(0, 400, 40) for y in range(0, 300, 30)], "f4")
    yield case("MaxRoiPool", [f(1, 256, 50, 50), Given(boxes)], pooled_shape=[7, 7], spatial_scale=0.0625)
    for label, options in (("ratio 2", {"sampling_ratio": 2}), ("adaptive", {}), ("max", {"sampling_ratio": 1, "mode": "max"})):
        yield case("RoiAlign", [f(1, 256, 50, 50), Given(boxes[:, 1:].copy()), c([0] * len(boxes))], label, output_height=7, output_width=7,
                   spatial_scale=0.0625, **options)


def convolutions():
    def conv(channels, size, filters, kernel, label="", **options):
        group = options.get("group", 1)
        pads = options.pop("pads", [kernel // 2] * 4)
        return case("Conv", [f(1, channels, size, size), w(filters, channels // group, kernel, kernel), w(filters)],
                    f"{channels}x{size}x{size} to {filters} by {kernel}x{kernel} {label}".strip(), pads=pads, **options)

    yield conv(64, 56, 64, 1)
    yield conv(64, 56, 64, 3)
    yield conv(256, 14, 256, 3)
    yield conv(512, 7, 512, 3)
    yield conv(3, 224, 64, 7, "stride 2", strides=[2, 2])
    yield conv(128, 56, 128, 3, "stride 2", strides=[2, 2])
    yield conv(256, 28, 256, 3, "dilated", dilations=[2, 2], pads=[2] * 4)
    for kernel in (3, 5, 7):
        yield conv(96, 56, 96, kernel, "depthwise", group=96)
    yield conv(384, 14, 384, 7, "depthwise", group=384)
    yield conv(96, 112, 96, 3, "depthwise stride 2", group=96, strides=[2, 2])
    yield conv(128, 56, 128, 3, "32 groups", group=32)
    yield case("Conv", [f(1, 64, 2000), w(128, 64, 5), w(128)], "1D", pads=[2, 2])
    yield case("Conv", [f(1, 256, 500), w(256, 1, 31), w(256)], "1D depthwise", pads=[15, 15], group=256)
    yield case("Conv", [f(1, 16, 16, 56, 56), w(32, 16, 3, 3, 3), w(32)], "3D", pads=[1] * 6)
    yield case("ConvTranspose", [f(1, 128, 28, 28), w(128, 64, 2, 2), w(64)], "2x2 stride 2", strides=[2, 2])
    yield case("ConvTranspose", [f(1, 128, 28, 28), w(128, 64, 4, 4), w(64)], "4x4 stride 2", strides=[2, 2], pads=[1] * 4)
    yield case("ConvTranspose", [f(1, 64, 28, 28), w(64, 64, 3, 3), w(64)], "3x3 stride 2, padded", strides=[2, 2], pads=[1] * 4,
               output_padding=[1, 1])
    offsets = f(1, 18, 28, 28)
    yield case("DeformConv", [f(1, 64, 28, 28), w(64, 64, 3, 3), offsets], pads=[1] * 4, kernel_shape=[3, 3])
    yield case("Col2Im", [f(1, 576, 3136), c([56, 56]), c([3, 3])], pads=[1] * 4)
    yield case("Col2Im", [f(1, 1024, 196), c([56, 56]), c([4, 4])], "patches", strides=[4, 4])
    yield case("CausalConvWithState", [f(1, 128, 256), w(128, 1, 4), w(128), f(1, 128, 3)], version=27, kept=(0, 1))


def products():
    yield case("MatMul", [f(128, 768), w(768, 3072)])
    yield case("MatMul", [f(1, 768), w(768, 3072)])
    yield case("MatMul", [f(12, 128, 64), f(12, 64, 128)])
    yield case("MatMul", [f(512, 512), f(512, 512, salt=1)])
    yield case("MatMul", [f(128, 768, dtype="f8"), w(768, 768, dtype="f8")], "f64")
    yield case("MatMul", [f(128, 768, dtype="f2"), w(768, 768, dtype="f2")], "f16")
    yield case("MatMul", [n(128, 256), n(256, 128)], "i64")
    yield case("Gemm", [f(128, 768), w(3072, 768), w(3072)], transB=1)
    yield case("Gemm", [f(1, 2048), w(1000, 2048), w(1000)], transB=1)
    yield case("Attention", [f(1, 12, 128, 64), f(1, 12, 128, 64, salt=1), f(1, 12, 128, 64, salt=2)], version=23)
    yield case("Attention", [f(1, 12, 1, 64), f(1, 12, 512, 64, salt=1), f(1, 12, 512, 64, salt=2)], "decode", version=23)
    yield case("Attention", [f(1, 12, 512, 64), f(1, 12, 512, 64, salt=1), f(1, 12, 512, 64, salt=2)], "causal", is_causal=1, version=23)
    yield case("RotaryEmbedding", [f(1, 12, 128, 64), f(512, 32), f(512, 32, salt=1), c([list(range(128))])], version=23)
    yield case("SwiGLU", [f(128, 1024), f(128, 1024, salt=1)], version=27)
    yield case("TensorScatter", [f(1, 8, 512, 64), f(1, 8, 1, 64), c([100])], version=24)
    yield case("LinearAttention", [f(1, 64, 512), f(1, 64, 512, salt=1), f(1, 64, 512, salt=2)], version=27, q_num_heads=8, kv_num_heads=8,
               update_rule="linear", kept=(0, 1))
    for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        weights = [w(1, gates * 256, 128), w(1, gates * 256, 256), w(1, 2 * gates * 256)]
        yield case(kind, [f(50, 1, 128), *weights], hidden_size=256)


def cases():
    for group in (unary, binary, reductions, norms, pools, convolutions, products):
        yield from group()
