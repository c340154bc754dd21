#pragma once
// The text form of a captured graph, read into a tree; no operation is looked at. docs/formats.md has the grammar.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sylvite/extent.h"

namespace sylvite {

/// A declared type, e.g. f32[s0,64]. The element type is a word: a value of one that is not served may be declared, as
/// long as nothing that is imported reads it.
struct TorchType {
  std::string dtype;  ///< "int" for a size
  std::vector<Extent> shape;
  /// As many as the shape has, or none: dense row-major for an input, not said for a result.
  std::vector<Extent> strides;
};

struct TorchLiteral {
  enum class Kind { none, boolean, integer, real, string, dtype, value, list } kind = Kind::none;
  bool boolean = false;
  Extent integer;
  double real = 0;
  std::string text;  ///< of a string; the name of a dtype; the name of a value without %
  std::vector<TorchLiteral> items = {};
};

/// The names of values in it are added.
void collect_names(const TorchLiteral& literal, std::set<std::string>& names);

struct TorchArgument {
  std::string keyword;  ///< "" for a positional one
  TorchLiteral value;
};

struct TorchNode {
  int line = 0;
  std::string name;
  std::string op;
  std::vector<TorchType> types;  ///< of its results
  bool is_tuple = false;         ///< types were in parentheses
  std::vector<TorchArgument> arguments;
};

struct TorchTextInput {
  int line = 0;
  std::string name;
  TorchType type;
  bool is_parameter = false;
};

struct TorchReturned {
  int line = 0;
  TorchLiteral value;           ///< none, a value, or a size
  std::vector<Extent> strides;  ///< of a value; none: dense row-major
};

struct TorchText {
  std::string name;
  std::vector<TorchTextInput> inputs;
  std::vector<TorchNode> nodes;
  std::vector<TorchReturned> outputs;
  std::vector<TorchText> bodies = {};  ///< graphs behind the first one, which its operations name
};

/// Throws ModelError that names the line. Nesting is bounded.
[[nodiscard]] TorchText read_torch_text(std::string_view text);

}  // namespace sylvite
