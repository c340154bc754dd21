// Random graphs through every setting of lowering: what a plan computes is what the graph computes.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "tests/lowering/sample_graphs.h"

namespace sylvite::random_graph_test {
namespace {

/// Grows a graph by random operations on random values made before.
class Grower {
 public:
  explicit Grower(std::uint32_t seed) : random_(seed) {
    graph_.name = fmt::format("random{}", seed);
    values_.push_back(graph_.add_input("image", f32({1, 3, 6, 6})));
    values_.push_back(graph_.add_input("map", f32({1, 20, 6, 6})));
    values_.push_back(graph_.add_input("tokens", f32({1, 4, 12})));
  }

  Graph grow(int nodes) {
    constexpr std::array steps = {&Grower::add_unary, &Grower::add_binary, &Grower::add_convolution,
                                  &Grower::add_view,  &Grower::add_concat, &Grower::add_reduction,
                                  &Grower::add_dense, &Grower::add_window, &Grower::add_norm,
                                  &Grower::add_unary, &Grower::add_binary, &Grower::add_view};
    for (int i = 0; i < nodes; ++i) (this->*steps.at(pick(steps.size())))();
    for (std::size_t i = 0; i < 3; ++i)
      graph_.outputs.push_back(values_[values_.size() - 1 - pick(values_.size() / 2)]);
    return std::move(graph_);
  }

 private:
  std::size_t pick(std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  }
  ValueId any() { return values_[values_.size() - 1 - std::min(pick(values_.size()), pick(values_.size()))]; }
  Dims dims(ValueId id) { return graph_.type(id).dims(); }
  void keep(ValueId id) {
    if (graph_.type(id).element_count() <= 4000) values_.push_back(id);
  }
  std::optional<ValueId> any_image() {
    for (int attempt = 0; attempt < 8; ++attempt) {
      const ValueId id = any();
      if (dims(id).size() == 4 && dims(id)[2] >= 3 && dims(id)[3] >= 3) return id;
    }
    return std::nullopt;
  }

  void add_unary() {
    constexpr std::array ops = {Op::relu, Op::sigmoid, Op::tanh, Op::neg, Op::gelu, Op::hard_swish};
    keep(graph_.add(ops.at(pick(ops.size())), {any()}));
  }

  void add_binary() {
    constexpr std::array ops = {Op::add, Op::mul, Op::maximum, Op::sub};
    const ValueId a = any();
    ValueId b = no_value;
    switch (pick(4)) {
      case 0:
        b = scalar(graph_, 0.5F);
        break;
      case 1:
        b = weight(graph_, {dims(a).empty() ? 1 : dims(a).back()}, static_cast<std::uint32_t>(pick(99)));
        break;
      case 2:
        b = dims(a).size() == 4 ? weight(graph_, {1, dims(a)[1], 1, 1}) : scalar(graph_, 2);
        break;
      default:
        b = same_shape(a);
        break;
    }
    const Op op = ops.at(pick(ops.size()));
    keep(pick(2) == 0 ? graph_.add(op, {a, b}) : graph_.add(op, {b, a}));
  }

  ValueId same_shape(ValueId a) {
    for (int attempt = 0; attempt < 10; ++attempt) {
      const ValueId b = any();
      if (b != a && dims(b) == dims(a)) return b;
    }
    return a;
  }

  void add_convolution() {
    const std::optional<ValueId> x = any_image();
    if (!x) return;
    const std::int64_t channels = dims(*x)[1];
    constexpr std::array<std::int64_t, 4> widths = {8, 16, 20, 32};
    keep(pick(4) == 0 ? conv(graph_, *x, channels, 3, channels)
                      : conv(graph_, *x, widths.at(pick(4)), pick(2) == 0 ? 1 : 3));
  }

  void add_view() {
    const ValueId x = any();
    const Dims from = dims(x);
    if (from.empty()) return;
    switch (pick(4)) {
      case 0: {
        Dims perm(from.size());
        std::iota(perm.begin(), perm.end(), 0);
        std::shuffle(perm.begin(), perm.end(), random_);
        return keep(transpose(graph_, x, perm));
      }
      case 1: {
        Dims starts(from.size(), 0);
        Dims sizes = from;
        const std::size_t axis = pick(from.size());
        sizes[axis] = (from[axis] + 1) / 2;
        starts[axis] = from[axis] - sizes[axis];
        return keep(graph_.add(Op::slice, {x},
                               {{"starts", starts}, {"sizes", sizes}, {"steps", Dims(from.size(), 1)}}));
      }
      case 2: {
        Dims to;
        for (std::int64_t extent : from)
          if (extent % 2 == 0 && pick(2) == 0)
            to.insert(to.end(), {2, extent / 2});
          else
            to.push_back(extent);
        return keep(reshape(graph_, x, to));
      }
      default: {
        Dims to = from;
        if (to.size() > 1) {
          const std::size_t axis = pick(to.size() - 1);
          to[axis] *= to[axis + 1];
          to.erase(to.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
        }
        return keep(reshape(graph_, x, to));
      }
    }
  }

  void add_concat() {
    const ValueId a = any();
    if (dims(a).size() < 2) return;
    keep(graph_.add(Op::concat, {a, same_shape(a)}, {{"axis", std::int64_t{1}}}));
  }

  void add_reduction() {
    const ValueId x = any();
    if (dims(x).empty()) return;
    const auto last = static_cast<std::int64_t>(dims(x).size()) - 1;
    const Dims axes = dims(x).size() == 4 ? Dims{2, 3} : Dims{last};
    keep(graph_.add(pick(2) == 0 ? Op::reduce_sum : Op::reduce_max, {x},
                    {{"axes", axes}, {"keepdims", static_cast<std::int64_t>(pick(2))}}));
  }

  void add_dense() {
    const ValueId x = any();
    if (dims(x).size() >= 2) keep(dense(graph_, x, 12));
  }

  void add_window() {
    const std::optional<ValueId> x = any_image();
    if (!x) return;
    keep(graph_.add(pick(2) == 0 ? Op::max_pool : Op::avg_pool, {*x},
                    {{"kernel", Dims{3, 3}},
                     {"strides", Dims{1, 1}},
                     {"pads", Dims{1, 1, 1, 1}},
                     {"dilations", Dims{1, 1}}}));
  }

  void add_norm() {
    const ValueId x = any();
    if (dims(x).empty()) return;
    const Attributes axis = {{"axis", static_cast<std::int64_t>(dims(x).size()) - 1}};
    keep(pick(2) == 0 ? graph_.add(Op::softmax, {x}, axis) : graph_.add(Op::layer_norm, {x}, axis));
  }

  std::mt19937 random_;
  Graph graph_;
  std::vector<ValueId> values_;
};

TEST(RandomGraph, PlansComputeWhatGraphsCompute) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(expect_lowers_faithfully(Grower(seed).grow(24)));
  }
}

TEST(RandomGraph, FusionSavesLaunches) {
  LoweringOptions apart;
  apart.fuse = false;
  std::size_t fused = 0;
  std::size_t unfused = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const Graph graph = Grower(seed).grow(24);
    fused += lower(graph).launches.size();
    unfused += lower(graph, apart).launches.size();
  }
  EXPECT_LT(fused * 10, unfused * 7);
}

}  // namespace
}  // namespace sylvite::random_graph_test
