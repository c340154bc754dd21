#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/table.h"
#include "base/words.h"
#include "cli/agreement.h"
#include "cli/inputs.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/timing.h"
#include "cli/verb.h"
#include "frontend/onnx/tensor_io.h"
#include "runtime/build.h"
#include "runtime/evaluated.h"

namespace sylvite {
namespace {

/// NumPy's name, or that of the package ml_dtypes, for readers of outputs.json.
std::string numpy_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float32";
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
    case DType::f64:
      return "float64";
    case DType::i8:
      return "int8";
    case DType::i16:
      return "int16";
    case DType::i32:
      return "int32";
    case DType::i64:
      return "int64";
    case DType::u8:
      return "uint8";
    case DType::u16:
      return "uint16";
    case DType::u32:
      return "uint32";
    case DType::u64:
      return "uint64";
    case DType::boolean:
      return "bool";
    case DType::f8e4m3fn:
      return "float8_e4m3fn";
    case DType::f8e4m3fnuz:
      return "float8_e4m3fnuz";
    case DType::f8e5m2:
      return "float8_e5m2";
    case DType::f8e5m2fnuz:
      return "float8_e5m2fnuz";
    case DType::f8e8m0:
      return "float8_e8m0fnu";
    case DType::f4e2m1:
      return "float4_e2m1fn";
    case DType::i4:
      return "int4";
    case DType::u4:
      return "uint4";
    case DType::i2:
      return "int2";
    case DType::u2:
      return "uint2";
  }
  throw InternalError("dtype {} has no NumPy name", static_cast<int>(dtype));
}

/// What outputs.json says of a value beside its name and file.
nlohmann::json value_json(const HostValue& value) {
  if (value.is_absent()) return {{"absent", true}};
  if (value.is_strings()) return {{"dtype", "str"}, {"shape", value.strings().dims}};
  if (value.is_tensor())
    return {{"dtype", numpy_name(value.tensor().dtype())}, {"shape", value.tensor().dims()}};
  nlohmann::json items = nlohmann::json::array();
  for (const HostValue& item : value.sequence()) items.push_back(value_json(item));
  return {{"sequence", items}};
}

/// NumPy's files hold tensors of numbers; other values become ONNX's messages.
void write_outputs(const std::string& folder, const std::string& format, const std::vector<ModelPort>& ports,
                   const std::vector<HostValue>& outputs) {
  make_folder(folder);
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string file = fmt::format("{}.{}", i, outputs[i].is_tensor() ? format : "pb");
    write_value(fmt::format("{}/{}", folder, file), outputs[i], ports[i].kind, ports[i].name);
    nlohmann::json entry = value_json(outputs[i]);
    entry["name"] = ports[i].name;
    entry["file"] = file;
    list.push_back(entry);
  }
  write_file(folder + "/outputs.json", json_text(list, 2) + "\n");
}

void check_output_folder(const std::string& folder) {
  make_folder(folder);
  check_writable(folder + "/outputs.json");
}

std::string first_elements(const HostValue& value) {
  constexpr std::int64_t shown = 4;
  std::vector<std::string> texts;
  std::int64_t count = 0;
  if (value.is_tensor()) {
    count = value.tensor().size();
    for (std::int64_t i = 0; i < std::min(count, shown); ++i)
      texts.push_back(fmt::format("{:.6g}", value.tensor().as_double(i)));
  } else if (value.is_strings()) {
    count = static_cast<std::int64_t>(value.strings().values.size());
    for (std::int64_t i = 0; i < std::min(count, shown); ++i)
      texts.push_back(fmt::format("'{}'", value.strings().values[static_cast<std::size_t>(i)]));
  } else if (value.is_sequence()) {
    count = static_cast<std::int64_t>(value.sequence().size());
    for (std::int64_t i = 0; i < std::min(count, shown); ++i)
      texts.push_back(value.sequence()[static_cast<std::size_t>(i)].describe());
  }
  return fmt::format("{}{}", fmt::join(texts, " "), count > shown ? " ..." : "");
}

