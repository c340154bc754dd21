#include "autotune/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/error.h"
#include "base/sanitizer.h"

namespace sylvite {

namespace {

constexpr int message_descriptor = 3;
constexpr int not_started_status = 127;  // as shells say it
constexpr int send_timeout_seconds = 10;
constexpr off_t log_tail_bytes = 2000;

/// A lower limit that is set already stays.
void set_limit(int kind, std::int64_t value) {
  const auto resource = static_cast<__rlimit_resource>(kind);
  rlimit limit{};
  getrlimit(resource, &limit);
  limit.rlim_cur = std::min(limit.rlim_cur, static_cast<rlim_t>(value));
  limit.rlim_max = limit.rlim_cur;
  setrlimit(resource, &limit);
}

/// Between fork and exec, where only async-signal-safe calls are allowed.
[[noreturn]] void run_child(char* const* arguments, const ChildLimits& limits, pid_t parent, int socket,
                            int log) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(not_started_status);  // the parent died before the line above
  if (!has_address_sanitizer) set_limit(RLIMIT_AS, limits.memory_bytes);
  set_limit(RLIMIT_FSIZE, limits.file_bytes);
  set_limit(RLIMIT_CORE, 0);
  // Moved out of the way first: descriptor 3 may be one of them.
  int moved_socket = fcntl(socket, F_DUPFD_CLOEXEC, 10);
  int moved_log = fcntl(log, F_DUPFD_CLOEXEC, 10);
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (moved_socket < 0 || moved_log < 0 || null < 0) _exit(not_started_status);
  dup2(null, 0);
  dup2(moved_log, 1);
  dup2(moved_log, 2);
  dup2(moved_socket, message_descriptor);
  close_range(message_descriptor + 1, ~0U, 0);
  execv(arguments[0], arguments);
  _exit(not_started_status);
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const ChildLimits& limits) {
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0)
    throw IoError("cannot start {}: socketpair: {}", command.at(0), std::strerror(errno));
  channel_ = MessageChannel(sockets[0]);
  timeval patience{send_timeout_seconds, 0};  // for a child that does not read
  setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  MessageChannel child_end(sockets[1]);
  log_ = memfd_create("worker log", MFD_CLOEXEC);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) run_child(arguments.data(), limits, parent, child_end.descriptor(), log_);
  if (pid_ < 0) {
    close(log_);
    throw IoError("cannot start {}: fork: {}", command.at(0), std::strerror(errno));
  }
  setpgid(pid_,
          pid_);  // here too, so that a kill of the group works at once; fails harmlessly after the exec
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) static_cast<void>(finish(/*ended_itself=*/false));
  close(log_);
}

bool ChildProcess::is_paused() const {
  std::ifstream file(fmt::format("/proc/{}/stat", pid_));
  const std::string stat{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t name_end = stat.rfind(") ");  // then the state
  return name_end != std::string::npos && stat.compare(name_end, 3, ") T") == 0;
}

ChildEnd ChildProcess::finish(bool ended_itself) {
  int status = 0;
  pid_t ended = 0;
  for (int wait = 0; ended_itself && ended == 0 && wait < 100; ++wait) {
    ended = waitpid(pid_, &status, WNOHANG);
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const bool ended_by_now = ended != 0;
  kill(-pid_, SIGKILL);
  while (ended == 0) {
    ended = waitpid(pid_, &status, 0);
    if (ended < 0 && errno == EINTR) ended = 0;
  }
  pid_ = -1;
  std::string log = log_tail();
  bool not_started = WIFEXITED(status) && WEXITSTATUS(status) == not_started_status;
  bool killed_here = !ended_by_now && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  std::string how = killed_here ? "stopped from here" : describe_status(status);
  return {not_started, how + (log.empty() ? "" : ": " + log)};
}

std::string ChildProcess::log_tail() const {
  off_t size = lseek(log_, 0, SEEK_END);
  off_t count = std::min(size, log_tail_bytes);
  std::string tail(static_cast<std::size_t>(std::max<off_t>(count, 0)), '\0');
  ssize_t read = pread(log_, tail.data(), tail.size(), size - count);
  tail.resize(static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  return tail;
}

}  // namespace sylvite
