#pragma once
// The sizes of a model's inputs that its file leaves open: which there are, what each may be, and what they are in
// given inputs.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sylvite/import.h"
#include "sylvite/types.h"

namespace onnx {
class GraphProto;
}  // namespace onnx

namespace sylvite {

/// A size per symbol of a ModelSizes, in its order.
using Sizes = std::vector<std::int64_t>;

struct SizesHash {
  [[nodiscard]] std::size_t operator()(const Sizes& sizes) const;
};

/// A named size with a range. Sizes that one number was given for are no symbols.
struct SizeSymbol {
  std::string name;
  SizeRange range;          ///< neither open nor fixed; with a hint at least
  bool is_guessed = false;  ///< nobody gave the range: it goes by the name
  bool is_seen = false;     ///< an input has it, whose size is the one to be fast at
};

/// An input as its file declares it, but for sizes that were given.
struct SizedInput {
  struct Axis {
    std::int64_t extent = 0;
    int symbol = -1;  ///< index into ModelSizes::symbols, or -1: `extent` counts
    bool follows =
        false;  ///< neither counts: the size follows from how long states are (find_growing_states)
    std::int64_t factor = 1;  ///< the size is factor * symbol + addend; positive
    std::int64_t addend = 0;
  };
  std::string name;
  DType dtype = DType::f32;
  bool is_sized = false;  ///< a tensor of numbers with a shape; the importer deals with others
  bool is_texts = false;  ///< sized, too: a run's numbers stand for texts (KnownTexts)
  std::vector<Axis> axes;
};

struct ModelSizes {
  std::vector<SizeSymbol> symbols;
  std::vector<SizedInput> inputs;  ///< those that a run is given, in order

  [[nodiscard]] bool are_fixed() const { return symbols.empty(); }
};

/// An input as a model's file declares it.
struct DeclaredInput {
  struct Axis {
    std::int64_t extent = 0;
    std::string symbol = {};  ///< "" where `extent` is the size
    std::int64_t factor = 1;  ///< the size is factor * symbol + addend; positive
    std::int64_t addend = 0;
  };
  std::string name;
  std::optional<DType> dtype;    ///< nothing: no tensor of numbers that are served
  bool has_shape = false;        ///< a tensor of numbers whose axes are known
  bool is_texts = false;         ///< that become numbers (KnownTexts)
  bool is_given_to_runs = true;  ///< false: its sizes count, but the model holds its value
  std::vector<Axis> axes;
};

/// Throws UsageError for a size that is given for no symbol (with the nearest name), ranges
/// that do not hold together, and inputs that would have too many elements; ModelError for a malformed input.
[[nodiscard]] ModelSizes read_model_sizes(const std::vector<DeclaredInput>& inputs,
                                          const ImportOptions& options);
/// The same of an ONNX model's main graph.
[[nodiscard]] ModelSizes read_model_sizes(const onnx::GraphProto& graph, const ImportOptions& options);

/// The sizes that these inputs have, by name, are the ones to be fast at, and no others. Throws InputError as
/// SizeReader for sizes that do not fit.
void hint_sizes(ModelSizes& sizes, const std::map<std::string, Dims>& inputs);

/// The symbol's name, or what the size is of it. REQUIRES one.
[[nodiscard]] std::string axis_name(const ModelSizes& model, const SizedInput::Axis& axis);

/// Every combination of hints; the first of each symbol come first. Throws UsageError when there are more than `most`.
[[nodiscard]] std::vector<Sizes> hinted_sizes(const ModelSizes& sizes, std::int64_t most);
[[nodiscard]] Sizes first_sizes(const ModelSizes& sizes);

/// Sizes beside these, each of like size (between the same powers of two) where its range allows; equal ones differ there, and so
/// do products and sums where they can.
[[nodiscard]] Sizes sizes_beside(const ModelSizes& model, const Sizes& sizes);

/// The symbol's value where the axis has that size; nothing where no value gives it.
[[nodiscard]] std::optional<std::int64_t> symbol_at(std::int64_t size, std::int64_t factor,
                                                    std::int64_t addend);

/// The dims of an input at these sizes.
[[nodiscard]] Dims dims_at(const SizedInput& input, const Sizes& sizes);
/// e.g. "batch=2, sequence=128"; "" without symbols.
[[nodiscard]] std::string describe(const ModelSizes& model, const Sizes& sizes);
/// e.g. "batch is 1.. (fast at 1), sequence is 1..512 (fast at 128+384)".
[[nodiscard]] std::string describe_ranges(const ModelSizes& model);
/// The same of those of which nothing is known but the name.
[[nodiscard]] std::string describe_guesses(const ModelSizes& model);

/// What an input is that a run is given.
struct GivenType {
  DType dtype = DType::f32;
  const Dims& dims;
};

inline constexpr std::int64_t no_size = -1;

/// Reads sizes off the shapes of a run's inputs.
class SizeReader {
 public:
  /// `model` must live as long.
  explicit SizeReader(const ModelSizes& model) : model_(model) {}

  /// `type_of(i)` is what is known of input i, and is asked for those that are sized; `sizes` gets the result.
  /// Throws InputError that names input, dimension, value and range.
  template <typename TypeOf>
  void read(std::size_t count, const TypeOf& type_of, Sizes& sizes) const {
    check_count(count);
    sizes.assign(model_.symbols.size(), no_size);
    for (std::size_t i = 0; i < count; ++i)
      if (model_.inputs[i].is_sized) read_input(i, type_of(i), sizes);
  }
  /// Adds what one input says; symbols without a size yet have no_size.
  void read_input(std::size_t input, const GivenType& given, Sizes& sizes) const;

 private:
  void check_count(std::size_t count) const;
  [[noreturn]] void refuse_type(std::size_t input, const GivenType& given) const;
  [[noreturn]] void refuse_size(std::size_t input, std::size_t axis, std::int64_t size) const;
  [[noreturn]] void refuse_unequal(std::size_t input, std::size_t axis, const GivenType& given,
                                   std::int64_t other) const;

  const ModelSizes& model_;
};

}  // namespace sylvite
