#include "cli/agreement.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/nearest.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/tensor_io.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

double scale_of(const Tensor& tensor) {
  double scale = 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double magnitude = std::abs(tensor.as_double(i));
    if (std::isfinite(magnitude)) scale = std::max(scale, magnitude);
  }
  return scale;
}

bool same_special(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || a == b;
}

/// Adds the value that is called `name` to `so_far`. REQUIRES equal types.
void compare_tensor(const Tensor& actual, const Tensor& expected, const std::string& name,
                    const Tolerance& tolerance, Agreement& so_far) {
  const auto note = [&](const std::string& problem) {
    if (so_far.problem.empty()) so_far.problem = fmt::format("{}: {}", name, problem);
  };
  const double scale = scale_of(expected);
  const bool exact = !is_float(expected.dtype());
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    const double got = actual.as_double(i);
    const double want = expected.as_double(i);
    if (same_special(got, want)) continue;
    const double error = std::abs(got - want);
    const double allowed = exact ? 0 : tolerance.allowed(want, scale);
    if (!std::isfinite(error) || error > allowed)
      note(fmt::format("element {} is {:.7g}, expected {:.7g}", i, got, want));
    if (!std::isfinite(error) || allowed == 0) {
      so_far.worst = std::numeric_limits<double>::infinity();
      continue;
    }
    so_far.worst = std::max(so_far.worst, error / allowed);
    so_far.largest_error = std::max(so_far.largest_error, error / scale);
  }
}

/// The same for any value.
void compare_value(const HostValue& actual, const HostValue& expected, const std::string& name,
                   const Tolerance& tolerance, Agreement& so_far) {
  const auto note = [&](const std::string& problem) {
    if (so_far.problem.empty()) so_far.problem = fmt::format("{}: {}", name, problem);
  };
  if (actual.describe() != expected.describe())
    return note(fmt::format("is {}, expected {}", actual.describe(), expected.describe()));
  if (expected.is_tensor())
    return compare_tensor(actual.tensor(), expected.tensor(), name, tolerance, so_far);
  if (expected.is_strings() && actual.strings() != expected.strings()) return note("other strings");
  if (!expected.is_sequence()) return;
  for (std::size_t i = 0; i < expected.sequence().size(); ++i) {
    compare_value(actual.sequence()[i], expected.sequence()[i], fmt::format("{}, item {}", name, i),
                  tolerance, so_far);
  }
}

/// What `run --output-dir` wrote for outputs like `ports`.
std::vector<HostValue> stored_outputs(const std::string& folder, const std::vector<ModelPort>& ports) {
  std::vector<HostValue> outputs;
  for (std::size_t i = 0;; ++i) {
    const std::string stem = fmt::format("{}/{}", folder, i);
    const bool npy = std::filesystem::exists(stem + ".npy");
    if (!npy && !std::filesystem::exists(stem + ".pb")) break;
    const ValueKind kind = i < ports.size() ? ports[i].kind : ValueKind::tensor;
    outputs.push_back(read_value(stem + (npy ? ".npy" : ".pb"), kind));
  }
  if (outputs.empty()) throw UsageError("--check {}: the folder has no 0.npy or 0.pb", folder);
  return outputs;
}

/// Elements 0, k, 2k, ... of `tensor`, as many as `count`.
Tensor sampled(const Tensor& tensor, std::int64_t count) {
  const std::int64_t step = count > 0 ? (tensor.size() + count - 1) / count : 1;
  Tensor result(tensor.dtype(), {(tensor.size() + step - 1) / std::max<std::int64_t>(step, 1)});
  for (std::int64_t i = 0; i < result.size(); ++i) result.set_double(i, tensor.as_double(i * step));
  return result;
}

Agreement compare_sample(const std::vector<HostValue>& outputs, const std::string& path,
                         const Tolerance& tolerance) {
  const Tensor stored = read_tensor(path);
  if (outputs.empty()) return compare_outputs({}, {stored}, tolerance);
  return compare_outputs({sampled(outputs.front().tensor(), stored.size())},
                         {stored.reshaped({stored.size()})}, tolerance);
}

}  // namespace

