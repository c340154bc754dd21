#include "frontend/torch/torch_context.h"

#include <algorithm>

#include "frontend/torch/open_sizes.h"

namespace sylvite {
namespace {

using Kind = TorchLiteral::Kind;

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

std::int64_t size_at(const Extent& extent, const SymbolValues& sizes) {
  if (extent.is_known()) return extent.known();
  for (const std::string& symbol : extent.symbols())
    if (!sizes.contains(symbol))
      throw UsageError("the size '{}' has no value; give one for every symbol", symbol);
  return extent.at(sizes);
}

Dims sizes_at(const std::vector<Extent>& extents, const SymbolValues& sizes) {
  Dims dims;
  dims.reserve(extents.size());
  for (const Extent& extent : extents) dims.push_back(size_at(extent, sizes));
  return dims;
}

TorchContext::TorchContext(GraphBuilder& builder, const TorchScope& scope, const TorchNode& node,
                           const TorchImportOptions& options, std::string_view schema)
    : builder_(builder), scope_(scope), node_(node), options_(options), names_(words_of(schema)) {
  given_.resize(names_.size());
  asked_.resize(names_.size());
  std::size_t position = 0;
  for (const TorchArgument& argument : node.arguments) {
    std::size_t at = position;
    if (argument.keyword.empty()) {
      if (at >= names_.size()) throw UnsupportedError("it has more than {} arguments", names_.size());
      ++position;
    } else {
      for (at = 0; at < names_.size() && names_[at] != argument.keyword; ++at) {
      }
      if (at == names_.size()) throw UnsupportedError("the argument '{}' is not known", argument.keyword);
    }
    if (given_[at] != nullptr) throw ModelError("the argument '{}' is given twice", names_[at]);
    given_[at] = &argument.value;
  }
}

const TorchLiteral* TorchContext::find(std::string_view name) {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] != name) continue;
    asked_[i] = true;
    return given_[i] != nullptr && given_[i]->kind != Kind::none ? given_[i] : nullptr;
  }
  return nullptr;
}

const TorchLiteral& TorchContext::need(std::string_view name) {
  if (const TorchLiteral* literal = find(name)) return *literal;
  throw ModelError("the argument '{}' is missing", name);
}

bool TorchContext::has(std::string_view name) {
  return find(name) != nullptr;
}

bool TorchContext::is_tensor(std::string_view name) {
  const TorchLiteral* literal = find(name);
  return literal != nullptr && literal->kind == Kind::value;
}

std::string TorchContext::name_of(std::string_view name) {
  const TorchLiteral* literal = find(name);
  return literal != nullptr && literal->kind == Kind::value ? literal->text : "";
}

bool TorchContext::is_real(std::string_view name) {
  const TorchLiteral* literal = find(name);
  return literal != nullptr && literal->kind == Kind::real;
}

bool TorchContext::is_whole(std::string_view name) {
  const TorchLiteral* literal = find(name);
  return literal != nullptr && literal->kind == Kind::integer;
}

bool TorchContext::is_open_size(std::string_view name) {
  return is_whole(name) && !find(name)->integer.is_known();
}

bool TorchContext::has_open_axis(std::string_view name, const std::vector<std::int64_t>& axes) {
  const auto found = scope_.find(name_of(name));
  if (found == scope_.end()) return false;
  const std::vector<Extent>& shape = found->second.shape;
  return std::ranges::any_of(axes, [&](std::int64_t axis) {
    return axis < std::ssize(shape) && !shape[static_cast<std::size_t>(axis)].is_known();
  });
}

bool TorchContext::is_boolean(std::string_view name) {
  const TorchLiteral* literal = find(name);
  return literal != nullptr && literal->kind == Kind::boolean;
}

Sym TorchContext::symbol(const TorchLiteral& literal) const {
  if (literal.kind == Kind::none) return {};
  if (literal.kind != Kind::value) throw ModelError("a value is expected, and something else is given");
  const auto found = scope_.find(literal.text);
  if (found == scope_.end()) throw ModelError("the value %{} is not defined before", literal.text);
  const TorchValue& value = found->second;
  if (value.is_tuple || value.results.size() != 1)
    throw ModelError("%{} is several values; getitem takes one of them", literal.text);
  if (!value.results[0]) throw UnsupportedError("%{} is no tensor that is computed here", literal.text);
  return value.results[0];
}

Sym TorchContext::tensor(std::string_view name) {
  return symbol(need(name));
}

Sym TorchContext::optional(std::string_view name) {
  const TorchLiteral* literal = find(name);
  return literal == nullptr ? Sym() : symbol(*literal);
}

