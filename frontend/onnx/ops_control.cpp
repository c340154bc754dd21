// Control flow, sequences and optionals: resolved while importing, but for loops of tensors whose trips are known.

#include <onnx-ml.pb.h>

#include <algorithm>

#include "base/error.h"
#include "frontend/graph/loop_builder.h"
#include "frontend/onnx/loop_ends.h"
#include "frontend/onnx/loop_lists.h"
#include "frontend/onnx/loop_trips.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

constexpr const char* condition_reason = "which nodes run depends on a condition that is computed";

[[noreturn]] void wait_for_condition(const std::string& what, const std::string& name = "") {
  throw NeedsValueError(
      fmt::format(
          "{} must be known when the model is imported: bind the model input it comes from to a constant",
          what),
      condition_reason, name);
}

bool known_condition(Sym condition) {
  if (!condition.is_constant()) wait_for_condition("the loop's condition");
  if (condition.size() != 1) throw ModelError("a condition has {} elements, expected 1", condition.size());
  return condition.constant().as_int64(0) != 0;
}

std::vector<OnnxBinding> import_branch(ImportContext& c, const std::string& name) {
  return c.import_subgraph(c.subgraph(name), std::vector<OnnxBinding>());
}

/// A branch of an If whose condition is not known: what it gives, or why it cannot be imported.
struct Branch {
  std::vector<OnnxBinding> results;
  std::string refusal;
};

/// What a branch expects of a run counts only in runs that take it.
Branch try_branch(ImportContext& c, const std::string& name, Sym is_taken) {
  const std::size_t before = c.expectations().size();
  Branch branch;
  try {
    branch.results = import_branch(c, name);
  } catch (const NeedsValueError&) {
    throw;
  } catch (const ModelError& error) {
    branch.refusal = error.what();
  } catch (const UnsupportedError& error) {
    branch.refusal = error.what();
  }
  if (!branch.refusal.empty()) c.expectations().resize(before);
  for (std::size_t i = before; i < c.expectations().size(); ++i) {
    OnnxExpectation& inner = c.expectations()[i];
    inner.holds = where(is_taken, Sym(c.builder(), inner.holds), 1.0).id();
  }
  return branch;
}

/// For an If of which one branch fits the model at its sizes: the model is imported for runs that take it.
void expect_branch(ImportContext& c, const Branch& branch, Sym is_taken, const Branch& other,
                   const std::string& other_name) {
  c.expect(is_taken, fmt::format("its {} cannot be run: {}", other_name, other.refusal));
  for (std::size_t i = 0; i < branch.results.size(); ++i)
    c.output_binding(static_cast<int>(i), branch.results[i]);
}

void select_results(ImportContext& c, Sym condition, const std::vector<OnnxBinding>& taken,
                    const std::vector<OnnxBinding>& other) {
  if (taken.size() != other.size()) throw ModelError("the branches have different numbers of outputs");
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const bool are_tensors = taken[i].is_tensor() && other[i].is_tensor();
    if (!are_tensors || c.symbol(taken[i]).dtype() != c.symbol(other[i]).dtype() ||
        c.symbol(taken[i]).dims() != c.symbol(other[i]).dims()) {
      wait_for_condition(fmt::format("the branches give output {} different types; input 0", i),
                         c.input_name(0));
    }
    c.output(static_cast<int>(i), where(condition, c.symbol(taken[i]), c.symbol(other[i])));
  }
}

/// A known condition imports its branch only. An unknown one imports both and selects, where their types
/// agree; a branch that does not fit is an error only in a run that takes it.
void if_op(ImportContext& c) {
  const Sym given = c.input(0);
  if (given.is_constant()) {
    const std::vector<OnnxBinding> results =
        import_branch(c, known_condition(given) ? "then_branch" : "else_branch");
    for (std::size_t i = 0; i < results.size(); ++i) c.output_binding(static_cast<int>(i), results[i]);
    return;
  }
  const Sym condition = reshape(given, {});
  const Sym opposite = apply(Op::logical_not, condition);
  const Branch taken = try_branch(c, "then_branch", condition);
  const Branch other = try_branch(c, "else_branch", opposite);
  if (!taken.refusal.empty() && !other.refusal.empty())
    throw ModelError("neither branch can be imported: {}; {}", taken.refusal, other.refusal);
  if (!taken.refusal.empty()) return expect_branch(c, other, opposite, taken, "then_branch");
  if (!other.refusal.empty()) return expect_branch(c, taken, condition, other, "else_branch");
  select_results(c, condition, taken.results, other.results);
}

