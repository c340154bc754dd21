"""Cases of products, convolutions, poolings and resizing."""

import torch

from case import Case, aten, real, whole


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
    # Of the package: they are the reference for what the importer makes of them.
    from sylvite import torch_backend  # noqa: F401
    ours = torch.ops.sylvite
    for causal in (False, True):
        q, k, v = real(1, 2, 3, 4), real(1, 2, 5, 4), real(1, 2, 5, 4)
        result = ours.attention(q, k, v, None, causal, 0.5, False)
        yield Case(f"attention_gradient_{causal}".lower(), ours.attention_gradient.default, real(1, 2, 3, 4), q, k, v, None, result, causal, 0.5)
    for name, mask in (("true", torch.tensor([[True, False, True, True, True], [False] * 5, [True] * 5])), ("added", real(2, 1, 5))):
        q, k, v = real(1, 2, 3, 4), real(1, 2, 5, 4), real(1, 2, 5, 4)
        result = ours.attention(q, k, v, mask, False, 0.5, False)
        yield Case(f"attention_masked_{name}", ours.attention.default, q, k, v, mask, False, 0.5, False)
        yield Case(f"attention_gradient_masked_{name}", ours.attention_gradient.default, real(1, 2, 3, 4), q, k, v, mask, result, False, 0.5)


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
    yield Case("avg_pool_backward_ceil", average_backward, real(1, 2, 4, 4), y, [3, 3], [2, 2], [1, 1], True, True, None)
    yield Case("avg_pool_backward_ceil_inside", average_backward, real(1, 2, 4, 4), y, [3, 3], [2, 2], [1, 1], True, False, None)
    yield Case("avg_pool_backward_divisor", average_backward, real(1, 2, 3, 3), y, [2, 2], [2, 2], [0, 0], False, True, 3)
    yield Case("avg_pool3d_backward", aten.avg_pool3d_backward.default, real(1, 1, 2, 2, 3), real(1, 1, 4, 4, 5), [2, 2, 2], [2, 2, 2], [0, 0, 1], False, False, None)
    for to in ([3, 3], [3, 4], [1, 1]):
        name = "_".join(map(str, to))
        value, positions = aten.adaptive_max_pool2d.default(x, to)
        yield Case(f"adaptive_max_{name}", aten.adaptive_max_pool2d.default, x, to)
        yield Case(f"adaptive_max_backward_{name}", aten.adaptive_max_pool2d_backward.default, real(*value.shape), x, positions)
    yield Case("adaptive_max_unbatched", aten.adaptive_max_pool2d.default, x[0].clone(), [2, 3])
    cube = torch.randperm(2 * 4 * 5 * 3).reshape(1, 2, 4, 5, 3).float()
    value, positions = aten.adaptive_max_pool3d.default(cube, [2, 3, 3])
    yield Case("adaptive_max3d", aten.adaptive_max_pool3d.default, cube, [2, 3, 3])
    yield Case("adaptive_max3d_backward", aten.adaptive_max_pool3d_backward.default, real(*value.shape), cube, positions)
    for size in ([3, 9], [5, 2]):
        name = "_".join(map(str, size))
        yield Case(f"bilinear_smooth_{name}", aten._upsample_bilinear2d_aa.default, real(1, 2, 7, 5), size, False)
        yield Case(f"bicubic_smooth_{name}", aten._upsample_bicubic2d_aa.default, real(1, 2, 7, 5), size, False)
    yield Case("adaptive3d_backward", aten._adaptive_avg_pool3d_backward.default, real(1, 1, 2, 2, 3), real(1, 1, 4, 4, 5))
    # Of the package: it is the reference for what the importer makes of it.
    from sylvite import torch_backend  # noqa: F401
    yield Case("max_pool_gradient", torch.ops.sylvite.max_pool_gradient.default, real(2, 3, 4, 3), x, [3, 3], [2, 2], [1, 1], [1, 1], False)
    yield Case("bilinear_smooth_one_scale", aten._upsample_bilinear2d_aa.default, real(1, 2, 7, 5), [4, 3], False, 0.6, None)
    for name, arguments in (
        ("", ([3, 3], [2, 2], [1, 1])), ("_inside", ([3, 3], [2, 2], [1, 1], True, False)), ("_divisor", ([3, 2], [2, 2], [1, 0], False, True, 7)),
        ("_below", ([2, 2], [2, 2], [0, 0], False, True, -3)),
    ):  # fmt: skip
        yield Case(f"avg_pool_integers{name}", average, whole(1, 2, 7, 6, low=-9, high=9), *arguments)
    yield Case("avg_pool_integers_3d", aten.avg_pool3d.default, whole(1, 1, 4, 4, 4), [2, 2, 2])
