#include "frontend/ops/operations_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "frontend/ops/absent_attributes.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

constexpr const char* head =
    "# Core operations\n\n"
    "Made from the op table, `frontend/ops/op_table.cpp`; a test keeps it up to date. Every imported "
    "operator becomes a\n"
    "few of these. Shapes are outermost first. Inputs marked `?` may be absent. Attributes without a "
    "default, which stands\n"
    "in brackets, are required.\n\n"
    "- Pointwise operations broadcast as numpy does. Integers wrap around.\n"
    "- Arithmetic takes operands of one element type, or bf16 and f32, which gives bf16. Beside data in bf16 "
    "the biases,\n"
    "  scales and other parameters of conv, layer_norm, rms_norm and batch_norm may be f32.\n"
    "- Element types that are only stored (f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0 f4e2m1 i4 u4 i2 u2; "
    "one byte each\n"
    "  in memory) can be moved, compared for equality and cast: to nearest even, f8e8m0 up; what is too "
    "large becomes\n"
    "  infinity, NaN or the largest number as the type has them; integers keep their low bits.\n"
    "- Type rules give dense row-major outputs; only `lowering/` assigns other layouts.\n\n"
    "| operation | inputs | attributes | meaning |\n|---|---|---|---|\n";

std::string default_text(const Attribute& value) {
  return std::visit(
      [](const auto& each) {
        using T = std::decay_t<decltype(each)>;
        if constexpr (std::is_same_v<T, std::vector<Extent>>)
          return fmt::format(" ({})", Shape(each.begin(), each.end()).to_string());
        else if constexpr (std::is_same_v<T, GraphAttribute>)
          return std::string();  // none has a default
        else
          return fmt::format(" ({})", each);
      },
      value);
}

std::string attribute_text(const AttributeInfo& attribute) {
  const std::string fallback = may_be_absent(attribute) ? " (absent)"
                               : attribute.fallback     ? default_text(*attribute.fallback)
                                                        : "";
  return fmt::format("`{}`{}: {}", attribute.name, fallback, attribute.help);
}

/// A bar would end the cell.
std::string cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2))
    text.insert(at, "\\");
  return text;
}

}  // namespace

std::string operations_markdown() {
  std::string page = head;
  for (const OpInfo& row : op_table()) {
    std::vector<std::string> attributes;
    attributes.reserve(row.attributes.size());
    for (const AttributeInfo& attribute : row.attributes) attributes.push_back(attribute_text(attribute));
    page += fmt::format("| {} | {} | {} | {} |\n", row.name, row.inputs,
                        cell(fmt::format("{}", fmt::join(attributes, "; "))), cell(std::string(row.help)));
  }
  return page;
}

}  // namespace sylvite
