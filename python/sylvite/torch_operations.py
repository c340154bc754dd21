"""Operations of the package: what torch's tables would dissolve, and has kernels as a whole."""

import functools
import math
import types
from collections.abc import Callable
from typing import Any

import torch
from torch._higher_order_ops.flex_attention import sdpa_dense

from .torch_graph import dense_order

# Attention


@torch.library.custom_op("sylvite::attention", mutates_args=())
def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> torch.Tensor:
    """Scaled dot product attention without dropout, as one operation, which the core table would dissolve."""
    result = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa)
    return _attention_result(query, value).copy_(result)


@attention.register_fake
def _(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *others: Any) -> torch.Tensor:
    return _attention_result(query, value)


def _attention_result(query: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    shape = [*query.shape[:-1], value.shape[-1]]
    if len(shape) < 4:
        return query.new_empty(shape)
    # Heads behind rows in memory, as the kernels of torch have it: what follows then is a view.
    return query.new_empty([*shape[:-3], shape[-2], shape[-3], shape[-1]]).transpose(-3, -2)


def attention_arguments(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> tuple[Any, ...] | None:  # fmt: skip
    if dropout_p != 0.0 or not isinstance(is_causal, bool):
        return None
    return (query, key, value, attn_mask, is_causal, scale, enable_gqa)


@torch.library.custom_op("sylvite::attention_gradient", mutates_args=())
def attention_gradient(
    grad_output: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None,
    result: torch.Tensor, is_causal: bool, scale: float | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """By the query, the key and the value. Rows that see no key change nothing."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (query @ key.mT).float() * scale
    if is_causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    weights = torch.ops.aten._safe_softmax(scores, -1)
    change = (grad_output @ value.mT).float()
    slopes = (weights * (change - (weights * change).sum(-1, keepdim=True)) * scale).to(query.dtype)
    found = (slopes @ key, slopes.mT @ query, weights.to(query.dtype).mT @ grad_output)
    return tuple(torch.empty_like(x).copy_(gradient) for x, gradient in zip((query, key, value), found))


@attention_gradient.register_fake
def _(grad_output: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *others: Any) -> Any:
    return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


def _keep_for_gradient(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    query, key, value, mask, ctx.is_causal, ctx.scale, _ = inputs
    ctx.save_for_backward(query, key, value, mask, output)


def _attention_backward(ctx: Any, grad_output: torch.Tensor) -> tuple[Any, ...]:
    gradients = torch.ops.sylvite.attention_gradient(grad_output, *ctx.saved_tensors, ctx.is_causal, ctx.scale)
    return (*gradients, None, None, None, None)


attention.register_autograd(_attention_backward, setup_context=_keep_for_gradient)


def has_gradient(query: Any, key: Any, value: Any, mask: Any, is_causal: bool, scale: Any, enable_gqa: bool) -> bool:
    """Can attention with gradients be one operation: on a GPU, of 16-bit floats, by a mask that has no gradient?"""
    *values, bias = (getattr(x, "meta", {}).get("example_value", x) for x in (query, key, value, mask))
    if enable_gqa or not all(isinstance(x, torch.Tensor) for x in values):
        return False
    if isinstance(bias, torch.Tensor) and bias.requires_grad:
        return False
    return all(
        x.device.type == "cuda" and x.dtype in (torch.bfloat16, torch.float16) and x.dim() == 4 and x.shape[:2] == values[0].shape[:2]
        and x.shape[3] == values[0].shape[3] and x.shape[3] % 8 == 0 and x.shape[3] <= 128 for x in values)  # fmt: skip


def _attention_of_modules(trains: bool, *args: Any, **kwargs: Any) -> Any:
    arguments = attention_arguments(*args, **kwargs)
    if arguments is None or (trains and not has_gradient(*arguments)):
        return torch.nn.functional.scaled_dot_product_attention(*args, **kwargs)
    return torch.ops.sylvite.attention(*arguments)


def _multi_head_attention(trains: bool) -> Callable[..., Any]:
    """The function of nn.MultiheadAttention, which Dynamo does not look into, with the operation above in it."""
    torchs = torch.nn.functional.multi_head_attention_forward
    names = {**torchs.__globals__, "scaled_dot_product_attention": functools.partial(_attention_of_modules, trains)}
    name = "_trained_multi_head" if trains else "_multi_head"
    ours = types.FunctionType(torchs.__code__, names, name, torchs.__defaults__, torchs.__closure__)
    ours.__kwdefaults__, ours.__module__, ours.__qualname__ = torchs.__kwdefaults__, __name__, name
    names[torchs.__name__] = ours  # it hands itself to what watches functions of torch
    return ours


def _is_turned(node: Any) -> bool:
    return isinstance(node, torch.fx.Node) and node.target == "transpose" and set(node.args[1:]) == {0, 1}


def _turns_batches(node: torch.fx.Node) -> bool:
    """Does a module hand one value with its batch first to a function that takes it second, and turn what that gives back?"""
    results = list(node.users)
    return (len(node.args) >= 13 and node.args[0] is node.args[1] is node.args[2] and _is_turned(node.args[0])
            and [result.args[1:] for result in results] == [(0,)] and all(_is_turned(user) for user in results[0].users))  # fmt: skip


def _score_mask(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """What is added to scores, of a mask that is true where nothing is seen, or that is added as it is."""
    return mask if mask.is_floating_point() else torch.zeros_like(mask, dtype=dtype).masked_fill(mask, -torch.inf)


def _batch_first_attention(trains: bool) -> Callable[..., Any]:
    """Self-attention of modules whose batch is first, as in `_multi_head_attention`, without turning rows on the way."""
    in_turn = _trained_multi_head if trains else _multi_head

    def batch_first_attention(
        query: torch.Tensor, key: Any, value: Any, width: int, heads: int, weight: Any, bias: Any, bias_k: Any, bias_v: Any,
        add_zero_attn: bool, dropout: float, out_weight: Any, out_bias: Any, *, training: bool = True, key_padding_mask: Any = None,
        need_weights: bool = True, attn_mask: Any = None, is_causal: bool = False, **others: Any,
    ) -> Any:  # fmt: skip
        other_kind = any(other is not None and other is not False for name, other in others.items() if name != "average_attn_weights")
        if (need_weights or bias_k is not None or add_zero_attn or other_kind or query.dim() != 3
                or (attn_mask is not None and attn_mask.dim() != 2) or (is_causal and attn_mask is None)):  # fmt: skip
            return in_turn(query, key, value, width, heads, weight, bias, bias_k, bias_v, add_zero_attn, dropout, out_weight, out_bias,
                           training=training, key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
                           is_causal=is_causal, **others)  # fmt: skip
        masks = []
        if attn_mask is not None and not (is_causal and key_padding_mask is None):
            masks.append(_score_mask(attn_mask, query.dtype)[None, None])
        if key_padding_mask is not None:
            masks.append(_score_mask(key_padding_mask, query.dtype)[:, None, None])
        mixed = torch.nn.functional.linear(query.transpose(0, 1), weight, bias)
        parts = (part.unflatten(-1, (heads, width // heads)).transpose(1, 2) for part in mixed.chunk(3, -1))
        mask = sum(masks[1:], start=masks[0]) if masks else None
        attended = _attention_of_modules(trains, *parts, mask, dropout if training else 0.0, is_causal and not masks)
        return torch.nn.functional.linear(attended.transpose(1, 2).flatten(2), out_weight, out_bias).transpose(0, 1), None

    name = "_trained_batch_first" if trains else "_batch_first"
    batch_first_attention.__name__ = batch_first_attention.__qualname__ = name
    return batch_first_attention


# Under these names torch finds them again in graphs that it has kept.
_multi_head, _trained_multi_head = _multi_head_attention(False), _multi_head_attention(True)
_batch_first, _trained_batch_first = _batch_first_attention(False), _batch_first_attention(True)


def _lie_as(value: torch.Tensor, order: tuple[int, ...]) -> torch.Tensor:
    """The same values, with their axes from the outermost to the innermost in memory in this order."""
    back = sorted(range(len(order)), key=order.__getitem__)
    return value.permute(order).contiguous().permute(back)


def _lay_result(node: torch.fx.Node, kept: bool) -> None:
    """On a CPU attention lies as eager's: as the query where torch has a kernel for it, else row by row. The operation above has
    its heads behind the rows, its formula each row behind the last one."""
    value = node.meta["example_value"]
    wanted = dense_order(value)
    if value.device.type != "cpu" or wanted is None:
        return
    axes = list(range(value.dim()))
    if kept and len(axes) > 3:
        axes[-3:-1] = axes[-2], axes[-3]
    if wanted == [axis for axis in axes if axis in wanted]:
        return
    order = tuple([axis for axis in axes if axis not in wanted] + wanted)
    with node.graph.inserting_after(node):
        laid = node.graph.call_function(_lie_as, (node, order))
    laid.meta = dict(node.meta)
    node.replace_all_uses_with(laid, delete_user_cb=lambda user: user is not laid)


#: Functions of this file that stand in Dynamo's graphs.
IN_GRAPHS = (_multi_head, _trained_multi_head, _batch_first, _trained_batch_first, _lie_as)


def keep_attention(module: torch.fx.GraphModule, trains: bool) -> None:
    """Replaces attention in Dynamo's graph by the operation above; where it trains, what has its gradient. Attention with
    scores that the caller changes is torch's formula for them, which has gradients on every device."""
    for node in list(module.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is torch.ops.higher_order.flex_attention:
            node.target = sdpa_dense
        if node.target is torch.nn.functional.multi_head_attention_forward:
            in_turn, first = (_trained_multi_head, _trained_batch_first) if trains else (_multi_head, _batch_first)
            node.target = first if _turns_batches(node) else in_turn
        elif node.target is torch.nn.functional.scaled_dot_product_attention:
            arguments = attention_arguments(*node.args, **node.kwargs)
            kept = arguments is not None and (not trains or has_gradient(*arguments))
            if kept:
                node.target, node.args, node.kwargs = torch.ops.sylvite.attention.default, arguments, {}
            _lay_result(node, kept)
    module.recompile()


# Layers of encoders


#: By torch's number for what a mask is of: its shape among batch, heads, rows and columns.
_ENCODER_MASKS = {0: lambda mask: mask[None, None], 1: lambda mask: mask[:, None, None], 2: lambda mask: mask}


def _encoder_layer(
    x: torch.Tensor, width: int, heads: int, qkv_weight: Any, qkv_bias: Any, out_weight: Any, out_bias: Any, use_gelu: bool,
    norm_first: bool, epsilon: float, norm1_weight: Any, norm1_bias: Any, norm2_weight: Any, norm2_bias: Any, up_weight: Any,
    up_bias: Any, down_weight: Any, down_bias: Any, mask: Any = None, mask_type: int | None = None,
) -> Any:  # fmt: skip
    """What torch runs as one operation for nn.TransformerEncoderLayer without gradients."""
    if x.dim() != 3 or (mask is not None and mask_type not in _ENCODER_MASKS):
        return NotImplemented
    allowed = None if mask is None else _ENCODER_MASKS[mask_type](mask.logical_not())
    linear = torch.nn.functional.linear

    def attend(given: torch.Tensor) -> torch.Tensor:
        batch, length, _ = given.shape
        parts = linear(given, qkv_weight, qkv_bias).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        mixed = torch.ops.sylvite.attention(*parts.unbind(0), allowed, False, None, False)
        return linear(mixed.transpose(1, 2).reshape(batch, length, width), out_weight, out_bias)

    def feed(given: torch.Tensor) -> torch.Tensor:
        middle = linear(given, up_weight, up_bias)
        middle = torch.nn.functional.gelu(middle) if use_gelu else middle.relu()
        return linear(middle, down_weight, down_bias)

    def norm(given: torch.Tensor, weight: Any, bias: Any) -> torch.Tensor:
        return torch.nn.functional.layer_norm(given, [width], weight, bias, epsilon)

    if norm_first:
        x = x + attend(norm(x, norm1_weight, norm1_bias))
        return x + feed(norm(x, norm2_weight, norm2_bias))
    x = norm(x + attend(x), norm1_weight, norm1_bias)
    return norm(x + feed(x), norm2_weight, norm2_bias)


# Attention as torch's kernel of CPUs has it, for who calls that by its name


def _scores(query: torch.Tensor, key: torch.Tensor, is_causal: bool, mask: Any, scale: float | None) -> torch.Tensor:
    """In f32 of 16 bits, as the sums that the kernel gives."""
    query, key = ((x.float() if x.dtype in (torch.bfloat16, torch.float16) else x) for x in (query, key))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores + mask
    if is_causal:
        hidden = scores.new_ones(scores.shape[-2:], dtype=torch.bool).tril().logical_not()
        scores = scores.masked_fill(hidden, -math.inf)
    return scores


def _shares(scores: torch.Tensor, sums: torch.Tensor) -> torch.Tensor:
    """Zeros in a row that sees nothing."""
    return (scores - sums.masked_fill(sums == -math.inf, 0)[..., None]).exp()


def _flash_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: Any = None, scale: float | None = None,
) -> Any:  # fmt: skip
    if dropout_p != 0 or (attn_mask is not None and attn_mask.dtype == torch.bool):
        return NotImplemented
    mixed = torch.ops.sylvite.attention(query, key, value, attn_mask, is_causal, scale, False).contiguous()
    sums = _scores(query, key, is_causal, attn_mask, scale).logsumexp(-1)
    return mixed, sums.transpose(1, 2).contiguous().transpose(1, 2)


def _flash_attention_backward(
    grad: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, out: torch.Tensor, sums: torch.Tensor,
    dropout_p: float, is_causal: bool, *, attn_mask: Any = None, scale: float | None = None,
) -> Any:  # fmt: skip
    if dropout_p != 0 or (attn_mask is not None and attn_mask.dtype == torch.bool):
        return NotImplemented
    scores = _scores(query, key, is_causal, attn_mask, scale)
    shares = _shares(scores, sums)
    wide = grad.to(shares.dtype)
    slopes = shares * (wide @ value.to(shares.dtype).mT - (wide * out).sum(-1, keepdim=True))
    slopes = slopes * (query.shape[-1] ** -0.5 if scale is None else scale)
    return (slopes @ key.to(slopes.dtype)).to(query.dtype), (slopes.mT @ query.to(slopes.dtype)).to(key.dtype), (shares.mT @ wide).to(value.dtype)


# Pooling


@torch.library.custom_op("sylvite::max_pool_gradient", mutates_args=())
def max_pool_gradient(
    grad_output: torch.Tensor, self: torch.Tensor, kernel_size: list[int], stride: list[int], padding: list[int],
    dilation: list[int], ceil_mode: bool,
) -> torch.Tensor:  # fmt: skip
    """Finds again where the maxima were, so that no positions are saved for it."""
    window = (kernel_size, stride, padding, dilation, ceil_mode)
    positions = torch.ops.aten.max_pool2d_with_indices(self, *window)[1]
    return torch.ops.aten.max_pool2d_with_indices_backward(grad_output, self, *window, positions)


@max_pool_gradient.register_fake
def _(grad_output: torch.Tensor, self: torch.Tensor, *others: Any) -> torch.Tensor:
    return torch.empty_like(self)


def _max_pool_backward(
    grad_output: torch.Tensor, self: torch.Tensor, kernel_size: list[int], stride: list[int], padding: list[int],
    dilation: list[int], ceil_mode: bool, indices: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    return torch.ops.sylvite.max_pool_gradient(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode)


#: Beside torch's tables.
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default: _flash_attention,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default: _flash_attention_backward,
    torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer,
    torch.ops.aten.max_pool2d_with_indices_backward.default: _max_pool_backward,
}
