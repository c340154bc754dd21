#include "schedules/cuda/extents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace sylvite {

std::string extent_members(const std::vector<CudaExtent>& extents) {
  std::string text;
  for (const CudaExtent& extent : extents)
    if (extent.is_open) text += fmt::format("  long long open_{};\n", extent.name);
  return text;
}

std::string extents_text(const std::vector<CudaExtent>& extents) {
  std::string members, values;
  for (const CudaExtent& extent : extents) {
    if (!extent.is_open) {
      members += fmt::format("  static constexpr int {} = {};\n", extent.name, extent.value);
      continue;
    }
    members += fmt::format("  int {};\n", extent.name);
    values += fmt::format("{}(int)a.open_{}", values.empty() ? "" : ", ", extent.name);
  }
  return fmt::format(
      "struct Extents {{\n{}}};\nDEVICE Extents extents_of(const Arguments& a) {{\n  return {{{}}};\n}}\n",
      members, values);
}

std::vector<std::int64_t> extent_numbers(const std::vector<CudaExtent>& extents) {
  std::vector<std::int64_t> numbers;
  for (const CudaExtent& extent : extents)
    if (extent.is_open) numbers.push_back(extent.value);
  return numbers;
}

std::string entry_name(const std::string& name, bool is_open, const std::vector<std::int64_t>& extents) {
  return is_open ? name : fmt::format("{}_{}", name, fmt::join(extents, "x"));
}

}  // namespace sylvite
