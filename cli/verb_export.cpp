#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/words.h"
#include "cli/model_options.h"
#include "cli/verb.h"
#include "runtime/export/export.h"

namespace sylvite {
namespace {

/// Checked before the work.
ExportOptions export_options(const Options& options) {
  ExportOptions wanted;
  wanted.folder = options.value("output");
  wanted.name = options.has("name") ? options.value("name") : identifier_of(options.words().front());
  check_export_name(wanted.name);
  wanted.embed_weights = options.has("embed-weights");
  if (options.has("architectures")) {
    if (resolve_settings(compile_options(options)).config().device != DeviceKind::cuda)
      throw UsageError("--architectures is for GPUs: give --device cuda with it, or leave it out");
    wanted.architectures = split(options.value("architectures"), ',');
  }
  return wanted;
}

/// The folder to write, made when missing. It goes again where nothing was written into it.
class OutputFolder {
 public:
  /// Throws IoError before the work where NAME.h could not be written.
  explicit OutputFolder(const ExportOptions& wanted) {
    if (!std::filesystem::exists(wanted.folder)) made_ = wanted.folder;
    make_folder(wanted.folder);
    check_writable(wanted.folder + "/" + wanted.name + ".h");
  }
  ~OutputFolder() {
    std::error_code ignored;  // a folder with files stays
    if (!made_.empty()) std::filesystem::remove(made_, ignored);
  }
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

 private:
  std::string made_;
};

/// Why the weights take so much more than in the model, if they do.
std::string weights_note(const Built& built, std::int64_t exported_bytes) {
  std::int64_t bytes = 0;
  for (const Tensor& weight : built.program.plan().weights) bytes += weight.byte_size();
  const bool has_winograd = std::ranges::any_of(*built.choices, [](const Choice& choice) {
    return choice.candidate.form.to_string().find("winograd") != std::string::npos;
  });
  if (!has_winograd || exported_bytes < bytes / 8 * 9) return "";
  return fmt::format(
      " ({} in the model: Winograd's filters take more; --set schedules.winograd=off keeps them small)",
      format_bytes(bytes));
}

/// What was exported, and what is said of it.
struct Exported {
  ExportReport report;
  CompileReport compiled;
  nlohmann::json document;
  std::string note;
};

Exported export_fixed(const OpenModel& model, const ExportOptions& wanted) {
  auto [imported, built] = prepare(model);
  Exported exported;
  exported.report = export_model(built, wanted);
  exported.compiled = built.report;
  exported.note = weights_note(built, exported.report.weight_bytes);
  exported.document = report_json(imported, built.report, std::nullopt);
  return exported;
}

Exported export_ranges(const OpenModel& model, const ExportOptions& wanted) {
  Exported exported;
  exported.report = export_open_model(model, choose_or_end, wanted, exported.compiled);
  print_warnings(exported.compiled);
  exported.note = fmt::format(", {} programs", exported.report.programs);
  exported.document = report_json(load(model), exported.compiled, std::nullopt);
  return exported;
}

}  // namespace

int verb_export(std::span<const std::string> arguments) {
  Options options(
      "export MODEL.onnx --output DIR [OPTION ...]",
      "Writes a static library, a C header, weights and a CMake package. What links to it needs no Halide,\n"
      "LLVM or Python; see docs/embedding.md.");
  options.add_value("output", "DIR", "folder to write; made when missing");
  options.add_value("name", "NAME", "C identifier; made from the model's file name when not given");
  options.add_value(
      "architectures", "LIST",
      "with --device cuda: GPUs to make machine code for, e.g. sm_80,sm_90; this machine's when not given");
  options.add_flag("embed-weights", "put the weights into the library, instead of a file beside it");
  options.add_model_options();
  if (!options.parse(arguments)) return 0;
  if (!options.has("output")) throw UsageError("--output DIR is missing; see sylvite export --help");
  const ExportOptions wanted = export_options(options);
  const OpenModel model = open(options, compile_options(options));
  const OutputFolder folder(wanted);
  Exported exported =
      model.parsed.sizes.are_fixed() ? export_fixed(model, wanted) : export_ranges(model, wanted);
  const ExportReport& report = exported.report;
  exported.compiled.warnings = report.warnings;
  print_warnings(exported.compiled);
  std::string text = summary_line(model.path, exported.compiled);
  for (const std::string& file : report.files) text += file + "\n";
  text += fmt::format("library {}, weights {}{}\n", format_bytes(report.library_bytes),
                      format_bytes(report.weight_bytes), exported.note);
  say(options, text);
  nlohmann::json& document = exported.document;
  document["export"] = {{"name", report.name},
                        {"files", report.files},
                        {"programs", report.programs},
                        {"library_bytes", report.library_bytes},
                        {"weight_bytes", report.weight_bytes}};
  write_json(options, document);
  return 0;
}

}  // namespace sylvite
