#include "lowering/plan/open_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "frontend/graph/attribute_text.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/join_bodies.h"
#include "lowering/plan/storage_order.h"
#include "sylvite/graph_text.h"

namespace sylvite {
namespace {

/// Does a kernel go through the dim one by one? Then any number of them will do.
bool is_walked(KernelClass kind, Axis axis) {
  if (axis == Axis::images || axis == Axis::count) return true;
  const bool only_vectors = kind == KernelClass::pointwise || kind == KernelClass::movement;
  const bool has_batches = kind == KernelClass::matmul || kind == KernelClass::attention;
  return (axis == Axis::outer && (only_vectors || has_batches)) || (axis == Axis::rows && only_vectors);
}

/// Of kernels that write each element by itself, a device makes as many as there are, whatever the extents.
bool takes_any_extent(KernelClass kind) {
  return kind == KernelClass::pointwise || kind == KernelClass::movement || kind == KernelClass::pooling;
}

SizeClass class_of(KernelClass kind, Axis axis, std::int64_t extent) {
  if (is_walked(kind, axis)) return {1, INT64_MAX};
  if (axis == Axis::pixels) return pixel_class(extent);
  return axis == Axis::lines ? line_class(extent) : size_class(extent);
}

/// Do lines of pixels lie in memory, which are read or written by vectors?
bool has_open_lines(const Kernel& first, const Kernel& second) {
  const auto is_line = [&](ValueId id) {
    const TensorType& type = first.body.type(id);
    const std::size_t last = type.rank() - 1;
    return type.layout.channel_block == 0 && type.rank() > 2 &&
           id < static_cast<ValueId>(second.body.values().size()) &&
           second.body.type(id).rank() == type.rank() &&
           type.dims()[last] != second.body.type(id).dims()[last];
  };
  return std::ranges::any_of(first.body.inputs, is_line) || std::ranges::any_of(first.body.outputs, is_line);
}

/// Work on channels in blocks that looks at elements apart, at rows or whole images has no tiles of lines and pixels.
bool has_tiles_of_pixels(const Kernel& first, const Kernel& second) {
  return first.kind == KernelClass::convolution || first.kind == KernelClass::pooling ||
         has_open_lines(first, second);
}

/// Does it pool images whose pixels lie in lines?
bool pools_dense(const Kernel& kernel) {
  return kernel.kind == KernelClass::pooling && kernel.anchor != no_node &&
         kernel.body.type(kernel.body.node(kernel.anchor).inputs.at(0)).layout.channel_block == 0;
}

/// Extents of two bodies, for each other.
using ExtentPairs = std::set<std::pair<std::int64_t, std::int64_t>>;

/// Those of what nodes make, where the bodies differ.
ExtentPairs made_extents(const Graph& first, const Graph& second) {
  ExtentPairs pairs;
  const std::size_t count = std::min(first.values().size(), second.values().size());
  for (std::size_t id = 0; id < count; ++id) {
    if (first.values()[id].producer == no_node) continue;
    const Dims one = first.values()[id].type.dims(), other = second.values()[id].type.dims();
    for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i)
      if (one[i] != other[i]) pairs.emplace(one[i], other[i]);
  }
  return pairs;
}

/// How many keys two kernels of attention have: how threads walk them depends on it.
std::optional<std::pair<std::int64_t, std::int64_t>> key_counts(const Kernel& first, const Kernel& second) {
  if (first.kind != KernelClass::attention || second.anchor != first.anchor) return std::nullopt;
  const auto count = [](const Kernel& kernel) {
    const Dims keys = kernel.body.type(kernel.body.node(kernel.anchor).inputs.at(1)).dims();
    return keys.at(keys.size() - 2);
  };
  return std::pair(count(first), count(second));
}

/// Gives each pair of extents that differ one symbol.
class Generalizer {
 public:
  Generalizer(Sharing sharing, const Kernel& first, const Kernel& second, std::int64_t fewest)
      : sharing_(sharing),
        kind_(first.kind),
        has_tiles_(has_tiles_of_pixels(first, second)),
        fewest_(fewest),
        has_open_pads_(!is_for_device() && !pools_dense(first)),
        keys_(key_counts(first, second)) {
    if (sharing == Sharing::of_device_class && kind_ == KernelClass::convolution)
      made_ = made_extents(first.body, second.body);
  }

