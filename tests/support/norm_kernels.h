#pragma once
// Normalisations in the forms that models have, for tests of templates.

#include <string_view>

#include "frontend/text.h"
#include "lowering/kernel.h"

namespace sylvite {

/// Inputs of rank 1 are weights.
inline Kernel norm_kernel(std::string_view text) {
  Graph body = parse_graph(text);
  std::vector<bool> is_weight;
  for (const ValueId id : body.inputs) is_weight.push_back(body.type(id).rank() == 1);
  return make_kernel(std::move(body), std::move(is_weight));
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
    R"(graph g(%a: f32[5,3,77], %c: f32[5,3,1]) { %x: f32[5,3,77] = mul(%a, %c) %y: f32[5,3,77] = tanh(%x) return %y })",
};

}  // namespace sylvite