std::string output_table(const std::vector<ModelPort>& ports, const std::vector<HostValue>& outputs) {
  Table table({"output", "type", "first elements"});
  for (std::size_t i = 0; i < outputs.size(); ++i)
    table.add_row({ports[i].name, outputs[i].describe(), first_elements(outputs[i])});
  return table.to_string();
}

Options run_options() {
  Options options("run MODEL.onnx [OPTION ...]", "Compiles a model if needed and runs it once.");
  options.add_value("output-dir", "DIR", "write the outputs as 0.npy, 1.npy, ... and outputs.json");
  options.add_value("output-format", "npy|pb",
                    "NumPy arrays or ONNX messages; what is no tensor of numbers becomes one in any case",
                    "npy");
  add_input_options(options);
  add_check_option(options);
  options.add_model_options();
  return options;
}

/// A run, and what it gave.
struct Run {
  std::vector<HostValue> outputs;
  double seconds = 0;
};

/// Nothing where programs are to answer, or can at once: all that `chosen` names is in the cache. Checks are for what is
/// compiled.
std::optional<Run> evaluate_at_once(const Options& options, const Imported& imported, Chosen& chosen,
                                    const std::vector<HostValue>& inputs) {
  const FirstAnswer wanted = imported.setup->config.first_answer;
  if (wanted == FirstAnswer::best || (wanted == FirstAnswer::automatic && options.has("check")))
    return std::nullopt;
  if (!refuse_evaluation(imported).empty() || missing_objects(imported, chosen) == 0) return std::nullopt;
  const double start = steady_seconds();
  Run run{run_values(evaluate_model(imported), inputs)};
  run.seconds = steady_seconds() - start;
  return run;
}

void give(const Options& options, const std::vector<ModelPort>& ports,
          const std::vector<HostValue>& outputs) {
  if (options.has("output-dir"))
    write_outputs(options.value("output-dir"), options.value("output-format"), ports, outputs);
  say(options, output_table(ports, outputs));
}

}  // namespace

int verb_run(std::span<const std::string> arguments) {
  Options options = run_options();
  if (!options.parse(arguments)) return 0;
  const std::string& format = options.value("output-format");
  if (format != "npy" && format != "pb") throw UsageError("--output-format {}: expected npy or pb", format);
  check_oracle(options);
  if (options.has("output-dir")) check_output_folder(options.value("output-dir"));
  const double start = steady_seconds();
  const CompileOptions wanted = compile_options(options);
  const OpenModel model = open(options, wanted);
  Imported loaded = load(model);
  const std::vector<HostValue> inputs = make_inputs(options, loaded);
  const std::vector<ModelPort> ports = output_ports(loaded);
  Chosen chosen = choose_or_end(loaded);
  std::optional<Run> evaluated = evaluate_at_once(options, loaded, chosen, inputs);
  if (evaluated) {
    chosen.report.first_answer_seconds = steady_seconds() - start;
    give(options, ports, evaluated->outputs);
    const auto missing =
        std::ranges::count_if(chosen.choices, [](const Choice& choice) { return choice.object.empty(); });
    say(options, fmt::format("{} compiled for later runs; Ctrl-C ends that\n",
                             counted(static_cast<std::size_t>(missing), "kernel is", "kernels are")));
  }
  auto [imported, built] = prepare(std::move(loaded), std::move(chosen));
  std::vector<HostValue> outputs;
  std::optional<Latency> latency;
  if (evaluated) {
    outputs = std::move(evaluated->outputs);
  } else {
    latency = summarize_latency({timed_run(built, inputs, &outputs)});
    give(options, ports, outputs);
  }
  say(options, summary_line(imported.path, built.report));
  nlohmann::json document = report_json(imported, built.report, latency);
  check_outputs(options, wanted, imported, inputs, outputs, document);
  write_json(options, document);
  return 0;
}

}  // namespace sylvite
