"""Cases of operations on values, wherever these stand."""

import torch

from case import DTYPES, Case, aten, inf, real, truth, whole


def pointwise():
    x, y = real(2, 3), real(3)
    positive = real(2, 3, low=0.1, high=4)
    unit = real(2, 3, low=-0.95, high=0.95)
    for name, argument in {
        "abs": x, "acos": unit, "acosh": positive + 1, "asin": unit, "asinh": x, "atan": x, "atanh": unit, "ceil": x, "cos": x,
        "cosh": x, "erf": x, "exp": x, "exp2": x, "expm1": x * 1e-3, "floor": x, "hardsigmoid": x * 4, "hardswish": x * 4,
        "isinf": torch.tensor([1.0, inf, -inf, float("nan")]), "isnan": torch.tensor([1.0, inf, float("nan")]), "log": positive,
        "log10": positive, "log1p": unit * 1e-3, "log2": positive, "logical_not": truth(4), "neg": x, "reciprocal": positive,
        "relu": x, "round": torch.tensor([0.5, 1.5, 2.5, -0.5, -1.6]), "rsqrt": positive, "sigmoid": x,
        "sign": torch.tensor([-2.0, 0.0, 3.0]), "silu": x, "sin": x, "sinh": x, "sqrt": positive, "tan": unit, "tanh": x,
        "trunc": x, "leaky_relu": x, "gelu": x, "hardtanh": x, "elu": x, "softplus": x * 20, "bitwise_not": whole(4),
        "square": x,
    }.items():
        yield Case(name, getattr(aten, name).default, argument)
    yield Case("abs_i64", aten.abs.default, whole(4))
    yield Case("sin_i64", aten.sin.default, whole(4))
    yield Case("floor_i32", aten.floor.default, whole(4, dtype=torch.int32))
    yield Case("relu_i32", aten.relu.default, whole(4, dtype=torch.int32))
    yield Case("log1p_far", aten.log1p.default, positive)
    yield Case("expm1_far", aten.expm1.default, torch.tensor([-30.0, -2.0, 1.0, 60.0, 100.0]))
    yield Case("sqrt_bf16", aten.sqrt.default, positive.bfloat16())
    yield Case("logical_not_f32", aten.logical_not.default, torch.tensor([0.0, 1.0, -2.0]))
    yield Case("bitwise_not_boolean", aten.bitwise_not.default, truth(4))
    yield Case("gelu_tanh", aten.gelu.default, x, approximate="tanh")
    yield Case("elu_scaled", aten.elu.default, x, 1.5, 2.0, 0.5)
    yield Case("leaky_relu_slope", aten.leaky_relu.default, x, 0.3)
    yield Case("hardtanh_range", aten.hardtanh.default, x, -0.5, 1.5)
    yield Case("softplus_beta", aten.softplus.default, x, 2.0, 3.0)
    for name in ("add", "sub", "mul", "div"):
        yield Case(name, getattr(aten, name).Tensor, x, y)
        yield Case(f"{name}_number", getattr(aten, name).Tensor, x, 3)
        yield Case(f"{name}_scalar", getattr(aten, name).Scalar, x, 0.75)
        yield Case(f"{name}_i64", getattr(aten, name).Tensor, whole(4), whole(4, low=1))
        yield Case(f"{name}_mixed", getattr(aten, name).Tensor, whole(3), y)
        yield Case(f"{name}_f16", getattr(aten, name).Tensor, x.half(), y.half())
        yield Case(f"{name}_rank_0", getattr(aten, name).Tensor, x.half(), torch.tensor(1.5))
    yield Case("add_alpha", aten.add.Tensor, x, y, alpha=2)
    yield Case("sub_alpha", aten.sub.Tensor, x, y, alpha=0.5)
    yield Case("rsub", aten.rsub.Scalar, x, 2, 3)
    yield Case("add_boolean", aten.add.Tensor, truth(6), truth(6))
    yield Case("mul_boolean", aten.mul.Tensor, truth(6), truth(6))
    yield Case("addcmul", aten.addcmul.default, x, y, real(2, 1), value=0.5)
    divisors = torch.tensor([2.0, -2.0, 0.1, -0.3, 3.0, 0.5])
    reals = torch.tensor([7.0, -7.0, 1.0, 1.0, -9.0, 0.0])
    wholes, whole_divisors = torch.tensor([7, -7, 7, -7, 6, 0]), torch.tensor([2, 2, -2, -2, 3, 5])
    for mode in ("floor", "trunc"):
        yield Case(f"div_{mode}", aten.div.Tensor_mode, reals, divisors, rounding_mode=mode)
        yield Case(f"div_{mode}_i64", aten.div.Tensor_mode, wholes, whole_divisors, rounding_mode=mode)
        yield Case(f"div_{mode}_scalar", aten.div.Scalar_mode, wholes, 3, rounding_mode=mode)
    yield Case("div_mode_none", aten.div.Tensor_mode, reals, divisors, rounding_mode=None)
    yield Case("true_divide", aten.true_divide.Tensor, wholes, whole_divisors)
    for name in ("fmod", "remainder"):
        yield Case(name, getattr(aten, name).Tensor, reals, divisors)
        yield Case(f"{name}_scalar", getattr(aten, name).Scalar, wholes, 3)
    for exponent in (1, 2, 3, 0.5, -0.5, -1, 2.5):
        yield Case(f"pow_{str(exponent).replace('-', 'm')}", aten.pow.Tensor_Scalar, positive, exponent)
    yield Case("pow_i64", aten.pow.Tensor_Scalar, whole(4), 2)
    yield Case("pow_scalar", aten.pow.Scalar, 2, x)
    yield Case("pow_tensor", aten.pow.Tensor_Tensor, positive, x)
    for name in ("maximum", "minimum"):
        yield Case(name, getattr(aten, name).default, x, y)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        yield Case(name, getattr(aten, name).Tensor, whole(4), whole(4))
        yield Case(f"{name}_boolean", getattr(aten, name).Tensor, truth(4), truth(4))
        yield Case(f"{name}_scalar", getattr(aten, name).Scalar, whole(4), 3)
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        yield Case(name, getattr(aten, name).Tensor, whole(4), whole(4, low=0, high=4))
    small = torch.tensor([[1.0, 2.0, 3.0], [2.0, 0.0, 1.0]])
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        yield Case(name, getattr(aten, name).Tensor, small, torch.tensor([2.0, 2.0, 1.0]))
        yield Case(f"{name}_scalar", getattr(aten, name).Scalar, small, 2)
        yield Case(f"{name}_fraction", getattr(aten, name).Scalar, whole(6), 0.5)
        yield Case(f"{name}_boolean", getattr(aten, name).Tensor, truth(6), truth(6))
        yield Case(f"{name}_mixed", getattr(aten, name).Tensor, whole(6), real(6))
        yield Case(f"{name}_types", getattr(aten, name).Tensor, whole(6, dtype=torch.int32), whole(6, dtype=torch.int64))
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield Case(name, getattr(aten, name).default, truth(6), truth(6))
        yield Case(f"{name}_f32", getattr(aten, name).default, torch.tensor([0.0, 1.0]), torch.tensor([2.0, 0.0]))
    yield Case("where", aten.where.self, truth(2, 3), x, y)
    yield Case("where_rank_0", aten.where.self, truth(2, 3), x, torch.tensor(-inf))
    yield Case("clamp", aten.clamp.default, x, -0.5, 1)
    yield Case("clamp_low", aten.clamp.default, x, -0.5)
    yield Case("clamp_high", aten.clamp.default, x, None, 0.5)
    yield Case("clamp_i64", aten.clamp.default, whole(6), -2, 2)
    yield Case("clamp_tensor", aten.clamp.Tensor, x, y, y + 1)
    yield Case("clamp_min", aten.clamp_min.default, x, 0.25)
    yield Case("clamp_max", aten.clamp_max.default, x, 0.25)
    yield Case("erfc", aten.erfc.default, torch.tensor([-inf, -3.0, 0.0, 0.5, 2.0, inf]))
    yield Case("erfc_far", aten.erfc.default, torch.tensor([4.0, 5.5]))
    heights = torch.tensor([0.0, -0.0, 0.0, -0.0, 1.0, -1.0, inf, -inf, inf, 2.0, float("nan"), 3.0, -3.0, 0.25])
    widths = torch.tensor([1.0, 1.0, -1.0, -0.0, 0.0, -0.0, inf, -inf, 1.0, -inf, 1.0, -4.0, 4.0, inf])
    yield Case("atan2", aten.atan2.default, heights, widths)
    yield Case("atan2_broadcast", aten.atan2.default, x, y)
    yield Case("lshift", getattr(aten, "__lshift__").Scalar, whole(4), 2)
    yield Case("rshift", getattr(aten, "__rshift__").Scalar, whole(6, low=-50, high=50), 1)
    yield Case("rshift_u8", getattr(aten, "__rshift__").Scalar, whole(6, low=0, high=255, dtype=torch.uint8), 4)
    yield Case("hypot", aten.hypot.default, x, y)
    yield Case("hypot_far", aten.hypot.default, torch.tensor([0.0, 3e30, 1e-30, inf, -4.0]), torch.tensor([0.0, -4e30, 0.0, 1.0, 3.0]))
    from torch._inductor import inductor_prims  # noqa: F401  registers the operation
    yield Case("fma", torch.ops.prims.fma.default, x, real(2, 3), real(2, 3))
    yield Case("number_converted", aten._to_copy.default, 5, dtype=torch.float32)
    for alpha in (0, 2, True):
        yield Case(f"add_boolean_{alpha}".lower(), aten.add.Tensor, truth(6), truth(6), alpha=alpha)


