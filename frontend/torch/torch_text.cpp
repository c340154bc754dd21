#include "frontend/torch/torch_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace sylvite {
namespace {

constexpr int max_depth = 8;  ///< of lists in lists
constexpr std::string_view dtype_words[] = {"f32", "f16", "bf16", "f64", "i64", "i32", "i16",  "i8",
                                            "u8",  "u16", "u32",  "u64", "c32", "c64", "c128", "bool"};

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  TorchText all() {
    TorchText result = graph();
    while (peek() != '\0') result.bodies.push_back(graph());
    return result;
  }

 private:
  TorchText graph() {
    TorchText result;
    expect_word("torch");
    result.name = word("a name for the graph");
    expect('(');
    while (!accept(')')) {
      if (!result.inputs.empty()) expect(',');
      result.inputs.push_back(input());
    }
    expect('{');
    while (peek() == '%') result.nodes.push_back(node());
    expect_word("return");
    while (peek() != '}') {
      if (!result.outputs.empty()) expect(',');
      result.outputs.push_back(returned());
    }
    expect('}');
    return result;
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw ModelError("line {}: {}", line_, message);
  }

  char peek() {
    for (; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (c == '#') {
        position_ = std::min(text_.find('\n', position_), text_.size());
        if (position_ == text_.size()) break;
        ++line_;
      } else if (c == '\n') {
        ++line_;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return c == '\0' ? '\1' : c;
      }
    }
    return '\0';
  }

  bool accept(char wanted) {
    if (peek() != wanted) return false;
    ++position_;
    return true;
  }

  void expect(char wanted) {
    if (accept(wanted)) return;
    if (peek() == '\0') fail(fmt::format("expected '{}', got the end of the text", wanted));
    fail(fmt::format("expected '{}', got '{}'", wanted, text_[position_]));
  }

  /// Empty when there is none.
  std::string_view next_word() {
    peek();
    const std::size_t begin = position_;
    while (position_ < text_.size() && is_name_character(text_[position_])) ++position_;
    return text_.substr(begin, position_ - begin);
  }

  std::string word(std::string_view what) {
    const std::string_view found = next_word();
    if (found.empty()) fail(fmt::format("expected {}", what));
    return std::string(found);
  }

  void expect_word(std::string_view wanted) {
    const std::string_view found = next_word();
    if (found != wanted) fail(fmt::format("expected '{}', got '{}'", wanted, found));
  }

  bool accept_word(std::string_view wanted) {
    peek();
    const std::size_t before = position_;
    if (next_word() == wanted) return true;
    position_ = before;  // on the same line
    return false;
  }

  std::string value_name() {
    expect('%');
    return word("the name of a value");
  }

  /// What stands before a comma or a closing bracket that it did not open.
  std::string_view bare() {
    peek();
    const std::size_t begin = position_;
    int depth = 0;
    for (; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (c == '\n' || c == '#' || c == '}' || (depth == 0 && (c == ',' || c == ')' || c == ']'))) break;
      if (c == '(') ++depth;
      if (c == ')') --depth;
    }
    std::string_view found = text_.substr(begin, position_ - begin);
    while (!found.empty() && (found.back() == ' ' || found.back() == '\r')) found.remove_suffix(1);
    return found;
  }

  Extent extent(std::string_view text) {
    if (text.empty()) fail("expected a value");
    try {
      return Extent::parse(text);
    } catch (const Error& error) {
      fail(error.what());
    }
  }

  std::vector<Extent> extents() {
    std::vector<Extent> result;
    expect('[');
    while (!accept(']')) {
      if (!result.empty()) expect(',');
      result.push_back(extent(bare()));
    }
    return result;
  }

  TorchType type() {
    TorchType result;
    result.dtype = word("a type");
    if (result.dtype == "int") return result;
    if (std::ranges::find(dtype_words, result.dtype) == std::end(dtype_words))
      fail(fmt::format("'{}' is no element type", result.dtype));
    result.shape = extents();
    return result;
  }

  std::vector<Extent> strides(std::size_t rank) {
    std::vector<Extent> result = extents();
    if (result.size() != rank) fail(fmt::format("{} strides are given for {} axes", result.size(), rank));
    return result;
  }

