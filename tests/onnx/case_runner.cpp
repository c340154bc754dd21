#include "case_runner.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>

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
    if (is_bound(test.inputs[i], binding)) {
      options.bound_inputs[test.input_names[i]] = test.inputs[i].tensor();
    } else {
      inputs.push_back(test.inputs[i]);
    }
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

void limit_child(double seconds, std::size_t megabytes) {
  const auto cpu =
      static_cast<rlim_t>(seconds * 4) + 1;  // threads add up; the parent's clock is the tight limit
  const rlimit cpu_limit{cpu, cpu + 1};
  const rlimit memory_limit{megabytes << 20, megabytes << 20};
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CPU, &cpu_limit);
  setrlimit(RLIMIT_AS, &memory_limit);
  setrlimit(RLIMIT_CORE, &no_core);
}

void write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = write(fd, text.data() + done, text.size() - done);
    if (count <= 0) return;
    done += static_cast<std::size_t>(count);
  }
}

/// What the child writes until it closes the pipe; false when the time is up first.
bool read_until_closed(int fd, double seconds, std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  char buffer[4096];
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{fd, POLLIN, 0};
    if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) <= 0) return false;
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count <= 0) return true;
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

Outcome outcome_of(bool is_finished, int status, const std::string& text) {
  if (!is_finished) return {"timeout", ""};
  if (WIFSIGNALED(status)) {
    const bool is_cpu = WTERMSIG(status) == SIGXCPU;
    return {is_cpu ? "timeout" : "crash", strsignal(WTERMSIG(status))};
  }
  const std::size_t split = text.find('\n');
  if (split == std::string::npos) return {"crash", fmt::format("exit status {}", WEXITSTATUS(status))};
  return {text.substr(0, split), text.substr(split + 1)};
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
  int fds[2];
  if (pipe(fds) != 0) throw IoError("cannot make a pipe: {}", std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) throw IoError("cannot fork: {}", std::strerror(errno));
  if (child == 0) {
    close(fds[0]);
    setpgid(0, 0);
    limit_child(seconds, megabytes);
    const Outcome outcome = load_and_run(data, set, name, engine);
    write_all(fds[1], outcome.kind + "\n" + outcome.reason);
    _exit(0);
  }
  setpgid(child, child);
  close(fds[1]);
  std::string text;
  const bool is_finished = read_until_closed(fds[0], seconds, text);
  close(fds[0]);
  kill(-child, SIGKILL);  // also what the child may have started
  int status = 0;
  waitpid(child, &status, 0);
  if (is_finished && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !text.empty()) status = 0;
  return outcome_of(is_finished, status, text);
}

}  // namespace sylvite::node_test