std::vector<Sym> joined(std::vector<Sym> states, const std::vector<Sym>& slices) {
  states.insert(states.end(), slices.begin(), slices.end());
  return states;
}

/// The states of a loop of the graph, which are tensors: those that a run changes, those of which every value is known, those
/// that stay as they are, and lists that grow.
struct LoopStates {
  std::vector<OnnxBinding> given;
  std::vector<std::optional<Tensor>> known;  ///< [trips + 1, ...]
  std::vector<bool> is_unchanged;
  std::vector<bool> is_appended;  ///< a list: what a trip appends is stacked

  [[nodiscard]] bool is_carried(std::size_t i) const {
    return !is_unchanged[i] && !known[i] && !is_appended[i];
  }
};

LoopSpec loop_spec(ImportContext& c, std::int64_t trips, const LoopStates& states) {
  GraphBuilder& builder = c.builder();
  LoopSpec spec{trips, false, {}};
  spec.given.slices.push_back(builder.iota(DType::i64, {trips}, 0));
  for (std::size_t i = 0; i < states.given.size(); ++i) {
    if (states.is_carried(i)) spec.given.states.push_back(c.symbol(states.given[i]));
    if (states.known[i] && !states.is_unchanged[i])
      spec.given.slices.push_back(slice(builder.constant(*states.known[i]), 0, 0, trips));
  }
  return spec;
}

/// What the body is given in a trip, in its order.
std::vector<OnnxBinding> trip_arguments(ImportContext& c, const LoopStates& states, const TripValues& trip) {
  std::vector<OnnxBinding> arguments{OnnxBinding::of(trip.slices[0].id()),
                                     OnnxBinding::of(c.builder().scalar(DType::boolean, 1).id())};
  auto state = trip.states.begin();
  auto slice = trip.slices.begin() + 1;
  OnnxBinding empty_list;
  empty_list.sequence = std::make_shared<const std::vector<ValueId>>();
  for (std::size_t i = 0; i < states.given.size(); ++i)
    if (states.is_appended[i])
      arguments.push_back(empty_list);
    else if (states.is_unchanged[i])
      arguments.push_back(states.given[i]);
    else
      arguments.push_back(OnnxBinding::of((states.known[i] ? *slice++ : *state++).id()));
  return arguments;
}

void write_loop(ImportContext& c, const LoopStates& states, std::int64_t trips, const TripValues& results) {
  auto state = results.states.begin();
  const auto count = static_cast<int>(states.given.size());
  auto appended = results.slices.end() - std::ranges::count(states.is_appended, true);
  const auto scans = appended - results.slices.begin();
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (states.is_appended[at])
      c.output_binding(i, with_appended(states.given[at], *appended++));
    else if (states.is_unchanged[at])
      c.output_binding(i, states.given[at]);
    else if (states.known[at])
      c.output(i, squeeze(slice(c.builder().constant(*states.known[at]), 0, trips, trips + 1), {0}));
    else
      c.output(i, *state++);
  }
  for (std::ptrdiff_t i = 0; i < scans; ++i)
    c.output(count + static_cast<int>(i), results.slices[static_cast<std::size_t>(i)]);
}

