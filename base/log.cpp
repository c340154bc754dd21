#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/words.h"

namespace sylvite {
namespace {

struct Log {
  std::atomic<LogLevel> least = LogLevel::off;
  std::atomic<bool> as_json = false;
  spdlog::logger logger{"sylvite", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
};

Log& log() {
  static Log log;
  return log;
}

/// In the order of LogLevel.
constexpr spdlog::level::level_enum spdlog_levels[] = {
    spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err, spdlog::level::off};

std::string json_line(LogLevel level, const std::string& text) {
  return json_text(nlohmann::json{{"log", name_of(level)}, {"message", text}});
}

}  // namespace

void set_up_log(LogLevel least, bool as_json) {
  log().least = least;
  log().as_json = as_json;
  log().logger.set_pattern(as_json ? "%v" : "sylvite: %l: %v");
  log().logger.set_level(spdlog_levels[static_cast<std::size_t>(least)]);
}

bool is_logged(LogLevel level) {
  return level >= log().least;
}

void log_text(LogLevel level, std::string_view text) {
  if (!is_logged(level)) return;
  const std::string clean = printable(text);
  log().logger.log(spdlog_levels[static_cast<std::size_t>(level)], "{}",
                   log().as_json ? json_line(level, clean) : clean);
}

}  // namespace sylvite
