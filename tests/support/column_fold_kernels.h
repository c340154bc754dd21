#pragma once
// Columns that are folded by operations of every kind, several times, and used again, for tests of the template.

namespace sylvite {

inline constexpr const char* column_fold_texts[] = {
    // a series with its mean and deviation taken out
    R"(graph g(%x: f32[4,96,21], %n: f32[], %e: f32[]) { %s: f32[4,1,21] = reduce_sum(%x) {axes=[1], keepdims=1} %m: f32[4,1,21] = mul(%s, %n) %c: f32[4,96,21] = sub(%x, %m) %q: f32[4,96,21] = mul(%c, %c) %t: f32[4,1,21] = reduce_sum(%q) {axes=[1], keepdims=1} %v: f32[4,1,21] = add(%t, %e) %r: f32[4,1,21] = abs(%v) %d: f32[4,1,21] = sqrt(%r) %o: f32[4,96,21] = div(%c, %d) return %o })",
    // the same of images, with what is kept of each
    R"(graph g(%x: bf16[3,24,9,7]@c24, %n: f32[]) { %y: f32[3,24,9,7]@c24 = cast(%x) {to="f32"} %s: f32[3,24,1,1]@c24 = reduce_sum(%y) {axes=[2,3], keepdims=1} %m: f32[3,24,1,1]@c24 = mul(%s, %n) %c: f32[3,24,9,7]@c24 = sub(%y, %m) %q: f32[3,24,9,7]@c24 = mul(%c, %c) %t: f32[3,24,1,1]@c24 = reduce_sum(%q) {axes=[2,3], keepdims=1} %d: f32[3,24,1,1]@c24 = sqrt(%t) %o: f32[3,24,9,7]@c24 = mul(%c, %d) %z: bf16[3,24,9,7]@c24 = cast(%o) {to="bf16"} return %z, %m, %d })",
    // logarithms of sums of exponentials, beside the greatest
    R"(graph g(%x: f32[32,48,48], %b: f32[32,1,48]) { %m: f32[32,1,48] = reduce_max(%x) {axes=[1], keepdims=1} %d: f32[32,48,48] = sub(%x, %m) %e: f32[32,48,48] = exp(%d) %s: f32[32,1,48] = reduce_sum(%e) {axes=[1], keepdims=1} %l: f32[32,1,48] = log(%s) %a: f32[32,1,48] = add(%l, %m) %o: f32[32,1,48] = add(%a, %b) return %o, %m })",
    // folds of every kind, read once
    R"(graph g(%x: f32[5,37,50], %z: f32[1]) { %a: f32[5,1,50] = reduce_max(%x) {axes=[1], keepdims=1} %b: f32[5,50] = reduce_min(%x) {axes=[1], keepdims=0} %p: i64[5,1,50] = arg_max(%x) {axis=1, keepdims=1, select_last=0} %q: i64[5,50] = arg_min(%x) {axis=1, keepdims=0, select_last=1} %g: bool[5,37,50] = greater(%x, %z) %h: i64[5,37,50] = cast(%g) {to="i64"} %c: i64[5,50] = reduce_sum(%h) {axes=[1], keepdims=0} %i: i32[5,37,50] = cast(%g) {to="i32"} %d: i32[5,50] = reduce_max(%i) {axes=[1], keepdims=0} %e: bool[5,50] = cast(%d) {to="bool"} %r: f32[5,1,50] = reduce_prod(%x) {axes=[1], keepdims=1} return %a, %b, %p, %q, %c, %e, %r })",
    // more rows than registers hold, twice
    R"(graph g(%x: f32[2,9001,40]) { %m: f32[2,1,40] = reduce_max(%x) {axes=[1], keepdims=1} %d: f32[2,9001,40] = sub(%x, %m) %e: f32[2,9001,40] = exp(%d) %s: f32[2,1,40] = reduce_sum(%e) {axes=[1], keepdims=1} %o: f32[2,9001,40] = div(%e, %s) return %o })",
    // places along the lines of images
    R"(graph g(%x: bf16[3,40,9,7]@c40) { %p: i64[3,40,1,7]@c40 = arg_max(%x) {axis=2, keepdims=1, select_last=1} %q: i64[3,40,1,7]@c40 = arg_min(%x) {axis=2, keepdims=1, select_last=0} return %p, %q })",
    // of equal numbers
    R"(graph g(%x: f32[64,200]) { %y: f32[64,200] = abs(%x) %r: f32[64,200] = ceil(%y) %p: i64[200] = arg_max(%r) {axis=0, keepdims=0, select_last=0} %q: i64[200] = arg_max(%r) {axis=0, keepdims=0, select_last=1} return %p, %q })",
    // shares of odd columns, of which some operands are broadcast
    R"(graph g(%x: f16[7,40,33], %w: f16[7,40,1], %b: f32[33]) { %v: f16[7,40,33] = mul(%x, %w) %y: f32[7,40,33] = cast(%v) {to="f32"} %q: f32[7,40,33] = mul(%y, %y) %s: f32[7,1,33] = reduce_sum(%q) {axes=[1], keepdims=1} %d: f32[7,1,33] = sqrt(%s) %o: f32[7,40,33] = div(%y, %d) %z: f32[7,40,33] = add(%o, %b) %h: f16[7,40,33] = cast(%z) {to="f16"} return %h })",
    // a truth value of each column
    R"(graph g(%x: f32[40,77], %t: f32[77]) { %m: f32[77] = reduce_max(%x) {axes=[0], keepdims=0} %o: bool[77] = greater(%m, %t) return %o })",
    // logarithms of sums of exponentials without the folded dim, as exporters write them
    R"(graph g(%x: f32[8,24,40], %b: f32[8,40], %z: f32[]) { %m: f32[8,1,40] = reduce_max(%x) {axes=[1], keepdims=1} %a: f32[8,1,40] = abs(%m) %k: bool[8,1,40] = less_equal(%a, %z) %n: f32[8,1,40] = where(%k, %m, %z) %d: f32[8,24,40] = sub(%x, %n) %e: f32[8,24,40] = exp(%d) %s: f32[8,40] = reduce_sum(%e) {axes=[1], keepdims=0} %l: f32[8,40] = log(%s) %r: f32[8,40] = reshape(%n) {shape=[8,40]} %t: f32[8,40] = add(%l, %r) %o: f32[8,40] = add(%t, %b) return %o })",
};

}  // namespace sylvite