/// True when the loop is one of the graph, and its results are written: its trips are known, and what it carries are
/// tensors.
bool add_known_loop(ImportContext& c, std::int64_t trips, const std::optional<KnownEnd>& end,
                    const std::vector<OnnxBinding>& given) {
  const onnx::GraphProto& body = c.subgraph("body");
  LoopStates states{given, {}, unchanged_states(body), appended_states(body)};
  if (end) states.known = end->states;
  states.known.resize(given.size());
  states.is_unchanged.resize(given.size());
  states.is_appended.resize(given.size());
  for (std::size_t i = 0; i < given.size(); ++i)
    states.is_appended[i] = states.is_appended[i] && given[i].sequence != nullptr;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (states.is_carried(i) && !given[i].is_tensor()) return false;
  if (!may_loop(c.builder(), trips)) return false;
  const auto trip_body = [&](const TripValues& trip) -> TripValues {
    const std::vector<OnnxBinding> results = c.import_subgraph(body, trip_arguments(c, states, trip));
    if (results.size() < given.size() + 1 || (!end && !known_condition(c.symbol(results[0]))))
      throw UnsupportedError("the loop ends early");
    TripValues left;
    for (std::size_t i = 0; i < given.size(); ++i)
      if (states.is_carried(i)) left.states.push_back(c.symbol(results[i + 1]));
    for (std::size_t i = given.size() + 1; i < results.size(); ++i)
      left.slices.push_back(c.symbol(results[i]));
    for (std::size_t i = 0; i < given.size(); ++i)
      if (states.is_appended[i]) left.slices.emplace_back(c.builder(), results[i + 1].sequence->at(0));
    return left;
  };
  const std::optional<TripValues> results = try_loop(c.builder(), loop_spec(c, trips, states), trip_body);
  if (results) write_loop(c, states, trips, *results);
  return results.has_value();
}

/// The tensors of what a trip is given; nothing where something else is among it.
std::optional<std::vector<Tensor>> known_tensors(ImportContext& c, const std::vector<OnnxBinding>& bindings) {
  std::vector<Tensor> tensors;
  for (const OnnxBinding& binding : bindings) {
    if (!binding.is_tensor()) return std::nullopt;
    tensors.push_back(c.symbol(binding).constant());
  }
  return tensors;
}

/// What the body gives in a trip: run as a model of its own where it is one, else imported.
std::vector<OnnxBinding> run_trip(ImportContext& c, const onnx::GraphProto& body,
                                  std::optional<LoopTrips>& trips,
                                  const std::vector<OnnxBinding>& arguments) {
  if (trips) {
    const std::optional<std::vector<Tensor>> given = known_tensors(c, arguments);
    if (const auto results = given ? trips->run(*given) : std::nullopt) {
      std::vector<OnnxBinding> bindings;
      for (const Tensor& result : *results)
        bindings.push_back(OnnxBinding::of(c.builder().constant(result).id()));
      return bindings;
    }
  }
  return c.import_subgraph(body, arguments);
}

std::vector<OnnxBinding> trip_arguments(ImportContext& c, std::int64_t trip,
                                        const std::vector<OnnxBinding>& states) {
  std::vector<OnnxBinding> arguments{OnnxBinding::of(c.builder().constant(Tensor::scalar_i64(trip)).id()),
                                     OnnxBinding::of(c.builder().scalar(DType::boolean, 1).id())};
  arguments.insert(arguments.end(), states.begin(), states.end());
  return arguments;
}

/// Of no trip: nothing stacked of what a first one would leave, whose types are asked for.
void write_nothing_stacked(ImportContext& c, const onnx::GraphProto& body,
                           const std::vector<OnnxBinding>& states) {
  const std::vector<OnnxBinding> results = c.import_subgraph(body, trip_arguments(c, 0, states));
  for (std::size_t i = states.size(); i + 1 < results.size(); ++i)
    c.output(static_cast<int>(i), stack_none(c.builder(), c.symbol(results[i + 1])));
}

