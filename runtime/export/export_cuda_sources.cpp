#include "runtime/export/export_cuda_sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/error.h"
#include "runtime/cuda/launch_maker.h"
#include "runtime/cuda/nvjitlink.h"
#include "runtime/embedded.h"
#include "runtime/export/box_tables.h"

namespace sylvite {
namespace {

using cuda::NotedLaunch;

/// The images of all programs, each once; programs may have equal ones at two places.
class Images {
 public:
  explicit Images(const std::vector<ExportedProgram>& programs) {
    for (const ExportedProgram& program : programs)
      for (const ExportedDeviceLaunch& launch : program.device_launches) add(launch.noted);
  }

  [[nodiscard]] const std::vector<const NotedLaunch*>& all() const { return all_; }
  [[nodiscard]] std::size_t number_of(const NotedLaunch& launch) const { return numbers_.at(*launch.image); }

 private:
  void add(const NotedLaunch& launch) {
    if (launch.library) {
      const bool is_matmul = std::holds_alternative<LibraryMatmul>(*launch.library);
      throw UnsupportedError("{}'s kernels cannot be exported: export with schedules.{}=false",
                             is_matmul ? "cuBLASLt" : "cuDNN", is_matmul ? "cublaslt" : "cudnn");
    }
    if (numbers_.try_emplace(*launch.image, all_.size()).second) all_.push_back(&launch);
  }

  std::vector<const NotedLaunch*> all_;
  std::map<std::string_view, std::size_t> numbers_;  ///< by what is in the image
};

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

/// The tables of program number `number`, whose names end with it. Bytes are in one table of all programs.
class CudaProgramText {
 public:
  CudaProgramText(const ExportedModel& model, std::size_t number, const Images& images, std::string& bytes)
      : program_(model.programs[number]),
        images_(images),
        bytes_(bytes),
        numbers_(model.sizes),
        box_(program_, numbers_, number) {}

  std::string write() {
    for (const ExportedDeviceLaunch& launch : program_.device_launches) add_launch(launch);
    const std::vector<std::string> copies = copy_rows();
    std::string text = box_.text() + array("sylvite_cuda_place", "places", places_) +
                       array("sylvite_cuda_map", "maps", maps_) +
                       array("sylvite_cuda_argument", "arguments", arguments_) +
                       array("sylvite_cuda_launch", "launches", launches_) +
                       array("sylvite_cuda_copy", "copies", copies) + box_.function();
    row_ = fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}", box_.name("places"), box_.name("maps"),
                       box_.name("arguments"), box_.name("launches"), box_.name("copies"), places_.size(),
                       maps_.size(), arguments_.size(), launches_.size(), copies.size());
    return text;
  }
  /// Once they are written.
  [[nodiscard]] const std::string& row() const { return row_; }
  [[nodiscard]] std::string box_row() const { return box_.row(); }
  [[nodiscard]] std::size_t number_count() const { return numbers_.count(); }

 private:
  [[nodiscard]] std::string array(const std::string& type, const std::string& table,
                                  const std::vector<std::string>& rows) const {
    return array_of("const struct " + type, box_.name(table), rows);
  }
  [[nodiscard]] std::string place_row(const ExportedPlace& place) {
    return fmt::format("{{{}, {}, {}}}", place.region ? static_cast<int>(*place.region) : 0, place.number,
                       numbers_.of(place.offset));
  }

  [[nodiscard]] std::string map_row(const ExportedMap& exported) {
    const CudaTensorMap& map = exported.map;
    const CudaWindows windows = map.windows.value_or(CudaWindows{});
    return fmt::format("{{{}, {{{}}}, {{{}}}, {{{}}}, {{1, {}, {}, 1}}, {{{}}}, {{{}}}, {}, {}, {}}}",
                       place_row(exported.place), joined(numbers_.of(exported.dims)),
                       joined(numbers_.of(exported.pitches)), joined(numbers_.of(exported.box)),
                       windows.step[0], windows.step[1], fmt::join(windows.first, ", "),
                       fmt::join(windows.last, ", "), cuda::driver_map_type(map),
                       cuda::driver_map_swizzle(map.swizzle), map.windows ? 1 : 0);
  }

  // The row of an argument, after what it refers to.
  std::string row_of(const cuda::BytesArgument& bytes) {
    const std::size_t first = bytes_.size();
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    bytes_.resize((bytes_.size() + 7) / 8 * 8, '\0');
    return fmt::format("{{SYLVITE_CUDA_BYTES, {}, {}}}", first, bytes.size());
  }
  std::string row_of(const std::vector<ExportedPlace>& places) {
    const std::size_t first = places_.size();
    for (const ExportedPlace& place : places) places_.push_back(place_row(place));
    return fmt::format("{{SYLVITE_CUDA_POINTERS, {}, {}}}", first, places.size());
  }
  std::string row_of(const std::optional<ExportedMap>& map) {
    if (!map) return "{SYLVITE_CUDA_NO_MAP, 0, 0}";
    maps_.push_back(map_row(*map));
    return fmt::format("{{SYLVITE_CUDA_MAP, {}, 1}}", maps_.size() - 1);
  }

