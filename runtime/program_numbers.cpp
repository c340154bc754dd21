#include "runtime/program_numbers.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "base/error.h"
#include "frontend/values/extents_at.h"
#include "lowering/plan/open_kernel.h"
#include "lowering/plan/shared_weights.h"
#include "lowering/plan/storage_order.h"

namespace sylvite {
namespace {

/// Calls `visit` with each number that depends on sizes, but places.
template <typename Visit>
void for_each_number(Bindings& bindings, const Visit& visit) {
  for (BoundLaunch& launch : bindings.launches) {
    for (Argument& argument : launch.arguments)
      for (std::int64_t& number : argument.stored) visit(number);
    for (std::int64_t& number : launch.sizes) visit(number);
  }
  for (std::vector<TensorType>* types : {&bindings.inputs, &bindings.results})
    for (TensorType& type : *types)
      for (Extent& extent : type.shape) {
        std::int64_t number = extent.known();
        visit(number);
        extent = number;
      }
}

Extent bytes_of(const TensorType& type) {
  return type.storage_shape().product() * Extent(static_cast<std::int64_t>(dtype_size(type.dtype)));
}

bool is_as_bound(const Bindings& one, const Bindings& other) {
  const auto is_same_argument = [](const Argument& a, const Argument& b) {
    return a.stored == b.stored && a.place == b.place;
  };
  const auto is_same_launch = [&](const BoundLaunch& a, const BoundLaunch& b) {
    return std::ranges::equal(a.arguments, b.arguments, is_same_argument) && a.sizes == b.sizes &&
           a.is_empty == b.is_empty;
  };
  return std::ranges::equal(one.launches, other.launches, is_same_launch) && one.outputs == other.outputs &&
         one.inputs == other.inputs && one.results == other.results && one.arena_bytes == other.arena_bytes;
}

bool has_no_elements(const BoundLaunch& launch) {
  return std::all_of(launch.arguments.begin() + static_cast<std::ptrdiff_t>(launch.inputs),
                     launch.arguments.end(), [](const Argument& argument) {
                       return std::ranges::find(argument.stored, 0) != argument.stored.end();
                     });
}

}  // namespace

/// Walks the program and its symbolic plan side by side.
class ProgramNumbers::Reader {
 public:
  Reader(ProgramNumbers& result, const MatchedKernels& matched, const Dims& sizes)
      : result_(result),
        symbolic_(result.symbolic_->with_symbols()),
        matched_(matched),
        sizes_(result.symbolic_->named(sizes)) {}

  /// False where a number is no expression. May throw Error.
  [[nodiscard]] bool read() {
    const auto is_weight = [](const Location& place) { return place.kind == BufferKind::weight; };
    if (!symbolic_.loops.empty() || std::ranges::any_of(result_.first_.outputs, is_weight)) return false;
    if (!read_kernels()) return false;
    for (std::size_t i = 0; i < symbolic_.launches.size(); ++i)
      if (!read_launch(i)) return false;
    for (const std::vector<Port>* ports : {&symbolic_.inputs, &symbolic_.outputs})
      for (const Port& port : *ports) add_all(port.type.shape);
    for (const BufferId root : result_.arena_.roots())
      result_.root_bytes_.push_back(number_of(bytes_of(buffer(root).type)));
    for (std::size_t i = 0; i < symbolic_.outputs.size(); ++i)
      if (result_.first_.outputs[i].kind == BufferKind::arena)
        add_place(symbolic_.launches.size(), i, symbolic_.outputs[i].buffer);
    return true;
  }

 private:
  [[nodiscard]] const Buffer& buffer(BufferId id) const {
    return symbolic_.buffers.at(static_cast<std::size_t>(id));
  }

  [[nodiscard]] Number number_of(const Extent& extent) {
    const auto [found, is_new] = known_.try_emplace(extent, static_cast<Number>(result_.expressions_.size()));
    if (is_new) result_.expressions_.push_back(extent);
    return found->second;
  }
  template <typename Numbers>
  void add_all(const Numbers& numbers) {
    for (const auto& number : numbers) result_.numbers_.push_back(number_of(number));
  }

  [[nodiscard]] bool read_kernels() {
    result_.kernels_.resize(result_.symbolic_->kernel_count());
    for (std::size_t i = 0; i < symbolic_.launches.size(); ++i)
      result_.kernels_.at(result_.symbolic_->kernel_of(i)) =
          static_cast<std::size_t>(result_.made_->launches.at(i).kernel);
    for (std::size_t number = 0; number < result_.kernels_.size(); ++number) {
      const Kernel& kernel = result_.made_->kernels.at(result_.kernels_[number]);
      std::vector<Extent>& sizes = result_.sizes_.emplace_back();
      symbols_.emplace_back();
      if (kernel.open == nullptr) {
        add_values(result_.symbolic_->expressions_of(number));
        continue;
      }
      const std::vector<Extent>* found = matched_.numbers_of(number, kernel);
      if (found == nullptr) return false;
      sizes = *found;
      auto next = sizes.begin();
      for (const auto& [name, info] : kernel.open->symbols.table) {
        result_.ranges_.push_back({number_of(*next), info.low, info.high});
        symbols_.back().emplace(name, *next++);
      }
      for (const Value& value : kernel.open->values()) add_conditions(value.type, symbols_.back());
    }
    return true;
  }

