"""Writes the cases of this folder anew: captured graphs of one operation each, with inputs, and what torch computed.

usage: make_cases.py [FOLDER]; needs torch, transformers, and the package sylvite on the path. A file FAMILY.cases holds cases one after another. Each begins with a line
"# case NAME"; lines "# %name = numbers" give inputs, "# = numbers" the results in order, row by row; "# near" follows where
results may differ by more than rounding.
"""

import pathlib
import random
import sys

import torch

DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float64: "f64", torch.int64: "i64",
          torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool"}
inf = float("inf")
aten = torch.ops.aten


def type_text(value):
    return "none" if value is None else f"{DTYPES[value.dtype]}[{','.join(map(str, value.shape))}]"


def numbers(tensor):
    values = tensor.contiguous().flatten()
    if values.dtype == torch.bool:
        values = values.to(torch.int64)
    return " ".join(repr(value) for value in values.tolist())


def dense_strides(tensor):
    strides, step = [], 1
    for extent in reversed(tensor.shape):
        strides.insert(0, step)
        step *= extent
    return strides


def real(*shape, dtype=torch.float32, low=-2.0, high=2.0):
    """Multiples of 1/64, so that texts are short."""
    steps = torch.randint(int(low * 64), int(high * 64) + 1, shape)
    return (steps.double() / 64).to(dtype)


def whole(*shape, low=-5, high=6, dtype=torch.int64):
    return torch.randint(low, high, shape).to(dtype)


def truth(*shape):
    return torch.randint(0, 2, shape).bool()


class Case:
    def __init__(self, name, op, *arguments, results=None, strided=(), **keywords):
        self.name = name
        self.op = op
        self.inputs = []
        words = [self.literal(argument, strided) for argument in arguments]
        words += [f"{key}={self.literal(value, strided)}" for key, value in keywords.items()]
        value = op(*arguments, **keywords)
        outputs = list(value) if isinstance(value, (tuple, list)) else [value]
        is_tuple = isinstance(value, (tuple, list))
        wanted = results if results is not None else [i for i, output in enumerate(outputs) if output is not None]
        types = f"({', '.join(map(type_text, outputs))})" if is_tuple else type_text(outputs[0])
        self.lines = [f"%{name}: {types} = {op}({', '.join(words)})"]
        self.returned = []
        self.answers = [outputs[i] for i in wanted]
        for i in wanted:
            if is_tuple:
                self.lines.append(f"%{name}_{i}: {type_text(outputs[i])} = getitem(%{name}, {i})")
            self.returned.append(f"%{name}_{i}" if is_tuple else f"%{name}")

    def literal(self, value, strided):
        if isinstance(value, torch.Tensor):
            name = f"{self.name}_x{len(self.inputs)}"
            self.inputs.append((name, value))
            return f"%{name}"
        if value is None or isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, (int, float)):
            return repr(value)
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(self.literal(each, strided) for each in value) + "]"
        if isinstance(value, torch.dtype):
            return DTYPES[value]
        return "'" + str(value).replace("torch.", "") + "'"

    def text(self):
        head = [f"# case {self.name}"]
        declared = []
        for name, value in self.inputs:
            dense = list(value.stride()) == dense_strides(value) or value.numel() <= 1
            strides = "" if dense else f" strides [{','.join(map(str, value.stride()))}]"
            declared.append(f"%{name}: {type_text(value)}{strides}")
            head.append(f"# %{name} = {numbers(value)}")
        head += [f"# = {numbers(answer)}" for answer in self.answers]
        return "\n".join([*head, f"torch {self.name}({', '.join(declared)}) {{", *(f"  {line}" for line in self.lines),
                          f"  return {', '.join(self.returned)}", "}", ""])


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


