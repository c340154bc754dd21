"""Linear algebra that torch's core table leaves whole, by few operations: triangular factors and systems.

Each function computes what its operation does. It returns NotImplemented for what it does not serve, which torch runs then.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def _by_columns(x: Tensor) -> Tensor:
    """Columns behind each other in memory, as LAPACK leaves them."""
    return x.mT.contiguous().mT


def _factors(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of the transpose of real numbers where that lies as LAPACK has it, as torch's own gradients of determinants expect them."""
    return aten.linalg_lu_factor_ex.default(a.mT if a.is_contiguous() and not a.is_complex() else a)


def _diagonal_and_sign(packed: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor]:
    places = torch.arange(1, packed.shape[-1] + 1, device=packed.device, dtype=pivots.dtype)
    sign = torch.where(pivots == places, 1.0, -1.0).to(packed.real.dtype).prod(-1)
    return packed.diagonal(dim1=-2, dim2=-1), sign


def _det(a: Tensor) -> Any:
    packed, pivots, _ = _factors(a)
    diagonal, sign = _diagonal_and_sign(packed, pivots)
    return diagonal.prod(-1) * sign, packed, pivots


def _slogdet(a: Tensor) -> Any:
    packed, pivots, _ = _factors(a)
    diagonal, sign = _diagonal_and_sign(packed, pivots)
    return diagonal.sgn().prod(-1) * sign, diagonal.abs().log().sum(-1), packed, pivots


def _solve(a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    if check_errors:
        return NotImplemented
    packed, pivots, info = aten.linalg_lu_factor_ex.default(a)
    is_vector = b.dim() == 1 or (a.dim() - 1 == b.dim() and b.shape == a.shape[:-1])
    x = aten.linalg_lu_solve.default(packed, pivots, b.unsqueeze(-1) if is_vector else b, left=left)
    laid = x.squeeze(-1) if is_vector else _by_columns(x) if left else x.contiguous()
    return laid, packed, pivots, info


def _real_matrix(a: Tensor) -> Tensor:
    """The real matrix of a square complex one's parts: those of products are the products of those."""
    return torch.cat((torch.cat((a.real, -a.imag), -1), torch.cat((a.imag, a.real), -1)), -2)


def _complex_matrix(a: Tensor) -> Tensor:
    size = a.shape[-1] // 2
    return torch.complex(a[..., :size, :size], a[..., size:, :size])


def _inverse(a: Tensor, *, check_errors: bool = False) -> Any:
    if check_errors:
        return NotImplemented
    if a.is_complex():
        made, info = aten.linalg_inv_ex.default(_real_matrix(a))
        return _by_columns(_complex_matrix(made)), info
    packed, pivots, info = aten.linalg_lu_factor_ex.default(a)
    unit = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device).expand_as(a)
    return _by_columns(aten.linalg_lu_solve.default(packed, pivots, unit)), info


# Systems of complex numbers

#: Beyond, real systems of both parts are left to LAPACK.
_MOST_COLUMNS = 64


def _parts_in_turn(a: Tensor) -> Tensor:
    """The real matrix with two rows and two columns for each number: triangles with real diagonals stay triangles."""
    pairs = torch.stack((torch.stack((a.real, -a.imag), -1), torch.stack((a.imag, a.real), -1)), -3)
    return pairs.flatten(-4, -3).flatten(-2)


def _numbers_of_parts(a: Tensor) -> Tensor:
    """The complex matrix of such a real one, of which each second column says all."""
    return torch.complex(a[..., ::2, ::2], a[..., 1::2, ::2])


