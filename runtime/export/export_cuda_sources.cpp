#include "runtime/export/export_cuda_sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "runtime/cuda/launch_maker.h"
#include "runtime/cuda/nvjitlink.h"
#include "runtime/embedded.h"

namespace sylvite {
namespace {

using cuda::NotedLaunch;

/// The images of the notes, each once.
std::vector<const NotedLaunch*> images_of(const DeviceNotes& notes) {
  std::vector<const NotedLaunch*> images;
  for (const NotedLaunches& launches : notes.launches) {
    for (const NotedLaunch& launch : launches) {
      if (launch.library) {
        const bool is_matmul = std::holds_alternative<LibraryMatmul>(*launch.library);
        throw UnsupportedError("{}'s kernels cannot be exported: export with schedules.{}=false",
                               is_matmul ? "cuBLASLt" : "cuDNN", is_matmul ? "cublaslt" : "cudnn");
      }
      const auto is_same = [&](const NotedLaunch* each) { return each->image == launch.image; };
      if (std::ranges::none_of(images, is_same)) images.push_back(&launch);
    }
  }
  return images;
}

std::size_t image_number(const std::vector<const NotedLaunch*>& images, const NotedLaunch& launch) {
  const auto is_same = [&](const NotedLaunch* each) { return each->image == launch.image; };
  return static_cast<std::size_t>(std::ranges::find_if(images, is_same) - images.begin());
}

/// "sm_90a": 90, exact.
CudaCode code_for(const std::string& architecture) {
  const bool is_name = architecture.starts_with("sm_") && architecture.size() > 4;
  const bool exact = architecture.ends_with('a');
  const std::string digits = is_name ? architecture.substr(3, architecture.size() - 3 - (exact ? 1 : 0)) : "";
  if (digits.empty() || !std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c) != 0; }))
    throw UsageError("'{}' is no architecture of a GPU; write sm_80, sm_90 or the like", architecture);
  return {std::stoi(digits), exact, ""};
}

std::vector<CudaCode> codes_of(const NotedLaunch& image, const std::vector<std::string>& architectures,
                               std::string& missing) {
  if (!image.architecture.empty()) {
    CudaCode code = code_for(image.architecture);
    code.bytes = *image.image;
    return {code};
  }
  std::vector<CudaCode> codes;
  for (const std::string& architecture : architectures) {
    CudaCode code = code_for(architecture);
    try {
      code.bytes = cuda::assemble_ptx(*image.image, architecture);
      codes.push_back(std::move(code));
    } catch (const UnsupportedError& error) {
      missing = error.what();
    }
  }
  // Exact matches are tried first, then the latest of the same generation.
  std::ranges::sort(codes, std::greater<>(), &CudaCode::capability);
  codes.push_back({0, false, *image.image});
  return codes;
}

/// The rows of all tables; the counts say how long they are.
struct CudaTables {
  std::string bytes;
  std::vector<std::string> places;
  std::vector<std::string> maps;
  std::vector<std::string> arguments;
  std::vector<std::string> launches;
  std::vector<std::string> codes;
  std::vector<std::string> images;
  std::string code_arrays;
};

std::string place_row(const ExportedModel& model, const cuda::SymbolicAddress& address) {
  const bool is_weight = address.region == cuda::Region::weight;
  const auto offset = is_weight ? static_cast<std::uint64_t>(model.slot_offsets.at(address.number)) : 0;
  return fmt::format("{{{}, {}, {}}}", static_cast<int>(address.region), is_weight ? 0 : address.number,
                     offset + address.offset);
}

std::string map_row(const ExportedModel& model, const cuda::MapArgument& argument) {
  const CudaTensorMap& map = argument.map;
  cuda::SymbolicAddress address = argument.address;
  address.offset += static_cast<std::uint64_t>(map.offset);
  const CudaWindows windows = map.windows.value_or(CudaWindows{});
  return fmt::format("{{{}, {{{}}}, {{{}}}, {{{}}}, {{1, {}, {}, 1}}, {{{}}}, {{{}}}, {}, {}, {}}}",
                     place_row(model, address), fmt::join(map.dims, ", "), fmt::join(map.pitches, ", "),
                     fmt::join(map.box, ", "), windows.step[0], windows.step[1],
                     fmt::join(windows.first, ", "), fmt::join(windows.last, ", "),
                     cuda::driver_map_type(map), cuda::driver_map_swizzle(map.swizzle), map.windows ? 1 : 0);
}

/// One row of the arguments' table, after what it refers to.
struct ArgumentRow {
  const ExportedModel& model;
  CudaTables& tables;

  std::string operator()(const cuda::BytesArgument& bytes) const {
    const std::size_t first = tables.bytes.size();
    tables.bytes.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    tables.bytes.resize((tables.bytes.size() + 7) / 8 * 8, '\0');
    return fmt::format("{{SYLVITE_CUDA_BYTES, {}, {}}}", first, bytes.size());
  }
  std::string operator()(const cuda::PointerArgument& pointers) const {
    const std::size_t first = tables.places.size();
    for (const std::uint64_t word : pointers.words) {
      tables.places.push_back(cuda::is_address(word) ? place_row(model, cuda::decode_address(word))
                                                     : fmt::format("{{SYLVITE_NOWHERE, 0, {}}}", word));
    }
    return fmt::format("{{SYLVITE_CUDA_POINTERS, {}, {}}}", first, pointers.words.size());
  }
  std::string operator()(const cuda::MapArgument& map) const {
    if (map.map.argument < 0) return "{SYLVITE_CUDA_NO_MAP, 0, 0}";
    tables.maps.push_back(map_row(model, map));
    return fmt::format("{{SYLVITE_CUDA_MAP, {}, 1}}", tables.maps.size() - 1);
  }
};

