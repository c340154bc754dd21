#pragma once
// Trips of a loop on the host whose end is known only when it is reached: the body is a model of its own (tail.h), which is
// compiled once and run trip after trip.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/onnx/tail.h"

namespace sylvite {

/// What bodies are run with: those of one run of the host part of a model.
struct TripRunner {
  const ParsedModel& model;
  const TailRunner& run;
  const std::set<std::string>& known;  ///< names of values that no run changes

  /// Is compiling bodies worth it? Where steps took long enough in an earlier run.
  [[nodiscard]] bool is_worth_it() const;
};

/// The body of a loop, in one run of it. The importer's values must outlive it. Thread safety: one thread at a time.
class LoopTrips {
 public:
  /// `around` are the values that the body reads beside what a trip is given, its own initializers among them.
  LoopTrips(const TripRunner& runner, const onnx::GraphProto& body, std::vector<TailValue> around);
  /// What the body gives for what a trip is given. Nothing where it is to be imported: while it is not compiled, and where it
  /// cannot be a model.
  [[nodiscard]] std::optional<std::vector<Tensor>> run(const std::vector<Tensor>& given);

 private:
  const TripRunner& runner_;
  std::vector<TailValue> values_;  ///< what a trip is given, then those around
  std::vector<const onnx::NodeProto*> nodes_;
  std::vector<std::string> outputs_;
};

/// Names that the body reads from around it.
[[nodiscard]] std::vector<std::string> names_around(const onnx::GraphProto& body);

}  // namespace sylvite