  /// nullopt when no kernel serves both extents.
  [[nodiscard]] std::optional<Extent> join(std::int64_t a, std::int64_t b, Axis axis) {
    if (axis == Axis::border) return joined_pads(a, b);
    if (axis == Axis::edge && !is_for_device() && std::min(a, b) >= 0) return own_number(a);
    if (axis == Axis::edge) axis = Axis::none;
    if (a == b) return a;
    const std::optional<SizeClass> range = shared_class(a, b, axis);
    if (!range) return std::nullopt;
    const bool is_dense = axis == Axis::outer || axis == Axis::rows;
    std::string& name = symbols_[{a, b, is_dense ? Axis::any : axis}];
    if (name.empty()) {
      name = fmt::format("s{}", table_.size());
      table_[name] = {range->low, range->high, {a}};
    }
    SymbolInfo& info = table_[name];
    info.low = std::max(info.low, range->low);
    info.high = std::min(info.high, range->high);
    return Extent::symbol(name);
  }
  [[nodiscard]] const SymbolTable& table() const { return table_; }

 private:
  [[nodiscard]] bool is_for_device() const {
    return sharing_ == Sharing::on_device || sharing_ == Sharing::of_device_class;
  }
  /// Any pads, of each side by themselves: those of lines and of columns may be equal by chance.
  [[nodiscard]] std::optional<Extent> joined_pads(std::int64_t a, std::int64_t b) {
    if (!has_open_pads_) return a == b ? std::optional<Extent>(a) : std::nullopt;
    return own_number(a);
  }
  /// Of a case, whatever other numbers are.
  [[nodiscard]] Extent own_number(std::int64_t a) {
    const std::string name = fmt::format("s{}", table_.size());
    table_[name] = {0, INT64_MAX, {a}};
    return Extent::symbol(name);
  }
  /// What one kernel for both serves.
  [[nodiscard]] std::optional<SizeClass> shared_class(std::int64_t a, std::int64_t b, Axis axis) const {
    const bool is_around = axis == Axis::none;
    const bool needs_two = sharing_ == Sharing::of_first && !is_walked(kind_, axis);
    if (std::min(a, b) < (is_around ? 0 : needs_two ? 2 : 1)) return std::nullopt;
    if (is_around) return SizeClass{0, INT64_MAX};
    const bool is_of_image = axis == Axis::pixels || axis == Axis::lines;
    const bool are_many = std::min(a, b) >= 2;
    if (is_for_device()) {
      if (are_many && (sharing_ == Sharing::on_device ? keys_ != std::pair(a, b) : is_free(a, b, axis)))
        return SizeClass{2, INT64_MAX};
      return device_class(a) == device_class(b) ? std::optional(device_class(a)) : std::nullopt;
    }
    if (is_of_image && !has_tiles_ && are_many) return SizeClass{2, INT64_MAX};
    if (sharing_ == Sharing::of_first) return class_of(kind_, axis, a);
    // Tiles that fit the least image fit all that are larger.
    const std::int64_t low = pixel_class(std::min(a, b)).low;
    if (is_of_image && low >= 2) return SizeClass{std::min(low, fewest_), INT64_MAX};
    const SizeClass own = class_of(kind_, axis, a);
    return own == class_of(kind_, axis, b) ? std::optional(own) : std::nullopt;
  }

  /// What windows reach beyond their results is read from wherever it lies.
  [[nodiscard]] bool is_free(std::int64_t a, std::int64_t b, Axis axis) const {
    const bool is_of_image = axis == Axis::pixels || axis == Axis::lines;
    return takes_any_extent(kind_) ||
           (kind_ == KernelClass::convolution && is_of_image && !made_.contains({a, b}));
  }

