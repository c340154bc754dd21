#include "lowering/algorithms/form.h"

#include <charconv>

#include "base/error.h"

namespace sylvite {
namespace {

std::int64_t parse_number(std::string_view text, std::string_view whole) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw ModelError("form '{}': '{}' is not a number", whole, text);
  return number;
}

}  // namespace

std::int64_t Form::at(const std::string& parameter) const {
  const auto found = parameters.find(parameter);
  if (found == parameters.end()) throw InternalError("form '{}' has no parameter '{}'", name, parameter);
  return found->second;
}

std::string Form::to_string() const {
  if (parameters.empty()) return name;
  std::string text;
  for (const auto& [key, number] : parameters)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, number);
  return name + "{" + text + "}";
}

Form Form::parse(std::string_view text) {
  Form form;
  const std::size_t open = text.find('{');
  form.name = text.substr(0, open);
  if (form.name.empty()) throw ModelError("a form needs a name, got '{}'", text);
  if (open == std::string_view::npos) return form;
  if (text.back() != '}') throw ModelError("form '{}' lacks its closing brace", text);
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0)
      throw ModelError("form '{}': expected name=number, got '{}'", text, item);
    form.parameters[std::string(item.substr(0, equals))] = parse_number(item.substr(equals + 1), text);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return form;
}

}  // namespace sylvite
