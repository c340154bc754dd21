#include "lowering/plan/symbolic_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "frontend/graph/bind_symbols.h"
#include "frontend/values/extents_at.h"
#include "lowering/plan/join_bodies.h"
#include "lowering/plan/memory_plan.h"
#include "lowering/plan/open_kernel.h"
#include "lowering/plan/plan_verifier.h"

namespace sylvite {
namespace {

/// A type that differs in more than extents, or a number that is no expression.
struct NotJoined {};

/// Beyond difference_of.
bool is_alike(const Plan& a, const Plan& b) {
  const auto is_beside = [](const PlanLoop& loop) { return loop.beside; };
  const auto have_same_names = [](const std::vector<Port>& one, const std::vector<Port>& other) {
    return std::ranges::equal(one, other, {}, &Port::name, &Port::name);
  };
  return difference_of(a, b).empty() && a.weights.size() == b.weights.size() &&
         std::ranges::equal(a.loops, b.loops, {}, is_beside, is_beside) &&
         have_same_names(a.inputs, b.inputs) && have_same_names(a.outputs, b.outputs) &&
         have_same_names(a.states, b.states);
}

/// What type rules say of it is part of what `fit` knows from now on.
std::optional<Graph> joined_body(const std::vector<const Graph*>& bodies, ExtentFit& fit) {
  return join_bodies(
      bodies, [&](const Dims& extents, Axis) { return fit.of(extents); },
      [&](const Extent& extent) { fit.suggest(extent); },
      [&](const Extent& one, const Extent& other) { fit.equate(one, other); });
}

void add_expressions(const Graph& graph, std::set<Extent>& expressions);

void add_expressions(const Attribute& attribute, std::set<Extent>& expressions) {
  if (const auto* extents = std::get_if<std::vector<Extent>>(&attribute))
    expressions.insert(extents->begin(), extents->end());
  else if (const auto* part = std::get_if<GraphAttribute>(&attribute))
    add_expressions(*part->graph, expressions);
}

void add_expressions(const Graph& graph, std::set<Extent>& expressions) {
  for (const Value& value : graph.values())
    expressions.insert(value.type.shape.begin(), value.type.shape.end());
  for (const Node& node : graph.nodes())
    for (const auto& [name, attribute] : node.attributes.items()) add_expressions(attribute, expressions);
}

/// How large the windows of convolutions are: small images have windows without the taps that only read borders.
std::string windows_text(const Graph& body) {
  std::string text;
  for (const Node& node : body.nodes())
    if (node.op == Op::conv) text += fmt::format(" {}", body.type(node.inputs.at(1)).to_string());
  return text;
}

std::vector<const SizeFacts*> facts_of(const std::vector<PlanSample>& samples) {
  std::vector<const SizeFacts*> facts;
  facts.reserve(samples.size());
  for (const PlanSample& sample : samples) facts.push_back(&sample.facts);
  return facts;
}

/// Layers that differ at most sizes may be equal at some.
void merge_equal_kernels(Plan& plan) {
  using Identity = std::pair<std::string_view, Dims>;
  const auto identity_of = [](const Kernel& kernel) { return Identity(kernel.text, kernel.sizes); };
  std::map<Identity, std::int32_t> numbers;
  for (std::size_t i = 0; i < plan.kernels.size(); ++i)
    numbers.try_emplace(identity_of(plan.kernels[i]), static_cast<std::int32_t>(i));
  if (numbers.size() == plan.kernels.size()) return;
  std::vector<Kernel> unique;
  std::vector<std::int32_t> moved(plan.kernels.size());
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    const auto first = static_cast<std::size_t>(numbers.at(identity_of(plan.kernels[i])));
    moved[i] = first == i ? static_cast<std::int32_t>(unique.size()) : moved[first];
    if (first == i) unique.push_back(plan.kernels[i]);
  }
  for (Launch& launch : plan.launches) launch.kernel = moved[static_cast<std::size_t>(launch.kernel)];
  plan.kernels = std::move(unique);
}

}  // namespace

/// Walks the samples side by side. Throws NotJoined.
class SymbolicPlan::Joiner {
 public:
  Joiner(const std::vector<FitSymbol>& symbols, const std::vector<PlanSample>& samples,
         const std::vector<Extent>& said)
      : samples_(samples), said_(said), followed_(facts_of(samples)), fit_(symbols, sizes_of(samples)) {
    for (const Extent& each : said) fit_.suggest(each);
    for (const FitSymbol& symbol : symbols) result_.names_.push_back(symbol.name);
  }

