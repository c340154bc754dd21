"""Cases of com.microsoft for make_contrib_cases.py: activations, products, convolutions, normalisations, shapes."""
import math

import numpy as np

f32 = np.float32


def floats(rng, *dims):
    return rng.standard_normal(dims).astype(f32)


def erf(x):
    return np.vectorize(math.erf)(x)


def gelu(x):
    return (x * 0.5 * (1 + erf(x / math.sqrt(2)))).astype(f32)


def silu(x):
    return x / (1 + np.exp(-x))


def activations():
    x = lambda rng: {"x": floats(rng, 2, 3, 8) * 3}
    biased = lambda rng: {"x": floats(rng, 2, 3, 8) * 2, "bias": floats(rng, 8)}
    yield dict(name="gelu", op="Gelu", inputs=x)
    yield dict(name="bias_gelu", op="BiasGelu", inputs=biased)
    yield dict(name="fast_gelu", op="FastGelu", inputs=x)
    yield dict(name="fast_gelu_bias", op="FastGelu", inputs=biased)
    yield dict(name="quick_gelu", op="QuickGelu", inputs=x)
    yield dict(name="quick_gelu_alpha", op="QuickGelu", inputs=x, alpha=0.5)
    yield dict(name="bias_split_gelu", op="BiasSplitGelu", inputs=biased,
               expected=lambda i: [(i["x"] + i["bias"])[..., :4] * gelu((i["x"] + i["bias"])[..., 4:])])
    skip = lambda rng: {"x": floats(rng, 2, 3, 8), "bias": floats(rng, 8), "skip": floats(rng, 2, 3, 8)}
    yield dict(name="bias_add", op="BiasAdd", inputs=skip, expected=lambda i: [i["x"] + i["bias"] + i["skip"]])
    yield dict(name="bias_dropout", op="BiasDropout", inputs=skip, outputs=("y", "mask"), seed=3,
               expected=lambda i: [i["x"] + i["bias"] + i["skip"], np.ones(i["x"].shape, bool)])


def products():
    def pair(a, b):
        return lambda rng: {"a": floats(rng, *a), "b": floats(rng, *b)}
    yield dict(name="fused_matmul", op="FusedMatMul", inputs=pair((2, 3, 4), (2, 4, 5)), alpha=0.5)
    yield dict(name="fused_matmul_trans", op="FusedMatMul", inputs=pair((2, 4, 3), (5, 4)), transA=1, transB=1)
    yield dict(name="fused_matmul_batch", op="FusedMatMul", inputs=pair((3, 2, 4), (4, 2, 5)), transBatchA=1, transBatchB=1)
    yield dict(name="fused_matmul_batch_trans", op="FusedMatMul", inputs=pair((4, 2, 3), (5, 2, 4)), transBatchA=1,
               transBatchB=1, transA=1, transB=1)
    yield dict(name="transpose_matmul", op="TransposeMatMul", inputs=pair((4, 3), (4, 5)), transA=1)
    gemm = lambda rng: {"a": floats(rng, 3, 4), "b": floats(rng, 5, 4), "c": floats(rng, 5)}
    yield dict(name="fused_gemm_relu", op="FusedGemm", inputs=gemm, transB=1, activation="Relu", alpha=0.5, beta=2.0)
    yield dict(name="fused_gemm_leaky", op="FusedGemm", inputs=gemm, transB=1, activation="LeakyRelu", activation_alpha=0.3)
    yield dict(name="fused_gemm_tanh", op="FusedGemm", inputs=gemm, transB=1, activation="Tanh")
    yield dict(name="fused_gemm_hard_sigmoid", op="FusedGemm", inputs=gemm, transB=1, activation="HardSigmoid",
               activation_alpha=0.3, activation_beta=0.4)


