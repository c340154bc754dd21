#pragma once
// Shell scripts that stand in for the `sylvite` command.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "autotune/build_id.h"
#include "autotune/worker_protocol.h"

namespace sylvite {

/// Runs `body` in bash; the file is removed at the end.
class WorkerScript {
 public:
  explicit WorkerScript(const std::string& body)
      : path_(testing::TempDir() + "worker_script_" + std::to_string(getpid()) + ".sh") {
    std::ofstream(path_) << "#!/bin/bash\n" << body << "\n";
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  WorkerScript(const WorkerScript&) = delete;
  WorkerScript& operator=(const WorkerScript&) = delete;
  ~WorkerScript() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

  /// A command that sends a message as a worker would.
  static std::string sends(const WorkerReply& reply) {
    const std::string message = encode(reply);
    std::string command = "printf '";
    const auto add = [&command](unsigned byte) {
      char text[8];
      std::snprintf(text, sizeof text, "\\x%02x", byte & 0xff);
      command += text;
    };
    for (int i = 0; i < 4; ++i) add(static_cast<unsigned>(message.size()) >> (8 * i));
    for (const char byte : message) add(static_cast<unsigned char>(byte));
    return command + "' >&3; ";
  }

  /// First messages: of this build, of another, and of one from before workers named their builds.
  inline static const std::string hello = sends(WorkerHello{std::string(build_id)});
  inline static const std::string other_hello = sends(WorkerHello{"another"});
  inline static const std::string no_hello = sends(CompileReply{"", "object", 0.1});

 private:
  std::string path_;
};

}  // namespace sylvite