  [[nodiscard]] std::optional<SymbolicPlan> join() {
    const Plan& first = *samples_[0].plan;
    const auto fits = [&](const PlanSample& sample) { return is_alike(first, *sample.plan); };
    if (!fit_.is_determined() || !std::ranges::all_of(samples_, fits)) return std::nullopt;
    result_.plan_ = first;
    result_.followers_ = fit_.followers();
    try {
      number_kernels();
      for (std::size_t i = 0; i < kernels_.size(); ++i) add_kernel(i);
      for (std::size_t i = 0; i < first.loops.size(); ++i) add_loop(i);
      for (std::size_t i = 0; i < first.buffers.size(); ++i) add_buffer(i);
      for (std::size_t i = 0; i < first.buffers.size(); ++i) equate_alias(i);
      join_ports(&Plan::inputs);
      join_ports(&Plan::outputs);
      join_ports(&Plan::states);
      for (std::size_t i = 0; i < first.weights.size(); ++i) add_weight(i);
      add_decisions();
    } catch (const NotJoined&) {
      return std::nullopt;
    }
    return std::move(result_);
  }

 private:
  template <typename Get>
  Extent number(const Get& get) {
    std::vector<std::int64_t> values;
    values.reserve(samples_.size());
    for (const PlanSample& sample : samples_) values.push_back(get(*sample.plan));
    const std::optional<Extent> found = fit_.of(values);
    if (!found) throw NotJoined();
    return *found;
  }

  template <typename Get>
  TensorType type(const Get& get) {
    std::vector<const TensorType*> types;
    types.reserve(samples_.size());
    for (const PlanSample& sample : samples_) types.push_back(&get(*sample.plan));
    std::optional<TensorType> joined = join_types(types, Rows::are_short, join_);
    if (!joined) throw NotJoined();
    return std::move(*joined);
  }

  /// Launches have one kernel where they have one in all samples: at some sizes alone, other layers may have it, too.
  void number_kernels() {
    std::map<std::vector<const Kernel*>, std::int32_t> numbers;
    for (std::size_t i = 0; i < samples_[0].plan->launches.size(); ++i) {
      std::vector<const Kernel*> all;
      all.reserve(samples_.size());
      for (const PlanSample& sample : samples_)
        all.push_back(&sample.plan->kernels.at(static_cast<std::size_t>(sample.plan->launches[i].kernel)));
      const auto [found, is_new] = numbers.try_emplace(all, static_cast<std::int32_t>(kernels_.size()));
      if (is_new) kernels_.push_back(std::move(all));
      result_.plan_.launches[i].kernel = found->second;
    }
    result_.plan_.kernels.clear();
    for (const std::vector<const Kernel*>& all : kernels_) result_.plan_.kernels.push_back(*all[0]);
  }

  void add_kernel(std::size_t number) {
    followed_.tell(fit_);
    const Kernel& first = *kernels_[number][0];
    SymbolicKernel& added = result_.kernels_.emplace_back();
    added.input_is_weight = first.input_is_weight;
    std::vector<const Graph*> bodies;
    bool is_same = true;
    for (const Kernel* kernel : kernels_[number]) {
      if (kernel->open != nullptr || kernel->input_is_weight != first.input_is_weight) throw NotJoined();
      is_same = is_same && kernel->text == first.text;
      bodies.push_back(&kernel->body);
    }
    if (is_same) return;
    added.body = joined_body(bodies, fit_);
    if (!added.body) throw NotJoined();
    result_.plan_.kernels[number] = Kernel();
  }

  /// A value that takes turns between two places ends in one or the other by whether the trips are even.
  void add_loop(std::size_t i) {
    const Extent trips = number([&](const Plan& plan) { return plan.loops[i].trips; });
    fit_.suggest(mod(trips, 2) + 1);  // what is suggested is never 0
    result_.trips_.push_back(trips);
  }

  void add_buffer(std::size_t i) {
    result_.plan_.buffers[i].type =
        type([&](const Plan& plan) -> const TensorType& { return plan.buffers[i].type; });
    SymbolicBuffer& added = result_.buffers_.emplace_back();
    if (result_.plan_.buffers[i].window) add_window(i, added);
    added.alias_offset = number([&](const Plan& plan) { return plan.buffers[i].alias_offset; });
  }

