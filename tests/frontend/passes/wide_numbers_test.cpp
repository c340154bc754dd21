#include "frontend/passes/wide_numbers.h"

#include <gtest/gtest.h>

#include <map>

#include "frontend/passes/store_narrow.h"
#include "sylvite/graph_text.h"

namespace sylvite::wide_numbers_test {
namespace {

/// As exporters write logsumexp: a greatest element that is infinite counts as zero. Steps are given beside each other.
TEST(WideNumbers, ChainsOfLogarithmsOfSumsStayWide) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[4,5,1], %m: f32[5,5]) {
    %most = constant f32[1] {3.4e38}
    %zero = constant f32[1] {0}
    %a: f32[4,5,5] = add(%x, %m)
    %e: f32[4,5,5] = exp(%a)
    %t: f32[4,1,5] = reduce_sum(%e) {axes=[1], keepdims=1}
    %l: f32[4,1,5] = log(%t)
    %r: f32[4,5,1] = reshape(%l) {shape=[4,5,1]}
    %b: f32[4,5,5] = add(%r, %m)
    %g: f32[4,1,5] = reduce_max(%b) {axes=[1], keepdims=1}
    %h: f32[4,1,5] = abs(%g)
    %c: bool[4,1,5] = less_equal(%h, %most)
    %w: f32[4,1,5] = where(%c, %g, %zero)
    %d: f32[4,5,5] = sub(%b, %w)
    %f: f32[4,5,5] = exp(%d)
    %u: f32[4,1,5] = reduce_sum(%f) {axes=[1], keepdims=1}
    %k: f32[4,1,5] = log(%u)
    %n: f32[4,1,5] = add(%k, %w)
    %y: f32[4,2,5] = concat(%l, %n) {axis=1}
    return %y
  })");
  const Graph narrow = store_narrow(graph, DType::bf16, {.keep_wide = true});
  verify(narrow);
  std::map<std::string, DType> types;
  for (const Value& value : narrow.values()) types[value.name] = value.type.dtype;
  for (const char* name : {"l", "r", "b", "g", "w", "d", "k", "n"})
    EXPECT_EQ(types.at(name), DType::f32) << name;
}

}  // namespace
}  // namespace sylvite::wide_numbers_test
