#pragma once
// A child process that may hang, crash or eat memory without hurting us: own process group, resource limits,
// killed with its parent, and a socket for messages.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "autotune/message.h"

namespace sylvite {

struct ChildLimits {
  std::int64_t memory_bytes = std::int64_t{16} << 30;  ///< address space; ignored under AddressSanitizer
  std::int64_t file_bytes = std::int64_t{1} << 30;     ///< largest file it may write, its log included
};

/// How a child ended.
struct ChildEnd {
  bool not_started = false;  ///< the command could not be executed
  std::string
      text;  ///< e.g. "killed by signal 11 (Segmentation fault): " and the end of its log; names no signal when the
             ///< kill came from here
};

/// The child finds the message socket at descriptor 3, /dev/null as input, and a log in memory as output and
/// error stream. Thread safety: none; the child dies when the thread that started it ends.
class ChildProcess {
 public:
  /// Throws IoError when no process can be made. A command that cannot be executed shows as a child that
  /// ends.
  ChildProcess(const std::vector<std::string>& command, const ChildLimits& limits);
  ~ChildProcess();  ///< kills it and everything it started
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] MessageChannel& channel() { return channel_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Whether somebody has stopped it (SIGSTOP), so that its time says nothing.
  [[nodiscard]] bool is_paused() const;
  /// Kills the process group and waits. `ended_itself`: gives it a second to end by itself first.
  [[nodiscard]] ChildEnd finish(bool ended_itself);

 private:
  [[nodiscard]] std::string log_tail() const;

  pid_t pid_ = -1;
  int log_ = -1;
  MessageChannel channel_;
};

}  // namespace sylvite
