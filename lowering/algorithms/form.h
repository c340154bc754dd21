#pragma once
// Names and numbers of an algorithm's formulations. No Halide involved.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace sylvite {

/// Which formulation of the algorithm, and its numbers (tile extents that shape the data). A value; part of a
/// Candidate. Text: "generic" or "matmul_panels{mr=14,nr=32}".
struct Form {
  std::string name = "generic";
  std::map<std::string, std::int64_t> parameters;

  [[nodiscard]] std::int64_t at(const std::string& parameter) const;  ///< throws InternalError when absent
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] static Form parse(std::string_view text);  ///< throws ModelError
  bool operator==(const Form&) const = default;
};

}  // namespace sylvite
