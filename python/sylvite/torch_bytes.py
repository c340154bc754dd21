"""Floats of eight bits (`float8_e4m3fn`, `float8_e5m2`): bytes inside of a graph, from and to which others are converted by their bits.

Decompositions leave of them what moves elements, and views of their memory as bytes. A rewrite makes those bytes, too.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.fx import GraphModule, Node

aten = torch.ops.aten
Tensor = torch.Tensor

#: What each has: bits of the mantissa, the bias of the exponent, the bits of the least f32 that is too large, and the least byte that is no finite number.
_FORMS = {torch.float8_e4m3fn: (3, 7, 1087 << 20, 0x7F), torch.float8_e5m2: (2, 15, 143 << 23, 0x7C)}

#: Of an f32: bits of the mantissa, the bias of the exponent, the exponent's bits alone; and what is no number of eight bits.
_MANTISSA, _BIAS, _INFINITE, _NO_NUMBER = 23, 127, 0xFF << 23, 0x7F


@functools.cache
def _too_large(dtype: torch.dtype) -> int:
    """What becomes of numbers that are too large: releases of torch differ."""
    with unset_fake_temporarily(), disable_proxy_modes_tracing():
        return int(torch.tensor([float("inf")]).to(dtype).view(torch.uint8))


def _from_byte(byte: Tensor, dtype: torch.dtype) -> Tensor:
    """As f32."""
    mantissa, bias, _, infinite = _FORMS[dtype]
    sign, bits = byte.to(torch.int32) >> 7, byte.to(torch.int32) & 0x7F
    small = bits.to(torch.float32) * 2.0 ** (1 - bias - mantissa)
    whole = aten.view.dtype((bits << _MANTISSA - mantissa) + (_BIAS - bias << _MANTISSA), torch.float32)
    value = torch.where(bits < 1 << mantissa, small, whole)
    value = torch.where(bits == infinite, float("inf"), value)
    value = torch.where(bits > infinite if infinite < _NO_NUMBER else bits == _NO_NUMBER, float("nan"), value)
    return torch.where(sign == 1, -value, value)


def _to_byte(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Rounded to the nearest, to even ones between two."""
    mantissa, bias, least_large, _ = _FORMS[dtype]
    shift = _MANTISSA - mantissa
    bits = aten.view.dtype(x.to(torch.float32), torch.int32)
    sign, bits = (bits >> 24) & 0x80, bits & 0x7FFFFFFF
    # The sum of a small number and this one has what is wanted in its lowest bits, rounded.
    base = _BIAS - bias + shift + 1 << _MANTISSA
    offset = aten.view.dtype(torch.full((), base, dtype=torch.int32, device=x.device), torch.float32)
    small = aten.view.dtype(aten.view.dtype(bits, torch.float32) + offset, torch.int32) - base
    whole = bits + (bias - _BIAS << _MANTISSA) + (1 << shift - 1) - 1 + ((bits >> shift) & 1) >> shift
    found = torch.where(bits < _BIAS - bias + 1 << _MANTISSA, small, whole)
    found = torch.where((bits >= least_large) | (found == _NO_NUMBER), _too_large(dtype), found)
    found = torch.where(bits > _INFINITE, _NO_NUMBER, found)
    return (found | sign).to(torch.uint8)


def _convert(x: Any, dtype: torch.dtype) -> Any:
    if not isinstance(x, Tensor) or x.dtype == dtype or not {x.dtype, dtype} & _FORMS.keys() or x.is_complex() or dtype.is_complex:
        return NotImplemented
    if x.dtype in _FORMS:
        x = _from_byte(aten.view.dtype(x, torch.uint8), x.dtype)
    return aten.view.dtype(_to_byte(x, dtype), dtype) if dtype in _FORMS else x.to(dtype)


def _to_copy(x: Any, *, dtype: Any = None, device: Any = None, memory_format: Any = None, **more: Any) -> Any:
    """Of a tensor, or a number as score functions of flex_attention have."""
    if not isinstance(x, Tensor) or dtype is None or device not in (None, x.device) or memory_format not in (None, torch.preserve_format):
        return NotImplemented
    return _convert(x, dtype)


def _scaled_product(
    x: Tensor, y: Tensor, scale_x: Tensor, scale_y: Tensor, bias: Tensor | None = None, scale_result: Tensor | None = None,
    out_dtype: Any = None, use_fast_accum: bool = False,
) -> Any:  # fmt: skip
    """On a CPU: a GPU has instructions for these, and torch kernels."""
    out_dtype = out_dtype or x.dtype
    scales = ((scale_x, (x.shape[0], 1)), (scale_y, (1, y.shape[1])))
    if x.device.type != "cpu" or scale_result is not None or not {x.dtype, y.dtype} <= _FORMS.keys() or out_dtype in _FORMS:
        return NotImplemented
    if any(scale.dtype != torch.float32 or scale.numel() != 1 and scale.shape != shape for scale, shape in scales):
        return NotImplemented
    product = x.to(torch.float32) @ y.to(torch.float32) * scale_x * scale_y
    return (product if bias is None else product + bias.to(torch.float32)).to(out_dtype)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten._to_copy.default: _to_copy,
    aten._scaled_mm.default: _scaled_product,
    torch.ops.prims.convert_element_type.default: _convert,
}

#: What moves elements, whatever their type is.
_MOVES = {
    aten.alias.default, aten.cat.default, aten.clone.default, aten.copy.default, aten.copy_.default, aten.detach.default, aten.embedding.default, aten.expand.default,
    aten.flip.default, aten.gather.default, aten.index.Tensor, aten.index_select.default, aten.permute.default, aten.select.int, aten.slice.Tensor, aten.slice_scatter.default,
    aten.split.Tensor, aten.split_with_sizes.default, aten.squeeze.dim, aten.squeeze.dims, aten.t.default, aten.transpose.int, aten.unsqueeze.default,
    aten.view.default, aten.view.dtype, aten.as_strided.default, operator.getitem,
}  # fmt: skip


def _is_float8(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype in _FORMS


def _has_float8(node: Node) -> bool:
    value = node.meta.get("val")
    return any(map(_is_float8, value if isinstance(value, (list, tuple)) else [value]))


def _as_bytes(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_as_bytes, value))
    return value.view(torch.uint8) if _is_float8(value) else value


def make_bytes(module: GraphModule) -> bool:
    """False where there are none of these numbers, or a node does more than move them: nothing is changed then."""
    found = [node for node in module.graph.nodes if _has_float8(node)]
    users = [user for node in found for user in node.users if user.op != "output"]
    if not found or any(node.op != "placeholder" and node.target not in _MOVES for node in (*found, *users)):
        return False
    for node in found:
        values = node.meta["val"]
        with (values[0] if isinstance(values, (list, tuple)) else values).fake_mode:
            node.meta["val"] = _as_bytes(values)
    for node in module.graph.find_nodes(op="call_function", target=aten.view.dtype):
        if node.args[1] in _FORMS:
            node.args = (node.args[0], torch.uint8)
        if node.args[0].meta["val"].dtype == node.args[1]:
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
    module.recompile()
    return True


def float8_of(node: Any) -> Any:
    """The node's type where that is one of these."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value.dtype if _is_float8(value) else None