def _solve_triangle(a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """Of complex numbers: rows are divided by their diagonal first, behind which ones are left."""
    if not b.is_complex() or a.shape[-1] > _MOST_COLUMNS:
        return NotImplemented
    if not left:
        return _solve_triangle(a.mT, b.mT, upper=not upper, unitriangular=unitriangular).mT.contiguous()
    if not unitriangular:
        diagonal = a.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
        a, b = a / diagonal, b / diagonal
    within = a.triu(1) if upper else a.tril(-1)
    rows = torch.view_as_real(b.mT.contiguous()).flatten(-2).mT
    x = aten.linalg_solve_triangular.default(_parts_in_turn(within), rows, upper=upper, unitriangular=True)
    return _by_columns(torch.complex(x[..., ::2, :], x[..., 1::2, :]))


def _cholesky(a: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Of complex numbers. Reads one triangle, and the real parts of the diagonal."""
    if not a.is_complex() or check_errors or a.shape[-1] > _MOST_COLUMNS:
        return NotImplemented
    given = a.mH if upper else a
    lower = given.tril(-1) + torch.diag_embed(given.real.diagonal(dim1=-2, dim2=-1))
    made, info = aten.linalg_cholesky_ex.default(_parts_in_turn(lower))
    root = _numbers_of_parts(made)
    return _by_columns(root.mH if upper else root), (info + 1) // 2


def _solve_by_factors(packed: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False) -> Any:
    if not b.is_complex() or packed.shape[-1] > _MOST_COLUMNS:
        return NotImplemented
    if not left:
        return _solve_by_factors(packed, pivots, b.mH, adjoint=not adjoint).mH.contiguous()
    order = aten.lu_unpack.default(packed.real, pivots, False)[0].to(packed.dtype)
    if adjoint:
        y = _solve_triangle(packed.mH, b, upper=False)
        return _by_columns(order @ _solve_triangle(packed.mH, y, upper=True, unitriangular=True))
    y = _solve_triangle(packed, order.mT @ b, upper=False, unitriangular=True)
    return _by_columns(_solve_triangle(packed, y, upper=True))


def _cholesky_solve(b: Tensor, root: Tensor, upper: bool = False) -> Any:
    lower = root.mH if upper else root
    y = aten.linalg_solve_triangular.default(lower, b, upper=False)
    return _by_columns(aten.linalg_solve_triangular.default(lower.mH, y, upper=True))


def _cholesky_inverse(root: Tensor, upper: bool = False) -> Any:
    return _cholesky_solve(torch.eye(root.shape[-1], dtype=root.dtype, device=root.device).expand_as(root), root, upper)


def _triangular_solve(b: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    given, upper = (a.mT, not upper) if transpose else (a, upper)
    return aten.linalg_solve_triangular.default(given, b, upper=upper, unitriangular=unitriangular), a.clone()


#: Halvings that bring any matrix whose exponential is finite below 1. Each doubles an error.
_HALVINGS = 12
#: The series has so many blocks of as many powers.
_BLOCKS, _STEPS = 4, 5


def _exponential_series(x: Tensor) -> Tensor:
    """Of matrices below 2: what is left out is below 2^21 / 21!, and of those below 1 below 1 / 21!."""
    unit = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    powers = [unit, x]
    while len(powers) <= _STEPS:
        powers.append(powers[-1] @ x)
    result = powers[_STEPS] / math.factorial(_BLOCKS * _STEPS)
    for block in range(_BLOCKS - 1, -1, -1):
        result = result + sum(powers[i] / math.factorial(block * _STEPS + i) for i in range(_STEPS))
        result = result @ powers[_STEPS] if block else result
    return result


def _matrix_exp(a: Tensor) -> Any:
    """A series of what is halved so often that it converges at once, squared as often."""
    if a.is_complex():
        made = _matrix_exp(_real_matrix(a))
        return made if made is NotImplemented else _complex_matrix(made)
    if not a.is_floating_point():
        return NotImplemented
    if a.dtype in (torch.bfloat16, torch.float16):
        return _matrix_exp(a.float()).to(a.dtype)
    size = a.abs().sum(-2).amax(-1)[..., None, None]
    least = 1.0 if a.dtype == torch.float64 else 2.0
    halvings = (size / least).clamp(min=1.0).log2().ceil().clamp(max=_HALVINGS)
    result = _exponential_series(a * torch.exp2(-halvings))
    for i in range(_HALVINGS):
        result = torch.where(halvings > i, result @ result, result)
    return result


# Factors apart


def _unpack_factors(packed: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """Of square matrices. The exchanges are the solution of a system whose factors are ones."""
    size = packed.shape[-1]
    if packed.shape[-2] != size:
        return NotImplemented
    unit = torch.eye(size, dtype=packed.real.dtype, device=packed.device).expand_as(packed)
    none = packed.new_empty(0)
    order = aten.linalg_lu_solve.default(unit, pivots, unit).mT.contiguous().to(packed.dtype) if unpack_pivots else none
    if not unpack_data:
        return order, none, none
    return order, (packed.tril(-1) + unit).contiguous(), packed.triu().contiguous()


def _lu(a: Tensor, *, pivot: bool = True) -> Any:
    if not pivot or a.shape[-2] != a.shape[-1]:
        return NotImplemented
    packed, pivots, _ = aten.linalg_lu_factor_ex.default(a)
    return _unpack_factors(packed, pivots)


# Reflections


def _reflected(packed: Tensor, scales: Tensor, x: Tensor, transpose: bool = False) -> Tensor:
    """x times the product of reflections I - scale v vT, of which the first is the outermost: I - V T VT, where T is triangular."""
    count = scales.shape[-1]
    v = packed[..., :count]
    v = v.tril(-1) + torch.eye(v.shape[-2], count, dtype=v.dtype, device=v.device)
    among = torch.eye(count, dtype=v.dtype, device=v.device) + scales.unsqueeze(-1) * (v.mT @ v).triu(1)
    seen = v.mT @ x
    if transpose:
        return x - v @ (scales.unsqueeze(-1) * aten.linalg_solve_triangular.default(among.mT, seen, upper=False))
    return x - v @ aten.linalg_solve_triangular.default(among, scales.unsqueeze(-1) * seen, upper=True)


def _householder_product(packed: Tensor, scales: Tensor) -> Any:
    if packed.is_complex() or not scales.shape[-1]:
        return NotImplemented
    unit = torch.eye(*packed.shape[-2:], dtype=packed.dtype, device=packed.device)
    return _by_columns(_reflected(packed, scales, unit))


def _ormqr(packed: Tensor, scales: Tensor, x: Tensor, left: bool = True, transpose: bool = False) -> Any:
    if packed.is_complex() or not scales.shape[-1]:
        return NotImplemented
    return _by_columns(_reflected(packed, scales, x, transpose) if left else _reflected(packed, scales, x.mT, not transpose).mT)


#: Beside torch's tables.
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten._linalg_det.default: _det,
    aten._linalg_slogdet.default: _slogdet,
    aten._linalg_solve_ex.default: _solve,
    aten.cholesky_inverse.default: _cholesky_inverse,
    aten.cholesky_solve.default: _cholesky_solve,
    aten.linalg_cholesky_ex.default: _cholesky,
    aten.linalg_householder_product.default: _householder_product,
    aten.linalg_inv_ex.default: _inverse,
    aten.linalg_lu.default: _lu,
    aten.linalg_lu_solve.default: _solve_by_factors,
    aten.linalg_matrix_exp.default: _matrix_exp,
    aten.linalg_solve_triangular.default: _solve_triangle,
    aten.lu_unpack.default: _unpack_factors,
    aten.ormqr.default: _ormqr,
    aten.triangular_solve.default: _triangular_solve,
}
