#include "schedules/cuda/extents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "lowering/plan/run_extents.h"

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

bool has_open_images(const Kernel& kernel) {
  if (!kernel.open || kernel.anchor == no_node) return false;
  const Node& node = kernel.open->node(open_anchor(kernel));
  const auto is_open = [&](ValueId id) {
    const Shape& shape = kernel.open->type(id).shape;
    return !std::all_of(shape.begin() + std::min<std::ptrdiff_t>(2, std::ssize(shape)), shape.end(),
                        [](const Extent& extent) { return extent.is_known(); });
  };
  return is_open(node.inputs.at(0)) || is_open(node.outputs.at(0));
}

std::string entry_name(const std::string& name, bool is_open, const std::vector<std::int64_t>& extents) {
  return is_open ? name : fmt::format("{}_{}", name, fmt::join(extents, "x"));
}

}  // namespace sylvite
