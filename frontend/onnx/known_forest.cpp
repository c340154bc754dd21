#include "frontend/onnx/known_forest.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sylvite {

KnownForest::KnownForest(const Forest& forest, const std::vector<LeafWeight>& weights, std::int64_t targets,
                         Aggregate aggregate, DType dtype)
    : targets_(targets), aggregate_(aggregate), dtype_(dtype) {
  if (targets < 1) throw ModelError("there are {} targets, expected at least 1", targets);
  Forest settled = forest;
  settle_forest(settled);
  for (std::int64_t i = 0; i < settled.inner(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (settled.feature[at] < 0) throw ModelError("a node looks at feature {}", settled.feature[at]);
    features_ = std::max(features_, settled.feature[at] + 1);
    nodes_.push_back({settled.splits.as_double(i), settled.next_true[at], settled.next_false[at],
                      settled.feature[at], settled.mode[at],
                      !settled.tracks.empty() && settled.tracks[at] != 0});
  }
  sets_ = std::move(settled.sets);
  roots_ = std::move(settled.roots);
  table_ = leaf_table(weights, settled.leaves, targets, aggregate);
  if (dtype == DType::f32)
    for (double& weight : table_) weight = static_cast<float>(weight);
}

/// Splits are compared as numbers of the type that x has.
template <typename T>
bool KnownForest::holds(std::int64_t at, T value) const {
  const Node& node = nodes_[static_cast<std::size_t>(at)];
  const T split = static_cast<T>(node.split);
  if (node.tracks && std::isnan(value)) return true;
  switch (node.mode) {
    case less_or_equal:
      return value <= split;
    case less:
      return value < split;
    case greater_or_equal:
      return value >= split;
    case greater:
      return value > split;
    case equal:
      return value == split;
    default:
      break;
  }
  if (static_cast<std::size_t>(at) >= sets_.size()) return false;
  return std::ranges::any_of(sets_[static_cast<std::size_t>(at)],
                             [&](double item) { return static_cast<T>(item) == value; });
}

template <typename T>
std::int64_t KnownForest::leaf(std::int64_t root, const T* row) const {
  const auto inner = static_cast<std::int64_t>(nodes_.size());
  std::int64_t at = root;
  while (at < inner) {
    const Node& node = nodes_[static_cast<std::size_t>(at)];
    at = holds(at, row[node.feature]) ? node.next_true : node.next_false;
  }
  return at - inner;
}

template <typename T>
void KnownForest::add_up(const T* x, std::int64_t rows, std::int64_t features, Tensor& result) const {
  const double nothing = nothing_of(aggregate_);
  std::vector<double> sums(static_cast<std::size_t>(targets_));
  for (std::int64_t row = 0; row < rows; ++row) {
    std::ranges::fill(sums, nothing);
    for (const std::int64_t root : roots_) {
      const double* weights = table_.data() + leaf(root, x + row * features) * targets_;
      for (std::size_t target = 0; target < sums.size(); ++target) {
        double& sum = sums[target];
        sum = aggregate_ == Aggregate::minimum   ? std::min(sum, weights[target])
              : aggregate_ == Aggregate::maximum ? std::max(sum, weights[target])
                                                 : sum + weights[target];
      }
    }
    for (std::int64_t target = 0; target < targets_; ++target) {
      double sum = sums[static_cast<std::size_t>(target)];
      if (sum == nothing) sum = 0;
      if (aggregate_ == Aggregate::average) sum /= static_cast<double>(roots_.size());
      result.set_double(row * targets_ + target, sum);
    }
  }
}

Tensor KnownForest::scores(const Tensor& x) const {
  const std::int64_t rows = x.dims().at(0), features = x.dims().at(1);
  if (features < features_)
    throw ModelError("a node looks at feature {}, the input has {}", features_ - 1, features);
  Tensor result(dtype_, {rows, targets_});
  if (x.dtype() == DType::f64)
    add_up(x.view<double>().data(), rows, features, result);
  else
    add_up(x.view<float>().data(), rows, features, result);
  return result;
}

}  // namespace sylvite
