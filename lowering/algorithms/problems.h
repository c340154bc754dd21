#pragma once
// What a template needs to know of a kernel: the anchor's operands and extents. Shared by the forms, which
// compute, and the spaces, which schedule.

#include <cstdint>
#include <string>
#include <vector>

#include "base/rounding.h"
#include "frontend/graph/views.h"
#include "lowering/plan/grouped_filter.h"
#include "lowering/plan/kernel.h"

namespace sylvite {

/// Columns of a packed matmul operand that lie together: one vector of f32.
inline constexpr int panel_width = 16;

/// What the products of a template are made of. f32 is multiplied element by element. bf16 and i16 are stored in pairs
/// of neighbours along the fold, i8 in fours, which one instruction multiplies and adds to a sum of 32 bits.
[[nodiscard]] constexpr int elements_in_product(DType element) {
  if (element == DType::i8) return 4;
  return element == DType::bf16 || element == DType::i16 ? 2 : 1;
}

/// For processors that multiply no bytes: the left operand is widened when it is copied, the right one when it is
/// multiplied.
[[nodiscard]] constexpr DType widened_bytes(DType element) {
  return element == DType::i8 ? DType::i16 : element;
}

/// A kernel as a template sees it, or why the template cannot take it.
template <typename Problem>
struct Reading {
  Problem problem;
  std::string refusal;  ///< empty: `problem` is filled
};

/// Stands for the number of an extent that is open, in the problem that a form reads of an open kernel (spaces read
/// the kernel at its sizes, and see numbers). Forms use only extents that are never open, or expressions.
inline constexpr std::int64_t open_extent = -1;
[[nodiscard]] std::int64_t number_or_open(const Extent& extent);

/// out[batch..., m, n] = sum over k of a[batch..., m, k] * b[batch..., k, n], then pointwise work.
struct MatmulProblem {
  ValueId a = no_value;
  ValueId b = no_value;
  ValueId anchor = no_value;  ///< the product
  ValueId output = no_value;
  ValueId weight = no_value;  ///< the 2-D body input that b is, or is the transpose of, when it can be packed
  bool weight_is_transposed = false;
  bool a_is_computed = false;  ///< a is more than an index map of an input: worth storing before use
  DType element =
      DType::f32;  ///< of products: f32, bf16, i16 (b may be stored as i8), i8 (a is u8, or quantised)
  ValueId scales = no_value;  ///< of a quantized_matmul, whose b is a weight of i8; a is f32
  ValueId sums = no_value;    ///< of its columns
  std::int64_t batch = 1;     ///< product of the leading output extents; may be open_extent
  std::int64_t m = 0;         ///< may be open_extent
  std::int64_t least_m = 0;   ///< in any run
  bool has_open_m = false;    ///< runs say how many, whatever `m` is here
  std::int64_t n = 0;         ///< may be open_extent, as may be k
  std::int64_t least_n = 0;   ///< in any run
  std::int64_t k = 0;

  [[nodiscard]] int pair() const { return elements_in_product(element); }  ///< multiplied at once
  [[nodiscard]] std::int64_t fold_steps() const { return k / pair(); }
  void widen_bytes() { element = widened_bytes(element); }
};
/// Of all extents but the last two.
[[nodiscard]] Extent leading_product(const Shape& shape);
/// How many lanes the extremes of a row of k are searched in: they divide k.
[[nodiscard]] std::int64_t quantized_lanes(std::int64_t k);
[[nodiscard]] Reading<MatmulProblem> read_matmul(const Kernel& kernel);

/// A product by a weight of a few bits, whose blocks along k have a scale and a zero each.
struct BitsProblem {
  MatmulProblem product;  ///< `weight` is b, `element` what is stored: u8
  ValueId scales = no_value;
  ValueId zeros = no_value;   ///< may be no_value
  bool is_quantized = false;  ///< a is made into steps of 8 bits
  std::int64_t bits = 4;
  std::int64_t block = 32;