/// Unrolled where it is none of the graph: the trip count, or else every condition, must be known. The importer's node
/// limit bounds it. What is carried from trip to trip may be sequences and optionals.
void loop_op(ImportContext& c) {
  const onnx::GraphProto& body = c.subgraph("body");
  const std::int64_t trips = c.has_input(0) ? c.constant_integer(0) : std::int64_t{1} << 40;
  const bool may_run = trips > 0 && (!c.has_input(1) || known_condition(c.input(1)));
  bool goes_on = may_run;
  std::vector<OnnxBinding> state;
  for (int i = 2; i < c.input_count(); ++i) state.push_back(c.binding(i));
  const std::optional<KnownEnd> end = goes_on ? find_end(c, body, trips, state) : std::nullopt;
  if (goes_on && (end || c.has_input(0)) && add_known_loop(c, end ? end->trips : trips, end, state)) return;
  std::optional<LoopTrips> compiled = c.loop_trips(body);
  CarriedStates states(body, state);
  std::vector<std::vector<Sym>> scans;
  for (std::int64_t trip = 0; trip < trips && goes_on; ++trip) {
    const std::vector<OnnxBinding> results =
        run_trip(c, body, compiled, trip_arguments(c, trip, states.now()));
    if (results.size() < state.size() + 1)
      throw ModelError("the body has {} outputs, expected at least {}", results.size(), state.size() + 1);
    goes_on = trip + 1 == trips || known_condition(c.symbol(results[0]));
    states.take(c, results);
    scans.resize(results.size() - 1 - state.size());
    for (std::size_t i = 0; i < scans.size(); ++i)
      scans[i].push_back(c.symbol(results[1 + state.size() + i]));
  }
  state = states.last(c);
  for (std::size_t i = 0; i < state.size(); ++i) c.output_binding(static_cast<int>(i), state[i]);
  if (!may_run && c.output_count() > static_cast<int>(state.size())) write_nothing_stacked(c, body, state);
  for (std::size_t i = 0; i < scans.size(); ++i)
    c.output(static_cast<int>(state.size() + i), stack(scans[i], 0));
}

std::int64_t listed(const std::vector<std::int64_t>& list, std::size_t i) {
  return i < list.size() ? list[i] : 0;
}

/// The axes in order, but for `from`, which comes to `to`.
Sym move_axis(Sym x, std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> perm = all_axes(x.rank());
  perm.erase(perm.begin() + normalize_axis(from, x.rank()));
  perm.insert(perm.begin() + normalize_axis(to, x.rank()), normalize_axis(from, x.rank()));
  return transpose(x, perm);
}

/// Runs the body over the extent of the scanned axes; what it leaves behind is stacked along axis 0, in the order of
/// the first input's direction.
TripValues run_scan(ImportContext& c, const std::vector<Sym>& state, const std::vector<Sym>& scanned,
                    const std::vector<std::int64_t>& axes, const std::vector<std::int64_t>& directions) {
  const std::size_t states = state.size();
  LoopSpec spec{scanned[0].dim(static_cast<int>(listed(axes, 0))), listed(directions, 0) != 0, {state, {}}};
  for (std::size_t i = 0; i < scanned.size(); ++i) {
    const Sym moved = move_axis(scanned[i], listed(axes, i), 0);
    if (moved.dim(0) != spec.trips) throw ModelError("scanned inputs have different extents");
    spec.given.slices.push_back((listed(directions, i) != 0) == spec.is_reverse ? moved : flip(moved, 0));
  }
  return run_loop(c.builder(), spec, [&](const TripValues& trip) -> TripValues {
    const std::vector<Sym> results = c.import_subgraph(c.subgraph("body"), joined(trip.states, trip.slices));
    if (results.size() < states)
      throw ModelError("the body has {} outputs, expected at least {}", results.size(), states);
    const auto slices = results.begin() + static_cast<std::ptrdiff_t>(states);
    return {{results.begin(), slices}, {slices, results.end()}};
  });
}

/// How many of `count` values are states rather than scanned.
std::size_t state_count(ImportContext& c, std::size_t count) {
  const std::int64_t scanned = c.required_integer("num_scan_inputs");
  if (scanned < 1 || scanned > static_cast<std::int64_t>(count))
    throw ModelError("num_scan_inputs is {}", scanned);
  return count - static_cast<std::size_t>(scanned);
}

