#include "runtime/given_inputs.h"

#include <cstdint>

#include "base/error.h"
#include "frontend/values/copy_of.h"

namespace sylvite {
namespace {

bool is_readable(const Tensor& tensor) {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data());
  return address != 0 && address % dtype_size(tensor.dtype()) == 0;
}

}  // namespace

GivenInputs::GivenInputs(const std::vector<Port>& ports, const std::vector<TensorType>& types)
    : ports_(&ports) {
  dims_.reserve(types.size());
  for (const TensorType& type : types) dims_.push_back(type.dims());
}

void GivenInputs::check(const std::vector<Tensor>& given) const {
  if (given.size() != dims_.size())
    throw InputError("{} inputs given, the model takes {}", given.size(), dims_.size());
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    if (given[i].dtype() == (*ports_)[i].type.dtype && given[i].dims() == dims_[i]) continue;
    throw InputError("input {} '{}': got {}, expected {}", i, (*ports_)[i].name, given[i].type().to_string(),
                     make_type((*ports_)[i].type.dtype, dims_[i]).to_string());
  }
}

void GivenInputs::take(const std::vector<Tensor>& given) {
  check(given);
  copied_.clear();
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!is_readable(given[i])) copied_.emplace(i, copy_of(given[i]));
  given_ = &given;
}

const Tensor& GivenInputs::at(std::size_t number) const {
  if (copied_.empty()) return given_->at(number);
  const auto found = copied_.find(number);
  return found == copied_.end() ? given_->at(number) : found->second;
}

void GivenInputs::release() {
  given_ = nullptr;
  copied_.clear();
}

}  // namespace sylvite
