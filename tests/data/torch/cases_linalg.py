"""Cases of special functions, and of linear algebra."""

import torch

from case import Case, aten, inf, real, whole


def special():
    x = torch.tensor([0.25, 0.5, 1.0, 1.5, 2.0, 3.25, 7.5, 8.5, -0.5, -1.25, -7.75])
    poles = torch.tensor([0.0, -1.0, inf, -3.0])
    nan = float("nan")
    for name in ("lgamma", "digamma"):
        yield Case(name, getattr(aten, name).default, x)
        yield Case(f"{name}_far", getattr(aten, name).default, torch.tensor([1e4, 1e30]))
        yield Case(f"{name}_f64", getattr(aten, name).default, x.double())
        yield Case(f"{name}_bf16", getattr(aten, name).default, x[:8].bfloat16())
    yield Case("lgamma_poles", aten.lgamma.default, torch.tensor([0.0, -1.0, inf, -inf, nan]))
    yield Case("lgamma_i64", aten.lgamma.default, whole(4, low=1))
    yield Case("digamma_poles", aten.digamma.default, poles)
    yield Case("polygamma", aten.polygamma.default, 0, x)
    yield Case("polygamma_one", aten.polygamma.default, 1, x)
    unit = torch.tensor([-1.0, -0.999, -0.5, 0.0, 1e-3, 0.3, 0.71, 0.99999, 1.0])
    yield Case("erfinv", aten.erfinv.default, unit)
    yield Case("erfinv_f64", aten.erfinv.default, unit.double())
    yield Case("erfinv_outside", aten.erfinv.default, torch.tensor([1.5, -2.0, nan]))
    yield Case("ndtri", aten.special_ndtri.default, torch.tensor([0.0, 1e-6, 0.01, 0.5, 0.9, 1.0]))
    near, far = torch.tensor([-2.0, 0.0, 0.5, 3.0]), torch.tensor([-40.0, -17.5, 13.5, 14.5, 18.5, 60.0])
    for name in ("i0", "special_i1", "special_i0e", "special_i1e", "special_bessel_j0", "special_bessel_j1"):
        yield Case(name, getattr(aten, name).default, near)
        for i in range(0, 6, 2):
            yield Case(f"{name}_far_{i}", getattr(aten, name).default, far[i:i + 2].clone())
    yield Case("gcd", aten.gcd.default, torch.tensor([12, -12, 0, 7, 0, 1134903170]), torch.tensor([18, 18, 5, 0, 0, 1836311903]))
    yield Case("gcd_i32", aten.gcd.default, whole(2, 3, low=-50, high=50, dtype=torch.int32), whole(3, low=-9, high=9, dtype=torch.int32))
    yield Case("gcd_i8", aten.gcd.default, torch.tensor([-120, 96, -100, 0, 127], dtype=torch.int8), torch.tensor([96, -64, 75, -120, 127], dtype=torch.int8))
    yield Case("gcd_u8", aten.gcd.default, torch.tensor([240, 255, 0], dtype=torch.uint8), torch.tensor([250, 170, 200], dtype=torch.uint8))
    yield Case("lcm", aten.lcm.default, torch.tensor([4, -6, 0, 0]), torch.tensor([6, 8, 5, 0]))
    signs = torch.tensor([1.0, -1.0, 0.0, -0.0, inf, -inf])
    yield Case("signbit", aten.signbit.default, signs)
    yield Case("signbit_i64", aten.signbit.default, torch.tensor([1, 0, -3]))
    yield Case("copysign", aten.copysign.Tensor, real(6), signs)
    yield Case("copysign_number", aten.copysign.Scalar, real(6), -2.0)


def positive(*batch, n):
    x = real(*batch, n, n)
    return x @ x.mT + n * torch.eye(n)


def linalg():
    for n in (1, 2, 5):
        yield Case(f"cholesky_{n}", aten.linalg_cholesky_ex.default, positive(2, n=n))
    yield Case("cholesky_upper", aten.linalg_cholesky_ex.default, torch.triu(positive(n=4)), upper=True)
    yield Case("cholesky_f64", aten.linalg_cholesky_ex.default, positive(n=4).double())
    failing = torch.stack([positive(n=3), torch.diag(torch.tensor([1.0, -1.0, 2.0]))])
    yield Case("cholesky_fails", aten.linalg_cholesky_ex.default, failing, results=[1])
    lower = torch.tril(real(2, 4, 4), -1) + 3 * torch.eye(4)
    for upper in (False, True):
        a = lower.mT if upper else lower
        solve = aten.linalg_solve_triangular.default
        yield Case(f"triangle_{upper}".lower(), solve, a.contiguous(), real(2, 4, 3), upper=upper)
        yield Case(f"triangle_right_{upper}".lower(), solve, a.contiguous(), real(2, 3, 4), upper=upper, left=False)
        yield Case(f"triangle_ones_{upper}".lower(), solve, a.contiguous(), real(4, 2), upper=upper, unitriangular=True)
    for name, a in {"2": real(3, 2, 2), "5": real(2, 5, 5), "whole": real(4, 4), "singular": torch.tensor([[1.0, 2.0], [2.0, 4.0]]),
                    "zeros": torch.zeros(3, 3)}.items():
        yield Case(f"factors_{name}", aten.linalg_lu_factor_ex.default, a)
    packed, pivots, _ = aten.linalg_lu_factor_ex.default(real(2, 5, 5) + 2 * torch.eye(5))
    for left in (True, False):
        for adjoint in (False, True):
            b = real(2, 5, 3) if left else real(2, 3, 5)
            yield Case(f"by_factors_{left}_{adjoint}".lower(), aten.linalg_lu_solve.default, packed.contiguous(), pivots, b, left=left,
                       adjoint=adjoint)
    yield Case("by_factors_of_one", aten.linalg_lu_solve.default, packed[0].contiguous(), pivots[0], real(3, 5, 2))
    for name, a in {"tall": real(2, 5, 3), "wide": real(3, 5), "square": real(2, 4, 4), "column": real(4, 1), "flat": torch.eye(3)}.items():
        yield Case(f"qr_{name}", aten.linalg_qr.default, a)
        yield Case(f"qr_{name}_complete", aten.linalg_qr.default, a, "complete")
    yield Case("qr_r", aten.linalg_qr.default, real(4, 3), "r", results=[1])
