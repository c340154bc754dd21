#include "frontend/torch/operators_page.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "frontend/torch/torch_complex.h"
#include "frontend/torch/torch_ops.h"

namespace sylvite {
namespace {

constexpr const char* head =
    "# PyTorch operations\n\n"
    "Made from the tables of `frontend/torch/`; a test keeps it up to date. A captured graph\n"
    "([formats.md](formats.md#captured-pytorch-graphs)) may hold these operations, with the arguments that "
    "are named. Each\n"
    "becomes core operations ([operations.md](operations.md)). An argument that has a value which is not "
    "served is refused\n"
    "by name, and so is every other operation: the Python package then lets torch run that part of the "
    "graph.\n\n"
    "- The text says which type each result has. An import that computes another type is an error.\n"
    "- Operands of several element types are converted as torch does. Sums over f16 and bf16 are made in "
    "f32.\n"
    "- Results whose number depends on data (`nonzero`, masks as indices) are not served.\n"
    "- Complex numbers may be inside of a graph, not its inputs or results: each is a real value for its "
    "real parts and one\n"
    "  for its imaginary parts. The operations are in a table of their own below.\n"
    "- Random numbers are functions of a seed and of places (`sylvite.random_uniform` and its like), which "
    "the Python package\n"
    "  makes of torch's draws.\n"
    "- `empty` and its like are zeros.\n"
    "- `getitem(value, i)` takes one of several results, and `aten.copy_.default(input, value)` writes an "
    "input at the end.\n"
    "- `scan('body', [states], [scanned], [rest])` is a loop, of which another graph of the text is a "
    "trip.\n"
    "- `sylvite.attention` is `scaled_dot_product_attention` as one operation.\n\n"
    "| operation | overloads | arguments |\n|---|---|---|\n";

/// aten.add.Tensor -> aten.add and Tensor; a name without an overload has none.
std::pair<std::string, std::string> parts_of(std::string_view name) {
  const std::size_t first = name.find('.');
  const std::size_t second = name.find('.', first + 1);
  if (second == std::string_view::npos) return {std::string(name), ""};
  return {std::string(name.substr(0, second)), std::string(name.substr(second + 1))};
}

}  // namespace

std::string torch_operators_markdown() {
  std::map<std::pair<std::string, std::string_view>, std::vector<std::string>> overloads;
  for (const TorchOp& row : torch_ops()) {
    const auto [operation, overload] = parts_of(row.name);
    if (!overload.empty()) overloads[{operation, row.schema}].push_back(overload);
  }
  std::string page = head;
  for (auto& [key, names] : overloads) {
    std::ranges::sort(names);
    page += fmt::format("| `{}` | {} | {} |\n", key.first, fmt::join(names, ", "), key.second);
  }
  page += "\n| of complex numbers | overloads |\n|---|---|\n";
  std::map<std::string, std::vector<std::string>> complex;
  for (const std::string_view name : complex_op_names()) {
    const auto [operation, overload] = parts_of(name);
    complex[operation].push_back(overload);
  }
  for (const auto& [operation, names] : complex)
    page += fmt::format("| `{}` | {} |\n", operation, fmt::join(names, ", "));
  return page;
}

}  // namespace sylvite
