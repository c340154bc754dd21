#include "runtime/export_sources.h"

#include <Halide.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "lowering/halide_types.h"
#include "runtime/embedded.h"

namespace sylvite {
namespace {

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

/// `static TYPE NAME[] = {ROWS};`, with one null row when there are none: C has no empty arrays.
std::string array_of(std::string_view type, std::string_view name, const std::vector<std::string>& rows) {
  std::string text = fmt::format("static {} {}[] = {{\n", type, name);
  for (const std::string& row : rows) text += fmt::format("  {},\n", row);
  if (rows.empty()) text += "  {0},\n";
  return text + "};\n\n";
}

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
  }
  throw InternalError("corrupt buffer kind {}", static_cast<int>(kind));
}

std::string tensor_infos(const Plan& plan, const std::vector<BufferId>& ids, const std::string& what) {
  std::string text;
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Buffer& buffer = plan.buffers.at(static_cast<std::size_t>(ids[i]));
    const Dims dims = buffer.type.dims();
    text += fmt::format("static const int64_t {}{}_dims[] = {{{}}};\n", what, i,
                        dims.empty() ? "0" : fmt::format("{}", fmt::join(dims, ", ")));
    rows.push_back(fmt::format("{{{}, {}, {}, {}{}_dims, {}}}", quoted(buffer.name),
                               quoted(dtype_name(buffer.type.dtype)), dims.size(), what, i,
                               buffer.type.byte_size()));
  }
  return text + array_of("const struct sylvite_tensor_info", what + "s", rows);
}

/// Arguments, their dims, and launches: the counts say how long the arrays are.
struct LaunchTables {
  std::vector<std::string> dims;
  std::vector<std::string> arguments;
  std::vector<std::string> launches;
  std::size_t dim_count = 0;
};

void add_argument(LaunchTables& tables, const ExportedModel& model, const Argument& argument) {
  const halide_type_t type = halide_type_of(argument.dtype);
  std::int64_t place = argument.place.number;
  if (argument.place.kind == BufferKind::weight)
    place = model.slot_offsets.at(static_cast<std::size_t>(place));
  tables.arguments.push_back(fmt::format("{{{}, {}, {}, {}, {}, {}}}", source_name(argument.place.kind),
                                         static_cast<int>(type.code), static_cast<int>(type.bits),
                                         argument.stored.size(), tables.dim_count, place));
  if (argument.stored.empty()) return;
  tables.dims.push_back(fmt::format("{}", fmt::join(argument.stored.rbegin(), argument.stored.rend(), ", ")));
  tables.dim_count += argument.stored.size();
}

LaunchTables launch_tables(const ExportedModel& model) {
  LaunchTables tables;
  for (std::size_t i = 0; i < model.plan->launches.size(); ++i) {
    const Launch& launch = model.plan->launches[i];
    const BoundLaunch& bound = model.bindings->launches[i];
    if (bound.is_empty) continue;
    tables.launches.push_back(
        fmt::format("{{{}_argv, {}, {}, {}}}", model.symbols.at(static_cast<std::size_t>(launch.kernel)),
                    quoted(launch.name), tables.arguments.size(), bound.arguments.size()));
    for (const Argument& argument : bound.arguments) add_argument(tables, model, argument);
  }
  return tables;
}

std::vector<std::string> copy_rows(const ExportedModel& model) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < model.bindings->outputs.size(); ++i) {
    const Place place = model.bindings->outputs[i];
    if (place == Place{BufferKind::output, static_cast<std::int64_t>(i)}) continue;
    const std::int64_t number =
        place.kind == BufferKind::weight ? model.output_weight_offsets.at(i) : place.number;
    const Buffer& buffer = model.plan->buffers.at(static_cast<std::size_t>(model.plan->outputs[i]));
    rows.push_back(
        fmt::format("{{{}, {}, {}, {}}}", i, source_name(place.kind), number, buffer.type.byte_size()));
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

constexpr std::string_view functions_template = R"(
int @_create(const char* weights_path, sylvite_model** model) {
  return sylvite_model_create(&tables, weights_path, model);
}
int @_run(sylvite_model* model, const void* const* given, void* const* results) {
  return sylvite_model_run(model, given, results);
}
void @_destroy(sylvite_model* model) { sylvite_model_destroy(model); }
const char* @_error_message(const sylvite_model* model) { return sylvite_model_error_message(model); }
int @_set_threads(int threads) { return sylvite_model_set_threads(threads); }
int @_input_count(void) { return (int)tables.input_count; }
int @_output_count(void) { return (int)tables.output_count; }
const struct sylvite_tensor_info* @_input(int number) {
  return number >= 0 && number < @_input_count() ? &inputs[number] : NULL;
}
const struct sylvite_tensor_info* @_output(int number) {
  return number >= 0 && number < @_output_count() ? &outputs[number] : NULL;
}
)";