void scan_op(ImportContext& c) {
  const std::vector<Sym> inputs = c.inputs();
  const auto states = static_cast<std::ptrdiff_t>(state_count(c, inputs.size()));
  const std::vector<std::int64_t> input_directions = c.integers("scan_input_directions");
  TripValues results =
      run_scan(c, {inputs.begin(), inputs.begin() + states}, {inputs.begin() + states, inputs.end()},
               c.integers("scan_input_axes"), input_directions);
  const std::vector<std::int64_t> axes = c.integers("scan_output_axes");
  const std::vector<std::int64_t> directions = c.integers("scan_output_directions");
  for (std::size_t i = 0; i < results.slices.size(); ++i) {
    Sym& stacked = results.slices[i];
    if ((listed(directions, i) != 0) != (listed(input_directions, 0) != 0)) stacked = flip(stacked, 0);
    stacked = move_axis(stacked, 0, listed(axes, i));
  }
  const std::vector<Sym> left = joined(results.states, results.slices);
  for (std::size_t i = 0; i < left.size(); ++i) c.output(static_cast<int>(i), left[i]);
}

/// Opset 8: sequence lengths first (must be absent), and a batch axis in front of everything.
void scan_batched(ImportContext& c) {
  if (c.has_input(0)) throw UnsupportedError("sequence_lens is not supported");
  std::vector<Sym> inputs;
  for (int i = 1; i < c.input_count(); ++i) inputs.push_back(c.input(i));
  const auto states = static_cast<std::ptrdiff_t>(state_count(c, inputs.size()));
  std::vector<std::vector<Sym>> outputs;
  for (std::int64_t batch = 0; batch < inputs[0].dim(0); ++batch) {
    std::vector<Sym> here;
    here.reserve(inputs.size());
    for (const Sym& input : inputs) here.push_back(squeeze(slice(input, 0, batch, batch + 1), {0}));
    const TripValues values = run_scan(c, {here.begin(), here.begin() + states},
                                       {here.begin() + states, here.end()}, {}, c.integers("directions"));
    std::vector<Sym> results = joined(values.states, values.slices);
    if (listed(c.integers("directions"), 0) != 0)  // stacked in the order of the trips here
      for (std::size_t i = values.states.size(); i < results.size(); ++i) results[i] = flip(results[i], 0);
    outputs.resize(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) outputs[i].push_back(results[i]);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) c.output(static_cast<int>(i), stack(outputs[i], 0));
}

std::size_t sequence_position(ImportContext& c, int input, std::size_t size) {
  const std::int64_t at = c.constant_integer(input);
  const auto count = static_cast<std::int64_t>(size);
  if (at < -count || at > count) throw ModelError("position {} is outside a sequence of {}", at, count);
  return static_cast<std::size_t>(at < 0 ? at + count : at);
}

void sequence_construct(ImportContext& c) {
  c.output_sequence(0, c.inputs());
}
void sequence_empty(ImportContext& c) {
  c.output_sequence(0, {});
}

void sequence_insert(ImportContext& c) {
  std::vector<Sym> values = c.sequence(0);
  const std::size_t at = c.has_input(2) ? sequence_position(c, 2, values.size()) : values.size();
  values.insert(values.begin() + static_cast<std::ptrdiff_t>(at), c.input(1));
  c.output_sequence(0, values);
}

void sequence_erase(ImportContext& c) {
  std::vector<Sym> values = c.sequence(0);
  if (values.empty()) throw ModelError("the sequence is empty");
  const std::size_t at = c.has_input(1) ? sequence_position(c, 1, values.size()) : values.size() - 1;
  if (at >= values.size()) throw ModelError("position {} is outside a sequence of {}", at, values.size());
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(at));
  c.output_sequence(0, values);
}

void sequence_at(ImportContext& c) {
  const std::vector<Sym> values = c.sequence(0);
  const std::size_t at = sequence_position(c, 1, values.size());
  if (at >= values.size()) throw ModelError("position {} is outside a sequence of {}", at, values.size());
  c.output(values[at]);
}

void sequence_length(ImportContext& c) {
  c.output(c.builder().constant(Tensor::scalar_i64(static_cast<std::int64_t>(c.sequence(0).size()))));
}

