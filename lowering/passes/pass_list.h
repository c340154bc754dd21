#pragma once
// Every pass of lowering: from a graph that says what is computed to one that says how, so that each group of
// its nodes makes a good kernel. A pass never changes what a graph computes, and keeps inputs and outputs as
// they are.

#include <span>

#include "frontend/graph/pass_runner.h"
#include "lowering/plan/plan.h"
#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which conv with strides as large as its window, without pads, dilations and groups, of
/// an image of whole windows is a matmul over its patches, gathered by a transpose: the patches of a vision
/// transformer. Images that lie with whole vectors of channels innermost stay: convolutions take them.
[[nodiscard]] Graph multiply_patches(const Graph& graph, const LoweringOptions& options);

/// The same graph in which the weights of few bits that products read are widened before them, or, for a few rows,
/// within sums of plain products.
[[nodiscard]] Graph widen_bits(const Graph& graph);

/// The same graph in which an attention that the device has a template for once its heads are whole vectors
/// (options.refuse_template, which must be given), or for the products that it divides into, has zeros behind each of its
/// queries, keys and values.
[[nodiscard]] Graph widen_attention(const Graph& graph, const LoweringOptions& options);

/// The same graph in which an attention that the device has no template for (options.refuse_template, which must be
/// given) is two products and a softmax, which have: very deep heads, say. Causal ones and those with a cap stay.
[[nodiscard]] Graph divide_attention(const Graph& graph, const LoweringOptions& options);

/// The same graph in which convolutions over one or three dims are over two, as templates take them: a signal is an image of
/// one line, and of a volume the frames that a window meets are channels of one image.
/// (Grouped ones over three dims only where the window has one frame.) Pointwise work that reads such results, with
/// numbers or channels beside them, is done on images, too, and so are slices and concats of their channels. `innermost`:
/// volumes stay, as templates take them then.
[[nodiscard]] Graph convolve_planes(const Graph& graph, bool innermost);

/// The same graph in which convolutions of volumes of few channels, by windows of one column, are of that many images.
[[nodiscard]] Graph part_volumes(const Graph& graph, bool tf32 = false);

/// The same graph in which convolutions of one or few channels to few, by constant filters, take a vector's worth of neighbouring pixels
/// as channels, and make as many at once.
[[nodiscard]] Graph join_pixels(const Graph& graph, bool tf32 = false);

/// The same graph in which a layer_norm or rms_norm without scale over groups of channels of a convolution's result, or over the
/// pixels of each, is made of sums over pixels and pointwise work. `tf32`: of f32 images, too.
[[nodiscard]] Graph norm_images(const Graph& graph, bool tf32);

/// The same graph in which folds of groups of an image's channels, with pointwise work ahead, and what is broadcast over such
/// groups, take images as they lie. `tf32`: of f32 images, too.
[[nodiscard]] Graph fold_channel_groups(const Graph& graph, bool tf32);

/// The same graph in which what few elements of a short row are told of its sum is folded by each of them.
[[nodiscard]] Graph spread_folds(const Graph& graph);

/// The same graph in which a layer_norm or rms_norm of rows whose mean and inverse deviation are values, too, is pointwise work
/// with these.
[[nodiscard]] Graph norm_by_statistics(const Graph& graph);

/// The same graph in which norms and reductions over several of the last dims are over one, a product of these, but for images
/// that follow a convolution. `tf32`: f32 images may lie with channels innermost, too.
[[nodiscard]] Graph merge_folds(const Graph& graph, bool tf32);
/// The same, where the last dim is shorter than vectors of a CPU.
[[nodiscard]] Graph merge_short_folds(const Graph& graph);

/// The same graph in which running sums and the first k of each row are of at most three dims, lie such that vectors are filled, and,
/// of short rows, are found across many of these; so is softmax, but for columns that fill vectors.
[[nodiscard]] Graph merge_scanned(const Graph& graph);

/// The same graph in which values whose rows are short are put side by side along rows of all that lies behind the axis.
[[nodiscard]] Graph merge_concats(const Graph& graph);

/// The same graph in which folds of at most eight values that a concat puts side by side, and of pointwise work on these, are
/// pointwise work. On a CPU not where they make few elements.
[[nodiscard]] Graph unstack_folds(const Graph& graph, const LoweringOptions& options);

/// The same graph in which folds of what windows meet, and of pointwise work on it, along the places of a window, are pointwise work on
/// slices of what the windows move over.
[[nodiscard]] Graph slice_patches(const Graph& graph);

/// The same graph in which folds along a dim of two to four elements, and softmax along such an innermost one, are pointwise
/// work on its slices.
[[nodiscard]] Graph spread_short_rows(const Graph& graph);

