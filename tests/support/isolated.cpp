#include "tests/support/isolated.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>

#include "base/error.h"

namespace sylvite {
namespace {

void limit_child(double seconds, std::size_t megabytes) {
  const auto cpu = static_cast<rlim_t>(seconds * 4) + 1;  // threads add up
  const rlimit cpu_limit{cpu, cpu + 1};
  const rlimit memory_limit{megabytes << 20, megabytes << 20};
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CPU, &cpu_limit);
  if (megabytes != 0) setrlimit(RLIMIT_AS, &memory_limit);
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

}  // namespace

Outcome run_isolated(const std::function<Outcome()>& work, double seconds, std::size_t megabytes) {
  int fds[2];
  if (pipe(fds) != 0) throw IoError("cannot make a pipe: {}", std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) throw IoError("cannot fork: {}", std::strerror(errno));
  if (child == 0) {
    close(fds[0]);
    setpgid(0, 0);
    limit_child(seconds, megabytes);
    const Outcome outcome = work();
    write_all(fds[1], outcome.kind + "\n" + outcome.reason);
    _exit(0);
  }
  setpgid(child, child);
  close(fds[1]);
  std::string text;
  constexpr double patience = 20;  // a busy machine is slow, too
  const bool is_finished = read_until_closed(fds[0], seconds * patience, text);
  close(fds[0]);
  kill(-child, SIGKILL);  // also what the child may have started
  int status = 0;
  waitpid(child, &status, 0);
  if (is_finished && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !text.empty()) status = 0;
  return outcome_of(is_finished, status, text);
}

}  // namespace sylvite
