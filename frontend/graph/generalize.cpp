#include "frontend/graph/generalize.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "frontend/ops/op_table.h"
#include "frontend/values/same_bytes.h"

namespace sylvite {
namespace {

/// One value, as each of the graphs knows it.
using Ids = std::vector<ValueId>;

class Generalizer {
 public:
  Generalizer(const std::vector<Graph>& graphs, const std::string& symbol,
              const std::vector<std::int64_t>& values, const SymbolInfo& info)
      : graphs_(graphs), symbol_(Extent::symbol(symbol)), values_(values) {
    result_.name = graphs[0].name;
    result_.symbols.table[symbol] = info;
  }

  Graph run() {
    const Graph& first = graphs_[0];
    for (const Graph& graph : graphs_)
      if (graph.inputs.size() != first.inputs.size() || graph.outputs.size() != first.outputs.size() ||
          graph.nodes().size() != first.nodes().size())
        throw UnsupportedError("the model has {} operations at {}, but {} at {}", first.nodes().size(), at(0),
                               graph.nodes().size(), at(index_of(graph)));
    for (std::size_t i = 0; i < first.inputs.size(); ++i) add_input(i);
    for (std::size_t i = 0; i < first.nodes().size(); ++i) add_node(i);
    for (std::size_t i = 0; i < first.outputs.size(); ++i) {
      result_.outputs.push_back(
          mapped(ids([&](const Graph& graph) { return graph.outputs[i]; }), "an output"));
      result_.output_names.push_back(first.output_name(i));
    }
    if (!result_.symbols.guards().empty()) {
      const Guard& guard = result_.symbols.guards().front();
      throw UnsupportedError("'{}' assumes that {}, which is not known for every length", guard.origin,
                             guard.to_string());
    }
    return std::move(result_);
  }

 private:
  template <typename Get>
  [[nodiscard]] Ids ids(const Get& get) const {
    Ids all;
    for (const Graph& graph : graphs_) all.push_back(get(graph));
    return all;
  }
  [[nodiscard]] std::size_t index_of(const Graph& graph) const {
    return static_cast<std::size_t>(&graph - graphs_.data());
  }
  [[nodiscard]] std::string at(std::size_t i) const {
    return fmt::format("{}={}", symbol_.to_string(), values_[i]);
  }

  /// The extent that has these values, if it is linear in the symbol.
  [[nodiscard]] std::optional<Extent> fit(const std::vector<std::int64_t>& sizes) const {
    const std::int64_t step = values_[1] - values_[0];
    const std::int64_t rise = sizes[1] - sizes[0];
    if (rise % step != 0) return std::nullopt;
    const std::int64_t factor = rise / step;
    const std::int64_t offset = sizes[0] - factor * values_[0];
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] != factor * values_[i] + offset) return std::nullopt;
    return Extent(factor) * symbol_ + Extent(offset);
  }
  [[nodiscard]] Shape shape_of(const Ids& value) const {
    const Dims first = graphs_[0].type(value[0]).dims();
    Shape shape;
    for (std::size_t axis = 0; axis < first.size(); ++axis) {
      std::vector<std::int64_t> sizes;
      for (std::size_t i = 0; i < graphs_.size(); ++i) {
        const Dims dims = graphs_[i].type(value[i]).dims();
        if (dims.size() != first.size()) refuse(value, "its rank changes");
        sizes.push_back(dims[axis]);
      }
      const std::optional<Extent> extent = fit(sizes);
      if (!extent) refuse(value, "its size is not linear in " + symbol_.to_string());
      shape.push_back(*extent);
    }
    return shape;
  }
  [[noreturn]] void refuse(const Ids& value, const std::string& why) const {
    throw UnsupportedError("value '{}': {}", graphs_[0].value(value[0]).name, why);
  }

  void add_input(std::size_t i) {
    const Ids value = ids([&](const Graph& graph) { return graph.inputs[i]; });
    const Value& first = graphs_[0].value(value[0]);
    map_[value] = result_.add_input(first.name, make_type(first.type.dtype, shape_of(value)));
  }