Dims TorchContext::strides_of(std::string_view name) {
  const TorchLiteral& literal = need(name);
  const auto found = literal.kind == Kind::value ? scope_.find(literal.text) : scope_.end();
  if (found == scope_.end() || !found->second.strides)
    throw UnsupportedError("how %{} lies in memory is not said; its type has no strides", literal.text);
  return *found->second.strides;
}

std::vector<Sym> TorchContext::tensors(std::string_view name) {
  const TorchLiteral& literal = need(name);
  if (literal.kind != Kind::list) throw ModelError("the argument '{}' is no list", name);
  std::vector<Sym> result;
  result.reserve(literal.items.size());
  for (const TorchLiteral& item : literal.items) result.push_back(symbol(item));
  return result;
}

std::int64_t TorchContext::number(const TorchLiteral& literal, std::string_view name) const {
  if (literal.kind == Kind::boolean) return literal.boolean ? 1 : 0;
  if (literal.kind != Kind::integer) throw ModelError("the argument '{}' is no integer", name);
  return size_at(literal.integer, options_.sizes);
}

double TorchContext::any_number(const TorchLiteral& literal, std::string_view name) const {
  if (literal.kind == Kind::value) {  // computed from sizes
    const Sym value = symbol(literal);
    if (value.rank() == 0 && value.is_constant()) return value.constant().as_double(0);
  }
  return literal.kind == Kind::real ? literal.real : static_cast<double>(number(literal, name));
}

std::int64_t TorchContext::integer(std::string_view name, std::optional<std::int64_t> fallback) {
  const TorchLiteral* literal = find(name);
  if (literal == nullptr && fallback) return *fallback;
  return number(need(name), name);
}

double TorchContext::real(std::string_view name, std::optional<double> fallback) {
  const TorchLiteral* literal = find(name);
  if (literal == nullptr && fallback) return *fallback;
  return any_number(need(name), name);
}

bool TorchContext::flag(std::string_view name, std::optional<bool> fallback) {
  const TorchLiteral* literal = find(name);
  if (literal == nullptr && fallback) return *fallback;
  return number(need(name), name) != 0;
}

std::string TorchContext::string(std::string_view name, std::string_view fallback) {
  const TorchLiteral* literal = find(name);
  if (literal == nullptr) return std::string(fallback);
  if (literal->kind != Kind::string) throw ModelError("the argument '{}' is no string", name);
  return literal->text;
}

Dims TorchContext::integers(std::string_view name, const std::optional<Dims>& fallback) {
  const TorchLiteral* literal = find(name);
  if (literal == nullptr && fallback) return *fallback;
  const TorchLiteral& list = need(name);
  if (list.kind != Kind::list) return {number(list, name)};
  Dims result;
  for (const TorchLiteral& item : list.items) result.push_back(number(item, name));
  return result;
}

std::vector<double> TorchContext::reals(std::string_view name) {
  const TorchLiteral& list = need(name);
  if (list.kind != Kind::list) throw ModelError("the argument '{}' is no list", name);
  std::vector<double> result;
  result.reserve(list.items.size());
  for (const TorchLiteral& item : list.items) result.push_back(any_number(item, name));
  return result;
}

DType TorchContext::dtype(std::string_view name, DType fallback) {
  const TorchLiteral* literal = find(name);
  if (literal == nullptr) return fallback;
  if (literal->kind != Kind::dtype) throw ModelError("the argument '{}' is no element type", name);
  return parse_dtype(literal->text);
}

Sym TorchContext::operand(std::string_view name, DType to) {
  const TorchLiteral& literal = need(name);
  if (literal.kind == Kind::value) return cast(symbol(literal), to);
  if (literal.kind == Kind::real) return builder_.scalar(to, literal.real);
  if (is_open_size(name)) return size_scalar(builder_, to, static_cast<double>(number(literal, name)), true);
  Tensor tensor(to, {});
  tensor.set_int64(0, number(literal, name));
  return builder_.constant(tensor);
}

DType TorchContext::result_dtype(std::size_t i) const {
  const std::string& name = node_.types.at(i).dtype;
  if (name.starts_with('c')) throw UnsupportedError("the element type {} is not served", name);
  return parse_dtype(name);
}

Dims TorchContext::result_dims(std::size_t i) const {
  return sizes_at(node_.types.at(i).shape, options_.sizes);
}

Dims TorchContext::result_dims_of_rank(std::size_t rank, std::size_t i) const {
  Dims dims = result_dims(i);
  if (dims.size() != rank) throw ModelError("the result has {} axes, expected {}", dims.size(), rank);
  return dims;
}

void TorchContext::check_no_surplus() const {
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (given_[i] != nullptr && given_[i]->kind != Kind::none && !asked_[i])
      throw UnsupportedError("the argument '{}' is not served", names_[i]);
}

}  // namespace sylvite
