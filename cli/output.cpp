#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "base/version.h"

namespace sylvite {
namespace {

std::string halide_version() {
  return fmt::format("{}.{}.{}", HALIDE_VERSION_MAJOR, HALIDE_VERSION_MINOR, HALIDE_VERSION_PATCH);
}

/// Nearest-rank percentile of sorted values.
double percentile(const std::vector<double>& sorted, double fraction) {
  const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  if (errno == EPIPE) throw ClosedPipe{};
  throw IoError("cannot write to standard output: {}", std::strerror(errno));
}

void print_error(std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

void open_standard_descriptors() {
  for (int wanted = STDIN_FILENO; wanted <= STDERR_FILENO; ++wanted)
    if (::fcntl(wanted, F_GETFD) < 0 && ::open("/dev/null", wanted == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
      return;
}

void write_text(const std::string& path, std::string_view text) {
  if (path == "-") return print(text);
  write_file(path, text);
}

Latency summarize_latency(std::vector<double> seconds) {
  if (seconds.empty()) throw InternalError("no run was timed");
  std::ranges::sort(seconds);
  double total = 0;
  for (const double each : seconds) total += each;
  Latency latency;
  latency.runs = static_cast<int>(seconds.size());
  latency.min_ms = seconds.front() * 1e3;
  latency.median_ms = median(seconds) * 1e3;
  latency.p90_ms = percentile(seconds, 0.90) * 1e3;
  latency.p99_ms = percentile(seconds, 0.99) * 1e3;
  latency.per_second = latency.runs / total;
  return latency;
}

nlohmann::json latency_json(const Latency& latency) {
  return {{"min", latency.min_ms},
          {"median", latency.median_ms},
          {"p90", latency.p90_ms},
          {"p99", latency.p99_ms}};
}

std::string sizes_text(const Imported& imported) {
  std::string text;
  for (std::size_t i = 0; i < imported.sizes.size(); ++i)
    text += fmt::format("{}{}={}", i == 0 ? "" : ", ", imported.symbols[i], imported.sizes[i]);
  return text;
}

nlohmann::json sizes_json(const Imported& imported) {
  nlohmann::json sizes = nlohmann::json::object();
  for (std::size_t i = 0; i < imported.sizes.size(); ++i) sizes[imported.symbols[i]] = imported.sizes[i];
  return sizes;
}

nlohmann::json report_json(const Imported& imported, const CompileReport& report,
                           const std::optional<Latency>& latency) {
  const Setup& setup = *imported.setup;
  nlohmann::json json;
  json["schema"] = 1;
  json["versions"] = {{"sylvite", version}, {"halide", halide_version()}};
  json["machine"] = {{"cpu", setup.machine.cpu_name}, {"target", setup.machine.target}};
  json["mode"] = name_of(setup.config.mode);
  json["precision"] = name_of(setup.config.precision);
  json["model"] = imported.path;
  json["threads"] = setup.machine.threads;
  if (!imported.sizes.empty()) json["sizes"] = sizes_json(imported);
  json["counters"] = {{"programs", report.programs},
                      {"sizes", report.sizes},
                      {"kernels", report.kernels},
                      {"unique_kernels", report.unique_kernels},
                      {"trials", report.trials},
                      {"compiled", report.compiled},
                      {"loaded_from_cache", report.loaded_from_cache}};
  json["seconds"] = {{"import", report.import_seconds},
                     {"compile", report.compile_seconds},
                     {"tune", report.tune_seconds},
                     {"ready", report.ready_seconds},
                     {"first_answer", report.first_answer_seconds},
                     {"weights", report.weights_seconds}};
  json["passes"] = nlohmann::json::array();
  for (const PassReport& pass : imported.passes) {
    json["passes"].push_back({{"name", pass.name},
                              {"result", pass_result_name(pass.result)},
                              {"nodes_before", pass.nodes_before},
                              {"nodes_after", pass.nodes_after},
                              {"seconds", pass.seconds}});
  }
  json["latency_ms"] = nullptr;
  if (latency) {
    json["latency_ms"] = latency_json(*latency);
    json["runs"] = latency->runs;
    json["throughput_per_second"] = latency->per_second;
  }
  json["peak_bytes"] = report.peak_bytes;
  json["sum_of_values_bytes"] = report.sum_of_values_bytes;
  return json;
}

std::string time_text(double time, int decimals) {
  if (time <= 0) return "-";
  return time < 1 ? fmt::format("{:.{}g}", time, std::max(decimals, 2))
                  : fmt::format("{:.{}f}", time, decimals);
}

std::string format_bytes(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value < 1e3) return fmt::format("{} B", bytes);
  if (value < 1e6) return fmt::format("{:.1f} kB", value / 1e3);
  if (value < 1e9) return fmt::format("{:.1f} MB", value / 1e6);
  return fmt::format("{:.2f} GB", value / 1e9);
}

}  // namespace sylvite
