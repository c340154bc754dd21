"""Cases of operators.py: what moves elements, resizing, signals, quantisation, losses, text, ai.onnx.ml and com.microsoft."""
import numpy as np
from onnx import TensorProto, helper

from operator_cases import Given, c, case, f, n, w, wn


def moves():
    image, rows = f(1, 64, 56, 56), f(128, 768)
    yield case("Transpose", [f(1, 128, 12, 64)], "heads", perm=[0, 2, 1, 3])
    yield case("Transpose", [image], "channels last", perm=[0, 2, 3, 1])
    yield case("Transpose", [f(1024, 1024)], perm=[1, 0])
    yield case("Concat", [image, f(1, 64, 56, 56, salt=1)], axis=1)
    yield case("Concat", [rows, f(128, 768, salt=1)], "last axis", axis=1)
    yield case("Split", [f(128, 2304)], num_outputs=3, axis=1, kept=(0, 1, 2))
    yield case("Slice", [f(1, 128, 56, 56), c([0]), c([64]), c([1])])
    yield case("Slice", [image, c([0, 0]), c([56, 56]), c([2, 3]), c([2, 2])], "steps of 2")
    yield case("Slice", [rows, c([-1]), c([-1000]), c([1]), c([-1])], "backwards")
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield case("Pad", [image, c([0, 0, 1, 1, 0, 0, 1, 1])], mode, mode=mode)
    yield case("CenterCropPad", [f(1, 3, 256, 256), c([224, 224])], axes=[2, 3])
    yield case("Expand", [f(1, 64, 1, 1), c([1, 64, 56, 56])])
    yield case("Tile", [f(1, 64, 28, 28), c([1, 1, 2, 2])])
    yield case("Tile", [f(128, 96), c([1, 8])], "rows")
    for name, perm in (("DepthToSpace", "DCR"), ("DepthToSpace", "CRD")):
        yield case(name, [f(1, 256, 28, 28)], perm, blocksize=2, mode=perm)
    yield case("SpaceToDepth", [f(1, 64, 56, 56)], blocksize=2)
    yield case("Trilu", [f(12, 128, 128)], upper=0)
    yield case("ReverseSequence", [f(128, 16, 256), n(16, low=1, high=129)], time_axis=0, batch_axis=1)
    yield case("ReverseSequence", [f(16, 512), n(16, low=1, high=512)], "rows", time_axis=1, batch_axis=0)
    yield case("Flatten", [image])
    yield case("Reshape", [image, c([1, 64, 3136])])
    yield case("Squeeze", [f(1, 200704), c([0])])
    yield case("Unsqueeze", [f(200704), c([0])])
    yield case("Shape", [image])
    yield case("Size", [image])
    yield case("EyeLike", [f(512, 512)])
    yield case("ConstantOfShape", [n(2, low=256, high=257)], "256x256")
    yield case("Range", [Given(np.array(0)), Given(np.array(8192)), Given(np.array(1))], "8192")
    yield case("OneHot", [n(512), c(100), c([0, 1], "f4")])


def gathers():
    yield case("Gather", [w(30522, 768), n(128, high=30522)], "embedding")
    yield case("Gather", [f(128, 768), n(256, high=768)], "columns", axis=1)
    yield case("Gather", [f(1, 12, 128, 64), c(0)], "one", axis=2)
    yield case("GatherElements", [f(128, 768), n(128, 768, high=128)], axis=0)
    yield case("GatherElements", [f(128, 768), n(128, 64, high=768)], "of rows", axis=1)
    yield case("GatherND", [f(8400, 84), n(300, 1, high=8400)], "rows")
    yield case("GatherND", [f(56, 56, 64), n(1000, 2, high=56)], "pixels")
    for reduction in ("none", "add", "max"):
        yield case("ScatterElements", [f(1024, 256), n(512, 256, high=1024), f(512, 256)], reduction, axis=0, reduction=reduction,
                   is_random=reduction == "none")
        yield case("ScatterND", [f(4096, 64), n(1000, 1, high=4096), f(1000, 64)], reduction, reduction=reduction,
                   is_random=reduction == "none")
    ways = np.random.default_rng(0).uniform(-1, 1, (1, 56, 56, 2)).astype("f4")
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            if mode == "linear" or padding == "zeros":
                yield case("GridSample", [f(1, 64, 56, 56), Given(ways)], f"{mode} {padding}", mode=mode, padding_mode=padding)
    yield case("AffineGrid", [f(4, 2, 3), c([4, 3, 224, 224])])
    yield case("AffineGrid", [f(1, 3, 4), c([1, 3, 32, 64, 64])], "3D")
    boxes = np.random.default_rng(0).uniform(0, 400, (1, 1000, 4)).astype("f4")
    boxes[..., 2:] = boxes[..., :2] + 60
    yield case("NonMaxSuppression", [Given(boxes), f(1, 1, 1000, low=0, high=1), c([100]), c([0.5], "f4"), c([0.1], "f4")], "1000 boxes")
    yield case("NonMaxSuppression", [Given(boxes), f(1, 80, 1000, low=0, high=1), c([20]), c([0.5], "f4"), c([0.7], "f4")],
               "80 classes of 1000 boxes")