  /// A reshape between kernels.
  void equate_alias(std::size_t i) {
    const auto whole = static_cast<std::size_t>(result_.plan_.buffers[i].alias_of);
    if (result_.plan_.buffers[i].alias_of < 0) return;
    const auto count = [](const Plan& plan, std::size_t number) {
      return plan.buffers[number].type.element_count();
    };
    for (const PlanSample& sample : samples_)
      if (count(*sample.plan, i) != count(*sample.plan, whole)) return;
    const std::optional<Extent> one = element_count(result_.plan_.buffers[i].type.shape);
    const std::optional<Extent> other = element_count(result_.plan_.buffers[whole].type.shape);
    if (one && other) fit_.equate(*one, *other);
  }

  void add_window(std::size_t i, SymbolicBuffer& added) {
    const auto of_window = [&](std::int64_t Window::* member) {
      return number([&](const Plan& plan) { return (*plan.buffers[i].window).*member; });
    };
    added.stride = of_window(&Window::stride);
    added.phase = of_window(&Window::phase);
    added.period = of_window(&Window::period);
    for (const Extent& trips : result_.trips_)
      fit_.suggest(added.stride * (trips - 1));  // where the last begins
  }

  void join_ports(std::vector<Port> Plan::* ports) {
    for (std::size_t i = 0; i < (result_.plan_.*ports).size(); ++i)
      (result_.plan_.*ports)[i].type =
          type([&](const Plan& plan) -> const TensorType& { return (plan.*ports)[i].type; });
  }

  /// A weight that is another in all samples is that one.
  [[nodiscard]] std::optional<std::size_t> same_as(std::size_t i) {
    std::string text;
    for (const PlanSample& sample : samples_) {
      const Tensor& weight = sample.plan->weights[i];
      text += fmt::format("{} {}\n", weight.identity(), weight.type().to_string());
    }
    const auto [found, is_new] = numbers_of_weights_.try_emplace(std::move(text), i);
    return is_new ? std::nullopt : std::optional(found->second);
  }

  void add_weight(std::size_t i) {
    const auto at = [&](const PlanSample& sample) -> const Tensor& { return sample.plan->weights[i]; };
    if (const std::optional<std::size_t> same = same_as(i)) {
      result_.weights_.push_back({{}, {}, same});
      return;
    }
    std::vector<TensorType> types;
    types.reserve(samples_.size());
    for (const PlanSample& sample : samples_) types.push_back(at(sample).type());
    std::vector<const TensorType*> all;
    all.reserve(types.size());
    for (const TensorType& each : types) all.push_back(&each);
    const std::optional<TensorType> joined = join_types(all, Rows::are_short, join_);
    if (!joined) throw NotJoined();
    SymbolicWeight& added = result_.weights_.emplace_back();
    added.dims.assign(joined->shape.begin(), joined->shape.end());
    const Tensor& longest = at(*std::ranges::max_element(
        samples_, {}, [&](const PlanSample& sample) { return at(sample).byte_size(); }));
    result_.plan_.weights[i] = longest;
    const bool are_first_bytes =
        std::ranges::all_of(samples_, [&](const PlanSample& sample) { return begins(longest, at(sample)); });
    if (are_first_bytes) return;
    std::vector<Tensor> all_tables;
    all_tables.reserve(samples_.size());
    for (const PlanSample& sample : samples_) all_tables.push_back(at(sample));
    added.table = fit_table(all_tables, fit_);
    if (!added.table) throw NotJoined();
  }

  void add_decisions() {
    std::optional<SizeDecisions> found = SizeDecisions::of(facts_of(samples_), fit_, said_);
    if (!found) throw NotJoined();
    result_.decisions_ = *std::move(found);
  }

  const std::vector<PlanSample>& samples_;
  const std::vector<Extent>& said_;
  FollowedFacts followed_;
  std::vector<std::vector<const Kernel*>> kernels_;                  ///< by number, of each sample
  std::unordered_map<std::string, std::size_t> numbers_of_weights_;  ///< by what they are in each sample
  ExtentFit fit_;
  JoinExtent join_ = [this](const Dims& extents, Axis) { return fit_.of(extents); };
  SymbolicPlan result_;
};