def convolutions():
    def conv(z=False, groups=1):
        def make(rng):
            inputs = {"x": floats(rng, 1, 4, 6, 5), "w": floats(rng, 6, 4 // groups, 3, 3), "b": floats(rng, 6)}
            if z:
                inputs["z"] = floats(rng, 1, 6, 6, 5)
            return inputs
        return make
    def transposed(pads, bias):
        return lambda rng: {"x": floats(rng, 1, 4, 5, 6), "w": floats(rng, 4, 3, 3, 3), "pads": np.array(pads, np.int64),
                            "b": floats(rng, 6) if bias else None}
    for name, weights in (("constant", ("pads",)), ("given", ())):
        yield dict(name=f"transposed_pads_{name}", op="ConvTransposeWithDynamicPads", inputs=transposed([1, 0, 2, 1], name == "given"),
                   weights=weights, strides=[2, 1], group=2, kernel_shape=[3, 3], tolerances={"atol": 1e-5})
    same = dict(pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    yield dict(name="fused_conv_relu", op="FusedConv", inputs=conv(), activation="Relu", **same)
    yield dict(name="fused_conv_sum", op="FusedConv", inputs=conv(True), activation="Relu", **same)
    yield dict(name="fused_conv_clip", op="FusedConv", inputs=conv(groups=2), group=2, activation="Clip",
               activation_params=[-0.5, 1.5], strides=[2, 1], **same)
    yield dict(name="fused_conv_leaky", op="FusedConv", inputs=conv(), activation="LeakyRelu", activation_params=[0.2])
    yield dict(name="fused_conv_hard_sigmoid", op="FusedConv", inputs=conv(), activation="HardSigmoid",
               activation_params=[0.2, 0.5])

    def last(i):
        x = np.pad(i["x"], ((0, 0), (1, 1), (1, 1), (0, 0)))
        taps = np.stack([x[:, dy:dy + 6, dx:dx + 5] for dy in range(3) for dx in range(3)], -1)
        return np.einsum("nhwct,mct->nhwm", taps, i["w"].reshape(6, 4, 9)) + i["b"]
    nhwc = lambda rng: {"x": floats(rng, 1, 6, 5, 4), "w": floats(rng, 6, 4, 3, 3), "b": floats(rng, 6)}
    summed = lambda rng: nhwc(rng) | {"z": floats(rng, 1, 6, 5, 6)}
    yield dict(name="nhwc_conv", op="NhwcConv", inputs=nhwc, expected=lambda i: [last(i).astype(f32)],
               tolerances={"atol": 1e-5}, **same)
    yield dict(name="nhwc_fused_conv", op="NhwcFusedConv", inputs=summed, activation="Relu", tolerances={"atol": 1e-5},
               expected=lambda i: [np.maximum(last(i) + i["z"], 0).astype(f32)], **same)


def group_norm(x, scale, bias, groups, epsilon, activation):
    n, h, w, c = x.shape
    g = x.reshape(n, h * w, groups, c // groups).astype(np.float64)
    g = (g - g.mean((1, 3), keepdims=True)) / np.sqrt(g.var((1, 3), keepdims=True) + epsilon)
    y = g.reshape(x.shape) * scale + bias
    return (silu(y) if activation else y).astype(f32)


def normalizations():
    def skip(dims, *more):
        def make(rng):
            inputs = {"x": floats(rng, 2, 3, 8), "skip": floats(rng, *dims)}
            for name in more:
                inputs[name] = floats(rng, 8) if name != "-" else None
            return inputs
        return make
    yield dict(name="skip_layer_norm", op="SkipLayerNormalization", inputs=skip((2, 3, 8), "gamma", "beta", "bias"),
               epsilon=1e-5)
    yield dict(name="skip_layer_norm_sum", op="SkipLayerNormalization", inputs=skip((2, 3, 8), "gamma", "beta"),
               outputs=("y", "", "", "sum"))
    yield dict(name="skip_layer_norm_wide", op="SkipLayerNormalization", inputs=skip((1, 3, 8), "gamma", "beta"))
    yield dict(name="skip_layer_norm_flat", op="SkipLayerNormalization", inputs=skip((3, 8), "gamma"))
    yield dict(name="skip_rms_norm", op="SkipSimplifiedLayerNormalization", inputs=skip((2, 3, 8), "gamma", "bias"),
               outputs=("y", "", "", "sum"), epsilon=1e-6)
    yield dict(name="skip_rms_norm_plain", op="SkipSimplifiedLayerNormalization", inputs=skip((2, 3, 8), "gamma"))
    simple = lambda rng: {"x": floats(rng, 2, 3, 8), "scale": floats(rng, 8)}
    yield dict(name="simplified_layer_norm", op="SimplifiedLayerNormalization", inputs=simple, domain="", epsilon=1e-4,
               axis=-1, stash_type=1)
    yield dict(name="simplified_layer_norm_deviation", op="SimplifiedLayerNormalization", inputs=simple, domain="",
               outputs=("y", "d"))

    def embed(segments=True, mask=False, positions=False):
        def make(rng):
            return {"ids": rng.integers(0, 10, (2, 4), np.int32),
                    "segment_ids": rng.integers(0, 2, (2, 4), np.int32) if segments else None,
                    "word": floats(rng, 10, 8), "position": floats(rng, 6, 8),
                    "segment": floats(rng, 2, 8) if segments else None, "gamma": floats(rng, 8), "beta": floats(rng, 8),
                    "mask": np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32) if mask else None,
                    "position_ids": rng.integers(0, 6, (2, 4), np.int32) if positions else None}
        return make
    yield dict(name="embed_layer_norm", op="EmbedLayerNormalization", inputs=embed(), outputs=("y", "m"))
    yield dict(name="embed_layer_norm_mask", op="EmbedLayerNormalization", inputs=embed(mask=True), outputs=("y", "m"),
               epsilon=1e-5)
    yield dict(name="embed_layer_norm_positions", op="EmbedLayerNormalization", inputs=embed(False, positions=True),
               outputs=("y", "", "sum"), mask_index_type=0)
    group = lambda rng: {"x": floats(rng, 2, 3, 4, 8), "gamma": floats(rng, 8), "beta": floats(rng, 8)}
    for activation in (0, 1):
        yield dict(name=f"group_norm_{activation}", op="GroupNorm", inputs=group, groups=4, activation=activation,
                   epsilon=1e-4, tolerances={"atol": 1e-5},
                   expected=lambda i, a=activation: [group_norm(i["x"], i["gamma"], i["beta"], 4, 1e-4, a)])
    first = lambda rng: {"x": floats(rng, 2, 8, 3, 4), "gamma": floats(rng, 8), "beta": floats(rng, 8)}
    yield dict(name="group_norm_first", op="GroupNorm", inputs=first, groups=2, activation=1, channels_last=0,
               tolerances={"atol": 1e-5}, expected=lambda i: [
                   group_norm(i["x"].transpose(0, 2, 3, 1), i["gamma"], i["beta"], 2, 1e-5, 1).transpose(0, 3, 1, 2)])
    skips = lambda rng: group(rng) | {"skip": floats(rng, 2, 8), "bias": floats(rng, 8)}

    def skipped(i):
        total = i["x"] + i["skip"][:, None, None] + i["bias"]
        return [group_norm(total, i["gamma"], i["beta"], 4, 1e-5, 1), total]
    yield dict(name="skip_group_norm", op="SkipGroupNorm", inputs=skips, outputs=("y", "s"), groups=4, activation=1,
               expected=skipped, tolerances={"atol": 1e-5})


def quantized_embeddings():
    def tables(segments):
        def inputs(rng):
            table = lambda *dims: rng.integers(0, 256, dims).astype(np.uint8)
            scale = lambda: np.array(rng.random() * 0.02 + 0.01, f32)
            zero = lambda: np.array(rng.integers(100, 150), np.uint8)
            maybe = lambda make: make() if segments else None
            return {"ids": rng.integers(0, 9, (2, 4)).astype(np.int32),
                    "segments": maybe(lambda: rng.integers(0, 2, (2, 4)).astype(np.int32)), "words": table(9, 8),
                    "positions": table(6, 8), "kinds": maybe(lambda: table(2, 8)), "gamma": table(8), "beta": table(8),
                    "mask": np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32) if segments else None,
                    "word_scale": scale(), "position_scale": scale(), "kind_scale": maybe(scale), "gamma_scale": scale(),
                    "beta_scale": scale(), "word_zero": zero(), "position_zero": zero(), "kind_zero": maybe(zero),
                    "gamma_zero": zero(), "beta_zero": zero()}
        return inputs
    for name, segments in (("", True), ("_words", False)):
        yield dict(name="quantized_embed" + name, op="QEmbedLayerNormalization", inputs=tables(segments), outputs=("y", "count"),
                   epsilon=1e-5)


def shapes():
    yield dict(name="trilu", op="Trilu", inputs=lambda rng: {"x": floats(rng, 2, 3, 4), "k": np.array(1, np.int64)},
               weights=("k",), upper=0)
    pads = lambda rng: {"x": floats(rng, 2, 3), "pads": np.array([0, 1, 1, 2], np.int64), "value": np.array([2], f32)}
    yield dict(name="pad", op="Pad", inputs=pads, weights=("pads", "value"))
    edge = lambda rng: {"x": floats(rng, 2, 3), "pads": np.array([1, 1, 1, 2], np.int64)}
    yield dict(name="pad_edge", op="Pad", inputs=edge, weights=("pads",), mode="edge")
    yield dict(name="unique", op="Unique", inputs=lambda rng: {"x": np.array([2, 1, 1, 3, 4, 3], f32)},
               outputs=("y", "idx", "counts"))
    yield dict(name="expand_dims", op="ExpandDims", inputs=lambda rng: {"x": floats(rng, 2, 3), "axis": np.array(-2, np.int32)},
               weights=("axis",))
    yield dict(name="gather_nd", op="GatherND",
               inputs=lambda rng: {"x": floats(rng, 2, 3, 4), "i": np.array([[0, 2], [1, 0]], np.int64)})
    grid = lambda rng: {"x": floats(rng, 1, 2, 4, 5), "grid": rng.uniform(-1.2, 1.2, (1, 3, 3, 2)).astype(f32)}
    for mode, padding in (("bilinear", "border"), ("nearest", "reflection"), ("bicubic", "zeros")):
        yield dict(name=f"grid_sample_{mode}", op="GridSample", inputs=grid, mode=mode, align_corners=1,
                   padding_mode=padding, tolerances={"atol": 1e-5})
    yield dict(name="inverse", op="Inverse", inputs=lambda rng: {"x": floats(rng, 2, 5, 5)}, tolerances={"atol": 1e-4})
    yield dict(name="inverse_pivot", op="Inverse", inputs={"x": np.array([[0, 2, 1], [1, 0, 3], [4, 1, 0]], f32)},
               tolerances={"atol": 1e-6})
    for metric in ("euclidean", "sqeuclidean"):
        for width in (5, 40):
            yield dict(name=f"distances_{metric}_{width}", op="CDist", metric=metric, tolerances={"atol": 1e-4},
                       inputs=lambda rng, width=width: {"a": floats(rng, 4, width), "b": floats(rng, 6, width)})
    yield dict(name="unfold", op="UnfoldTensor", inputs=lambda rng: {"x": floats(rng, 2, 9, 3)}, dim=1, size=4, step=2)
    yield dict(name="unfold_last", op="UnfoldTensor", inputs=lambda rng: {"x": floats(rng, 2, 5)}, size=2)
    for name, dims in (("", (5, 7)), ("_batch", (1, 6, 4)), ("_long", (2, 9))):
        yield dict(name=f"alignment{name}", op="DynamicTimeWarping", inputs=lambda rng, dims=dims: {"x": floats(rng, *dims)})
    for n in (1, 2, 3):
        yield dict(name=f"repeats_{n}", op="NGramRepeatBlock", ngram_size=n,
                   inputs=lambda rng: {"ids": np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4]], np.int64), "scores": floats(rng, 2, 6)})
    parts = lambda z: np.stack([z.real, z.imag], -1).astype(f32)
    yield dict(name="rfft", op="Rfft", inputs=lambda rng: {"x": floats(rng, 3, 8)}, onesided=1, normalized=0, signal_ndim=1,
               expected=lambda i: [parts(np.fft.rfft(i["x"]))], tolerances={"atol": 1e-5})
    yield dict(name="irfft", op="Irfft", inputs=lambda rng: {"x": parts(np.fft.rfft(floats(rng, 3, 8)))}, onesided=1,
               normalized=0, signal_ndim=1, tolerances={"atol": 1e-5},
               expected=lambda i: [np.fft.irfft(i["x"][..., 0] + 1j * i["x"][..., 1]).astype(f32)])


