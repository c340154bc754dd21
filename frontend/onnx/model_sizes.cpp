#include "frontend/onnx/model_sizes.h"

#include <onnx-ml.pb.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "base/rounding.h"
#include "base/size_range.h"
#include "frontend/onnx/derived_dims.h"
#include "frontend/onnx/known_texts.h"
#include "frontend/onnx/size_conventions.h"
#include "frontend/onnx/tensor.h"

namespace sylvite {
namespace {

using OnnxDim = onnx::TensorShapeProto::Dimension;

/// Older exporters write -1 for a size that they do not know.
bool is_open(const OnnxDim& dim) {
  return !dim.has_dim_value() || dim.dim_value() == -1;
}

std::string symbol_of(const std::string& input, int axis, const OnnxDim& dim) {
  return dim.dim_param().empty() ? fmt::format("{}_d{}", input, axis) : dim.dim_param();
}

bool is_sized_type(const onnx::ValueInfoProto& input, bool takes_texts) {
  const onnx::TypeProto& type = input.type();
  if (is_text_input(input)) return takes_texts;
  return type.has_tensor_type() && type.tensor_type().elem_type() != onnx::TensorProto::STRING &&
         type.tensor_type().has_shape();
}

/// Of the main graph; those that initializers give, which runs are not given, too.
std::vector<DeclaredInput> declared_inputs(const onnx::GraphProto& graph, const ImportOptions& options) {
  std::set<std::string> initializers;
  for (const auto& initializer : graph.initializer()) initializers.insert(initializer.name());
  for (const auto& initializer : graph.sparse_initializer()) initializers.insert(initializer.values().name());
  const bool takes_texts = KnownTexts::of(graph) != nullptr;
  std::vector<DeclaredInput> inputs;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    const bool is_bound = options.bound_inputs.contains(input.name());
    if (!is_bound && initializers.contains(input.name())) continue;
    DeclaredInput& declared = inputs.emplace_back();
    declared.name = input.name();
    declared.is_given_to_runs = !is_bound;
    declared.has_shape = is_sized_type(input, takes_texts);
    if (!declared.has_shape) continue;
    try {
      declared.is_texts = is_text_input(input);
      declared.dtype = declared.is_texts ? DType::i64 : dtype_of_onnx(input.type().tensor_type().elem_type());
    } catch (const Error&) {
      declared.dtype = {};  // the importer says it better
    }
    const auto& shape = input.type().tensor_type().shape();
    for (int axis = 0; axis < shape.dim_size(); ++axis) {
      const OnnxDim& dim = shape.dim(axis);
      if (is_open(dim))
        declared.axes.push_back({0, symbol_of(input.name(), axis, dim)});
      else
        declared.axes.push_back({dim.dim_value()});
    }
  }
  return inputs;
}

/// A size that whole shapes or bound inputs give, and where.
struct FixedSize {
  std::int64_t size = 0;
  std::string input;
};

/// The place where a name was met first.
struct MetPlace {
  int axis = 0;
  int rank = 0;
};

/// Collects the symbols of a model.
class NamedSizeReader {
 public:
  NamedSizeReader(const std::vector<DeclaredInput>& inputs, const ImportOptions& options)
      : inputs_(inputs), options_(options) {}

  ModelSizes read() {
    for (const DeclaredInput& input : inputs_) meet(input);
    check_names();
    for (const std::string& name : names_) resolve(name);
    for (const DeclaredInput& input : inputs_)
      if (input.is_given_to_runs) add_input(input);
    for (const SizedInput& input : result_.inputs) check_elements(input);
    return std::move(result_);
  }

 private:
  /// The shape that the caller gives for an input, if it is one of its rank.
  [[nodiscard]] const Dims* given_shape(const DeclaredInput& input) const {
    const Dims* dims = nullptr;
    if (const auto bound = options_.bound_inputs.find(input.name); bound != options_.bound_inputs.end())
      dims = &bound->second.dims();
    else if (const auto shape = options_.input_shapes.find(input.name); shape != options_.input_shapes.end())
      dims = &shape->second;
    return dims != nullptr && dims->size() == input.axes.size() ? dims : nullptr;
  }