  /// A kernel for these numbers alone serves where they are the same.
  void add_values(const std::set<Extent>& expressions) {
    for (const Extent& each : expressions) {
      const std::int64_t value = each.at(sizes_);
      result_.ranges_.push_back({number_of(each), value, value});
    }
  }

  /// Of a value of an open kernel: see case_at.
  void add_conditions(const TensorType& type, const std::map<std::string, Extent>& symbols) {
    constexpr std::int64_t most_bytes = std::numeric_limits<std::int32_t>::max();
    result_.ranges_.push_back({number_of(bytes_of(type).substitute(symbols)), 0, most_bytes});
    if (!has_outer_blocks(type)) return;
    Extent pixels = 1;
    for (std::size_t axis = 2; axis < type.shape.size(); ++axis) pixels *= type.shape[axis];
    if (!pixels.is_known())
      result_.images_.emplace_back(number_of(pixels.substitute(symbols)),
                                   number_of(type.shape[0].substitute(symbols)));
  }

  [[nodiscard]] bool read_launch(std::size_t i) {
    const std::size_t number = result_.symbolic_->kernel_of(i);
    const Kernel& kernel = result_.made_->kernels.at(result_.kernels_[number]);
    const BoundLaunch& bound = result_.first_.launches.at(i);
    for (std::size_t k = 0; k < bound.arguments.size(); ++k)
      if (!read_argument(i, k, kernel, symbols_[number])) return false;
    add_all(result_.sizes_[number]);
    return true;
  }

  [[nodiscard]] bool read_argument(std::size_t i, std::size_t k, const Kernel& kernel,
                                   const std::map<std::string, Extent>& symbols) {
    const Argument& argument = result_.first_.launches[i].arguments[k];
    const BufferId id = symbolic_.launches[i].arguments.at(k);
    if (argument.window) return false;
    if (argument.place.kind == BufferKind::arena) add_place(i, k, id);
    if (argument.place.kind == BufferKind::weight) {
      const std::size_t weight = result_.symbolic_->first_of(static_cast<std::size_t>(buffer(id).index));
      const auto slot = static_cast<PackedWeights::Slot>(argument.place.number);
      if (weights_.try_emplace(slot, weight).first->second != weight) return false;  // equal here alone
      if (!result_.symbolic_->is_table(weight)) {
        add_all(argument.stored);
        return true;
      }
      const BufferId own = result_.made_->launches[i].arguments[k];
      if (argument.stored != result_.made_->buffers.at(static_cast<std::size_t>(own)).type.dims())
        return false;  // packed
      result_.tables_.push_back({slot, weight});
    }
    if (kernel.open == nullptr) {
      add_all(argument.stored);
      return true;
    }
    const Graph& body = *kernel.open;
    const ValueId value = k < body.inputs.size() ? body.inputs[k] : body.outputs.at(k - body.inputs.size());
    if (argument.place.kind != BufferKind::weight) add_bytes(body.type(value), buffer(id).type, symbols);
    for (const Extent& extent : body.type(value).storage_shape())
      result_.numbers_.push_back(number_of(extent.substitute(symbols)));
    return true;
  }

  void add_bytes(const TensorType& of_kernel, const TensorType& of_plan,
                 const std::map<std::string, Extent>& symbols) {
    const Extent taken = bytes_of(of_kernel).substitute(symbols), given = bytes_of(of_plan);
    if (taken != given) result_.bytes_.emplace_back(number_of(taken), number_of(given));
  }

  void add_place(std::size_t launch, std::size_t argument, BufferId id) {
    Extent offset;
    for (; buffer(id).alias_of >= 0; id = buffer(id).alias_of)
      offset += result_.symbolic_->alias_offset(static_cast<std::size_t>(id));
    const std::vector<BufferId>& roots = result_.arena_.roots();
    const auto root = static_cast<std::size_t>(std::ranges::find(roots, id) - roots.begin());
    result_.places_.push_back({launch, argument, root, number_of(offset)});
  }