  [[nodiscard]] std::int64_t per_byte() const { return 8 / bits; }
  [[nodiscard]] std::int64_t blocks() const { return ceil_div(product.k, block); }
  /// Bytes that are multiplied at once: an instruction takes four steps with four numbers.
  [[nodiscard]] std::int64_t unit() const { return is_quantized ? 4 : 1; }
  /// Units of a block.
  [[nodiscard]] std::int64_t units() const { return block / per_byte() / unit(); }
  /// What zeros are where none are given.
  [[nodiscard]] std::int64_t usual_zero() const { return std::int64_t{1} << (bits - 1); }
  [[nodiscard]] bool is_padded() const { return product.k % block != 0; }
};
/// Refuses weights that cannot be packed.
[[nodiscard]] Reading<BitsProblem> read_bits(const Kernel& kernel);

/// Tensor cores read rows that begin at multiples of so many bytes.
inline constexpr std::int64_t row_unit_bytes = 16;
/// The right operand's weight, when tensor cores need it packed: in rows of the depth that are padded to
/// row_unit_bytes. f32 always is, to be rounded to TF32. Others are read as they lie.
[[nodiscard]] OwnOperand weight_for_tensor_cores(const Kernel& kernel);

/// A 2-D convolution into a channel-blocked output, then pointwise work.
struct ConvProblem {
  ValueId x = no_value;
  ValueId weight = no_value;  ///< a body input, when it can be packed; else any value
  bool packs_weight = false;  ///< the kernel itself rearranges the weight, at every run
  ValueId bias = no_value;    ///< may be no_value
  ValueId anchor = no_value;
  ValueId output = no_value;
  int block = 0;         ///< channels in a block of the output
  int source_block = 0;  ///< channels that lie together in the padded source: all of them when there are few
  /// Channels that the fold takes at a time: divides `channels`, or those of a group, so that no padding is folded.
  int fold_block = 0;
  bool x_is_blocked = false;
  bool x_is_computed = false;
  bool depthwise = false;
  std::int64_t groups = 1;     ///< of a depthwise convolution: 1
  DType element = DType::f32;  ///< of x and the filter: as in MatmulProblem
  bool padded = false;         ///< some window reaches over the border
  std::int64_t batch = 0;      ///< may be open_extent
  std::int64_t channels = 0, height = 0, width = 0;
  std::int64_t out_channels = 0, out_height = 0, out_width = 0;
  std::int64_t kernel_y = 0, kernel_x = 0;
  std::int64_t stride_y = 0, stride_x = 0, dilation_y = 0, dilation_x = 0;
  Extent pad_top, pad_left;  ///< runs may differ

  /// The source has all its few channels in one block.
  [[nodiscard]] bool has_few_channels() const { return source_block < block; }
  [[nodiscard]] bool has_strides() const { return stride_x != 1 || stride_y != 1; }
  [[nodiscard]] std::int64_t out_blocks() const { return ceil_div(out_channels, block); }
  [[nodiscard]] std::int64_t source_blocks() const { return ceil_div(channels, source_block); }
  [[nodiscard]] GroupedChannels grouped() const {
    return {groups, channels / groups, out_channels / groups, block};
  }
  /// Channels that a block of the output folds: all, or those of its groups.
  [[nodiscard]] std::int64_t folded_channels() const {
    return groups == 1 ? channels : grouped().most_steps() * grouped().step();
  }
  /// Neighbouring channels multiplied at once; depthwise multiplies in f32 whatever is stored.
  [[nodiscard]] int pair() const { return depthwise ? 1 : elements_in_product(element); }
  [[nodiscard]] std::int64_t fold_blocks() const { return ceil_div(folded_channels(), fold_block); }
  void widen_bytes() { element = widened_bytes(element); }
  /// Products added up for one output element.
  [[nodiscard]] std::int64_t fold_steps() const {
    return (depthwise ? 1 : ceil_div(folded_channels(), pair())) * kernel_y * kernel_x;
  }
};
/// `depthwise` asks for groups == channels == out_channels, else for one group, or for groups that
/// are_worth_blocks.
[[nodiscard]] Reading<ConvProblem> read_conv(const Kernel& kernel, bool depthwise);
/// As read_conv without depthwise; also refuses groups, and what the transforms do not fit: windows other than 3 x
/// 3, strides, dilations, and inputs with less than a block of channels.
[[nodiscard]] Reading<ConvProblem> read_winograd(const Kernel& kernel);

/// The gradient of a 2-D convolution by its filter. `image` is that convolution, its result the gradient, of f32 in blocks; `anchor`
/// is the filter's. With groups, each block of the gradient's channels meets the input's channels of all its groups, in steps.
struct FilterGradientProblem {
  ConvProblem image;
  ValueId gradient = no_value;

