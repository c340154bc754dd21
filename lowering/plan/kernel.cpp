#include "lowering/plan/kernel.h"

#include <array>

#include "base/error.h"
#include "base/hash.h"
#include "frontend/graph/bind_symbols.h"
#include "frontend/graph/copy.h"
#include "frontend/ops/op_table.h"
#include "sylvite/graph_text.h"

namespace sylvite {
namespace {

constexpr std::array<std::string_view, 10> class_names = {
    "pointwise",   "reduction", "scan",      "normalization", "matmul",
    "convolution", "pooling",   "attention", "movement",      "ordering"};

struct AnchorRow {
  OpTrait trait;
  KernelClass kind;
};

/// The heaviest work first: the first row with a node in the body names the kernel's class.
constexpr std::array<AnchorRow, 7> anchor_rows = {{
    {OpTrait::attention, KernelClass::attention},
    {OpTrait::convolution, KernelClass::convolution},
    {OpTrait::matmul, KernelClass::matmul},
    {OpTrait::scan, KernelClass::scan},
    {OpTrait::normalization, KernelClass::normalization},
    {OpTrait::pooling, KernelClass::pooling},
    {OpTrait::reduction, KernelClass::reduction},
}};

constexpr std::string_view weights_line = "weights:";

/// The first node for which `accept` holds, or no_node.
template <typename Accept>
NodeId find_node(const Graph& body, Accept accept) {
  for (std::size_t i = 0; i < body.nodes().size(); ++i)
    if (accept(body.nodes()[i].op)) return static_cast<NodeId>(i);
  return no_node;
}

bool is_plain_movement(Op op) {
  return has_trait(op, OpTrait::movement) || has_trait(op, OpTrait::gather) ||
         has_trait(op, OpTrait::scatter);
}

void find_anchor(Kernel& kernel) {
  kernel.anchor = find_node(kernel.body, [](Op op) { return op == Op::top_k; });
  if (kernel.anchor != no_node) {
    kernel.kind = KernelClass::ordering;
    return;
  }
  for (const AnchorRow& row : anchor_rows) {
    kernel.anchor = find_node(kernel.body, [&](Op op) { return has_trait(op, row.trait); });
    if (kernel.anchor == no_node) continue;
    kernel.kind = row.kind;
    return;
  }
  // Movement other than index maps decides the class even with pointwise work around it.
  kernel.anchor =
      find_node(kernel.body, [](Op op) { return is_plain_movement(op) && !has_trait(op, OpTrait::view); });
  const bool computes =
      find_node(kernel.body, [](Op op) { return has_trait(op, OpTrait::pointwise); }) != no_node;
  if (kernel.anchor == no_node && !computes) kernel.anchor = find_node(kernel.body, is_plain_movement);
  kernel.kind = kernel.anchor == no_node ? KernelClass::pointwise : KernelClass::movement;
}

std::string kernel_text(const Kernel& kernel) {
  std::string text = graph_text(kernel.open ? *kernel.open : kernel.body);
  if (!text.ends_with('\n')) text += '\n';
  text += weights_line;
  for (std::size_t i = 0; i < kernel.input_is_weight.size(); ++i)
    if (kernel.input_is_weight[i]) text += fmt::format(" in{}", i);
  return text + "\n";
}

/// What an open kernel is measured at, and its schedules are chosen for.
SymbolValues hints_of(const SymbolTable& table) {
  SymbolValues hints;
  for (const auto& [name, info] : table) hints[name] = info.hints.empty() ? info.low : info.hints[0];
  return hints;
}

}  // namespace

std::string_view kernel_class_name(KernelClass kind) {
  return class_names.at(static_cast<std::size_t>(kind));
}

Kernel make_kernel(const Graph& body, std::vector<bool> input_is_weight) {
  if (input_is_weight.size() != body.inputs.size()) {
    throw InternalError("make_kernel: {} weight marks for {} inputs", input_is_weight.size(),
                        body.inputs.size());
  }
  Kernel kernel;
  kernel.body = canonical(body);
  kernel.body.name = "kernel";
  if (!kernel.body.symbols.table.empty()) {
    kernel.open = std::make_shared<const Graph>(std::move(kernel.body));
    kernel = at_hints(kernel);
  }
  kernel.input_is_weight = std::move(input_is_weight);
  find_anchor(kernel);
  kernel.text = kernel_text(kernel);
  kernel.id = short_hash(kernel.text);
  return kernel;
}

Kernel parse_kernel(std::string_view text) {
  const std::size_t line = text.rfind(weights_line);
  if (line == std::string_view::npos)
    throw ModelError("not a kernel: no line starts with '{}'", weights_line);
  const Graph body = parse_graph(text.substr(0, line));
  std::vector<bool> marks(body.inputs.size(), false);
  std::string_view rest = text.substr(line + weights_line.size());
  while (!rest.empty()) {
    const std::size_t begin = rest.find_first_not_of(" \n");
    if (begin == std::string_view::npos) break;
    rest.remove_prefix(begin);
    const std::string_view name = rest.substr(0, rest.find_first_of(" \n"));
    rest.remove_prefix(name.size());
    bool known = false;
    for (std::size_t i = 0; i < body.inputs.size(); ++i) {
      if (body.value(body.inputs[i]).name != name) continue;
      marks[i] = true;
      known = true;
    }
    if (!known) throw ModelError("not a kernel: '{}' is marked as a weight but is no input", name);
  }
  return make_kernel(body, std::move(marks));
}

Kernel with_sizes(Kernel open, const SymbolValues& sizes) {
  open.body = bind_symbols(*open.open, sizes);
  open.sizes.clear();
  for (const auto& [name, size] : sizes) open.sizes.push_back(size);
  return open;
}

Kernel at_hints(const Kernel& kernel) {
  return kernel.open ? with_sizes(kernel, hints_of(kernel.open->symbols.table)) : kernel;
}

}  // namespace sylvite