Agreement compare_outputs(const std::vector<HostValue>& actual, const std::vector<HostValue>& expected,
                          const Tolerance& tolerance) {
  Agreement agreement;
  if (actual.size() != expected.size()) {
    agreement.problem = fmt::format("{} outputs, expected {}", actual.size(), expected.size());
    return agreement;
  }
  for (std::size_t i = 0; i < actual.size(); ++i)
    compare_value(actual[i], expected[i], fmt::format("output {}", i), tolerance, agreement);
  return agreement;
}

Built build_reference(const Imported& imported) {
  return build_program(imported, choose_each(imported, [](const Kernel& kernel) {
                         return Choice{reference_candidate(kernel), Source::reference};
                       }));
}

namespace {

/// bf16 keeps 8 bits, f16 11, and both round between kernels; TF32 keeps 11 of operands. How much adds up is
/// the model's.
Tolerance tolerance_of(const Setup& setup) {
  switch (setup.config.precision) {
    case Precision::f32:
      return {};
    case Precision::tf32:
      return setup.machine.tf32 ? Tolerance{.relative = 0.004, .absolute = 0.004} : Tolerance{};
    case Precision::bf16:
      return {.relative = 0.03, .absolute = 0.03};
    case Precision::f16:
      return {.relative = 0.005, .absolute = 0.005};
    case Precision::int8_dynamic:
      return {.relative = 0.1, .absolute = 0.1};
  }
  throw InternalError("corrupt precision");
}

/// Beside folders and files.
constexpr std::array<std::string_view, 3> oracles = {"reference", "interpreter", "f32"};

[[noreturn]] void refuse_oracle(const std::string& oracle) {
  throw UsageError("--check {}: expected {}, or a folder or file of stored outputs{}", oracle,
                   fmt::join(oracles, ", "), suggestion(oracle, oracles));
}

std::vector<HostValue> f32_outputs(const Imported& imported, CompileOptions options,
                                   const std::vector<HostValue>& inputs) {
  options.set["compile.precision"] = "f32";
  options.set["compile.mode"] = "default";
  Prepared wide = prepare_again(imported, options);
  return run_values(wide.built, inputs);
}

}  // namespace

Agreement check_agreement(const std::string& oracle, const Imported& imported, const CompileOptions& wanted,
                          const std::vector<HostValue>& inputs, const std::vector<HostValue>& outputs) {
  const Tolerance tolerance = tolerance_of(*imported.setup);
  if (oracle == "interpreter") {
    const std::vector<HostValue> expected =
        run_model(imported.host.get(), inputs, [&](const std::vector<Tensor>& tensors) {
          std::vector<Tensor> states = zero_states(imported.graph);
          return interpret(imported.graph, tensors, states);
        });
    return compare_outputs(outputs, expected, tolerance);
  }
  if (oracle == "f32") return compare_outputs(outputs, f32_outputs(imported, wanted, inputs), tolerance);
  if (oracle == "reference") {
    Built reference = build_reference(imported);
    return compare_outputs(outputs, run_values(reference, inputs), tolerance);
  }
  if (std::filesystem::is_directory(oracle))
    return compare_outputs(outputs, stored_outputs(oracle, output_ports(imported)), tolerance);
  if (std::filesystem::is_regular_file(oracle)) return compare_sample(outputs, oracle, tolerance);
  refuse_oracle(oracle);
}

void check_oracle(const Options& options) {
  if (!options.has("check")) return;
  const std::string& oracle = options.value("check");
  if (std::ranges::find(oracles, oracle) == oracles.end() && !std::filesystem::exists(oracle))
    refuse_oracle(oracle);
}

void check_outputs(const Options& options, const CompileOptions& wanted, const Imported& imported,
                   const std::vector<HostValue>& inputs, const std::vector<HostValue>& outputs,
                   nlohmann::json& document) {
  if (!options.has("check")) return;
  const std::string& oracle = options.value("check");
  const Agreement agreement = check_agreement(oracle, imported, wanted, inputs, outputs);
  if (!agreement.ok()) throw VerifyError("the outputs disagree with {}: {}", oracle, agreement.problem);
  document["check"] = {{"oracle", oracle},
                       {"largest_error_of_scale", agreement.largest_error},
                       {"share_of_tolerance", agreement.worst}};
  say(options,
      fmt::format("agrees with {}: largest error {:.2g} of the output's scale, {:.3g} of what is allowed\n",
                  oracle, agreement.largest_error, agreement.worst));
}

}  // namespace sylvite
