#include "schedules/schedule.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <span>

#include "base/error.h"
#include "lowering/algorithms/algorithm.h"
#include "schedules/directives/own_directives.h"

namespace sylvite {
namespace {

using Halide::Func;
using Halide::LoopLevel;
using Halide::MemoryType;
using Halide::Partition;
using Halide::RVar;
using Halide::Stage;
using Halide::TailStrategy;
using Halide::Var;
using Halide::VarOrRVar;

// ---- names ------------------------------------------------------------------------------------------------

template <typename T>
struct Named {
  std::string_view name;
  T value;
};

constexpr Named<TailStrategy> tail_strategies[] = {
    {"TailStrategy::Auto", TailStrategy::Auto},
    {"TailStrategy::RoundUp", TailStrategy::RoundUp},
    {"TailStrategy::GuardWithIf", TailStrategy::GuardWithIf},
    {"TailStrategy::Predicate", TailStrategy::Predicate},
    {"TailStrategy::PredicateLoads", TailStrategy::PredicateLoads},
    {"TailStrategy::PredicateStores", TailStrategy::PredicateStores},
    {"TailStrategy::ShiftInwards", TailStrategy::ShiftInwards},
    {"TailStrategy::ShiftInwardsAndBlend", TailStrategy::ShiftInwardsAndBlend},
    {"TailStrategy::RoundUpAndBlend", TailStrategy::RoundUpAndBlend},
};
constexpr Named<MemoryType> memory_types[] = {
    {"MemoryType::Auto", MemoryType::Auto},       {"MemoryType::Heap", MemoryType::Heap},
    {"MemoryType::Stack", MemoryType::Stack},     {"MemoryType::Register", MemoryType::Register},
    {"MemoryType::AMXTile", MemoryType::AMXTile}, {"MemoryType::GPUShared", MemoryType::GPUShared},
};
constexpr Named<Partition> partitions[] = {
    {"Partition::Auto", Partition::Auto},
    {"Partition::Never", Partition::Never},
    {"Partition::Always", Partition::Always},
};

template <typename T, std::size_t N>
T named(const Named<T> (&table)[N], const std::string& name) {
  for (const Named<T>& row : table)
    if (row.name == name) return row.value;
  throw CompileError("'{}' is no choice; the first of {} is {}", name, N, table[0].name);
}

// ---- applying ---------------------------------------------------------------------------------------------

/// What a directive acts on: one stage of one Func, and its arguments.
struct Target {
  Algorithm& algorithm;
  Func func;
  Stage stage;
  const Decision& decision;

  [[nodiscard]] const std::string& argument(std::size_t i) const { return decision.arguments.at(i); }
  [[nodiscard]] int number(std::size_t i) const { return decision.number(i); }
  [[nodiscard]] bool has(std::size_t i) const { return i < decision.arguments.size(); }

