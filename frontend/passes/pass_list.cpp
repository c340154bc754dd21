#include "frontend/passes/pass_list.h"

#include "frontend/passes/quantize_products.h"
#include "frontend/passes/rotate_pairs.h"

namespace sylvite {
namespace {

using Options = FrontendOptions;

// Folding and clean-up come first so that patterns see one spelling, and again to sweep up after them. Patterns
// know constants by more digits than narrow ones have: precision comes last.
constexpr Pass<Options> table[] = {
    {"fold_empty", always, plain<fold_empty>,
     "values without elements are constants, and what reads them is simpler"},
    {"widen_f16", [](const Options& options) { return options.widen_f16; },
     [](const Graph& graph, const Options&) { return widen_halves(graph, DType::f16); },
     "values that the model stores as f16 are f32 between its inputs and outputs"},
    {"widen_bf16", [](const Options& options) { return options.widen_bf16; },
     [](const Graph& graph, const Options&) { return widen_halves(graph, DType::bf16); },
     "the same of bf16, where nothing multiplies it"},
    {"fold_steps", [](const Options& options) { return options.integers; }, plain<fold_steps>,
     "evaluate what constants round to", has<Op::round>},
    {"integer_products", [](const Options& options) { return options.integers; }, plain<integer_products>,
     "matmuls and convolutions of dequantised values multiply integers", has<Op::matmul, Op::conv>},
    {"pool_steps", [](const Options& options) { return options.integers; }, plain<pool_steps>,
     "the largest of dequantised values is that of their integers, as is the sum; rounding gives integers "
     "back",
     has<Op::max_pool, Op::reduce_sum, Op::round>},
    {"fold_constants", always, plain<fold_constants>, "evaluate nodes whose inputs are all constants"},
    {"simplify_views", always, plain<simplify_views>,
     "drop and merge reshapes, transposes, slices and casts that do nothing"},
    {"common_subexpressions", always, plain<common_subexpressions>, "compute equal nodes once"},
    {"simplify_algebra", always, plain<simplify_algebra>,
     "log(exp(2x)) = 2x, x*1 = x, x^2 = x*x, 1/sqrt(x) = rsqrt(x), ..."},
    {"fold_lookups", always, plain<fold_lookups>,
     "what is computed of elements of small constants is looked up", has<Op::gather>},
    {"place_ranges", always, plain<place_ranges>,
     "values that are written to places known ahead are concats with what stays",
     has<Op::scatter_nd, Op::scatter_elements>},
    {"pad_windows", always, plain<pad_windows>,
     "zeros around an image are the padding of the convolution that reads it, and slices come ahead of pads",
     has<Op::pad>},
    {"trim_products", always, plain<trim_products>,
     "weights lose what only meets zeros, or makes what nobody reads", has<Op::matmul>},
    {"fold_batch_norm", always, plain<fold_batch_norm>,
     "BatchNorm into the convolution before it, else into a scale and a shift", has<Op::batch_norm>},
    {"drop_new_casts", always, plain<simplify_views>,
     "simplify_views, where a BatchNorm stood between two casts, or a scatter between two transposes"},
    {"fold_conv_bias", always, plain<fold_conv_bias>,
     "a per-channel addition after a convolution becomes its bias", has<Op::conv>},
    {"drop_padded_taps", always,
     [](const Graph& graph, const Options& options) { return drop_padded_taps(graph, options.open_sizes); },
     "lines and columns of filters that only ever meet padding are cut off", has<Op::conv>},
    {"fuse_gelu", always, plain<fuse_gelu>, "the erf and tanh spellings of GELU become gelu",
     has<Op::erf, Op::tanh>},
    {"fuse_silu", always, plain<fuse_silu>, "x*sigmoid(x) and x*clip(x+3,0,6)/6 become silu and hard_swish",
     has<Op::sigmoid, Op::hard_sigmoid, Op::minimum, Op::maximum>},
    {"fuse_layer_norm", always, plain<fuse_layer_norm>, "mean, variance, scale and shift become layer_norm",
     has<Op::sub, Op::layer_norm>},
    {"fuse_rms_norm", always, plain<fuse_rms_norm>, "mean of squares and scale become rms_norm"},
    {"fuse_attention", always, plain<fuse_attention>, "softmax(scale*Q*K^T + mask)*V becomes attention",
     has<Op::softmax, Op::attention, Op::attention_sums, Op::attention_gradient>},
    {"split_sums", always, plain<split_sums>, "sums over a short axis of stacked values become sums of these",
     has<Op::reduce_sum>},
    {"pick_sums", always, plain<pick_sums>,
     "sums along an axis that has one element which is not zero are that element", has<Op::reduce_sum>},
    {"join_columns", always, plain<join_columns>,
     "folds of a few columns each, side by side, become one fold of columns that one gather takes",
     has<Op::concat>},
    {"join_padded", always, plain<join_padded>,
     "sums of values among zeros, which lie side by side, become concats", has<Op::pad>},
    {"move_stacks", always, plain<move_stacks>,
     "values that are stacked and then moved inwards are put together there", has<Op::concat>},
    {"rotate_pairs", always, plain<rotate_pairs>,
     "concats of negated parts are concats times signs, as rotary embeddings turn rows", has<Op::concat>},
    {"fold_new_constants", always, plain<fold_constants>,
     "fold_constants, over what the passes between have made"},
    {"merge_new_subexpressions", always, plain<common_subexpressions>,
     "common_subexpressions, over what the passes between have made"},
    {"quantize_products", [](const Options& options) { return options.quantize; }, plain<quantize_products>,
     "matmuls by constants multiply 8-bit integers", has<Op::matmul>},
    {"store_narrow", [](const Options& options) { return options.narrow.has_value(); },
     [](const Graph& graph, const Options& options) {
       return store_narrow(graph, *options.narrow, options.narrow_options);
     },
     "f32 values and constants that are multiplied become bf16 or f16"},
    {"narrow_loops", always, plain<narrow_loops>,
     "what all trips of a loop round as they read it, and widen as they give it, goes in and out narrow",
     has<Op::loop>},
};

}  // namespace

std::span<const Pass<FrontendOptions>> frontend_passes() {
  return table;
}

Graph run_passes(const Graph& graph, const FrontendOptions& options, PassRunner& runner) {
  return runner.run(frontend_passes(), graph, options);
}

Graph run_passes(const Graph& graph) {
  PassRunner runner;
  return run_passes(graph, {}, runner);
}

}  // namespace sylvite
