#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/verb.h"

namespace sylvite {

int verb_compile(std::span<const std::string> arguments) {
  Options options("compile MODEL.onnx [OPTION ...]",
                  "Compiles a model and keeps the objects in the cache, so that later runs start at once.");
  options.add_model_options();
  if (!options.parse(arguments)) return 0;
  const OpenModel model = open(options, compile_options(options));
  const Family family = prepare_family(model);
  say(options, summary_line(model.path, family.report()));
  if (options.has("json")) write_json(options, report_json(load(model), family.report(), std::nullopt));
  return 0;
}

}  // namespace sylvite
