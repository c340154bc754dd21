#include <set>

#include "frontend/torch/torch_import.h"
#include "frontend/torch/torch_text.h"

namespace sylvite {
namespace {

void collect(const std::vector<Extent>& extents, std::set<std::string>& names) {
  for (const Extent& extent : extents)
    for (const std::string& symbol : extent.symbols()) names.insert(symbol);
}

void collect(const TorchLiteral& literal, std::set<std::string>& names) {
  if (literal.kind == TorchLiteral::Kind::integer) collect({literal.integer}, names);
  for (const TorchLiteral& item : literal.items) collect(item, names);
}

void collect(const TorchText& read, std::set<std::string>& names) {
  for (const TorchTextInput& input : read.inputs) {
    collect(input.type.shape, names);
    collect(input.type.strides, names);
  }
  for (const TorchNode& node : read.nodes) {
    for (const TorchType& type : node.types) collect(type.shape, names);
    for (const TorchArgument& argument : node.arguments) collect(argument.value, names);
  }
  for (const TorchReturned& returned : read.outputs) {
    collect(returned.strides, names);
    collect(returned.value, names);
  }
  for (const TorchText& body : read.bodies) collect(body, names);
}

}  // namespace

std::vector<std::string> torch_symbols(std::string_view text) {
  std::set<std::string> names;
  collect(read_torch_text(text), names);
  return {names.begin(), names.end()};
}

}  // namespace sylvite
