#include "runtime/export/export_sources.h"

#include <Halide.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/plan/plan_loops.h"
#include "runtime/embedded.h"
#include "schedules/machine.h"

namespace sylvite {
namespace {

std::string_view source_name(BufferKind kind) {
  switch (kind) {
    case BufferKind::input:
      return "SYLVITE_INPUT";
    case BufferKind::output:
      return "SYLVITE_OUTPUT";
    case BufferKind::weight:
      return "SYLVITE_WEIGHT";
    case BufferKind::arena:
      return "SYLVITE_ARENA";
    case BufferKind::state:
      return "SYLVITE_STATE";
  }
  throw InternalError("corrupt buffer kind {}", static_cast<int>(kind));
}

/// Arguments, their dims, and launches: the counts say how long the arrays are.
struct LaunchTables {
  std::vector<std::string> dims;
  std::vector<std::string> arguments;
  std::vector<std::string> launches;
  std::size_t dim_count = 0;
};

void add_argument(LaunchTables& tables, const ExportedModel& model, const Argument& argument,
                  std::int64_t trip) {
  const halide_type_t type = halide_type_of(argument.dtype);
  std::int64_t place = argument.place.number;
  if (argument.place.kind == BufferKind::weight)
    place = model.slot_offsets.at(static_cast<std::size_t>(place));
  place += argument.moved(trip);
  tables.arguments.push_back(fmt::format("{{{}, {}, {}, {}, {}, {}}}", source_name(argument.place.kind),
                                         static_cast<int>(type.code), static_cast<int>(type.bits),
                                         argument.stored.size(), tables.dim_count, place));
  if (argument.stored.empty()) return;
  tables.dims.push_back(fmt::format("{}", fmt::join(argument.stored.rbegin(), argument.stored.rend(), ", ")));
  tables.dim_count += argument.stored.size();
}

/// Each trip of a loop has rows of its own: the tables hold addresses.
LaunchTables launch_tables(const ExportedModel& model) {
  LaunchTables tables;
  for_each_launch(*model.plan, [&](std::size_t i, std::int64_t trip) {
    const Launch& launch = model.plan->launches[i];
    const BoundLaunch& bound = model.bindings->launches[i];
    if (bound.is_empty) return;
    tables.launches.push_back(
        fmt::format("{{{}_argv, {}, {}, {}}}", model.symbols.at(static_cast<std::size_t>(launch.kernel)),
                    quoted(launch.name), tables.arguments.size(), bound.arguments.size()));
    for (const Argument& argument : bound.arguments) add_argument(tables, model, argument, trip);
  });
  return tables;
}

/// Of each state in a model's, in bytes.
std::vector<std::string> state_offsets(const Plan& plan) {
  std::vector<std::string> rows;
  rows.reserve(plan.states.size());
  for (const Port& state : plan.states)
    rows.push_back(std::to_string(plan.buffers.at(static_cast<std::size_t>(state.buffer)).offset));
  return rows;
}

std::vector<std::string> copy_rows(const ExportedModel& model) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < model.bindings->outputs.size(); ++i) {
    const Location place = model.bindings->outputs[i];
    if (place == Location{BufferKind::output, static_cast<std::int64_t>(i)}) continue;
    const std::int64_t number =
        place.kind == BufferKind::weight ? model.output_weight_offsets.at(i) : place.number;
    const std::int64_t bytes = model.plan->outputs[i].type.byte_size();
    rows.push_back(fmt::format("{{{}, {}, {}, {}}}", i, source_name(place.kind), number, bytes));
  }
  return rows;
}

