"""Cases of com.microsoft for make_contrib_cases.py: quantised operators."""
import numpy as np

f32, u8, i8 = np.float32, np.uint8, np.int8


def floats(rng, *dims):
    return rng.standard_normal(dims).astype(f32)


def numbers(rng, dtype, *dims):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, dims, dtype, endpoint=True)


def steps(dtype, scale, zero):
    return f32(scale), dtype(zero)


def parameters(name, dtype, scale, zero):
    return {name + "_scale": np.array(scale, f32), name + "_zero": np.array(zero, dtype)}


def linear():
    for dtype, zero in ((u8, 120), (i8, -5)):
        kind = "u8" if dtype == u8 else "i8"
        x = lambda rng, t=dtype, z=zero: {"x": numbers(rng, t, 2, 12)} | parameters("x", t, 0.03, z)
        y = lambda t=dtype: parameters("y", t, 0.01, 2)
        two = lambda rng, t=dtype, z=zero: (
            {"a": numbers(rng, t, 2, 12)} | parameters("a", t, 0.0313, z) | {"b": numbers(rng, t, 12)} | parameters(
                "b", t, 0.02, 3) | parameters("y", t, 0.05, 7))
        yield dict(name=f"qlinear_add_{kind}", op="QLinearAdd", inputs=two)
        yield dict(name=f"qlinear_mul_{kind}", op="QLinearMul", inputs=two)
        yield dict(name=f"qlinear_sigmoid_{kind}", op="QLinearSigmoid", inputs=lambda r, x=x, y=y: x(r) | y())
        yield dict(name=f"qlinear_leaky_relu_{kind}", op="QLinearLeakyRelu", inputs=lambda r, x=x, y=y: x(r) | y(), alpha=0.2)
        yield dict(name=f"qlinear_softmax_{kind}", op="QLinearSoftmax", opset=13, axis=-1,
                   inputs=lambda r, x=x, t=dtype: x(r) | parameters("y", t, 1 / 256, np.iinfo(t).min))
        yield dict(name=f"qlinear_concat_{kind}", op="QLinearConcat", axis=1, inputs=lambda r, t=dtype: parameters(
            "y", t, 0.04, 3) | {"a": numbers(r, t, 2, 3)} | parameters("a", t, 0.03, 5) | {"b": numbers(r, t, 2, 4)} |
            parameters("b", t, 0.05, 1))
        image = lambda r, dims, t=dtype: {"x": numbers(r, t, *dims)} | parameters("x", t, 0.0313, 5) | parameters("y", t, 0.0227, 9)
        yield dict(name=f"qlinear_average_pool_{kind}", op="QLinearAveragePool", kernel_shape=[3, 3], strides=[2, 2],
                   pads=[1, 1, 1, 1], inputs=lambda r, i=image: i(r, (1, 2, 5, 5)))
        yield dict(name=f"qlinear_average_pool_last_{kind}", op="QLinearAveragePool", kernel_shape=[2, 2], channels_last=1,
                   count_include_pad=1, pads=[0, 0, 1, 1], inputs=lambda r, i=image: i(r, (1, 5, 5, 2)))
        yield dict(name=f"qlinear_global_pool_{kind}", op="QLinearGlobalAveragePool", inputs=lambda r, i=image: i(r, (2, 3, 4, 4)))
        yield dict(name=f"qlinear_global_pool_last_{kind}", op="QLinearGlobalAveragePool", channels_last=1,
                   inputs=lambda r, i=image: i(r, (2, 4, 4, 3)))
    flat = lambda rng: {"x": numbers(rng, u8, 2, 3, 4)} | parameters("x", u8, 0.03, 100) | parameters("y", u8, 1 / 256, 0)
    yield dict(name="qlinear_softmax_flat", op="QLinearSoftmax", opset=11, axis=1, inputs=flat)
    plain = lambda rng: {"x": numbers(rng, u8, 8), "x_scale": np.array(0.05, f32), "z": None, "y_scale": np.array(0.1, f32),
                          "y_zero": np.array(3, u8)}
    yield dict(name="qlinear_sigmoid_no_zero", op="QLinearSigmoid", inputs=plain)
    pool = lambda rng: {"x": numbers(rng, u8, 1, 5, 5, 2)}
    yield dict(name="nhwc_max_pool", op="NhwcMaxPool", inputs=pool, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    mean = lambda rng: {"x": numbers(rng, u8, 2, 3, 4)} | parameters("x", u8, 0.0313, 100) | parameters("y", u8, 0.0227, 90)

    def averaged(i):
        x = ((i["x"].astype(np.int32) - i["x_zero"]) * i["x_scale"]).mean((1, 2))
        return [np.clip(np.rint(x / i["y_scale"]) + i["y_zero"], 0, 255).astype(u8)]
    yield dict(name="qlinear_reduce_mean", op="QLinearReduceMean", inputs=mean, axes=[1, -1], keepdims=0, expected=averaged)
    chosen = lambda rng: {"c": rng.integers(0, 2, (2, 4)).astype(bool), "a": numbers(rng, u8, 2, 4)} | parameters(
        "a", u8, 0.03, 5) | {"b": numbers(rng, u8, 4)} | parameters("b", u8, 0.02, 9) | parameters("y", u8, 0.04, 1)
    yield dict(name="qlinear_where", op="QLinearWhere", inputs=chosen)

    def conv(last):
        def make(rng):
            x = numbers(rng, u8, 1, 3, 5, 5)
            return ({"x": x.transpose(0, 2, 3, 1).copy() if last else x} | parameters("x", u8, 0.03, 120) |
                    {"w": numbers(rng, i8, 4, 3, 3, 3), "w_scale": rng.uniform(0.005, 0.01, 4).astype(f32),
                     "w_zero": np.zeros(4, i8)} | parameters("y", u8, 0.1, 128) |
                    {"b": rng.integers(-500, 500, 4, np.int32)})
        return make
    for last in (0, 1):
        yield dict(name=f"qlinear_conv_last_{last}", op="QLinearConv", channels_last=last, pads=[1, 1, 1, 1],
                   weights=("w", "w_scale", "w_zero"), inputs=conv(last))


def products():
    def gemm(rng, *more, columns=False, bias=True):
        inputs = {"a": numbers(rng, u8, 3, 8)} | parameters("a", u8, 0.02, 120) | {"b": numbers(rng, i8, 8, 5)}
        inputs |= {"b_scale": rng.uniform(0.01, 0.02, 5).astype(f32), "b_zero": np.zeros(5, i8)} if columns else parameters(
            "b", i8, 0.01, 3)
        inputs["c"] = rng.integers(-300, 300, 5, np.int32) if bias else None
        return inputs
    yield dict(name="qgemm_float", op="QGemm", inputs=gemm)
    yield dict(name="qgemm_columns", op="QGemm", inputs=lambda r: gemm(r, columns=True))
    yield dict(name="qgemm_quantized", op="QGemm", inputs=lambda r: gemm(r) | parameters("y", u8, 0.05, 100), alpha=0.5)
    yield dict(name="qgemm_no_bias", op="QGemm", inputs=lambda r: gemm(r, bias=False) | parameters("y", u8, 0.05, 100))

    def transposed(rng):
        inputs = gemm(rng)
        inputs["a"], inputs["b"] = inputs["a"].T.copy(), inputs["b"].T.copy()
        return inputs
    yield dict(name="qgemm_transposed", op="QGemm", inputs=transposed, transA=1, transB=1)

    def dynamic(columns, zero=True, bias=True):
        def make(rng):
            count = (5,) if columns else ()
            return {"a": floats(rng, 2, 3, 8), "b": numbers(rng, i8, 8, 5),
                    "scale": rng.uniform(0.01, 0.02, count).astype(f32) if columns else np.array(0.015, f32),
                    "zero": np.full(count, 2, i8) if zero else None, "bias": floats(rng, 5) if bias else None}
        return make
    for name, make in (("", dynamic(False)), ("_columns", dynamic(True)), ("_plain", dynamic(False, False, False))):
        yield dict(name="dynamic_quantize_matmul" + name, op="DynamicQuantizeMatMul", inputs=make, tolerances={"atol": 1e-4})

    def to_float(columns):
        def make(rng):
            return {"a": numbers(rng, u8, 3, 8), "b": numbers(rng, u8, 8, 5), "a_scale": np.array(0.02, f32),
                    "b_scale": rng.uniform(0.01, 0.02, 5).astype(f32) if columns else np.array(0.01, f32),
                    "a_zero": np.array(120, u8), "b_zero": np.full(5, 130, u8) if columns else np.array(128, u8),
                    "bias": floats(rng, 5)}
        return make
    yield dict(name="matmul_integer_16", op="MatMulInteger16",
               inputs=lambda rng: {"a": rng.integers(-3000, 3000, (3, 20)).astype(np.int16),
                                   "b": rng.integers(-3000, 3000, (20, 5)).astype(np.int16)})
    yield dict(name="matmul_integer_to_float", op="MatMulIntegerToFloat", inputs=to_float(False), tolerances={"atol": 1e-5})
    yield dict(name="matmul_integer_to_float_columns", op="MatMulIntegerToFloat", inputs=to_float(True),
               tolerances={"atol": 1e-5})


def blocks():
    def inputs(bits, depth, block, zero="", bias=False, rows=(2, 3), dtype=f32):
        def make(rng):
            count = (depth + block - 1) // block
            packed = {"none": None, "packed": numbers(rng, u8, 6, (count * bits + 7) // 8),
                      "float": rng.uniform(0, 2 ** bits, (6, count)).astype(f32)}
            return {"a": floats(rng, *rows, depth).astype(dtype), "b": numbers(rng, u8, 6, count, block * bits // 8),
                    "scales": rng.uniform(0.01, 0.05, (6, count)).astype(dtype), "zero": packed[zero or "none"], "g_idx": None,
                    "bias": floats(rng, 6) if bias else None}
        return make
    for kind, name in ((0, "floats"), (1, "normal")):
        codes = lambda rng: {"a": floats(rng, 2, 3, 64), "b": numbers(rng, u8, 64 * 6 // 2),
                             "scales": rng.uniform(0.1, 2, 64 * 6 // 32).astype(f32)}
        yield dict(name=f"matmul_codes_{name}", op="MatMulBnb4", K=64, N=6, block_size=32, quant_type=kind, inputs=codes,
                   weights=("b", "scales"), tolerances={"atol": 1e-5})
    for bits in (4, 8):
        for depth, block, zero in ((32, 16, ""), (64, 32, "packed"), (40, 32, "packed"), (128, 128, "float"), (48, 16, "packed")):
            if bits == 8 and zero == "float":
                continue
            yield dict(name=f"matmul_bits_{bits}_{depth}_{block}_{zero or 'none'}", op="MatMulNBits", bits=bits, K=depth, N=6,
                       block_size=block, inputs=inputs(bits, depth, block, zero), weights=("b", "scales", "zero"),
                       tolerances={"atol": 1e-4})
        for depth, block, zero in ((32, 32, ""), (40, 16, "packed")):
            yield dict(name=f"matmul_bits_row_{bits}_{depth}", op="MatMulNBits", bits=bits, K=depth, N=6, block_size=block,
                       inputs=inputs(bits, depth, block, zero, rows=(2, 1) if block == 16 else (1, 1)), weights=("b", "scales", "zero"),
                       tolerances={"atol": 1e-4})
    half = inputs(4, 256, 128, "packed", rows=(1, 1), dtype=np.float16)
    yield dict(name="matmul_bits_f16_row", op="MatMulNBits", bits=4, K=256, N=6, block_size=128, tolerances={"atol": 2e-3},
               inputs=lambda rng: (i := half(rng)) | {"a": i["a"] + np.float16(4)}, weights=("b", "scales", "zero"))
    yield dict(name="matmul_bits_f16", op="MatMulNBits", bits=4, K=64, N=6, block_size=32, tolerances={"atol": 5e-3},
               inputs=inputs(4, 64, 32, "packed", dtype=np.float16), weights=("b", "scales", "zero"))
    # With this level ONNX Runtime makes the left operand steps of 8 bits, too.
    for name, bits, depth, block, zero, rows in (("row", 4, 96, 32, "", (1, 1)), ("rows", 4, 80, 16, "packed", (2, 3)),
                                                 ("bytes", 8, 64, 32, "", (1, 4))):
        yield dict(name=f"matmul_bits_steps_{name}", op="MatMulNBits", bits=bits, K=depth, N=6, block_size=block, accuracy_level=4,
                   inputs=inputs(bits, depth, block, zero, rows=rows), weights=("b", "scales", "zero"), tolerances={"atol": 2e-4})
    yield dict(name="matmul_bits_bias", op="MatMulNBits", bits=4, K=32, N=6, block_size=32, inputs=inputs(4, 32, 32, bias=True),
               weights=("b", "scales"), accuracy_level=1, tolerances={"atol": 1e-4})


def tables():
    def inputs(bits, width, block, zero):
        def make(rng):
            count = (width + block - 1) // block
            return {"table": numbers(rng, u8, 7, width * bits // 8), "i": np.array([[0, 6], [-2, 3]], np.int64),
                    "scales": rng.uniform(0.01, 0.05, (7, count)).astype(f32),
                    "zero": numbers(rng, u8, 7, (count * bits + 7) // 8) if zero else None}
        return make
    for bits, width, block, zero in ((4, 64, 32, True), (4, 40, 16, False), (8, 48, 16, True)):
        yield dict(name=f"gather_blocks_{bits}_{width}", op="GatherBlockQuantized", inputs=inputs(bits, width, block, zero),
                   bits=bits, block_size=block, weights=("table", "scales", "zero"))


def domain_twins():
    yield dict(name="quantize_linear", op="QuantizeLinear", inputs=lambda r: {"x": floats(r, 3, 4)} | parameters("y", u8, 0.02, 100))
    channels = lambda r: {"x": floats(r, 3, 4), "s": r.uniform(0.01, 0.02, 4).astype(f32), "z": np.array([1, 2, 3, 4], i8)}
    yield dict(name="quantize_linear_axis", op="QuantizeLinear", inputs=channels, axis=1)
    yield dict(name="dequantize_linear", op="DequantizeLinear",
               inputs=lambda r: {"x": numbers(r, u8, 3, 4)} | parameters("x", u8, 0.02, 100))
    lists = lambda r: {"x": numbers(r, i8, 3, 4), "s": r.uniform(0.01, 0.02, 3).astype(f32), "z": np.array([1, 2, 3], i8)}
    yield dict(name="dequantize_linear_axis", op="DequantizeLinear", inputs=lists, axis=0)
    wide = lambda r: {"x": floats(r, 3, 4)} | parameters("y", np.uint16, 0.001, 30000)
    yield dict(name="quantize_linear_u16", op="QuantizeLinear", inputs=wide)


def attention():
    def inputs(mask=None, past=0, columns=False):
        def make(rng):
            scale = rng.uniform(0.004, 0.006, 48).astype(f32) if columns else np.array(0.005, f32)
            return {"x": numbers(rng, u8, 2, 4, 6), "w": numbers(rng, i8, 6, 48), "b": floats(rng, 48),
                    "x_scale": np.array(0.02, f32), "w_scale": scale, "mask": mask, "x_zero": np.array(128, u8),
                    "w_zero": np.zeros(48, i8) if columns else np.array(0, i8),
                    "past": floats(rng, 2, 2, 2, 3, 8) if past else None}
        return make
    yield dict(name="qattention", op="QAttention", inputs=inputs(), num_heads=2, tolerances={"atol": 1e-5})
    yield dict(name="qattention_lengths", op="QAttention", inputs=inputs(np.array([4, 2], np.int32)), num_heads=2,
               tolerances={"atol": 1e-5})
    yield dict(name="qattention_past", op="QAttention", inputs=inputs(past=3, columns=True), num_heads=2, unidirectional=1,
               outputs=("y", "present"), tolerances={"atol": 1e-5})


def recurrent():
    def inputs(directions, columns):
        def make(rng):
            gates = lambda n: numbers(rng, i8, directions, n, 16)
            scale = (directions, 16) if columns else (directions,)
            return {"x": floats(rng, 3, 1, 5), "w": gates(5), "r": gates(4), "b": floats(rng, directions, 32), "lens": None,
                    "h0": floats(rng, directions, 1, 4), "c0": floats(rng, directions, 1, 4), "p": None,
                    "w_scale": rng.uniform(0.002, 0.004, scale).astype(f32), "w_zero": np.zeros(scale, i8),
                    "r_scale": rng.uniform(0.002, 0.004, scale).astype(f32), "r_zero": np.zeros(scale, i8)}
        return make
    weights = ("w", "r", "w_scale", "w_zero", "r_scale", "r_zero")
    for directions, columns in ((1, False), (2, False), (1, True)):
        yield dict(name=f"dynamic_quantize_lstm_{directions}{'_columns' if columns else ''}", op="DynamicQuantizeLSTM",
                   inputs=inputs(directions, columns), weights=weights, outputs=("y", "h", "c"), hidden_size=4,
                   direction="bidirectional" if directions == 2 else "forward", tolerances={"atol": 2e-3})


def cases():
    for family in (linear, products, blocks, tables, domain_twins, attention, recurrent):
        yield from family()
