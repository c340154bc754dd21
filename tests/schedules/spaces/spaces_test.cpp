#include <ostream>
#include <set>

#include "tests/support/bound_space.h"
#include "tests/support/run_kernel.h"

namespace sylvite::spaces_test {
namespace {

/// Small kernels with every kind of tail: the heuristic point of each space that takes one, and one other
/// point.
struct SpaceCase {
  const char* space;  ///< the one that default mode must choose
  const char* text;
};
/// Names the case in test lists, which would otherwise show the bytes of its pointers.
void PrintTo(const SpaceCase& one, std::ostream* out) {
  *out << one.space;
}

const SpaceCase
    cases[] =
        {
            {"pointwise",
             R"(graph g(%a: f32[3,5,7], %b: f32[3,5,7]) { %v: f32[3,5,7] = add(%a, %b)  %r: f32[3,5,7] = relu(%v) return %r })"},
            {"pointwise",
             R"(graph g(%a: f32[2,5,9,11], %b: f32[5,1,1]) { %v: f32[2,5,9,11] = mul(%a, %b) return %v })"},
            {"pointwise", R"(graph g(%a: f32[70,3], %b: f32[3]) { %v: f32[70,3] = mul(%a, %b) return %v })"},
            // Vectors of 64 remainders take LLVM minutes.
            {"pointwise",
             R"(graph g(%a: u8[32,16,2,1], %b: u8[1,1,2,1]) { %v: u8[32,16,2,1] = mod(%a, %b) {fmod=1} return %v })"},
            {"pointwise", R"(graph g(%a: f32[], %b: f32[1]) { %v: f32[1] = sub(%a, %b) return %v })"},
            {"pointwise", R"(graph g(%a: f32[]) { %v: f32[] = exp(%a) return %v })"},
            {"pointwise",
             R"(graph g(%a: bf16[4,100], %b: f32[4,100]) { %v: f32[4,100] = cast(%a) {to="f32"} %l: bool[4,100] = less(%v, %b) return %l })"},
            {"pointwise",
             R"(graph g(%a: f32[1,32,5,6]@c16, %b: f32[1,32,1,1]@c16, %c: f32[32,1,1]) { %v: f32[1,32,5,6]@c16 = mul(%a, %b) %s: f32[1,32,5,6]@c16 = add(%v, %c) return %s })"},
            {"transpose_tiles",
             R"(graph g(%a: f32[20,33,18]) { %v: f32[18,20,33] = transpose(%a) {perm=[2,0,1]} return %v })"},
            {"pointwise",
             R"(graph g(%a: f32[40,24], %i: i64[33]) { %v: f32[33,24] = gather(%a, %i) {axis=0} return %v })"},
            {"pointwise",
             R"(graph g(%a: f32[4,24], %b: f32[4,7]) { %v: f32[4,31] = concat(%a, %b) {axis=1} return %v })"},
            {"pointwise",
             R"(graph g(%a: f32[5,16], %b: f32[5,40], %c: f32[5,8]) { %v: f32[5,64] = concat(%a, %b, %c) {axis=1} return %v })"},
            {"pointwise",
             R"(graph g(%a: bf16[1,6,5,9], %b: bf16[1,6,5,9]) { %c: bf16[1,12,5,9] = concat(%a, %b) {axis=1} %r: bf16[1,2,6,5,9] = reshape(%c) {shape=[1,2,6,5,9]} %t: bf16[1,6,2,5,9] = transpose(%r) {perm=[0,2,1,3,4]} %v: bf16[1,12,5,9] = reshape(%t) {shape=[1,12,5,9]} return %v })"},
            {"pointwise",
             R"(graph g(%a: bf16[4,24], %b: bf16[4,7]) { %r: bf16[4,24] = relu(%a) %v: bf16[4,31] = concat(%r, %b) {axis=1} return %v })"},
            {"pointwise",
             R"(graph g(%a: bf16[5,4,9,7]) { %s: bf16[5,2,9,7] = slice(%a) {starts=[0,1,0,0], sizes=[5,2,9,7], steps=[1,1,1,1]} %v: bf16[2,5,9,7] = transpose(%s) {perm=[1,0,2,3]} return %v })"},
            // The extents are those of the input, the places are not.
            {"pointwise",
             R"(graph g(%a: f32[4,5,6]) { %v: f32[4,5,6] = slice(%a) {starts=[0,4,0], sizes=[4,5,6], steps=[1,-1,1]} return %v })"},
            {"pointwise",
             R"(graph g(%a: f32[4,5,6]) { %v: f32[4,5,6] = pad(%a) {low=[0,1,0], high=[0,-1,0], interior=[], mode="constant"} return %v })"},
            {"pointwise",
             R"(graph g(%a: f32[4,5,37]) { %v: f32[4,8,42] = pad(%a) {low=[0,1,2], high=[0,2,3], interior=[], mode="edge"} return %v })"},
            {"transpose_tiles",
             R"(graph g(%a: f32[4,6,6]) { %v: f32[4,6,6] = transpose(%a) {perm=[0,2,1]} return %v })"},
            {"pointwise",
             R"(graph g(%a: f32[33,18], %b: bf16[33,18], %c: f32[18]) { %w: f32[33,18] = cast(%b) {to="f32"} %v: f32[33,18] = mul(%a, %w) %s: f32[33,18] = add(%v, %c) %r: bf16[33,18] = cast(%s) {to="bf16"} %l: bool[33,18] = less(%v, %w) return %v, %r, %l })"},
            {"pointwise",
             R"(graph g(%a: f32[4,96], %b: f32[4,24,96]) { %p: f32[4,1,96] = slice(%b) {starts=[0,5,0], sizes=[4,1,96], steps=[1,1,1]} %q: f32[4,96] = reshape(%p) {shape=[4,96]} %v: f32[4,96] = maximum(%a, %q) %e: f32[4,96] = exp(%v) return %e, %v })"},
            {"pointwise",
             R"(graph g(%a: f32[1,20,5,6]@c16, %b: f32[1,20,1,1]@c16) { %v: f32[1,20,5,6]@c16 = mul(%a, %b) %s: f32[1,20,5,6]@c16 = tanh(%v) return %v, %s })"},
            {"transpose_tiles",
             R"(graph g(%a: f32[9,33,5]) { %e: f32[9,33,5] = exp(%a) %t: f32[33,5,9] = transpose(%e) {perm=[1,2,0]} %n: f32[33,5,9] = neg(%t) return %n })"},
            {"transpose_tiles",
             R"(graph g(%a: i64[70,33]) { %s: i64[64,21] = slice(%a) {starts=[3,2], sizes=[64,21], steps=[1,1]} %t: i64[21,64] = transpose(%s) {perm=[1,0]} return %t })"},
            {"transpose_tiles",
             R"(graph g(%a: f32[512,35]) { %t: f32[35,512] = transpose(%a) {perm=[1,0]} return %t })"},
            {"transpose_tiles",
             R"(graph g(%a: f32[40,512]) { %t: f32[512,40] = transpose(%a) {perm=[1,0]} return %t })"},
            {"pointwise",
             R"(graph g(%a: u8[33,40]) { %t: u8[40,33] = transpose(%a) {perm=[1,0]} return %t })"},
            {"pointwise",
             R"(graph g(%a: f32[33,40,3]) { %t: f32[3,33,40] = transpose(%a) {perm=[2,0,1]} return %t })"},
            {"layout_tiles",
             R"(graph g(%a: f32[2,20,5,9]@c16) { %v: f32[2,20,5,9] = to_layout(%a) {block=0} return %v })"},
            {"layout_tiles",
             R"(graph g(%a: bf16[1,58,6,13]@c32) { %v: bf16[1,58,6,13] = to_layout(%a) {block=0} return %v })"},
            {"layout_tiles",
             R"(graph g(%a: f32[3,11,6]@c8) { %v: f32[3,11,6] = to_layout(%a) {block=0} return %v })"},
            {"layout_tiles",
             R"(graph g(%a: bf16[2,90,3,7]) { %s: bf16[2,58,3,7] = slice(%a) {starts=[0,32,0,0], sizes=[2,58,3,7], steps=[1,1,1,1]} %v: bf16[2,58,3,7]@c32 = to_layout(%s) {block=32} return %v })"},
            {"pointwise",
             R"(graph g(%a: f32[1,20,5,9]) { %v: f32[1,20,5,9]@c16 = to_layout(%a) {block=16} return %v })"},
            {"pointwise",
             R"(graph g(%a: bf16[1,20,5,3]@c8) { %v: bf16[1,20,5,3] = to_layout(%a) {block=0} return %v })"},
            {"reduction_rows",
             R"(graph g(%a: f32[3,5,130]) { %v: i64[3,5,1] = arg_max(%a) {axis=2, keepdims=1, select_last=0} return %v })"},
            {"reduction_rows",
             R"(graph g(%a: u8[7,300]) { %v: i64[7] = arg_max(%a) {axis=1, keepdims=0, select_last=1} return %v })"},
            {"reduction_rows",
             R"(graph g(%a: u8[7,300]) { %r: u8[7,300] = maximum(%a, %a) %v: i64[7] = arg_min(%r) {axis=1, keepdims=0, select_last=0} %o: i64[7] = neg(%v) return %o })"},
            {"reduction_rows",
             R"(graph g(%a: i64[2,45]) { %v: i64[2] = arg_min(%a) {axis=1, keepdims=0, select_last=1} return %v })"},
            {"reduction_rows",
             R"(graph g(%a: bf16[9,21]) { %v: i64[9] = arg_max(%a) {axis=1, keepdims=0, select_last=0} return %v })"},
            {"reduction_rows",
             R"(graph g(%a: f32[3,5,130]) { %v: f32[3,5,1] = reduce_sum(%a) {axes=[2]} return %v })"},
            {"reduction_rows",
             R"(graph g(%a: f32[6,7,7]) { %x: f32[6,7,7] = relu(%a) %v: f32[6] = reduce_max(%x) {axes=[1,2], keepdims=0} return %v })"},
            {"reduction_rows",
             R"(graph g(%a: f32[1000]) { %v: f32[] = reduce_sum(%a) {axes=[0], keepdims=0} %s: f32[] = sqrt(%v) return %s })"},
            {"reduction_rows",
             R"(graph g(%a: f32[30,4]) { %v: f32[30,1] = reduce_min(%a) {axes=[1]} return %v })"},
            {"reduction_rows",
             R"(graph g(%a: f32[2,37,1,16], %b: f32[2,1,37,16]) { %d: f32[2,37,37,16] = sub(%a, %b) %q: f32[2,37,37,16] = mul(%d, %d) %s: f32[2,37,37,1] = reduce_sum(%q) {axes=[3]} %v: f32[2,37,37,1] = exp(%s) return %v })"},
            {"reduction_rows",
             R"(graph g(%a: f32[3,67,5]) { %e: f32[3,67,5] = exp(%a) %v: f32[3,67] = reduce_max(%e) {axes=[2], keepdims=0} return %v })"},
            {"reduction_rows",
             R"(graph g(%a: i64[41,3,1]) { %v: i64[41,1,1] = reduce_sum(%a) {axes=[1]} return %v })"},
            {"reduction_rows",
             R"(graph g(%a: f32[2,65,50]) { %s: f32[2,65,1] = reduce_sum(%a) {axes=[2]} %v: f32[2,65,1] = tanh(%s) return %v })"},
            {"reduction_rows",
             R"(graph g(%a: f32[3,4,5,20]) { %v: f32[1,4,1,1] = reduce_sum(%a) {axes=[0,2,3]} return %v })"},
            {"reduction_columns",
             R"(graph g(%a: f32[9,7,50]) { %v: f32[9,50] = reduce_sum(%a) {axes=[1], keepdims=0} return %v })"},
            {"reduction_columns",
             R"(graph g(%a: f32[2,20,7,7]@c16) { %v: f32[2,20,1,1]@c16 = reduce_sum(%a) {axes=[2,3]} return %v })"},
            {"reduction_columns",
             R"(graph g(%a: f32[2,20,7,7]@c16) { %v: f32[2,20] = reduce_sum(%a) {axes=[2,3], keepdims=0} return %v })"},
            {"reduction_columns",
             R"(graph g(%a: f32[2,40,5,7]@c16) { %v: f32[2,40,1,1]@c16 = reduce_sum(%a) {axes=[2,3]} %d: f32[2,40,1,1] = to_layout(%v) {block=0} return %d })"},
            {"reduction_columns",
             R"(graph g(%a: f32[8,30]) { %v: i64[30] = arg_max(%a) {axis=0, keepdims=0} return %v })"},
            {"reduction_columns", R"(graph g(%a: f32[2,5,19,21]) { %r: f32[2,5,19,21] = relu(%a) %v: f32[2,5,10,11] = max_pool(%r) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1], dilations=[1,1]} %o: f32[2,5,10,11] = neg(%v) return %o })"},
            {"reduction_columns",
             R"(graph g(%a: f32[1,3,40,37]) { %v: f32[1,3,39,31] = avg_pool(%a) {kernel=[13,4], strides=[1,1], pads=[5,0,6,3], dilations=[1,3], count_include_pad=1} return %v })"},
            {"reduction_columns",
             R"(graph g(%a: bf16[1,6,20,23]) { %v: bf16[1,6,9,8] = max_pool(%a) {kernel=[3,2], strides=[2,3], pads=[0,1,0,0], dilations=[1,1]} return %v })"},
            {"reduction_columns",
             R"(graph g(%a: i32[1,2,9,12,17]) { %v: i32[1,2,9,6,9] = max_pool(%a) {kernel=[1,3,3], strides=[1,2,2], pads=[0,1,1,0,1,1], dilations=[1,1,1]} return %v })"},
            {"reduction_columns",
             R"(graph g(%a: f32[1,32,9,9]@c16) { %v: f32[1,32,5,5]@c16 = max_pool(%a) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1], dilations=[1,1]} return %v })"},
            {"reduction_columns",
             R"(graph g(%a: f32[1,3,19,21]) { %v: f32[1,3,19,21] = avg_pool(%a) {kernel=[3,3], strides=[1,1], pads=[1,1,1,1], dilations=[1,1]} return %v })"},
            {"reduction_columns",
             R"(graph g(%a: f32[40,21], %i: i64[6,5], %w: f32[6,5,1]) { %g: f32[6,5,21] = gather(%a, %i) {axis=0} %m: f32[6,5,21] = mul(%g, %w) %v: f32[6,21] = reduce_sum(%m) {axes=[1], keepdims=0} return %v })"},
            {"whole_stages", R"(graph g(%a: f32[6,40]) { %v: f32[6,40] = cumsum(%a) {axis=0} return %v })"},
            {"whole_stages", R"(graph g(%a: f32[6,40]) { %v: f32[6,40] = cumsum(%a) {axis=1} return %v })"},
            {"whole_stages",
             R"(graph g(%a: f32[6,40]) { %v: f32[6,3], %i: i64[6,3] = top_k(%a) {axis=1, k=[3]} return %v, %i })"},
            {"whole_stages",
             R"(graph g(%a: f32[6,501]) { %v: f32[6,7], %i: i64[6,7] = top_k(%a) {axis=1, k=[7], ties=1} return %v, %i })"},
            {"whole_stages",
             R"(graph g(%a: f32[6,17]) { %v: f32[6,9], %i: i64[6,9] = top_k(%a) {axis=1, k=[9], ties=1} return %v, %i })"},
            {"whole_stages",
             R"(graph g(%a: f32[3,31,35]) { %v: f32[3,7,35], %i: i64[3,7,35] = top_k(%a) {axis=1, k=[7], ties=2} return %v, %i })"},
            {"whole_stages",
             R"(graph g(%a: f32[6,35]) { %v: f32[6,7], %i: i64[6,7] = top_k(%a) {axis=1, k=[7], ties=3} return %v, %i })"},
            {"whole_stages",
             R"(graph g(%a: f32[6,501]) { %v: f32[6,37], %i: i64[6,37] = top_k(%a) {axis=1, k=[37]} return %v, %i })"},
            {"whole_stages",
             R"(graph g(%a: f32[6,501]) { %v: f32[6,501], %i: i64[6,501] = top_k(%a) {axis=1, k=[501]} return %v, %i })"},
            {"whole_stages",
             R"(graph g(%a: f32[301,35]) { %v: f32[301,35], %i: i64[301,35] = top_k(%a) {axis=0, k=[301]} return %v, %i })"},
            {"whole_stages",
             R"(graph g(%a: f32[501,35]) { %v: f32[37,35], %i: i64[37,35] = top_k(%a) {axis=0, k=[37], largest=0} return %v, %i })"},
            {"whole_stages",
             R"(graph g(%a: f32[6,40], %i: i64[2,40], %u: f32[2,40]) { %v: f32[6,40] = scatter_elements(%a, %i, %u) {axis=0, reduction="add"} return %v })"},
            {"whole_stages",
             R"(graph g(%a: f32[6,37]) { %v: f32[6,37] = cumsum(%a) {axis=0, exclusive=1, reverse=1} return %v })"},
            {"whole_stages",
             R"(graph g(%a: f32[3,7,37]) { %v: f32[3,7,37] = cumprod(%a) {axis=1, reverse=1} return %v })"},
            {"whole_stages",
             R"(graph g(%a: i64[5,3]) { %v: i64[5,3] = cumsum(%a) {axis=0, exclusive=1} return %v })"},
            {"whole_stages", R"(graph g(%a: f32[1,9]) { %v: f32[1,9] = cumsum(%a) {axis=0} return %v })"},
            {"whole_stages",
             R"(graph g(%a: f32[6,40]) { %s: f32[6,40] = cumsum(%a) {axis=0} %v: f32[6,40] = relu(%s) return %v })"},
            {"whole_stages", R"(graph g(%a: bf16[6,40]) { %v: bf16[6,40] = cumsum(%a) {axis=0} return %v })"},
            {"whole_stages",
             R"(graph g(%a: f32[9,7], %i: i64[4,1], %u: f32[4,7]) { %v: f32[9,7] = scatter_nd(%a, %i, %u) {reduction="none"} return %v })"},
            {"whole_stages",
             R"(graph g(%a: f32[3,11], %b: f32[11], %i: i64[3,5], %u: f32[3,5]) { %x: f32[3,11] = add(%a, %b) %v: f32[3,11] = scatter_elements(%x, %i, %u) {axis=1, reduction="max"} return %v })"},
            {"whole_stages",
             R"(graph g(%a: bf16[9,7], %i: i64[4,1], %u: bf16[4,7]) { %v: bf16[9,7] = scatter_nd(%a, %i, %u) {reduction="add"} return %v })"},
            {"normalization_rows",
             R"(graph g(%a: f32[3,5,130]) { %v: f32[3,5,130] = softmax(%a) {axis=2} return %v })"},
            {"normalization_rows",
             R"(graph g(%a: f32[37]) { %v: f32[37] = log_softmax(%a) {axis=0} return %v })"},
            {"normalization_rows",
             R"(graph g(%a: f32[3,37,128]) { %v: f32[3,37,128] = log_softmax(%a) {axis=2} return %v })"},
            {"normalization_rows",
             R"(graph g(%a: f32[2,40,80], %b: f32[80]) { %x: f32[2,40,80] = add(%a, %b) %s: f32[2,40,80] = log_softmax(%x) {axis=2} %v: f32[2,40,80] = mul(%s, %b) return %v })"},
            {"normalization_rows",
             R"(graph g(%a: bf16[300,50]) { %v: bf16[300,50] = log_softmax(%a) {axis=1} return %v })"},
            {"normalization_rows",
             R"(graph g(%a: f32[3,37,5], %b: f32[5]) { %x: f32[3,37,5] = add(%a, %b) %s: f32[3,37,5] = softmax(%x) {axis=2} %v: f32[3,37,5] = mul(%s, %b) return %v })"},
            {"normalization_rows",
             R"(graph g(%a: bf16[300,200]) { %x: bf16[10000,6] = reshape(%a) {shape=[10000,6]} %v: bf16[10000,6] = log_softmax(%x) {axis=1} return %v })"},
            {"normalization_rows",
             R"(graph g(%a: f32[6,64], %b: f32[6,64], %s: f32[64], %t: f32[64]) { %x: f32[6,64] = add(%a, %b) %v: f32[6,64] = layer_norm(%x, %s, %t) {axis=1} %r: f32[6,64] = add(%v, %b) return %r })"},
            {"normalization_rows",
             R"(graph g(%a: f32[3,4,50], %s: f32[4,50]) { %v: f32[3,4,50] = layer_norm(%a, %s) {axis=1} return %v })"},
            {"normalization_rows",
             R"(graph g(%a: f32[2,3,17,64], %b: f32[64]) { %x: f32[2,3,17,64] = mul(%a, %b) %v: f32[2,3,17,64] = softmax(%x) {axis=3} return %v })"},
            {"normalization_rows",
             R"(graph g(%a: f32[3,11,4,50], %s: f32[4,50]) { %v: f32[3,11,4,50] = layer_norm(%a, %s) {axis=2} return %v })"},
            {"normalization_rows",
             R"(graph g(%a: f32[3,9], %s: f32[9]) { %v: f32[3,9] = rms_norm(%a, %s) {axis=1} return %v })"},
            {"normalization_columns",
             R"(graph g(%a: f32[3,7,40]) { %v: f32[3,7,40] = softmax(%a) {axis=1} return %v })"},
            {"contraction",
             R"(graph g(%a: i32[7,9], %b: i32[9,50]) { %v: i32[7,50] = matmul(%a, %b) return %v })"},
            {"contraction",
             R"(graph g(%a: f64[1,4,9,20], %b: f64[5,4,3,3]) { %v: f64[1,5,9,20] = conv(%a, %b) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1} return %v })"},
};

/// What the special spaces refuse.
const SpaceCase fallback_cases[] = {
    {"whole_stages",
     R"(graph g(%q: f64[2,9,8], %k: f64[2,11,8], %v: f64[2,11,5]) { %r: f64[2,9,5] = attention(%q, %k, %v) {causal=1} return %r })"},
    {"whole_stages",
     R"(graph g(%a: f32[1,32,5,6]@c16) { %v: f32[1,32,5,6]@c16 = softmax(%a) {axis=1} return %v })"},
    {"whole_stages",
     R"(graph g(%a: f32[4,50]) { %v: f32[4,50] = softmax(%a) {axis=1} %s: f32[4,1] = reduce_sum(%v) {axes=[1]} return %s })"},
    {"conv_blocked",
     R"(graph g(%a: f32[1,8,9,7]@c4, %w: f32[12,8,3,3]) { %v: f32[1,12,9,7]@c4 = conv(%a, %w) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1} return %v })"},
    {"contraction",
     R"(graph g(%a: f32[1,8,9,20], %w: f32[12,4,3,3]) { %v: f32[1,12,9,20] = conv(%a, %w) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=2} return %v })"},
};

/// Large enough for two threads, with task counts that do not divide.
const SpaceCase parallel_cases[] = {
    {"reduction_columns",
     R"(graph g(%a: f32[1,40,41,43], %b: f32[1,40,41,43]@c16) { %p: f32[1,40,41,43] = avg_pool(%a) {count_include_pad=0, dilations=[1,1], kernel=[3,3], pads=[1,1,1,1], strides=[1,1]} %d: f32[1,40,41,43] = sub(%p, %a) %l: f32[1,40,41,43]@c16 = to_layout(%d) {block=16} %v: f32[1,40,41,43]@c16 = add(%l, %b) return %v })"},
    {"reduction_columns",
     R"(graph g(%a: f32[2,20,33,45]) { %p: f32[2,20,17,23] = max_pool(%a) {dilations=[1,1], kernel=[3,3], pads=[1,1,1,1], strides=[2,2]} %v: f32[2,20,17,23]@c8 = to_layout(%p) {block=8} return %v })"},
    {"reduction_columns",
     R"(graph g(%a: f32[1,80,7,7]) { %p: f32[1,80,7,7] = avg_pool(%a) {count_include_pad=1, dilations=[1,1], kernel=[3,3], pads=[1,1,1,1], strides=[1,1]} %v: f32[1,80,7,7]@c16 = to_layout(%p) {block=16} return %v })"},
    {"reduction_columns",
     R"(graph g(%a: f32[3,37,50,21]) { %s: f32[3,37,21] = reduce_sum(%a) {axes=[2], keepdims=0} %v: f32[3,21,37] = transpose(%s) {perm=[0,2,1]} return %v })"},
    {"pointwise",
     R"(graph g(%a: f32[3,101,203], %b: f32[3,101,203]) { %v: f32[3,101,203] = add(%a, %b) return %v })"},
    {"transpose_tiles",
     R"(graph g(%a: f32[37,67,33]) { %v: f32[67,33,37] = transpose(%a) {perm=[1,2,0]} return %v })"},
    {"transpose_tiles",
     R"(graph g(%a: f32[2,67,203]) { %t: f32[2,203,67] = transpose(%a) {perm=[0,2,1]} %v: f32[2,203,67] = gelu(%t) {approximate="none"} return %v })"},
    {"pointwise",
     R"(graph g(%a: f32[1,33,19,21], %b: f32[1,19,21,40]) { %t: f32[1,40,19,21] = transpose(%b) {perm=[0,3,1,2]} %v: f32[1,73,19,21] = concat(%a, %t) {axis=1} return %v })"},
    {"transpose_tiles",
     R"(graph g(%a: bf16[5,131,9,13], %b: bf16[5,9,13,131]) { %t: bf16[5,9,13,131] = transpose(%a) {perm=[0,2,3,1]} %v: bf16[5,9,13,131] = add(%t, %b) return %v })"},
    {"pointwise",
     R"(graph g(%a: f32[1,40,41,43]@c16, %b: f32[1,40,1,1]@c16) { %v: f32[1,40,41,43]@c16 = mul(%a, %b) return %v })"},
    {"layout_tiles",
     R"(graph g(%a: bf16[2,77,23,29]@c32) { %v: bf16[2,77,23,29] = to_layout(%a) {block=0} return %v })"},
    {"layout_tiles",
     R"(graph g(%a: bf16[2,77,23,29]) { %v: bf16[2,77,23,29]@c16 = to_layout(%a) {block=16} return %v })"},
    {"reduction_rows",
     R"(graph g(%a: f32[7,19,530]) { %v: f32[7,19,1] = reduce_max(%a) {axes=[2]} return %v })"},
    {"reduction_columns",
     R"(graph g(%a: f32[9,70,150]) { %v: f32[9,150] = reduce_sum(%a) {axes=[1], keepdims=0} return %v })"},
    {"reduction_columns",
     R"(graph g(%a: f32[1,48,43,41]@c16) { %v: f32[1,48,22,21]@c16 = max_pool(%a) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1], dilations=[1,1]} return %v })"},
    {"reduction_columns",
     R"(graph g(%a: f32[1,77,23,29]@c16) { %v: f32[1,77,1,1]@c16 = reduce_max(%a) {axes=[2,3]} %d: f32[1,77,1,1] = to_layout(%v) {block=0} return %d })"},
    {"whole_stages", R"(graph g(%a: f32[61,30,40]) { %v: f32[61,30,40] = cumsum(%a) {axis=1} return %v })"},
    {"normalization_rows",
     R"(graph g(%a: f32[7,9,257]) { %v: f32[7,9,257] = softmax(%a) {axis=2} return %v })"},
    {"normalization_columns",
     R"(graph g(%a: f32[9,17,140]) { %v: f32[9,17,140] = softmax(%a) {axis=1} return %v })"},
    {"contraction",
     R"(graph g(%a: i32[3,37,19], %b: i32[19,50]) { %v: i32[3,37,50] = matmul(%a, %b) return %v })"},
};

class Spaces : public testing::TestWithParam<SpaceCase> {};

TEST_P(Spaces, AgreeWithTheInterpreter) {
  const Kernel kernel = kernel_of(GetParam().text);
  Machine machine = detect_machine(2);
  const std::vector<BoundSpace> spaces = spaces_for(kernel, machine);
  EXPECT_EQ(spaces.front().name, GetParam().space) << kernel.text;
  std::set<std::string> seen;
  for (const BoundSpace& space : spaces) {
    for (const Point& point : {space.heuristic, far_point(space)}) {
      const Candidate candidate = space.at(point);
      if (!seen.insert(candidate.to_string()).second) continue;
      EXPECT_EQ(Candidate::parse(candidate.to_string()), candidate);
      check_candidate(kernel, candidate);
      EXPECT_TRUE(!space.cost || space.cost(point) > 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, Spaces, testing::ValuesIn(cases));

INSTANTIATE_TEST_SUITE_P(Fallback, Spaces, testing::ValuesIn(fallback_cases));
INSTANTIATE_TEST_SUITE_P(Parallel, Spaces, testing::ValuesIn(parallel_cases));

TEST(Points, AreWrittenByNames) {
  const BoundSpace space{"tiled", {{"rows", {4, 8}}, {"panels", {2, 1}}}, {4, 2}, {}, {}};
  const Point point = point_with(space, {{"panels", 3}});
  EXPECT_EQ(point, (Point{4, 3}));
  EXPECT_EQ(named_values(space, point), (NamedValues{{"rows", 4}, {"panels", 3}}));
  EXPECT_THROW((void)point_with(space, {{"colums", 3}}), UsageError);
}

TEST(Points, HaveAValueForEachParameter) {
  const Kernel kernel = kernel_of("graph g(%a: f32[9,40]) { %v: f32[9,40] = exp(%a) return %v }");
  const Machine machine = detect_machine(1);
  const BoundSpace space = spaces_for(kernel, machine).front();
  Point point = space.heuristic;
  point.pop_back();
  EXPECT_THROW((void)space.at(point), InternalError);
  EXPECT_THROW((void)space.cost(point), InternalError);
}

// What a convolution reads has the digits of bf16, also where it is computed on the way.
TEST(SpaceTable, ConvolutionsReadWhatWouldBeStored) {
  const Kernel kernel =
      kernel_of(R"(graph g(%x: bf16[1,32,4,5]@c32, %s: f32[1,32,1,1]@c32, %w: bf16[32,32,1,1]) {
    %i: bf16[1,32,4,5]@c32 = mul(%x, %s)
    %v: bf16[1,32,4,5]@c32 = conv(%i, %w) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}
    return %v
  })");
  const Machine machine = detect_machine(2);
  for (const BoundSpace& space : spaces_for(kernel, machine))
    check_candidate(kernel, space.at(space.heuristic));
}

// Tiles that do not divide their loops inside tasks that do not divide theirs.
TEST(ContractionSpace, TailsOfTilesAndTasksGoTogether) {
  const Kernel kernel = kernel_of(R"(graph g(%x: f64[2,4,10,48], %w: f64[16,4,3,1]) {
    %v: f64[2,16,5,25] = conv(%x, %w) {dilations=[1,1], groups=1, pads=[0,1,1,0], strides=[2,2]}
    %n: f64[2,16,5,25] = neg(%v)
    return %n
  })");
  Machine machine = detect_machine(2);
  machine.vector_floats = 16;
  for (const BoundSpace& space : spaces_for(kernel, machine)) {
    if (space.name != "contraction") continue;
    check_candidate(kernel, space.at(point_with(space, {{"vectors", 4}, {"rows", 6}, {"tasks", 4}})));
    return;
  }
  FAIL() << "the space does not take the kernel";
}

// 9,408 vectors with two threads: a task each would take longer to hand out than to do.
TEST(PointwiseSpace, TasksOfLoopsThatMayBeShortAreNoSingleVectors) {
  const Kernel kernel =
      kernel_of("graph g(%a: f32[s0]) where {s0: 16..@150528} { %v: f32[s0] = exp(%a) return %v }");
  Machine machine = detect_machine(2);
  machine.vector_floats = 16;
  const BoundSpace space = spaces_for(kernel, machine).front();
  ASSERT_EQ(space.name, "pointwise");
  const std::string schedule = space.at(space.heuristic).to_string();
  EXPECT_NE(schedule.find(".split(o0, t3, o4, 294, TailStrategy::GuardWithIf).parallel(t3)"),
            std::string::npos)
      << schedule;
}

// A step that touches an end of its line gathers what it reads.
TEST(PointwiseSpace, StepsOfReflectedLinesAreShort) {
  const Machine machine = detect_machine(1);
  for (const auto& [mode, vectors] : {std::pair{"constant", 4}, {"reflect", 1}, {"wrap", 1}}) {
    const Kernel kernel = kernel_of(
        fmt::format("graph g(%a: f32[8,70]) {{ %v: f32[8,76] = pad(%a) {{high=[0,3], interior=[], low=[0,3], "
                    "mode=\"{}\"}} return %v }}",
                    mode));
    const BoundSpace space = spaces_for(kernel, machine).front();
    EXPECT_EQ(named_values(space, space.heuristic).at("vectors"), vectors) << mode;
    check_candidate(kernel, space.at(space.heuristic));
  }
}

TEST(SpaceTable, RefusalsSayWhy) {
  const Kernel kernel = kernel_of("graph g(%a: f32[4,24]) { %v: f32[4,24] = exp(%a) return %v }");
  std::vector<Refusal> refusals;
  const std::vector<BoundSpace> accepted = spaces_for(kernel, detect_machine(1), &refusals);
  ASSERT_FALSE(accepted.empty());
  EXPECT_EQ(accepted.front().name, "pointwise");
  EXPECT_EQ(accepted.back().name, "reference");
  EXPECT_EQ(accepted.size() + refusals.size(), space_table().size());
  for (const Refusal& refusal : refusals) EXPECT_FALSE(refusal.reason.empty()) << refusal.space;
}

}  // namespace
}  // namespace sylvite::spaces_test
