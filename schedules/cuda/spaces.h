#pragma once
// The rows of gpu_space_table() whose candidates are templates in CUDA C++ or a library's kernels. Internal
// to schedules/.

#include "schedules/space.h"

namespace sylvite {

extern const Space cuda_matmul_space;
extern const Space cublaslt_space;
extern const Space cudnn_space;
extern const Space cuda_conv_space;
extern const Space cuda_filter_gradient_space;
extern const Space cuda_warps_matmul_space;
extern const Space cuda_warps_conv_space;
extern const Space cuda_depthwise_space;
extern const Space cuda_depthwise_gradient_space;
extern const Space cuda_line_gradient_space;
extern const Space cuda_grouped_space;
extern const Space cuda_attention_space;
extern const Space cuda_warps_attention_space;
extern const Space cuda_attention_gradient_space;
extern const Space cuda_concat_space;
extern const Space cuda_norm_space;
extern const Space cuda_image_norm_space;
extern const Space cuda_softmax_columns_space;
extern const Space cuda_row_folds_space;
extern const Space cuda_columns_space;
extern const Space cuda_pool_gradient_space;
extern const Space cuda_place_space;
extern const Space cuda_scatter_rows_space;
extern const Space cuda_scatter_folds_space;
extern const Space cuda_top_k_space;
extern const Space cuda_transpose_space;
extern const Space cuda_pointwise_space;

}  // namespace sylvite
