#include "runtime/export/export_sources.h"

#include <Halide.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "runtime/embedded.h"
#include "runtime/export/program_tables.h"
#include "schedules/machine.h"

namespace sylvite {
namespace {

std::vector<std::string> size_rows(const std::vector<SizeSymbol>& sizes) {
  std::vector<std::string> rows;
  rows.reserve(sizes.size());
  for (const SizeSymbol& size : sizes)
    rows.push_back(fmt::format("{{{}, {}, {}, {}}}", c_string(size.name), size.range.low, size.range.high,
                               size.range.multiple));
  return rows;
}

/// The number of the state that says how long states are that grow.
std::ptrdiff_t length_state(const ExportedModel& model) {
  if (!model.growth) return 0;
  const std::vector<Port>& states = model.plan->states;
  return std::ranges::find(states, model.growth->length, &Port::name) - states.begin();
}

/// Features of the target that a processor has or lacks; others do no harm: the runtime ignores what it
/// cannot test.
std::vector<std::string> feature_rows(const std::string& target_name) {
  const Halide::Target target(target_name);
  std::vector<std::string> rows;
  for (int bit = 0; bit < Halide::Target::FeatureEnd; ++bit) {
    const auto feature = static_cast<Halide::Target::Feature>(bit);
    if (!target.has_feature(feature)) continue;
    rows.push_back(fmt::format("{{{}, {}}}", bit, c_string(Halide::Target::feature_to_name(feature))));
  }
  return rows;
}

}  // namespace

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

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string c_string(std::string_view text) {
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

std::string array_of(std::string_view type, std::string_view name, const std::vector<std::string>& rows) {
  std::string text = fmt::format("static {} {}[] = {{\n", type, name);
  for (const std::string& row : rows) text += fmt::format("  {},\n", row);
  if (rows.empty()) text += type.find("struct") == std::string_view::npos ? "  0,\n" : "  {0},\n";
  return text + "};\n\n";
}

std::string filled(std::string_view pattern, const std::string& name,
                   const std::vector<std::pair<std::string, std::string>>& parts) {
  std::string text(pattern);
  const auto replace_all = [&](std::string_view old, std::string_view replacement) {
    for (std::size_t at = text.find(old); at != std::string::npos;
         at = text.find(old, at + replacement.size()))
      text.replace(at, old.size(), replacement);
  };
  replace_all("@types@", embedded::model_types);
  for (const auto& [part, replacement] : parts) replace_all(part, replacement);
  replace_all("@", name);
  return text;
}

std::vector<std::pair<std::string, std::string>> interface_parts(const ExportedModel& model,
                                                                 std::string_view launcher) {
  const bool has_sizes = !model.sizes.empty();
  const std::string sizes_say =
      has_sizes
          ? "At these sizes, in the order of @_size(i); arrays are as @_input_dims and @_output_dims say. "
          : "";
  const std::string room_says =
      model.growth ? "SYLVITE_NO_ROOM where states would become longer than they can be. " : "";
  return {{"@run_says@", fmt::format("/* {}{}Arrays must be aligned for their type. Returns a status. */",
                                     sizes_say, room_says)},
          {"@capture_says@", model.growth ? "Is refused while the stream is captured into a CUDA graph."
                                          : "May be captured into a CUDA graph."},
          {"@open_functions@", std::string(model.is_open() ? embedded::model_header_open : "")},
          {"@sizes_given@", has_sizes ? "sizes, " : ""},
          {"@sizes@", has_sizes ? "const int64_t* sizes, " : ""},
          {"@sizes_or_null@", has_sizes ? "sizes" : "NULL"},
          {"@launcher@", std::string(launcher)}};
}

std::string interface_functions(const ExportedModel& model, std::string_view functions,
                                std::string_view launcher) {
  const auto parts = interface_parts(model, launcher);
  return filled(functions, model.name, parts) +
         (model.is_open() ? filled(embedded::model_functions_open, model.name, parts) : "");
}

namespace {

std::vector<std::string> state_offsets(const Plan& plan) {
  std::vector<std::string> rows;
  rows.reserve(plan.states.size());
  for (const Port& state : plan.states)
    rows.push_back(std::to_string(plan.buffers.at(static_cast<std::size_t>(state.buffer)).offset));
  return rows;
}

/// The weights in the library, and their declaration; none where they are in a file.
std::string embedded_weights(const ExportedModel& model) {
  return model.embeds_weights ? embedded_weights_symbol(model.name) : "0";
}

std::string embedded_weights_declaration(const ExportedModel& model) {
  if (!model.embeds_weights) return "";
  return fmt::format("extern const unsigned char {}[];\n\n", embedded_weights_symbol(model.name));
}

/// The descriptions of inputs, outputs or states; `what` is "input", "output" or "state".
std::string tensor_infos(const std::vector<Port>& ports, const std::string& what) {
  std::string text;
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const Port& port = ports[i];
    const Dims dims = port.type.dims();
    text += fmt::format("static const int64_t {}{}_dims[] = {{{}}};\n", what, i,
                        dims.empty() ? "0" : fmt::format("{}", fmt::join(dims, ", ")));
    rows.push_back(fmt::format("{{{}, {}, {}, {}{}_dims, {}}}", c_string(port.name),
                               c_string(dtype_name(port.type.dtype)), dims.size(), what, i,
                               port.type.byte_size()));
  }
  return text + array_of("const struct sylvite_tensor_info", what + "s", rows);
}

}  // namespace

std::string tables_begin(const ExportedModel& model, std::string_view launcher_header) {
  return fmt::format(
             "/* Tables of the exported model {0}. Made by Sylvite. */\n#include \"{0}.h\"\n\n{1}\n{2}\n",
             model.name, embedded::sized_program_header, launcher_header) +
         tensor_infos(model.plan->inputs, "input") + tensor_infos(model.plan->outputs, "output") +
         tensor_infos(model.plan->states, "state") +
         array_of("const uint64_t", "state_offsets", state_offsets(*model.plan)) +
         array_of("const struct sylvite_size_info", "size_infos", size_rows(model.sizes)) +
         embedded_weights_declaration(model);
}

std::string interface_row(const ExportedModel& model, std::size_t number_count) {
  return fmt::format(
      "{{{}, {}, {}, {},\n   inputs, outputs, states, state_offsets, {}, size_infos, boxes,\n   {}, {}, {}, "
      "{}, "
      "{}, {}, {}, {}}}",
      c_string(model.name), c_string(model.id), model.weight_bytes, embedded_weights(model),
      model.plan->state_bytes, model.growth ? model.growth->capacity : 0, length_state(model), number_count,
      model.plan->inputs.size(), model.plan->outputs.size(), model.plan->states.size(), model.sizes.size(),
      model.programs.size());
}

std::string tables_source(const ExportedModel& model) {
  std::string text = tables_begin(model, embedded::launcher_header);
  const ProgramTables programs = program_tables(model);
  text += programs.text;
  const std::vector<std::string> features = feature_rows(model.target);
  text += array_of("const struct sylvite_feature", "features", features);
  text += fmt::format(
      "static const struct sylvite_tables tables = {{\n  {},\n  {}, programs, features, {}, {}, {},\n}};\n",
      interface_row(model, programs.number_count), programs.arena_bytes, features.size(),
      (static_cast<int>(halide_target_feature_end) + 63) / 64, has_amx(model.target) ? 1 : 0);
  return text + '\n' + interface_functions(model, embedded::model_functions, "sylvite_model");
}

std::string interface_header(const ExportedModel& model) {
  return filled(embedded::model_header, model.name, interface_parts(model, "sylvite_model"));
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