def shape():
    x = real(2, 3, 4)
    yield Case("view", aten.view.default, x, [3, -1])
    yield Case("unsafe_view", aten._unsafe_view.default, x, [24])
    yield Case("reshape", aten.reshape.default, x, [6, 4])
    yield Case("permute", aten.permute.default, x, [2, -3, 1])
    yield Case("transpose", aten.transpose.int, x, -1, 0)
    yield Case("t", aten.t.default, real(2, 3))
    yield Case("expand", aten.expand.default, real(3, 1), [2, -1, 4])
    yield Case("unsqueeze", aten.unsqueeze.default, x, -1)
    yield Case("squeeze_dim", aten.squeeze.dim, real(2, 1), 1)
    yield Case("squeeze_dims", aten.squeeze.dims, real(1, 2, 1), [0, -1])
    yield Case("squeeze", aten.squeeze.default, real(1, 2, 1))
    yield Case("clone", aten.clone.default, x.permute(2, 0, 1), memory_format=torch.contiguous_format)
    yield Case("alias", aten.alias.default, x)
    yield Case("detach", aten.detach.default, x)
    yield Case("lift_fresh_copy", aten.lift_fresh_copy.default, x)
    yield Case("strided_input", aten.relu.default, real(2, 3, 4, 5).contiguous(memory_format=torch.channels_last))
    yield Case("strided_view", aten.view.default, real(4, 1, 6).permute(2, 1, 0), [6, 4])
    yield Case("to_bf16", aten._to_copy.default, x, dtype=torch.bfloat16)
    yield Case("to_i32", aten._to_copy.default, x * 3, dtype=torch.int32)
    yield Case("to_boolean", aten._to_copy.default, whole(6), dtype=torch.bool)
    yield Case("to_device", aten._to_copy.default, x, device=torch.device("cpu"))
    yield Case("convert", torch.ops.prims.convert_element_type.default, x, torch.float64)
    yield Case("copy", aten.copy.default, real(2, 3), whole(3))
    yield Case("slice", aten.slice.Tensor, x, 1, 1, 9223372036854775807)
    yield Case("slice_negative", aten.slice.Tensor, x, -1, -3, -1)
    yield Case("slice_step", aten.slice.Tensor, x, 2, 0, 4, 3)
    yield Case("slice_empty", aten.slice.Tensor, x, 1, 2, 1)
    yield Case("slice_whole", aten.slice.Tensor, x)
    yield Case("select", aten.select.int, x, 1, -1)
    yield Case("select_first", aten.select.int, real(3), 0, 1)
    yield Case("slice_scatter", aten.slice_scatter.default, x, real(2, 2, 4), 1, 1, 3)
    yield Case("slice_scatter_step", aten.slice_scatter.default, x, real(2, 3, 2), 2, 1, 4, 2)
    yield Case("select_scatter", aten.select_scatter.default, x, real(2, 4), 1, -1)
    yield Case("cat", aten.cat.default, [x, real(2, 1, 4)], 1)
    yield Case("cat_types", aten.cat.default, [real(2), whole(3)], -1)
    yield Case("cat_empty", aten.cat.default, [torch.zeros(0), x], -1)
    yield Case("stack", aten.stack.default, [real(2, 3), real(2, 3)], -1)
    yield Case("split", aten.split.Tensor, x, 3, -1)
    yield Case("split_with_sizes", aten.split_with_sizes.default, x, [1, 0, 2], 1)
    yield Case("unbind", aten.unbind.int, x, 1)
    yield Case("repeat", aten.repeat.default, real(2, 3), [2, 1, 2])
    yield Case("flip", aten.flip.default, x, [0, -1])
    yield Case("roll", aten.roll.default, x, [1, -2], [0, 2])
    yield Case("roll_flat", aten.roll.default, x, [5])
    yield Case("pad", aten.constant_pad_nd.default, x, [1, 2, 0, 1], 0.5)
    yield Case("pad_crop", aten.constant_pad_nd.default, x, [-1, 2])
    yield Case("pad_i64", aten.constant_pad_nd.default, whole(3), [1, 1], 7)
    for rank in (1, 2, 3):
        borders = [1, 2, 2, 1, 0, 1][:2 * rank]
        yield Case(f"reflection_pad{rank}d", getattr(aten, f"reflection_pad{rank}d").default, real(1, 2, *[4] * rank), borders)
        yield Case(f"replication_pad{rank}d", getattr(aten, f"replication_pad{rank}d").default, real(1, 2, *[4] * rank), borders)
    yield Case("diagonal", aten.diagonal.default, x, 1, 1, 2)
    yield Case("diagonal_below", aten.diagonal.default, real(4, 3), -2)
    yield Case("unfold", aten.unfold.default, real(2, 7), 1, 3, 2)
    yield Case("as_strided", aten.as_strided.default, real(4, 6), [2, 3, 4], [8, 4, 1])
    yield Case("as_strided_windows", aten.as_strided.default, real(4, 6).t(), [3, 4], [4, 2], 1)
    yield Case("as_strided_scatter", aten.as_strided_scatter.default, real(3, 5), real(2, 3), [2, 3], [6, 2], 1)
    yield Case("as_strided_scatter_turned", aten.as_strided_scatter.default, real(4, 3).t(), real(2, 2), [2, 2], [3, 2])
    yield Case("as_strided_whole", aten.as_strided.default, real(2, 3, 1), [2, 3, 1], [3, 1, 3])
    yield Case("tril", aten.tril.default, real(2, 3, 4), 1)
    yield Case("triu", aten.triu.default, real(4, 3), -1)