  TorchTextInput input() {
    TorchTextInput result;
    result.name = value_name();
    result.line = line_;
    expect(':');
    result.type = type();
    for (;;)
      if (accept_word("strides"))
        result.type.strides = strides(result.type.shape.size());
      else if (accept_word("parameter"))
        result.is_parameter = true;
      else
        return result;
  }

  TorchNode node() {
    TorchNode result;
    result.name = value_name();
    result.line = line_;
    expect(':');
    if (accept('(')) {
      result.is_tuple = true;
      while (!accept(')')) {
        if (!result.types.empty()) expect(',');
        result.types.push_back(accept_word("none") ? TorchType{} : type());
      }
    } else {
      result.types.push_back(type());
      if (accept_word("strides")) result.types.back().strides = strides(result.types.back().shape.size());
    }
    expect('=');
    result.op = word("the name of an operation");
    expect('(');
    while (!accept(')')) {
      if (!result.arguments.empty()) expect(',');
      result.arguments.push_back(argument());
    }
    return result;
  }

  TorchArgument argument() {
    TorchArgument result;
    peek();
    const std::size_t before = position_;
    const std::string_view keyword = next_word();
    if (!keyword.empty() && position_ < text_.size() && text_[position_] == '=') {
      result.keyword = std::string(keyword);
      ++position_;
    } else {
      position_ = before;
    }
    result.value = literal(0);
    return result;
  }

  TorchLiteral literal(int depth) {
    TorchLiteral result;
    const char c = peek();
    if (c == '%') {
      result.kind = TorchLiteral::Kind::value;
      result.text = value_name();
    } else if (c == '\'') {
      result.kind = TorchLiteral::Kind::string;
      const std::size_t end = text_.find_first_of("'\n", position_ + 1);
      if (end == std::string_view::npos || text_[end] == '\n') fail("a string has no end");
      result.text = text_.substr(position_ + 1, end - position_ - 1);
      position_ = end + 1;
    } else if (c == '[') {
      if (depth == max_depth) fail(fmt::format("lists nest deeper than {}", max_depth));
      result.kind = TorchLiteral::Kind::list;
      ++position_;
      while (!accept(']')) {
        if (!result.items.empty()) expect(',');
        result.items.push_back(literal(depth + 1));
      }
    } else {
      read_bare(bare(), result);
    }
    return result;
  }

  void read_bare(std::string_view text, TorchLiteral& result) {
    if (text == "none") return;
    if (text == "true" || text == "false") {
      result.kind = TorchLiteral::Kind::boolean;
      result.boolean = text == "true";
    } else if (std::ranges::find(dtype_words, text) != std::end(dtype_words)) {
      result.kind = TorchLiteral::Kind::dtype;
      result.text = text;
    } else if (read_real(text, result.real)) {
      result.kind = TorchLiteral::Kind::real;
    } else {
      result.kind = TorchLiteral::Kind::integer;
      result.integer = extent(text);
    }
  }

  /// What no integer looks like.
  static bool read_real(std::string_view text, double& value) {
    if (text.find_first_of(".en") == std::string_view::npos) return false;
    if (text != "inf" && text != "-inf" && text != "nan" &&
        text.find_first_not_of("0123456789.e+-") != std::string_view::npos)
      return false;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range)
      value = text.find("e-") != std::string_view::npos ? 0 : std::numeric_limits<double>::infinity();
    return error != std::errc::invalid_argument && end == text.data() + text.size();
  }

  TorchReturned returned() {
    TorchReturned result;
    result.value = literal(max_depth);
    result.line = line_;
    const auto kind = result.value.kind;
    if (kind == TorchLiteral::Kind::value && accept_word("strides"))
      result.strides = extents();
    else if (kind != TorchLiteral::Kind::value && kind != TorchLiteral::Kind::none &&
             kind != TorchLiteral::Kind::integer)
      fail("a value, a size or none is returned");
    return result;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  int line_ = 1;
};

}  // namespace

void collect_names(const TorchLiteral& literal, std::set<std::string>& names) {
  if (literal.kind == TorchLiteral::Kind::value) names.insert(literal.text);
  for (const TorchLiteral& item : literal.items) collect_names(item, names);
}

TorchText read_torch_text(std::string_view text) {
  return Reader(text).all();
}

}  // namespace sylvite