  [[nodiscard]] VarOrRVar var(std::size_t i) const { return loop(argument(i)); }
  /// A loop of the stage by name; the stage says whether it is a reduction variable.
  [[nodiscard]] VarOrRVar loop(const std::string& name) const {
    const Halide::Internal::Function function = func.function();
    const auto& definition = decision.update < 0 ? function.definition() : function.update(decision.update);
    for (const Halide::Internal::Dim& dim : definition.schedule().dims())
      if (dim.var == name || dim.var.ends_with("." + name)) return VarOrRVar(name, dim.is_rvar());
    throw CompileError("the stage has no loop '{}'", name);
  }
  /// A new loop made from an existing one, of the same kind.
  [[nodiscard]] VarOrRVar made_from(const VarOrRVar& old, std::size_t i) const {
    return VarOrRVar(argument(i), old.is_rvar);
  }
  [[nodiscard]] TailStrategy tail(std::size_t i) const {
    return has(i) ? named(tail_strategies, argument(i)) : TailStrategy::Auto;
  }
  [[nodiscard]] LoopLevel level() const {
    const auto consumer = algorithm.stages.find(argument(0));
    if (consumer == algorithm.stages.end()) throw CompileError("no stage is called '{}'", argument(0));
    return LoopLevel(consumer->second, VarOrRVar(argument(1), false));
  }
};

void apply_split(Target& t) {
  const VarOrRVar old = t.var(0);
  t.stage.split(old, t.made_from(old, 1), t.made_from(old, 2), t.number(3), t.tail(4));
}

void apply_fuse(Target& t) {
  const VarOrRVar inner = t.var(0);
  t.stage.fuse(inner, t.var(1), t.made_from(inner, 2));
}

void apply_reorder(Target& t) {
  std::vector<VarOrRVar> order;
  order.reserve(t.decision.arguments.size());
  for (std::size_t i = 0; i < t.decision.arguments.size(); ++i) order.push_back(t.var(i));
  t.stage.reorder(order);
}

void apply_reorder_storage(Target& t) {
  std::vector<Var> order;
  order.reserve(t.decision.arguments.size());
  for (const std::string& name : t.decision.arguments) order.emplace_back(name);
  t.func.reorder_storage(order);
}

void apply_vectorize(Target& t) {
  t.has(1) ? t.stage.vectorize(t.var(0), t.number(1), t.tail(2)) : t.stage.vectorize(t.var(0));
}
void apply_unroll(Target& t) {
  t.has(1) ? t.stage.unroll(t.var(0), t.number(1), t.tail(2)) : t.stage.unroll(t.var(0));
}
void apply_parallel(Target& t) {
  t.has(1) ? t.stage.parallel(t.var(0), t.number(1), t.tail(2)) : t.stage.parallel(t.var(0));
}

/// The loops named, as Halide's fixed argument lists want them: one, two or three.
template <typename One, typename Two, typename Three>
void apply_to_loops(Target& t, One one, Two two, Three three) {
  switch (t.decision.arguments.size()) {
    case 1:
      return one(t.var(0));
    case 2:
      return two(t.var(0), t.var(1));
    default:
      return three(t.var(0), t.var(1), t.var(2));
  }
}

void apply_gpu_blocks(Target& t) {
  apply_to_loops(
      t, [&](const VarOrRVar& x) { t.stage.gpu_blocks(x); },
      [&](const VarOrRVar& x, const VarOrRVar& y) { t.stage.gpu_blocks(x, y); },
      [&](const VarOrRVar& x, const VarOrRVar& y, const VarOrRVar& z) { t.stage.gpu_blocks(x, y, z); });
}
void apply_gpu_threads(Target& t) {
  apply_to_loops(
      t, [&](const VarOrRVar& x) { t.stage.gpu_threads(x); },
      [&](const VarOrRVar& x, const VarOrRVar& y) { t.stage.gpu_threads(x, y); },
      [&](const VarOrRVar& x, const VarOrRVar& y, const VarOrRVar& z) { t.stage.gpu_threads(x, y, z); });
}

/// A stage by another name, with the same values: what its consumers read, to be kept elsewhere.
void apply_in(Target& t) {
  Func copy;
  if (t.has(1)) {
    const auto consumer = t.algorithm.stages.find(t.argument(1));
    if (consumer == t.algorithm.stages.end()) throw CompileError("no stage is called '{}'", t.argument(1));
    copy = t.func.in(consumer->second);
  } else {
    copy = t.func.in();
  }
  if (!t.algorithm.stages.emplace(t.argument(0), copy).second)
    throw CompileError("a stage '{}' exists already", t.argument(0));
}

void apply_rfactor(Target& t) {
  const Func partial = t.stage.rfactor(RVar(t.argument(1)), Var(t.argument(2)));
  if (!t.algorithm.stages.emplace(t.argument(0), partial).second)
    throw CompileError("a stage '{}' exists already", t.argument(0));
}

/// One row per directive of Halide's; the text form of each is the Halide C++ it stands for.
struct Directive {
  std::string_view name;
  std::size_t min_arguments;
  std::size_t max_arguments;
  bool of_func;  ///< acts on the whole Func: not allowed on update(k)
  std::function<void(Target&)> apply;
  std::string_view help;
};

constexpr std::size_t many = 16;
const Directive halide_directives[] = {
    // Loops of a stage.
    {"split", 4, 5, false, apply_split,
     "split(old, outer, inner, factor[, tail]): on reduction loops only GuardWithIf keeps the meaning"},
    {"fuse", 3, 3, false, apply_fuse, "fuse(inner, outer, fused): both loops pure, or both reduced"},
    {"reorder", 1, many, false, apply_reorder, "reorder(innermost, ..., outermost)"},
    {"vectorize", 1, 3, false, apply_vectorize,
     "vectorize(loop[, factor[, tail]]): a reduction loop needs atomic first"},
    {"unroll", 1, 3, false, apply_unroll,
     "unroll(loop[, factor[, tail]]): a bare loop must have a constant extent"},
    {"parallel", 1, 3, false, apply_parallel, "parallel(loop[, task_size[, tail]])"},
    {"serial", 1, 1, false, [](Target& t) { t.stage.serial(t.var(0)); }, "serial(loop)"},
    {"partition", 2, 2, false,
     [](Target& t) { t.stage.partition(t.var(0), named(partitions, t.argument(1))); },
     "partition(loop, Partition::Never): no separate edges of the loop; less code"},
    {"atomic", 0, 1, false, [](Target& t) { t.stage.atomic(t.has(0) && t.argument(0) == "true"); },
     "atomic(): the update is associative; its reduction loops may be vectorized"},
    {"rfactor", 3, 3, false, apply_rfactor,
     "Func part = v.update(0).rfactor(r, u): folds along r into part(..., u) first; the update must be "
     "associative"},
    {"gpu_blocks", 1, 3, false, apply_gpu_blocks,
     "gpu_blocks(x[, y[, z]]): iterations on blocks of a GPU; outermost loops, at most 65535 in y and z"},
    {"gpu_threads", 1, 3, false, apply_gpu_threads,
     "gpu_threads(x[, y[, z]]): iterations on threads of a block; inside gpu_blocks"},
    {"gpu_lanes", 1, 1, false, [](Target& t) { t.stage.gpu_lanes(t.var(0)); },
     "gpu_lanes(loop): iterations on the 32 lanes of a warp"},
    {"gpu_single_thread", 0, 0, false, [](Target& t) { t.stage.gpu_single_thread(); },
     "gpu_single_thread(): all of it in one thread of the GPU"},
    {"in", 1, 2, true, apply_in,
     "Func copy = v.in([consumer]): what its consumers, or one, read of v, as a stage of its own"},
    // Where a Func is computed and kept.
    {"compute_at", 2, 2, true, [](Target& t) { t.func.compute_at(t.level()); }, "compute_at(consumer, loop)"},
    {"compute_root", 0, 0, true, [](Target& t) { t.func.compute_root(); },
     "compute_root(): whole, before its consumers"},
    {"compute_inline", 0, 0, true, [](Target& t) { t.func.compute_inline(); },
     "compute_inline(): pure Funcs only"},
    {"store_at", 2, 2, true, [](Target& t) { t.func.store_at(t.level()); }, "store_at(consumer, loop)"},
    {"store_root", 0, 0, true, [](Target& t) { t.func.store_root(); }, "store_root()"},
    {"hoist_storage", 2, 2, true, [](Target& t) { t.func.hoist_storage(t.level()); },
     "hoist_storage(consumer, loop): allocate once outside, without sharing between iterations"},
    {"store_in", 1, 1, true, [](Target& t) { t.func.store_in(named(memory_types, t.argument(0))); },
     "store_in(MemoryType::Register): Register and Stack need constant extents"},
    // Extents.
    {"bound", 3, 3, true, [](Target& t) { t.func.bound(Var(t.argument(0)), t.number(1), t.number(2)); },
     "bound(var, min, extent): a promise, checked at run time"},
    {"bound_extent", 2, 2, true, [](Target& t) { t.func.bound_extent(Var(t.argument(0)), t.number(1)); },
     "bound_extent(var, extent): a promise, checked at run time"},
    {"align_bounds", 2, 3, true,
     [](Target& t) { t.func.align_bounds(Var(t.argument(0)), t.number(1), t.has(2) ? t.number(2) : 0); },
     "align_bounds(var, modulus[, remainder]): computes more, never less"},
    {"align_storage", 2, 2, true, [](Target& t) { t.func.align_storage(Var(t.argument(0)), t.number(1)); },
     "align_storage(var, elements): pads the stride outside var"},
    {"reorder_storage", 1, many, true, apply_reorder_storage, "reorder_storage(innermost, ..., outermost)"},
    {"fold_storage", 2, 2, true, [](Target& t) { t.func.fold_storage(Var(t.argument(0)), t.number(1)); },
     "fold_storage(var, extent): a circular buffer along var"},
};

/// What is not Halide's own is only checked here: its pass is added when the pipeline is made.
Directive checked(const OwnDirective& row) {
  const auto check = [&row](const Target& t) {
    if (!t.algorithm.stages.contains(t.decision.stage))
      throw CompileError("'{}' is an input; {} acts on stages", t.decision.stage, row.name);
    if (row.check != nullptr) row.check(t.algorithm, t.decision);
  };
  return {row.name, row.arguments, row.arguments, row.scope != DirectiveScope::stage, check, row.help};
}

const Directive* find_directive(std::string_view name) {
  static const std::vector<Directive> all = [] {
    std::vector<Directive> both(std::begin(halide_directives), std::end(halide_directives));
    std::ranges::transform(own_directives(), std::back_inserter(both), checked);
    return both;
  }();
  const auto found = std::ranges::find(all, name, &Directive::name);
  return found == all.end() ? nullptr : &*found;
}

std::string receiver(const Decision& decision) {
  const std::string update = decision.update < 0 ? "" : fmt::format(".update({})", decision.update);
  return decision.stage + update;
}

/// Directives whose first argument is the name of the Func that they make.
bool makes_stage(std::string_view directive) {
  return directive == "rfactor" || directive == "in";
}

/// The arguments that stand between the parentheses: not the name on the left of those that make a stage.
std::span<const std::string> call_arguments(const Decision& decision) {
  const std::span<const std::string> all(decision.arguments);
  return makes_stage(decision.directive) && !all.empty() ? all.subspan(1) : all;
}

std::string call(const Decision& decision) {
  return fmt::format(".{}({})", decision.directive, fmt::join(call_arguments(decision), ", "));
}

std::string statement(const Decision& decision) {
  const bool names_func = makes_stage(decision.directive) && !decision.arguments.empty();
  return (names_func ? "Func " + decision.arguments[0] + " = " : "") + receiver(decision) + call(decision);
}

/// An input, too, may be read through a copy: Func tile = in0.in();
Func stage_or_input(const Algorithm& algorithm, const std::string& name) {
  if (const auto stage = algorithm.stages.find(name); stage != algorithm.stages.end()) return stage->second;
  for (const Halide::ImageParam& input : algorithm.inputs)
    if (input.name() == name) return input;
  throw CompileError("no stage is called '{}'", name);
}

/// Halide makes no stage of an extern func by itself.
Stage definition_of(const Func& func) {
  return {func.function(), func.function().definition(), 0};
}

void apply_decision(Algorithm& algorithm, const Decision& decision) {
  const Directive* directive = find_directive(decision.directive);
  if (directive == nullptr) throw CompileError("no directive is called '{}'", decision.directive);
  const std::size_t count = decision.arguments.size();
  if (count < directive->min_arguments || count > directive->max_arguments)
    throw CompileError("wrong number of arguments; expected {}", directive->help);
  Func func = stage_or_input(algorithm, decision.stage);
  if (decision.update >= func.num_update_definitions())
    throw CompileError("stage '{}' has {} updates", decision.stage, func.num_update_definitions());
  if (directive->of_func && decision.update >= 0)
    throw CompileError("it acts on the whole stage; leave out .update()");
  Target target{algorithm, func, decision.update < 0 ? definition_of(func) : func.update(decision.update),
                decision};
  directive->apply(target);
}

// ---- reading ----------------------------------------------------------------------------------------------

/// A cursor over one line.
class LineParser {
 public:
  LineParser(std::string_view line, int line_number) : rest_(line), line_(line), line_number_(line_number) {}