  /// What stands for a value that is read; constants are made on the way.
  ValueId mapped(const Ids& value, const std::string& reader) {
    if (std::ranges::count(value, no_value) == static_cast<std::ptrdiff_t>(value.size())) return no_value;
    if (const auto found = map_.find(value); found != map_.end()) return found->second;
    for (std::size_t i = 0; i < value.size(); ++i)
      if (value[i] == no_value || !graphs_[i].is_constant(value[i]))
        throw UnsupportedError("{} reads other values at {} than at {}", reader, at(i), at(0));
    return map_[value] = constant(value, reader);
  }
  ValueId constant(const Ids& value, const std::string& reader) {
    const Value& first = graphs_[0].value(value[0]);
    const Tensor& tensor = *first.constant;
    bool is_same = true;
    for (std::size_t i = 1; i < value.size(); ++i)
      is_same = is_same && same_bytes(tensor, *graphs_[i].value(value[i]).constant);
    if (is_same) return result_.add_constant(tensor, first.name);
    const bool is_integer = is_signed_integer(tensor.dtype()) || is_unsigned_integer(tensor.dtype());
    std::vector<Extent> contents;
    for (std::int64_t at = 0; is_integer && at < tensor.size(); ++at) {
      std::vector<std::int64_t> sizes;
      for (std::size_t i = 0; i < value.size(); ++i) {
        const Tensor& other = *graphs_[i].value(value[i]).constant;
        if (other.dtype() != tensor.dtype() || other.dims() != tensor.dims()) break;
        sizes.push_back(other.as_int64(at));
      }
      const std::optional<Extent> extent = sizes.size() == value.size() ? fit(sizes) : std::nullopt;
      if (!extent) break;
      contents.push_back(*extent);
    }
    if (static_cast<std::int64_t>(contents.size()) != tensor.size())
      throw UnsupportedError("{} reads a table that is another one at each {}", reader, symbol_.to_string());
    ValueId id = result_.add(Op::extents, {}, {{"values", contents}});
    if (tensor.dims() != Dims{tensor.size()}) id = result_.add(Op::reshape, {id}, {{"shape", tensor.dims()}});
    if (tensor.dtype() != DType::i64)
      id = result_.add(Op::cast, {id}, {{"to", std::string(dtype_name(tensor.dtype()))}});
    return id;
  }

  [[nodiscard]] Attributes attributes_of(std::size_t number, const std::string& reader) const {
    const Node& first = graphs_[0].nodes()[number];
    Attributes result;
    for (const auto& [name, value] : first.attributes.items()) {
      bool is_same = true;
      for (const Graph& graph : graphs_)
        is_same = is_same && graph.nodes()[number].attributes.items().at(name) == value;
      if (is_same) {
        result.set(name, value);
        continue;
      }
      std::vector<Extent> list;
      const bool is_list = has_extents(first.op, name);
      const std::size_t size = is_list ? first.attributes.integers(name).size() : 0;
      for (std::size_t entry = 0; entry < size; ++entry) {
        std::vector<std::int64_t> sizes;
        for (const Graph& graph : graphs_) {
          const Dims& integers = graph.nodes()[number].attributes.integers(name);
          if (entry < integers.size()) sizes.push_back(integers[entry]);
        }
        const std::optional<Extent> extent = sizes.size() == graphs_.size() ? fit(sizes) : std::nullopt;
        if (extent) list.push_back(*extent);
      }
      if (!is_list || list.size() != size)
        throw UnsupportedError("{}: its '{}' is not linear in {}", reader, name, symbol_.to_string());
      result.set(name, std::move(list));
    }
    return result;
  }

  void add_node(std::size_t number) {
    const Node& first = graphs_[0].nodes()[number];
    const std::string name = fmt::format("{} '{}'", op_info(first.op).name, first.name);
    for (const Graph& graph : graphs_) {
      const Node& other = graph.nodes()[number];
      if (other.op != first.op || other.inputs.size() != first.inputs.size() ||
          other.outputs.size() != first.outputs.size())
        throw UnsupportedError("{} is another operation at {} than at {}", name, at(index_of(graph)), at(0));
    }
    std::vector<ValueId> inputs;
    inputs.reserve(first.inputs.size());
    for (std::size_t i = 0; i < first.inputs.size(); ++i)
      inputs.push_back(
          mapped(ids([&](const Graph& graph) { return graph.nodes()[number].inputs[i]; }), name));
    result_.symbols.origin = name;
    const std::vector<ValueId> outputs =
        result_.add_node(first.op, std::move(inputs), attributes_of(number, name), first.name);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Ids value = ids([&](const Graph& graph) { return graph.nodes()[number].outputs[i]; });
      const Shape shape = shape_of(value);
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const Extent& inferred = result_.type(outputs[i]).shape.at(axis);
        if (simplify(inferred, result_.symbols.table) != shape[axis])
          throw UnsupportedError("{}: its extent is {} for some lengths, and {} for others", name,
                                 shape[axis].to_string(), inferred.to_string());
      }
      map_[value] = outputs[i];
      result_.rename(outputs[i], graphs_[0].value(value[0]).name);
    }
  }

  const std::vector<Graph>& graphs_;
  Extent symbol_;
  const std::vector<std::int64_t>& values_;
  Graph result_;
  std::map<Ids, ValueId> map_;
};

}  // namespace

Graph generalize(const std::vector<Graph>& graphs, const std::string& symbol,
                 const std::vector<std::int64_t>& values, const SymbolInfo& info) {
  return Generalizer(graphs, symbol, values, info).run();
}

}  // namespace sylvite