  Sharing sharing_;
  KernelClass kind_;
  bool has_tiles_;
  std::int64_t fewest_;
  bool has_open_pads_;  ///< texts of windows on a device, and pools of lines, have them as numbers
  ExtentPairs made_;    ///< by nodes, not inputs alone; of convolutions in classes of a device
  std::optional<std::pair<std::int64_t, std::int64_t>> keys_;  ///< of attention
  SymbolTable table_;
  std::map<std::tuple<std::int64_t, std::int64_t, Axis>, std::string> symbols_;
};

/// An extent of an open kernel is a number or one symbol: reads the symbol's value off a case.
class CaseReader {
 public:
  [[nodiscard]] bool read(const std::vector<Extent>& open, const Dims& dims) {
    if (open.size() != dims.size()) return false;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (open[i].is_known() ? open[i].constant() == dims[i] : read_symbol(open[i], dims[i])) continue;
      return false;
    }
    return true;
  }
  [[nodiscard]] bool read_constant(const Node& extents, const std::optional<Tensor>& constant) {
    const std::optional<std::int64_t> number =
        constant ? extent_of(*constant, count_form(extents.attributes)) : std::nullopt;
    return number && read(extents.attributes.extents("values"), {*number});
  }
  [[nodiscard]] const SymbolValues& values() const { return values_; }

 private:
  [[nodiscard]] bool read_symbol(const Extent& symbol, std::int64_t value) {
    const std::string& name = symbol.terms()[0].factors[0].name;
    return values_.emplace(name, value).first->second == value;
  }

  SymbolValues values_;
};

bool read_attributes(const Node& open, const Node& node, CaseReader& reader) {
  return std::ranges::all_of(open.attributes.items(), [&](const auto& item) {
    const auto* extents = std::get_if<std::vector<Extent>>(&item.second);
    return extents == nullptr ||
           (node.attributes.has(item.first) && reader.read(*extents, node.attributes.integers(item.first)));
  });
}

bool read_case(const Graph& open, const Graph& body, CaseReader& reader) {
  if (open.values().size() != body.values().size()) return false;
  for (std::size_t i = 0; i < body.values().size(); ++i)
    if (!reader.read(open.values()[i].type.shape, body.values()[i].type.dims())) return false;
  std::size_t number = 0;  // extents are constants in `body`
  for (const Node& node : open.nodes()) {
    if (node.op == Op::extents) {
      if (!reader.read_constant(node, body.value(node.outputs[0]).constant)) return false;
      continue;
    }
    if (number == body.nodes().size() || !read_attributes(node, body.nodes()[number], reader)) return false;
    ++number;
  }
  return number == body.nodes().size();
}

/// Beyond these, kernels are compiled for buffers that 32 bits do not address.
bool is_too_large(const Graph& body) {
  return std::ranges::any_of(body.values(), [](const Value& value) {
    return value.type.byte_size() > std::numeric_limits<std::int32_t>::max();
  });
}

/// Do both multiply by weights of different shapes? Then they are different layers, not one at different sizes.
bool have_other_weights(const Kernel& first, const Kernel& second) {
  if (first.kind != KernelClass::matmul && first.kind != KernelClass::convolution) return false;
  if (first.anchor != second.anchor || first.kind != second.kind) return true;
  ValueId id = first.body.node(first.anchor).inputs.at(1);
  for (NodeId node = first.body.value(id).producer; node != no_node; node = first.body.value(id).producer) {
    if (!has_trait(first.body.node(node).op, OpTrait::view)) return false;
    id = first.body.node(node).inputs[0];
  }
  const auto& inputs = first.body.inputs;
  const auto number = static_cast<std::size_t>(std::ranges::find(inputs, id) - inputs.begin());
  return number < inputs.size() && first.input_is_weight[number] &&
         first.body.type(id) != second.body.type(second.body.inputs.at(number));
}

