#include "python/native/captured_ports.h"

#include <fmt/format.h>

namespace sylvite::python {
namespace {

/// Calls `visit` with a reference to each number.
template <typename Visit>
void for_each_number(CapturedPorts& ports, const Visit& visit) {
  for (CapturedRead& read : ports.reads)
    for (Dims* dims : {&read.dims, &read.strides, &read.stored})
      for (std::int64_t& number : *dims) visit(number);
  for (TorchOutput& output : ports.outputs) {
    for (Extent& extent : output.tensor.type.shape) {
      std::int64_t number = extent.known();
      visit(number);
      extent = number;
    }
    for (std::int64_t& number : output.tensor.strides) visit(number);
    visit(output.size);
  }
}

/// All but the numbers.
std::string structure_of(const CapturedPorts& ports) {
  std::string text;
  for (const CapturedRead& read : ports.reads)
    text += fmt::format("{} {} {} {}\n", read.input, static_cast<int>(read.dtype), read.dims.size(),
                        read.stored.size());
  for (const TorchOutput& output : ports.outputs)
    text += fmt::format("{} {} {} {} {}\n", static_cast<int>(output.kind),
                        static_cast<int>(output.tensor.type.dtype), output.tensor.type.shape.size(),
                        output.graph_output, output.input);
  return text;
}

}  // namespace

std::optional<FittedNumbers> OpenPorts::fit() const {
  std::vector<Dims> points;
  std::vector<Dims> at_points;
  for (const auto& [sizes, values] : numbers_) {
    points.push_back(sizes);
    at_points.push_back(values);
  }
  ExtentFit fit(symbols_, points);
  if (!fit.is_determined()) return std::nullopt;
  for (const Extent& each : said_) fit.suggest(each);
  std::optional<std::vector<Extent>> found = fit.of_each(at_points);
  return found ? std::optional(FittedNumbers{*std::move(found), fit.followers()}) : std::nullopt;
}

void OpenPorts::learn(const Dims& sizes, const CapturedPorts& ports) {
  constexpr std::size_t most = 32;
  if (differ_ || numbers_.size() == most) return;
  if (numbers_.empty()) {
    first_ = ports;
    structure_ = structure_of(ports);
  }
  differ_ = structure_of(ports) != structure_;
  if (differ_) return;
  CapturedPorts copy = ports;
  std::vector<std::int64_t> numbers;
  for_each_number(copy, [&](std::int64_t number) { numbers.push_back(number); });
  if (numbers_.emplace(sizes, std::move(numbers)).second) expressions_.reset();
}

std::optional<CapturedPorts> OpenPorts::at(const Dims& sizes) {
  if (differ_ || numbers_.empty()) return std::nullopt;
  if (!expressions_) expressions_ = fit();
  const std::optional<FittedNumbers>& found = *expressions_;
  if (!found) return std::nullopt;
  SymbolValues values;
  for (std::size_t i = 0; i < symbols_.size(); ++i) values[symbols_[i].name] = sizes.at(i);
  if (!hold_at(found->followers, values)) return std::nullopt;
  CapturedPorts ports = first_;
  auto next = found->numbers.begin();
  for_each_number(ports, [&](std::int64_t& number) { number = (next++)->at(values); });
  return ports;
}

}  // namespace sylvite::python
