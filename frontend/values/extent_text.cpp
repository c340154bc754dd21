// The text form of extents, both ways.

#include <fmt/format.h>

#include <cctype>
#include <charconv>

#include "base/error.h"
#include "sylvite/extent.h"

namespace sylvite {
namespace {

using Kind = ExtentFactor::Kind;

bool starts_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool continues_name(char c) {
  return starts_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.';
}

bool is_identifier(std::string_view name) {
  for (const char c : name)
    if (!continues_name(c)) return false;
  const bool is_function =
      name == "floor" || name == "ceil" || name == "mod" || name == "min" || name == "max";
  return starts_name(name[0]) && !is_function;
}

std::string quoted_name(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

std::string factor_text(const ExtentFactor& factor) {
  switch (factor.kind) {
    case Kind::symbol:
      return is_identifier(factor.name) ? factor.name : quoted_name(factor.name);
    case Kind::quotient: {
      const std::string argument = factor.argument.to_string();
      const bool is_plain = factor.argument.terms().size() == 1 && factor.argument.constant() == 0 &&
                            factor.argument.terms()[0].coefficient > 0;
      return fmt::format("floor({}/{})", is_plain ? argument : "(" + argument + ")", factor.divisor);
    }
    case Kind::positive:
      return fmt::format("max({},0)", factor.argument.to_string());
  }
  throw InternalError("a factor of an extent is of no kind");
}

/// Recursive descent over: sum = product (+|- product)*, product = unary (* unary | / number)*.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Extent all() {
    const Extent result = sum();
    if (position_ != text_.size()) fail("there is text behind it");
    return result;
  }

 private:
  static constexpr int deepest = 50;  // what people and exporters write has a depth of two or three

  [[noreturn]] void fail(std::string_view why) const {
    throw ModelError("'{}' is no extent: {} at character {}", text_.substr(0, 80), why, position_ + 1);
  }

  char peek() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])) != 0)
      ++position_;
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++position_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("a '{}' is missing", c));
  }

  Extent sum() {
    if (++depth_ > deepest) fail("it is nested too deeply");
    Extent result = product();
    for (;;)
      if (accept('+'))
        result += product();
      else if (accept('-'))
        result -= product();
      else
        break;
    --depth_;
    return result;
  }

  Extent product() {
    Extent result = unary();
    while (accept('*')) result *= unary();
    return result;
  }

  Extent unary() {
    if (accept('-')) return product() * -1;
    if (accept('(')) {
      const Extent result = sum();
      expect(')');
      return result;
    }
    const char c = peek();
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) return number();
    if (c == '"') return Extent::symbol(quoted_name());
    if (!starts_name(c)) fail("a name or a number is missing");
    const std::size_t begin = position_;
    while (position_ < text_.size() && continues_name(text_[position_])) ++position_;
    const std::string name(text_.substr(begin, position_ - begin));
    return peek() == '(' ? function(name) : Extent::symbol(name);
  }

  std::int64_t number() {
    peek();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + position_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("a number that fits 64 bits is missing");
    position_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  std::string quoted_name() {
    expect('"');
    std::string name;
    while (position_ < text_.size() && text_[position_] != '"') {
      if (text_[position_] == '\\') ++position_;
      if (position_ < text_.size()) name += text_[position_++];
    }
    expect('"');
    if (name.empty()) fail("a name is empty");
    return name;
  }

  std::int64_t divisor() {
    const std::int64_t value = number();
    if (value <= 0) fail("a divisor is not above zero");
    return value;
  }

  Extent function(const std::string& name) {
    expect('(');
    const Extent first = sum();
    expect(name == "floor" || name == "ceil" ? '/' : ',');
    Extent result;
    if (name == "floor")
      result = floor_div(first, divisor());
    else if (name == "ceil")
      result = ceil_div(first, divisor());
    else if (name == "mod")
      result = mod(first, divisor());
    else if (name == "min")
      result = min(first, sum());
    else if (name == "max")
      result = max(first, sum());
    else
      fail(fmt::format("'{}' is none of floor, ceil, mod, min and max", name));
    expect(')');
    return result;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string Extent::to_string() const {
  if (is_known()) return std::to_string(constant_);
  std::string text;
  for (const Term& term : terms()) {
    if (term.coefficient < 0)
      text += '-';
    else if (!text.empty())
      text += '+';
    if (term.coefficient != 1 && term.coefficient != -1)
      text += fmt::format("{}*", term.coefficient < 0 ? std::to_string(term.coefficient).substr(1)
                                                      : std::to_string(term.coefficient));
    for (std::size_t i = 0; i < term.factors.size(); ++i) {
      if (i > 0) text += '*';
      text += factor_text(term.factors[i]);
    }
  }
  if (constant_ != 0) text += fmt::format("{:+}", constant_);
  return text;
}

Extent Extent::parse(std::string_view text) {
  return Reader(text).all();
}

}  // namespace sylvite