def experts():
    """Of 4 experts, of which each of 5 tokens takes 2; of 8 for one token; ONNX Runtime has no gates of their own on a CPU."""
    def mixture(tokens=5, count=4, columns=6, biased=True, shape=None):
        def inputs(rng):
            bias = lambda n: floats(rng, count, n) if biased else None
            return {"x": floats(rng, *(shape or (tokens,)), 8), "scores": floats(rng, tokens, count),
                    "first": floats(rng, count, columns, 8) / 3, "first_bias": bias(columns),
                    "second": floats(rng, count, 8, 6) / 2, "second_bias": bias(8)}
        return inputs
    for activation in ("relu", "gelu", "silu", "identity"):
        yield dict(name=f"experts_{activation}", op="MoE", inputs=mixture(), k=2, activation_type=activation)
    yield dict(name="experts_normalized", op="MoE", inputs=mixture(), k=2, activation_type="silu", normalize_routing_weights=1)
    yield dict(name="experts_plain", op="MoE", inputs=mixture(6, biased=False, shape=(2, 3)), k=1, activation_type="relu")
    yield dict(name="experts_swiglu", op="MoE", inputs=mixture(columns=12), k=3, activation_type="swiglu", swiglu_fusion=1,
               normalize_routing_weights=1, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=0.7)
    yield dict(name="experts_of_one_token", op="MoE", inputs=mixture(1, 8, columns=12), k=2, activation_type="swiglu",
               swiglu_fusion=1, normalize_routing_weights=1)
    yield dict(name="experts_of_two_tokens", op="MoE", inputs=mixture(2, 9), k=2, activation_type="gelu")
    gated = lambda rng: mixture(5, 1, biased=False)(rng) | {"third": floats(rng, 1, 6, 8)}

    def by_gate(i):
        inner = silu(i["x"] @ i["first"][0].T) * (i["x"] @ i["third"][0].T)
        return [(inner @ i["second"][0].T).astype(f32)]
    yield dict(name="experts_gated", op="MoE", activation_type="silu", expected=by_gate,
               inputs=lambda rng: (given := gated(rng)) and {k: given[k] for k in ("x", "scores", "first", "first_bias", "second",
                                                                                   "second_bias", "third")})