def reduction():
    x = real(2, 3, 4)
    halves = real(3, 5).half()
    for name in ("sum", "mean"):
        overload = getattr(aten, name).dim_IntList if name == "sum" else aten.mean.dim
        yield Case(name, overload, x, [1])
        yield Case(f"{name}_keepdim", overload, x, [-1, 0], True)
        yield Case(f"{name}_all", getattr(aten, name).default, x)
        yield Case(f"{name}_f16", overload, halves, [0])
        yield Case(f"{name}_dtype", overload, halves, [0], False, dtype=torch.float32)
    yield Case("sum_i32", aten.sum.dim_IntList, whole(3, 4, dtype=torch.int32), [0])
    yield Case("sum_boolean", aten.sum.default, truth(3, 4))
    yield Case("sum_rank_0", aten.sum.dim_IntList, torch.tensor(2.5), [0])
    yield Case("sum_no_axes", aten.sum.dim_IntList, x, [])
    yield Case("prod", aten.prod.dim_int, x, 1)
    yield Case("prod_all", aten.prod.default, real(5))
    for name in ("amax", "amin"):
        yield Case(name, getattr(aten, name).default, x, [1], True)
    for name in ("max", "min"):
        yield Case(f"{name}_all", getattr(aten, name).default, x)
        yield Case(f"{name}_dim", getattr(aten, name).dim, x, -1)
        yield Case(f"{name}_dim_i64", getattr(aten, name).dim, torch.tensor([[3, 1, 2], [4, 9, 0]]), 1, True)
    for name in ("any", "all"):
        yield Case(f"{name}_all", getattr(aten, name).default, truth(4))
        yield Case(f"{name}_dim", getattr(aten, name).dim, truth(3, 4), -1, True)
        yield Case(f"{name}_dims", getattr(aten, name).dims, truth(3, 4, 2), [0, 2])
    yield Case("any_f32", aten.any.dim, torch.tensor([[0.0, 0.0], [0.0, 2.0]]), 1)
    for name in ("argmax", "argmin"):
        yield Case(name, getattr(aten, name).default, x, 1)
        yield Case(f"{name}_all", getattr(aten, name).default, x)
        yield Case(f"{name}_keepdim", getattr(aten, name).default, x, -1, True)
    for correction in (0, 1, None):
        yield Case(f"var_{correction}", aten.var.correction, x, [0, 2], correction=correction, keepdim=True)
    yield Case("var_dim", aten.var.dim, x, [1], False)
    yield Case("var_mean", aten.var_mean.correction, x, [2], correction=0, keepdim=True)
    yield Case("cumsum", aten.cumsum.default, x, 1)
    yield Case("cumsum_boolean", aten.cumsum.default, truth(2, 4), -1)
    yield Case("cumprod", aten.cumprod.default, real(2, 4), -1)
    distinct = torch.randperm(24).reshape(2, 3, 4).float()
    yield Case("topk", aten.topk.default, distinct, 2)
    yield Case("topk_smallest", aten.topk.default, distinct, 2, 1, False, True)
    yield Case("sort", aten.sort.default, distinct, 1)
    yield Case("sort_stable", aten.sort.stable, torch.tensor([2, 1, 2, 1, 0]), stable=True, dim=0, descending=True)
    yield Case("argsort_stable", aten.argsort.stable, torch.tensor([2, 1, 2, 1]), stable=True)
    yield Case("argsort", aten.argsort.default, distinct, -1, True)
    yield Case("histc", aten.histc.default, torch.tensor([0.0, 1.0, 1.0, 3.0, 4.0, 9.0]), 4, 0, 4)
    yield Case("histc_i32", aten.histc.default, torch.tensor([0, 1, 1, 3], dtype=torch.int32).float(), 4, 0, 3)
    nan = float("nan")
    for name in ("cummax", "cummin"):
        yield Case(name, getattr(aten, name).default, torch.tensor([[1.0, 3.0, 3.0, 2.0], [4.0, 1.0, 1.0, 5.0]]), 1)
        yield Case(f"{name}_first", getattr(aten, name).default, distinct, 0)
        yield Case(f"{name}_nan", getattr(aten, name).default, torch.tensor([1.0, nan, 3.0, nan, 0.0]), 0)
        yield Case(f"{name}_i64", getattr(aten, name).default, torch.tensor([2, 1, 2, 4, 0]), -1)
        yield Case(f"{name}_long", getattr(aten, name).default, torch.tensor([[3, 1, 2, 3, 5, 0, 5, 4, 1, 9, 9], [7, 7, 1, 0, 2, 0, 8, 3, 7, 8, 1]]), 1)
    yield Case("logcumsumexp", aten.logcumsumexp.default, real(2, 5), 1)
    yield Case("logcumsumexp_long", aten.logcumsumexp.default, torch.arange(22.0).sin().view(11, 2), 0)
    yield Case("logcumsumexp_far", aten.logcumsumexp.default, torch.tensor([-inf, 90.0, 200.0, inf]), 0)
    yield Case("logcumsumexp_f16", aten.logcumsumexp.default, halves, 0)
    yield Case("kthvalue", aten.kthvalue.default, distinct, 2)
    yield Case("kthvalue_dim", aten.kthvalue.default, distinct, 3, 1, True)
    yield Case("kthvalue_nan", aten.kthvalue.default, torch.tensor([nan, 2.0, 1.0]), 3)
    yield Case("median", aten.median.dim, distinct, 1)
    yield Case("median_even", aten.median.dim, distinct, -1, True)
    yield Case("median_nan", aten.median.dim, torch.tensor([[1.0, nan, 0.0], [4.0, 9.0, 5.0]]), 1)
    yield Case("median_i64", aten.median.dim, torch.tensor([4, 9, 5, 1]), 0)


