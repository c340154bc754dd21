#pragma once
// Candidates: the ordered choices for a kernel. First is the heuristic default, last the reference.

#include <string>
#include <string_view>
#include <vector>

#include "lowering/kernel.h"
#include "schedules/schedule.h"

namespace sylvite {

/// What can be measured, stored, replayed and edited by hand. Text: "form: ..." on the first line, then the
/// schedule.
struct Candidate {
  Form form;
  Schedule schedule;

  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] static Candidate parse(std::string_view text);
  bool operator==(const Candidate&) const = default;
};

/// The machine a schedule is made for. Read once by detect_machine; part of the tuning key.
struct Machine {
  std::string target;      ///< Halide target string, e.g. x86-64-linux-avx-avx2-...
  int vector_floats = 16;  ///< f32 lanes of a vector register
  int vector_registers = 32;
  int threads = 1;  ///< threads a program will run with
  std::int64_t l1_bytes = 32 << 10;
  std::int64_t l2_bytes = 1 << 20;
  std::string cpu_name;
};
[[nodiscard]] Machine detect_machine(int threads);

/// A space refused for a kernel, and the reason, for `explain`.
struct Refusal {
  std::string space;
  std::string reason;
};

/// One tunable number or choice of a space, with its values in the order to try.
struct Parameter {
  std::string name;
  std::vector<std::int64_t> values;
};
using Point = std::map<std::string, std::int64_t>;

/// A schedule space: which kernels it takes, its parameters, and the candidate at each point. Spaces are rows
/// of a table (space_table), best first, the reference last; no class hierarchy.
struct Space {
  std::string name;
  /// Empty when the space takes the kernel, else why not.
  std::string (*refuses)(const Kernel&, const Machine&);
  std::vector<Parameter> (*parameters)(const Kernel&, const Machine&);
  /// The no-measurement choice: good enough for default mode.
  Point (*heuristic)(const Kernel&, const Machine&);
  /// REQUIRES refuses() empty. Throws UnsupportedError for a point that makes no legal schedule.
  Candidate (*at)(const Kernel&, const Machine&, const Point&);
  /// Estimated run time in seconds at a point, for ranking only. May be nullptr.
  double (*cost)(const Kernel&, const Machine&, const Point&);
};

[[nodiscard]] const std::vector<Space>& space_table();

/// The first space that takes the kernel, at its heuristic point: what default mode runs.
[[nodiscard]] Candidate default_candidate(const Kernel& kernel, const Machine& machine);
/// The plain schedule: generic form, stages with updates at root, no vectors, no threads. Always legal; the
/// oracle of every trial.
[[nodiscard]] Candidate reference_candidate(const Kernel& kernel);
/// Spaces that take the kernel, in table order; `refusals`, if given, gets the others.
[[nodiscard]] std::vector<const Space*> spaces_for(const Kernel& kernel, const Machine& machine,
                                                   std::vector<Refusal>* refusals = nullptr);

}  // namespace sylvite