def quantized_experts():
    """Of 4 experts, or of 8 for one token; 32 elements of 4 or 8 bits, in blocks of 16 or whole rows."""
    def mixture(tokens=5, count=4, bits=4, block=16, zeros=False, biased=True, shares=False):
        def inputs(rng):
            def layer(columns, depth):
                blocks = (depth // block,) if block else ()
                rounded = lambda n: -(-n * bits // 8)
                numbers = (count, columns, rounded(blocks[0])) if block else (count, rounded(columns))
                return (rng.integers(0, 256, (count, columns, depth * bits // 8)).astype(np.uint8),
                        rng.uniform(0.01, 0.05, (count, columns, *blocks)).astype(f32) / (1 if bits == 4 else 16),
                        floats(rng, count, columns) if biased else None, rng.integers(0, 256, numbers).astype(np.uint8))
            first, second = layer(64, 32), layer(32, 32)
            names = ("", "_scales", "_bias")
            given = {"x": floats(rng, tokens, 32), "scores": floats(rng, tokens, count)}
            given |= {"first" + n: v for n, v in zip(names, first)} | {"second" + n: v for n, v in zip(names, second)}
            given |= dict.fromkeys(("third", "third_scales", "third_bias"))
            given |= {"first_zeros": first[3] if zeros else None, "second_zeros": second[3] if zeros else None}
            return given | ({"third_zeros": None, "shares": rng.uniform(0, 1, (tokens, count)).astype(f32)} if shares else {})
        return inputs
    gates = dict(op="QMoE", k=2, activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0,
                 swiglu_limit=7.0, weights_prepacked=0, tolerances={"atol": 1e-4})
    for bits in (4, 8):
        for block in (0, 16):
            blocks = {"block_size": block} if block else {}
            for zeros in (False, True):
                yield dict(name=f"quantized_experts_{bits}_{block}_{'zeros' if zeros else 'plain'}", expert_weight_bits=bits,
                           inputs=mixture(bits=bits, block=block, zeros=zeros), **blocks, **gates)
    yield dict(name="quantized_experts_token", inputs=mixture(1, 8), block_size=16, normalize_routing_weights=1, **gates)
    yield dict(name="quantized_experts_shares", inputs=mixture(shares=True, biased=False), block_size=16,
               normalize_routing_weights=1, **gates)


def hashes():
    keys = lambda kind: lambda rng: {"x": rng.integers(0, 100, (2, 3)).astype(kind)}
    for kind in (np.int32, np.int64, np.uint32, np.uint64, np.float32, np.float64):
        yield dict(name=f"murmur_{np.dtype(kind).name}", op="MurmurHash3", inputs=keys(kind), seed=3)
    texts = lambda rng: {"x": np.array([["", "a", "ab"], ["abc", "abcd", "a longer text"]])}
    yield dict(name="murmur_texts", op="MurmurHash3", inputs=texts, positive=0)


def masked_pools():
    def maps(*map, masks=(1, 1), kept=0.7):
        return lambda rng: {"x": floats(rng, 2, 3, *map), "mask": (rng.uniform(0, 1, (*masks, *map)) < kept).astype(np.int32)}
    pool = lambda name, inputs, **window: dict(name=f"masked_pool_{name}", op="MaxpoolWithMask", inputs=inputs, **window)
    yield pool("line", maps(12), kernel_shape=[3])
    yield pool("line_pads", maps(12, masks=(2, 3)), kernel_shape=[3], strides=[2], pads=[1, 1])
    yield pool("map", maps(6, 8), kernel_shape=[3, 3], strides=[2, 1], pads=[1, 1, 1, 1])
    yield pool("map_first", maps(6, 8, kept=0.0), kernel_shape=[2, 3])
    yield pool("volume", maps(4, 5, 6), kernel_shape=[2, 3, 3], strides=[1, 2, 2], pads=[0, 1, 1, 0, 1, 1])


def regions():
    boxes = np.array([[0.13, 0.2, 0.7, 0.9], [-0.2, 0, 1.1, 1], [0.9, 0.9, 0.1, 0.1]], f32)
    crop = lambda h, w: lambda rng: {"x": floats(rng, 2, 3, 6, 8), "rois": boxes, "batch": np.array([1, 0, 1], np.int32),
                                     "size": np.array([h, w], np.int32)}
    for mode in ("bilinear", "nearest"):
        yield dict(name=f"crop_{mode}", op="CropAndResize", inputs=crop(4, 5), weights=("size",), mode=mode,
                   extrapolation_value=7.0, tolerances={"atol": 1e-5})
    yield dict(name="crop_centre", op="CropAndResize", inputs=crop(1, 3), weights=("size",), tolerances={"atol": 1e-5})
    pooled = np.array([[0, 1, 2, 6, 7], [1, 0, 0, 15, 11], [0, 3, 3, 3, 3], [1, 14, 10, 40, 30]], f32)
    yield dict(name="max_roi_pool", op="MaxRoiPool", domain="", pooled_shape=[3, 4], spatial_scale=0.5,
               inputs=lambda rng: {"x": floats(rng, 2, 3, 6, 8), "rois": pooled})


def of_first_versions():
    """ONNX Runtime takes them up to opset 9 only."""
    def former(op, expected, name=None, **attributes):
        return dict(name="former_" + (name or op.lower()), op=op, domain="", inputs=lambda rng: {"x": floats(rng, 2, 3, 6, 5)},
                    expected=lambda i: [expected(i["x"]).astype(f32)], **attributes)
    bias = np.array([1, -1, 2], f32).reshape(3, 1, 1)
    yield former("Affine", lambda x: 0.5 * x + 2, alpha=0.5, beta=2.0)
    yield former("Crop", lambda x: x[:, :, 2:6, 1:4], border=[1, 2, 1, 0])
    yield former("Crop", lambda x: x[:, :, 2:5, 1:3], name="crop_part", border=[1, 2, 0, 0], scale=[3, 2])
    yield former("ImageScaler", lambda x: x / 2 + bias, scale=0.5, bias=bias.flatten().tolist())
    yield former("ParametricSoftplus", lambda x: np.log1p(np.exp(2 * x)) / 2, alpha=0.5, beta=2.0)
    yield former("Scale", lambda x: 3 * x, scale=3.0)
    yield former("ScaledTanh", lambda x: 1.5 * np.tanh(x / 2), alpha=1.5, beta=0.5)


def cases():
    for family in (activations, products, convolutions, normalizations, quantized_embeddings, shapes, experts, quantized_experts, hashes,
                   masked_pools,
                   regions, of_first_versions):
        yield from family()
