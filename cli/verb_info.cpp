#include "base/table.h"
#include "cli/facts_text.h"
#include "cli/model_options.h"
#include "cli/verb.h"
#include "frontend/onnx/model_facts.h"

namespace sylvite {
namespace {

std::string info_text(const ModelFacts& facts, const ModelSizes& sizes) {
  Table table({"what", "value"});
  for (const ModelPort& port : facts.inputs) table.add_row({"input", port.name + ": " + port.type});
  for (const ModelPort& port : facts.outputs) table.add_row({"output", port.name + ": " + port.type});
  table.add_row({"sizes", sizes.are_fixed() ? "all fixed" : describe_ranges(sizes)});
  table.add_row({"opsets", opsets_text(facts)});
  table.add_row({"producer", facts.producer.empty() ? "not said" : facts.producer});
  table.add_row({"weights", weights_text(facts)});
  table.add_row({"nodes", fmt::format("{}: {}", facts.nodes, operators_text(facts))});
  if (facts.functions > 0) table.add_row({"functions", std::to_string(facts.functions)});
  return table.to_string();
}

nlohmann::json ports_json(const std::vector<ModelPort>& ports) {
  nlohmann::json json = nlohmann::json::array();
  for (const ModelPort& port : ports) json.push_back({{"name", port.name}, {"type", port.type}});
  return json;
}

nlohmann::json info_json(const std::string& path, const ModelFacts& facts, const ModelSizes& sizes) {
  nlohmann::json json = {{"model", path},
                         {"inputs", ports_json(facts.inputs)},
                         {"outputs", ports_json(facts.outputs)},
                         {"sizes", nlohmann::json::object()},
                         {"opsets", facts.opsets},
                         {"ir_version", facts.ir_version},
                         {"producer", facts.producer},
                         {"nodes", facts.nodes},
                         {"operators", facts.operators},
                         {"functions", facts.functions},
                         {"weights", facts.weights},
                         {"weight_elements", facts.weight_elements},
                         {"weight_bytes", facts.weight_bytes},
                         {"external_weights", facts.external_weights}};
  for (const SizeSymbol& symbol : sizes.symbols)
    json["sizes"][symbol.name] = {{"low", symbol.range.low},
                                  {"high", symbol.range.high},
                                  {"multiple", symbol.range.multiple},
                                  {"hints", symbol.range.hints}};
  return json;
}

}  // namespace

int verb_info(std::span<const std::string> arguments) {
  Options options(
      "info MODEL.onnx [OPTION ...]",
      "Says what a model takes and gives, which sizes are open, and what it is made of. Compiles\n"
      "nothing.");
  options.add_model_options();
  if (!options.parse(arguments)) return 0;
  const CompileOptions wanted = compile_options(options);
  const OpenModel model = open(options.words().front(), begin(options, wanted), wanted.import);
  const ModelFacts& facts = model.facts;
  say(options, info_text(facts, model.parsed.sizes));
  if (options.has("json")) write_json(options, info_json(model.path, facts, model.parsed.sizes));
  return 0;
}

}  // namespace sylvite
