#include "frontend/graph/made_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace sylvite {
namespace {

thread_local MadeWeights::Import* current = nullptr;

/// What is smaller costs less to make than to look up.
constexpr std::int64_t least_bytes = 1024;

bool is_small(const std::vector<Tensor>& sources) {
  return std::ranges::none_of(sources, [](const Tensor& each) { return each.byte_size() >= least_bytes; });
}

}  // namespace

MadeWeights::Import::Import(MadeWeights* weights)
    : weights_(weights), before_(std::exchange(current, weights == nullptr ? nullptr : this)) {}

MadeWeights::Import::~Import() {
  current = before_;
}

void MadeWeights::Import::add_source(Origin& origin, const Tensor& source) const {
  const auto found = origins_.find(source.identity());
  if (found == origins_.end()) {
    origin.recipe += fmt::format("{}", source.identity());
    origin.roots.push_back(source);
  } else {
    origin.recipe += found->second.recipe;
    origin.roots.insert(origin.roots.end(), found->second.roots.begin(), found->second.roots.end());
  }
  origin.recipe += fmt::format(" {}[{}],", dtype_name(source.dtype()), fmt::join(source.dims(), ","));
}

Tensor MadeWeights::Import::find_or_make(const std::string& recipe, const std::vector<Tensor>& sources,
                                         const std::function<Tensor()>& make) {
  Origin origin{recipe + "(", {}, {}};
  for (const Tensor& source : sources) add_source(origin, source);
  origin.recipe += ')';
  std::optional<Tensor> made = weights_->find(origin.recipe);
  if (!made) made = make();
  origin.made = *made;
  origins_.insert_or_assign(made->identity(), std::move(origin));
  return *std::move(made);
}

void MadeWeights::Import::keep(const std::vector<Tensor>& wanted) {
  constexpr std::int64_t imports_kept = 2;  // what the last ones did not have was made of sizes
  if (weights_ == nullptr) return;
  const std::scoped_lock lock(weights_->mutex_);
  const std::int64_t number = ++weights_->imports_;
  for (const Tensor& tensor : wanted)
    if (const auto found = origins_.find(tensor.identity()); found != origins_.end())
      weights_->kept_[found->second.recipe] = {found->second.made, found->second.roots, number};
  std::erase_if(weights_->kept_,
                [&](const auto& each) { return each.second.import < number - imports_kept; });
}

std::optional<Tensor> MadeWeights::find(const std::string& recipe) {
  const std::scoped_lock lock(mutex_);
  const auto found = kept_.find(recipe);
  return found == kept_.end() ? std::nullopt : std::optional(found->second.made);
}

Tensor made_of(const std::string& recipe, const std::vector<Tensor>& sources,
               const std::function<Tensor()>& make) {
  return current == nullptr || is_small(sources) ? make() : current->find_or_make(recipe, sources, make);
}

}  // namespace sylvite
