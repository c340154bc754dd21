#pragma once
// Kernels of gradients, as texts for norm_kernel.

#include "tests/support/norm_kernels.h"

namespace sylvite {

/// Of one group of channels; extents are odd, and parts do not end with an image.
inline constexpr const char* filter_gradient_texts[] = {
    R"(graph g(%g: bf16[3,72,9,7]@c72, %x: bf16[3,136,9,7]@c136) { %v: f32[1,9,72,136] = filter_gradient(%g, %x) {kernel=[3,3], strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1, parts=1} return %v })",
    R"(graph g(%g: bf16[3,64,9,8]@c64, %x: bf16[3,64,17,15]@c64) { %v: f32[3,9,64,64] = filter_gradient(%g, %x) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1], dilations=[1,1], groups=1, parts=3} return %v })",
    R"(graph g(%g: f16[2,200,13,11]@c200, %x: f16[2,40,13,11]@c40) { %v: f32[2,1,200,40] = filter_gradient(%g, %x) {kernel=[1,1], strides=[1,1], pads=[0,0,0,0], dilations=[1,1], groups=1, parts=2} return %v })",
    R"(graph g(%g: bf16[2,32,7,6]@c32, %x: bf16[2,8,13,11]@c8) { %v: f32[1,1,32,8] = filter_gradient(%g, %x) {kernel=[1,1], strides=[2,2], pads=[0,0,0,0], dilations=[1,1], groups=1, parts=1} %o: bf16[1,1,32,8] = cast(%v) {to="bf16"} return %o })",
    R"(graph g(%g: bf16[2,24,14,9]@c24, %x: bf16[2,16,15,15]@c16) { %v: f32[2,20,24,16] = filter_gradient(%g, %x) {kernel=[5,4], strides=[1,1], pads=[3,0,0,0], dilations=[1,2], groups=1, parts=2} return %v })",
    R"(graph g(%g: bf16[2,64,7,8]@c64, %x: bf16[2,4,19,22]@c4) { %v: f32[1,7,64,32] = filter_gradient(%g, %x) {kernel=[7,8], strides=[2,2], pads=[0,0,0,0], dilations=[1,1], groups=1, parts=1, joined=1} return %v })",
    R"(graph g(%g: f16[3,40,7,12]@c40, %x: f16[3,8,9,14]@c8) { %v: f32[2,3,40,24] = filter_gradient(%g, %x) {kernel=[3,3], strides=[1,1], pads=[0,0,0,0], dilations=[1,1], groups=1, parts=2, joined=1} return %v })",
    R"(graph g(%g: bf16[2,32,9,6]@c32, %x: bf16[2,8,9,14]@c8) { %v: f32[1,1,32,24] = filter_gradient(%g, %x) {kernel=[1,3], strides=[1,2], pads=[0,0,0,0], dilations=[1,1], groups=1, parts=1, joined=1} return %v })",
};

/// Of few channels, with the taps of a line joined; parts end within lines and images, and outputs are no whole tiles.
inline constexpr const char* line_gradient_texts[] = {
    R"(graph g(%g: bf16[3,64,12,13]@c64, %x: bf16[3,4,29,32]@c4) { %v: f32[4,7,64,32] = filter_gradient(%g, %x) {kernel=[7,8], strides=[2,2], pads=[0,0,0,0], dilations=[1,1], groups=1, parts=4, joined=1} return %v })",
    R"(graph g(%g: f16[2,24,10,9]@c24, %x: f16[2,4,21,20]@c4) { %v: f32[2,3,24,16] = filter_gradient(%g, %x) {kernel=[3,4], strides=[2,2], pads=[0,0,0,0], dilations=[1,1], groups=1, parts=2, joined=1} return %v })",
    R"(graph g(%g: bf16[2,64,5,6]@c64, %x: bf16[2,4,27,32]@c4) { %v: f32[1,11,64,48] = filter_gradient(%g, %x) {kernel=[11,12], strides=[4,4], pads=[0,0,0,0], dilations=[1,1], groups=1, parts=1, joined=1} return %v })",
    R"(graph g(%g: bf16[2,136,9,12]@c136, %x: bf16[2,8,13,14]@c8) { %v: f32[2,3,136,24] = filter_gradient(%g, %x) {kernel=[3,3], strides=[1,1], pads=[0,0,0,0], dilations=[2,1], groups=1, parts=2, joined=1} return %v })",
    R"(graph g(%g: bf16[2,32,9,6]@c32, %x: bf16[2,8,9,14]@c8) { %v: f32[1,1,32,24] = filter_gradient(%g, %x) {kernel=[1,3], strides=[1,2], pads=[0,0,0,0], dilations=[1,1], groups=1, parts=1, joined=1} return %v })",
};

inline constexpr const char* depthwise_gradient_texts[] = {
    R"(graph g(%g: bf16[3,72,9,7]@c72, %x: bf16[3,72,9,7]@c72) { %v: f32[1,9,72,1] = filter_gradient(%g, %x) {kernel=[3,3], strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=72, parts=1} return %v })",
    R"(graph g(%g: f16[3,16,9,8]@c16, %x: f16[3,16,17,15]@c16) { %v: f32[3,25,16,1] = filter_gradient(%g, %x) {kernel=[5,5], strides=[2,2], pads=[2,2,2,2], dilations=[1,1], groups=16, parts=3} return %v })",
    R"(graph g(%g: bf16[2,96,11,13]@c96, %x: bf16[2,96,11,13]@c96) { %v: f32[2,49,96,1] = filter_gradient(%g, %x) {kernel=[7,7], strides=[1,1], pads=[3,3,3,3], dilations=[1,1], groups=96, parts=2} return %v })",
    R"(graph g(%g: bf16[2,40,5,56]@c40, %x: bf16[2,40,5,56]@c40) { %v: f32[3,49,40,1] = filter_gradient(%g, %x) {kernel=[7,7], strides=[1,1], pads=[3,3,3,3], dilations=[1,1], groups=40, parts=3} return %v })",
    R"(graph g(%g: bf16[1,24,6,24]@c24, %x: bf16[1,24,12,48]@c24) { %v: f32[2,9,24,1] = filter_gradient(%g, %x) {kernel=[3,3], strides=[2,2], pads=[2,2,2,2], dilations=[2,2], groups=24, parts=2} return %v })",
};

inline constexpr const char* pool_gradient_texts[] = {
    R"(graph g(%g: bf16[2,40,9,8]@c40, %x: bf16[2,40,17,15]@c40) { %v: bf16[2,40,17,15]@c40 = max_pool_gradient(%g, %x) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1], dilations=[1,1]} return %v })",
    R"(graph g(%g: f16[2,8,8,7]@c8, %x: f16[2,8,16,14]@c8) { %v: f16[2,8,16,14]@c8 = max_pool_gradient(%g, %x) {kernel=[2,2], strides=[2,2], pads=[0,0,0,0], dilations=[1,1]} return %v })",
    R"(graph g(%g: bf16[1,20,13,11]@c20, %x: bf16[1,20,13,11]@c20) { %v: bf16[1,20,13,11]@c20 = max_pool_gradient(%g, %x) {kernel=[5,3], strides=[1,1], pads=[4,2,4,2], dilations=[2,2]} return %v })",
};

/// Normal numbers as indices: a few rows are met often, the others never, and some are counted from the end.
inline constexpr const char* scatter_rows_texts[] = {
    R"(graph g(%x: f32[150,768], %i: i64[1200,1], %u: f32[1200,768]) { %v: f32[150,768] = scatter_nd(%x, %i, %u) {reduction="add"} return %v })",
    R"(graph g(%x: bf16[5,3,30], %i: i64[4,2,1], %u: bf16[4,2,3,30]) { %v: bf16[5,3,30] = scatter_nd(%x, %i, %u) {reduction="add"} return %v })",
    R"(graph g(%x: f16[67,5], %i: i32[1025,1], %u: f16[1025,5]) { %v: f16[67,5] = scatter_nd(%x, %i, %u) {reduction="add"} return %v })",
    R"(graph g(%i: i64[900,1], %u: bf16[900,72]) { %n = constant bf16[] {0.5} %x: bf16[70,72] = broadcast_to(%n) {shape=[70,72]} %v: bf16[70,72] = scatter_nd(%x, %i, %u) {reduction="add"} return %v })",
    R"(graph g(%x: f32[3,200,40], %i: i64[3,1500,1], %u: f32[3,1500,40]) { %j: i64[3,1500,40] = broadcast_to(%i) {shape=[3,1500,40]} %v: f32[3,200,40] = scatter_elements(%x, %j, %u) {axis=1, reduction="add"} return %v })",
    R"(graph g(%i: i32[2,3,130,1,1], %u: f16[2,3,130,5,4]) { %n = constant f16[1] {0.0} %x: f16[2,3,65,5,4] = broadcast_to(%n) {shape=[2,3,65,5,4]} %j: i32[2,3,130,5,4] = broadcast_to(%i) {shape=[2,3,130,5,4]} %v: f16[2,3,65,5,4] = scatter_elements(%x, %j, %u) {axis=2, reduction="add"} return %v })",
    R"(graph g(%x: bf16[3,200,40], %i: i64[1,1500,1], %u: bf16[3,1500,40]) { %j: i64[3,1500,40] = broadcast_to(%i) {shape=[3,1500,40]} %v: bf16[3,200,40] = scatter_elements(%x, %j, %u) {axis=1, reduction="add"} return %v })",
    R"(graph g(%x: bf16[4,50,24], %i: i64[700,1], %u: bf16[4,700,24]) { %j: i64[4,700,24] = broadcast_to(%i) {shape=[4,700,24]} %v: bf16[4,50,24] = scatter_elements(%x, %j, %u) {axis=1, reduction="max"} return %v })",
    R"(graph g(%x: f32[67,5], %i: i32[1025,1], %u: f32[1025,5]) { %v: f32[67,5] = scatter_nd(%x, %i, %u) {reduction="min"} return %v })",
};

/// Heads lie behind rows, or are padded within their width; lengths are odd; masks are true, or added, and broadcast.
inline constexpr const char* attention_gradient_texts[] = {
    R"(graph g(%q: bf16[2,3,77,64], %k: bf16[2,3,100,64]) { %v: f32[2,3,77] = attention_sums(%q, %k) {scale=0.2} return %v })",
    R"(graph g(%q: f16[2,70,3,40], %k: f16[2,70,3,40]) { %a: f16[2,3,70,40] = transpose(%q) {perm=[0,2,1,3]} %b: f16[2,3,70,40] = transpose(%k) {perm=[0,2,1,3]} %v: f32[2,3,70] = attention_sums(%a, %b) {causal=1} return %v })",
    R"(graph g(%q: bf16[2,3,77,64], %k: bf16[2,3,100,64], %v: bf16[2,3,100,64], %g: bf16[2,3,77,64], %s: f32[2,3,77], %p: f32[2,3,77]) { %r: bf16[2,3,77,64] = attention_gradient(%q, %k, %v, %g, %s, %p) {of=0, scale=0.1} return %r })",
    R"(graph g(%q: bf16[2,3,77,64], %k: bf16[2,3,100,64], %v: bf16[2,3,100,64], %g: bf16[2,3,77,64], %s: f32[2,3,77], %p: f32[2,3,77]) { %r: bf16[2,3,100,64] = attention_gradient(%q, %k, %v, %g, %s, %p) {of=1, scale=0.1} return %r })",
    R"(graph g(%q: bf16[2,3,77,64], %k: bf16[2,3,100,64], %v: bf16[2,3,100,64], %g: bf16[2,3,77,64], %s: f32[2,3,77], %p: f32[2,3,77]) { %r: bf16[2,3,100,64] = attention_gradient(%q, %k, %v, %g, %s, %p) {of=2, scale=0.1} return %r })",
    R"(graph g(%q: f16[2,130,3,40], %k: f16[2,3,130,40], %v: f16[2,3,130,40], %g: f16[2,3,130,40], %s: f32[2,3,130], %p: f32[2,3,130]) { %a: f16[2,3,130,40] = transpose(%q) {perm=[0,2,1,3]} %r: f16[2,3,130,40] = attention_gradient(%a, %k, %v, %g, %s, %p) {of=0, causal=1} %t: f16[2,130,3,40] = transpose(%r) {perm=[0,2,1,3]} return %t })",
    R"(graph g(%q: f16[2,130,3,40], %k: f16[2,3,130,40], %v: f16[2,3,130,40], %g: f16[2,3,130,40], %s: f32[2,3,130], %p: f32[2,3,130]) { %a: f16[2,3,130,40] = transpose(%q) {perm=[0,2,1,3]} %r: f16[2,3,130,40] = attention_gradient(%a, %k, %v, %g, %s, %p) {of=1, causal=1} return %r })",
    R"(graph g(%q: bf16[1,2,90,128], %k: bf16[1,2,90,128], %v: bf16[1,2,90,128], %g: bf16[1,2,90,128], %s: f32[1,2,90], %p: f32[1,2,90]) { %r: bf16[1,2,90,128] = attention_gradient(%q, %k, %v, %g, %s, %p) {of=2, causal=1} return %r })",
    R"(graph g(%q: bf16[2,3,77,64], %k: bf16[2,3,100,64], %m: bool[2,1,77,100]) { %v: f32[2,3,77] = attention_sums(%q, %k, %m) {scale=0.2} return %v })",
    R"(graph g(%q: f16[2,3,70,40], %k: f16[2,3,90,40], %m: f16[3,70,90]) { %v: f32[2,3,70] = attention_sums(%q, %k, %m) {causal=1} return %v })",
    R"(graph g(%q: bf16[2,3,77,64], %k: bf16[2,3,100,64], %v: bf16[2,3,100,64], %g: bf16[2,3,77,64], %s: f32[2,3,77], %p: f32[2,3,77], %m: bool[2,1,77,100]) { %r: bf16[2,3,77,64] = attention_gradient(%q, %k, %v, %g, %s, %p, %m) {of=0, scale=0.1} return %r })",
    R"(graph g(%q: bf16[2,3,77,64], %k: bf16[2,3,100,64], %v: bf16[2,3,100,64], %g: bf16[2,3,77,64], %s: f32[2,3,77], %p: f32[2,3,77], %m: bool[2,1,1,100]) { %r: bf16[2,3,100,64] = attention_gradient(%q, %k, %v, %g, %s, %p, %m) {of=1, scale=0.1} return %r })",
    R"(graph g(%q: f16[2,3,77,64], %k: f16[2,3,99,64], %v: f16[2,3,99,64], %g: f16[2,3,77,64], %s: f32[2,3,77], %p: f32[2,3,77], %m: f16[3,77,99]) { %r: f16[2,3,99,64] = attention_gradient(%q, %k, %v, %g, %s, %p, %m) {of=2, scale=0.1} return %r })",
    R"(graph g(%q: bf16[2,3,77,64], %k: bf16[2,3,99,64], %v: bf16[2,3,99,64], %g: bf16[2,3,77,64], %s: f32[2,3,77], %p: f32[2,3,77], %m: bf16[77,99]) { %r: bf16[2,3,99,64] = attention_gradient(%q, %k, %v, %g, %s, %p, %m) {of=1, causal=1, scale=0.1} return %r })",
};

/// With masks of whole blocks that are seen, or hidden.
inline constexpr const char* block_mask_texts[] = {
    R"(graph g(%q: bf16[2,3,192,64], %k: bf16[2,3,208,64], %m: bool[2,1,192,208]) { %v: f32[2,3,192] = attention_sums(%q, %k, %m) {scale=0.2} return %v })",
    R"(graph g(%q: bf16[2,3,192,64], %k: bf16[2,3,208,64], %v: bf16[2,3,208,64], %g: bf16[2,3,192,64], %s: f32[2,3,192], %p: f32[2,3,192], %m: bool[2,1,192,208]) { %r: bf16[2,3,192,64] = attention_gradient(%q, %k, %v, %g, %s, %p, %m) {of=0, scale=0.1} return %r })",
    R"(graph g(%q: bf16[2,3,192,64], %k: bf16[2,3,208,64], %v: bf16[2,3,208,64], %g: bf16[2,3,192,64], %s: f32[2,3,192], %p: f32[2,3,192], %m: bool[2,1,192,208]) { %r: bf16[2,3,208,64] = attention_gradient(%q, %k, %v, %g, %s, %p, %m) {of=1, scale=0.1} return %r })",
    R"(graph g(%q: f16[2,3,192,40], %k: f16[2,3,192,40], %v: f16[2,3,192,40], %g: f16[2,3,192,40], %s: f32[2,3,192], %p: f32[2,3,192], %m: f16[192,192]) { %r: f16[2,3,192,40] = attention_gradient(%q, %k, %v, %g, %s, %p, %m) {of=2, scale=0.1} return %r })",
    R"(graph g(%q: bf16[2,3,192,64], %k: bf16[2,3,190,64], %v: bf16[2,3,190,64], %g: bf16[2,3,192,64], %s: f32[2,3,192], %p: f32[2,3,192], %m: bool[192,190]) { %r: bf16[2,3,190,64] = attention_gradient(%q, %k, %v, %g, %s, %p, %m) {of=1, scale=0.1} return %r })",
};

}  // namespace sylvite
