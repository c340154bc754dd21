#include "runtime/export/export.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <llvm/Object/ArchiveWriter.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "frontend/onnx/growing_states.h"
#include "frontend/values/extents_at.h"
#include "runtime/cuda/device.h"
#include "runtime/embedded.h"
#include "runtime/export/data_object.h"
#include "runtime/export/embed/weights_file.h"
#include "runtime/export/export_cuda_sources.h"
#include "runtime/export/export_sources.h"
#include "runtime/export/hide_symbols.h"
#include "runtime/export/program_cover.h"
#include "runtime/report.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to the user

namespace sylvite {
namespace {

/// Collects the weights of the file, each at a multiple of 64. What programs have in common is there once.
class WeightsFile {
 public:
  std::int64_t add(const Tensor& tensor) {
    const std::string_view bytes(static_cast<const char*>(tensor.data()),
                                 static_cast<std::size_t>(tensor.byte_size()));
    std::vector<std::int64_t>& alike = offsets_[std::hash<std::string_view>{}(bytes)];
    for (const std::int64_t offset : alike)
      if (std::string_view(bytes_).substr(static_cast<std::size_t>(offset), bytes.size()) == bytes)
        return offset;
    const std::int64_t offset = (static_cast<std::int64_t>(bytes_.size()) + 63) / 64 * 64;
    bytes_.resize(static_cast<std::size_t>(offset), '\0');
    bytes_.append(bytes);
    alike.push_back(offset);
    return offset;
  }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::unordered_map<std::size_t, std::vector<std::int64_t>> offsets_;  ///< by hash
};

std::string with_header(const std::string& weights, const std::string& id) {
  sylvite_weights_header header{};
  std::copy_n("SYLVWTS", sizeof(header.magic), header.magic);
  header.version = SYLVITE_WEIGHTS_VERSION;
  std::copy_n(id.data(), sizeof(header.id), header.id);
  header.bytes = weights.size();
  header.checksum = sylvite_checksum(weights.data(), weights.size());
  std::string file(SYLVITE_WEIGHTS_OFFSET, '\0');
  std::copy_n(reinterpret_cast<const char*>(&header), sizeof(header), file.data());
  return file + weights;
}

WeightPlaces places_of(const Built& built, WeightsFile& weights) {
  WeightPlaces places;
  const PackedWeights& packed = *built.program.bindings().weights;
  for (std::size_t slot = 0; slot < packed.size(); ++slot)
    places.slots.push_back(weights.add(packed.at(slot)));
  const Plan* plan = &built.program.plan();
  places.returned = [plan, &weights](std::int64_t number) {
    return weights.add(plan->weights.at(static_cast<std::size_t>(number)));
  };
  return places;
}

/// A member of the archive: its name and its bytes.
using Member = std::pair<std::string, std::string_view>;

/// NAME.c and NAME.h, and what goes into the library beside the tables.
struct Sources {
  std::string tables;
  std::string header;
  std::vector<Member> objects;
};

/// Writes the tables twice: the id in them is of weights and tables.
template <typename Tables>
std::string identified(ExportedModel& model, const WeightsFile& weights, Tables tables) {
  model.id = short_hash(fmt::format("{} {}", sha256_hex(weights.bytes()), sha256_hex(tables(model))));
  return tables(model);
}

Sources cpu_sources(const std::vector<const Built*>& programs, ExportedModel& model,
                    const WeightsFile& weights) {
  Sources sources;
  sources.tables = identified(model, weights, tables_source);
  sources.header = interface_header(model);
  sources.objects = {{"sylvite_first_places.o", embedded::first_places_object},
                     {"sylvite_launcher.o", embedded::launcher_object},
                     {"sylvite_launcher_arguments.o", embedded::launcher_arguments_object},
                     {"halide_runtime.o", embedded::halide_runtime}};
  std::set<std::string> known;
  for (const Built* built : programs)
    for (const Choice& choice : *built->choices)
      if (known.insert(choice.symbol).second)
        sources.objects.emplace_back(choice.symbol + ".o", choice.object);
  return sources;
}

Sources cuda_sources(ExportedModel& model, const WeightsFile& weights, std::vector<std::string> architectures,
                     std::vector<std::string>& warnings) {
  if (architectures.empty())
    architectures.push_back(fmt::format("sm_{}", cuda::Device::get().card().capability));
  const std::vector<std::vector<CudaCode>> codes = device_codes(model.programs, architectures, warnings);
  Sources sources;
  sources.tables =
      identified(model, weights, [&](const ExportedModel& each) { return cuda_tables_source(each, codes); });
  sources.header = cuda_interface_header(model);
  sources.objects = {{"sylvite_launcher_cuda.o", embedded::cuda_launcher_object},
                     {"sylvite_launcher_cuda_run.o", embedded::cuda_launcher_run_object},
                     {"sylvite_launcher_cuda_states.o", embedded::cuda_launcher_states_object}};
  return sources;
}

/// Of a model with its programs, which are those of `built`.
Sources sources_of(const std::vector<const Built*>& built, ExportedModel& model, const WeightsFile& weights,
                   const ExportOptions& options, ExportReport& report) {
  if (!is_gpu_target(model.target)) return cpu_sources(built, model, weights);
  return cuda_sources(model, weights, options.architectures, report.warnings);
}

/// Runs the compiler quietly; whether it succeeded.
bool compile_c(const std::string& compiler, const std::string& source, const std::string& object) {
  std::array<std::string, 7> words = {compiler, "-O1", "-fPIC", "-c", source, "-o", object};
  std::array<char*, 8> arguments{};
  std::ranges::transform(words, arguments.begin(), [](std::string& word) { return word.data(); });
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, compiler.c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return false;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Only symbols that begin with `prefix` are seen by what links to a library made of it: two models, of two versions
/// even, may be in one process.
void write_archive(const std::string& path, const std::vector<Member>& members, const std::string& prefix) {
  std::vector<std::string> objects;
  objects.reserve(members.size());
  for (const auto& [name, bytes] : members) objects.push_back(with_hidden_symbols(bytes, prefix));
  std::vector<llvm::NewArchiveMember> entries;
  entries.reserve(members.size());
  for (std::size_t i = 0; i < members.size(); ++i)
    entries.emplace_back(llvm::MemoryBufferRef({objects[i].data(), objects[i].size()}, members[i].first));
  // LLVM's own writer ends the process where a file cannot be written.
  auto archive = llvm::writeArchiveToBuffer(entries, llvm::SymtabWritingMode::NormalSymtab,
                                            llvm::object::Archive::K_GNU, /*Deterministic=*/true,
                                            /*Thin=*/false);
  if (!archive) throw IoError("{} cannot be made: {}", path, llvm::toString(archive.takeError()));
  objects.clear();
  write_file(path, std::string_view((*archive)->getBufferStart(), (*archive)->getBufferSize()));
}

/// Object code of the tables, or "" when there is no compiler.
std::string compile_tables(const std::string& source, const ExportOptions& options) {
  const std::string object = source + ".o.tmp";
  const bool is_compiled = compile_c(options.c_compiler, source, object);
  std::string bytes = is_compiled ? read_file(object) : "";
  std::error_code ignored;
  std::filesystem::remove(object, ignored);
  return bytes;
}

bool is_identifier(const std::string& name) {
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::ranges::all_of(name, is_word) &&
         std::isdigit(static_cast<unsigned char>(name[0])) == 0;
}

}  // namespace

std::string identifier_of(const std::string& model_path) {
  std::string name = std::filesystem::path(model_path).stem().string();
  for (char& c : name)
    if (!is_identifier(std::string("_") + c)) c = '_';
  if (name.empty()) return "model";
  return is_identifier(name) ? name : "model_" + name;
}

void check_export_name(const std::string& name) {
  if (!is_identifier(name))
    throw UsageError("'{}' cannot name an exported model: it must be a C identifier", name);
}

namespace {

/// Files that come into a folder together, once all are written: an export that fails leaves an earlier one as it was.
class NewFiles {
 public:
  explicit NewFiles(const std::string& folder) : folder_(folder), beside_(folder + "/.export-XXXXXX") {
    make_folder(folder);
    if (::mkdtemp(beside_.data()) == nullptr)
      throw IoError("cannot write to the folder {}: {}", folder, std::strerror(errno));
  }
  ~NewFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(beside_, ignored);
  }
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;
  /// Where to write the file for now.
  std::string add(const std::string& name) { return beside_ + "/" + names_.emplace_back(name); }
  /// The paths of all, in order.
  std::vector<std::string> publish() {
    std::vector<std::string> paths;
    for (const std::string& name : names_)
      std::filesystem::rename(beside_ + "/" + name, paths.emplace_back(folder_ + "/" + name));
    return paths;
  }

