// Each pass, shown by equal graphs: the graph before and the graph expected after, as text. A second check
// runs both through the reference interpreter.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/verifier.h"
#include "frontend/ops/op_table.h"
#include "frontend/passes/pass_list.h"
#include "frontend/passes/rotate_pairs.h"
#include "sylvite/graph_text.h"
#include "tests/support/pass_rewrites.h"

namespace sylvite::passes_test {
namespace {

/// Counts nodes per operation after all passes, the way a reader checks that a pattern was found.
int count(const Graph& graph, Op op) {
  int result = 0;
  for (const Node& node : graph.nodes()) result += node.op == op ? 1 : 0;
  return result;
}

class PassRewrites : public testing::TestWithParam<Rewrite> {};

TEST_P(PassRewrites, GiveTheExpectedGraph) {
  expect_rewrite(GetParam());
}

const Rewrite rewrites[] = {
    {"log_of_exp", simplify_algebra, "%x: f32[4]",
     "  %two = constant f32[] {2.0}\n  %a: f32[4] = mul(%x, %two)\n  %b: f32[4] = exp(%a)\n  %c: f32[4] = "
     "log(%b)\n"
     "  return %c\n",
     "  %two = constant f32[] {2.0}\n  %a: f32[4] = mul(%x, %two)\n  return %a\n"},
    {"scalar_factors_merge", simplify_algebra, "%x: f32[4]",
     "  %c2 = constant f32[] {2.0}\n  %c3 = constant f32[] {3.0}\n  %a: f32[4] = mul(%x, %c2)\n"
     "  %b: f32[4] = mul(%a, %c3)\n  return %b\n",
     "  %c6 = constant f32[] {6.0}\n  %a: f32[4] = mul(%x, %c6)\n  return %a\n"},
    {"adding_zero_keeps_the_broadcast", simplify_algebra, "%x: f32[4]",
     "  %zero = constant f32[2,1] {0.0, 0.0}\n  %a: f32[2,4] = add(%x, %zero)\n  return %a\n",
     "  %a: f32[2,4] = broadcast_to(%x) {shape=[2,4]}\n  return %a\n"},
    {"a_choice_between_equals_is_none", simplify_algebra, "%c: bool[4]",
     "  %z = constant f32[1] {0.0}\n  %o = constant f32[1] {0.0}\n  %w: f32[4] = where(%c, %z, %o)\n  return "
     "%w\n",
     "  %z = constant f32[1] {0.0}\n  %w: f32[4] = broadcast_to(%z) {shape=[4]}\n  return %w\n"},
    {"a_choice_between_zeros_of_two_signs_stays", simplify_algebra, "%c: bool[4]",
     "  %z = constant f32[1] {0.0}\n  %o = constant f32[1] {-0.0}\n  %w: f32[4] = where(%c, %z, %o)\n  "
     "return %w\n",
     "  %z = constant f32[1] {0.0}\n  %o = constant f32[1] {-0.0}\n  %w: f32[4] = where(%c, %z, %o)\n  "
     "return %w\n"},
    {"square", simplify_algebra, "%x: f32[4]",
     "  %two = constant f32[] {2.0}\n  %a: f32[4] = pow(%x, %two)\n  return %a\n",
     "  %a: f32[4] = mul(%x, %x)\n  return %a\n"},
    {"whole_power", simplify_algebra, "%x: f32[4]",
     "  %five = constant f32[] {5.0}\n  %a: f32[4] = pow(%x, %five)\n  return %a\n",
     "  %a: f32[4] = mul(%x, %x)\n  %b: f32[4] = mul(%a, %a)\n  %c: f32[4] = mul(%b, %x)\n  return %c\n"},
    {"transposes_cancel", simplify_views, "%x: f32[2,3,4]",
     "  %a: f32[4,2,3] = transpose(%x) {perm=[2,0,1]}\n  %b: f32[2,3,4] = transpose(%a) {perm=[1,2,0]}\n"
     "  %c: f32[2,3,4] = neg(%b)\n  return %c\n",
     "  %c: f32[2,3,4] = neg(%x)\n  return %c\n"},
    {"unit_transpose_is_a_reshape", simplify_views, "%x: f32[1,3,4]",
     "  %a: f32[3,1,4] = transpose(%x) {perm=[1,0,2]}\n  return %a\n",
     "  %a: f32[3,1,4] = reshape(%x) {shape=[3,1,4]}\n  return %a\n"},
    {"fold_of_one_is_a_reshape", simplify_views, "%x: f32[2,1,4,1]",
     "  %a: f32[2,4] = reduce_sum(%x) {axes=[1,3], keepdims=0}\n  return %a\n",
     "  %a: f32[2,4] = reshape(%x) {shape=[2,4]}\n  return %a\n"},
    {"fold_of_more_stays", simplify_views, "%x: f32[2,1,4]",
     "  %a: f32[2] = reduce_max(%x) {axes=[1,2], keepdims=0}\n  return %a\n",
     "  %a: f32[2] = reduce_max(%x) {axes=[1,2], keepdims=0}\n  return %a\n"},
    {"place_of_one_is_the_first", simplify_views, "%x: f32[2,1,4]",
     "  %a: i64[2,4] = arg_max(%x) {axis=1, keepdims=0, select_last=0}\n  return %a\n",
     "  %z = constant i64[1,1] {0}\n  %a: i64[2,4] = broadcast_to(%z) {shape=[2,4]}\n  return %a\n"},
    {"work_broadcasts_by_itself", simplify_views, "%x: f32[2,3,4], %y: f32[3,1]",
     "  %b: f32[2,3,4] = broadcast_to(%y) {shape=[2,3,4]}\n  %r: f32[2,3,4] = div(%x, %b)\n  return %r\n",
     "  %r: f32[2,3,4] = div(%x, %y)\n  return %r\n"},
    {"zeros_that_work_broadcasts_are_one", simplify_views, "%x: f32[2,3]",
     "  %c = constant f32[2,1] {0.0, 0.0}\n  %r: f32[2,3] = mul(%x, %c)\n  return %r\n",
     "  %c = constant f32[1,1] {0.0}\n  %r: f32[2,3] = mul(%x, %c)\n  return %r\n"},
    {"one_number_is_broadcast", simplify_views, "",
     "  %c = constant f32[2,1] {3.0, 3.0}\n  %a: f32[2,4] = broadcast_to(%c) {shape=[2,4]}\n  return %a\n",
     "  %c = constant f32[1,1] {3.0}\n  %a: f32[2,4] = broadcast_to(%c) {shape=[2,4]}\n  return %a\n"},
    {"numbers_are_broadcast", simplify_views, "",
     "  %c = constant f32[2,1] {3.0, 4.0}\n  %a: f32[2,4] = broadcast_to(%c) {shape=[2,4]}\n  return %a\n",
     "  %c = constant f32[2,1] {3.0, 4.0}\n  %a: f32[2,4] = broadcast_to(%c) {shape=[2,4]}\n  return %a\n"},
    {"work_of_broadcasts_alone_stays", simplify_views, "%x: f32[3,4], %y: f32[3,1]",
     "  %a: f32[2,3,4] = broadcast_to(%x) {shape=[2,3,4]}\n"
     "  %b: f32[2,3,4] = broadcast_to(%y) {shape=[2,3,4]}\n  %r: f32[2,3,4] = div(%a, %b)\n  return %r\n",
     "  %a: f32[2,3,4] = broadcast_to(%x) {shape=[2,3,4]}\n"
     "  %b: f32[2,3,4] = broadcast_to(%y) {shape=[2,3,4]}\n  %r: f32[2,3,4] = div(%a, %b)\n  return %r\n"},
    {"constant_gather_is_a_slice", simplify_views, "%x: f32[3,4]",
     "  %i = constant i64[] {1}\n  %a: f32[4] = gather(%x, %i) {axis=0}\n  return %a\n",
     "  %s: f32[1,4] = slice(%x) {sizes=[1,4], starts=[1,0], steps=[1,1]}\n"
     "  %a: f32[4] = reshape(%s) {shape=[4]}\n  return %a\n"},
    {"gathers_between_transposes_pick_where_the_dim_lies", simplify_views, "%x: f32[2,3,4]",
     "  %t: f32[4,2,3] = transpose(%x) {perm=[2,0,1]}\n  %i = constant i64[5] {0, 0, 1, 3, 2}\n"
     "  %g: f32[5,2,3] = gather(%t, %i) {axis=0}\n  %r: f32[2,3,5] = transpose(%g) {perm=[1,2,0]}\n  return "
     "%r\n",
     "  %i = constant i64[5] {0, 0, 1, 3, 2}\n  %r: f32[2,3,5] = gather(%x, %i) {axis=2}\n  return %r\n"},
    {"gathers_between_other_transposes_stay", simplify_views, "%x: f32[2,3,4]",
     "  %t: f32[4,2,3] = transpose(%x) {perm=[2,0,1]}\n  %i = constant i64[5] {0, 0, 1, 3, 2}\n"
     "  %g: f32[5,2,3] = gather(%t, %i) {axis=0}\n  %r: f32[3,2,5] = transpose(%g) {perm=[2,1,0]}\n  return "
     "%r\n",
     "  %t: f32[4,2,3] = transpose(%x) {perm=[2,0,1]}\n  %i = constant i64[5] {0, 0, 1, 3, 2}\n"
     "  %g: f32[5,2,3] = gather(%t, %i) {axis=0}\n  %r: f32[3,2,5] = transpose(%g) {perm=[2,1,0]}\n  return "
     "%r\n"},
    {"equal_nodes_merge", common_subexpressions, "%x: f32[4]",
     "  %a: f32[4] = exp(%x)\n  %b: f32[4] = exp(%x)\n  %c: f32[4] = add(%a, %b)\n  return %c\n",
     "  %a: f32[4] = exp(%x)\n  %c: f32[4] = add(%a, %a)\n  return %c\n"},
    {"equal_nodes_merge_in_either_order", common_subexpressions, "%x: f32[4], %y: f32[4]",
     "  %a: f32[4] = mul(%x, %y)\n  %b: f32[4] = mul(%y, %x)\n  %c: f32[4] = sub(%a, %b)\n  return %c\n",
     "  %a: f32[4] = mul(%x, %y)\n  %c: f32[4] = sub(%a, %a)\n  return %c\n"},
    {"differences_stay_apart", common_subexpressions, "%x: f32[4], %y: f32[4]",
     "  %a: f32[4] = sub(%x, %y)\n  %b: f32[4] = sub(%y, %x)\n  %c: f32[4] = mul(%a, %b)\n  return %c\n",
     "  %a: f32[4] = sub(%x, %y)\n  %b: f32[4] = sub(%y, %x)\n  %c: f32[4] = mul(%a, %b)\n  return %c\n"},
    {"loops_merge_whatever_their_bodies_name", common_subexpressions, "%s: f32[2], %x: f32[3,2]",
     "  %v1: f32[2], %v2: f32[3,2] = loop(%s, %x) {body=graph body(%a: f32[2], %b: f32[2]) {\n"
     "  %c: f32[2] = add(%a, %b)\n  return %c, %b\n}\n, reverse=0, scanned=1, states=1, trips=3}\n"
     "  %v3: f32[2], %v4: f32[3,2] = loop(%s, %x) {body=graph body(%d: f32[2], %e: f32[2]) {\n"
     "  %f: f32[2] = add(%d, %e)\n  return %f, %e\n}\n, reverse=0, scanned=1, states=1, trips=3}\n"
     "  return %v1, %v4\n",
     "  %v1: f32[2], %v2: f32[3,2] = loop(%s, %x) {body=graph body(%a: f32[2], %b: f32[2]) {\n"
     "  %c: f32[2] = add(%a, %b)\n  return %c, %b\n}\n, reverse=0, scanned=1, states=1, trips=3}\n"
     "  return %v1, %v2\n"},
    {"constants_of_one_number_are_one", simplify_views, "%x: f32[2,2]",
     "  %c = constant f32[2,2] {3.0, 3.0, 3.0, 3.0}\n  %d = constant f32[2] {3.0, 4.0}\n  %v: f32[2,2] = "
     "add(%x, %c)\n"
     "  %w: f32[2,2] = add(%d, %v)\n  return %w\n",
     "  %c = constant f32[1,1] {3.0}\n  %d = constant f32[2] {3.0, 4.0}\n  %v: f32[2,2] = add(%x, %c)\n"
     "  %w: f32[2,2] = add(%d, %v)\n  return %w\n"},
    {"loops_carry_what_they_round", narrow_loops, "%s: f32[2], %x: bf16[3,2]",
     "  %w: f32[3,2] = cast(%x) {to=\"f32\"}\n"
     "  %y: f32[2], %z: f32[3,2] = loop(%s, %w) {body=graph body(%a: f32[2], %b: f32[2]) {\n"
     "  %c: bf16[2] = cast(%a) {to=\"bf16\"}\n  %d: bf16[2] = cast(%b) {to=\"bf16\"}\n  %e: bf16[2] = "
     "add(%c, %d)\n"
     "  %f: f32[2] = cast(%e) {to=\"f32\"}\n  return %f, %f\n}\n, reverse=0, scanned=1, states=1, trips=3}\n"
     "  %u: bf16[3,2] = cast(%z) {to=\"bf16\"}\n  return %y, %u\n",
     "  %c: bf16[2] = cast(%s) {to=\"bf16\"}\n"
     "  %v: bf16[2], %z: bf16[3,2] = loop(%c, %x) {body=graph body(%a: bf16[2], %b: bf16[2]) {\n"
     "  %e: bf16[2] = add(%a, %b)\n  return %e, %e\n}\n, reverse=0, scanned=1, states=1, trips=3}\n"
     "  %y: f32[2] = cast(%v) {to=\"f32\"}\n  return %y, %z\n"},
    {"loops_carry_what_they_read_as_it_is", narrow_loops, "%s: f32[2]",
     "  %y: f32[2], %z: f32[3,2] = loop(%s) {body=graph body(%a: f32[2]) {\n"
     "  %c: bf16[2] = cast(%a) {to=\"bf16\"}\n  %d: f32[2] = cast(%c) {to=\"f32\"}\n  %e: f32[2] = add(%a, "
     "%d)\n"
     "  return %e, %e\n}\n, reverse=0, scanned=0, states=1, trips=3}\n  return %y, %z\n",
     "  %y: f32[2], %z: f32[3,2] = loop(%s) {body=graph body(%a: f32[2]) {\n"
     "  %c: bf16[2] = cast(%a) {to=\"bf16\"}\n  %d: f32[2] = cast(%c) {to=\"f32\"}\n  %e: f32[2] = add(%a, "
     "%d)\n"
     "  return %e, %e\n}\n, reverse=0, scanned=0, states=1, trips=3}\n  return %y, %z\n"},
    {"constants_fold", fold_constants, "%x: f32[2]",
     "  %c = constant f32[2] {1.0, 2.0}\n  %a: f32[2] = neg(%c)\n  %b: f32[2] = add(%x, %a)\n  return %b\n",
     "  %a = constant f32[2] {-1.0, -2.0}\n  %b: f32[2] = add(%x, %a)\n  return %b\n"},
    {"gelu_erf", fuse_gelu, "%x: f32[8]",
     "  %r = constant f32[] {1.4142135}\n  %one = constant f32[] {1.0}\n  %half = constant f32[] {0.5}\n"
     "  %a: f32[8] = div(%x, %r)\n  %b: f32[8] = erf(%a)\n  %c: f32[8] = add(%b, %one)\n"
     "  %d: f32[8] = mul(%half, %c)\n  %e: f32[8] = mul(%x, %d)\n  return %e\n",
     "  %e: f32[8] = gelu(%x) {approximate=\"none\"}\n  return %e\n"},
    {"gelu_tanh", fuse_gelu, "%x: f32[8]",
     "  %half = constant f32[] {0.5}\n  %three = constant f32[] {3.0}\n  %k = constant f32[] {0.044715}\n"
     "  %r = constant f32[] {0.7978845608}\n  %one = constant f32[] {1.0}\n  %h: f32[8] = mul(%x, %half)\n"
     "  %p: f32[8] = pow(%x, %three)\n  %q: f32[8] = mul(%p, %k)\n  %s: f32[8] = add(%x, %q)\n"
     "  %t: f32[8] = mul(%s, %r)\n  %u: f32[8] = tanh(%t)\n  %v: f32[8] = add(%u, %one)\n"
     "  %w: f32[8] = mul(%h, %v)\n  return %w\n",
     "  %w: f32[8] = gelu(%x) {approximate=\"tanh\"}\n  return %w\n"},
    {"silu", fuse_silu, "%x: f32[8]", "  %a: f32[8] = sigmoid(%x)\n  %b: f32[8] = mul(%a, %x)\n  return %b\n",
     "  %b: f32[8] = silu(%x)\n  return %b\n"},
    {"hard_swish", fuse_silu, "%x: f32[8]",
     "  %three = constant f32[] {3.0}\n  %zero = constant f32[] {0.0}\n  %six = constant f32[] {6.0}\n"
     "  %a: f32[8] = add(%x, %three)\n  %b: f32[8] = maximum(%a, %zero)\n  %c: f32[8] = minimum(%b, %six)\n"
     "  %d: f32[8] = mul(%x, %c)\n  %e: f32[8] = div(%d, %six)\n  return %e\n",
     "  %e: f32[8] = hard_swish(%x)\n  return %e\n"},
    {"layer_norm", fuse_layer_norm, "%x: f32[2,4]",
     "  %n = constant f32[] {0.25}\n  %eps = constant f32[] {1e-05}\n  %g = constant f32[4] {1.0, 2.0, 3.0, "
     "4.0}\n"
     "  %h = constant f32[4] {0.5, 0.5, 0.0, 0.0}\n"
     "  %s: f32[2,1] = reduce_sum(%x) {axes=[1], keepdims=1}\n  %m: f32[2,1] = mul(%s, %n)\n"
     "  %d: f32[2,4] = sub(%x, %m)\n  %q: f32[2,4] = mul(%d, %d)\n"
     "  %t: f32[2,1] = reduce_sum(%q) {axes=[1], keepdims=1}\n  %v: f32[2,1] = mul(%t, %n)\n"
     "  %w: f32[2,1] = add(%v, %eps)\n  %r: f32[2,1] = sqrt(%w)\n  %y: f32[2,4] = div(%d, %r)\n"
     "  %z: f32[2,4] = mul(%y, %g)\n  %o: f32[2,4] = add(%z, %h)\n  return %o\n",
     "  %g = constant f32[4] {1.0, 2.0, 3.0, 4.0}\n  %h = constant f32[4] {0.5, 0.5, 0.0, 0.0}\n"
     "  %o: f32[2,4] = layer_norm(%x, %g, %h) {axis=1, epsilon=9.999999747378752e-06}\n  return %o\n"},
    {"rms_norm", fuse_rms_norm, "%x: f32[2,4]",
     "  %n = constant f32[] {0.25}\n  %eps = constant f32[] {0.5}\n  %g = constant f32[4] {1.0, 2.0, 3.0, "
     "4.0}\n"
     "  %q: f32[2,4] = mul(%x, %x)\n  %t: f32[2,1] = reduce_sum(%q) {axes=[1], keepdims=1}\n"
     "  %v: f32[2,1] = mul(%t, %n)\n  %w: f32[2,1] = add(%v, %eps)\n  %r: f32[2,1] = rsqrt(%w)\n"
     "  %y: f32[2,4] = mul(%x, %r)\n  %z: f32[2,4] = mul(%y, %g)\n  return %z\n",
     "  %g = constant f32[4] {1.0, 2.0, 3.0, 4.0}\n  %z: f32[2,4] = rms_norm(%x, %g) {axis=1, epsilon=0.5}\n"
     "  return %z\n"},
    {"halves_of_rows_that_turn", rotate_pairs, "%x: f32[2,4]",
     "  %a: f32[2,2] = slice(%x) {starts=[0,2], sizes=[2,2], steps=[1,1]}\n  %n: f32[2,2] = neg(%a)\n"
     "  %b: f32[2,2] = slice(%x) {starts=[0,0], sizes=[2,2], steps=[1,1]}\n"
     "  %y: f32[2,4] = concat(%n, %b) {axis=1}\n  return %y\n",
     "  %a: f32[2,2] = slice(%x) {starts=[0,2], sizes=[2,2], steps=[1,1]}\n"
     "  %b: f32[2,2] = slice(%x) {starts=[0,0], sizes=[2,2], steps=[1,1]}\n"
     "  %c: f32[2,4] = concat(%a, %b) {axis=1}\n  %s = constant f32[4] {-1.0, -1.0, 1.0, 1.0}\n"
     "  %y: f32[2,4] = mul(%c, %s)\n  return %y\n"},
    {"neighbours_that_turn", rotate_pairs, "%x: f32[2,4]",
     "  %a: f32[2,2] = slice(%x) {starts=[0,1], sizes=[2,2], steps=[1,2]}\n  %n: f32[2,2] = neg(%a)\n"
     "  %b: f32[2,2] = slice(%x) {starts=[0,0], sizes=[2,2], steps=[1,2]}\n"
     "  %d: f32[2,2,1] = reshape(%n) {shape=[2,2,1]}\n  %e: f32[2,2,1] = reshape(%b) {shape=[2,2,1]}\n"
     "  %y: f32[2,2,2] = concat(%d, %e) {axis=2}\n  return %y\n",
     "  %i = constant i64[4] {1, 0, 3, 2}\n  %g: f32[2,4] = gather(%x, %i) {axis=1}\n"
     "  %s = constant f32[4] {-1.0, 1.0, -1.0, 1.0}\n  %m: f32[2,4] = mul(%g, %s)\n"
     "  %y: f32[2,2,2] = reshape(%m) {shape=[2,2,2]}\n  return %y\n"},
    {"negation_that_others_read", rotate_pairs, "%x: f32[2,4], %z: f32[2,4]",
     "  %n: f32[2,4] = neg(%x)\n  %y: f32[2,8] = concat(%n, %z) {axis=1}\n  return %y, %n\n",
     "  %n: f32[2,4] = neg(%x)\n  %y: f32[2,8] = concat(%n, %z) {axis=1}\n  return %y, %n\n"},
    {"conv_bias", fold_conv_bias, "%x: f32[1,1,3,3]",
     "  %w = constant f32[2,1,2,2] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}\n  %b = constant f32[1,2,1,1] "
     "{0.5, 1.5}\n"
     "  %a: f32[1,2,2,2] = conv(%x, %w) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}\n"
     "  %c: f32[1,2,2,2] = add(%a, %b)\n  return %c\n",
     "  %w = constant f32[2,1,2,2] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}\n  %b = constant f32[2] {0.5, "
     "1.5}\n"
     "  %a: f32[1,2,2,2] = conv(%x, %w, %b) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}\n  "
     "return %a\n"},
    {"batch_norm_into_conv", fold_batch_norm, "%x: f32[1,1,3,3]",
     "  %w = constant f32[1,1,2,2] {1.0, 2.0, 3.0, 4.0}\n  %s = constant f32[1] {2.0}\n  %b = constant "
     "f32[1] {0.5}\n"
     "  %m = constant f32[1] {0.25}\n  %v = constant f32[1] {4.0}\n"
     "  %a: f32[1,1,2,2] = conv(%x, %w) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}\n"
     "  %c: f32[1,1,2,2] = batch_norm(%a, %s, %b, %m, %v) {epsilon=1e-05}\n  return %c\n",
     "  %w = constant f32[1,1,2,2] {0.99999875, 1.9999975, 2.9999962, 3.999995}\n"
     "  %b = constant f32[1] {0.2500003}\n"
     "  %a: f32[1,1,2,2] = conv(%x, %w, %b) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}\n  "
     "return %a\n"},
    {"batch_norm_of_a_narrow_conv", fold_batch_norm, "%x: bf16[1,1,3,3]",
     "  %w = constant bf16[1,1,2,2] {1.0, 2.0, 3.0, 4.0}\n  %s = constant f32[1] {2.0}\n  %b = constant "
     "f32[1] {0.5}\n"
     "  %m = constant f32[1] {0.25}\n  %v = constant f32[1] {1.0}\n"
     "  %a: bf16[1,1,2,2] = conv(%x, %w) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}\n"
     "  %f: f32[1,1,2,2] = cast(%a) {to=\"f32\"}\n"
     "  %c: f32[1,1,2,2] = batch_norm(%f, %s, %b, %m, %v) {epsilon=0.0}\n"
     "  %d: bf16[1,1,2,2] = cast(%c) {to=\"bf16\"}\n  return %d\n",
     "  %w = constant bf16[1,1,2,2] {2.0, 4.0, 6.0, 8.0}\n"
     "  %b = constant bf16[1] {0.0}\n"
     "  %a: bf16[1,1,2,2] = conv(%x, %w, %b) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[1,1]}\n"
     "  %f: f32[1,1,2,2] = cast(%a) {to=\"f32\"}\n"
     "  %d: bf16[1,1,2,2] = cast(%f) {to=\"bf16\"}\n  return %d\n"},
    {"batch_norm_alone", fold_batch_norm, "%x: f32[1,2,3]",
     "  %s = constant f32[2] {2.0, 3.0}\n  %v = constant f32[2] {4.0, 9.0}\n"
     "  %c: f32[1,2,3] = batch_norm(%x, %s, %s, %s, %v) {epsilon=1e-05}\n  return %c\n",
     "  %s = constant f32[1,2,1] {0.99999875, 0.99999946}\n"
     "  %t = constant f32[1,2,1] {2.4999954e-06, 1.6666653e-06}\n"
     "  %a: f32[1,2,3] = mul(%x, %s)\n  %b: f32[1,2,3] = add(%a, %t)\n  return %b\n"},
    {"sum_of_a_stack", split_sums, "%x: f32[3,1,4], %y: f32[3,1,4]",
     "  %s: f32[3,2,4] = concat(%x, %y) {axis=1}\n"
     "  %a: f32[3,1,4] = reduce_sum(%s) {axes=[1], keepdims=1}\n  return %a\n",
     "  %b: f32[3,4] = reshape(%x) {shape=[3,4]}\n  %c: f32[3,4] = reshape(%y) {shape=[3,4]}\n"
     "  %d: f32[3,4] = add(%b, %c)\n  %a: f32[3,1,4] = reshape(%d) {shape=[3,1,4]}\n  return %a\n"},
    {"sum_of_a_split_dim", split_sums, "%x: f32[3,6,2]",
     "  %s: f32[3,3,2,2] = reshape(%x) {shape=[3,3,2,2]}\n"
     "  %a: f32[3,2,2] = reduce_sum(%s) {axes=[1], keepdims=0}\n  return %a\n",
     "  %b: f32[3,2,2] = slice(%x) {sizes=[3,2,2], starts=[0,0,0], steps=[1,1,1]}\n"
     "  %c: f32[3,2,2] = slice(%x) {sizes=[3,2,2], starts=[0,2,0], steps=[1,1,1]}\n"
     "  %d: f32[3,2,2] = add(%b, %c)\n"
     "  %e: f32[3,2,2] = slice(%x) {sizes=[3,2,2], starts=[0,4,0], steps=[1,1,1]}\n"
     "  %f: f32[3,2,2] = add(%d, %e)\n  return %f\n"},
    {"weighted_sum_of_a_stack", split_sums, "%x: f32[3,1,4], %y: f32[3,1,4], %w: f32[3,2,1]",
     "  %s: f32[3,2,4] = concat(%x, %y) {axis=1}\n  %p: f32[3,2,4] = mul(%s, %w)\n"
     "  %a: f32[3,4] = reduce_sum(%p) {axes=[1], keepdims=0}\n  return %a\n",
     "  %b: f32[3,4] = reshape(%x) {shape=[3,4]}\n  %c: f32[3,2] = reshape(%w) {shape=[3,2]}\n"
     "  %d: f32[3,1] = slice(%c) {sizes=[3,1], starts=[0,0], steps=[1,1]}\n"
     "  %e: f32[3,4] = mul(%b, %d)\n  %f: f32[3,4] = reshape(%y) {shape=[3,4]}\n"
     "  %h: f32[3,1] = slice(%c) {sizes=[3,1], starts=[0,1], steps=[1,1]}\n"
     "  %i: f32[3,4] = mul(%f, %h)\n  %j: f32[3,4] = add(%e, %i)\n  return %j\n"},
    {"sum_of_parts_among_zeros", join_padded, "%x: f32[1,4], %y: f32[2,4], %z: f32[1,4]",
     "  %a: f32[4,4] = pad(%y) {low=[1,0], high=[1,0]}\n  %b: f32[4,4] = pad(%z) {low=[3,0], high=[0,0]}\n"
     "  %c: f32[4,4] = add(%b, %a)\n  %d: f32[4,4] = pad(%x) {low=[0,0], high=[3,0]}\n"
     "  %e: f32[4,4] = add(%c, %d)\n  return %e\n",
     "  %e: f32[4,4] = concat(%x, %y, %z) {axis=0}\n  return %e\n"},
    {"sum_of_two_parts_of_three", join_padded, "%x: f32[4,1], %y: f32[4,2]",
     "  %a: f32[4,5] = pad(%x) {low=[0,0], high=[0,4]}\n  %b: f32[4,5] = pad(%y) {low=[0,1], high=[0,2]}\n"
     "  %c: f32[4,5] = add(%a, %b)\n  return %c\n",
     "  %d: f32[4,3] = concat(%x, %y) {axis=1}\n  %c: f32[4,5] = pad(%d) {low=[0,0], high=[0,2]}\n"
     "  return %c\n"},
    {"sum_of_parts_that_overlap", join_padded, "%x: f32[3,2], %y: f32[3,2]",
     "  %a: f32[3,3] = pad(%x) {low=[0,0], high=[0,1]}\n  %b: f32[3,3] = pad(%y) {low=[0,1], high=[0,0]}\n"
     "  %c: f32[3,3] = add(%a, %b)\n  return %c\n",
     "  %a: f32[3,3] = pad(%x) {low=[0,0], high=[0,1]}\n  %b: f32[3,3] = pad(%y) {low=[0,1], high=[0,0]}\n"
     "  %c: f32[3,3] = add(%a, %b)\n  return %c\n"},
    {"sum_of_parts_among_ones", join_padded, "%x: f32[2], %y: f32[1]",
     "  %one = constant f32[] {1.0}\n  %a: f32[3] = pad(%x, %one) {low=[0], high=[1]}\n"
     "  %b: f32[3] = pad(%y, %one) {low=[2], high=[0]}\n  %c: f32[3] = add(%a, %b)\n  return %c\n",
     "  %one = constant f32[] {1.0}\n  %a: f32[3] = pad(%x, %one) {low=[0], high=[1]}\n"
     "  %b: f32[3] = pad(%y, %one) {low=[2], high=[0]}\n  %c: f32[3] = add(%a, %b)\n  return %c\n"},
    {"stack_that_is_moved_inwards", move_stacks, "%x: f32[1,2,5,4], %y: f32[1,2,5,4]",
     "  %a: f32[2,2,5,4] = concat(%x, %y) {axis=0}\n  %b: f32[2,5,2,4] = transpose(%a) {perm=[1,2,0,3]}\n"
     "  %c: f32[2,5,8] = reshape(%b) {shape=[2,5,8]}\n  return %c\n",
     "  %a: f32[2,5,4] = reshape(%x) {shape=[2,5,4]}\n  %b: f32[2,5,4] = reshape(%y) {shape=[2,5,4]}\n"
     "  %c: f32[2,5,8] = concat(%a, %b) {axis=2}\n  return %c\n"},
    {"stack_with_a_dim_of_one_between", move_stacks, "%x: f32[1,2,5,4], %y: f32[1,2,5,4]",
     "  %a: f32[2,2,5,4] = concat(%x, %y) {axis=0}\n  %b: f32[2,2,5,1,4] = reshape(%a) {shape=[2,2,5,1,4]}\n"
     "  %c: f32[1,2,5,2,4] = transpose(%b) {perm=[3,1,2,0,4]}\n"
     "  %d: f32[10,8] = reshape(%c) {shape=[10,8]}\n  return %d\n",
     "  %a: f32[10,4] = reshape(%x) {shape=[10,4]}\n  %b: f32[10,4] = reshape(%y) {shape=[10,4]}\n"
     "  %c: f32[10,8] = concat(%a, %b) {axis=1}\n  return %c\n"},
    {"stack_that_others_read", move_stacks, "%x: f32[1,5,4], %y: f32[1,5,4]",
     "  %a: f32[2,5,4] = concat(%x, %y) {axis=0}\n  %b: f32[5,2,4] = transpose(%a) {perm=[1,0,2]}\n"
     "  return %a, %b\n",
     "  %a: f32[2,5,4] = concat(%x, %y) {axis=0}\n  %b: f32[5,2,4] = transpose(%a) {perm=[1,0,2]}\n"
     "  return %a, %b\n"},
    {"sum_of_longer_parts", split_sums, "%x: f32[3,2], %y: f32[3,2]",
     "  %s: f32[3,4] = concat(%x, %y) {axis=1}\n  %a: f32[3] = reduce_sum(%s) {axes=[1], keepdims=0}\n"
     "  return %a\n",
     "  %s: f32[3,4] = concat(%x, %y) {axis=1}\n  %a: f32[3] = reduce_sum(%s) {axes=[1], keepdims=0}\n"
     "  return %a\n"},
};

INSTANTIATE_TEST_SUITE_P(All, PassRewrites, testing::ValuesIn(rewrites),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Passes, LeaveAlmostGeluAlone) {
  const Graph graph = parse_graph(
      body("  %r = constant f32[] {1.5}\n  %one = constant f32[] {1.0}\n  %half = constant f32[] {0.5}\n"
           "  %a: f32[8] = div(%x, %r)\n  %b: f32[8] = erf(%a)\n  %c: f32[8] = add(%b, %one)\n"
           "  %d: f32[8] = mul(%half, %c)\n  %e: f32[8] = mul(%x, %d)\n  return %e\n",
           "%x: f32[8]"));
  EXPECT_EQ(count(fuse_gelu(graph), Op::gelu), 0);
}

TEST(Passes, LeaveBatchNormWithInfiniteScaleAlone) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {1, 2, 3}));
  const auto vector = [&](float a, float b) {
    return graph.add_constant(Tensor::of<float>(DType::f32, {2}, {a, b}));
  };
  const float infinity = std::numeric_limits<float>::infinity();
  graph.outputs = {
      graph.add(Op::batch_norm, {x, vector(1, infinity), vector(1, 1), vector(1, 1), vector(1, 1)})};
  EXPECT_EQ(count(fold_batch_norm(graph), Op::batch_norm), 1);
}

