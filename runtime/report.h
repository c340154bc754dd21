#pragma once
// How the stages of a session fill its CompileReport.

#include <string>

#include "base/clock.h"
#include "sylvite/sylvite.h"

namespace sylvite {

/// Adds the time until its end to a field of the report, which must outlive it.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += steady_seconds() - start_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  double start_ = steady_seconds();
};

/// Adds counts, times and warnings of one more program.
void add_report(CompileReport& total, const CompileReport& more);

/// Adds a warning unless it is "" or there already.
void warn(CompileReport& report, const std::string& message);

}  // namespace sylvite