void add_launch(CudaTables& tables, const ExportedModel& model, const std::string& name,
                const NotedLaunch& launch, std::size_t image) {
  const std::size_t first = tables.arguments.size();
  for (const cuda::NotedArgument& argument : launch.arguments) {
    const std::string row = std::visit(ArgumentRow{model, tables}, argument);
    tables.arguments.push_back(row);
  }
  const LaunchShape& shape = launch.shape;
  tables.launches.push_back(fmt::format("{{{}, {}, {}, {{{}}}, {{{}}}, {}, {}, {}, {}, {}}}", c_string(name),
                                        c_string(launch.function), image, fmt::join(shape.grid, ", "),
                                        fmt::join(shape.block, ", "), shape.cluster, shape.shared_bytes,
                                        shape.programmatic ? 1 : 0, first, launch.arguments.size()));
}

void add_codes(CudaTables& tables, const std::vector<CudaCode>& codes) {
  tables.images.push_back(fmt::format("{{{}, {}}}", tables.codes.size(), codes.size()));
  for (const CudaCode& code : codes) {
    const std::string name = fmt::format("code{}", tables.codes.size());
    tables.code_arrays +=
        fmt::format("static const _Alignas(64) char {}[] = {};\n", name, c_string(code.bytes));
    tables.codes.push_back(fmt::format("{{{}, {}, {}}}", code.capability, code.exact ? 1 : 0, name));
  }
}

std::vector<std::string> copy_rows(const ExportedModel& model) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < model.bindings->outputs.size(); ++i) {
    const Location place = model.bindings->outputs[i];
    const std::int64_t bytes = model.plan->outputs[i].type.byte_size();
    if (place == Location{BufferKind::output, static_cast<std::int64_t>(i)} || bytes == 0) continue;
    const std::string from = place.kind == BufferKind::weight ? fmt::format("{{SYLVITE_CUDA_WEIGHTS, 0, {}}}",
                                                                            model.output_weight_offsets.at(i))
                                                              : place_row(model, symbolic(place));
    rows.push_back(fmt::format("{{{}, {}, {}}}", i, from, bytes));
  }
  return rows;
}

}  // namespace

std::vector<std::vector<CudaCode>> device_codes(const DeviceNotes& notes,
                                                const std::vector<std::string>& architectures,
                                                std::vector<std::string>& warnings) {
  std::vector<std::vector<CudaCode>> codes;
  std::string missing;
  for (const NotedLaunch* image : images_of(notes)) codes.push_back(codes_of(*image, architectures, missing));
  if (!missing.empty()) {
    warnings.push_back(fmt::format(
        "{}; the library holds PTX, which the driver compiles whenever a model is created", missing));
  }
  return codes;
}

std::string cuda_tables_source(const ExportedModel& model, const DeviceNotes& notes,
                               const std::vector<std::vector<CudaCode>>& codes) {
  const std::vector<const NotedLaunch*> images = images_of(notes);
  const std::vector<std::string> copies = copy_rows(model);
  CudaTables tables;
  for (const std::vector<CudaCode>& each : codes) add_codes(tables, each);
  for (std::size_t i = 0; i < notes.launches.size(); ++i)
    for (const NotedLaunch& launch : notes.launches[i])
      add_launch(tables, model, model.plan->launches.at(i).name, launch, image_number(images, launch));
  std::string text =
      fmt::format("/* Tables of the exported model {0}. Made by Sylvite. */\n#include \"{0}.h\"\n\n{1}\n",
                  model.name, embedded::cuda_launcher_header);
  text += tensor_infos(model.plan->inputs, "input");
  text += tensor_infos(model.plan->outputs, "output");
  text += tensor_infos(model.plan->states, "state");
  text += array_of("const uint64_t", "state_offsets", state_offsets(*model.plan));
  text += embedded_weights_declaration(model);
  text += fmt::format("static const _Alignas(8) unsigned char bytes[] = {};\n\n", c_string(tables.bytes));
  text += array_of("const struct sylvite_cuda_place", "places", tables.places);
  text += array_of("const struct sylvite_cuda_map", "maps", tables.maps);
  text += array_of("const struct sylvite_cuda_argument", "arguments", tables.arguments);
  text += tables.code_arrays;
  text += array_of("const struct sylvite_cuda_code", "codes", tables.codes);
  text += array_of("const struct sylvite_cuda_image", "images", tables.images);
  text += array_of("const struct sylvite_cuda_launch", "launches", tables.launches);
  text += array_of("const struct sylvite_cuda_copy", "copies", copies);
  text += fmt::format(
      "static const struct sylvite_cuda_tables tables = {{\n  {}, {}, {}, {}, {}, {}, {},\n  inputs, "
      "outputs, "
      "states, state_offsets, bytes, places, maps, arguments, codes, images, launches, copies,\n"
      "  {}, {}, {}, {}, {}, {}, {}, {}, {},\n}};\n",
      c_string(model.name), c_string(model.id), model.weight_bytes, embedded_weights(model),
      model.plan->arena_bytes, notes.scratch_bytes, model.plan->state_bytes, model.plan->inputs.size(),
      model.plan->outputs.size(), model.plan->states.size(), tables.places.size(), tables.maps.size(),
      tables.arguments.size(), tables.images.size(), tables.launches.size(), copies.size());
  return text + '\n' + filled(embedded::cuda_model_functions, model.name);
}

std::string cuda_interface_header(const ExportedModel& model) {
  return filled(embedded::cuda_model_header, model.name);
}

}  // namespace sylvite