/// Numbers for the symbols. Throws Error where they make no plan.
class SymbolicPlan::Maker {
 public:
  Maker(const SymbolicPlan& symbolic, const Dims& sizes)
      : symbolic_(symbolic), values_(symbolic.named(sizes)) {}

  [[nodiscard]] bool decides_alike() const {
    return hold_at(symbolic_.followers_, values_) && symbolic_.decisions_.hold_at(values_);
  }

  [[nodiscard]] Plan make(bool reuse_memory, const KernelAt& kernel_at) {
    if (!decides_alike()) throw UnsupportedError("an import would decide otherwise at these sizes");
    Plan plan = symbolic_.plan_;
    for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
      const SymbolicKernel& kernel = symbolic_.kernels_[i];
      std::optional<Kernel> other = kernel_at ? kernel_at(i, values_) : std::nullopt;
      if (other)
        plan.kernels[i] = *std::move(other);
      else if (kernel.body)
        plan.kernels[i] = make_kernel(bind_symbols(*kernel.body, values_), kernel.input_is_weight);
    }
    merge_equal_kernels(plan);
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) set_buffer(plan.buffers[i], symbolic_.buffers_[i]);
    check_elements(plan);
    for (std::size_t i = 0; i < plan.loops.size(); ++i) plan.loops[i].trips = symbolic_.trips_[i].at(values_);
    for (std::vector<Port>* ports : {&plan.inputs, &plan.outputs, &plan.states})
      for (Port& port : *ports) bind(port.type);
    for (std::size_t i = 0; i < plan.weights.size(); ++i)
      if (const auto& same = symbolic_.weights_[i].same_as)
        plan.weights[i] = plan.weights[*same];
      else
        plan.weights[i] = symbolic_.weight_at(i, values_);
    place_buffers(plan, reuse_memory);
    verify(plan);
    return plan;
  }

 private:
  void bind(TensorType& type) const {
    for (Extent& extent : type.shape)
      if (!extent.is_known()) extent = extent.at(values_);
  }

  void set_buffer(Buffer& buffer, const SymbolicBuffer& symbolic) const {
    bind(buffer.type);
    buffer.alias_offset = symbolic.alias_offset.at(values_);
    if (buffer.window)
      buffer.window = {symbolic.stride.at(values_), symbolic.phase.at(values_), symbolic.period.at(values_)};
  }

  /// An import has no kernels for what has no elements (fold_empty), but those of all samples.
  void check_elements(const Plan& plan) const {
    for (const Launch& launch : plan.launches)
      for (const BufferId id : launch.arguments) {
        const auto number = static_cast<std::size_t>(id);
        if (plan.buffers.at(number).type.element_count() != 0) continue;
        const Shape& shape = symbolic_.plan_.buffers.at(number).type.shape;
        if (std::ranges::find(shape, Extent(0)) == shape.end())
          throw UnsupportedError("a kernel has nothing to do at these sizes");
      }
  }

  const SymbolicPlan& symbolic_;
  SymbolValues values_;
};

std::optional<SymbolicPlan> SymbolicPlan::of(const std::vector<FitSymbol>& symbols,
                                             const std::vector<PlanSample>& samples,
                                             const std::vector<Extent>& said) {
  return Joiner(symbols, samples, said).join();
}

