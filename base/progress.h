#pragma once
// Progress on stderr: a bar with an ETA on a terminal, plain lines or JSON lines elsewhere, or nothing.

#include <string>

#include "base/config.h"

namespace sylvite {

/// One piece of work from 0 to 1. Updates are rate-limited, so call as often as is handy. Not thread-safe.
class Progress {
 public:
  Progress(std::string label, ProgressStyle style);
  ~Progress();  ///< ends the bar's line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `message` is short, for people; `fields_json` is a JSON object's inside ("\"trials\":3") for JSON lines,
  /// or "".
  void update(double fraction, const std::string& message, const std::string& fields_json = "");
  /// Takes the bar away, so that something else may be printed; the next update draws it again.
  void make_room();
  void finish(const std::string& message, const std::string& fields_json = "");

 private:
  void show(double fraction, const std::string& message, const std::string& fields_json);

  std::string label_;
  ProgressStyle style_;
  double start_;  ///< on the steady clock
  double next_;   ///< when to show something again
  bool line_open_ = false;
};

/// "1.2s", "3m05s", "2h10m".
[[nodiscard]] std::string format_seconds(double seconds);

}  // namespace sylvite
