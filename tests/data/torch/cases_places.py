"""Cases of operations on places: views, joins, tables, reads and writes at indices."""

import torch

from case import Case, aten, inf, real, truth, whole


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
    beyond = torch.tensor([-1.9, 300.0, 255.9, -0.5, 70000.0])
    yield Case("to_u8_beyond", aten._to_copy.default, beyond, dtype=torch.uint8)
    yield Case("to_i16_beyond", aten._to_copy.default, beyond.double(), dtype=torch.int16)
    yield Case("to_boolean", aten._to_copy.default, whole(6), dtype=torch.bool)
    yield Case("to_device", aten._to_copy.default, x, device=torch.device("cpu"))
    yield Case("convert", torch.ops.prims.convert_element_type.default, x, torch.float64)
    yield Case("view_bits", aten.view.dtype, x, torch.int32)
    yield Case("view_bits_of_bytes", aten.view.dtype, whole(6).to(torch.uint8), torch.int8)
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
    yield Case("slice_backward", aten.slice_backward.default, real(2, 2, 4), [2, 3, 4], 1, 1, 3, 1)
    yield Case("slice_backward_step", aten.slice_backward.default, real(2, 3, 2), [2, 3, 4], 2, 1, 9223372036854775807, 2)
    yield Case("slice_backward_empty", aten.slice_backward.default, real(2, 0, 4), [2, 3, 4], 1, 2, 1, 1)
    yield Case("select_backward", aten.select_backward.default, real(2, 4), [2, 3, 4], 1, -1)
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
    for offset in (0, 1, -1):
        kept = x.diagonal(offset, 0, 2)
        yield Case(f"diagonal_scatter_{offset}".replace("-", "m"), aten.diagonal_scatter.default, x, real(*kept.shape), offset, 0, 2)
    yield Case("diagonal_scatter_turned", aten.diagonal_scatter.default, real(4, 3), real(3), 0, 1, 0)
    yield Case("diagonal_scatter_nothing", aten.diagonal_scatter.default, real(2, 2), real(0), 5)


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
    yield Case("efficient_zeros", aten._efficientzerotensor.default, [2, 3])


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
    index = torch.tensor([[0, 2, 0], [1, 1, 1]])
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        yield Case(f"scatter_reduce_{reduce}_alone", aten.scatter_reduce.two, real(2, 4), 1, index, real(2, 3), reduce, include_self=False)
    yield Case("scatter_reduce_mean", aten.scatter_reduce.two, real(2, 4), 1, index, real(2, 3), "mean")
    yield Case("scatter_reduce_sum_alone_i64", aten.scatter_reduce.two, whole(2, 4), 1, index, whole(2, 3), "sum", include_self=False)
    steps, found = torch.tensor([-1.0, 0.5, 0.5, 2.0]), torch.tensor([[0.5, -3.0, 9.0], [1.0, 2.0, float("nan")]])
    for right in (False, True):
        name = "right" if right else "left"
        yield Case(f"bucketize_{name}", aten.bucketize.Tensor, found, steps, right=right)
        yield Case(f"searchsorted_{name}", aten.searchsorted.Tensor, steps, found, out_int32=True, right=right)
    yield Case("searchsorted_rows", aten.searchsorted.Tensor, torch.tensor([[1, 3, 5], [2, 4, 6]]), torch.tensor([[3, 9], [1, 4]]), side="right")


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
