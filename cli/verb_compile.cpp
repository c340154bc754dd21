#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/verb.h"

namespace sylvite {

int verb_compile(std::span<const std::string> arguments) {
  Options options("compile MODEL.onnx [OPTION ...]",
                  "Compiles a model and keeps the objects in the cache, so that later runs start at once.");
  options.add_model_options();
  if (!options.parse(arguments)) return 0;
  const auto [imported, built] = prepare(options, compile_options(options));
  say(options, summary_line(imported.path, built.report));
  write_json(options, report_json(imported, built.report, std::nullopt));
  return 0;
}

}  // namespace sylvite
