#include "runtime/export/box_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/export/export_sources.h"

namespace sylvite {
namespace {

std::vector<std::string> words(const Sizes& sizes) {
  std::vector<std::string> result;
  result.reserve(sizes.size());
  for (const std::int64_t size : sizes) result.push_back(std::to_string(size));
  return result;
}

std::vector<std::string> port_dims(TableNumbers& numbers, const std::vector<std::vector<Extent>>& ports) {
  std::vector<std::string> rows;
  for (const std::vector<Extent>& dims : ports)
    if (!dims.empty()) rows.push_back(joined(numbers.of(dims)));
  return rows;
}

}  // namespace

TableNumbers::TableNumbers(const std::vector<SizeSymbol>& sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) names_[sizes[i].name] = fmt::format("sizes[{}]", i);
}

std::string TableNumbers::of(const Extent& value) {
  if (value.is_known() && value.known() >= 0) return std::to_string(value.known());
  const auto [found, is_new] = known_.try_emplace(value, expressions_.size());
  if (is_new) expressions_.push_back(expression(value));
  return fmt::format("-{}", found->second + 1);
}

std::vector<std::string> TableNumbers::of(const std::vector<Extent>& values) {
  std::vector<std::string> result;
  result.reserve(values.size());
  for (const Extent& value : values) result.push_back(of(value));
  return result;
}

std::string TableNumbers::function(const std::string& name) const {
  if (expressions_.empty()) return "";
  std::string text = fmt::format("static void {}(const int64_t* sizes, int64_t* values) {{\n", name);
  for (std::size_t i = 0; i < expressions_.size(); ++i)
    text += fmt::format("  values[{}] = {};\n", i, expressions_[i]);
  return text + "}\n\n";
}

std::string TableNumbers::expression(const Extent& value) const {
  std::vector<std::string> terms;
  for (const Extent::Term& term : value.terms()) {
    std::vector<std::string> factors;
    if (term.coefficient != 1) factors.push_back(fmt::format("INT64_C({})", term.coefficient));
    for (const ExtentFactor& factor : term.factors) factors.push_back(factor_text(factor));
    terms.push_back(fmt::format("{}", fmt::join(factors, " * ")));
  }
  if (value.constant() != 0 || terms.empty()) terms.push_back(fmt::format("INT64_C({})", value.constant()));
  return fmt::format("{}", fmt::join(terms, " + "));
}

std::string TableNumbers::factor_text(const ExtentFactor& factor) const {
  switch (factor.kind) {
    case ExtentFactor::Kind::symbol:
      return names_.at(factor.name);
    case ExtentFactor::Kind::quotient:
      return fmt::format("sylvite_quotient({}, INT64_C({}))", expression(factor.argument), factor.divisor);
    default:
      return fmt::format("sylvite_positive({})", expression(factor.argument));
  }
}

BoxTables::BoxTables(const ExportedProgram& program, TableNumbers& numbers, std::size_t number)
    : numbers_(numbers), number_(number), condition_count_(program.conditions.size()) {
  std::vector<std::string> conditions;
  conditions.reserve(condition_count_);
  for (const ExportedCondition& each : program.conditions)
    conditions.push_back(fmt::format("{{{}, {}, {}}}", numbers.of(each.number), each.low, each.high));
  std::vector<std::string> grown;
  if (program.room) {
    added_ = numbers.of(program.room->added);
    for (const ExportedRoom::Input& input : program.room->inputs)
      grown.push_back(fmt::format("{{{}, {}, {}, {}}}", input.number, input.axis, input.element_bytes,
                                  numbers.of(input.beyond)));
  }
  grown_count_ = grown.size();
  text_ = array_of("const int64_t", name("low"), words(program.box.low)) +
          array_of("const int64_t", name("high"), words(program.box.high)) +
          array_of("const int64_t", name("input_dims"), port_dims(numbers, program.inputs)) +
          array_of("const int64_t", name("output_dims"), port_dims(numbers, program.outputs)) +
          array_of("const struct sylvite_condition", name("conditions"), conditions) +
          array_of("const struct sylvite_grown", name("grown"), grown);
}

std::string BoxTables::name(const std::string& table) const {
  return fmt::format("{}_{}", table, number_);
}

std::string BoxTables::row() const {
  return fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}", name("low"), name("high"),
                     numbers_.count() > 0 ? name("numbers") : "0", name("conditions"), name("input_dims"),
                     name("output_dims"), name("grown"), added_, condition_count_, grown_count_);
}

}  // namespace sylvite
