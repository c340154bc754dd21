"""Cases of complex numbers."""

import torch

from case import ComplexCase, aten, inf, real, truth


def turned(*shape):
    return torch.view_as_complex(real(*shape, 2))


def complex():  # noqa: A001  the name of the family
    x, y = turned(2, 3), turned(3)
    for name in ("add", "sub", "mul", "div"):
        op = getattr(aten, name)
        yield ComplexCase(name, op.Tensor, x, y)
        yield ComplexCase(f"{name}_real", op.Tensor, x, real(3, low=0.5))
        yield ComplexCase(f"{name}_of_real", op.Tensor, real(3), y)
        yield ComplexCase(f"{name}_number", op.Tensor, x, 1.5)
    yield ComplexCase("add_alpha", aten.add.Tensor, x, y, alpha=2)
    yield ComplexCase("div_far", aten.div.Tensor, torch.tensor([1e25 + 2e25j, 3e-25j]), torch.tensor([2e25 - 1e25j, 1e-25 + 0j]))
    yield ComplexCase("add_of_integers", aten.add.Tensor, x, torch.tensor([1, 2, 3]))
    yield ComplexCase("add_scalar", aten.add.Scalar, x, 2)
    yield ComplexCase("sub_scalar", aten.sub.Scalar, x, 2, 3)
    yield ComplexCase("mul_scalar", aten.mul.Scalar, x, 2)
    yield ComplexCase("div_scalar", aten.div.Scalar, x, 4)
    for name in ("neg", "abs", "angle", "exp", "reciprocal", "_conj", "conj_physical", "clone", "alias", "detach", "lift_fresh_copy", "t"):
        yield ComplexCase(f"complex_{name}", getattr(aten, name).default, x)
    yield ComplexCase("complex_abs_far", aten.abs.default, torch.tensor([3e30 + 4e30j, 0j, complex_infinity()]))
    yield ComplexCase("polar", aten.polar.default, real(4), real(4))
    yield ComplexCase("compose", aten.complex.default, real(4), real(4))
    yield ComplexCase("compose_broadcast", aten.complex.default, real(2, 1), real(3))
    yield ComplexCase("complex_mm", aten.mm.default, x, turned(3, 2))
    yield ComplexCase("complex_slice_backward", aten.slice_backward.default, turned(2, 1), [2, 3], 1, 1, 2, 1)
    yield ComplexCase("complex_select_backward", aten.select_backward.default, turned(2), [2, 3], 1, 0)
    yield ComplexCase("complex_bmm", aten.bmm.default, turned(2, 1, 3), turned(2, 3, 2))
    for name, op, arguments in (
        ("view", aten.view.default, ([6],)), ("unsafe_view", aten._unsafe_view.default, ([3, 2],)), ("reshape", aten.reshape.default, ([3, 2],)),
        ("permute", aten.permute.default, ([1, 0],)), ("transpose", aten.transpose.int, (0, 1)), ("expand", aten.expand.default, ([4, 2, 3],)),
        ("unsqueeze", aten.unsqueeze.default, (-1,)), ("slice", aten.slice.Tensor, (1, 1, 3)), ("select", aten.select.int, (1, -1)),
        ("slice_scatter", aten.slice_scatter.default, (turned(2, 1), 1, 1, 2)), ("select_scatter", aten.select_scatter.default, (turned(2), 1, 0)),
        ("repeat", aten.repeat.default, ([2, 1],)), ("flip", aten.flip.default, ([1],)), ("roll", aten.roll.default, ([1], [0])),
        ("pad", aten.constant_pad_nd.default, ([1, 2],)), ("diagonal", aten.diagonal.default, ()), ("unfold", aten.unfold.default, (1, 2, 1)),
        ("sum", aten.sum.default, ()), ("sum_dim", aten.sum.dim_IntList, ([1],)), ("mean", aten.mean.default, ()), ("mean_dim", aten.mean.dim, ([0],)),
        ("cumsum", aten.cumsum.default, (1,)), ("index", aten.index.Tensor, ([None, torch.tensor([2, 0])],)),
        ("index_select", aten.index_select.default, (1, torch.tensor([2, 0]))), ("gather", aten.gather.default, (1, torch.tensor([[2], [0]]))),
        ("index_put", aten.index_put.default, ([torch.tensor([1])], turned(1, 3))), ("scatter", aten.scatter.src, (1, torch.tensor([[2], [0]]), turned(2, 1))),
        ("scatter_add", aten.scatter_add.default, (1, torch.tensor([[2], [0]]), turned(2, 1))), ("tril", aten.tril.default, ()), ("triu", aten.triu.default, ()),
        ("copy", aten.copy.default, (y,)), ("to_c128", aten._to_copy.default, ()), ("diagonal_scatter", aten.diagonal_scatter.default, (turned(2),)),
        ("zeros_like", aten.zeros_like.default, ()), ("ones_like", aten.ones_like.default, ()), ("full_like", aten.full_like.default, (2,)),
        ("new_zeros", aten.new_zeros.default, ([2],)), ("new_full", aten.new_full.default, ([2], 3)),
        ("split", aten.split.Tensor, (2, 1)), ("split_with_sizes", aten.split_with_sizes.default, ([1, 2], 1)), ("unbind", aten.unbind.int, (0,)),
    ):  # fmt: skip
        keywords = {"dtype": torch.complex128} if name == "to_c128" else {}
        yield ComplexCase(f"complex_{name}", op, x, *arguments, **keywords)
    yield ComplexCase("complex_squeeze", aten.squeeze.default, turned(1, 2))
    yield ComplexCase("complex_squeeze_dim", aten.squeeze.dim, turned(1, 2), 0)
    yield ComplexCase("complex_squeeze_dims", aten.squeeze.dims, turned(1, 2, 1), [0, 2])
    yield ComplexCase("complex_cat", aten.cat.default, [x, turned(1, 3)], 0)
    yield ComplexCase("complex_cat_real", aten.cat.default, [x, real(1, 3)], 0)
    yield ComplexCase("complex_stack", aten.stack.default, [x, x], 0)
    yield ComplexCase("complex_where", aten.where.self, truth(2, 3), x, y)
    yield ComplexCase("to_complex", aten._to_copy.default, real(3), dtype=torch.complex64)
    yield ComplexCase("to_complex_of_integers", aten._to_copy.default, torch.tensor([1, 0, -2]), dtype=torch.complex64)
    yield ComplexCase("complex_to_truth", aten._to_copy.default, torch.tensor([0j, 1j, 2 + 0j]), dtype=torch.bool)
    for name in ("full", "zeros", "ones"):
        yield ComplexCase(f"complex_{name}", getattr(aten, name).default, [2], *([1.5] if name == "full" else []), dtype=torch.complex64)
    yield ComplexCase("complex_scalar_tensor", aten.scalar_tensor.default, 2.5, dtype=torch.complex64)
    yield from transforms()
    yield from functions(turned(2, 3))


