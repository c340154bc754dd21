#pragma once
// Small kernels of every class, with odd sizes, for the schedule spaces of a GPU.

#include <ostream>

#include "schedules/space.h"
#include "tests/support/sample_card.h"

namespace sylvite {

struct GpuCase {
  const char* space;  ///< the one that default mode must choose
  const char* text;
};
/// Names the case in test lists.
inline void PrintTo(const GpuCase& one, std::ostream* out) {
  *out << one.space;
}

inline const GpuCase gpu_cases[] = {
    {"gpu_elements",
     R"(graph g(%a: f32[3,5,7], %b: f32[3,5,7]) { %v: f32[3,5,7] = add(%a, %b)  %r: f32[3,5,7] = relu(%v) return %r })"},
    {"gpu_elements",
     R"(graph g(%a: f32[64,3072], %b: f32[3072], %c: f32[64,3072]) { %v: f32[64,3072] = add(%a, %b)  %r: f32[64,3072] = gelu(%v) %s: f32[64,3072] = add(%r, %c) return %s })"},
    {"gpu_elements",
     R"(graph g(%a: f32[2,5,9,12], %b: f32[5,1,1]) { %v: f32[2,5,9,12] = mul(%a, %b) return %v })"},
    {"gpu_elements", R"(graph g(%a: f32[70,3], %b: f32[3]) { %v: f32[70,3] = mul(%a, %b) return %v })"},
    {"gpu_elements", R"(graph g(%a: f32[]) { %v: f32[] = exp(%a) return %v })"},
    {"gpu_elements", R"(graph g(%a: f64[40]) { %v: f64[40] = tanh(%a) return %v })"},
    {"gpu_elements",
     R"(graph g(%a: bf16[4,96], %b: f32[4,96]) { %v: f32[4,96] = cast(%a) {to="f32"} %l: bool[4,96] = less(%v, %b) return %l })"},
    {"gpu_elements",
     R"(graph g(%a: bf16[16,1024], %b: f16[16,1024]) { %v: f32[16,1024] = cast(%a) {to="f32"} %w: f32[16,1024] = cast(%b) {to="f32"} %m: f32[16,1024] = mul(%v, %w) %r: bf16[16,1024] = cast(%m) {to="bf16"} return %r })"},
    {"gpu_elements",
     R"(graph g(%a: f32[3,40], %s: f32[], %z: u8[], %t: f32[]) { %p: f32[] = mul(%s, %s) %q: u8[3,40] = round(%a, %p, %z) {to="u8"} %v: f32[3,40] = cast(%q) {to="f32"} %m: f32[3,40] = minimum(%v, %a) %u: f32[] = mul(%t, %t) %r: i8[3,40] = round(%m, %u) {to="i8"} return %r })"},
    {"gpu_elements",
     R"(graph g(%a: f32[3,40], %s: f32[]) { %p: f32[] = mul(%s, %s) %r: i16[3,40] = round(%a, %p) {to="i16"} return %r })"},
    {"gpu_elements",
     R"(graph g(%a: f32[20,33,18]) { %v: f32[18,20,33] = transpose(%a) {perm=[2,0,1]} return %v })"},
    {"gpu_elements",
     R"(graph g(%a: f32[40,24], %i: i64[33]) { %v: f32[33,24] = gather(%a, %i) {axis=0} return %v })"},
    {"gpu_elements",
     R"(graph g(%a: f32[4,24], %b: f32[4,7]) { %v: f32[4,31] = concat(%a, %b) {axis=1} return %v })"},
    {"gpu_elements",
     R"(graph g(%a: bf16[1,6,5,9], %b: bf16[1,6,5,9]) { %c: bf16[1,12,5,9] = concat(%a, %b) {axis=1} %r: bf16[1,2,6,5,9] = reshape(%c) {shape=[1,2,6,5,9]} %t: bf16[1,6,2,5,9] = transpose(%r) {perm=[0,2,1,3,4]} %v: bf16[1,12,5,9] = reshape(%t) {shape=[1,12,5,9]} return %v })"},
    {"gpu_elements",
     R"(graph g(%a: bf16[40,24], %i: i64[33]) { %v: bf16[33,24] = gather(%a, %i) {axis=0} return %v })"},
    {"gpu_elements",
     R"(graph g(%a: f32[33,18], %b: bf16[33,18], %c: f32[18]) { %w: f32[33,18] = cast(%b) {to="f32"} %v: f32[33,18] = mul(%a, %w) %s: f32[33,18] = add(%v, %c) %r: bf16[33,18] = cast(%s) {to="bf16"} %l: bool[33,18] = less(%v, %w) return %v, %r, %l })"},
    {"gpu_elements",
     R"(graph g(%a: f32[4,96], %b: f32[4,24,96]) { %p: f32[4,1,96] = slice(%b) {starts=[0,5,0], sizes=[4,1,96], steps=[1,1,1]} %q: f32[4,96] = reshape(%p) {shape=[4,96]} %v: f32[4,96] = maximum(%a, %q) %e: f32[4,96] = exp(%v) return %e, %v })"},
    {"gpu_rows", R"(graph g(%a: f32[3,5,130]) { %v: f32[3,5,1] = reduce_sum(%a) {axes=[2]} return %v })"},
    {"gpu_tiles",
     R"(graph g(%a: f32[6,7,7]) { %x: f32[6,7,7] = relu(%a) %v: f32[6] = reduce_max(%x) {axes=[1,2], keepdims=0} return %v })"},
    {"gpu_reference",
     R"(graph g(%a: f32[1000]) { %v: f32[] = reduce_sum(%a) {axes=[0], keepdims=0} %s: f32[] = sqrt(%v) return %s })"},
    {"gpu_tiles",
     R"(graph g(%a: f32[9,7,50]) { %v: f32[9,50] = reduce_sum(%a) {axes=[1], keepdims=0} return %v })"},
    {"gpu_tiles", R"(graph g(%a: f32[8,30]) { %v: i64[8] = arg_max(%a) {axis=1, keepdims=0} return %v })"},
    {"gpu_tiles",
     R"(graph g(%a: f32[2,20,9,9]) { %v: f32[2,20,5,5] = max_pool(%a) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1], dilations=[1,1]} return %v })"},
    {"gpu_reference", R"(graph g(%a: f32[6,9,40]) { %v: f32[6,9,40] = cumsum(%a) {axis=1} return %v })"},
    {"gpu_reference", R"(graph g(%a: f32[40]) { %v: f32[40] = cumsum(%a) {axis=0} return %v })"},
    {"gpu_reference",
     R"(graph g(%a: f32[6,40]) { %v: f32[6,3], %i: i64[6,3] = top_k(%a) {axis=1, k=[3]} return %v, %i })"},
    {"gpu_reference",
     R"(graph g(%a: f32[6,40], %i: i64[2,40], %u: f32[2,40]) { %v: f32[6,40] = scatter_elements(%a, %i, %u) {axis=0, reduction="add"} return %v })"},
    {"gpu_rows", R"(graph g(%a: f32[3,5,130]) { %v: f32[3,5,130] = softmax(%a) {axis=2} return %v })"},
    {"gpu_reference", R"(graph g(%a: f32[37]) { %v: f32[37] = log_softmax(%a) {axis=0} return %v })"},
    {"gpu_rows",
     R"(graph g(%a: f32[6,64], %b: f32[6,64], %s: f32[64], %t: f32[64]) { %x: f32[6,64] = add(%a, %b) %v: f32[6,64] = layer_norm(%x, %s, %t) {axis=1} %r: f32[6,64] = add(%v, %b) return %r })"},
    {"gpu_reference",
     R"(graph g(%a: f32[3,9], %s: f32[9]) { %v: f32[3,9] = rms_norm(%a, %s) {axis=1} return %v })"},
    {"gpu_reference", R"(graph g(%a: f32[3,7,40]) { %v: f32[3,7,40] = softmax(%a) {axis=1} return %v })"},
    {"gpu_tiles",
     R"(graph g(%a: f32[7,19], %w: f32[19,50], %b: f32[50]) { %v: f32[7,50] = matmul(%a, %w) %r: f32[7,50] = add(%v, %b) return %r })"},
    {"gpu_tiles",
     R"(graph g(%a: f32[1,8,9,20], %w: f32[12,4,3,3]) { %v: f32[1,12,9,20] = conv(%a, %w) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=2} return %v })"},
    {"gpu_reference",
     R"(graph g(%q: f32[2,9,8], %k: f32[2,11,8], %v: f32[2,11,5]) { %r: f32[2,9,5] = attention(%q, %k, %v) {causal=1} return %r })"},
    {"gpu_rows",
     R"(graph g(%a: f32[4,6,1000], %b: f32[4,6,1000]) { %x: f32[4,6,1000] = add(%a, %b) %v: f32[4,6,1000] = softmax(%x) {axis=2} return %v })"},
    {"gpu_rows", R"(graph g(%a: bf16[8,2048]) { %v: bf16[8,2048] = softmax(%a) {axis=1} return %v })"},
    {"gpu_rows",
     R"(graph g(%a: f32[8,96], %s: f32[96]) { %v: f32[8,96] = rms_norm(%a, %s) {axis=1} return %v })"},
    {"gpu_rows",
     R"(graph g(%a: f32[5,3,4096]) { %v: f32[5,3] = reduce_max(%a) {axes=[2], keepdims=0} %r: f32[5,3] = relu(%v) return %r })"},
    {"gpu_rows",
     R"(graph g(%a: bf16[5,6,7,128], %s: bf16[128], %t: bf16[128]) { %v: bf16[5,6,7,128] = layer_norm(%a, %s, %t) {axis=3} return %v })"},
    {"gpu_rows", R"(graph g(%a: f32[2,3,4,5,96]) { %v: f32[2,3,4,5,96] = softmax(%a) {axis=4} return %v })"},
    {"gpu_rows",
     R"(graph g(%a: f32[1,128,768], %s: f32[768], %t: f32[768]) { %v: f32[1,128,768] = layer_norm(%a, %s, %t) {axis=2} return %v })"},
    {"gpu_columns",
     R"(graph g(%a: f32[300,64]) { %v: f32[64] = reduce_sum(%a) {axes=[0], keepdims=0} return %v })"},
    {"gpu_columns",
     R"(graph g(%a: bf16[2,1030,512]) { %v: bf16[2,1,512] = reduce_sum(%a) {axes=[1]} return %v })"},
    {"gpu_columns",
     R"(graph g(%a: f32[3,20,30,32]) { %v: f32[3,32] = reduce_max(%a) {axes=[1,2], keepdims=0} return %v })"},
    {"gpu_tiles",
     R"(graph g(%a: f32[200,64], %w: f32[64,500]) { %v: f32[200,500] = matmul(%a, %w) return %v })"},
    {"gpu_tiles",
     R"(graph g(%a: bf16[2,24,9,9]@c24) { %v: bf16[2,24,5,5]@c24 = max_pool(%a) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1], dilations=[1,1]} return %v })"},
    {"gpu_tiles",
     R"(graph g(%a: bf16[2,24,9,7]@c24, %w: bf16[24,1,3,3], %b: bf16[24]) { %v: bf16[2,24,9,7]@c24 = conv(%a, %w, %b) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=24} return %v })"},
    {"gpu_columns",
     R"(graph g(%a: bf16[2,256,7,7]@c256) { %v: bf16[2,256,1,1]@c256 = reduce_sum(%a) {axes=[2,3], keepdims=1} return %v })"},
    {"gpu_elements",
     R"(graph g(%a: f32[2,3,9,11]) { %c: bf16[2,3,9,11] = cast(%a) {to="bf16"} %p: bf16[2,4,15,18] = pad(%c) {low=[0,0,3,3], high=[0,1,3,4], interior=[], mode="constant"} %v: bf16[2,4,15,18]@c4 = to_layout(%p) {block=4} return %v })"},
    {"gpu_tiles",
     R"(graph g(%a: f32[2,16,28,30], %w: f32[40,16,3,3]) { %v: f32[2,40,28,30] = conv(%a, %w) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1} return %v })"},
    {"gpu_transpose",
     R"(graph g(%a: f32[100,72]) { %v: f32[72,100] = transpose(%a) {perm=[1,0]} return %v })"},
    {"gpu_transpose",
     R"(graph g(%a: bf16[3,64,128]) { %v: bf16[3,128,64] = transpose(%a) {perm=[0,2,1]} return %v })"},
    {"gpu_transpose",
     R"(graph g(%a: f32[2,17,33,40], %b: f32[2,40,17,33]) { %v: f32[2,40,17,33] = transpose(%a) {perm=[0,3,1,2]} %r: f32[2,40,17,33] = add(%v, %b) return %r })"},
};

}  // namespace sylvite