  void meet(const DeclaredInput& input) {
    const Dims* given = given_shape(input);
    const auto rank = static_cast<int>(input.axes.size());
    for (int axis = 0; axis < rank; ++axis) {
      const DeclaredInput::Axis& declared = input.axes[static_cast<std::size_t>(axis)];
      const std::string& name = declared.symbol;
      if (name.empty()) continue;
      if (places_.try_emplace(name, MetPlace{axis, rank}).second) names_.push_back(name);
      if (given != nullptr) fix(declared, (*given)[static_cast<std::size_t>(axis)], input.name);
    }
  }

  void fix(const DeclaredInput::Axis& axis, std::int64_t given, const std::string& input) {
    const std::string& name = axis.symbol;
    const std::optional<std::int64_t> value = symbol_at(given, axis.factor, axis.addend);
    if (!value)
      throw UsageError("the shape given for '{}' has {}, which is not {} * {} + {} for any {}", input, given,
                       axis.factor, name, axis.addend, name);
    const std::int64_t size = *value;
    const auto [found, is_new] = fixed_.try_emplace(name, FixedSize{size, input});
    if (is_new || found->second.size == size) return;
    throw UsageError("dimension '{}' is {} in the shape given for '{}', but {} in that for '{}'", name,
                     found->second.size, found->second.input, size, input);
  }

  void check_names() const {
    for (const auto& [name, range] : options_.dims) {
      if (places_.contains(name)) continue;
      if (names_.empty())
        throw UsageError("the model has no dimension '{}': the sizes of its inputs are all fixed", name);
      const std::vector<std::string_view> known(names_.begin(), names_.end());
      throw UsageError("the model has no dimension '{}'{} (its dimensions: {})", name,
                       suggestion(name, known), fmt::join(names_, ", "));
    }
  }

  /// What its name says of it holds, too, where steps are not given and the sizes to be fast at allow it.
  static void adopt_multiple(SizeRange& range, std::int64_t multiple) {
    const auto is_step = [&](std::int64_t size) { return size % multiple == 0; };
    const std::int64_t low = round_up(range.low, multiple);
    if (range.multiple != 1 || low > range.high || !std::ranges::all_of(range.hints, is_step)) return;
    range.multiple = multiple;
    range.low = low;
    if (range.high != SizeRange::open) range.high -= range.high % multiple;
  }

  /// The range of a name: as given, or as its name says.
  [[nodiscard]] SizeRange range_of(const std::string& name) const {
    const MetPlace& place = places_.at(name);
    const SizeConvention convention = size_convention(name, place.axis, place.rank);
    SizeRange range;
    if (const auto given = options_.dims.find(name); given != options_.dims.end())
      range = check_size_range(given->second, fmt::format("dimension '{}'", name));
    if (convention.multiple > 1 && !range.is_fixed()) adopt_multiple(range, convention.multiple);
    if (range.high == SizeRange::open) {
      const std::int64_t limit = std::max(convention.limit, range.low * 2);
      range.high = std::min(limit, most_elements) / range.multiple * range.multiple;
    }
    if (range.hints.empty()) {
      const std::int64_t usual =
          std::max<std::int64_t>(convention.usual / range.multiple, 1) * range.multiple;
      range.hints.push_back(std::clamp(usual, range.low, range.high));
    }
    return range;
  }

  void resolve(const std::string& name) {
    const bool is_given = options_.dims.contains(name);
    const SizeRange range = range_of(name);
    if (const auto fixed = fixed_.find(name); fixed != fixed_.end()) {
      const auto& [size, input] = fixed->second;
      if (is_given && !range.contains(size)) {
        throw UsageError("dimension '{}' is {} in the shape given for '{}', but {} is given for its name",
                         name, size, input, options_.dims.at(name).to_string());
      }
      axes_[name] = {size, -1};
    } else if (is_given && range.is_fixed()) {
      axes_[name] = {range.low, -1};
    } else {
      axes_[name] = {0, static_cast<int>(result_.symbols.size())};
      result_.symbols.push_back({name, range, !is_given});
    }
  }

  void add_input(const DeclaredInput& input) {
    SizedInput& sized = result_.inputs.emplace_back();
    sized.name = input.name;
    sized.is_sized = input.has_shape && input.dtype.has_value();
    if (!sized.is_sized) return;
    sized.dtype = *input.dtype;
    sized.is_texts = input.is_texts;
    for (const DeclaredInput::Axis& axis : input.axes)
      sized.axes.push_back(axis.symbol.empty() ? SizedInput::Axis{axis.extent, -1} : sized_axis(axis));
  }