def functions(x):
    for name in ("log", "sqrt", "rsqrt", "sin", "cos", "sinh", "cosh", "tanh"):
        yield ComplexCase(f"complex_{name}", getattr(aten, name).default, x)
    yield ComplexCase("complex_conj_physical_made", aten._conj_physical.default, x)
    for name in ("add", "sub"):
        yield ComplexCase(f"{name}_to_number", getattr(aten, name).Tensor, 1.5, x, alpha=2)
    yield ComplexCase("complex_sqrt_axes", aten.sqrt.default, torch.tensor([4 + 0j, -4 + 0j, 9j, -9j, 0j, -1e-8 + 1e4j]))
    yield ComplexCase("complex_tanh_far", aten.tanh.default, torch.tensor([90 + 1j, -90 + 2j]))
    for name, exponent in (("square", 2), ("cube", 3), ("down", -1.5), ("root", 0.5)):
        yield ComplexCase(f"complex_pow_{name}", aten.pow.Tensor_Scalar, x, exponent)
    for name in ("eq", "ne"):
        yield ComplexCase(f"complex_{name}", getattr(aten, name).Tensor, x, torch.where(truth(2, 3), x, x + 1))
        yield ComplexCase(f"complex_{name}_number", getattr(aten, name).Scalar, torch.tensor([2 + 0j, 2 + 1j]), 2)


def transforms():
    for length in (4, 5):
        signal, spectrum = real(2, length), turned(2, length)
        for norm in (0, 1, 2):
            name = f"{length}_{norm}"
            yield ComplexCase(f"r2c_{name}", aten._fft_r2c.default, signal, [1], norm, True)
            yield ComplexCase(f"r2c_whole_{name}", aten._fft_r2c.default, signal, [1], norm, False)
            yield ComplexCase(f"c2c_{name}", aten._fft_c2c.default, spectrum, [1], norm, True)
            yield ComplexCase(f"c2c_back_{name}", aten._fft_c2c.default, spectrum, [1], norm, False)
            yield ComplexCase(f"c2r_{name}", aten._fft_c2r.default, turned(2, length // 2 + 1), [1], norm, length)
    yield ComplexCase("r2c_plane", aten._fft_r2c.default, real(2, 3, 4), [1, 2], 0, True)
    yield ComplexCase("c2c_plane", aten._fft_c2c.default, turned(2, 3, 4), [0, 2], 1, False)
    yield ComplexCase("c2r_plane", aten._fft_c2r.default, turned(2, 3, 3), [1, 2], 2, 4)
    yield ComplexCase("complex_factors", aten.linalg_lu_factor_ex.default, turned(2, 3, 3))
    yield ComplexCase("complex_factors_singular", aten.linalg_lu_factor_ex.default, turned(2, 3, 3) * torch.tensor([1.0, 0.0, 1.0]))


def complex_infinity():
    return -inf + 1j