/// Is dim `i` of a value, counted from the last, read again and again for a longer result?
bool is_broadcast(const Graph& body, ValueId value, ValueId result, std::size_t i) {
  const Dims from = body.type(value).dims(), to = body.type(result).dims();
  return from[from.size() - i] != to[to.size() - i];
}

/// Dims that differ are broadcast in both or in neither: a schedule knows which.
bool broadcast_alike(const Graph& first, const Graph& second) {
  for (std::size_t number = 0; number < first.nodes().size(); ++number) {
    const Node& node = first.nodes()[number];
    if (!has_trait(node.op, OpTrait::pointwise)) continue;
    for (const ValueId input : node.inputs) {
      const Dims one = first.type(input).dims(), other = second.type(input).dims();
      for (std::size_t i = 1; i <= one.size(); ++i)
        if (one[one.size() - i] != other[other.size() - i] &&
            is_broadcast(first, input, node.outputs[0], i) != is_broadcast(second, input, node.outputs[0], i))
          return false;
    }
  }
  return true;
}

/// Some images of one pixel lie otherwise than larger ones.
bool lies_alike(const Graph& open, const Graph& body) {
  for (std::size_t i = 0; i < body.values().size(); ++i) {
    const TensorType& type = body.values()[i].type;
    if (has_outer_blocks(type) != has_outer_blocks(open.values()[i].type) && type.dims()[0] > 1) return false;
  }
  return true;
}

bool is_for(const Kernel& open, const SymbolValues& sizes) {
  return std::ranges::all_of(open.open->symbols.table, [&](const auto& symbol) {
    const auto found = sizes.find(symbol.first);
    return found != sizes.end() && found->second >= symbol.second.low && found->second <= symbol.second.high;
  });
}

/// May it be called for a case with this body?
bool serves(const Kernel& open, const Graph& body) {
  return !is_too_large(body) && lies_alike(*open.open, body);
}

/// REQUIRES that the extents of `kernel` are those of `open` at these sizes: what is compared is all the rest.
std::optional<Kernel> equal_case(const Kernel& open, const Kernel& kernel, const SymbolValues& sizes) {
  if (open.input_is_weight != kernel.input_is_weight || !serves(open, kernel.body)) return std::nullopt;
  Kernel result = with_sizes(open, sizes);
  if (graph_text(result.body) != graph_text(kernel.body)) return std::nullopt;
  return result;
}

}  // namespace

SizeClass size_class(std::int64_t extent) {
  constexpr std::int64_t whole_tile = 16;
  if (extent < 2) return {extent, extent};
  return extent < whole_tile ? SizeClass{2, whole_tile - 1} : SizeClass{whole_tile, INT64_MAX};
}

SizeClass pixel_class(std::int64_t extent) {
  const SizeClass range = size_class(extent);
  if (range.low != 2) return range;
  return extent < 4 ? SizeClass{2, 3} : extent < 8 ? SizeClass{4, 7} : SizeClass{8, range.high};
}

SizeClass line_class(std::int64_t extent) {
  if (extent < 2) return {extent, extent};
  return extent < 4 ? SizeClass{2, 3} : SizeClass{4, INT64_MAX};
}

SizeClass device_class(std::int64_t extent) {
  constexpr std::int64_t width = 4;
  if (extent < 2) return {extent, extent};
  std::int64_t low = 2, high = 2 * width;
  for (; extent > high; high *= width) low = high + 1;
  return {low, high};
}

std::optional<Kernel> generalize(const Kernel& first, const Kernel& second, Sharing sharing,
                                 std::int64_t fewest) {
  if (first.input_is_weight != second.input_is_weight ||
      first.body.inputs.size() != second.body.inputs.size() || have_other_weights(first, second))
    return std::nullopt;
  Generalizer generalizer(sharing, first, second, fewest);
  std::optional<Graph> body = join_bodies({&first.body, &second.body}, [&](const Dims& extents, Axis axis) {
    return generalizer.join(extents[0], extents[1], axis);
  });
  if (!body || generalizer.table().empty()) return std::nullopt;
  if (!lies_alike(*body, first.body) || !lies_alike(*body, second.body) ||
      !broadcast_alike(first.body, second.body))
    return std::nullopt;
  body->symbols.table = generalizer.table();
  return make_kernel(*body, first.input_is_weight);
}