  ProgramNumbers& result_;
  const Plan& symbolic_;
  const MatchedKernels& matched_;
  const SymbolValues sizes_;
  std::vector<std::map<std::string, Extent>> symbols_;  ///< of open kernels, per kernel of the symbolic plan
  std::map<Extent, Number> known_;
  std::map<PackedWeights::Slot, std::size_t> weights_;  ///< of the symbolic plan
};

std::optional<ProgramNumbers> ProgramNumbers::of(const std::shared_ptr<const SymbolicPlan>& symbolic,
                                                 const MatchedKernels& matched, const Dims& sizes,
                                                 const std::shared_ptr<const Plan>& made,
                                                 const Bindings& bindings, bool reuse_memory) {
  ProgramNumbers result(symbolic, made, bindings, reuse_memory);
  try {
    if (!Reader(result, matched, sizes).read()) return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // an expression that grows too long
  }
  const std::optional<Bindings> again = result.at(sizes);
  return again && is_as_bound(*again, bindings) ? std::optional(std::move(result)) : std::nullopt;
}

ProgramNumbers::ProgramNumbers(std::shared_ptr<const SymbolicPlan> symbolic, std::shared_ptr<const Plan> made,
                               Bindings first, bool reuse_memory)
    : symbolic_(std::move(symbolic)),
      made_(std::move(made)),
      first_(std::move(first)),
      arena_(symbolic_->with_symbols(), reuse_memory),
      reuse_memory_(reuse_memory) {}

/// nullopt where kernels are not for these sizes.
std::optional<std::vector<std::int64_t>> ProgramNumbers::evaluate(const SymbolValues& sizes) const {
  std::vector<std::int64_t> values = extents_at(expressions_, sizes);
  const auto holds = [&](const Range& range) {
    return values[range.number] >= range.low && values[range.number] <= range.high;
  };
  const auto lies_alike = [&](const std::pair<Number, Number>& each) {
    return values[each.first] != 1 || values[each.second] <= 1;
  };
  const auto is_same = [&](const std::pair<Number, Number>& each) {
    return values[each.first] == values[each.second];
  };
  if (!std::ranges::all_of(ranges_, holds) || !std::ranges::all_of(images_, lies_alike) ||
      !std::ranges::all_of(bytes_, is_same))
    return std::nullopt;
  return values;
}

void ProgramNumbers::place(Bindings& bindings, const std::vector<std::int64_t>& values) const {
  std::vector<std::int64_t> bytes;
  bytes.reserve(root_bytes_.size());
  for (const Number each : root_bytes_) bytes.push_back(values[each]);
  const BlockPlaces placed = arena_.at(bytes);
  bindings.arena_bytes = placed.bytes;
  bindings.values.clear();
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bindings.values.push_back({placed.offsets[i], bytes[i], arena_.ranges()[i]});
  for (const auto& [launch, argument, root, offset] : places_) {
    Location& place = launch < bindings.launches.size() ? bindings.launches[launch].arguments[argument].place
                                                        : bindings.outputs[argument];
    place.number = placed.offsets.at(root) + values[offset];
  }
}

std::optional<Bindings> ProgramNumbers::at(const Dims& sizes) const {
  std::optional<Bindings> bindings = first_;
  if (!change(*bindings, sizes)) bindings.reset();
  return bindings;
}

bool ProgramNumbers::change(Bindings& bindings, const Dims& sizes) const {
  const SymbolValues named = symbolic_->named(sizes);
  try {
    const std::optional<std::vector<std::int64_t>> values = evaluate(named);
    if (!values) return false;
    bindings.own_weights = first_.own_weights;
    auto next = numbers_.begin();
    for_each_number(bindings, [&](std::int64_t& number) { number = (*values)[*next++]; });
    for (BoundLaunch& launch : bindings.launches) launch.is_empty = has_no_elements(launch);
    place(bindings, *values);
    for (const Table& table : tables_)
      bindings.own_weights.insert_or_assign(table.slot, aligned(symbolic_->weight_at(table.weight, named)));
    return true;
  } catch (const Error&) {
    return false;  // numbers that overflow, or a table that is longer than those that are known
  }
}

std::shared_ptr<const Plan> ProgramNumbers::plan_at(const Dims& sizes) const {
  const auto kernel_at = [&](std::size_t number, const SymbolValues& named) -> std::optional<Kernel> {
    const Kernel& kernel = made_->kernels.at(kernels_.at(number));
    if (kernel.open == nullptr) return std::nullopt;
    Dims numbers;
    for (const Extent& each : sizes_.at(number)) numbers.push_back(each.at(named));
    return case_at(kernel, numbers);
  };
  std::optional<Plan> plan = symbolic_->at(sizes, reuse_memory_, kernel_at);
  if (!plan) throw InternalError("a program's plan is told of no more");
  return std::make_shared<const Plan>(with_weights_shared(*std::move(plan)));
}

}  // namespace sylvite