std::optional<Plan> SymbolicPlan::at(const Dims& sizes, bool reuse_memory, const KernelAt& kernel_at) const {
  try {
    return Maker(*this, sizes).make(reuse_memory, kernel_at);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool SymbolicPlan::takes(const std::vector<Dims>& inputs, const Dims& sizes) const {
  const SymbolValues values = named(sizes);
  return std::ranges::equal(plan_.inputs, inputs, [&](const Port& port, const Dims& dims) {
    return extents_at({port.type.shape.begin(), port.type.shape.end()}, values) == dims;
  });
}

bool SymbolicPlan::decides_alike(const Dims& sizes) const {
  return Maker(*this, sizes).decides_alike();
}

SymbolValues SymbolicPlan::named(const Dims& sizes) const {
  SymbolValues values;
  for (std::size_t i = 0; i < sizes.size(); ++i) values[names_[i]] = sizes[i];
  return values;
}

std::set<Extent> SymbolicPlan::expressions_of(std::size_t kernel) const {
  std::set<Extent> expressions;
  if (const std::optional<Graph>& body = kernels_.at(kernel).body) add_expressions(*body, expressions);
  std::erase_if(expressions, [](const Extent& each) { return each.is_known(); });
  return expressions;
}

bool SymbolicPlan::is_table(std::size_t weight) const {
  const SymbolicWeight& symbolic = weights_[first_of(weight)];
  return symbolic.table || !std::ranges::all_of(symbolic.dims, &Extent::is_known);
}

Tensor SymbolicPlan::weight_at(std::size_t weight, const SymbolValues& sizes) const {
  const std::size_t number = first_of(weight);
  const SymbolicWeight& symbolic = weights_[number];
  const Dims dims = extents_at(symbolic.dims, sizes);
  if (symbolic.table) return symbolic.table->at(sizes).reshaped(dims);
  const Tensor& longest = plan_.weights[number];
  if (dims == longest.dims()) return longest;
  if (checked_product(dims, "a weight") > longest.size())
    throw UnsupportedError("a table of the model, {}, is longer at these sizes", longest.type().to_string());
  const auto kept = std::make_shared<const Tensor>(longest);
  return {longest.dtype(), dims, std::shared_ptr<const void>(kept, kept->data()), kept->data()};
}

std::vector<Dims> sizes_of(const std::vector<PlanSample>& samples) {
  std::vector<Dims> sizes;
  sizes.reserve(samples.size());
  for (const PlanSample& sample : samples) sizes.push_back(sample.sizes);
  return sizes;
}

void suggest_extents(const std::vector<PlanSample>& samples, ExtentFit& fit) {
  FollowedFacts followed(facts_of(samples));
  for (std::size_t i = 0; i < samples[0].plan->launches.size(); ++i) {
    std::vector<const Graph*> bodies;
    bodies.reserve(samples.size());
    for (const auto& [sizes, plan, facts] : samples)
      bodies.push_back(&plan->kernels.at(static_cast<std::size_t>(plan->launches.at(i).kernel)).body);
    followed.tell(fit);
    (void)joined_body(bodies, fit);
  }
}

std::string difference_of(const Plan& a, const Plan& b) {
  const auto arguments_of = [](const Launch& launch) { return launch.arguments; };
  if (!std::ranges::equal(a.launches, b.launches, {}, arguments_of, arguments_of)) return "kernels";
  const auto same_loop = [](const PlanLoop& one, const PlanLoop& other) {
    return one.first == other.first && one.end == other.end;
  };
  if (!std::ranges::equal(a.loops, b.loops, same_loop)) return "loops";
  const auto same_buffer = [](const Buffer& one, const Buffer& other) {
    return one.kind == other.kind && one.index == other.index && one.alias_of == other.alias_of &&
           one.window.has_value() == other.window.has_value();
  };
  const auto same_ports = [](const std::vector<Port>& one, const std::vector<Port>& other) {
    return std::ranges::equal(one, other, {}, &Port::buffer, &Port::buffer);
  };
  const bool same_values = std::ranges::equal(a.buffers, b.buffers, same_buffer) &&
                           same_ports(a.inputs, b.inputs) && same_ports(a.outputs, b.outputs) &&
                           same_ports(a.states, b.states);
  return same_values ? "" : "values between its kernels";
}

bool begins(const Tensor& longest, const Tensor& beginning) {
  if (beginning.dtype() != longest.dtype() || beginning.byte_size() > longest.byte_size()) return false;
  return beginning.identity() == longest.identity() ||
         std::memcmp(beginning.data(), longest.data(), static_cast<std::size_t>(beginning.byte_size())) == 0;
}

std::string plan_structure(const Plan& plan) {
  std::string text;
  for (const Launch& launch : plan.launches) {
    const Kernel& kernel = plan.kernels.at(static_cast<std::size_t>(launch.kernel));
    text += skeleton(kernel) + windows_text(kernel.body);
    for (const BufferId argument : launch.arguments) text += fmt::format(" {}", argument);
    text += '\n';
  }
  for (const PlanLoop& loop : plan.loops) text += fmt::format("{} {}\n", loop.first, loop.end);
  for (const Buffer& buffer : plan.buffers)
    text += fmt::format("{} {} {}\n", static_cast<int>(buffer.kind), buffer.index, buffer.alias_of);
  return text;
}

}  // namespace sylvite
