#pragma once
// How many blocks a launch has, and how that follows from extents: libraries whose sizes are ranges compute it at each run.

#include <cstdint>
#include <vector>

#include "base/rounding.h"

namespace sylvite {

/// A step of a computation that works on a stack of numbers.
struct BlockStep {
  enum class Kind : std::uint8_t {
    extent,   ///< puts a number there
    product,  ///< of the last two, which it replaces
    parts     ///< of `number` that the last is cut into, rounded up
  };
  Kind kind = Kind::extent;
  std::int64_t number = 1;
  bool operator==(const BlockStep&) const = default;
};

class BlockCount {
 public:
  /// An extent, or a product of several.
  explicit BlockCount(std::int64_t extent) : value_(extent), steps_{{BlockStep::Kind::extent, extent}} {}

  [[nodiscard]] std::int64_t value() const { return value_; }
  [[nodiscard]] const std::vector<BlockStep>& steps() const { return steps_; }

  /// How many parts of `each` there are; the last may be smaller.
  [[nodiscard]] BlockCount in_parts_of(std::int64_t each) const {
    BlockCount result = *this;
    result.value_ = ceil_div(value_, each);
    result.steps_.push_back({BlockStep::Kind::parts, each});
    return result;
  }
  [[nodiscard]] BlockCount operator*(const BlockCount& other) const {
    BlockCount result = *this;
    result.value_ *= other.value_;
    result.steps_.insert(result.steps_.end(), other.steps_.begin(), other.steps_.end());
    result.steps_.push_back({BlockStep::Kind::product, 0});
    return result;
  }
  [[nodiscard]] BlockCount operator*(std::int64_t other) const { return *this * BlockCount(other); }

 private:
  std::int64_t value_;
  std::vector<BlockStep> steps_;
};

}  // namespace sylvite
