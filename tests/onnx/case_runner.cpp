#include "tests/onnx/case_runner.h"

#include "base/error.h"

namespace sylvite::node_test {
namespace {

class HostStepsError : public UnsupportedError {
 public:
  using UnsupportedError::UnsupportedError;
};

/// Which inputs become constants, step by step, while the importer says that something must be known.
enum class Binding { none, integers, small };

bool is_bound(const HostValue& value, Binding binding) {
  constexpr std::int64_t small_size = 8;
  if (binding == Binding::none || !value.is_tensor()) return false;
  if (!is_float(value.tensor().dtype())) return true;
  return binding == Binding::small && value.tensor().size() <= small_size;
}

/// Empty when the outputs are right.
std::string run_bound(const NodeCase& test, Binding binding, bool allows_host_steps, const Engine& engine) {
  ImportOptions options;
  std::vector<HostValue> inputs;
  for (std::size_t i = 0; i < test.inputs.size(); ++i) {
    if (test.inputs[i].is_tensor())
      options.input_shapes[test.input_names[i]] = test.inputs[i].tensor().dims();
    if (is_bound(test.inputs[i], binding))
      options.bound_inputs[test.input_names[i]] = test.inputs[i].tensor();
    else
      inputs.push_back(test.inputs[i]);
  }
  const std::vector<HostValue> outputs = engine(test.model_path, options, inputs, allows_host_steps);
  if (outputs.size() != test.outputs.size())
    return fmt::format("{} outputs, expected {}", outputs.size(), test.outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string text = difference(outputs[i], test.outputs[i], test);
    if (!text.empty()) return fmt::format("output {}: {}", i, text);
  }
  return "";
}

/// The first binding that needs no host steps, if there is one.
Outcome run_compiled_whole(const NodeCase& test, const Engine& engine) {
  for (const Binding binding : {Binding::none, Binding::integers, Binding::small}) {
    try {
      const std::string text = run_bound(test, binding, false, engine);
      if (!text.empty()) return {"wrong", text};
      return {binding == Binding::none ? "pass" : "bound", ""};
    } catch (const HostStepsError&) {
      continue;
    }
  }
  return {"host", ""};
}

Outcome load_and_run(const std::string& data, const CaseSet& set, const std::string& name,
                     const Engine& engine) {
  try {
    return run_case(load_case(data, set, name), engine);
  } catch (const UnsupportedError& error) {
    return {"unsupported", error.what()};
  }
}

}  // namespace

void check_host_steps(const HostPart* host, bool are_allowed) {
  if (host != nullptr && !are_allowed) throw HostStepsError("the model needs host steps");
}

Outcome run_case(const NodeCase& test, const Engine& engine) {
  try {
    Outcome outcome = run_compiled_whole(test, engine);
    if (outcome.kind == "wrong" || outcome.kind == "pass") return outcome;
    const std::string text = run_bound(test, Binding::none, true, engine);
    if (!text.empty()) return {"wrong", "with host steps: " + text};
    if (test.is_random) outcome.kind = "random";
    return outcome;
  } catch (const UnsupportedError& error) {
    return {"unsupported", error.what()};
  } catch (const std::exception& error) {
    return {"wrong", error.what()};
  }
}

Outcome run_case_isolated(const std::string& data, const CaseSet& set, const std::string& name,
                          const Engine& engine, double seconds, std::size_t megabytes) {
  return run_isolated([&] { return load_and_run(data, set, name, engine); }, seconds, megabytes);
}

}  // namespace sylvite::node_test
