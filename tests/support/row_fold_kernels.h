#pragma once
// Rows that are folded and used again, in the forms that gradients have, for tests of the template.

namespace sylvite {

inline constexpr const char* row_fold_texts[] = {
    // layer_norm, with a residual
    R"(graph g(%d: f32[130,768], %x: bf16[130,768], %m: f32[130,1], %r: f32[130,1], %w: f32[768], %e: f32[130,768]) { %g: f32[130,768] = mul(%d, %w) %a: f32[130,1] = reduce_sum(%g) {axes=[1], keepdims=1} %y: f32[130,768] = cast(%x) {to="f32"} %c: f32[130,768] = sub(%y, %m) %h: f32[130,768] = mul(%c, %r) %p: f32[130,768] = mul(%g, %h) %b: f32[130,1] = reduce_sum(%p) {axes=[1], keepdims=1} %s: f32[130,768] = sub(%g, %a) %t: f32[130,768] = mul(%h, %b) %u: f32[130,768] = sub(%s, %t) %v: f32[130,768] = mul(%u, %r) %o: f32[130,768] = add(%v, %e) return %o })",
    // softmax
    R"(graph g(%d: f32[7,5,49,49], %p: bf16[7,5,49,49]) { %q: f32[7,5,49,49] = cast(%p) {to="f32"} %m: f32[7,5,49,49] = mul(%d, %q) %s: f32[7,5,49,1] = reduce_sum(%m) {axes=[3], keepdims=1} %t: f32[7,5,49,49] = mul(%q, %s) %v: f32[7,5,49,49] = sub(%m, %t) %o: bf16[7,5,49,49] = cast(%v) {to="bf16"} return %o })",
    // a sum of what another sum is taken from, and a number for each row of the first dim
    R"(graph g(%x: bf16[6,11,200], %w: f32[6,1,1], %n: f32[]) { %y: f32[6,11,200] = cast(%x) {to="f32"} %s: f32[6,11,1] = reduce_sum(%y) {axes=[2], keepdims=1} %m: f32[6,11,1] = mul(%s, %n) %c: f32[6,11,200] = sub(%y, %m) %q: f32[6,11,200] = mul(%c, %c) %v: f32[6,11,1] = reduce_sum(%q) {axes=[2], keepdims=1} %o: f32[6,11,200] = div(%c, %v) %z: f32[6,11,200] = mul(%o, %w) return %z })",
    // a norm that keeps two numbers of each row
    R"(graph g(%x: bf16[6,11,200], %w: f32[200], %b: f32[200]) { %y: f32[6,11,200] = cast(%x) {to="f32"} %s: f32[6,11,1] = reduce_sum(%y) {axes=[2], keepdims=1} %m: f32[6,11,1] = neg(%s) %c: f32[6,11,200] = add(%y, %m) %q: f32[6,11,200] = mul(%c, %c) %v: f32[6,11,1] = reduce_sum(%q) {axes=[2], keepdims=1} %r: f32[6,11,1] = sqrt(%v) %h: f32[6,11,200] = mul(%c, %r) %k: f32[6,11,200] = mul(%h, %w) %l: f32[6,11,200] = add(%k, %b) %o: bf16[6,11,200] = cast(%l) {to="bf16"} return %o, %m, %r })",
    // rows of odd lengths, hidden by a mask
    R"(graph g(%x: f32[33,1111], %k: bool[33,1111], %z: f32[]) { %y: f32[33,1111] = where(%k, %x, %z) %s: f32[33,1] = reduce_sum(%y) {axes=[1], keepdims=1} %o: f32[33,1111] = sub(%y, %s) return %o })",
    // long rows
    R"(graph g(%d: bf16[5,4096], %p: bf16[5,4096]) { %e: f32[5,4096] = cast(%d) {to="f32"} %q: f32[5,4096] = cast(%p) {to="f32"} %m: f32[5,4096] = mul(%e, %q) %s: f32[5,1] = reduce_sum(%m) {axes=[1], keepdims=1} %t: f32[5,4096] = mul(%q, %s) %v: f32[5,4096] = sub(%m, %t) %o: bf16[5,4096] = cast(%v) {to="bf16"} return %o })",
    // what a loss keeps of its rows, which are of odd lengths and do not fit into registers
    R"(graph g(%x: bf16[5,60001]) { %y: f32[5,60001] = cast(%x) {to="f32"} %m: f32[5,1] = reduce_max(%y) {axes=[1], keepdims=1} %d: f32[5,60001] = sub(%y, %m) %e: f32[5,60001] = exp(%d) %s: f32[5,1] = reduce_sum(%e) {axes=[1], keepdims=1} %l: f32[5,1] = log(%s) return %l, %m })",
    // mean and variance alone, of short rows
    R"(graph g(%x: bf16[39,200]) { %y: f32[39,200] = cast(%x) {to="f32"} %s: f32[39,1] = reduce_sum(%y) {axes=[1], keepdims=1} %m: f32[39,1] = neg(%s) %c: f32[39,200] = add(%y, %m) %q: f32[39,200] = mul(%c, %c) %v: f32[39,1] = reduce_sum(%q) {axes=[1], keepdims=1} %r: bf16[39,1] = cast(%v) {to="bf16"} return %r, %m })",
    // a softmax of such rows, beside a sum of their own
    R"(graph g(%x: f32[3,70000], %b: f32[70000]) { %y: f32[3,70000] = add(%x, %b) %a: f32[3,1] = reduce_sum(%x) {axes=[1], keepdims=1} %m: f32[3,1] = reduce_max(%y) {axes=[1], keepdims=1} %d: f32[3,70000] = sub(%y, %m) %e: f32[3,70000] = exp(%d) %s: f32[3,1] = reduce_sum(%e) {axes=[1], keepdims=1} %p: f32[3,70000] = div(%e, %s) %q: f32[3,70000] = add(%p, %a) %o: bf16[3,70000] = cast(%q) {to="bf16"} return %o })",
    // a sum alone, of rows of an odd length that are read as bf16
    R"(graph g(%x: bf16[9,1001]) { %y: f32[9,1001] = cast(%x) {to="f32"} %s: f32[9,1] = reduce_sum(%y) {axes=[1], keepdims=1} return %s })",
    // a mean of few long rows, without the folded dim
    R"(graph g(%x: f32[3,50257], %n: f32[]) { %s: f32[3] = reduce_sum(%x) {axes=[1], keepdims=0} %m: f32[3] = mul(%s, %n) return %m })",
    // folds of every kind, read once
    R"(graph g(%x: f32[37,1000], %z: f32[1]) { %a: f32[37,1] = reduce_max(%x) {axes=[1], keepdims=1} %b: f32[37,1] = reduce_min(%x) {axes=[1], keepdims=1} %p: i64[37,1] = arg_max(%x) {axis=1, keepdims=1, select_last=0} %q: i64[37] = arg_min(%x) {axis=1, keepdims=0, select_last=1} %g: bool[37,1000] = greater(%x, %z) %h: i64[37,1000] = cast(%g) {to="i64"} %c: i64[37,1] = reduce_sum(%h) {axes=[1], keepdims=1} %i: i32[37,1000] = cast(%g) {to="i32"} %d: i32[37,1] = reduce_max(%i) {axes=[1], keepdims=1} %e: bool[37,1] = cast(%d) {to="bool"} return %a, %b, %p, %q, %c, %e })",
    // places in few long rows
    R"(graph g(%x: bf16[2,60001]) { %p: i64[2,1] = arg_max(%x) {axis=1, keepdims=1, select_last=1} %q: i64[2,1] = arg_min(%x) {axis=1, keepdims=1, select_last=0} %t: i32[2,1] = cast(%q) {to="i32"} return %p, %t })",
    // a product of all there is
    R"(graph g(%x: f32[3000], %w: f32[3000]) { %y: f32[3000] = mul(%x, %w) %z: f32[3000] = exp(%y) %p: f32[] = reduce_prod(%z) {axes=[0], keepdims=0} return %p })",
    // a number with what is read of each row, of each batch, and of all
    R"(graph g(%x: bf16[6,11,200], %p: f32[6,11,1], %b: f32[6,1,1], %n: f32[]) { %y: f32[6,11,200] = cast(%x) {to="f32"} %e: f32[6,11,200] = exp(%y) %s: f32[6,11,1] = reduce_sum(%e) {axes=[2], keepdims=1} %l: f32[6,11,1] = log(%s) %d: f32[6,11,1] = sub(%l, %p) %w: f32[6,11,1] = mul(%d, %b) %o: f32[6,11,1] = mul(%w, %n) return %o, %s })",
    // a truth value of each row
    R"(graph g(%x: f32[40,77], %t: f32[40,1]) { %m: f32[40,1] = reduce_max(%x) {axes=[1], keepdims=1} %o: bool[40,1] = greater(%m, %t) return %o })",
};

}  // namespace sylvite