  [[nodiscard]] SizedInput::Axis sized_axis(const DeclaredInput::Axis& declared) const {
    SizedInput::Axis axis = axes_.at(declared.symbol);
    if (axis.symbol < 0) return {declared.factor * axis.extent + declared.addend, -1};
    axis.factor = declared.factor;
    axis.addend = declared.addend;
    return axis;
  }

  /// At the largest sizes that were asked for, does every input have few enough elements?
  void check_elements(const SizedInput& input) const {
    double count = 1;
    for (const SizedInput::Axis& axis : input.axes) {
      if (axis.symbol < 0) {
        count *= static_cast<double>(axis.extent);
        continue;
      }
      const SizeSymbol& symbol = result_.symbols[static_cast<std::size_t>(axis.symbol)];
      const auto given = options_.dims.find(symbol.name);
      const bool has_limit = given != options_.dims.end() && given->second.high != SizeRange::open;
      const std::int64_t size = has_limit ? symbol.range.high : symbol.range.low;
      count *=
          static_cast<double>(axis.factor) * static_cast<double>(size) + static_cast<double>(axis.addend);
    }
    if (count <= static_cast<double>(most_elements) || options_.dims.empty()) return;
    throw UsageError("input '{}' has {:.3g} elements at the largest sizes given; at most {} fit", input.name,
                     count, most_elements);
  }