TEST(Passes, LeavePaddedTapsThatAreInfinite) {
  const Graph graph = parse_graph(body(
      "  %w = constant f32[1,1,3] {inf, 2.0, 3.0}\n"
      "  %a: f32[1,1,2] = conv(%x, %w) {dilations=[2], groups=1, pads=[2,2], strides=[1]}\n  return %a\n",
      "%x: f32[1,1,2]"));
  EXPECT_TRUE(same_structure(drop_padded_taps(graph, false), graph));
}

TEST(Passes, LeaveBiasOfHigherRankThanTheConvolutionAlone) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {1, 1, 4}));
  const ValueId y = graph.add(
      Op::conv, {x, graph.add_constant(Tensor::of<float>(DType::f32, {1, 1, 1}, {2}))},
      {{"strides", Dims{1}}, {"pads", Dims{0, 0}}, {"dilations", Dims{1}}, {"groups", std::int64_t{1}}});
  graph.outputs = {
      graph.add(Op::add, {y, graph.add_constant(Tensor::of<float>(DType::f32, {1, 1, 1, 1}, {3}))})};
  const Graph after = fold_conv_bias(graph);
  verify(after);
  EXPECT_EQ(count(after, Op::add), 1);
}

TEST(Passes, KeepOutputsThatBecomeInputsOrEachOther) {
  const Graph graph =
      parse_graph(body("  %one = constant f32[] {1.0}\n  %a: f32[4] = mul(%x, %one)\n  %b: f32[4] = exp(%x)\n"
                       "  %c: f32[4] = exp(%x)\n  return %a, %b, %c\n",
                       "%x: f32[4]"));
  const Graph after = run_passes(graph);
  EXPECT_EQ(after.outputs[0], after.inputs[0]);
  EXPECT_EQ(after.outputs[1], after.outputs[2]);
  EXPECT_EQ(after.output_name(0), "a");
  EXPECT_EQ(after.output_name(2), "c");
  expect_same_results(graph, after);
}

}  // namespace
}  // namespace sylvite::passes_test
