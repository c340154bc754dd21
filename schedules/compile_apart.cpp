#include "schedules/compile_apart.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "schedules/compile.h"
#include "schedules/cuda/candidate.h"

namespace sylvite {
namespace {

// The first byte of what the fork says; then come the object's bytes or the message.
constexpr char compiled = '+';
constexpr char failed = '-';

[[noreturn]] void fail_with_system_message() {
  throw CompileError("cannot make a process to compile in: {}", std::strerror(errno));
}

void write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // the other end is gone
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string read_to_end(int descriptor) {
  std::string bytes;
  std::array<char, 1 << 16> part{};
  for (;;) {
    const ssize_t count = ::read(descriptor, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return bytes;
    bytes.append(part.data(), static_cast<std::size_t>(count));
  }
}

[[noreturn]] void compile_and_exit(const Kernel& kernel, const Candidate& candidate,
                                   const std::string& target, int descriptor) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string reply;
  try {
    reply = compiled + compile_to_object(kernel, candidate, target);
  } catch (const std::exception& error) {
    reply = std::string(1, failed) + error.what();
  }
  write_all(descriptor, reply);
  ::_exit(0);
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

[[noreturn]] void die_like(int status) {
  if (WIFSIGNALED(status)) {
    std::signal(WTERMSIG(status), SIG_DFL);
    std::raise(WTERMSIG(status));
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

}  // namespace

std::string compile_apart(const Kernel& kernel, const Candidate& candidate, const std::string& target) {
  // A template's code is made without such names, and a fork would load its compiler each time.
  if (cuda_template_of(kernel, candidate)) return compile_to_object(kernel, candidate, target);
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) fail_with_system_message();
  const pid_t child = ::fork();
  if (child == 0) compile_and_exit(kernel, candidate, target, ends[1]);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    fail_with_system_message();
  }
  const std::string reply = read_to_end(ends[0]);
  ::close(ends[0]);
  const int status = wait_for(child);
  if (status != 0 || reply.empty()) die_like(status);
  if (reply.front() == failed) throw CompileError("{}", reply.substr(1));
  return reply.substr(1);
}

}  // namespace sylvite
