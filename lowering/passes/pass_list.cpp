#include "lowering/passes/pass_list.h"

#include "lowering/passes/expand_products.h"
#include "lowering/passes/extend_work.h"
#include "lowering/passes/fold_scans.h"
#include "lowering/passes/join_batches.h"
#include "lowering/passes/join_groups.h"
#include "lowering/passes/lay_small_values.h"
#include "lowering/passes/merge_dense_folds.h"
#include "lowering/passes/multiply_repeated.h"
#include "lowering/passes/multiply_sums.h"
#include "lowering/passes/norm_groups.h"
#include "lowering/passes/share_keys.h"
#include "lowering/passes/split_gates.h"

namespace sylvite {
namespace {

using Options = LoweringOptions;

bool fuses(const Options& options) {
  return options.fuse;
}

bool fuses_blocks(const Options& options) {
  return options.fuse && options.image_layout == ImageLayout::channel_blocks;
}

bool fuses_for_templates(const Options& options) {
  return options.fuse && options.refuse_template != nullptr;
}

bool fuses_innermost(const Options& options) {
  return options.fuse && options.image_layout == ImageLayout::channels_last;
}

constexpr Pass<Options> table[] = {
    {"multiply_patches", [](const Options& options) { return options.multiply_patches; }, multiply_patches,
     "convolutions whose windows lie side by side become matmuls, for tensor cores", has<Op::conv>},
    {"widen_bits", [](const Options& options) { return options.widen_bits; }, plain<widen_bits>,
     "products by weights of a few bits become products by widened weights"},
    {"widen_attention", fuses_for_templates, widen_attention,
     "attention whose heads are no multiple of 16 bytes gets zeros behind each, as the template takes them",
     has<Op::attention>},
    {"divide_attention", fuses_for_templates, divide_attention,
     "attention that no template takes becomes products and a softmax, which have templates",
     has<Op::attention>},
    {"unstack_folds", fuses, unstack_folds,
     "folds of a few values that a concat puts side by side are work on these", has<Op::concat>},
    {"slice_patches", fuses_for_templates, plain<slice_patches>,
     "folds along the places of windows, of what these meet, are work on slices", has<Op::gather>},
    {"multiply_sums", fuses_for_templates, plain<multiply_sums>,
     "sums of products of two values that are repeated along each other's dims are products of matrices",
     has<Op::reduce_sum>},
    {"join_batches", fuses_for_templates, join_batches,
     "products of several batches by one matrix are of the rows of all", has<Op::matmul>},
    {"multiply_repeated", fuses_for_templates, plain<multiply_repeated>,
     "what a concat repeats for all rows or pixels is multiplied once by its part of the weights",
     has<Op::concat>},
    {"expand_products", fuses_for_templates, plain<expand_products>,
     "products of many tiny matrices are sums of products of their columns and rows", has<Op::matmul>},
    {"fold_scans", fuses_for_templates, plain<fold_scans>,
     "running sums of few elements are sums, each of those that count", has<Op::cumsum>},
    {"merge_scanned", fuses_blocks, plain<merge_scanned>,
     "running sums, top-k and softmax are of at most three dims, along which vectors are filled",
     has<Op::cumsum, Op::top_k, Op::softmax, Op::log_softmax>},
    {"merge_concats", fuses_blocks, plain<merge_concats>,
     "values of short rows are put side by side along longer ones", has<Op::concat>},
    {"gather_rolls", fuses_for_templates, plain<gather_rolls>,
     "little values whose parts change places are looked up, by the work that reads them", has<Op::concat>},
    {"extend_work", fuses_for_templates, plain<extend_work>,
     "concats of a value's few places as they are and of work on the others are work on all",
     has<Op::concat>},
    {"split_gates", fuses_for_templates, plain<split_gates>,
     "large products of whose results two halves are worked on together are two products", has<Op::slice>},
    {"convolve_planes",
     [](const Options& options) { return options.fuse && options.image_layout != ImageLayout::dense; },
     [](const Graph& graph, const Options& options) {
       return convolve_planes(graph, options.image_layout == ImageLayout::channels_last);
     },
     "convolutions over one and three dims become two-dimensional, as templates take them", has<Op::conv>},
    {"slice_windows", fuses_for_templates,
     [](const Graph& graph, const Options& options) {
       return slice_windows(graph, options.image_layout == ImageLayout::channels_last);
     },
     "windows of one channel that move by one along an outer dim are work on slices, or products by bands",
     has<Op::avg_pool, Op::max_pool>},
    {"part_volumes", fuses_innermost,
     [](const Graph& graph, const Options& options) { return part_volumes(graph, options.tf32); },
     "volumes of few channels whose windows are one column wide are that many images", has<Op::conv>},
    {"join_pixels", fuses_innermost,
     [](const Graph& graph, const Options& options) { return join_pixels(graph, options.tf32); },
     "images of one or few channels have eight pixels as the channels of one, where few results are made",
     has<Op::conv>},
    {"join_groups", fuses_innermost, join_groups,
     "convolutions of groups by computed filters are few of one group, with zeros between groups",
     has<Op::conv, Op::filter_gradient>},
    {"norm_groups",
     [](const Options& options) { return fuses_innermost(options) && options.refuse_template; }, norm_groups,
     "group normalisation of images whose channels lie innermost is one kernel", has<Op::layer_norm>},
    {"norm_images", fuses_innermost,
     [](const Graph& graph, const Options& options) { return norm_images(graph, options.tf32); },
     "norms over pixels, or of groups of channels, become sums over pixels and work on each",
     has<Op::layer_norm, Op::rms_norm>},
    {"fold_channel_groups", fuses_innermost,
     [](const Graph& graph, const Options& options) { return fold_channel_groups(graph, options.tf32); },
     "folds of groups of channels, and what is broadcast over these, take images as they lie",
     has<Op::reshape>},
    {"spread_folds", fuses_for_templates, plain<spread_folds>,
     "sums of short rows that all elements of a row are told are folded by each of these",
     has<Op::broadcast_to>},
    {"norm_by_statistics", fuses_for_templates, plain<norm_by_statistics>,
     "norms of rows whose mean and deviation are kept are work with these",
     has<Op::layer_norm, Op::rms_norm>},
    {"pick_shares", fuses_for_templates, plain<pick_shares>,
     "few elements of rows of softmax are made of what they are made of and of sums, which one kernel makes",
     has<Op::gather_elements>},
    {"divide_variances", fuses_for_templates, plain<divide_variances>,
     "variances of what is large are those of parts and of their means, so that it is read once",
     has<Op::reduce_sum>},
    {"divide_places", fuses_for_templates, plain<divide_places>,
     "places of greatest and least elements of few long rows are those of parts, and the best of these",
     has<Op::arg_max, Op::arg_min>},
    {"divide_folds", fuses_for_templates, plain<divide_folds>,
     "few folds of long rows are folds of folds of parts, so that many are made at once",
     has<Op::reduce_sum, Op::reduce_max, Op::reduce_min, Op::reduce_prod>},
    {"work_ahead_of_views", fuses, work_ahead_of_views,
     "pointwise work on a reshaped or transposed result of a product comes before the view"},
    {"merge_folds", fuses,
     [](const Graph& graph, const Options& options) {
       return fuses_innermost(options) ? merge_folds(graph, options.tf32) : merge_short_folds(graph);
     },
     "norms and reductions over several dims that lie together fold one"},
    {"spread_short_rows", fuses_for_templates, plain<spread_short_rows>,
     "folds of two to four elements, and softmax of so few innermost ones, are pointwise work on slices"},
    {"divide_expectations", fuses_innermost,
     [](const Graph& graph, const Options& options) { return divide_expectations(graph, options.tf32); },
     "sums of a softmax times weights are quotients of sums, which one kernel makes", has<Op::softmax>},
    {"turn_norms", fuses_innermost,
     [](const Graph& graph, const Options& options) { return turn_norms(graph, options.tf32); },
     "softmax along another dim than the innermost, and norms over channels, are of rows, between transposes",
     has<Op::softmax, Op::log_softmax, Op::rsqrt, Op::sqrt>},
    {"turn_gathers", fuses_innermost, plain<turn_gathers>,
     "places that are read of all channels of a map alike are rows of channels", has<Op::gather_elements>},
    {"sink_transposes", fuses_innermost,
     [](const Graph& graph, const Options& options) { return sink_transposes(graph, options.tf32); },
     "transposes that bring channels ahead of pixels move behind pointwise work, where they move nothing",
     has<Op::transpose>},
    {"turn_products", fuses_for_templates, turn_products,
     "products of transposed matrices by weights are products by the weights from the left, on what lies "
     "there"},
    {"order_rows", fuses, plain<order_rows>,
     "transposes move behind the matmuls whose rows they order, where they meet others and cancel",
     has<Op::transpose>},
    {"flatten", fuses, flatten,
     "matmuls and what follows them become two-dimensional; reshapes move to where they are free"},
    {"share_keys", fuses_for_templates, share_keys,
     "attention whose keys and values are repeated for neighbouring heads reads each once",
     has<Op::attention>},
    {"merge_matmuls", fuses, plain<merge_matmuls>,
     "products of one value stand side by side: query, key and value are one matmul"},
    {"flatten_new_slices", fuses, flatten,
     "flatten, so that slices of merged matmuls come behind the reshapes that follow them"},
    {"raise_reshapes", fuses, plain<raise_reshapes>,
     "pointwise work that is read through reshapes alone is done on reshaped operands, where it meets its "
     "readers",
     has<Op::reshape>},
    {"split_concats", [](const Options&) { return true; }, plain<split_concats>,
     "concats of many inputs become trees of concats, whose kernels compile in bounded time",
     has<Op::concat>},
    {"split_windows", fuses_blocks, plain<split_windows>,
     "the largest of windows that move by one is found along one dim after the other; windows of volumes "
     "lose "
     "their first dim",
     has<Op::max_pool, Op::avg_pool>},
    {"widen_channels", fuses_innermost,
     [](const Graph& graph, const Options& options) { return widen_channels(graph, options.tf32); },
     "images of odd numbers of channels get channels of zeros, so that a pixel's are whole vectors",
     has<Op::conv>},
    {"widen_few_channels",
     [](const Options& options) { return options.image_layout == ImageLayout::channels_last; },
     [](const Graph& graph, const Options& options) { return widen_few_channels(graph, options.tf32); },
     "images of three channels are padded to four or eight, and around, for tensor cores", has<Op::conv>},
    {"divide_gradients",
     [](const Options& options) { return options.image_layout == ImageLayout::channels_last; },
     divide_gradients,
     "gradients of filters are sums of parts, each for its pixels, so that many are made at once",
     has<Op::filter_gradient>},
    {"divide_products",
     [](const Options& options) { return options.image_layout == ImageLayout::channels_last; },
     plain<divide_products>,
     "products of few results by many rows are sums of those of parts, so that many are made at once",
     has<Op::matmul>},
    {"divide_scatters",
     [](const Options& options) { return options.image_layout == ImageLayout::channels_last; },
     plain<divide_scatters>,
     "many rows that are added to few are added in parts, so that none waits for all of its own",
     has<Op::scatter_nd>},
    {"bound_scatters", fuses_for_templates, plain<bound_scatters>,
     "many updates that replace come with the least and the greatest place of each part",
     has<Op::scatter_nd>},
    {"divide_sums", [](const Options& options) { return options.image_layout == ImageLayout::channels_last; },
     plain<divide_sums>,
     "sums over all pixels of a batch are sums of those of its images, so that many are made at once",
     has<Op::reduce_sum>},
    {"turn_images", fuses_innermost,
     [](const Graph& graph, const Options& options) { return turn_images(graph, options.tf32); },
     "rows of an image's pixels are taken from the image with its channels innermost, where they lie"},
    {"widen_turned", fuses_for_templates, plain<widen_turned>,
     "numbers become wider behind transposes, which then move less", has<Op::cast>},
    {"align_rows", fuses_innermost,
     [](const Graph& graph, const Options& options) { return align_rows(graph, options.tf32); },
     "operands of large products whose rows are no multiple of 16 bytes are copied to rows that are",
     has<Op::matmul>},
    {"assign_layouts", [](const Options& options) { return options.image_layout != ImageLayout::dense; },
     assign_layouts, "values around convolutions lie with their channels in blocks"},
    {"merge_dense_folds", fuses_innermost, plain<merge_dense_folds>,
     "norms and reductions over several dims that lie together fold one where images stay dense"},
    {"lay_small_values", fuses_innermost, plain<lay_small_values>,
     "numbers for channels are made in the layout that their readers want, and by these", has<Op::to_layout>},
    {"rows_of_blocks", fuses_blocks, plain<rows_of_blocks>,
     "blocks of channels that become rows of tokens do so in one kernel", has<Op::to_layout>},
    {"repeat_pixels", fuses_blocks, repeat_pixels,
     "gathers that repeat each element along dims are one broadcast", has<Op::gather>},
    {"write_states", [](const Options&) { return true; }, write_states,
     "states of which some elements are replaced are written where they lie"},
};

}  // namespace

std::span<const Pass<LoweringOptions>> lowering_passes() {
  return table;
}

}  // namespace sylvite