std::optional<Kernel> as_case(const Kernel& open, const Kernel& kernel) {
  CaseReader reader;
  if (!read_case(*open.open, kernel.body, reader) || !is_for(open, reader.values())) return std::nullopt;
  return equal_case(open, kernel, reader.values());
}

std::optional<Dims> sizes_of_case(const Kernel& open, const Kernel& kernel) {
  CaseReader reader;
  if (!read_case(*open.open, kernel.body, reader)) return std::nullopt;
  const std::optional<Kernel> found = equal_case(open, kernel, reader.values());
  return found ? std::optional(found->sizes) : std::nullopt;
}

std::optional<Kernel> case_at(const Kernel& open, const Dims& sizes) {
  SymbolValues values;
  std::size_t number = 0;
  for (const auto& [name, info] : open.open->symbols.table) values.emplace(name, sizes.at(number++));
  if (!is_for(open, values)) return std::nullopt;
  Kernel result = with_sizes(open, values);
  return serves(open, result.body) ? std::optional(std::move(result)) : std::nullopt;
}

namespace {

Kernel hinted(const Kernel& found, bool is_narrowed) {
  constexpr std::int64_t longest_tile = 14;  // of pixels of a line
  Graph body = *found.open;
  std::size_t number = 0;
  for (auto& [name, info] : body.symbols.table) {
    const std::int64_t size = found.sizes.at(number++);
    info.hints = {size};
    if (is_narrowed && info.low >= 2 && info.high == INT64_MAX)
      info.low = std::max(info.low, std::min(size, longest_tile));
  }
  return make_kernel(body, found.input_is_weight);
}

}  // namespace

Kernel hinted_here(const Kernel& found) {
  return hinted(found, false);
}

Kernel narrowed_here(const Kernel& found) {
  return hinted(found, true);
}

bool is_as_wide(const Kernel& open, const Kernel& wide) {
  const SymbolTable& own = open.open->symbols.table;
  return std::ranges::all_of(wide.open->symbols.table, [&](const auto& symbol) {
    const auto found = own.find(symbol.first);
    return found != own.end() && found->second.low <= symbol.second.low &&
           found->second.high >= symbol.second.high;
  });
}

std::string classes_text(const Kernel& kernel) {
  std::string text;
  const auto add = [&](Axis axis, std::int64_t extent) {
    text += fmt::format("{},", class_of(kernel.kind, axis, extent).low);
    return extent;
  };
  for (const Value& value : kernel.body.values())
    if (const auto number = value.constant ? constant_extent(*value.constant) : std::nullopt)
      add(Axis::count, number->extent);
  (void)join_bodies({&kernel.body}, [&](const Dims& extents, Axis axis) { return add(axis, extents[0]); });
  return text;
}

std::string skeleton(const Kernel& kernel) {
  std::string text;
  for (const ValueId input : kernel.body.inputs) {
    const TensorType& type = kernel.body.type(input);
    text += fmt::format("{}:{}:{} ", dtype_name(type.dtype), type.rank(), type.layout.channel_block);
  }
  for (const Node& node : kernel.body.nodes()) {
    text += op_info(node.op).name;
    for (const ValueId input : node.inputs) text += fmt::format(" {}", input);
    for (const ValueId output : node.outputs) text += fmt::format(":{}", kernel.body.type(output).rank());
    for (const auto& [name, value] : node.attributes.items())
      if (!has_extents(node.op, name)) text += fmt::format(" {}", attribute_text(value));
    text += '\n';
  }
  return text;
}

}  // namespace sylvite