 private:
  std::string folder_;
  std::string beside_;
  std::vector<std::string> names_;
};

/// Writes the folder.
void write_files(const ExportedModel& model, const Sources& sources, const WeightsFile& weights,
                 const ExportOptions& options, ExportReport& report) {
  NewFiles files(options.folder);
  const std::string source = files.add(report.name + ".c");
  write_file(source, sources.tables);
  write_file(files.add(report.name + ".h"), sources.header);
  std::string weights_object;
  if (model.embeds_weights)
    weights_object =
        data_object(with_header(weights.bytes(), model.id), embedded_weights_symbol(report.name));
  else
    write_file(files.add(report.name + ".weights"), with_header(weights.bytes(), model.id));
  const std::string tables = compile_tables(source, options);
  if (tables.empty()) {
    report.warnings.push_back(
        fmt::format("{} compiled no C; projects that link the model compile {}.c themselves",
                    options.c_compiler, report.name));
  }
  std::vector<Member> members = {{"sylvite_weights_file.o", embedded::weights_file_object},
                                 {"sylvite_sized_program.o", embedded::sized_program_object}};
  members.insert(members.end(), sources.objects.begin(), sources.objects.end());
  if (!tables.empty()) members.emplace_back(report.name + ".o", tables);
  if (model.embeds_weights) members.emplace_back(report.name + "_weights.o", weights_object);
  const std::string library = files.add("lib" + report.name + ".a");
  write_archive(library, members, report.name + "_");
  write_file(files.add(report.name + "Config.cmake"), package_config(model, !tables.empty()));
  report.library_bytes = static_cast<std::int64_t>(std::filesystem::file_size(library));
  report.files = files.publish();
  if (model.embeds_weights) {
    std::error_code ignored;  // most often there is none, of an earlier export
    std::filesystem::remove(options.folder + "/" + report.name + ".weights", ignored);
  }
  report.weight_bytes = model.weight_bytes;
}

ExportedModel begin(const ExportOptions& options, const Setup& setup, ExportReport& report) {
  check_export_name(options.name);
  report.name = options.name;
  ExportedModel model;
  model.name = options.name;
  model.embeds_weights = options.embed_weights;
  model.target = setup.machine.target;
  return model;
}

/// The plan with what the model takes and gives at the greatest sizes.
Plan at_greatest(const Plan& plan, const ExportedModel& model) {
  Plan result = plan;
  const ExportedProgram& program = model.programs.back();
  SymbolValues sizes;
  for (std::size_t i = 0; i < model.sizes.size(); ++i) sizes[model.sizes[i].name] = program.box.high[i];
  const auto set_types = [&](std::vector<Port>& ports, const std::vector<std::vector<Extent>>& all) {
    for (std::size_t i = 0; i < ports.size(); ++i)
      ports[i].type = make_type(ports[i].type.dtype, extents_at(all[i], sizes));
  };
  set_types(result.inputs, program.inputs);
  set_types(result.outputs, program.outputs);
  return result;
}

}  // namespace

ExportReport export_model(Built& built, const ExportOptions& options) {
  if (built.host != nullptr) refuse_host_steps(*built.host);
  ExportReport report;
  ExportedModel model = begin(options, *built.setup, report);
  model.plan = &built.program.plan();
  if (built.room) model.growth = built.room->growth;
  WeightsFile weights;
  model.programs.push_back(export_built(built, places_of(built, weights)));
  model.weight_bytes = weights.size();
  const Sources sources = sources_of({&built}, model, weights, options, report);
  write_files(model, sources, weights, options, report);
  return report;
}

ExportReport export_open_model(const OpenModel& open, const Chooser& choose, const ExportOptions& options,
                               CompileReport& compiled) {
  if (length_symbol(open.parsed))
    throw UnsupportedError(
        "libraries write states in place, but those that grow by '{}' are copied at each run",
        open.parsed.growing->length);
  ExportReport report;
  ExportedModel model = begin(options, *open.setup, report);
  model.sizes = open.parsed.sizes.symbols;
  WeightsFile weights;
  std::vector<CoveredBox> boxes = cover_sizes(open, choose,
                                              {[&](const Built& built) { return places_of(built, weights); },
                                               [&](const Tensor& tensor) { return weights.add(tensor); }});
  std::vector<const Built*> programs;
  for (CoveredBox& box : boxes) {
    programs.push_back(box.built.get());
    model.programs.push_back(std::move(box.program));
    if (programs.size() == 1)
      compiled = box.built->report;
    else
      add_report(compiled, box.built->report);
  }
  compiled.programs = static_cast<int>(programs.size());
  const Plan ports = at_greatest(programs.back()->program.plan(), model);
  model.plan = &ports;
  if (programs.back()->room) model.growth = programs.back()->room->growth;
  model.weight_bytes = weights.size();
  write_files(model, sources_of(programs, model, weights, options, report), weights, options, report);
  report.programs = compiled.programs;
  return report;
}

}  // namespace sylvite