void split_to_sequence(ImportContext& c) {
  const Sym x = c.input(0);
  const int axis = normalize_axis(c.integer("axis", 0), x.rank());
  const std::int64_t extent = x.dim(axis);
  std::vector<std::int64_t> sizes;
  if (c.has_input(1) && c.input(1).rank() == 1) {
    sizes = c.constant_integers(1);
  } else {
    const std::int64_t size = c.has_input(1) ? c.constant_integer(1) : 1;
    if (size < 1 || extent / size > 65'536) throw ModelError("parts of {} elements are asked for", size);
    for (std::int64_t start = 0; start < extent; start += size)
      sizes.push_back(std::min(size, extent - start));
  }
  std::vector<Sym> parts = split(x, axis, sizes);
  if (!c.has_input(1) && c.integer("keepdims", 1) == 0)
    for (Sym& part : parts) part = squeeze(part, {axis});
  c.output_sequence(0, parts);
}

void concat_from_sequence(ImportContext& c) {
  std::vector<Sym> values = c.sequence(0);
  if (values.empty()) throw UnsupportedError("the sequence is empty");
  const std::int64_t axis = c.required_integer("axis");
  const bool is_new = c.integer("new_axis", 0) != 0;
  if (const std::optional<Sym> whole = stacked_values(c.builder(), values)) {
    const int at = normalize_axis(axis, values[0].rank() + (is_new ? 1 : 0));
    const Sym moved = move_axis(*whole, 0, at);
    Dims dims = values[0].dims();
    if (!is_new) dims[static_cast<std::size_t>(at)] *= whole->dim(0);
    return c.output(is_new ? moved : reshape(moved, dims));
  }
  c.output(is_new ? stack(values, axis) : concat(values, normalize_axis(axis, values[0].rank())));
}

/// The body's inputs: an item of each sequence, the other inputs whole.
void sequence_map(ImportContext& c) {
  const onnx::GraphProto& body = c.subgraph("body");
  std::vector<std::vector<Sym>> results;
  const std::size_t length = c.sequence(0).size();
  for (std::size_t at = 0; at < length; ++at) {
    std::vector<Sym> arguments;
    for (int i = 0; i < c.input_count(); ++i) {
      if (!c.is_sequence(i)) {
        arguments.push_back(c.input(i));
        continue;
      }
      const std::vector<Sym> items = c.sequence(i);
      if (items.size() != length) throw ModelError("sequences of {} and {} items", length, items.size());
      arguments.push_back(items[at]);
    }
    const std::vector<Sym> outputs = c.import_subgraph(body, arguments);
    results.resize(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) results[i].push_back(outputs[i]);
  }
  results.resize(static_cast<std::size_t>(c.output_count()));
  for (std::size_t i = 0; i < results.size(); ++i) c.output_sequence(static_cast<int>(i), results[i]);
}

/// An optional with a value is that value.
void optional_op(ImportContext& c) {
  c.output_binding(0, c.binding(0));
}

void optional_get_element(ImportContext& c) {
  if (!c.has_input(0)) throw ModelError("the optional has no value");
  c.output_binding(0, c.binding(0));
}

void optional_has_element(ImportContext& c) {
  c.output(c.builder().scalar(DType::boolean, c.has_input(0) ? 1 : 0));
}

const OnnxOp control_rows[] = {
    {"ConcatFromSequence", 11, concat_from_sequence},
    {"If", 1, if_op},
    {"Loop", 1, loop_op},
    {"Optional", 15, optional_op},
    {"OptionalGetElement", 15, optional_get_element},
    {"OptionalHasElement", 15, optional_has_element},
    {"Scan", 8, scan_batched},
    {"Scan", 9, scan_op},
    {"SequenceAt", 11, sequence_at},
    {"SequenceConstruct", 11, sequence_construct},
    {"SequenceEmpty", 11, sequence_empty},
    {"SequenceErase", 11, sequence_erase},
    {"SequenceInsert", 11, sequence_insert},
    {"SequenceLength", 11, sequence_length},
    {"SequenceMap", 17, sequence_map},
    {"SplitToSequence", 11, split_to_sequence},
};

}  // namespace

std::span<const OnnxOp> onnx_control_ops() {
  return control_rows;
}

}  // namespace sylvite