/// The same graph in which poolings of one channel whose windows go along one dim but the innermost, step by step, are pointwise work
/// on slices, as in norms over neighbouring channels. `innermost`: of images whose channels lie so, means are products.
[[nodiscard]] Graph slice_windows(const Graph& graph, bool innermost);

/// The same graph in which sums of a softmax times weights, along rows or an image's channels, are quotients of two sums. `tf32` as
/// below.
[[nodiscard]] Graph divide_expectations(const Graph& graph, bool tf32);

/// The same graph in which softmax along another dim than the innermost is of rows, which have kernels, between two transposes,
/// but for short columns of values, and so are norms over the channels of images. `tf32`: f32 images may lie with channels innermost, too.
[[nodiscard]] Graph turn_norms(const Graph& graph, bool tf32);

/// The same graph in which gathers of the same places of all channels of maps are of rows of channels, between two transposes, of
/// which the one back comes behind pointwise work with numbers that all channels share.
[[nodiscard]] Graph turn_gathers(const Graph& graph);

/// The same graph in which pointwise work on images whose channels a transpose brought ahead of the pixels comes before
/// that transpose, where all it reads is such an image, a convolution's result, a number per channel or one number. With
/// channels_last such transposes move nothing beside convolutions. `tf32`: of f32 images, too.
[[nodiscard]] Graph sink_transposes(const Graph& graph, bool tf32);

/// The same graph in which convolutions whose results have channels that are no multiple of 16 bytes have filters of zeros
/// behind theirs, and what follows takes the wide results where it works on each channel by itself, or is a convolution.
/// `tf32`: of f32 images, too.
[[nodiscard]] Graph widen_channels(const Graph& graph, bool tf32);

/// The same graph in which each filter_gradient of few results is the sum of several, each of a part of the pixels. With
/// options.open_sizes as many, whatever the pixels.
[[nodiscard]] Graph divide_gradients(const Graph& graph, const LoweringOptions& options);

/// The same graph in which a product of few results by many rows of both operands, as gradients of weights are, is the sum of those
/// of parts of the rows.
[[nodiscard]] Graph divide_products(const Graph& graph);

/// The same graph in which many rows that are added to few of a table, of f32, are added to tables of their own by parts, whose sum
/// is added.
[[nodiscard]] Graph divide_scatters(const Graph& graph);

/// The same graph in which few folds of long rows are folds of folds of their parts, so that many are made at once. REQUIRES to be
/// ahead of flatten, which joins dims.
[[nodiscard]] Graph divide_folds(const Graph& graph);

/// The same graph in which few elements that are taken of rows of softmax or log_softmax are made without the others.
[[nodiscard]] Graph pick_shares(const Graph& graph);
/// The same graph in which arg_max and arg_min of rows are along their innermost dim, and those of few long rows are found by parts.
[[nodiscard]] Graph divide_places(const Graph& graph);

/// The same graph in which large scatters that replace have flat places, and bounds of parts of these.
[[nodiscard]] Graph bound_scatters(const Graph& graph);

/// The same graph in which sums of squared distances from a mean are those of parts of what is large, and of these parts' means.
[[nodiscard]] Graph divide_variances(const Graph& graph);

/// The same graph in which a sum over the first dim and others, of few elements that are left, is the sum of sums over the others.
[[nodiscard]] Graph divide_sums(const Graph& graph);

/// The same graph in which a transpose that makes rows of channels, one a pixel, of a convolution's reshaped result comes
/// before the reshape, where it moves nothing. REQUIRES to be the last pass on views: flatten undoes it.
[[nodiscard]] Graph turn_images(const Graph& graph, bool tf32);

/// The same graph in which casts to wider floats that are read through transposes alone, and reshapes beside these, come behind
/// them.
[[nodiscard]] Graph widen_turned(const Graph& graph);

/// The same graph in which products of 16-bit floats whose rows a transpose made of columns, by matrices of weights, are
/// products of those matrices, turned, by what lies there. Done where every path from such a product, through work with
/// constants that vary along its last axis only and through further such products, meets a transpose back.
[[nodiscard]] Graph turn_products(const Graph& graph, const LoweringOptions& options);

/// The same graph in which large products read an operand whose rows are no multiple of 16 bytes from a copy whose rows are,
/// with zeros behind their elements. REQUIRES to come behind the passes on views: one that merges the slice with the pad undoes it.
/// `tf32`: of f32, too.
[[nodiscard]] Graph align_rows(const Graph& graph, bool tf32);

/// The same graph in which matmul(transpose(x), W), W a matrix and the last axis left in place, is
/// transpose(matmul(x, W)), also through reshapes and through work with constants that vary along the last
/// axis only (a bias). Done where every path from the product meets another transpose, or an attention, which
/// reads any order: attention of models that walk their rows before their batch. The transposes then meet and
/// cancel.
[[nodiscard]] Graph order_rows(const Graph& graph);