  const std::vector<DeclaredInput>& inputs_;
  const ImportOptions& options_;
  std::vector<std::string> names_;  ///< in the order in which they are met
  std::map<std::string, MetPlace> places_;
  std::map<std::string, FixedSize> fixed_;
  std::map<std::string, SizedInput::Axis> axes_;
  ModelSizes result_;
};

std::string open_range(const SizeSymbol& symbol) {
  SizeRange range = symbol.range;
  range.hints.clear();
  if (symbol.is_guessed) range.high = SizeRange::open;
  return range.to_string();
}

template <typename Wanted>
std::string ranges_of(const ModelSizes& model, const Wanted& is_wanted) {
  std::vector<std::string> parts;
  for (const SizeSymbol& symbol : model.symbols) {
    if (!is_wanted(symbol)) continue;
    parts.push_back(fmt::format("{} is {} (fast at {})", symbol.name, open_range(symbol),
                                fmt::join(symbol.range.hints, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string sized_type(const ModelSizes& model, const SizedInput& input) {
  std::vector<std::string> axes;
  axes.reserve(input.axes.size());
  for (const SizedInput::Axis& axis : input.axes)
    axes.push_back(axis.follows      ? "?"
                   : axis.symbol < 0 ? std::to_string(axis.extent)
                                     : axis_name(model, axis));
  return fmt::format("{}[{}]", input.is_texts ? "strings" : dtype_name(input.dtype), fmt::join(axes, ","));
}

}  // namespace

std::size_t SizesHash::operator()(const Sizes& sizes) const {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::int64_t size : sizes) hash = (hash ^ static_cast<std::uint64_t>(size)) * 0x100000001b3;
  return hash ^ (hash >> 32);
}

ModelSizes read_model_sizes(const std::vector<DeclaredInput>& inputs, const ImportOptions& options) {
  return NamedSizeReader(inputs, options).read();
}

ModelSizes read_model_sizes(const onnx::GraphProto& graph, const ImportOptions& options) {
  std::vector<DeclaredInput> inputs = declared_inputs(graph, options);
  pin_dims(graph, inputs, options);
  derive_dims(inputs, options);
  return read_model_sizes(inputs, options);
}

void hint_sizes(ModelSizes& sizes, const std::map<std::string, Dims>& inputs) {
  const SizeReader reader(sizes);
  Sizes read(sizes.symbols.size(), no_size);
  for (std::size_t i = 0; i < sizes.inputs.size(); ++i) {
    const auto given = inputs.find(sizes.inputs[i].name);
    if (given != inputs.end() && sizes.inputs[i].is_sized)
      reader.read_input(i, {sizes.inputs[i].dtype, given->second}, read);
  }
  for (std::size_t s = 0; s < read.size(); ++s) {
    if (read[s] == no_size) continue;
    if (read[s] > 0) sizes.symbols[s].range.hints = {read[s]};  // fast where there is work
    sizes.symbols[s].is_seen = true;
  }
}

std::string axis_name(const ModelSizes& model, const SizedInput::Axis& axis) {
  const std::string& symbol = model.symbols[static_cast<std::size_t>(axis.symbol)].name;
  if (axis.factor == 1 && axis.addend == 0) return symbol;
  return (Extent::symbol(symbol) * axis.factor + axis.addend).to_string();
}

std::vector<Sizes> hinted_sizes(const ModelSizes& sizes, std::int64_t most) {
  std::vector<Sizes> all(1);
  for (const SizeSymbol& symbol : sizes.symbols) {
    std::vector<Sizes> longer;
    for (const Sizes& begin : all) {
      for (const std::int64_t hint : symbol.range.hints) {
        longer.push_back(begin);
        longer.back().push_back(hint);
      }
    }
    all = std::move(longer);
    if (static_cast<std::int64_t>(all.size()) > most) {
      throw UsageError(
          "the sizes to be fast at make more than {} combinations, and compile.sizes_kept keeps so many "
          "programs; give "
          "fewer sizes after '@'",
          most);
    }
  }
  return all;
}

Sizes first_sizes(const ModelSizes& sizes) {
  Sizes first;
  for (const SizeSymbol& symbol : sizes.symbols) first.push_back(symbol.range.hints.front());
  return first;
}

namespace {

/// Others between the same powers of two: networks halve images again and again, and what comes of these has like sizes, too.
/// Those that can be halved as often, and no more often, come first. Half of them, where the range has no others, and they are not small.
std::vector<std::int64_t> like_sizes(std::int64_t size, const SizeRange& range) {
  constexpr std::int64_t deepest = 32;
  constexpr std::size_t enough = 8;
  constexpr std::int64_t small = 16;
  std::vector<std::int64_t> sizes;
  auto least = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(size)));
  // Half as many where all are few.
  const std::int64_t fewest = size < small ? std::max<std::int64_t>(size / 2, 2) : size / 2 + 1;
  for (; sizes.empty() && (least >= small || least >= fewest); least /= 2) {
    const auto add = [&](std::int64_t first, std::int64_t step) {
      for (std::int64_t each = first; each < 2 * least && sizes.size() < enough; each += step)
        if (each != size && range.contains(each) && std::ranges::find(sizes, each) == sizes.end())
          sizes.push_back(each);
    };
    const std::int64_t halved = std::gcd(size, deepest);
    if (halved < deepest) add(least + halved, 2 * halved);
    for (std::int64_t step = std::min(halved, std::max<std::int64_t>(least / 2, 1)); step > 0; step /= 2)
      add(least, step);
  }
  return sizes;
}

/// Axes that are merged or joined are as long as products and sums of sizes: do these differ from those of `here` with `size` as
/// the next of `beside`, are they small where those are, and does what is equal in `here` differ there?
bool tells_apart(const Sizes& here, const Sizes& beside, std::size_t next, std::int64_t size) {
  constexpr std::int64_t small = 16;
  const auto is_like = [](std::int64_t a, std::int64_t b) { return a != b && (a < small) == (b < small); };
  std::int64_t all_here = here[next], all_beside = size;
  for (std::size_t i = 0; i < next; ++i) {
    all_here *= here[i];
    all_beside *= beside[i];
    const bool joins_equals = here[i] == here[next] && beside[i] == size;
    const bool has_equal_sum = here[i] + here[next] == beside[i] + size;
    if (joins_equals || has_equal_sum || !is_like(here[i] * here[next], beside[i] * size)) return false;
  }
  return is_like(all_here, all_beside);
}

}  // namespace

Sizes sizes_beside(const ModelSizes& model, const Sizes& sizes) {
  Sizes result = sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::vector<std::int64_t> choices = like_sizes(sizes[i], model.symbols[i].range);
    if (choices.empty()) continue;
    // What is equal here shall differ there.
    const auto equal = std::count(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(i), sizes[i]);
    const auto first =
        choices.begin() + std::min<std::ptrdiff_t>(equal, static_cast<std::ptrdiff_t>(choices.size()) - 1);
    const auto apart = std::find_if(first, choices.end(),
                                    [&](std::int64_t size) { return tells_apart(sizes, result, i, size); });
    result[i] = apart == choices.end() ? *first : *apart;
  }
  return result;
}

std::optional<std::int64_t> symbol_at(std::int64_t size, std::int64_t factor, std::int64_t addend) {
  const std::int64_t rest = size - addend;
  if (rest < 0 || rest % factor != 0) return {};
  return rest / factor;
}

Dims dims_at(const SizedInput& input, const Sizes& sizes) {
  Dims dims;
  for (const SizedInput::Axis& axis : input.axes)
    dims.push_back(axis.symbol < 0
                       ? axis.extent
                       : axis.factor * sizes.at(static_cast<std::size_t>(axis.symbol)) + axis.addend);
  return dims;
}

std::string describe(const ModelSizes& model, const Sizes& sizes) {
  std::vector<std::string> parts;
  parts.reserve(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i)
    parts.push_back(fmt::format("{}={}", model.symbols.at(i).name, sizes[i]));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string describe_ranges(const ModelSizes& model) {
  return ranges_of(model, [](const SizeSymbol&) { return true; });
}

std::string describe_guesses(const ModelSizes& model) {
  return ranges_of(model, [](const SizeSymbol& symbol) { return symbol.is_guessed && !symbol.is_seen; });
}

void SizeReader::check_count(std::size_t count) const {
  if (count != model_.inputs.size())
    throw InputError("{} inputs given, the model takes {}", count, model_.inputs.size());
}

void SizeReader::read_input(std::size_t input, const GivenType& given, Sizes& sizes) const {
  const SizedInput& declared = model_.inputs[input];
  if (given.dtype != declared.dtype || given.dims.size() != declared.axes.size()) refuse_type(input, given);
  for (std::size_t axis = 0; axis < given.dims.size(); ++axis) {
    const auto [extent, symbol, follows, factor, addend] = declared.axes[axis];
    std::int64_t size = given.dims[axis];
    if (follows) continue;
    if (symbol < 0) {
      if (size != extent) refuse_type(input, given);
      continue;
    }
    if (factor != 1 || addend != 0) {
      const std::optional<std::int64_t> value = symbol_at(size, factor, addend);
      if (!value) refuse_type(input, given);
      size = *value;
    }
    std::int64_t& known = sizes[static_cast<std::size_t>(symbol)];
    if (known == size) continue;
    if (known != no_size) refuse_unequal(input, axis, given, known);
    if (!model_.symbols[static_cast<std::size_t>(symbol)].range.contains(size))
      refuse_size(input, axis, size);
    known = size;
  }
}

void SizeReader::refuse_type(std::size_t input, const GivenType& given) const {
  throw InputError("input {} '{}': got {}, expected {}", input, model_.inputs[input].name,
                   model_.inputs[input].is_texts ? fmt::format("strings[{}]", fmt::join(given.dims, ","))
                                                 : make_type(given.dtype, given.dims).to_string(),
                   sized_type(model_, model_.inputs[input]));
}

void SizeReader::refuse_size(std::size_t input, std::size_t axis, std::int64_t size) const {
  const SizeSymbol& symbol = model_.symbols[static_cast<std::size_t>(model_.inputs[input].axes[axis].symbol)];
  const SizeRange& range = symbol.range;
  const std::string steps = range.multiple == 1 ? "" : fmt::format(" in steps of {}", range.multiple);
  throw InputError("input {} '{}': dimension {} ({}) is {}; it may be {} to {}{} (see --dims)", input,
                   model_.inputs[input].name, axis, symbol.name, size, range.low, range.high, steps);
}

void SizeReader::refuse_unequal(std::size_t input, std::size_t axis, const GivenType& given,
                                std::int64_t other) const {
  const SizedInput& declared = model_.inputs[input];
  const int symbol = declared.axes[axis].symbol;
  const auto has_symbol = [&](const SizedInput& each) {
    return std::ranges::find(each.axes, symbol, &SizedInput::Axis::symbol) != each.axes.end();
  };
  const std::int64_t expected = declared.axes[axis].factor * other + declared.axes[axis].addend;
  throw InputError("input {} '{}': dimension {} ({}) is {}, but it is {} in '{}'", input, declared.name, axis,
                   axis_name(model_, declared.axes[axis]), given.dims[axis], expected,
                   std::ranges::find_if(model_.inputs, has_symbol)->name);
}

}  // namespace sylvite