constexpr std::string_view header_template = R"(/* @: a model exported by Sylvite.
 *
 *   sylvite_model* model;
 *   if (@_create("@.weights", &model) != SYLVITE_OK) puts(@_error_message(NULL));
 *   const void* inputs[] = {...};   one dense row-major array per input, as @_input(i) says
 *   void* outputs[] = {...};        one per output
 *   @_run(model, inputs, outputs);
 *   @_destroy(model);
 *
 * Link with lib@.a, -lm, -lpthread and -ldl; or with CMake: find_package(@), then @::@.
 * One model is for one thread at a time; different models are independent. Loops run on one pool per process. */
#ifndef SYLVITE_MODEL_@_H
#define SYLVITE_MODEL_@_H

#include <stddef.h>
#include <stdint.h>

#ifndef SYLVITE_EMBED_TYPES
#define SYLVITE_EMBED_TYPES
/* Statuses. Values are frozen. */
enum {
  SYLVITE_OK = 0,
  SYLVITE_NULL_ARGUMENT = 1,
  SYLVITE_BAD_WEIGHTS = 2,     /* absent, damaged, or of another model */
  SYLVITE_OUT_OF_MEMORY = 3,
  SYLVITE_UNSUPPORTED_CPU = 4, /* the processor lacks instructions that the kernels use */
  SYLVITE_RUN_FAILED = 5
};
struct sylvite_tensor_info {
  const char* name;
  const char* dtype; /* f32, i64, bool (one byte), ... */
  int rank;
  const int64_t* dims; /* outermost first */
  size_t bytes;        /* dense, row-major */
};
typedef struct sylvite_model sylvite_model;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Reads and checks the weights. Returns a status; *model is null unless it is SYLVITE_OK. */
int @_create(const char* weights_path, sylvite_model** model);
/* Arrays must be aligned for their type. Returns a status. */
int @_run(sylvite_model* model, const void* const* inputs, void* const* outputs);
void @_destroy(sylvite_model* model); /* null is fine */
/* What the last call that failed says; of null: the last create in this thread. */
const char* @_error_message(const sylvite_model* model);
/* Threads of all models in this process; 0 for all cores. Returns the former number. */
int @_set_threads(int threads);

int @_input_count(void);
int @_output_count(void);
const struct sylvite_tensor_info* @_input(int number); /* null when out of range */
const struct sylvite_tensor_info* @_output(int number);

#ifdef __cplusplus
}
#endif
#endif
)";

constexpr std::string_view package_template =
    R"(# @: a model exported by Sylvite. find_package(@) gives the target @::@ and the variable @_WEIGHTS.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
set(@_WEIGHTS "${CMAKE_CURRENT_LIST_DIR}/@.weights")
if(NOT TARGET @::@)
  add_library(@::@ STATIC IMPORTED)
  set_target_properties(@::@ PROPERTIES
    IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/lib@.a"
    INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;m;${CMAKE_DL_LIBS}")
endif()
)";

constexpr std::string_view uncompiled_template = R"(
# There was no C compiler when the model was exported: the project that links it compiles the tables.
set_property(TARGET @::@ PROPERTY INTERFACE_SOURCES "${CMAKE_CURRENT_LIST_DIR}/@.c")
)";

/// The template with every @ replaced.
std::string filled(std::string_view pattern, const std::string& name) {
  std::string text;
  for (const char c : pattern) {
    if (c == '@') {
      text += name;
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string tables_source(const ExportedModel& model) {
  const LaunchTables tables = launch_tables(model);
  const std::vector<std::string> copies = copy_rows(model);
  const std::vector<std::string> features = feature_rows(model.target);
  std::string text = fmt::format("/* Tables of the exported model {}. Made by Sylvite. */\n{}\n", model.name,
                                 embedded::launcher_header);
  for (const std::string& symbol : model.symbols)
    text += fmt::format("extern int {}_argv(void**);\n", symbol);
  text += '\n' + tensor_infos(*model.plan, model.plan->inputs, "input");
  text += tensor_infos(*model.plan, model.plan->outputs, "output");
  text += array_of("const int32_t", "dims", tables.dims);
  text += array_of("const struct sylvite_argument", "arguments", tables.arguments);
  text += array_of("const struct sylvite_launch", "launches", tables.launches);
  text += array_of("const struct sylvite_copy", "copies", copies);
  text += array_of("const struct sylvite_feature", "features", features);
  text += fmt::format(
      "static const struct sylvite_tables tables = {{\n  {}, {}, {}, {},\n  inputs, outputs, dims, "
      "arguments, "
      "launches, copies, features,\n  {}, {}, {}, {}, {}, {}, {},\n}};\n",
      quoted(model.name), quoted(model.id), model.weight_bytes, model.plan->arena_bytes,
      model.plan->inputs.size(), model.plan->outputs.size(), tables.arguments.size(), tables.launches.size(),
      copies.size(), features.size(), (static_cast<int>(halide_target_feature_end) + 63) / 64);
  return text + filled(functions_template, model.name);
}

std::string interface_header(const ExportedModel& model) {
  return filled(header_template, model.name);
}

std::string package_config(const std::string& name, bool tables_compiled) {
  return filled(package_template, name) + (tables_compiled ? "" : filled(uncompiled_template, name));
}

}  // namespace sylvite