  void parse(std::vector<Decision>& decisions) {
    std::string result_name;
    std::string name = word();
    if (name == "Func") {
      result_name = word();
      expect('=');
      name = word();
    }
    int update = -1;
    bool any = false;
    while (accept('.')) {
      const std::string directive = word();
      std::vector<std::string> arguments = parenthesised();
      if (directive == "update") {
        update = arguments.empty() ? 0 : update_number(arguments);
        continue;
      }
      if (makes_stage(directive)) {
        if (result_name.empty()) fail(fmt::format("{} needs a name: Func part = ...", directive));
        arguments.insert(arguments.begin(), result_name);
      }
      decisions.push_back({name, update, directive, std::move(arguments)});
      any = true;
    }
    expect(';');
    skip_space();
    if (!rest_.empty() || !any) fail("expected stage.directive(...);");
  }

 private:
  [[noreturn]] void fail(std::string_view reason) const {
    throw ModelError("schedule line {}: {}: {}", line_number_, reason, line_);
  }
  void skip_space() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t' || rest_.front() == '\r'))
      rest_.remove_prefix(1);
  }
  bool accept(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}'", c));
  }
  std::string word() {
    skip_space();
    const auto is_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':' || c == '-';
    };
    const auto* end = std::find_if_not(rest_.begin(), rest_.end(), is_word);
    std::string text(rest_.begin(), end);
    if (text.empty()) fail("expected a name");
    rest_.remove_prefix(text.size());
    return text;
  }
  std::vector<std::string> parenthesised() {
    expect('(');
    std::vector<std::string> arguments;
    if (accept(')')) return arguments;
    do {
      arguments.push_back(word());
    } while (accept(','));
    expect(')');
    return arguments;
  }
  int update_number(const std::vector<std::string>& arguments) const {
    int value = -1;
    const std::string& text = arguments.front();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (arguments.size() != 1 || error != std::errc() || end != text.data() + text.size() || value < 0)
      fail("update takes one number");
    return value;
  }

  std::string_view rest_;
  std::string_view line_;
  int line_number_;
};

}  // namespace

std::string Schedule::to_string() const {
  std::string text;
  const Decision* previous = nullptr;
  for (const Decision& decision : decisions) {
    const bool chains = previous != nullptr && !makes_stage(decision.directive) &&
                        !makes_stage(previous->directive) && receiver(*previous) == receiver(decision);
    if (chains) {
      text.erase(text.size() - 2);
      text += call(decision);
    } else {
      text += statement(decision);
    }
    text += ";\n";
    previous = &decision;
  }
  return text;
}

Schedule Schedule::parse(std::string_view text) {
  Schedule schedule;
  int line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    line = line.substr(0, line.find("//"));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    LineParser(line, line_number).parse(schedule.decisions);
  }
  return schedule;
}

int Decision::number(std::size_t i) const {
  const std::string& text = arguments.at(i);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw CompileError("'{}' is not a number", text);
  return value;
}

void Schedule::apply(Algorithm& algorithm) const {
  for (const Decision& decision : decisions) {
    try {
      apply_decision(algorithm, decision);
    } catch (const Halide::Error& error) {
      throw CompileError("{};: {}", statement(decision), error.what());
    } catch (const CompileError& error) {
      throw CompileError("{};: {}", statement(decision), error.what());
    }
  }
}

}  // namespace sylvite