/// Features of the target that a processor has or lacks; others do no harm: the runtime ignores what it
/// cannot test.
std::vector<std::string> feature_rows(const std::string& target_name) {
  const Halide::Target target(target_name);
  std::vector<std::string> rows;
  for (int bit = 0; bit < Halide::Target::FeatureEnd; ++bit) {
    const auto feature = static_cast<Halide::Target::Feature>(bit);
    if (!target.has_feature(feature)) continue;
    rows.push_back(fmt::format("{{{}, {}}}", bit, quoted(Halide::Target::feature_to_name(feature))));
  }
  return rows;
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte >= 0x7f || c == '?') {
      result += fmt::format("\\{:03o}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string embedded_weights_symbol(const std::string& name) {
  return name + "_embedded_weights";
}

std::string embedded_weights(const ExportedModel& model) {
  return model.embeds_weights ? embedded_weights_symbol(model.name) : "0";
}

std::string embedded_weights_declaration(const ExportedModel& model) {
  if (!model.embeds_weights) return "";
  return fmt::format("extern const unsigned char {}[];\n\n", embedded_weights_symbol(model.name));
}

std::string array_of(std::string_view type, std::string_view name, const std::vector<std::string>& rows) {
  std::string text = fmt::format("static {} {}[] = {{\n", type, name);
  for (const std::string& row : rows) text += fmt::format("  {},\n", row);
  if (rows.empty()) text += type.find("struct") == std::string_view::npos ? "  0,\n" : "  {0},\n";
  return text + "};\n\n";
}

std::string tensor_infos(const std::vector<Port>& ports, const std::string& what) {
  std::string text;
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const Port& port = ports[i];
    const Dims dims = port.type.dims();
    text += fmt::format("static const int64_t {}{}_dims[] = {{{}}};\n", what, i,
                        dims.empty() ? "0" : fmt::format("{}", fmt::join(dims, ", ")));
    rows.push_back(fmt::format("{{{}, {}, {}, {}{}_dims, {}}}", quoted(port.name),
                               quoted(dtype_name(port.type.dtype)), dims.size(), what, i,
                               port.type.byte_size()));
  }
  return text + array_of("const struct sylvite_tensor_info", what + "s", rows);
}

std::string filled(std::string_view pattern, const std::string& name) {
  constexpr std::string_view types = "@types@";
  std::string text(pattern);
  const auto replace_all = [&](std::string_view old, std::string_view replacement) {
    for (std::size_t at = text.find(old); at != std::string::npos;
         at = text.find(old, at + replacement.size()))
      text.replace(at, old.size(), replacement);
  };
  replace_all(types, embedded::model_types);
  replace_all("@", name);
  return text;
}

std::string tables_source(const ExportedModel& model) {
  const LaunchTables tables = launch_tables(model);
  const std::vector<std::string> copies = copy_rows(model);
  const std::vector<std::string> features = feature_rows(model.target);
  std::string text =
      fmt::format("/* Tables of the exported model {0}. Made by Sylvite. */\n#include \"{0}.h\"\n\n{1}\n",
                  model.name, embedded::launcher_header);
  for (const std::string& symbol : model.symbols)
    text += fmt::format("extern int {}_argv(void**);\n", symbol);
  text += '\n' + tensor_infos(model.plan->inputs, "input");
  text += tensor_infos(model.plan->outputs, "output");
  text += tensor_infos(model.plan->states, "state");
  text += array_of("const uint64_t", "state_offsets", state_offsets(*model.plan));
  text += embedded_weights_declaration(model);
  text += array_of("const int32_t", "dims", tables.dims);
  text += array_of("const struct sylvite_argument", "arguments", tables.arguments);
  text += array_of("const struct sylvite_launch", "launches", tables.launches);
  text += array_of("const struct sylvite_copy", "copies", copies);
  text += array_of("const struct sylvite_feature", "features", features);
  text += fmt::format(
      "static const struct sylvite_tables tables = {{\n  {}, {}, {}, {}, {}, {},\n  inputs, outputs, states, "
      "state_offsets, dims, arguments, launches, copies, features,\n  {}, {}, {}, {}, {}, {}, {}, {}, "
      "{},\n}};\n",
      quoted(model.name), quoted(model.id), model.weight_bytes, embedded_weights(model),
      model.plan->arena_bytes, model.plan->state_bytes, model.plan->inputs.size(), model.plan->outputs.size(),
      model.plan->states.size(), tables.arguments.size(), tables.launches.size(), copies.size(),
      features.size(), (static_cast<int>(halide_target_feature_end) + 63) / 64,
      has_amx(model.target) ? 1 : 0);
  return text + '\n' + filled(embedded::model_functions, model.name);
}

std::string interface_header(const ExportedModel& model) {
  return filled(embedded::model_header, model.name);
}

std::string package_config(const ExportedModel& model, bool tables_compiled) {
  std::string text = filled(embedded::package_config, model.name);
  if (model.embeds_weights)
    text += filled(
        "# The library holds the weights: this is no file, and @_create takes it as such.\nset(@_WEIGHTS "
        "\"\")\n",
        model.name);
  return text + (tables_compiled ? "" : filled(embedded::uncompiled_tables, model.name));
}

}  // namespace sylvite
