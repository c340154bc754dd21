#include "autotune/claim.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <iterator>

namespace sylvite {

namespace {

constexpr std::string_view prefix = "process ";

/// "" when there is no such file; those of /proc have no size, so they are read to their end.
std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// "process PID started TICKS after boot ID"; "" when the process is gone.
std::string claim_of(int process) {
  const std::string stat = text_of(fmt::format("/proc/{}/stat", process));
  constexpr int fields_before_start = 20;  // those after the name, which stands in parentheses
  std::size_t at = stat.rfind(')');
  for (int i = 0; i < fields_before_start && at != std::string::npos; ++i) at = stat.find(' ', at + 1);
  const bool is_dead = stat.find(") Z ") != std::string::npos;  // and not yet waited for
  if (at == std::string::npos || is_dead) return "";
  const std::string start = stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
  const std::string boot = text_of("/proc/sys/kernel/random/boot_id");
  return fmt::format("{}{} started {} after boot {}", prefix, process, start,
                     boot.substr(0, boot.find('\n')));
}

}  // namespace

std::string claim_of_this_process() {
  return claim_of(::getpid());
}

bool is_claim_held(std::string_view claim) {
  if (!claim.starts_with(prefix)) return false;
  int process = 0;
  std::from_chars(claim.data() + prefix.size(), claim.data() + claim.size(), process);
  return process > 0 && claim_of(process) == claim;
}

}  // namespace sylvite