/// Reshapes out of the way of fusion: they are free between kernels but split what could be one. The same graph
/// in which
/// - matmul of [..., M, K] with a matrix [K, N] is two-dimensional: [B*M, K] x [K, N];
/// - reductions keep their dims, with a reshape after them, and are of such results;
/// - pointwise work and last-axis normalisation on such results come before the reshape;
/// - chains of reshape, slice and transpose stand in the order of views.h, merged where they can be.
[[nodiscard]] Graph flatten(const Graph& graph, const LoweringOptions& options);

/// The same graph in which little values whose two parts change places, for pointwise work alone, are gathered.
[[nodiscard]] Graph gather_rolls(const Graph& graph);

/// The same graph in which pointwise work that is read through equal reshapes alone, of inputs, reshaped and small values, is work
/// on reshapes of these.
[[nodiscard]] Graph raise_reshapes(const Graph& graph);

/// The same graph in which pointwise work with no other operand but numbers comes before reshapes and transposes of a
/// convolution's result, where nothing else reads that: the convolution's kernel takes it. With channels_last the same for
/// images that follow from convolutions.
[[nodiscard]] Graph work_ahead_of_views(const Graph& graph, const LoweringOptions& options);

/// Horizontal fusion. The same graph in which matmuls of one value with constant matrices of equal shape, each
/// with or each without a constant bias, are one matmul with the matrices side by side; its slices stand for
/// the results. Only where every result goes to views or attention, which read slices in place: pointwise work
/// would lose its epilogue. REQUIRES flatten first: only two-dimensional matmuls are merged.
/// Before: q = x Wq + bq, k = x Wk + bk, v = x Wv + bv. After: qkv = x [Wq Wk Wv] + [bq bk bv] and three slices.
[[nodiscard]] Graph merge_matmuls(const Graph& graph);

/// The time to compile a concat grows with the square of its inputs and more.
inline constexpr std::size_t most_concat_inputs = 32;
/// The same graph in which no concat has more than most_concat_inputs: longer ones are trees of them.
[[nodiscard]] Graph split_concats(const Graph& graph);
[[nodiscard]] Graph split_windows(const Graph& graph);

/// The same graph in which convolutions (not grouped, with a constant filter) of 16-bit images with fewer
/// than 8 channels read an image padded with zeros: to 4 or 8 channels, and around, so that no window leaves
/// it. With the channels innermost a filter row is then one run in memory; its taps are padded with zeros
/// until the run is a multiple of 16 bytes. `tf32`: f32 images, too, with fewer than 4 channels, are padded
/// to 2 or 4. For tensor cores, which read too few channels of a network's input otherwise.
[[nodiscard]] Graph widen_few_channels(const Graph& graph, bool tf32 = false);

/// The same graph in which scatters into a state, whose last value nothing else reads, are write_elements and write_nd:
/// its next value lies where it does.
[[nodiscard]] Graph write_states(const Graph& graph, const LoweringOptions& options);

/// Which values lie in memory with their channels in blocks, so that a vector register holds channels of one
/// pixel. The same graph in which images around convolutions have Layout{options.channel_block},
/// with to_layout nodes where a value is needed in the other layout. Inputs and outputs of the graph stay
/// dense, as do constants: to_layout of a constant stands for a weight that is packed when the program is
/// loaded. Blocked values flow through operations that keep the padded channels finite, so that a zero weight
/// wipes them out. A graph without convolutions comes back as it is.
/// With ImageLayout::channels_last it is f16 and bf16 images and volumes, with options.tf32 f32 as well, each in one
/// block of all its channels, where those are a multiple of 4 (no value is padded): as tensor cores read images. Transposes that then move nothing
/// stay, between the two layouts.
/// REQUIRES another layout than dense.
[[nodiscard]] Graph assign_layouts(const Graph& graph, const LoweringOptions& options);

/// The same graph in which a transpose that brings channels in blocks behind their pixels comes before the reshape that
/// merges the pixels: to_layout and transpose are then one kernel, which copies blocks to rows. For networks that
/// change between convolutions and tokens. REQUIRES assign_layouts first.
[[nodiscard]] Graph rows_of_blocks(const Graph& graph);

/// The same graph in which gathers that repeat every element along dims of a dense value, as nearest neighbours of maps that grow by
/// whole factors do, are one broadcast between reshapes. With options.open_sizes only where they do so at all sizes: where one
/// number of the model says how often. REQUIRES assign_layouts first: blocks are copied whole as it is.
[[nodiscard]] Graph repeat_pixels(const Graph& graph, const LoweringOptions& options);

/// In the order in which they are applied.
[[nodiscard]] std::span<const Pass<LoweringOptions>> lowering_passes();

}  // namespace sylvite
