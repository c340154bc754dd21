#pragma once
// What verbs print: on stdout or into a file, as text or JSON.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/session.h"

namespace sylvite {

/// To stdout. Throws IoError when it cannot be written; a closed pipe ends the command quietly.
void print(std::string_view text);
template <typename... Arguments>
void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print(std::string_view(fmt::format(format, std::forward<Arguments>(arguments)...)));
}

/// To stderr. What cannot be written there is lost: there is nowhere left to say so, and the exit code tells.
void print_error(std::string_view text);

/// Opens the standard descriptors that the command was started without, so that no file of ours takes their numbers. What
/// is printed to them fails then as before. Call it first.
void open_standard_descriptors();

/// Thrown by print when the reader of stdout went away.
struct ClosedPipe {};

/// Ends the command as this signal would; no failure, and nothing is said.
struct Interrupted {
  int signal = 0;
};

/// Writes a whole file atomically, or stdout when `path` is "-".
void write_text(const std::string& path, std::string_view text);

/// Sorted wall-clock times of whole runs.
struct Latency {
  double min_ms = 0;
  double median_ms = 0;
  double p90_ms = 0;
  double p99_ms = 0;
  double per_second = 0;  ///< runs finished per second of measuring
  int runs = 0;
};
/// `seconds` in any order; REQUIRES at least one.
[[nodiscard]] Latency summarize_latency(std::vector<double> seconds);

[[nodiscard]] nlohmann::json latency_json(const Latency& latency);

/// Sizes that are open: "batch=1, sequence=128", and by name.
[[nodiscard]] std::string sizes_text(const Imported& imported);
[[nodiscard]] nlohmann::json sizes_json(const Imported& imported);

/// The --json document of docs/formats.md. `latency` is null in it when not measured.
[[nodiscard]] nlohmann::json report_json(const Imported& imported, const CompileReport& report,
                                         const std::optional<Latency>& latency);

/// A time in the unit of its column, with so many decimals and below one as many digits, at least two: "12.3", "0.034"; "-"
/// for one that is not known, 0.
[[nodiscard]] std::string time_text(double time, int decimals = 1);

/// "1.5 MB".
[[nodiscard]] std::string format_bytes(std::int64_t bytes);

}  // namespace sylvite