  /// Input channels that each of the gradient's meets at a time, and how often.
  [[nodiscard]] int channels_in_block() const {
    if (image.depthwise) return 1;
    return image.groups == 1 ? image.source_block : static_cast<int>(image.grouped().step());
  }
  [[nodiscard]] std::int64_t blocks() const {
    if (image.depthwise) return 1;
    return image.groups == 1 ? image.source_blocks() : image.grouped().most_steps();
  }
};
[[nodiscard]] Reading<FilterGradientProblem> read_filter_gradient(const Kernel& kernel);

inline constexpr int conv_tile_depth = 32;  ///< bf16 channels in a row of a tile

/// As read_conv without depthwise and groups: blocks have a multiple of conv_tile_depth channels, and the fold takes
/// whole blocks, padding too: its weights are zero.
[[nodiscard]] Reading<ConvProblem> read_conv_tiles(const Kernel& kernel);
/// Likewise of an image with few channels that are not blocked: the channels of a window's line lie together,
/// rounded up to even, and the fold takes them at once. At most conv_tile_depth of them, or a multiple of it.
[[nodiscard]] Reading<ConvProblem> read_conv_lines(const Kernel& kernel);

/// Of conv_tiles{flat=1}: pixels from an output's line to the next in a plane whose lines lie one behind the
/// other. With strides of 1 that is a line with its border, and the window moves through one plane; otherwise
/// every place of the window has a plane of its own, with the pixels that it meets and no others.
[[nodiscard]] std::int64_t flat_pitch(const ConvProblem& problem);

/// A convolution, pointwise work on its result, and a depthwise convolution that reads it by rows
/// (row_fusion.h).
struct ConvRowsProblem {
  ConvProblem first;
  ConvProblem second;  ///< reads what the pointwise work makes of first.anchor
};
[[nodiscard]] Reading<ConvRowsProblem> read_conv_rows(const Kernel& kernel);

/// softmax(q k^T, scaled and masked) v over [batch..., rows, depth], then pointwise work and at most
/// transposes that leave the columns innermost.
struct AttentionProblem {
  ValueId q = no_value;
  ValueId k = no_value;
  ValueId v = no_value;
  ValueId anchor = no_value;
  ValueId output = no_value;
  std::int64_t batch = 1;           ///< may be open_extent, as may be all numbers that are no least
  std::int64_t rows = 0;            ///< query positions
  std::int64_t least_rows = 0;      ///< in any run
  std::int64_t positions = 0;       ///< key positions
  Extent open_positions;            ///< the same as an expression
  bool positions_are_open = false;  ///< spaces see it, too
  std::int64_t depth = 0;
  Extent open_depth;  ///< the same as an expression
  std::int64_t columns = 0;
  Extent open_columns;                   ///< the same as an expression
  std::int64_t least_columns = 0;        ///< in any run
  DType element = DType::f32;            ///< of q, k and v: f32 or bf16
  std::string row_loop;                  ///< the output's storage dim that walks the rows, e.g. d1
  std::vector<std::string> batch_loops;  ///< those that walk the batch, innermost first

  [[nodiscard]] int pair() const { return elements_in_product(element); }  ///< multiplied at once
  /// Panels of the key positions. bf16 takes an even number: whole tiles of AMX. So do open positions: two panels
  /// at once, however few there are.
  [[nodiscard]] Extent position_panels_of(const Extent& count) const {
    return pair() > 1 || positions_are_open ? 2 * ceil_div(count, std::int64_t{2} * panel_width)
                                            : ceil_div(count, panel_width);
  }
  [[nodiscard]] std::int64_t position_panels() const { return position_panels_of(positions).known(); }
};
/// The mask of an attention where it may hide keys, from all or some rows; else no_value.
[[nodiscard]] ValueId hiding_mask(const Graph& body, const Node& attention);
[[nodiscard]] Reading<AttentionProblem> read_attention(const Kernel& kernel);
/// The same of a few rows; refuses others, open rows, and what is not whole vectors.
[[nodiscard]] Reading<AttentionProblem> read_attention_chunks(const Kernel& kernel);

/// How many lines of the input a window of a pooling has: the elements of all of its dims but the innermost.
[[nodiscard]] std::int64_t pool_lines(const Node& pool);
/// Whether form pool_lines can express a pooling, and is worth it: dense images whose windows are wide in two dims, one of
/// these the innermost, and share elements or reach beyond edges.
[[nodiscard]] bool pools_by_lines(const Graph& body, const Node& node);

}  // namespace sylvite
