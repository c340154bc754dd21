#pragma once
// CompileConfig: the values of all settings, typed. What each is called by people, its default and what it means stand in
// the knob table of base/knobs.cpp, from which docs/knobs.md is made.

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sylvite/size_range.h"

namespace sylvite {

using Seconds = std::chrono::duration<double>;

/// A size of files.
struct Bytes {
  std::int64_t count = 0;
  bool operator==(const Bytes&) const = default;
};
inline constexpr Bytes unlimited_bytes{std::numeric_limits<std::int64_t>::max()};

// Choices, and how people spell them: names in the order of the enumerators.

enum class Mode { standard, reduce_overhead, max_autotune };
constexpr auto names_of(Mode) {
  return std::to_array<std::string_view>({"default", "reduce-overhead", "max-autotune"});
}

enum class DeviceKind { cpu, cuda };
constexpr auto names_of(DeviceKind) {
  return std::to_array<std::string_view>({"cpu", "cuda"});
}

enum class Precision { f32, tf32, bf16, f16, int8_dynamic };
constexpr auto names_of(Precision) {
  return std::to_array<std::string_view>({"f32", "tf32", "bf16", "f16", "int8-dynamic"});
}

enum class AutoOnOff { automatic, on, off };
constexpr auto names_of(AutoOnOff) {
  return std::to_array<std::string_view>({"auto", "on", "off"});
}

enum class AutoOff { automatic, off };
constexpr auto names_of(AutoOff) {
  return std::to_array<std::string_view>({"auto", "off"});
}

enum class FirstAnswer { automatic, best, fast };
constexpr auto names_of(FirstAnswer) {
  return std::to_array<std::string_view>({"auto", "best", "fast"});
}

enum class Specialize { off, lazy };
constexpr auto names_of(Specialize) {
  return std::to_array<std::string_view>({"off", "lazy"});
}

enum class LogLevel { debug, info, warning, error, off };
constexpr auto names_of(LogLevel) {
  return std::to_array<std::string_view>({"debug", "info", "warning", "error", "off"});
}

/// `automatic` is a bar when stderr is a terminal, and lines when it is not.
enum class ProgressStyle { automatic, bar, lines, jsonl, none };
constexpr auto names_of(ProgressStyle) {
  return std::to_array<std::string_view>({"auto", "bar", "lines", "jsonl", "none"});
}

template <typename Choice>
inline constexpr auto choice_names = names_of(Choice{});

/// How people spell a choice.
template <typename Choice>
[[nodiscard]] constexpr std::string_view name_of(Choice choice) {
  return choice_names<Choice>.at(static_cast<std::size_t>(choice));
}

/// A value per knob, made by Settings::config (base/knobs.h): defaults are the table's. The member of the knob
/// "section.key" is section_key, without the section for "compile".
struct CompileConfig {
  Mode mode{};
  DeviceKind device{};
  std::int64_t threads = 0;  ///< 0: all cores
  Precision precision{};
  AutoOnOff keep_wide{};
  std::int64_t sizes_kept = 0;
  AutoOff open_kernels{};
  AutoOff kernels_ahead{};
  Specialize specialize{};
  FirstAnswer first_answer{};
  std::string frozen;  ///< a lock file; "": none
  bool cache_enabled = false;
  std::string cache_dir;  ///< "": in the user's cache folder
  Bytes cache_limit{};
  bool db_enabled = false;
  std::string db_path;  ///< "": in the user's cache folder
  bool tune_enabled = false;
  Seconds tune_budget{};
  std::int64_t tune_compile_jobs = 0;  ///< 0: as many as cores
  Seconds tune_compile_timeout{};
  Seconds tune_run_timeout{};
  bool tune_extend = false;
  double tune_confirm = 0;  ///< share of the budget
  std::vector<std::string> passes_disable;
  bool passes_verify = false;
  std::string passes_dump;  ///< folder; "": none
  bool lowering_fuse = false;
  AutoOff lowering_rows{};
  bool lowering_block_channels = false;
  bool lowering_reuse_memory = false;
  AutoOff schedules_winograd{};
  bool schedules_cublaslt = false;
  bool schedules_cudnn = false;
  AutoOff schedules_hopper{};
  Seconds runtime_spin{};
  bool runtime_cuda_graph = false;
  std::int64_t runtime_cuda_streams = 1;
  std::int64_t import_random_weights = -1;  ///< a seed; -1: weights must be there
  std::map<std::string, SizeRange> import_dims;
  std::map<std::string, std::vector<std::int64_t>> import_shapes;
  std::vector<std::string> import_state;  ///< INPUT=OUTPUT, or usual
  bool import_follow_links = false;
  LogLevel log_level{};
  ProgressStyle log_progress{};

  bool operator==(const CompileConfig&) const = default;
};

}  // namespace sylvite
