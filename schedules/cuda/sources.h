#pragma once
// The CUDA C++ texts of schedules/cuda/, part of the library.

#include <string_view>

namespace sylvite::embedded {

extern const std::string_view cuda_card;              ///< instructions of every card as functions
extern const std::string_view cuda_hopper;            ///< Hopper's, behind those
extern const std::string_view cuda_pointwise;         ///< what printed pointwise work calls
extern const std::string_view cuda_matmul_tiles;      ///< the matmul template's loads
extern const std::string_view cuda_matmul_once;       ///< its products
extern const std::string_view cuda_matmul_exact;      ///< those of f32, each by three
extern const std::string_view cuda_matmul_results;    ///< its stores
extern const std::string_view cuda_matmul;            ///< its kernel
extern const std::string_view cuda_warps;             ///< products of single warps
extern const std::string_view cuda_attention;         ///< the attention template's kernels
extern const std::string_view cuda_attention_scores;  ///< what they do between the products
extern const std::string_view cuda_attention_f32;     ///< the one for f32
extern const std::string_view cuda_attention_warps;   ///< the one of single warps
extern const std::string_view cuda_attention_slopes;  ///< what gradients of attention do between the products
extern const std::string_view
    cuda_attention_gradient;  ///< gradients of attention by products of single warps
extern const std::string_view cuda_attention_gradient_hopper;  ///< by Hopper's
extern const std::string_view cuda_rows;                       ///< rows in registers
extern const std::string_view cuda_norm;                       ///< the row template's kernel
extern const std::string_view cuda_image_norm;          ///< images that are normed by groups of channels
extern const std::string_view cuda_softmax_columns;     ///< softmax along few rows of columns
extern const std::string_view cuda_row_folds;           ///< rows that are folded and used again
extern const std::string_view cuda_row_walks;           ///< the same of long rows
extern const std::string_view cuda_fold_keys;           ///< places of the greatest as keys
extern const std::string_view cuda_folds;               ///< what templates of folds do at an element
extern const std::string_view cuda_columns;             ///< the column template's kernel
extern const std::string_view cuda_concat;              ///< the concat template's kernel
extern const std::string_view cuda_depthwise;           ///< depthwise convolutions
extern const std::string_view cuda_depthwise_gradient;  ///< gradients of their filters
extern const std::string_view cuda_line_gradient;       ///< gradients of filters of few channels
extern const std::string_view cuda_grouped;             ///< convolutions of groups on tensor cores
extern const std::string_view cuda_pool_gradient;       ///< gradients of max poolings
extern const std::string_view cuda_place;               ///< values written where indices say
extern const std::string_view cuda_scatter_rows;        ///< rows folded into those of a table
extern const std::string_view cuda_scatter_folds;       ///< values folded into others
extern const std::string_view cuda_top_k;               ///< the first elements of rows
extern const std::string_view cuda_transpose;           ///< the transpose template's kernel
extern const std::string_view cuda_vector;              ///< several neighbouring elements at once

}  // namespace sylvite::embedded