  void add_launch(const ExportedDeviceLaunch& launch) {
    const std::size_t first = arguments_.size();
    for (const ExportedParameter& parameter : launch.parameters)
      arguments_.push_back(std::visit([&](const auto& given) { return row_of(given); }, parameter));
    const LaunchShape& shape = launch.noted.shape;
    launches_.push_back(fmt::format("{{{}, {}, {}, {{{}}}, {{{}}}, {}, {}, {}, {}, {}}}",
                                    c_string(launch.name), c_string(launch.noted.function),
                                    images_.number_of(launch.noted), joined(numbers_.of(launch.grid)),
                                    fmt::join(shape.block, ", "), shape.cluster, shape.shared_bytes,
                                    shape.programmatic ? 1 : 0, first, launch.parameters.size()));
  }

  [[nodiscard]] std::vector<std::string> copy_rows() {
    std::vector<std::string> rows;
    rows.reserve(program_.copies.size());
    for (const ExportedCopy& copy : program_.copies) {
      const cuda::SymbolicAddress from = symbolic({copy.kind, copy.place});
      const bool is_weight = copy.kind == BufferKind::weight;
      const Extent offset(is_weight ? copy.place : static_cast<std::int64_t>(from.offset));
      rows.push_back(fmt::format("{{{}, {}, {}}}", copy.output,
                                 place_row({from.region, is_weight ? 0 : from.number, offset}),
                                 numbers_.of(copy.bytes)));
    }
    return rows;
  }

  const ExportedProgram& program_;
  const Images& images_;
  std::string& bytes_;
  TableNumbers numbers_;
  BoxTables box_;
  std::vector<std::string> places_;
  std::vector<std::string> maps_;
  std::vector<std::string> arguments_;
  std::vector<std::string> launches_;
  std::string row_;
};

/// The code of each image.
std::string code_tables(const std::vector<std::vector<CudaCode>>& images) {
  std::string text;
  std::vector<std::string> rows, image_rows;
  for (const std::vector<CudaCode>& codes : images) {
    image_rows.push_back(fmt::format("{{{}, {}}}", rows.size(), codes.size()));
    for (const CudaCode& code : codes) {
      const std::string name = fmt::format("code{}", rows.size());
      text += fmt::format("static const _Alignas(64) char {}[] = {};\n", name, c_string(code.bytes));
      rows.push_back(fmt::format("{{{}, {}, {}}}", code.capability, code.exact ? 1 : 0, name));
    }
  }
  return text + array_of("const struct sylvite_cuda_code", "codes", rows) +
         array_of("const struct sylvite_cuda_image", "images", image_rows);
}

}  // namespace

std::vector<std::vector<CudaCode>> device_codes(const std::vector<ExportedProgram>& programs,
                                                const std::vector<std::string>& architectures,
                                                std::vector<std::string>& warnings) {
  std::vector<std::vector<CudaCode>> codes;
  std::string missing;
  const Images images(programs);
  for (const NotedLaunch* image : images.all()) codes.push_back(codes_of(*image, architectures, missing));
  if (!missing.empty()) {
    warnings.push_back(fmt::format(
        "{}; the library holds PTX, which the driver compiles whenever a model is created", missing));
  }
  return codes;
}

std::string cuda_tables_source(const ExportedModel& model, const std::vector<std::vector<CudaCode>>& codes) {
  const Images images(model.programs);
  std::string text = tables_begin(model, embedded::cuda_launcher_header);
  std::string programs, bytes;
  std::vector<std::string> rows, boxes;
  std::size_t number_count = 0;
  std::int64_t arena_bytes = 0, scratch_bytes = 0;
  for (std::size_t i = 0; i < model.programs.size(); ++i) {
    CudaProgramText program(model, i, images, bytes);
    programs += program.write();
    rows.push_back(program.row());
    boxes.push_back(program.box_row());
    number_count = std::max(number_count, program.number_count());
    arena_bytes = std::max(arena_bytes, model.programs[i].arena_bytes);
    scratch_bytes = std::max(scratch_bytes, model.programs[i].scratch_bytes);
  }
  text += fmt::format("static const _Alignas(8) unsigned char bytes[] = {};\n\n", c_string(bytes));
  text += programs + array_of("const struct sylvite_box", "boxes", boxes) +
          array_of("const struct sylvite_cuda_program", "programs", rows) + code_tables(codes);
  text += fmt::format(
      "static const struct sylvite_cuda_tables tables = {{\n  {},\n  {}, {}, bytes, codes, images, programs, "
      "{},\n}};\n",
      interface_row(model, number_count), arena_bytes, scratch_bytes, codes.size());
  return text + '\n' + interface_functions(model, embedded::cuda_model_functions, "sylvite_cuda");
}

std::string cuda_interface_header(const ExportedModel& model) {
  return filled(embedded::cuda_model_header, model.name, interface_parts(model, "sylvite_cuda"));
}

}  // namespace sylvite
