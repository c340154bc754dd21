// Attention that is spelled out, as graphs before and after, with results of both.

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/passes/pass_list.h"
#include "tests/support/pass_rewrites.h"

namespace sylvite::fuse_attention_test {
namespace {

class AttentionRewrites : public testing::TestWithParam<Rewrite> {};

TEST_P(AttentionRewrites, GiveTheExpectedGraph) {
  expect_rewrite(GetParam());
}

const Rewrite rewrites[] = {
    {"attention", fuse_attention, "%q: f32[1,2,3,4], %k: f32[1,2,5,4], %v: f32[1,2,5,4], %m: f32[1,1,3,5]",
     "  %c = constant f32[] {0.5}\n  %t: f32[1,2,4,5] = transpose(%k) {perm=[0,1,3,2]}\n"
     "  %s: f32[1,2,3,5] = matmul(%q, %t)\n  %a: f32[1,2,3,5] = mul(%s, %c)\n  %b: f32[1,2,3,5] = add(%a, "
     "%m)\n"
     "  %p: f32[1,2,3,5] = softmax(%b) {axis=3}\n  %o: f32[1,2,3,4] = matmul(%p, %v)\n  return %o\n",
     "  %o: f32[1,2,3,4] = attention(%q, %k, %v, %m) {causal=0, scale=0.5, softcap=0.0}\n  return %o\n"},
    {"windowed_attention", fuse_attention,
     "%q: f32[6,2,3,4], %k: f32[6,2,4,5], %v: f32[6,2,5,4], %b: f32[2,3,5], %m: f32[3,1,3,5]",
     "  %s: f32[6,2,3,5] = matmul(%q, %k)\n  %a: f32[6,2,3,5] = add(%s, %b)\n"
     "  %w: f32[2,3,2,3,5] = reshape(%a) {shape=[2,3,2,3,5]}\n  %c: f32[2,3,2,3,5] = add(%w, %m)\n"
     "  %r: f32[6,2,3,5] = reshape(%c) {shape=[6,2,3,5]}\n  %p: f32[6,2,3,5] = softmax(%r) {axis=3}\n"
     "  %o: f32[6,2,3,4] = matmul(%p, %v)\n  return %o\n",
     "  %n: f32[3,2,3,5] = add(%b, %m)\n  %x: f32[2,3,2,3,4] = reshape(%q) {shape=[2,3,2,3,4]}\n"
     "  %t: f32[2,3,2,4,5] = reshape(%k) {shape=[2,3,2,4,5]}\n"
     "  %y: f32[2,3,2,5,4] = transpose(%t) {perm=[0,1,2,4,3]}\n"
     "  %z: f32[2,3,2,5,4] = reshape(%v) {shape=[2,3,2,5,4]}\n"
     "  %e: f32[2,3,2,3,4] = attention(%x, %y, %z, %n) {causal=0, scale=1.0, softcap=0.0}\n"
     "  %o: f32[6,2,3,4] = reshape(%e) {shape=[6,2,3,4]}\n  return %o\n"},
    {"attention_of_two_masks", fuse_attention,
     "%q: f32[2,3,4], %k: f32[2,4,5], %v: f32[2,5,4], %b: f32[3,5], %m: f32[2,1,5]",
     "  %s: f32[2,3,5] = matmul(%q, %k)\n  %a: f32[2,3,5] = add(%s, %b)\n  %c: f32[2,3,5] = add(%m, %a)\n"
     "  %p: f32[2,3,5] = softmax(%c) {axis=2}\n  %o: f32[2,3,4] = matmul(%p, %v)\n  return %o\n",
     "  %n: f32[2,3,5] = add(%b, %m)\n  %t: f32[2,5,4] = transpose(%k) {perm=[0,2,1]}\n"
     "  %o: f32[2,3,4] = attention(%q, %t, %v, %n) {causal=0, scale=1.0, softcap=0.0}\n  return %o\n"},
    {"causal_attention", fuse_attention, "%q: f32[2,2,4], %k: f32[2,4,2], %v: f32[2,2,4]",
     "  %m = constant f32[2,2] {0.0, -3e38, 0.0, 0.0}\n  %s: f32[2,2,2] = matmul(%q, %k)\n"
     "  %b: f32[2,2,2] = add(%s, %m)\n  %p: f32[2,2,2] = softmax(%b) {axis=2}\n  %o: f32[2,2,4] = matmul(%p, "
     "%v)\n"
     "  return %o\n",
     "  %t: f32[2,2,4] = transpose(%k) {perm=[0,2,1]}\n"
     "  %o: f32[2,2,4] = attention(%q, %t, %v) {causal=1, scale=1.0, softcap=0.0}\n  return %o\n"},
    {"attention_of_hidden_scores", fuse_attention,
     "%q: f32[2,3,4], %k: f32[2,4,5], %v: f32[2,5,4], %c: bool[3,5], %d: bool[5]",
     "  %i = constant f32[] {-inf}\n  %s: f32[2,3,5] = matmul(%q, %k)\n"
     "  %a: f32[2,3,5] = where(%c, %s, %i)\n  %b: f32[2,3,5] = where(%d, %i, %a)\n"
     "  %p: f32[2,3,5] = softmax(%b) {axis=2}\n  %o: f32[2,3,4] = matmul(%p, %v)\n  return %o\n",
     "  %n: bool[5] = logical_not(%d)\n  %m: bool[3,5] = logical_and(%c, %n)\n"
     "  %t: f32[2,5,4] = transpose(%k) {perm=[0,2,1]}\n"
     "  %o: f32[2,3,4] = attention(%q, %t, %v, %m) {causal=0, scale=1.0, softcap=0.0}\n  return %o\n"},
    {"attention_of_scores_that_are_hidden_and_added_to", fuse_attention,
     "%q: f32[2,3,4], %k: f32[2,4,5], %v: f32[2,5,4], %c: bool[3,5], %b: f32[5], %d: bool[5]",
     "  %i = constant f32[] {-inf}\n  %l = constant f32[] {-3e38}\n  %s: f32[2,3,5] = matmul(%q, %k)\n"
     "  %a: f32[2,3,5] = where(%c, %s, %l)\n  %e: f32[2,3,5] = add(%a, %b)\n"
     "  %f: f32[2,3,5] = where(%d, %e, %i)\n"
     "  %p: f32[2,3,5] = softmax(%f) {axis=2}\n  %o: f32[2,3,4] = matmul(%p, %v)\n  return %o\n",
     "  %zero = constant f32[] {0.0}\n  %low = constant f32[] {-3e38}\n  %inf = constant f32[] {-inf}\n"
     "  %x: f32[3,5] = where(%c, %zero, %low)\n  %y: f32[3,5] = add(%x, %b)\n"
     "  %z: f32[3,5] = where(%d, %y, %inf)\n  %t: f32[2,5,4] = transpose(%k) {perm=[0,2,1]}\n"
     "  %o: f32[2,3,4] = attention(%q, %t, %v, %z) {causal=0, scale=1.0, softcap=0.0}\n  return %o\n"},
    {"causal_attention_by_a_condition", fuse_attention, "%q: f32[2,2,4], %k: f32[2,4,2], %v: f32[2,2,4]",
     "  %c = constant bool[2,2] {1, 0, 1, 1}\n  %i = constant f32[] {-3e38}\n"
     "  %s: f32[2,2,2] = matmul(%q, %k)\n  %b: f32[2,2,2] = where(%c, %s, %i)\n"
     "  %p: f32[2,2,2] = softmax(%b) {axis=2}\n  %o: f32[2,2,4] = matmul(%p, %v)\n  return %o\n",
     "  %t: f32[2,2,4] = transpose(%k) {perm=[0,2,1]}\n"
     "  %o: f32[2,2,4] = attention(%q, %t, %v) {causal=1, scale=1.0, softcap=0.0}\n  return %o\n"},
    {"causal_truth_of_attention_and_its_sums", fuse_attention, "%q: f32[2,2,4], %k: f32[2,2,4]",
     "  %m = constant bool[1,2,2] {1, 0, 1, 1}\n"
     "  %w: bool[2,2,2] = broadcast_to(%m) {shape=[2,2,2]}\n"
     "  %a: f32[2,2,4] = attention(%q, %k, %k, %w) {causal=0, scale=1.0, softcap=0.0}\n"
     "  %s: f32[2,2] = attention_sums(%q, %k, %w) {scale=1.0, causal=0}\n  return %a, %s\n",
     "  %a: f32[2,2,4] = attention(%q, %k, %k) {scale=1.0, causal=1, softcap=0.0}\n"
     "  %s: f32[2,2] = attention_sums(%q, %k) {scale=1.0, causal=1}\n  return %a, %s\n"},
    {"mask_that_hides_nothing", fuse_attention, "%q: f32[2,2,4], %k: f32[2,3,4]",
     "  %m = constant bool[1,3] {1, 1, 1}\n"
     "  %a: f32[2,2,4] = attention(%q, %k, %k, %m) {causal=0, scale=1.0, softcap=0.0}\n  return %a\n",
     "  %a: f32[2,2,4] = attention(%q, %k, %k) {causal=0, scale=1.0, softcap=0.0}\n  return %a\n"},
    {"mask_that_hides_a_key", fuse_attention, "%q: f32[2,2,4], %k: f32[2,3,4]",
     "  %m = constant bool[1,3] {1, 1, 0}\n"
     "  %a: f32[2,2,4] = attention(%q, %k, %k, %m) {causal=0, scale=1.0, softcap=0.0}\n  return %a\n",
     "  %m = constant bool[1,3] {1, 1, 0}\n"
     "  %a: f32[2,2,4] = attention(%q, %k, %k, %m) {causal=0, scale=1.0, softcap=0.0}\n  return %a\n"},
    {"attention_whose_guard_has_nothing_to_do", fuse_attention,
     "%q: f32[2,2,4], %k: f32[2,4,2], %v: f32[2,2,4]",
     "  %m = constant f32[2,2] {0.0, -inf, 0.0, 0.0}\n  %zero = constant f32[] {0.0}\n"
     "  %s: f32[2,2,2] = matmul(%q, %k)\n  %b: f32[2,2,2] = add(%s, %m)\n"
     "  %p: f32[2,2,2] = softmax(%b) {axis=2}\n  %n: bool[2,2,2] = is_nan(%p)\n"
     "  %w: f32[2,2,2] = where(%n, %zero, %p)\n  %o: f32[2,2,4] = matmul(%w, %v)\n  return %o\n",
     "  %t: f32[2,2,4] = transpose(%k) {perm=[0,2,1]}\n"
     "  %o: f32[2,2,4] = attention(%q, %t, %v) {causal=1, scale=1.0, softcap=0.0}\n  return %o\n"},
    {"attention_with_guarded_rows", fuse_attention,
     "%q: f32[2,3,4], %k: f32[2,4,5], %v: f32[2,5,4], %m: f32[3,5]",
     "  %zero = constant f32[] {0.0}\n"
     "  %s: f32[2,3,5] = matmul(%q, %k)\n  %b: f32[2,3,5] = add(%s, %m)\n"
     "  %p: f32[2,3,5] = softmax(%b) {axis=2}\n  %n: bool[2,3,5] = is_nan(%p)\n"
     "  %w: f32[2,3,5] = where(%n, %zero, %p)\n  %o: f32[2,3,4] = matmul(%w, %v)\n  return %o\n",
     "  %t: f32[2,5,4] = transpose(%k) {perm=[0,2,1]}\n"
     "  %a: f32[2,3,4] = attention(%q, %t, %v, %m) {causal=0, scale=1.0, softcap=0.0}\n"
     "  %x: f32[3,1] = reduce_max(%m) {axes=[1], keepdims=1}\n  %i = constant f32[] {-inf}\n"
     "  %e: bool[3,1] = equal(%x, %i)\n  %z = constant f32[] {0.0}\n"
     "  %o: f32[2,3,4] = where(%e, %z, %a)\n  return %o\n"},
    {"attention_with_a_scale_for_each_head", fuse_attention,
     "%q: f32[2,2,3,4], %k: f32[2,2,4,5], %v: f32[2,2,5,4], %c: f32[2,1,1], %m: f32[3,5]",
     "  %s: f32[2,2,3,5] = matmul(%q, %k)\n  %a: f32[2,2,3,5] = mul(%s, %c)\n  %b: f32[2,2,3,5] = add(%a, "
     "%m)\n"
     "  %p: f32[2,2,3,5] = softmax(%b) {axis=3}\n  %o: f32[2,2,3,4] = matmul(%p, %v)\n  return %o\n",
     "  %d: f32[2,2,3,4] = mul(%q, %c)\n  %t: f32[2,2,5,4] = transpose(%k) {perm=[0,1,3,2]}\n"
     "  %o: f32[2,2,3,4] = attention(%d, %t, %v, %m) {causal=0, scale=1.0, softcap=0.0}\n  return %o\n"},
    {"attention_that_joins_images_and_heads", fuse_attention,
     "%q: f32[6,3,4], %k: f32[6,4,5], %v: f32[6,5,4], %b: f32[6,1,5], %m: f32[2,1,3,5]",
     "  %s: f32[6,3,5] = matmul(%q, %k)\n  %a: f32[6,3,5] = add(%s, %b)\n"
     "  %w: f32[2,3,3,5] = reshape(%a) {shape=[2,3,3,5]}\n  %c: f32[2,3,3,5] = add(%w, %m)\n"
     "  %p: f32[2,3,3,5] = softmax(%c) {axis=3}\n  %r: f32[6,3,5] = reshape(%p) {shape=[6,3,5]}\n"
     "  %o: f32[6,3,4] = matmul(%r, %v)\n  return %o\n",
     "  %g: f32[2,3,1,5] = reshape(%b) {shape=[2,3,1,5]}\n  %n: f32[2,3,3,5] = add(%g, %m)\n"
     "  %x: f32[2,3,3,4] = reshape(%q) {shape=[2,3,3,4]}\n  %t: f32[2,3,4,5] = reshape(%k) "
     "{shape=[2,3,4,5]}\n"
     "  %y: f32[2,3,5,4] = transpose(%t) {perm=[0,1,3,2]}\n  %z: f32[2,3,5,4] = reshape(%v) "
     "{shape=[2,3,5,4]}\n"
     "  %e: f32[2,3,3,4] = attention(%x, %y, %z, %n) {causal=0, scale=1.0, softcap=0.0}\n"
     "  %o: f32[6,3,4] = reshape(%e) {shape=[6,3,4]}\n  return %o\n"},
    {"weights_that_values_of_more_heads_read", fuse_attention,
     "%q: f32[2,1,3,4], %k: f32[2,1,4,3], %v: f32[1,2,3,4]",
     "  %s: f32[2,1,3,3] = matmul(%q, %k)\n  %w: f32[2,1,3,3] = softmax(%s) {axis=3}\n"
     "  %o: f32[2,2,3,4] = matmul(%w, %v)\n  return %o\n",
     "  %s: f32[2,1,3,3] = matmul(%q, %k)\n  %w: f32[2,1,3,3] = softmax(%s) {axis=3}\n"
     "  %o: f32[2,2,3,4] = matmul(%w, %v)\n  return %o\n"},
    {"attention_whose_heads_share_keys", fuse_attention,
     "%q: f32[2,3,3,4], %k: f32[2,1,4,5], %v: f32[2,1,5,4]",
     "  %s: f32[2,3,3,5] = matmul(%q, %k)\n  %p: f32[2,3,3,5] = softmax(%s) {axis=3}\n"
     "  %o: f32[2,3,3,4] = matmul(%p, %v)\n  return %o\n",
     "  %t: f32[2,1,5,4] = transpose(%k) {perm=[0,1,3,2]}\n"
     "  %y: f32[2,3,5,4] = broadcast_to(%t) {shape=[2,3,5,4]}\n"
     "  %z: f32[2,3,5,4] = broadcast_to(%v) {shape=[2,3,5,4]}\n"
     "  %o: f32[2,3,3,4] = attention(%q, %y, %z) {causal=0, scale=1.0, softcap=0.0}\n  return %o\n"},
    {"attention_scaled_behind_a_reshape", fuse_attention,
     "%q: f32[2,3,3,4], %k: f32[2,3,5,4], %v: f32[2,3,5,4]",
     "  %c = constant f32[] {4.0}\n  %t: f32[2,3,4,5] = transpose(%k) {perm=[0,1,3,2]}\n"
     "  %x: f32[6,3,4] = reshape(%q) {shape=[6,3,4]}\n  %y: f32[6,4,5] = reshape(%t) {shape=[6,4,5]}\n"
     "  %s: f32[6,3,5] = matmul(%x, %y)\n  %r: f32[2,3,3,5] = reshape(%s) {shape=[2,3,3,5]}\n"
     "  %a: f32[2,3,3,5] = div(%r, %c)\n  %p: f32[2,3,3,5] = softmax(%a) {axis=3}\n"
     "  %w: f32[6,3,5] = reshape(%p) {shape=[6,3,5]}\n  %z: f32[6,5,4] = reshape(%v) {shape=[6,5,4]}\n"
     "  %o: f32[6,3,4] = matmul(%w, %z)\n  return %o\n",
     "  %o: f32[2,3,3,4] = attention(%q, %k, %v) {causal=0, scale=0.25, softcap=0.0}\n"
     "  %r: f32[6,3,4] = reshape(%o) {shape=[6,3,4]}\n  return %r\n"},
    {"attention_with_a_softmax_in_f32", fuse_attention,
     "%q: bf16[2,3,4], %k: bf16[2,4,5], %v: bf16[2,5,4], %m: bf16[3,5]",
     "  %s: bf16[2,3,5] = matmul(%q, %k)\n  %f: f32[2,3,5] = cast(%s) {to=\"f32\", rounds=1}\n"
     "  %n: f32[3,5] = cast(%m) {to=\"f32\", rounds=1}\n  %a: f32[2,3,5] = add(%f, %n)\n"
     "  %p: f32[2,3,5] = softmax(%a) {axis=2}\n  %w: bf16[2,3,5] = cast(%p) {to=\"bf16\", rounds=1}\n"
     "  %o: bf16[2,3,4] = matmul(%w, %v)\n  return %o\n",
     "  %t: bf16[2,5,4] = transpose(%k) {perm=[0,2,1]}\n"
     "  %o: bf16[2,3,4] = attention(%q, %t, %v, %m) {causal=0, scale=1.0, softcap=0.0}\n  return %o\n",
     2e-2},
    {"masks_in_f32_that_hide_keys_of_bf16", fuse_attention,
     "%q: bf16[2,3,4], %k: bf16[2,4,5], %v: bf16[2,5,4], %c: bool[5]",
     "  %zero = constant f32[] {0.0}\n  %low = constant f32[] {-3.4028234e38}\n"
     "  %m: f32[5] = where(%c, %zero, %low)\n  %b: f32[3,5] = broadcast_to(%m) {shape=[3,5]}\n"
     "  %s: bf16[2,3,5] = matmul(%q, %k)\n  %f: f32[2,3,5] = cast(%s) {to=\"f32\", rounds=1}\n"
     "  %a: f32[2,3,5] = add(%f, %b)\n  %p: f32[2,3,5] = softmax(%a) {axis=2}\n"
     "  %w: bf16[2,3,5] = cast(%p) {to=\"bf16\", rounds=1}\n  %o: bf16[2,3,4] = matmul(%w, %v)\n"
     "  return %o\n",
     "  %zero = constant bf16[] {0.0}\n  %low = constant bf16[] {-3.3895314e38}\n"
     "  %m: bf16[5] = where(%c, %zero, %low)\n  %b: bf16[3,5] = broadcast_to(%m) {shape=[3,5]}\n"
     "  %t: bf16[2,5,4] = transpose(%k) {perm=[0,2,1]}\n"
     "  %o: bf16[2,3,4] = attention(%q, %t, %v, %b) {causal=0, scale=1.0, softcap=0.0}\n  return %o\n",
     2e-2},
    {"bias_in_f32_that_bf16_would_round", fuse_attention,
     "%q: bf16[2,3,4], %k: bf16[2,4,5], %v: bf16[2,5,4], %m: f32[3,5]",
     "  %s: bf16[2,3,5] = matmul(%q, %k)\n  %f: f32[2,3,5] = cast(%s) {to=\"f32\", rounds=1}\n  %a: "
     "f32[2,3,5] = add(%f, %m)\n  %p: f32[2,3,5] = softmax(%a) {axis=2}\n  %w: bf16[2,3,5] = cast(%p) "
     "{to=\"bf16\", rounds=1}\n  %o: bf16[2,3,4] = matmul(%w, %v)\n  return %o\n",
     "  %s: bf16[2,3,5] = matmul(%q, %k)\n  %f: f32[2,3,5] = cast(%s) {to=\"f32\", rounds=1}\n  %a: "
     "f32[2,3,5] = add(%f, %m)\n  %p: f32[2,3,5] = softmax(%a) {axis=2}\n  %w: bf16[2,3,5] = cast(%p) "
     "{to=\"bf16\", rounds=1}\n  %o: bf16[2,3,4] = matmul(%w, %v)\n  return %o\n"},
    {"weights_that_are_read_elsewhere", fuse_attention, "%q: f32[2,3,4], %k: f32[2,4,5], %v: f32[2,5,4]",
     "  %s: f32[2,3,5] = matmul(%q, %k)\n  %p: f32[2,3,5] = softmax(%s) {axis=2}\n  %o: f32[2,3,4] = "
     "matmul(%p, %v)\n  return %o, %p\n",
     "  %s: f32[2,3,5] = matmul(%q, %k)\n  %p: f32[2,3,5] = softmax(%s) {axis=2}\n  %o: f32[2,3,4] = "
     "matmul(%p, %v)\n  return %o, %p\n"},
    {"scores_scaled_behind_a_mask", fuse_attention,
     "%q: f32[2,3,4], %k: f32[2,4,5], %v: f32[2,5,4], %m: f32[3,5]",
     "  %c = constant f32[] {0.5}\n  %s: f32[2,3,5] = matmul(%q, %k)\n  %b: f32[2,3,5] = add(%s, %m)\n  %a: "
     "f32[2,3,5] = mul(%b, %c)\n  %p: f32[2,3,5] = softmax(%a) {axis=2}\n  %o: f32[2,3,4] = matmul(%p, %v)\n "
     " return %o\n",
     "  %c = constant f32[] {0.5}\n  %s: f32[2,3,5] = matmul(%q, %k)\n  %b: f32[2,3,5] = add(%s, %m)\n  %a: "
     "f32[2,3,5] = mul(%b, %c)\n  %p: f32[2,3,5] = softmax(%a) {axis=2}\n  %o: f32[2,3,4] = matmul(%p, %v)\n "
     " return %o\n"},
    {"causal_attention_by_what_a_condition_hides", fuse_attention,
     "%q: f32[2,2,4], %k: f32[2,4,2], %v: f32[2,2,4]",
     "  %c = constant bool[2,2] {0, 1, 0, 0}\n  %i = constant f32[] {-inf}\n"
     "  %s: f32[2,2,2] = matmul(%q, %k)\n  %b: f32[2,2,2] = where(%c, %i, %s)\n"
     "  %p: f32[2,2,2] = softmax(%b) {axis=2}\n  %o: f32[2,2,4] = matmul(%p, %v)\n  return %o\n",
     "  %t: f32[2,2,4] = transpose(%k) {perm=[0,2,1]}\n"
     "  %o: f32[2,2,4] = attention(%q, %t, %v) {causal=1, scale=1.0, softcap=0.0}\n  return %o\n"},
    {"scores_hidden_by_a_billion", fuse_attention,
     "%q: f32[2,3,4], %k: f32[2,4,5], %v: f32[2,5,4], %c: bool[3,1]",
     "  %l = constant f32[] {-1e9}\n  %s: f32[2,3,5] = matmul(%q, %k)\n  %a: f32[2,3,5] = where(%c, %l, %s)\n"
     "  %p: f32[2,3,5] = softmax(%a) {axis=2}\n  %o: f32[2,3,4] = matmul(%p, %v)\n  return %o\n",
     "  %l = constant f32[] {-3.4028234e38}\n  %zero = constant f32[] {0.0}\n  %m: f32[3,1] = where(%c, %l, "
     "%zero)\n"
     "  %t: f32[2,5,4] = transpose(%k) {perm=[0,2,1]}\n"
     "  %o: f32[2,3,4] = attention(%q, %t, %v, %m) {causal=0, scale=1.0, softcap=0.0}\n  return %o\n"},
    {"scores_hidden_by_a_billion_and_by_more", fuse_attention,
     "%q: f32[2,3,4], %k: f32[2,4,5], %v: f32[2,5,4], %c: bool[5], %d: bool[3,1]",
     "  %l = constant f32[] {-1e9}\n  %n = constant f32[] {-3e38}\n  %s: f32[2,3,5] = matmul(%q, %k)\n  %a: "
     "f32[2,3,5] = where(%c, %l, %s)\n  %b: f32[2,3,5] = where(%d, %n, %a)\n  %p: f32[2,3,5] = softmax(%b) "
     "{axis=2}\n  %o: f32[2,3,4] = matmul(%p, %v)\n  return %o\n",
     "  %l = constant f32[] {-1e9}\n  %n = constant f32[] {-3e38}\n  %s: f32[2,3,5] = matmul(%q, %k)\n  %a: "
     "f32[2,3,5] = where(%c, %l, %s)\n  %b: f32[2,3,5] = where(%d, %n, %a)\n  %p: f32[2,3,5] = softmax(%b) "
     "{axis=2}\n  %o: f32[2,3,4] = matmul(%p, %v)\n  return %o\n"},
};

INSTANTIATE_TEST_SUITE_P(All, AttentionRewrites, testing::ValuesIn(rewrites),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(FuseAttention, GivesZerosForRowsThatAttendToNothing) {
  const Graph graph = parse_graph(
      body("  %m = constant f32[3,2] {0.0, -inf, -inf, -inf, 1.0, 0.0}\n  %zero = constant f32[] {0.0}\n"
           "  %s: f32[2,3,2] = matmul(%q, %k)\n  %b: f32[2,3,2] = add(%s, %m)\n"
           "  %p: f32[2,3,2] = softmax(%b) {axis=2}\n  %n: bool[2,3,2] = is_nan(%p)\n"
           "  %w: f32[2,3,2] = where(%n, %zero, %p)\n  %o: f32[2,3,4] = matmul(%w, %v)\n  return %o\n",
           "%q: f32[2,3,4], %k: f32[2,4,2], %v: f32[2,2,4]"));
  const Graph fused = fuse_attention(graph);
  EXPECT_TRUE(std::ranges::any_of(fused.nodes(), [](const Node& node) { return node.op == Op::attention; }));
  expect_same_results(graph, fused);
}

}  // namespace
}  // namespace sylvite::fuse_attention_test
