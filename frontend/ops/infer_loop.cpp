// The type rule of loops.

#include "base/error.h"
#include "frontend/ops/infer.h"
#include "sylvite/graph.h"

namespace sylvite {
namespace {

/// How many inputs of the loop are what.
struct Counts {
  std::int64_t trips, states, scanned;
};

Counts read_counts(const Attributes& attributes, std::size_t inputs) {
  const Counts counts{attributes.integer("trips"), attributes.integer("states"),
                      attributes.integer("scanned")};
  if (counts.trips < 1 || counts.trips > extent_limit)
    throw ModelError("a loop of {} trips, expected 1 to {}", counts.trips, extent_limit);
  const auto given = static_cast<std::int64_t>(inputs);
  const bool fit = counts.states >= 0 && counts.states <= given && counts.scanned >= 0 &&
                   counts.scanned <= given - counts.states;
  if (!fit)
    throw ModelError("{} states and {} scanned inputs of {} inputs", counts.states, counts.scanned, given);
  const std::int64_t reverse = attributes.integer("reverse");
  if (reverse != 0 && reverse != 1) throw ModelError("reverse is {}, expected 0 or 1", reverse);
  return counts;
}

void require_type(const TensorType& given, DType dtype, const Dims& dims, std::string_view what,
                  std::size_t number) {
  if (given.dtype != dtype || given.dims() != dims) {
    throw ModelError("{} {} is {}, expected {}", what, number, given.to_string(),
                     make_type(dtype, dims).to_string());
  }
}

Dims stacked(std::int64_t trips, Dims slice) {
  slice.insert(slice.begin(), trips);
  return slice;
}

}  // namespace

OutputTypes infer_loop(Op, InputTypes inputs, const Attributes& attributes, Symbols&) {
  const Graph& body = attributes.graph("body");
  const Counts counts = read_counts(attributes, inputs.size());
  const auto states = static_cast<std::size_t>(counts.states);
  const auto scanned = static_cast<std::size_t>(counts.scanned);
  if (!body.symbols.table.empty()) throw ModelError("the body of a loop has symbols, expected numbers");
  if (body.inputs.size() != inputs.size())
    throw ModelError("{} inputs for a body of {}", inputs.size(), body.inputs.size());
  if (body.outputs.size() < states)
    throw ModelError("a body of {} outputs, expected one for each of {} states", body.outputs.size(), states);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) throw ModelError("input {} is required", i);
    const TensorType& wanted = body.type(body.inputs[i]);
    const bool is_scanned = i >= states && i < states + scanned;
    const Dims dims = wanted.dims();
    require_type(*inputs[i], wanted.dtype, is_scanned ? stacked(counts.trips, dims) : dims, "input", i);
  }
  OutputTypes types;
  for (std::size_t i = 0; i < body.outputs.size(); ++i) {
    const TensorType& type = body.type(body.outputs[i]);
    if (i < states) {
      const TensorType& state = body.type(body.inputs[i]);
      require_type(type, state.dtype, state.dims(), "the body's next state", i);
    }
    types.push_back(make_type(type.dtype, i < states ? type.dims() : stacked(counts.trips, type.dims())));
    check_size(types.back());
  }
  if (types.empty()) throw ModelError("a loop without results");
  return types;
}

}  // namespace sylvite
