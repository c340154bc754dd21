#include "base/knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/ini.h"
#include "base/nearest.h"
#include "base/size_range.h"
#include "base/words.h"

namespace sylvite {
namespace {

template <typename Value>
constexpr KnobType type_of_knob() {
  if constexpr (std::is_same_v<Value, bool>) return KnobType::boolean;
  if constexpr (std::is_same_v<Value, std::int64_t>) return KnobType::integer;
  if constexpr (std::is_same_v<Value, double>) return KnobType::real;
  if constexpr (std::is_same_v<Value, Seconds>) return KnobType::duration;
  if constexpr (std::is_same_v<Value, Bytes>) return KnobType::size;
  if constexpr (std::is_same_v<Value, std::string> || std::is_enum_v<Value>) return KnobType::text;
  return KnobType::list;
}

/// `digits` as a number; `text` is what was given for `what`, and may have a unit, too.
template <typename T>
T parse_number(std::string_view digits, std::string_view what, std::string_view text,
               std::string_view wanted) {
  T number{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    throw UsageError("{} = '{}': expected {}", what, text, wanted);
  return number;
}

// Values of knobs from their text, one function per type of CompileConfig's members.

void parse(std::string_view text, const Knob& knob, bool& value) {
  static constexpr std::string_view words[] = {"true", "on", "yes", "1", "false", "off", "no", "0"};
  const auto* const found = std::ranges::find(words, text);
  if (found == std::end(words)) throw UsageError("{} = '{}': expected true or false", knob.name, text);
  value = found - words < 4;
}

void parse(std::string_view text, const Knob& knob, std::int64_t& value) {
  value = parse_number<std::int64_t>(text, knob.name, text, "an integer");
  if (value < knob.range.least || value > knob.range.most)
    throw UsageError("{} = '{}': expected {} to {}", knob.name, text, knob.range.least, knob.range.most);
}

void parse(std::string_view text, const Knob& knob, double& value) {
  value = parse_number<double>(text, knob.name, text, "a number");
}

void parse(std::string_view text, const Knob& knob, Seconds& value) {
  value = Seconds(parse_duration(text, knob.name));
}

void parse(std::string_view text, const Knob& knob, Bytes& value) {
  value = text == "none" ? unlimited_bytes : parse_bytes(text, knob.name);
}

void parse(std::string_view text, const Knob& /*knob*/, std::string& value) {
  value = text;
}

/// REQUIRES one of the knob's choices.
template <typename Choice>
  requires std::is_enum_v<Choice>
void parse(std::string_view text, const Knob& knob, Choice& value) {
  value = static_cast<Choice>(std::ranges::find(knob.choices, text) - knob.choices.begin());
}

void parse(std::string_view text, const Knob& /*knob*/, std::vector<std::string>& value) {
  value = split(text, ',');
}

/// The knob as people may have set it: "import.dims (--dims)".
std::string spelled(const Knob& knob) {
  return knob.flag.empty() ? std::string(knob.name) : fmt::format("{} (--{})", knob.name, knob.flag);
}

std::int64_t parse_extent(std::string_view text, std::string_view item, const Knob& knob) {
  std::int64_t extent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
  if (error != std::errc() || end != text.data() + text.size() || extent < 0)
    throw UsageError("{}: '{}' in '{}' is not an extent", spelled(knob), text, item);
  return extent;
}

void parse(std::string_view text, const Knob& knob, std::map<std::string, SizeRange>& value) {
  for (const std::string& item : split(text, ',')) {
    const auto [name, range] = split_last_assignment(item, knob.name);
    const auto [found, is_new] =
        value.emplace(name, parse_size_range(range, fmt::format("{}: '{}'", spelled(knob), item)));
    if (!is_new) throw UsageError("{}: '{}' is given twice", spelled(knob), name);
  }
}

/// Shapes are "1x3x224x224", and "" for a scalar.
void parse(std::string_view text, const Knob& knob, std::map<std::string, std::vector<std::int64_t>>& value) {
  for (const std::string& item : split(text, ',')) {
    const auto [name, shape] = split_last_assignment(item, knob.name);
    if (shape.ends_with('x')) throw UsageError("{}: '{}' ends with an x", knob.name, item);
    std::vector<std::int64_t>& dims = value[name];
    dims.clear();
    for (std::size_t at = 0; at < shape.size();) {
      const std::size_t end = std::min(shape.find('x', at), shape.size());
      dims.push_back(parse_extent(std::string_view(shape).substr(at, end - at), item, knob));
      at = end + 1;
    }
  }
}

/// The row of a knob whose value is this member of CompileConfig, which decides its type.
template <auto member>
constexpr Knob knob(std::string_view name, std::string_view fallback, std::string_view flag,
                    std::string_view help, std::span<const std::string_view> choices = {},
                    KnobRange range = {}) {
  using Value = std::remove_cvref_t<decltype(std::declval<CompileConfig>().*member)>;
  if constexpr (std::is_enum_v<Value>) choices = choice_names<Value>;
  return {name,
          fallback,
          flag,
          help,
          type_of_knob<Value>(),
          choices,
          range,
          [](std::string_view text, const Knob& row, CompileConfig& config) {
            parse(text, row, config.*member);
          }};
}

/// Of threads and processes: far more than any machine has cores, and few enough to be started.
constexpr KnobRange counts = {.least = 0, .most = 1024};

constexpr std::string_view stream_counts[] = {"1", "2", "3", "4"};

constexpr Knob knobs[] = {
    knob<&CompileConfig::mode>("compile.mode", "default", "mode",
                               "which of the built-in configurations to start from"),
    knob<&CompileConfig::device>("compile.device", "cpu", "device",
                                 "what runs the kernels; cuda is the first GPU"),
    knob<&CompileConfig::threads>("compile.threads", "0", "threads",
                                  "threads a program runs with; 0 for all cores", {}, counts),
    knob<&CompileConfig::precision>(
        "compile.precision", "f32", "precision",
        "type in which weights and values between kernels are stored; sums, norms and softmax are computed "
        "in "
        "f32. bf16: for GPUs and CPUs with AVX512_BF16; other CPUs use f32, with a warning. f16: for GPUs. "
        "tf32: stored as f32; on GPUs matmuls and convolutions multiply in TF32; elsewhere as f32, on "
        "CPUs with a warning. "
        "int8-dynamic: for CPUs; matmuls with constant weights multiply 8-bit integers, weights quantised "
        "per "
        "column, activations per row at run time, fast with AMX or VNNI; everything else as with bf16 on "
        "CPUs "
        "with AVX512_BF16, else as f32"),
    knob<&CompileConfig::keep_wide>(
        "compile.keep_wide", "auto", "",
        "with bf16 or f16: keep in f32 the sums that norms read (the residuals of transformers), biases, "
        "tables "
        "and the model's outputs; on CPUs with bf16 also the inputs of single-row matmuls, and depthwise "
        "filters. auto: on for CPUs, off for GPUs, where it costs some time"),
    knob<&CompileConfig::open_kernels>("compile.open_kernels", "auto", "",
                                       "with ranges in import.dims: kernels compiled once for many "
                                       "sizes (auto), or one for each size (off)"),
    knob<&CompileConfig::kernels_ahead>(
        "compile.kernels_ahead", "auto", "",
        "with ranges in import.dims: kernels that other sizes of these ranges need, as many again as those "
        "of the first or 32 at "
        "most, are compiled beside runs (auto), or when a run first needs them (off)"),
    knob<&CompileConfig::specialize>("compile.specialize", "off", "",
                                     "with ranges in import.dims, in programs: sizes that runs often have "
                                     "get kernels for them alone, compiled beside runs "
                                     "(lazy), or none do (off)"),
    knob<&CompileConfig::first_answer>(
        "compile.first_answer", "auto", "first-answer",
        "fast: while kernels are compiled, runs are answered by evaluating "
        "the model operation by operation, in "
        "f32; best: the first run waits for them. auto: fast for sylvite run, "
        "else best. On a GPU, with states, a lock or tuning it is always best"),
    knob<&CompileConfig::sizes_kept>("compile.sizes_kept", "256", "",
                                     "with ranges in import.dims: programs kept, one for each combination of "
                                     "sizes that was met; the least "
                                     "recently used goes",
                                     {}, {.least = 1}),
    knob<&CompileConfig::frozen>(
        "compile.frozen", "", "frozen",
        "a file of sylvite lock: every kernel runs the schedule that it names; nothing is measured, and no "
        "winner is read or stored"),
    knob<&CompileConfig::cache_enabled>("cache.enabled", "true", "", "keep compiled kernels between runs"),
    knob<&CompileConfig::cache_dir>(
        "cache.dir", "", "cache-dir",
        "folder of compiled kernels, owner-only; empty for $XDG_CACHE_HOME/sylvite/objects"),
    knob<&CompileConfig::cache_limit>(
        "cache.limit", "2GB", "",
        "size that the folder of compiled kernels may take; beyond it the least recently used go, but never "
        "those of this program or of the last ten minutes. none: no limit"),
    knob<&CompileConfig::db_enabled>("db.enabled", "true", "", "use stored winners, and store trials"),
    knob<&CompileConfig::db_path>("db.path", "", "db",
                                  "file of trials and winners; empty for $XDG_CACHE_HOME/sylvite/trials.db"),
    knob<&CompileConfig::tune_enabled>("tune.enabled", "false", "",
                                       "measure candidates for kernels without a stored winner"),
    knob<&CompileConfig::tune_budget>(
        "tune.budget", "60s", "budget",
        "wall-clock time to spend on measuring, over all kernels; compiling the "
        "winners comes on top"),
    knob<&CompileConfig::tune_compile_jobs>("tune.compile_jobs", "0", "",
                                            "compile workers at a time; 0 for all cores", {}, counts),
    knob<&CompileConfig::tune_compile_timeout>("tune.compile_timeout", "30s", "",
                                               "time limit to compile one candidate"),
    knob<&CompileConfig::tune_run_timeout>("tune.run_timeout", "10s", "",
                                           "time limit to measure one candidate"),
    knob<&CompileConfig::tune_extend>(
        "tune.extend", "false", "",
        "also spend the budget on kernels whose winner comes from as large a budget"),
    knob<&CompileConfig::tune_confirm>(
        "tune.confirm", "0.1", "",
        "share of the budget for trying winners inside the whole model; 0 trusts the kernels alone"),
    knob<&CompileConfig::passes_disable>("passes.disable", "", "disable-pass",
                                         "graph passes to skip, by name"),
    knob<&CompileConfig::passes_verify>("passes.verify", "true", "", "verify the graph after every pass"),
    knob<&CompileConfig::passes_dump>("passes.dump", "", "dump-passes",
                                      "folder for the graph after each pass that changed it"),
    knob<&CompileConfig::lowering_fuse>("lowering.fuse", "true", "", "group operations into fused kernels"),
    knob<&CompileConfig::lowering_rows>("lowering.rows", "auto", "",
                                        "auto: a depthwise convolution computes its input by rows where the "
                                        "whole would not fit the cache; off: every input is stored"),
    knob<&CompileConfig::lowering_block_channels>(
        "lowering.block_channels", "true", "",
        "channel-blocked layouts between convolutions; on a GPU, 16-bit images with channels innermost"),
    knob<&CompileConfig::lowering_reuse_memory>("lowering.reuse_memory", "true", "",
                                                "let values with disjoint lifetimes share memory"),
    knob<&CompileConfig::schedules_winograd>(
        "schedules.winograd", "auto", "",
        "auto: Winograd's transforms for 3x3 convolutions where they pay; off: direct convolution only"),
    knob<&CompileConfig::schedules_cublaslt>(
        "schedules.cublaslt", "false", "",
        "on a GPU: cuBLASLt's algorithms are candidates for matmuls; winners are stored under its version"),
    knob<&CompileConfig::schedules_cudnn>(
        "schedules.cudnn", "false", "",
        "on a GPU: cuDNN's engines are candidates for convolutions; winners are stored under its version"),
    knob<&CompileConfig::schedules_hopper>("schedules.hopper", "auto", "",
                                           "auto: on a Hopper GPU, products and attention by its own "
                                           "instructions; off: by those of every card from "
                                           "Ampere on, which shows what such cards run"),
    knob<&CompileConfig::runtime_spin>("runtime.spin", "0.05ms", "",
                                       "how long an idle worker thread spins before it sleeps"),
    knob<&CompileConfig::runtime_cuda_graph>(
        "runtime.cuda_graph", "false", "",
        "on a GPU: replay a run of several kernels as one CUDA graph, so that launches cost next to nothing"),
    knob<&CompileConfig::runtime_cuda_streams>("runtime.cuda_streams", "1", "",
                                               "with runtime.cuda_graph: branches of the graph on which "
                                               "launches that do not need each other run side "
                                               "by side",
                                               stream_counts),
    knob<&CompileConfig::import_random_weights>(
        "import.random_weights", "-1", "random-weights",
        "seed to fill absent weights with random values; -1 refuses models without weights", {},
        {.least = -1}),
    knob<&CompileConfig::import_dims>("import.dims", "", "dims",
                                      "sizes of symbolic dimensions: one (batch=8), a range (batch=1..64), "
                                      "a range with sizes to be fast at "
                                      "(sequence=1..512@128+384), multiples only (width=32..1024%32)"),
    knob<&CompileConfig::import_shapes>("import.shapes", "", "shapes",
                                        "whole input shapes, e.g. image=1x3x224x224"),
    knob<&CompileConfig::import_state>(
        "import.state", "", "state",
        "values that stay between runs: INPUT=OUTPUT, with one * for the same text in both "
        "(past_key_values.*=present.*), or usual: pairs with names that exporters give to caches and states"),
    knob<&CompileConfig::import_follow_links>(
        "import.follow_links", "false", "",
        "read external data through any link. Without it a symbolic link is followed only beside a model "
        "that is one "
        "itself, to a file in the folder where the model's own leads (as in caches of downloads)"),
    knob<&CompileConfig::log_level>("log.level", "warning", "log-level", "what is said on stderr"),
    knob<&CompileConfig::log_progress>("log.progress", "auto", "progress",
                                       "progress on stderr; auto is a bar on a terminal and lines elsewhere"),
};

std::vector<std::string_view> knob_names() {
  std::vector<std::string_view> names;
  for (const Knob& knob : knobs) names.push_back(knob.name);
  return names;
}

const Knob& find_knob(const std::string& name) {
  const auto* const found = std::ranges::find(knobs, name, &Knob::name);
  if (found == std::end(knobs))
    throw UsageError("unknown key '{}'{} (docs/knobs.md lists all)", name, suggestion(name, knob_names()));
  return *found;
}

void check_choices(const Knob& knob, std::string_view value) {
  if (knob.choices.empty() || std::ranges::find(knob.choices, value) != knob.choices.end()) return;
  throw UsageError("{} = '{}': expected one of {}{}", knob.name, value, fmt::join(knob.choices, ", "),
                   suggestion(value, knob.choices));
}

/// Throws UsageError unless it is a value of the knob.
void check_value(const Knob& knob, std::string_view value) {
  if (value.find_first_of("#\n\r") != std::string::npos)
    throw UsageError("{} = '{}': a value may not hold '#' or line breaks", knob.name, value);
  check_choices(knob, value);
  CompileConfig scratch;
  knob.read(value, knob, scratch);
}

std::string_view section_of(const Knob& knob) {
  return knob.name.substr(0, knob.name.find('.'));
}
std::string_view key_of(const Knob& knob) {
  return knob.name.substr(knob.name.find('.') + 1);
}

}  // namespace

std::span<const Knob> knob_table() {
  return knobs;
}

std::string_view knob_type_name(KnobType type) {
  switch (type) {
    case KnobType::boolean:
      return "boolean";
    case KnobType::integer:
      return "integer";
    case KnobType::real:
      return "number";
    case KnobType::duration:
      return "duration";
    case KnobType::size:
      return "size";
    case KnobType::text:
      return "text";
    case KnobType::list:
      return "list";
  }
  throw InternalError("knob type {} has no name", static_cast<int>(type));
}

std::string knobs_markdown() {
  std::string page =
      "# Knobs\n\n"
      "Made from the knob table in `base/knobs.cpp`; a test keeps it up to date.\n\n"
      "A key is set in an INI file (`[section]`, then `key = value`; `#` begins a comment; pass it with "
      "`--config FILE`), with\n"
      "`--set section.key=value`, or with its flag. Order, later wins: defaults, the mode's file in "
      "`configs/`,\n"
      "`--config` files, `--set` and flags. Durations are `90`, `90s`, `5m`, `2h` or `250ms`; sizes `500MB`, "
      "`2GB`\n"
      "or `none`; lists are comma separated; an unknown key is refused.\n\n"
      "| key | flag | type | default | meaning |\n|---|---|---|---|---|\n";
  for (const Knob& knob : knobs) {
    const std::string flag = knob.flag.empty() ? "" : fmt::format("`--{}`", knob.flag);
    const std::string fallback = knob.fallback.empty() ? "" : fmt::format("`{}`", knob.fallback);
    const std::string choices =
        knob.choices.empty() ? "" : fmt::format(": {}", fmt::join(knob.choices, ", "));
    const std::string range =
        knob.range.is_bounded() ? fmt::format(", {} to {}", knob.range.least, knob.range.most) : "";
    page += fmt::format("| `{}` | {} | {}{} | {} | {}{} |\n", knob.name, flag, knob_type_name(knob.type),
                        range, fallback, knob.help, choices);
  }
  return page;
}

double parse_duration(std::string_view text, std::string_view what) {
  constexpr std::pair<std::string_view, double> units[] = {
      {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
  std::string_view number = text;
  double unit_seconds = 1;
  for (const auto& [unit, seconds] : units) {
    if (!text.ends_with(unit)) continue;
    number = text.substr(0, text.size() - unit.size());
    unit_seconds = seconds;
    break;
  }
  const auto value = parse_number<double>(number, what, text, "a duration such as 90s, 5m, 2h or 250ms");
  constexpr double longest = 1e9;  // seconds, 31 years
  const double seconds = value * unit_seconds;
  if (!(seconds >= 0 && seconds <= longest))
    throw UsageError("{} = '{}': expected a duration from 0 to 30 years", what, text);
  return seconds;
}

Bytes parse_bytes(std::string_view text, std::string_view what) {
  constexpr std::pair<std::string_view, double> units[] = {{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}};
  std::string_view number = text;
  double scale = 1;
  for (const auto& [unit, bytes] : units) {
    if (!text.ends_with(unit)) continue;
    number.remove_suffix(unit.size());
    scale = bytes;
    break;
  }
  constexpr std::string_view wanted = "a size such as 500MB or 2GB";
  const double value = parse_number<double>(number, what, text, wanted) * scale;
  if (!(value >= 0 && value < 1e18)) throw UsageError("{} = '{}': expected {}", what, text, wanted);
  return {static_cast<std::int64_t>(value)};
}

void Settings::set(const std::string& name, const std::string& value) {
  const Knob& knob = find_knob(name);
  std::string clean = trimmed(value);
  check_value(knob, clean);
  values_[name] = std::move(clean);
}

void Settings::read_ini(const std::string& path) {
  read_ini_text(read_file(path), path);
}

void Settings::read_ini_text(std::string_view text, const std::string& origin) {
  for (const auto& [name, value] : parse_ini(text, origin)) {
    try {
      set(name, value);
    } catch (const UsageError& error) {
      throw UsageError("{}: {}", origin, error.what());
    }
  }
}

void Settings::override_with(const Settings& later) {
  for (const auto& [name, value] : later.values_) values_[name] = value;
}

std::string_view Settings::text_of(const Knob& knob) const {
  const auto found = values_.find(knob.name);
  return found != values_.end() ? found->second : knob.fallback;
}

CompileConfig Settings::config() const {
  CompileConfig config;
  for (const Knob& knob : knobs) knob.read(text_of(knob), knob, config);
  return config;
}

std::string Settings::to_ini() const {
  std::string text;
  std::string_view section;
  for (const Knob& knob : knobs) {
    if (section_of(knob) != section) {
      section = section_of(knob);
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    }
    text += fmt::format("{} = {}\n", key_of(knob), text_of(knob));
  }
  return text;
}

}  // namespace sylvite