def normalization():
    x = real(2, 4, 3)
    for name in ("_softmax", "_log_softmax"):
        yield Case(name, getattr(aten, name).default, x, -1, False)
        yield Case(f"{name}_first", getattr(aten, name).default, x, 0, False)
    masked = torch.tensor([[0.0, -inf, 1.0], [-inf, -inf, -inf]])
    yield Case("_safe_softmax", aten._safe_softmax.default, masked, -1)
    yield Case("layer_norm", aten.native_layer_norm.default, x, [3], real(3), real(3), 1e-5)
    yield Case("layer_norm_two", aten.native_layer_norm.default, x, [4, 3], real(4, 3), None, 1e-3)
    yield Case("layer_norm_plain", aten.native_layer_norm.default, x, [3], None, None, 1e-5)
    yield Case("group_norm", aten.native_group_norm.default, real(2, 4, 3, 2), real(4), real(4), 2, 4, 6, 2, 1e-5)
    yield Case("group_norm_plain", aten.native_group_norm.default, real(1, 4, 5), None, None, 1, 4, 5, 4, 1e-5)
    mean, variance = real(4), real(4, low=0.5, high=2)
    yield Case("batch_norm", aten._native_batch_norm_legit_no_training.default, x, real(4), real(4), mean, variance, 0.1, 1e-5, results=[0])
    yield Case("batch_norm_plain", aten._native_batch_norm_legit_no_training.default, x, None, None, mean, variance, 0.1, 1e-3, results=[0])
    yield Case("batch_norm_no_stats", aten._native_batch_norm_legit.no_stats, x, real(4), None, True, 0.1, 1e-5)
    yield Case("batch_norm_functional", aten._native_batch_norm_legit_functional.default, x, real(4), real(4), mean, variance, True, 0.1, 1e-5)
    for dim in (0, 2):
        v, g = real(3, 2, 4), real(*(4 if axis == dim == 2 else 3 if axis == dim else 1 for axis in range(3)))
        norms = aten._weight_norm_interface.default(v, g, dim)[1]
        yield Case(f"weight_norm_backward_{dim}", aten._weight_norm_interface_backward.default, real(3, 2, 4), v, g, norms, dim)
    yield Case("rms_norm", aten._fused_rms_norm.default, x, [3], real(3), 1e-5)


def draws():
    """Of the package: it is the reference for what the importer makes of them."""
    from sylvite import torch_random  # noqa: F401
    ours = torch.ops.sylvite
    seed = torch.tensor(-0x123456789ABC)
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        yield Case(f"uniform_{DTYPES[dtype]}", ours.random_uniform.default, seed, [2, 3], 4, dtype)
        yield Case(f"normal_{DTYPES[dtype]}", ours.random_normal.default, seed, [5], 0, dtype)
    yield Case("integers", ours.random_integers.default, seed, [2, 4], 7, -5, 6, torch.int64)
    yield Case("integers_i32", ours.random_integers.default, seed, [4], 7, 0, 1000, torch.int32)
    yield Case("integers_wide", ours.random_integers.default, seed, [4], 7, -(2**62), 2**61, torch.int64)