def creation():
    yield Case("arange", aten.arange.start_step, 2, 11, 3, device=torch.device("cpu"), pin_memory=False)
    yield Case("arange_f32", aten.arange.start_step, 0, 1, 0.1, dtype=torch.float32, layout=torch.strided)
    yield Case("arange_end", aten.arange.default, 5)
    yield Case("arange_start", aten.arange.start, 3, 7)
    yield Case("iota", torch.ops.prims.iota.default, 4, start=1, step=2, dtype=torch.int64, device=torch.device("cpu"), requires_grad=False)
    yield Case("full", aten.full.default, [2, 3], -inf, dtype=torch.float32)
    yield Case("full_i64", aten.full.default, [2], 9007199254740993)
    yield Case("full_boolean", aten.full.default, [2], True, dtype=torch.bool)
    yield Case("full_like", aten.full_like.default, real(2, 3), 1.5, pin_memory=False, memory_format=torch.preserve_format)
    yield Case("fill", aten.fill.Scalar, whole(3), 4)
    yield Case("new_full", aten.new_full.default, real(1), [3], 2)
    yield Case("scalar_tensor", aten.scalar_tensor.default, 2.5, dtype=torch.float32)
    yield Case("ones", aten.ones.default, [2], dtype=torch.float16)
    yield Case("zeros", aten.zeros.default, [2])
    yield Case("ones_like", aten.ones_like.default, whole(3))
    yield Case("zeros_like", aten.zeros_like.default, real(3))
    yield Case("new_zeros", aten.new_zeros.default, real(1), [2, 2])
    yield Case("tril_indices", aten.tril_indices.default, 3, 4, -1)
    yield Case("triu_indices", aten.triu_indices.default, 3, 3, 1)


def matmul():
    yield Case("mm", aten.mm.default, real(2, 3), real(3, 4))
    yield Case("bmm", aten.bmm.default, real(2, 3, 4), real(2, 4, 2))
    yield Case("addmm", aten.addmm.default, real(4), real(2, 3), real(3, 4))
    yield Case("addmm_scaled", aten.addmm.default, real(2, 4), real(2, 3), real(3, 4), beta=0.5, alpha=2)
    yield Case("addmm_turned", aten.addmm.default, real(4), real(2, 3), real(4, 3).t())
    yield Case("baddbmm", aten.baddbmm.default, real(2, 1, 2), real(2, 3, 4), real(2, 4, 2), beta=0.5)
    yield Case("mm_i64", aten.mm.default, whole(2, 3), whole(3, 2))
    q, k, v = real(1, 2, 3, 4), real(1, 2, 5, 4), real(1, 2, 5, 4)
    flash = aten._scaled_dot_product_flash_attention_for_cpu.default
    yield Case("flash", flash, q, k, v, results=[0])
    yield Case("flash_causal", flash, q, real(1, 2, 3, 4), real(1, 2, 3, 4), 0.0, True, results=[0], scale=0.3)
    yield Case("flash_mask", flash, q, k, v, results=[0], attn_mask=real(1, 1, 3, 5))
    import transformers.integrations.moe  # noqa: F401  registers the operations
    fallback = torch.ops.transformers
    for ends in ([2, 2, 5], [0, 3, 5]):
        ends = torch.tensor(ends, dtype=torch.int32)
        name = "_".join(map(str, ends.tolist()))
        yield Case(f"grouped_{name}", fallback.grouped_mm_fallback.default, real(5, 3), real(3, 3, 2), ends)
        yield Case(f"grouped_backward_{name}", fallback.grouped_mm_fallback_backward.default, real(5, 3), real(3, 3, 2), ends, real(5, 2))
    rows, ends = real(5, 8, dtype=torch.bfloat16), torch.tensor([2, 5], dtype=torch.int32)
    yield Case("grouped_mm", aten._grouped_mm.default, rows, real(2, 8, 8, dtype=torch.bfloat16), ends)


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


