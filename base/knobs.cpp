#include "base/knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <charconv>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/nearest.h"
#include "base/words.h"

namespace sylvite {
namespace {

using enum KnobType;

constexpr Knob knobs[] = {
    {"compile.mode", string, "default", "mode", "default|reduce-overhead|max-autotune",
     "which of the built-in configurations to start from"},
    {"compile.device", string, "cpu", "device", "cpu|cuda", "what runs the kernels; cuda is the first GPU"},
    {"compile.threads", integer, "0", "threads", "", "threads a program runs with; 0 for all cores"},
    {"compile.precision", string, "f32", "precision", "f32|tf32|bf16|f16|int8-dynamic",
     "what weights and values between kernels are stored as; sums, norms and softmax stay f32. bf16 is for "
     "GPUs and processors with AVX512_BF16; others use f32, with a warning. f16 is for GPUs. tf32 stores "
     "f32; matmuls and convolutions may multiply with 10 bits after the point, as Hopper GPUs do fast; "
     "elsewhere it is f32. int8-dynamic is for processors: matmuls with constants multiply 8-bit integers, "
     "weights by "
     "columns, activations by rows as they come, fast with AMX or VNNI; all else is as with bf16 where the "
     "processor has AVX512_BF16, else f32"},
    {"compile.keep_wide", string, "auto", "", "auto|on|off",
     "with bf16 or f16: sums that norms read (the residuals of transformers), biases, tables and "
     "last results stay f32, on a processor with bf16 also rows that products of one row multiply, and "
     "depthwise filters; "
     "auto: on a processor, not on a GPU, where that costs some time"},
    {"cache.enabled", boolean, "true", "", "", "keep compiled kernels between runs"},
    {"cache.dir", string, "", "cache-dir", "",
     "folder of compiled kernels, owner-only; empty for $XDG_CACHE_HOME/sylvite/objects"},
    {"db.enabled", boolean, "true", "", "", "use stored winners, and store trials"},
    {"db.path", string, "", "db", "",
     "file of trials and winners; empty for $XDG_CACHE_HOME/sylvite/trials.db"},
    {"tune.enabled", boolean, "false", "", "", "measure candidates for kernels without a stored winner"},
    {"tune.budget", duration, "60s", "budget", "", "wall-clock time to spend on measuring, over all kernels"},
    {"tune.compile_jobs", integer, "0", "", "", "compile workers at a time; 0 for all cores"},
    {"tune.compile_timeout", duration, "30s", "", "", "time limit to compile one candidate"},
    {"tune.run_timeout", duration, "10s", "", "", "time limit to measure one candidate"},
    {"tune.extend", boolean, "false", "", "",
     "spend the budget on kernels that have a winner from as large a budget, too"},
    {"tune.confirm", real, "0.1", "", "",
     "share of the budget for trying winners inside the whole model; 0 trusts the kernels alone"},
    {"passes.disable", list, "", "disable-pass", "", "graph passes to skip, by name"},
    {"passes.verify", boolean, "true", "", "", "verify the graph after every pass"},
    {"passes.dump", string, "", "dump-passes", "", "folder for the graph after each pass that changed it"},
    {"lowering.fuse", boolean, "true", "", "", "group operations into fused kernels"},
    {"lowering.rows", string, "auto", "", "auto|off",
     "auto: a depthwise convolution computes its input by rows where the whole would not fit the cache; off: "
     "all are stored"},
    {"lowering.block_channels", boolean, "true", "", "",
     "channel-blocked layouts between convolutions; on a GPU, 16-bit images with channels innermost"},
    {"lowering.reuse_memory", boolean, "true", "", "", "let values with disjoint lifetimes share memory"},
    {"schedules.winograd", string, "auto", "", "auto|off",
     "auto: Winograd's transforms for 3x3 convolutions where they pay; off: products are only summed"},
    {"schedules.cublaslt", boolean, "false", "", "",
     "on a GPU: cuBLASLt's algorithms are candidates for matmuls; winners are stored under its version"},
    {"schedules.cudnn", boolean, "false", "", "",
     "on a GPU: cuDNN's engines are candidates for convolutions; winners are stored under its version"},
    {"runtime.spin", duration, "0.05ms", "", "", "how long an idle worker thread spins before it sleeps"},
    {"runtime.cuda_graph", boolean, "false", "", "",
     "on a GPU: replay a run of several kernels as one CUDA graph, so that launches cost next to nothing"},
    {"runtime.cuda_streams", string, "1", "", "1|2|3|4",
     "with runtime.cuda_graph: branches of the graph on which launches that do not need each other run side "
     "by side"},
    {"import.random_weights", integer, "-1", "random-weights", "",
     "seed to fill absent weights with random values; -1 refuses models without weights"},
    {"import.dims", list, "", "dims", "", "values for symbolic dimensions, e.g. batch=1,sequence=128"},
    {"import.shapes", list, "", "shapes", "", "whole input shapes, e.g. image=1x3x224x224"},
    {"log.level", string, "warning", "log-level", "debug|info|warning|error|off", "what is said on stderr"},
    {"log.progress", string, "auto", "progress", "auto|bar|lines|jsonl|none",
     "progress on stderr; auto is a bar on a terminal and lines elsewhere"},
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

template <typename T>
T parse_number(std::string_view text, std::string_view what, std::string_view wanted) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    throw UsageError("{} = '{}': expected {}", what, text, wanted);
  return number;
}

bool parse_boolean(std::string_view text, std::string_view what) {
  for (const std::string_view yes : {"true", "on", "yes", "1"})
    if (text == yes) return true;
  for (const std::string_view no : {"false", "off", "no", "0"})
    if (text == no) return false;
  throw UsageError("{} = '{}': expected true or false", what, text);
}

void check_choices(const Knob& knob, const std::string& value) {
  if (knob.choices.empty()) return;
  const std::vector<std::string> choices = split(knob.choices, '|');
  if (std::ranges::find(choices, value) != choices.end()) return;
  const std::vector<std::string_view> views(choices.begin(), choices.end());
  throw UsageError("{} = '{}': expected one of {}{}", knob.name, value, fmt::join(choices, ", "),
                   suggestion(value, views));
}

void check_value(const Knob& knob, const std::string& value) {
  if (value.find_first_of("#\n\r") != std::string::npos)
    throw UsageError("{} = '{}': a value may not hold '#' or line breaks", knob.name, value);
  check_choices(knob, value);
  switch (knob.type) {
    case boolean:
      (void)parse_boolean(value, knob.name);
      break;
    case integer:
      (void)parse_number<std::int64_t>(value, knob.name, "an integer");
      break;
    case real:
      (void)parse_number<double>(value, knob.name, "a number");
      break;
    case duration:
      (void)parse_duration(value, knob.name);
      break;
    case KnobType::string:
    case KnobType::list:
      break;
  }
}

void require_type(const Knob& knob, bool fits) {
  if (!fits) throw InternalError("knob {} is of type {}", knob.name, knob_type_name(knob.type));
}

std::string_view section_of(const Knob& knob) {
  return knob.name.substr(0, knob.name.find('.'));
}
std::string_view key_of(const Knob& knob) {
  return knob.name.substr(knob.name.find('.') + 1);
}

/// Defaults as strings, so that Settings::string can return a reference.
const std::string& fallback_of(const Knob& knob) {
  static const std::map<std::string_view, std::string> fallbacks = [] {
    std::map<std::string_view, std::string> all;
    for (const Knob& each : knobs) all.emplace(each.name, each.fallback);
    return all;
  }();
  return fallbacks.at(knob.name);
}

}  // namespace

std::span<const Knob> knob_table() {
  return knobs;
}

std::string_view knob_type_name(KnobType type) {
  switch (type) {
    case boolean:
      return "boolean";
    case integer:
      return "integer";
    case real:
      return "number";
    case duration:
      return "duration";
    case KnobType::string:
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
      "A key is set in an INI file (`[section]`, then `key = value`; pass it with `--config FILE`), with\n"
      "`--set section.key=value`, or with its flag. Order, later wins: defaults, the mode's file in "
      "`configs/`,\n"
      "`--config` files, `--set` and flags. Durations are `90`, `90s`, `5m`, `2h` or `250ms`; lists are "
      "comma\n"
      "separated; an unknown key is refused.\n\n"
      "| key | flag | type | default | meaning |\n|---|---|---|---|---|\n";
  for (const Knob& knob : knobs) {
    const std::string flag = knob.flag.empty() ? "" : fmt::format("`--{}`", knob.flag);
    const std::string fallback = knob.fallback.empty() ? "" : fmt::format("`{}`", knob.fallback);
    const std::string choices =
        knob.choices.empty() ? "" : fmt::format(": {}", fmt::join(split(knob.choices, '|'), ", "));
    page += fmt::format("| `{}` | {} | {} | {} | {}{} |\n", knob.name, flag, knob_type_name(knob.type),
                        fallback, knob.help, choices);
  }
  return page;
}

double parse_duration(std::string_view text, std::string_view what) {
  constexpr std::pair<std::string_view, double> units[] = {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
  std::string_view number = text;
  double unit_seconds = 1;
  for (const auto& [unit, seconds] : units) {
    if (!text.ends_with(unit)) continue;
    number = text.substr(0, text.size() - unit.size());
    unit_seconds = seconds;
    break;
  }
  const auto value = parse_number<double>(number, what, "a duration such as 90s, 5m, 2h or 250ms");
  if (!(value >= 0 && value < 1e9)) throw UsageError("{} = '{}': a duration is at least 0", what, text);
  return value * unit_seconds;
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
  namespace options = boost::program_options;
  std::istringstream stream{std::string(text)};
  try {
    const options::options_description none;
    const auto parsed = options::parse_config_file(stream, none, /*allow_unregistered=*/true);
    for (const auto& option : parsed.options)
      set(option.string_key, option.value.empty() ? "" : option.value.front());
  } catch (const options::error& error) {
    throw UsageError("{}: {}", origin, error.what());
  } catch (const UsageError& error) {
    throw UsageError("{}: {}", origin, error.what());
  }
}

const std::string& Settings::string(const std::string& name) const {
  const auto found = values_.find(name);
  return found != values_.end() ? found->second : fallback_of(find_knob(name));
}

bool Settings::boolean(const std::string& name) const {
  require_type(find_knob(name), find_knob(name).type == KnobType::boolean);
  return parse_boolean(string(name), name);
}

std::int64_t Settings::integer(const std::string& name) const {
  require_type(find_knob(name), find_knob(name).type == KnobType::integer);
  return parse_number<std::int64_t>(string(name), name, "an integer");
}

double Settings::real(const std::string& name) const {
  const Knob& knob = find_knob(name);
  require_type(knob, knob.type == KnobType::real || knob.type == KnobType::duration);
  if (knob.type == KnobType::duration) return parse_duration(string(name), name);
  return parse_number<double>(string(name), name, "a number");
}

std::vector<std::string> Settings::list(const std::string& name) const {
  require_type(find_knob(name), find_knob(name).type == KnobType::list);
  return split(string(name), ',');
}

std::string Settings::to_ini() const {
  std::string text;
  std::string_view section;
  for (const Knob& knob : knobs) {
    if (section_of(knob) != section) {
      section = section_of(knob);
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    }
    text += fmt::format("{} = {}\n", key_of(knob), string(std::string(knob.name)));
  }
  return text;
}

}  // namespace sylvite
