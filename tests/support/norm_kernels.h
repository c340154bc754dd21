#pragma once
// Normalisations, folds of columns and transposes in the forms that models have, for tests of templates.

#include <string_view>

#include "lowering/plan/kernel.h"
#include "sylvite/graph_text.h"

namespace sylvite {

/// Inputs of rank 1 are weights.
inline Kernel norm_kernel(std::string_view text) {
  Graph body = parse_graph(text);
  std::vector<bool> is_weight;
  for (const ValueId id : body.inputs) is_weight.push_back(body.type(id).rank() == 1);
  return make_kernel(body, std::move(is_weight));
}

inline constexpr const char* norm_texts[] = {
    R"(graph g(%a: bf16[130,768], %s: bf16[768], %t: bf16[768]) { %v: bf16[130,768] = layer_norm(%a, %s, %t) {axis=1} return %v })",
    R"(graph g(%a: bf16[3,7,768], %p: bf16[1,1,768], %s: bf16[768], %t: bf16[768]) { %x: bf16[3,7,768] = add(%a, %p) %v: bf16[3,7,768] = layer_norm(%x, %s, %t) {axis=2} %r: f32[3,7,768] = cast(%v) {to="f32"} return %r })",
    R"(graph g(%a: f32[9,4096], %s: f32[4096]) { %v: f32[9,4096] = rms_norm(%a, %s) {axis=1} return %v })",
    R"(graph g(%a: f32[5,2050], %b: f32[5,1], %s: f32[2050], %t: f32[2050]) { %v: f32[5,2050] = layer_norm(%a, %s, %t) {axis=1} %m: f32[5,2050] = mul(%v, %b) %r: f32[5,2050] = add(%m, %a) return %r })",
    R"(graph g(%a: f16[6,333], %s: f16[333]) { %v: f16[6,333] = rms_norm(%a, %s) {axis=1} return %v })",
    R"(graph g(%a: bf16[11,40], %b: f32[11,40], %s: f32[40], %t: f32[40]) { %w: f32[11,40] = cast(%a) {to="f32"} %x: f32[11,40] = add(%w, %b) %v: f32[11,40] = layer_norm(%x, %s, %t) {axis=1} %g: f32[11,40] = gelu(%v) return %g })",
    R"(graph g(%a: bf16[600,4096]) { %v: bf16[600,4096] = softmax(%a) {axis=1} return %v })",
    R"(graph g(%a: f32[3,70,130], %b: f32[3,70,130]) { %x: f32[3,70,130] = mul(%a, %b) %v: f32[3,70,130] = softmax(%x) {axis=2} %r: f32[3,70,130] = add(%v, %b) return %r })",
    R"(graph g(%a: f16[7,333]) { %v: f16[7,333] = log_softmax(%a) {axis=1} return %v })",
    R"(graph g(%a: f32[540,1024], %s: f32[1024], %t: f32[1024]) { %v: f32[540,1024] = layer_norm(%a, %s, %t) {axis=1} return %v })",
    R"(graph g(%a: f32[1100,515]) { %v: f32[1100,515] = log_softmax(%a) {axis=1} return %v })",
    R"(graph g(%a: bf16[9,2048], %b: bf16[2048], %c: bf16[9,2048]) { %x: bf16[9,2048] = add(%a, %b) %y: bf16[9,2048] = gelu(%x) %v: bf16[9,2048] = add(%y, %c) return %v })",
    R"(graph g(%a: bf16[9,2048], %c: bf16[9,2048]) { %p = constant bf16[] {0.75} %x: bf16[9,2048] = sigmoid(%a) %y: bf16[9,2048] = pow(%x, %p) %v: bf16[9,2048] = div(%c, %y) return %v })",
    R"(graph g(%a: f32[5,3,77], %c: f32[5,3,1]) { %x: f32[5,3,77] = mul(%a, %c) %y: f32[5,3,77] = tanh(%x) return %y })",
    R"(graph g(%a: bf16[16500,96], %s: bf16[96], %t: bf16[96]) { %v: bf16[16500,96] = layer_norm(%a, %s, %t) {axis=1} return %v })",
    R"(graph g(%a: bf16[16385,44]) { %v: bf16[16385,44] = softmax(%a) {axis=1} return %v })",
    R"(graph g(%a: bf16[3,7,256], %s: bf16[3,1,256], %t: bf16[1,7,256]) { %v: bf16[3,7,256] = layer_norm(%a) {axis=2} %m: bf16[3,7,256] = mul(%v, %s) %r: bf16[3,7,256] = add(%m, %t) return %r })",
    R"(graph g(%a: f32[2,3,5,130], %b: f32[1,3,5,130], %c: f32[1,3,1,1], %d: f32[2,1,5,130]) { %x: f32[2,3,5,130] = add(%a, %b) %v: f32[2,3,5,130] = softmax(%x) {axis=3} %m: f32[2,3,5,130] = mul(%v, %c) %r: f32[2,3,5,130] = add(%m, %d) return %r })",
    R"(graph g(%a: bf16[41,1536], %s: bf16[768], %t: bf16[768]) { %x: bf16[41,768] = slice(%a) {starts=[0,768], sizes=[41,768], steps=[1,1]} %v: bf16[41,768] = layer_norm(%x, %s, %t) {axis=1} return %v })",
    R"(graph g(%a: f32[5,2050]) { %v: f32[5,2050] = cumsum(%a) {axis=1, exclusive=0, reverse=0} return %v })",
    R"(graph g(%a: bf16[130,768], %b: bf16[130,768]) { %x: bf16[130,768] = mul(%a, %b) %v: bf16[130,768] = cumsum(%x) {axis=1, exclusive=1, reverse=1} return %v })",
    R"(graph g(%a: f16[16390,44]) { %v: f16[16390,44] = cumsum(%a) {axis=1, exclusive=0, reverse=1} return %v })",
    R"(graph g(%a: f32[3,7,1000]) { %v: f32[3,7,1000] = cumsum(%a) {axis=2, exclusive=1, reverse=0} return %v })",
};

/// Poolings of images with their channels innermost.
inline constexpr const char* pooling_texts[] = {
    R"(graph g(%a: bf16[2,40,17,15]@c40) { %v: bf16[2,40,9,8]@c40 = max_pool(%a) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1], dilations=[1,1]} return %v })",
    R"(graph g(%a: bf16[2,24,17,15]@c24, %b: bf16[2,24,17,15]@c24) { %v: bf16[2,24,17,15]@c24 = avg_pool(%a) {kernel=[3,3], strides=[1,1], pads=[1,1,1,1], dilations=[1,1], count_include_pad=0} %y: bf16[2,24,17,15]@c24 = sub(%v, %b) return %y })",
    R"(graph g(%a: f32[1,12,17,15]@c12) { %v: f32[1,12,9,8]@c12 = avg_pool(%a) {kernel=[4,3], strides=[2,2], pads=[2,0,1,2], dilations=[1,1], count_include_pad=1} return %v })",
    R"(graph g(%a: f16[2,8,17,15]@c8) { %v: f16[2,8,13,11]@c8 = max_pool(%a) {kernel=[3,3], strides=[1,1], pads=[0,0,0,0], dilations=[2,2]} %y: f16[2,8,13,11]@c8 = relu(%v) return %y })",
    R"(graph g(%a: bf16[2,64,16,16]@c64) { %v: bf16[2,64,8,8]@c64 = avg_pool(%a) {kernel=[2,2], strides=[2,2], pads=[0,0,0,0], dilations=[1,1], count_include_pad=0} return %v })",
    R"(graph g(%a: bf16[2,24,7,9,11]@c24) { %v: bf16[2,24,4,9,5]@c24 = max_pool(%a) {kernel=[3,3,2], strides=[2,1,2], pads=[1,1,0,1,1,0], dilations=[1,1,1]} return %v })",
    R"(graph g(%a: f32[2,12,7,9,6]@c12, %b: f32[2,12,4,8,5]@c12) { %v: f32[2,12,4,8,5]@c12 = avg_pool(%a) {kernel=[3,2,2], strides=[2,1,1], pads=[0,0,0,2,0,0], dilations=[1,1,1], count_include_pad=0} %y: f32[2,12,4,8,5]@c12 = mul(%v, %b) return %y })",
    R"(graph g(%a: f16[2,8,4,6,6]@c8) { %v: f16[2,8,4,6,6]@c8 = avg_pool(%a) {kernel=[3,3,3], strides=[1,1,1], pads=[1,1,1,1,1,1], dilations=[1,1,1], count_include_pad=1} return %v })",
};

inline constexpr const char* column_texts[] = {
    R"(graph g(%a: f32[1000,4096]) { %v: f32[4096] = reduce_sum(%a) {axes=[0], keepdims=0} return %v })",
    R"(graph g(%a: bf16[517,768]) { %v: bf16[1,768] = reduce_sum(%a) {axes=[0], keepdims=1} return %v })",
    R"(graph g(%a: f32[5,49,200], %b: f32[5,1,200], %c: f32[200]) { %x: f32[5,49,200] = mul(%a, %b) %v: f32[5,200] = reduce_sum(%x) {axes=[1], keepdims=0} %y: f32[5,200] = add(%v, %c) return %y })",
    R"(graph g(%a: f16[3,7,9,36]) { %v: f16[3,36] = reduce_max(%a) {axes=[1,2], keepdims=0} %y: f16[3,36] = relu(%v) return %y })",
    R"(graph g(%a: bf16[40,3,50]) { %w: f32[40,3,50] = cast(%a) {to="f32"} %v: f32[1,3,50] = reduce_min(%w) {axes=[0], keepdims=1} return %v })",
    R"(graph g(%a: f32[33,15]) { %v: f32[15] = reduce_prod(%a) {axes=[0], keepdims=0} return %v })",
    R"(graph g(%a: bf16[3,40,10,16], %b: bf16[3,40,10,1], %c: bf16[10,1]) { %x: bf16[3,40,10,16] = mul(%a, %b) %v: bf16[3,10,16] = reduce_sum(%x) {axes=[1], keepdims=0} %y: bf16[3,10,16] = add(%v, %c) return %y })",
    R"(graph g(%a: f32[5,33,6,5], %b: f32[5,33,1,5]) { %x: f32[5,33,6,5] = mul(%a, %b) %v: f32[5,1,6,5] = reduce_sum(%x) {axes=[1], keepdims=1} return %v })",
    R"(graph g(%a: f16[2,7,9,4,36], %b: f16[2,7,1,4,1]) { %x: f16[2,7,9,4,36] = add(%a, %b) %v: f16[2,4,36] = reduce_max(%x) {axes=[1,2], keepdims=0} return %v })",
};

/// Of images with their channels innermost.
inline constexpr const char* pixel_texts[] = {
    R"(graph g(%a: bf16[5,72,14,9]@c72, %n: bf16[]) { %v: bf16[5,72,1,1]@c72 = reduce_sum(%a) {axes=[2,3], keepdims=1} %m: bf16[5,72,1,1]@c72 = mul(%v, %n) return %m })",
    R"(graph g(%a: f16[3,200,7,7]@c200, %b: f16[3,200,1,1]@c200) { %x: f16[3,200,7,7]@c200 = mul(%a, %b) %v: f16[3,200,1,1]@c200 = reduce_sum(%x) {axes=[2,3], keepdims=1} %m: f16[3,200,1,1]@c200 = mul(%v, %b) %d: f16[3,200,1,1] = to_layout(%m) {block=0} return %d })",
    R"(graph g(%a: f32[2,36,33,5]@c36, %b: f32[36]) { %v: f32[2,36] = reduce_max(%a) {axes=[2,3], keepdims=0} %m: f32[2,36] = add(%v, %b) return %m })",
    R"(graph g(%a: bf16[3,24,5,40]@c24) { %v: bf16[3,24,5,1]@c24 = reduce_sum(%a) {axes=[3], keepdims=1} return %v })",
    R"(graph g(%a: bf16[6,24,5,4]@c24) { %w: f32[6,24,5,4]@c24 = cast(%a) {to="f32"} %v: f32[24] = reduce_sum(%w) {axes=[0,2,3], keepdims=0} return %v })",
    R"(graph g(%a: bf16[3,40,5,4,7]@c40, %n: f32[]) { %w: f32[3,40,5,4,7]@c40 = cast(%a) {to="f32"} %v: f32[3,40,1,1,1]@c40 = reduce_sum(%w) {axes=[2,3,4], keepdims=1} %m: f32[3,40,1,1,1]@c40 = mul(%v, %n) return %m })",
    R"(graph g(%a: bf16[6,24,3,5,4]@c24) { %w: f32[6,24,3,5,4]@c24 = cast(%a) {to="f32"} %v: f32[24] = reduce_sum(%w) {axes=[0,2,3,4], keepdims=0} return %v })",
};

/// Groups of channels of images and volumes, with their channels innermost.
inline constexpr const char* image_norm_texts[] = {
    R"(graph g(%a: bf16[2,64,14,9]@c64, %s: bf16[1,64,1,1]@c64, %t: f32[1,64,1,1]@c64) { %v: bf16[2,64,14,9]@c64 = layer_norm(%a) {axis=1, groups=32} %m: bf16[2,64,14,9]@c64 = mul(%v, %s) %w: f32[2,64,14,9]@c64 = cast(%m) {to="f32"} %y: f32[2,64,14,9]@c64 = add(%w, %t) %r: f32[2,64,14,9]@c64 = relu(%y) %n: bf16[2,64,14,9]@c64 = cast(%r) {to="bf16"} return %n })",
    R"(graph g(%a: bf16[3,320,7,5]@c320) { %v: bf16[3,320,7,5]@c320 = layer_norm(%a) {axis=1, groups=32} return %v })",
    R"(graph g(%a: f16[2,40,5,33]@c40, %b: f16[2,40,5,33]@c40) { %x: f16[2,40,5,33]@c40 = add(%a, %b) %v: f16[2,40,5,33]@c40 = layer_norm(%x) {axis=1, groups=40, epsilon=0.001} %y: f16[2,40,5,33]@c40 = add(%v, %b) return %y })",
    R"(graph g(%a: f32[2,24,9,11]@c24, %b: f32[2,24,1,1]@c24) { %x: f32[2,24,9,11]@c24 = mul(%a, %b) %v: f32[2,24,9,11]@c24 = layer_norm(%x) {axis=1, groups=4} return %v })",
    R"(graph g(%a: bf16[1,768,6,6]@c768) { %v: bf16[1,768,6,6]@c768 = layer_norm(%a) {axis=1, groups=1} return %v })",
    R"(graph g(%a: bf16[2,32,3,5,7]@c32, %b: bf16[2,32,1,1,1]@c32) { %v: bf16[2,32,3,5,7]@c32 = layer_norm(%a) {axis=1, groups=8} %m: bf16[2,32,3,5,7]@c32 = mul(%v, %b) %w: f32[2,32,3,5,7]@c32 = cast(%m) {to="f32"} %g: f32[2,32,3,5,7]@c32 = sigmoid(%w) %y: f32[2,32,3,5,7]@c32 = mul(%w, %g) return %y })",
    R"(graph g(%a: bf16[1,32,150,130]@c32) { %v: bf16[1,32,150,130]@c32 = layer_norm(%a) {axis=1, groups=8} return %v })",
    R"(graph g(%a: f16[5,36,1,1]@c36) { %v: f16[5,36,1,1]@c36 = layer_norm(%a) {axis=1, groups=3} return %v })",
};

/// Two folds at once, as gradients of normalisations have them.
inline constexpr const char* twin_column_texts[] = {
    R"(graph g(%d: bf16[5,72,14,9]@c72, %x: bf16[5,72,14,9]@c72, %m: f32[1,72,1,1]@c72) { %e: f32[5,72,14,9]@c72 = cast(%d) {to="f32"} %s: f32[5,72,1,1]@c72 = reduce_sum(%e) {axes=[2,3], keepdims=1} %y: f32[5,72,14,9]@c72 = cast(%x) {to="f32"} %c: f32[5,72,14,9]@c72 = sub(%y, %m) %p: f32[5,72,14,9]@c72 = mul(%e, %c) %t: f32[5,72,1,1]@c72 = reduce_sum(%p) {axes=[2,3], keepdims=1} return %s, %t })",
    R"(graph g(%d: f32[517,768], %x: bf16[517,768], %m: f32[517,1], %n: f32[], %w: f32[768]) { %s: f32[1,768] = reduce_sum(%d) {axes=[0], keepdims=1} %r: f32[1,768] = add(%s, %w) %y: f32[517,768] = cast(%x) {to="f32"} %c: f32[517,768] = mul(%y, %m) %p: f32[517,768] = mul(%d, %c) %t: f32[768] = reduce_sum(%p) {axes=[0], keepdims=0} %u: f32[768] = mul(%t, %n) %v: bf16[768] = cast(%u) {to="bf16"} return %r, %v })",
    R"(graph g(%a: f32[64,33], %b: f32[64,33]) { %s: f32[33] = reduce_max(%a) {axes=[0], keepdims=0} %t: f32[33] = reduce_max(%b) {axes=[0], keepdims=0} return %s, %t })",
};
/// What a mask hides, as gradients of ReLU and dropout have it.
inline constexpr const char* masked_norm_texts[] = {
    R"(graph g(%a: bf16[37,768], %m: bool[37,768], %z: bf16[]) { %x: bf16[37,768] = where(%m, %a, %z) %v: bf16[37,768] = softmax(%x) {axis=1} return %v })",
    R"(graph g(%a: f32[5,7,77], %m: bool[5,1,77], %n: bool[5,7,1]) { %v: f32[5,7,77] = softmax(%a) {axis=2} %b: bool[5,7,77] = logical_and(%m, %n) %c: f32[5,7,77] = cast(%b) {to="f32"} %y: f32[5,7,77] = mul(%v, %c) return %y })",
};
inline constexpr const char* masked_column_texts[] = {
    R"(graph g(%a: bf16[517,768], %m: bool[517,768], %z: bf16[]) { %x: bf16[517,768] = where(%m, %z, %a) %w: f32[517,768] = cast(%x) {to="f32"} %v: f32[768] = reduce_sum(%w) {axes=[0], keepdims=0} return %v })",
    R"(graph g(%a: bf16[3,24,5,9]@c24, %m: bool[3,24,1,1]@c24, %z: bf16[]) { %v: bf16[3,24,1,1]@c24 = reduce_sum(%a) {axes=[2,3], keepdims=1} %y: bf16[3,24,1,1]@c24 = where(%m, %v, %z) return %y })",
    R"(graph g(%m: bool[50,33]) { %w: f32[50,33] = cast(%m) {to="f32"} %v: f32[33] = reduce_sum(%w) {axes=[0], keepdims=0} return %v })",
};

inline constexpr const char* concat_texts[] = {
    R"(graph g(%a: bf16[2,64,7,5]@c64, %b: bf16[2,32,7,5]@c32, %c: bf16[2,8,7,5]@c8) { %v: bf16[2,104,7,5]@c104 = concat(%a, %b, %c) {axis=1} return %v })",
    R"(graph g(%a: bf16[3,12,9,4]@c12, %b: bf16[3,20,9,4]@c20, %s: bf16[1,32,1,1]@c32, %t: f32[1,32,1,1]@c32) { %v: bf16[3,32,9,4]@c32 = concat(%a, %b) {axis=1} %x: bf16[3,32,9,4]@c32 = mul(%v, %s) %w: f32[3,32,9,4]@c32 = cast(%x) {to="f32"} %y: f32[3,32,9,4]@c32 = add(%w, %t) %r: f32[3,32,9,4]@c32 = relu(%y) %n: bf16[3,32,9,4]@c32 = cast(%r) {to="bf16"} return %n })",
    R"(graph g(%a: f32[5,7,33], %b: f32[5,7,3]) { %v: f32[5,7,36] = concat(%a, %b) {axis=2} return %v })",
    R"(graph g(%a: f16[4,2,40], %b: f16[4,5,40]) { %v: f16[4,7,40] = concat(%a, %b) {axis=1} %r: f16[4,7,40] = gelu(%v) {approximate="none"} %s: f16[28,40] = reshape(%r) {shape=[28,40]} return %s })",
    R"(graph g(%a: bf16[6,96], %b: bf16[6,16]) { %s: bf16[6,32] = slice(%a) {starts=[0,8], sizes=[6,32], steps=[1,1]} %t: bf16[6,48] = slice(%a) {starts=[0,48], sizes=[6,48], steps=[1,1]} %v: bf16[6,64] = concat(%t, %b) {axis=1} %w: bf16[6,96] = concat(%s, %v) {axis=1} return %w })",
    R"(graph g(%a: bf16[6,96], %b: bf16[6,16]) { %s: bf16[6,48] = slice(%a) {starts=[0,40], sizes=[6,48], steps=[1,1]} %g: bf16[6,64] = slice(%a) {starts=[0,0], sizes=[6,64], steps=[1,1]} %v: bf16[6,64] = concat(%s, %b) {axis=1} %y: bf16[6,64] = mul(%v, %g) return %y })",
    R"(graph g(%a: bf16[2,24,3,4,5]@c24, %b: bf16[2,16,3,4,5]@c16) { %v: bf16[2,40,3,4,5]@c40 = concat(%a, %b) {axis=1} return %v })",
    R"(graph g(%a: bf16[6,24,3,5]@c24, %b: bf16[2,16,3,5]@c16) { %s: bf16[2,24,3,5]@c24 = slice(%a) {starts=[1,0,0,0], sizes=[2,24,3,5], steps=[3,1,1,1]} %v: bf16[2,40,3,5]@c40 = concat(%s, %b) {axis=1} return %v })",
    R"(graph g(%a: bf16[2,24,3,5]@c24, %b: bf16[2,24,2,5]@c24) { %v: bf16[2,24,5,5]@c24 = concat(%a, %b) {axis=2} return %v })",
};

inline constexpr const char* transpose_texts[] = {
    R"(graph g(%a: bf16[264,520]) { %v: bf16[520,264] = transpose(%a) {perm=[1,0]} return %v })",
    R"(graph g(%a: f32[3,68,132]) { %v: f32[3,132,68] = transpose(%a) {perm=[0,2,1]} return %v })",
    R"(graph g(%a: f16[2,64,7,8]) { %v: f16[2,7,8,64] = transpose(%a) {perm=[0,2,3,1]} return %v })",
    R"(graph g(%a: i32[8,5,256]) { %v: i32[256,8,5] = transpose(%a) {perm=[2,0,1]} return %v })",
    R"(graph g(%a: bf16[3,68,196]) { %v: bf16[3,196,68] = transpose(%a) {perm=[0,2,1]} return %v })",
    R"(graph g(%a: f16[70,134]) { %v: f16[134,70] = transpose(%a) {perm=[1,0]} return %v })",
    R"(graph g(%a: f32[2,50,34]) { %v: f32[2,34,50] = transpose(%a) {perm=[0,2,1]} return %v })",
    R"(graph g(%a: i32[33,147]) { %v: i32[147,33] = transpose(%a) {perm=[1,0]} return %v })",
    R"(graph g(%a: bf16[2,40,7,7]@c40) { %v: bf16[2,40,7,7] = to_layout(%a) {block=0} return %v })",
    R"(graph g(%a: f16[2,64,12,8]) { %v: f16[2,64,12,8]@c64 = to_layout(%a) {block=64} return %v })",
    R"(graph g(%a: bf16[2,96,192]) { %s: bf16[2,96,64] = slice(%a) {starts=[0,0,64], sizes=[2,96,64], steps=[1,1,1]} %v: bf16[2,64,96] = transpose(%s) {perm=[0,2,1]} return %v })",
    R"(graph g(%a: f32[3,40,3,2,35]) { %s: f32[3,40,1,2,35] = slice(%a) {starts=[0,0,2,0,0], sizes=[3,40,1,2,35], steps=[1,1,1,1,1]} %v: f32[3,1,2,35,40] = transpose(%s) {perm=[0,2,3,4,1]} return %v })",
    R"(graph g(%a: bf16[2,24,25,3,64]) { %v: bf16[2,64,24,3,25] = transpose(%a) {perm=[0,4,1,3,2]} return %v })",
    R"(graph g(%a: f32[40,6,1,72]) { %v: f32[72,6,1,40] = transpose(%a) {perm=[3,1,2,0]} return %v })",
    R"(graph g(%a: bf16[3,16,2,5,48]) { %v: bf16[5,3,48,2,16] = transpose(%a) {perm=[3,0,4,2,1]} return %v })",
    R"(graph g(%a: f16[2,3,20,17]) { %v: f16[3,2,17,20] = transpose(%a) {perm=[1,0,3,2]} return %v })",
    R"(graph g(%a: bf16[1,64,12,8]@c64) { %v: bf16[4,16,96] = reshape(%a) {shape=[4,16,96]} return %v })",
    R"(graph g(%a: bf16[2,40,7,8]@c40) { %c: f32[2,40,7,8]@c40 = cast(%a) {to="f32"} %v: f32[2,40,7,8] = to_layout(%c) {block=0} return %v })",
    R"(graph g(%a: f32[2,64,12,8]) { %c: f16[2,64,12,8] = cast(%a) {to="f16"} %v: f16[2,64,12,8]@c64 = to_layout(%c) {block=64} return %v })",
    R"(graph g(%a: bf16[2,24,9,8]@c24) { %s: bf16[2,19,9,8]@c19 = slice(%a) {starts=[0,0,0,0], sizes=[2,19,9,8], steps=[1,1,1,1]} %c: f32[2,19,9,8]@c19 = cast(%s) {to="f32"} %v: f32[2,19,9,8] = to_layout(%c) {block=0} return %v })",
    R"(graph g(%a: f16[3,68,132]) { %v: f16[3,132,68] = transpose(%a) {perm=[0,2,1]} %c: f32[3,132,68] = cast(%v) {to="f32"} return %c })",
    R"(graph g(%a: f32[2,51,35]) { %v: f32[2,35,51] = transpose(%a) {perm=[0,2,1]} %c: bf16[2,35,51] = cast(%v) {to="bf16"} return %c })",
    R"(graph g(%a: bf16[2,50,35]) { %c: f32[2,50,35] = cast(%a) {to="f32"} %v: f32[2,35,50] = transpose(%c) {perm=[0,2,1]} return %v })",
};

/// Transposes with work on single numbers ahead of them, behind them, or both.
inline constexpr const char* worked_transpose_texts[] = {
    R"(graph g(%a: bf16[2,64,96]) { %c: f32[2,64,96] = cast(%a) {to="f32"} %s: f32[2,64,96] = silu(%c) %v: f32[2,96,64] = transpose(%s) {perm=[0,2,1]} %t: f32[2,96,64] = tanh(%v) %y: bf16[2,96,64] = cast(%t) {to="bf16"} return %y })",
    R"(graph g(%a: bf16[3,50,70]) { %c: f32[3,50,70] = cast(%a) {to="f32"} %v: f32[3,70,50] = transpose(%c) {perm=[0,2,1]} %y: f32[3,70,50] = relu(%v) return %y })",
    R"(graph g(%a: f32[2,40,7,8]@c40) { %s: f32[2,40,7,8]@c40 = sigmoid(%a) %v: f32[2,40,7,8] = to_layout(%s) {block=0} return %v })",
    R"(graph g(%a: f32[2,64,12,8]) { %v: f32[2,64,12,8]@c64 = to_layout(%a) {block=64} %y: f32[2,64,12,8]@c64 = relu(%v) %c: f16[2,64,12,8]@c64 = cast(%y) {to="f16"} return %c })",
    R"(graph g(%a: f16[45,51]) { %v: f16[51,45] = transpose(%a) {perm=[1,0]} %m: f16[51,45] = mul(%v, %v) %y: f16[51,45] = relu(%m) return %y })",
};

/// Softmax, its logarithm and running sums along another dim than the innermost.
inline constexpr const char* softmax_column_texts[] = {
    R"(graph g(%a: bf16[5,21,9,8]) { %c: f32[5,21,9,8] = cast(%a) {to="f32"} %v: f32[5,21,9,8] = log_softmax(%c) {axis=1} %y: bf16[5,21,9,8] = cast(%v) {to="bf16"} return %y })",
    R"(graph g(%a: f32[3,16,7,11]) { %v: f32[3,16,7,11] = softmax(%a) {axis=1} return %v })",
    R"(graph g(%a: f16[64,130]) { %v: f16[64,130] = softmax(%a) {axis=0} return %v })",
    R"(graph g(%a: f32[2,3,40,6,5], %b: f32[40,1,5]) { %x: f32[2,3,40,6,5] = add(%a, %b) %v: f32[2,3,40,6,5] = softmax(%x) {axis=2} %r: f32[2,3,40,6,5] = mul(%v, %a) return %r })",
    R"(graph g(%a: bf16[4,2,300], %s: bf16[4,1,300]) { %v: bf16[4,2,300] = log_softmax(%a) {axis=1} %m: bf16[4,2,300] = mul(%v, %s) return %m })",
    R"(graph g(%a: f32[2,128,33]) { %v: f32[2,128,33] = log_softmax(%a) {axis=1} return %v })",
    R"(graph g(%a: bf16[3,301,24]) { %c: f32[3,301,24] = cast(%a) {to="f32"} %v: f32[3,301,24] = softmax(%c) {axis=1} return %v })",
    R"(graph g(%a: f32[2,37,6,5], %b: f32[37,1,5]) { %x: f32[2,37,6,5] = mul(%a, %b) %v: f32[2,37,6,5] = cumsum(%x) {axis=1, exclusive=0, reverse=1} %r: f32[2,37,6,5] = relu(%v) return %r })",
    R"(graph g(%a: f32[500,40]) { %v: f32[500,40] = cumsum(%a) {axis=0, exclusive=1, reverse=0} return %v })",
    R"(graph g(%a: f32[3,1024,9]) { %v: f32[3,1024,9] = cumsum(%a) {axis=1, exclusive=1, reverse=1} return %v })",
};

}  // namespace sylvite
