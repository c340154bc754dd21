#pragma once
// The sizes that one dimension of a model's inputs may have.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sylvite {

/// Multiples of `multiple` from `low` to `high`. A number is the range of that number alone.
struct SizeRange {
  static constexpr std::int64_t open = INT64_MAX;  ///< as `high`: a limit that goes by the dimension's name

  std::int64_t low = 1;
  std::int64_t high = open;
  std::int64_t multiple = 1;
  std::vector<std::int64_t> hints;  ///< sizes to be fast at, first the one that counts most; may be empty

  SizeRange() = default;
  SizeRange(std::int64_t number)  // NOLINT(google-explicit-constructor): {{"batch", 4}} gives sizes
      : low(number), high(number), hints({number}) {}
  SizeRange(std::int64_t low, std::int64_t high, std::vector<std::int64_t> hints = {},
            std::int64_t multiple = 1)
      : low(low), high(high), multiple(multiple), hints(std::move(hints)) {}

  [[nodiscard]] bool is_fixed() const { return low == high; }
  [[nodiscard]] bool contains(std::int64_t size) const {
    return size >= low && size <= high && size % multiple == 0;
  }
  /// As --dims has it: 4, 1..64, 1.., 32..1024%32, 1..512@128+384.
  [[nodiscard]] std::string to_string() const;
  bool operator==(const SizeRange&) const = default;
};

}  // namespace sylvite
