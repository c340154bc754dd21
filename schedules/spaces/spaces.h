#pragma once
// The rows of space_table() and gpu_space_table() whose candidates are schedules, one per space_NAME.cpp.
// Internal to schedules/.

#include "schedules/space.h"

namespace sylvite {

extern const Space matmul_amx_space;
extern const Space matmul_amx_activations_space;
extern const Space matmul_panels_space;
extern const Space matmul_activations_space;
extern const Space matmul_bits_space;
extern const Space conv_amx_space;
extern const Space conv_lines_amx_space;
extern const Space conv_blocked_space;
extern const Space depthwise_blocked_space;
extern const Space conv_rows_space;
extern const Space conv_winograd_space;
extern const Space filter_gradient_blocked_space;
extern const Space attention_chunks_space;
extern const Space attention_rows_space;
extern const Space contraction_space;
extern const Space normalization_rows_space;
extern const Space normalization_columns_space;
extern const Space reduction_rows_space;
extern const Space reduction_columns_space;
extern const Space whole_stages_space;
extern const Space layout_tiles_space;
extern const Space transpose_tiles_space;
extern const Space pointwise_space;
extern const Space reference_space;

extern const Space gpu_rows_space;
extern const Space gpu_columns_space;
extern const Space gpu_tiles_space;
extern const Space gpu_transpose_space;
extern const Space gpu_elements_space;
extern const Space gpu_reference_space;

}  // namespace sylvite
