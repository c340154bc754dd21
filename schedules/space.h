#pragma once
// Schedule spaces: the ordered choices of candidates for a kernel. First is the heuristic default, last the
// reference.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "frontend/ops/gradient_kernels.h"
#include "lowering/plan/kernel.h"
#include "schedules/candidate.h"
#include "schedules/machine.h"

namespace sylvite {

/// One tunable number or choice of a space, with its values in the order to try.
struct Parameter {
  std::string name;
  std::vector<std::int64_t> values;
};
/// A value for each parameter of a space, in their order; it need not be one of those listed.
using Point = std::vector<std::int64_t>;
/// Values by the names of parameters: points as people read and write them.
using NamedValues = std::map<std::string, std::int64_t>;

/// A space for one kernel, over what was read of the kernel once. The kernel and the machine must outlive it.
struct BoundSpace {
  std::string name;  ///< of the Space; spaces_for fills it in
  std::vector<Parameter> parameters;
  Point heuristic;  ///< the choice without measuring: good enough for default mode
  /// Throws UnsupportedError for a point that makes no legal schedule, InternalError for one of another number
  /// of values.
  std::function<Candidate(const Point&)> at;
  /// Estimated run time in seconds at a point, for ranking only: asked for thousands of points, it allocates
  /// nothing. Empty when there is no estimate.
  std::function<double(const Point&)> cost;
};

/// REQUIRES a point of the space.
[[nodiscard]] NamedValues named_values(const BoundSpace& space, const Point& point);
/// The heuristic point with some values replaced. Throws UsageError for a name that is no parameter's.
[[nodiscard]] Point point_with(const BoundSpace& space, const NamedValues& replaced);

/// What a space makes of a kernel.
struct Binding {
  std::string refusal;  ///< why the space does not take the kernel; empty when it does
  BoundSpace space = {};
};

/// A schedule space. Spaces are rows of a table, best first, the reference last; no class hierarchy.
struct Space {
  std::string name;
  Binding (*bind)(const Kernel&, const Machine&);
  /// The space that this one goes before, though it stands after it, for kernels that take some time and
  /// where it costs clearly less. Both have costs, on a GPU those of their templates' estimates. Empty: none.
  std::string precedes = {};
  /// Which extents of an open kernel its schedules leave to the run.
  enum class Open : std::uint8_t {
    none,
    batches,
    extents,  ///< but no constant that counts: Op::extents
    all,
  } open = Open::none;
};

[[nodiscard]] const std::vector<Space>& space_table();      ///< for the CPU
[[nodiscard]] const std::vector<Space>& gpu_space_table();  ///< for machines with a GPU

/// A space refused for a kernel, and the reason, for `explain`.
struct Refusal {
  std::string space;
  std::string reason;
};
/// Spaces that take the kernel, in the order to try; `refusals`, if given, gets the others.
[[nodiscard]] std::vector<BoundSpace> spaces_for(const Kernel& kernel, const Machine& machine,
                                                 std::vector<Refusal>* refusals = nullptr);

/// Which operations that are gradients, Op::filter_gradient and its like, the machine has spaces for.
[[nodiscard]] GradientKernels gradient_kernels(const Machine& machine);
/// Why none of the templates and libraries for products, norms, scatters and transposes that default mode runs takes the kernel;
/// empty when one does. What they leave runs many times as long.
[[nodiscard]] std::string refuse_product_templates(const Kernel& kernel, const Machine& machine);

/// The first space that takes the kernel, at its heuristic point: what default mode runs.
[[nodiscard]] Candidate default_candidate(const Kernel& kernel, const Machine& machine);
/// The plain schedule: generic form, stages with updates at root, no vectors, no threads. Always legal; the
/// oracle of every trial.
[[nodiscard]] Candidate reference_candidate(const Kernel& kernel);
/// The same on the GPU, if the machine has one: a thread per element.
[[nodiscard]] Candidate reference_candidate(const Kernel& kernel, const Machine& machine);

}  // namespace sylvite
