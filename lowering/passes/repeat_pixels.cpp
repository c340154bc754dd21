// Before: y = gather(gather(x, 0 0 1 1 2 2 ..., along one dim), 0 0 1 1 ..., along another)   of a dense x
// After:  y = reshape(broadcast_to(reshape(x)))   where each dim has one of its repetitions behind it
// As nearest pixels of maps that grow by whole factors: two kernels that look up places become one that computes them, and
// writes whole lines.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/values/size_table.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// How often each of so many elements comes, one after the other; nothing where they come otherwise.
std::optional<std::int64_t> repetitions(const Tensor& places, std::int64_t from) {
  const std::int64_t to = places.size();
  if (from < 1 || to <= from || to % from != 0) return std::nullopt;
  for (std::int64_t i = 0; i < to; ++i)
    if (places.as_int64(i) != i / (to / from)) return std::nullopt;
  return to / from;
}

/// What a reading makes of other sizes; nothing where it makes no such table, as where one element has all of one input.
std::optional<std::int64_t> repetitions_at(const TableReading& reading, std::int64_t from) {
  try {
    return repetitions(reading.make({from}), from);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Does each of other numbers of elements come as often? Places that follow from that number alone are asked for many more.
bool is_so_at_all_sizes(const Tensor& places, std::int64_t from, std::int64_t each) {
  constexpr std::int64_t more = 1000;
  const TableReadings readings = readings_of(places);
  return readings != nullptr && std::ranges::any_of(*readings, [&](const TableReading& reading) {
           return reading.numbers == Dims{from} && repetitions_at(reading, from + more) == each;
         });
}

std::optional<std::int64_t> repetitions(const Graph& graph, const Node& node, bool open_sizes) {
  const Value& places = graph.value(node.inputs[1]);
  if (!places.constant || places.type.rank() != 1) return std::nullopt;
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  const std::int64_t from = graph.type(node.inputs[0]).dims()[axis];
  const std::optional<std::int64_t> each = repetitions(*places.constant, from);
  if (each && open_sizes && !is_so_at_all_sizes(*places.constant, from, *each)) return std::nullopt;
  return each;
}

bool repeat(GraphRewriter& rewriter, const Node& node, bool open_sizes) {
  const Graph& source = rewriter.source();
  if (node.op != Op::gather || source.type(node.outputs[0]).element_count() == 0) return false;
  Dims times(source.type(node.outputs[0]).dims().size(), 1);
  ValueId given = node.outputs[0];
  for (const Node* next = &node; next != nullptr; next = producer_if(source, given, Op::gather)) {
    const std::optional<std::int64_t> each = source.type(next->inputs[0]).layout.channel_block == 0
                                                 ? repetitions(source, *next, open_sizes)
                                                 : std::nullopt;
    if (!each) break;
    times[static_cast<std::size_t>(next->attributes.integer("axis"))] *= *each;
    given = next->inputs[0];
  }
  if (given == node.outputs[0]) return false;
  Dims apart, repeated;
  for (std::size_t i = 0; i < times.size(); ++i) {
    apart.push_back(source.type(given).dims()[i]);
    repeated.push_back(apart.back());
    if (times[i] == 1) continue;
    apart.push_back(1);
    repeated.push_back(times[i]);
  }
  Graph& graph = rewriter.graph();
  const ValueId split = add_reshape(graph, rewriter.mapped(given), apart);
  const ValueId whole = graph.add(Op::broadcast_to, {split}, {{"shape", repeated}}, node.name);
  rewriter.set(node.outputs[0], add_reshape(graph, whole, source.type(node.outputs[0]).dims()));
  return true;
}

}  // namespace

Graph repeat_pixels(const Graph& graph, const LoweringOptions& options) {
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    return repeat(rewriter, node, options.open_sizes);
  });
}

}  // namespace sylvite