def resizes():
    image = f(1, 64, 28, 28)
    twice = [image, None, c([1, 1, 2, 2], "f4")]
    yield case("Resize", twice, "nearest x2", mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    yield case("Resize", twice, "nearest x2, half pixel", mode="nearest")
    yield case("Resize", twice, "linear x2", mode="linear")
    yield case("Resize", twice, "linear x2, corners", mode="linear", coordinate_transformation_mode="align_corners")
    yield case("Resize", twice, "cubic x2", mode="cubic")
    sizes = [f(1, 3, 640, 480), None, None, c([1, 3, 224, 224])]
    yield case("Resize", sizes, "linear down", mode="linear")
    yield case("Resize", sizes, "antialias down", mode="linear", antialias=1)
    yield case("Resize", [f(1, 320, 7, 7), None, None, c([1, 320, 56, 56])], "linear x8", mode="linear")
    yield case("Resize", [n(1, 3, 640, 480, dtype="u1", high=256), None, None, c([1, 3, 224, 224])], "u8 linear down", mode="linear")
    yield case("Resize", [f(1, 16, 8, 28, 28), None, c([1, 1, 2, 2, 2], "f4")], "3D linear x2", mode="linear")


def signals():
    yield case("DFT", [f(1, 2048, 1)], axis=1, version=17)
    yield case("DFT", [f(16, 400, 1)], "onesided", axis=1, onesided=1, version=17)
    window = Given(np.hanning(400).astype("f4"), True)
    yield case("STFT", [f(1, 16000, 1), c(160), window, c(400)], onesided=1)
    for name in "HannWindow HammingWindow BlackmanWindow".split():
        yield case(name, [Given(np.array(4096))], "4096")
    yield case("MelWeightMatrix", [Given(np.array(80)), c(512), c(16000), c(0.0, "f4"), c(8000.0, "f4")], "80 bins")


def quantised():
    image = f(1, 64, 56, 56)
    scale, zero = c(0.02, "f4"), c(128, "u1")
    eight = n(1, 64, 56, 56, dtype="u1", high=256)
    yield case("QuantizeLinear", [image, scale, zero])
    yield case("QuantizeLinear", [f(128, 768), w(768), c([0] * 768, "i1")], "each column", axis=1)
    yield case("DequantizeLinear", [eight, scale, zero])
    yield case("DynamicQuantizeLinear", [f(128, 768)], kept=(0, 1, 2))
    for size, channels, kernel, group in ((56, 64, 3, 1), (14, 256, 3, 1), (56, 64, 1, 1), (56, 96, 3, 96)):
        yield case("QLinearConv", [n(1, channels, size, size, dtype="u1", high=256), scale, zero,
                                   wn(channels, channels // group, kernel, kernel, low=-127, high=127, dtype="i1"), c(0.01, "f4"), c(0, "i1"),
                                   c(0.5, "f4"), zero, wn(channels, low=-999, high=999, dtype="i4")],
                   f"{channels}x{size}x{size} by {kernel}x{kernel} group {group}", pads=[kernel // 2] * 4, group=group)
    yield case("ConvInteger", [n(1, 64, 56, 56, dtype="u1", high=256), wn(64, 64, 3, 3), c(128, "u1")], pads=[1] * 4)
    yield case("MatMulInteger", [n(128, 768, dtype="u1", high=256), wn(768, 768, low=-127, high=127, dtype="i1"), c(128, "u1")])
    yield case("QLinearMatMul", [n(128, 768, dtype="u1", high=256), scale, zero, wn(768, 768, low=-127, high=127, dtype="i1"),
                                 c(0.01, "f4"), c(0, "i1"), c(5.0, "f4"), zero])
    ms = {"domain": "com.microsoft"}
    for name in "QLinearAdd QLinearMul".split():
        yield case(name, [eight, scale, zero, n(1, 64, 56, 56, dtype="u1", high=256, salt=1), scale, zero, c(0.03, "f4"), zero], **ms)
    for name in "QLinearSigmoid QLinearLeakyRelu".split():
        yield case(name, [eight, scale, zero, scale, zero], **ms)
    yield case("QLinearSoftmax", [n(12, 128, 128, dtype="u1", high=256), scale, zero, c(0.004, "f4"), c(0, "u1")], axis=-1, opset=13, **ms)
    yield case("QLinearGlobalAveragePool", [eight, scale, zero, scale, zero], **ms)
    yield case("QLinearAveragePool", [eight, scale, zero, scale, zero], kernel_shape=[3, 3], strides=[2, 2], **ms)
    yield case("QLinearConcat", [scale, zero, eight, scale, zero, n(1, 64, 56, 56, dtype="u1", salt=1), c(0.03, "f4"), zero], axis=1, **ms)
    yield case("DynamicQuantizeMatMul", [f(128, 768), wn(768, 768, low=-127, high=127, dtype="i1"), c([0.01], "f4")], **ms)
    yield case("MatMulIntegerToFloat", [n(128, 768, dtype="u1", high=256), wn(768, 768, low=-127, high=127, dtype="i1"), scale,
                                        c(0.01, "f4"), zero], **ms)
    packed = [wn(3072, 24, 16), w(3072 * 24, scale=0.01)]
    for rows in (1, 128):
        yield case("MatMulNBits", [f(rows, 768), *packed], K=768, N=3072, bits=4, block_size=32, **ms)


def losses():
    scores, classes = f(128, 1000), n(128, high=1000)
    yield case("SoftmaxCrossEntropyLoss", [scores, classes])
    yield case("SoftmaxCrossEntropyLoss", [f(1, 21, 128, 128), n(1, 128, 128, high=21)], "pixels")
    yield case("NegativeLogLikelihoodLoss", [scores, classes])
    for name, options in (("RandomNormal", {"shape": [128, 768]}), ("RandomUniform", {"shape": [128, 768]})):
        yield case(name, [], "128x768", is_random=True, **options)
    for name in "RandomNormalLike RandomUniformLike".split():
        yield case(name, [f(128, 768)], is_random=True)
    yield case("Bernoulli", [f(128, 768, low=0, high=1)], is_random=True)
    yield case("Multinomial", [f(16, 1000)], sample_size=10, is_random=True)
    parameters = [f(1 << 20), f(1 << 20, salt=1)]
    options = {"domain": "ai.onnx.preview.training", "version": 1}
    step = [c(0.01, "f4"), c(1)]
    yield case("Adam", [*step, *parameters, f(1 << 20, salt=2), f(1 << 20, low=0, high=1)], "1M", kept=(0, 1, 2), **options)
    yield case("Momentum", [*step, *parameters, f(1 << 20, salt=2)], "1M", kept=(0, 1), alpha=0.9, beta=1.0, mode="standard",
               norm_coefficient=0.0, **options)
    yield case("Adagrad", [*step, *parameters, f(1 << 20, low=0, high=1)], "1M", kept=(0, 1), **options)


def texts():
    words = Given(np.array([f"word {i % 37} Of" for i in range(1000)], object))
    yield case("StringNormalizer", [words], "1000", case_change_action="LOWER", locale="C")
    yield case("StringConcat", [words, words], "1000")
    yield case("StringSplit", [words], "1000", kept=(0, 1))
    yield case("RegexFullMatch", [words], "1000", pattern=r"word \d+ Of")
    yield case("TfIdfVectorizer", [n(64, 100, high=50)], mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=0, ngram_counts=[0, 50],
               ngram_indexes=list(range(150)), 
               pool_int64s=[*range(50), *[k for i in range(50) for step in (1, 2) for k in (i, (i + step) % 50)]])
    label = {"keys_strings": [f"word {i} Of" for i in range(37)], "values_int64s": list(range(37))}
    yield case("LabelEncoder", [words], "1000 words", domain="ai.onnx.ml", **label)


def forest(trees, depth, features, classes=0):
    """Attributes of full trees with random splits."""
    random = np.random.default_rng(0)
    inner, nodes = 2 ** depth - 1, 2 ** (depth + 1) - 1
    ids = np.arange(nodes)
    is_inner = ids < inner
    leaves = inner + np.arange(inner + 1)
    score, base = ("class", "class") if classes else ("target", "target")
    return {
        "nodes_treeids": np.repeat(np.arange(trees), nodes).tolist(), "nodes_nodeids": np.tile(ids, trees).tolist(),
        "nodes_modes": (["BRANCH_LEQ"] * inner + ["LEAF"] * (inner + 1)) * trees,
        "nodes_featureids": random.integers(0, features, trees * nodes).tolist(),
        "nodes_values": random.standard_normal(trees * nodes).tolist(),
        "nodes_truenodeids": np.tile(np.where(is_inner, 2 * ids + 1, 0), trees).tolist(),
        "nodes_falsenodeids": np.tile(np.where(is_inner, 2 * ids + 2, 0), trees).tolist(),
        f"{score}_treeids": np.repeat(np.arange(trees), inner + 1).tolist(), f"{score}_nodeids": np.tile(leaves, trees).tolist(),
        f"{base}_ids": random.integers(0, max(classes, 1), trees * (inner + 1)).tolist(),
        f"{base}_weights": random.uniform(0, 0.1, trees * (inner + 1)).tolist(),
        **({"classlabels_int64s": list(range(classes))} if classes else {"n_targets": 1}),
    }


def learned():
    ml = {"domain": "ai.onnx.ml"}
    random = np.random.default_rng(0)
    for rows in (1, 1000):
        x = f(rows, 30)
        yield case("TreeEnsembleRegressor", [x], f"100 trees of depth 6, {rows} rows", **forest(100, 6, 30), **ml)
        yield case("TreeEnsembleRegressor", [x], f"300 trees of depth 9, {rows} rows", **forest(300, 9, 30), **ml)
        yield case("TreeEnsembleClassifier", [x], f"100 trees of depth 6, {rows} rows", kept=(0, 1), **forest(100, 6, 30, 5), **ml)
        kernel = {"kernel_type": "RBF", "kernel_params": [0.1, 0.0, 3.0], "support_vectors": random.standard_normal(300 * 30).tolist()}
        yield case("SVMClassifier", [x], f"3 classes of 300 vectors, {rows} rows", kept=(0, 1), vectors_per_class=[100] * 3,
                   coefficients=random.standard_normal(600).tolist(), rho=[0.1, 0.2, 0.3], classlabels_ints=[0, 1, 2], **kernel, **ml)
        yield case("SVMRegressor", [x], f"300 vectors, {rows} rows", coefficients=random.standard_normal(300).tolist(), rho=[0.1],
                   n_supports=300, **kernel, **ml)
        yield case("LinearClassifier", [x], f"{rows} rows", kept=(0, 1), coefficients=random.standard_normal(150).tolist(), intercepts=[0.1] * 5,
                   classlabels_ints=list(range(5)), post_transform="SOFTMAX", **ml)
        yield case("LinearRegressor", [x], f"{rows} rows", coefficients=random.standard_normal(30).tolist(), intercepts=[0.1], **ml)
        yield case("Scaler", [x], f"{rows} rows", offset=[0.5] * 30, scale=[2.0] * 30, **ml)
        yield case("Normalizer", [x], f"{rows} rows", norm="L2", **ml)
        yield case("Imputer", [x], f"{rows} rows", imputed_value_floats=[0.0] * 30, replaced_value_float=float("nan"), **ml)
        yield case("Binarizer", [x], f"{rows} rows", threshold=0.1, **ml)
        yield case("OneHotEncoder", [n(rows, 1, high=20)], f"{rows} rows", cats_int64s=list(range(20)), **ml)
        yield case("LabelEncoder", [n(rows, high=50)], f"{rows} rows", keys_int64s=list(range(50)), values_floats=[float(i) for i in range(50)], **ml)
        yield case("ArrayFeatureExtractor", [x, c([3, 7, 9])], f"{rows} rows", **ml)
        yield case("FeatureVectorizer", [x, f(rows, 5)], f"{rows} rows", inputdimensions=[30, 5], **ml)


def fused():
    ms = {"domain": "com.microsoft"}
    rows, image = f(1, 128, 768), f(1, 64, 56, 56)
    for name in "FastGelu QuickGelu Gelu".split():
        yield case(name, [rows], **ms)
    yield case("BiasGelu", [rows, w(768)], **ms)
    yield case("FusedMatMul", [f(128, 768), w(768, 768)], transB=1, alpha=0.5, **ms)
    yield case("FusedConv", [image, w(64, 64, 3, 3), w(64)], pads=[1] * 4, activation="Relu", **ms)
    yield case("SkipLayerNormalization", [rows, f(1, 128, 768, salt=1), w(768), w(768, salt=1)], **ms)
    yield case("SkipSimplifiedLayerNormalization", [rows, f(1, 128, 768, salt=1), w(768)], **ms)
    yield case("Attention", [rows, w(768, 2304), w(2304)], "fused", num_heads=12, **ms)
    yield case("MultiHeadAttention", [rows, f(1, 128, 768, salt=1), f(1, 128, 768, salt=2)], num_heads=12, **ms)
    length = [c([127], "i4"), c(128, "i4")]
    yield case("GroupQueryAttention", [rows, f(1, 128, 256), f(1, 128, 256, salt=1), None, None, *length], num_heads=12, kv_num_heads=4,
               kept=(0, 1, 2), **ms)
    yield case("RotaryEmbedding", [f(1, 12, 128, 64), c([list(range(128))]), w(512, 32), w(512, 32, salt=1)], "fused", **ms)
    yield case("GridSample", [image, f(1, 56, 56, 2, low=-1, high=1)], "fused", **ms)
    yield case("CDist", [f(256, 64), f(512, 64)], metric="euclidean", **ms)
    yield case("Inverse", [Given(np.eye(16, dtype="f4")[None].repeat(64, 0) * 4 + f(64, 16, 16).array)], **ms)
    yield case("Unique", [f(8192)], "fused", kept=(0, 1, 2), **ms)


def body(name, inputs, nodes, outputs):
    def values(pairs):
        return [helper.make_tensor_value_info(key, dtype, shape) for key, dtype, shape in pairs]
    return helper.make_graph(nodes, name, values(inputs), values(outputs))


def control():
    row = ("FLOAT", [256])
    scan = body("scan", [("s", TensorProto.FLOAT, row[1]), ("x", TensorProto.FLOAT, row[1])],
                [helper.make_node("Mul", ["s", "x"], ["m"]), helper.make_node("Tanh", ["m"], ["t"]), helper.make_node("Identity", ["t"], ["y"])],
                [("t", TensorProto.FLOAT, row[1]), ("y", TensorProto.FLOAT, row[1])])
    yield case("Scan", [f(256), f(100, 256)], body=scan, num_scan_inputs=1, kept=(0, 1))
    loop = body("loop", [("i", TensorProto.INT64, []), ("k", TensorProto.BOOL, []), ("s", TensorProto.FLOAT, row[1])],
                [helper.make_node("Sin", ["s"], ["t"]), helper.make_node("Identity", ["k"], ["l"])],
                [("l", TensorProto.BOOL, []), ("t", TensorProto.FLOAT, row[1])])
    yield case("Loop", [c(100), None, f(256)], "100 trips", body=loop)
    yield case("Loop", [Given(np.array(100)), None, f(256)], "100 trips, given", body=loop)
    branch = [body(name, [], [helper.make_node("Constant", [], ["r"], value_floats=[value] * 256)], [("r", TensorProto.FLOAT, row[1])])
              for name, value in (("yes", 1.0), ("no", 2.0))]
    yield case("If", [Given(np.array(True))], "constants", then_branch=branch[0], else_branch=branch[1])


def cases():
    for group in (moves, gathers, resizes, signals, quantised, losses, texts, learned, fused, control):
        yield from group()