def window():
    conv = aten.convolution.default
    yield Case("conv", conv, real(1, 2, 5, 6), real(3, 2, 3, 3), real(3), [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    yield Case("conv_strided", conv, real(2, 4, 7, 6), real(4, 2, 3, 2), None, [2, 1], [1, 0], [1, 2], False, [0, 0], 2)
    yield Case("conv_1d", conv, real(1, 2, 8), real(3, 2, 3), real(3), [2], [1], [1], False, [0], 1)
    yield Case("conv_3d", conv, real(1, 1, 3, 4, 4), real(2, 1, 2, 2, 2), None, [1, 1, 1], [0, 0, 0], [1, 1, 1], False, [0, 0, 0], 1)
    yield Case("conv_transposed", conv, real(1, 4, 3, 3), real(4, 3, 3, 2), real(3), [2, 1], [1, 0], [1, 1], True, [1, 0], 1)
    yield Case("conv_transposed_groups", conv, real(1, 4, 4), real(4, 2, 3), None, [2], [3], [2], True, [1], 2)
    backward = aten.convolution_backward.default
    all_three = [True, True, True]
    yield Case("conv_backward", backward, real(2, 3, 5, 6), real(2, 2, 5, 6), real(3, 2, 3, 3), [3], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, all_three)
    yield Case("conv_backward_strided", backward, real(2, 4, 4, 4), real(2, 4, 8, 7), real(4, 2, 3, 2), [4], [2, 1], [1, 0], [1, 3], False, [0, 0], 2, all_three)
    yield Case("conv_backward_depthwise", backward, real(1, 4, 3, 3), real(1, 4, 6, 6), real(4, 1, 3, 3), [0], [2, 2], [1, 1], [1, 1], False, [0, 0], 4, [True, True, False])
    yield Case("conv_backward_transposed", backward, real(1, 3, 6, 4), real(1, 4, 3, 3), real(4, 3, 3, 2), [3], [2, 1], [1, 0], [1, 1], True, [1, 0], 1, all_three)
    yield Case("conv_transposed_wide", conv, real(1, 2, 3, 3), real(2, 3, 2, 1), real(3), [3, 2], [0, 0], [1, 1], True, [1, 1], 1)
    yield Case("conv_transposed_dilated", conv, real(1, 2, 4, 3), real(2, 3, 2, 3), None, [2, 3], [1, 2], [3, 2], True, [1, 0], 1)
    yield Case("conv_transposed_depthwise", conv, real(2, 3, 3, 4), real(3, 1, 3, 3), real(3), [2, 2], [1, 1], [1, 1], True, [1, 0], 3)
    yield Case("conv_backward_one_tap", backward, real(2, 3, 3, 4), real(2, 4, 5, 7), real(3, 4, 1, 1), [3], [2, 2], [0, 0], [1, 1], False, [0, 0], 1, all_three)
    yield Case("conv_backward_padded_tap", backward, real(1, 3, 4, 3), real(1, 2, 5, 4), real(3, 2, 1, 1), [0], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False])
    yield Case("conv_backward_uneven", backward, real(2, 2, 3, 3), real(2, 3, 8, 7), real(2, 3, 3, 2), [0], [2, 2], [0, 0], [1, 1], False, [0, 0], 1, [True, True, False])
    yield Case("conv_backward_depthwise_batch", backward, real(3, 2, 5, 4), real(3, 2, 5, 4), real(2, 1, 3, 3), [2], [1, 1], [1, 1], [1, 1], False, [0, 0], 2, all_three)
    yield Case("conv_backward_1d", backward, real(2, 3, 4), real(2, 2, 9), real(3, 2, 3), [3], [2], [1], [2], False, [0], 1, all_three)
    yield Case("conv_backward_transposed_groups", backward, real(1, 4, 7), real(1, 4, 3), real(4, 2, 3), [4], [2], [0], [1], True, [0], 2, all_three)
    pool = aten.max_pool2d_with_indices.default
    x = torch.randperm(2 * 3 * 7 * 6).reshape(2, 3, 7, 6).float()
    yield Case("max_pool", pool, x, [2, 2])
    yield Case("max_pool_padded", pool, x, [3, 2], [2, 1], [1, 0], [1, 2])
    yield Case("max_pool_ceil", pool, x, [3, 3], [2, 2], [1, 1], [1, 1], True)
    yield Case("max_pool_unbatched", pool, x[0].clone(), [2, 2])
    yield Case("max_pool3d", aten.max_pool3d_with_indices.default, torch.randperm(64).reshape(1, 1, 4, 4, 4).float(), [2, 2, 2])
    value, positions = pool(x, [3, 3], [2, 2], [1, 1])
    yield Case("max_pool_backward", aten.max_pool2d_with_indices_backward.default, real(*value.shape), x, [3, 3], [2, 2], [1, 1], [1, 1], False, positions)
    y = real(1, 2, 7, 6)
    average = aten.avg_pool2d.default
    yield Case("avg_pool", average, y, [2, 2])
    yield Case("avg_pool_padded", average, y, [3, 3], [2, 2], [1, 1])
    yield Case("avg_pool_inside", average, y, [3, 3], [2, 2], [1, 1], False, False)
    yield Case("avg_pool_ceil", average, y, [3, 3], [2, 2], [1, 1], True)
    yield Case("avg_pool_divisor", average, y, [3, 3], [2, 2], [1, 1], False, True, 5)
    yield Case("avg_pool1d", aten.avg_pool1d.default, real(1, 2, 7), [3], [2])
    yield Case("avg_pool3d", aten.avg_pool3d.default, real(1, 1, 4, 4, 4), [2, 2, 2])
    average_backward = aten.avg_pool2d_backward.default
    yield Case("avg_pool_backward", average_backward, real(1, 2, 4, 3), y, [3, 3], [2, 2], [1, 1], False, True, None)
    yield Case("avg_pool_backward_inside", average_backward, real(1, 2, 4, 3), y, [3, 3], [2, 2], [1, 1], False, False, None)
    yield Case("adaptive", aten._adaptive_avg_pool2d.default, y, [7, 3])
    yield Case("adaptive_uneven", aten._adaptive_avg_pool2d.default, y, [3, 4])
    yield Case("adaptive_one", aten._adaptive_avg_pool2d.default, y, [1, 1])
    yield Case("adaptive3d", aten._adaptive_avg_pool3d.default, real(1, 1, 4, 4, 5), [2, 2, 3])
    yield Case("adaptive1d", aten.adaptive_avg_pool1d.default, real(1, 2, 6), [3])
    yield Case("adaptive_backward", aten._adaptive_avg_pool2d_backward.default, real(1, 2, 3, 4), y)
    for corners in (False, True):
        yield Case(f"bilinear_{corners}".lower(), aten.upsample_bilinear2d.vec, real(1, 1, 3, 4), [5, 7], corners, None)
        yield Case(f"bicubic_{corners}".lower(), aten.upsample_bicubic2d.vec, real(1, 1, 4, 4), [6, 7], corners, None)
    yield Case("bilinear_scales", aten.upsample_bilinear2d.vec, real(1, 1, 3, 4), None, False, [1.5, 2.0])
    yield Case("bilinear_sized", aten.upsample_bilinear2d.default, real(1, 1, 3, 4), [5, 7], False, None, None)
    yield Case("linear1d", aten.upsample_linear1d.vec, real(1, 2, 4), [7], False, None)
    yield Case("trilinear", aten.upsample_trilinear3d.vec, real(1, 1, 2, 3, 2), [3, 4, 4], False, None)
    yield Case("nearest", aten.upsample_nearest2d.vec, real(1, 1, 3, 4), None, [2.0, 2.0])
    yield Case("nearest_sized", aten.upsample_nearest2d.default, real(1, 1, 3, 4), [5, 3])
    yield Case("nearest1d", aten.upsample_nearest1d.vec, real(1, 2, 4), [7], None)


def gather():
    x = real(4, 3, 5)
    yield Case("index", aten.index.Tensor, x, [None, torch.tensor([2, -1])])
    yield Case("index_two", aten.index.Tensor, x, [torch.tensor([[0], [-1]]), torch.tensor([1, 2])])
    yield Case("index_apart", aten.index.Tensor, x, [torch.tensor([0, 3]), None, torch.tensor([4, -5])])
    yield Case("index_later", aten.index.Tensor, x, [None, torch.tensor([0, 2]), torch.tensor([1, 3])])
    yield Case("unsafe_index", aten._unsafe_index.Tensor, x, [torch.tensor([1, 2]), torch.tensor([0, 1])])
    yield Case("index_put", aten.index_put.default, x, [torch.tensor([2, 0])], real(2, 3, 5))
    yield Case("index_put_two", aten.index_put.default, x, [torch.tensor([2, 0]), None, torch.tensor([1, -1])], real(2, 3))
    yield Case("index_put_later", aten.index_put.default, x, [None, torch.tensor([0, 2])], real(4, 2, 5))
    yield Case("index_put_add", aten.index_put.default, x, [torch.tensor([1, 1, 3])], real(3, 1, 5), True)
    yield Case("index_put_mask", aten.index_put.default, x, [truth(4, 3)], torch.tensor(7.0))
    yield Case("gather", aten.gather.default, x, 1, whole(2, 4, 5, low=0, high=3))
    yield Case("scatter", aten.scatter.src, x, 2, torch.tensor([[[0, 4], [2, 1]]]), real(2, 2, 3))
    yield Case("scatter_value", aten.scatter.value, x, 0, torch.tensor([[[1, 2]]]), 9)
    yield Case("scatter_add", aten.scatter_add.default, x, 1, whole(4, 3, 5, low=0, high=3), real(4, 3, 5))
    for reduce in ("sum", "prod", "amax", "amin"):
        yield Case(f"scatter_reduce_{reduce}", aten.scatter_reduce.two, x, 1, whole(4, 3, 5, low=0, high=3), real(4, 3, 5), reduce)
    yield Case("embedding", aten.embedding.default, real(6, 3), whole(2, 4, low=0, high=6), 1)
    yield Case("embedding_backward", aten.embedding_dense_backward.default, real(2, 4, 3), whole(2, 4, low=0, high=6), 6, 1, False)
    yield Case("index_select", aten.index_select.default, x, -1, torch.tensor([3, 0, 0]))
    yield Case("masked_fill", aten.masked_fill.Scalar, x, truth(3, 5), -inf)
    grid = real(1, 3, 2, 2, low=-1.2, high=1.2)
    for mode in (0, 1, 2):
        for padding in (0, 1, 2):
            yield Case(f"grid_{mode}_{padding}", aten.grid_sampler_2d.default, real(1, 2, 4, 5), grid, mode, padding, padding == 1)
    yield from bags()


def bags():
    """Of embedding_bag, beside what torch computes when asked for gradients."""
    weight, ids = real(6, 3), torch.tensor([1, 4, 4, 0, 5, 2, 1])
    forward, backward = aten._embedding_bag.default, aten._embedding_bag_backward.default
    for name, mode, offsets, factors, last, padding in (
            ("sum", 0, [0, 3, 3], None, False, -1), ("mean", 1, [0, 3, 3], None, False, -1), ("padded", 1, [0, 2, 5], None, False, 4),
            ("weighted", 0, [0, 4, 5], real(7), False, -1), ("last", 0, [0, 4, 7], None, True, -1)):
        given = (weight, ids, torch.tensor(offsets), False, mode, False, factors, last, padding)
        yield Case(f"bag_{name}", forward, *given, results=[0])
        bag_of, sizes, largest = forward(*given)[1:]
        grad = real(len(offsets) - last, 3)
        yield Case(f"bag_{name}_backward", backward, grad, ids, torch.tensor(offsets), bag_of, sizes, largest, 6, False, mode, False, factors, padding)
    yield Case("bag_forward_only", aten._embedding_bag_forward_only.default, weight, ids, torch.tensor([0, 2]), results=[0])


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


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for family in (pointwise, shape, creation, matmul, reduction, normalization, window, gather, draws):
        torch.manual_seed(1)
        random.seed(1)
        (folder / f"{family.__name__}.cases").write_text("".join(case.text() for case in family()))


if __name__ == "__main__":
    main()
