#include "base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"

namespace sylvite {
namespace {

double interval_of(ProgressStyle style) {
  return style == ProgressStyle::bar ? 0.1 : 5;
}

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

ProgressStyle settled(ProgressStyle style) {
  if (style != ProgressStyle::automatic) return style;
  return ::isatty(STDERR_FILENO) != 0 ? ProgressStyle::bar : ProgressStyle::lines;
}

}  // namespace

std::string format_seconds(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f}s", seconds);
  const auto whole = static_cast<long>(seconds);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
}

Progress::Progress(std::string label, ProgressStyle style)
    : label_(std::move(label)), style_(settled(style)), start_(steady_seconds()), next_(start_) {}

Progress::~Progress() {
  if (line_open_) print("\n");
}

void Progress::update(double fraction, const std::string& message, const std::string& fields_json) {
  if (style_ == ProgressStyle::none || steady_seconds() < next_) return;
  next_ = steady_seconds() + interval_of(style_);
  show(std::clamp(fraction, 0.0, 1.0), message, fields_json);
}

void Progress::make_room() {
  if (line_open_) print("\r\x1b[K");
  line_open_ = false;
  next_ = start_;
}

void Progress::finish(const std::string& message, const std::string& fields_json) {
  if (style_ == ProgressStyle::none) return;
  show(1, message, fields_json);
  if (line_open_) print("\n");
  line_open_ = false;
}

void Progress::show(double fraction, const std::string& message, const std::string& fields_json) {
  const double elapsed = steady_seconds() - start_;
  const double left = fraction > 0.01 ? elapsed * (1 - fraction) / fraction : 0;
  if (style_ == ProgressStyle::jsonl) {
    print(fmt::format("{{\"progress\":{},\"fraction\":{:.4f},\"elapsed_seconds\":{:.3f}{}{}}}\n",
                      json_text(nlohmann::json(label_)), fraction, elapsed, fields_json.empty() ? "" : ",",
                      fields_json));
    return;
  }
  const std::string eta = fraction < 1 && left > 0 ? " ETA " + format_seconds(left) : "";
  if (style_ == ProgressStyle::lines) {
    print(
        fmt::format("{} {:3.0f}% {} {}{}\n", label_, fraction * 100, format_seconds(elapsed), message, eta));
    return;
  }
  constexpr int cells = 24;
  const int filled = static_cast<int>(fraction * cells);
  std::string line = fmt::format("{} [{}{}] {:3.0f}% {} {}", label_, std::string(filled, '#'),
                                 std::string(cells - filled, '.'), fraction * 100, message, eta);
  line.resize(std::min(line.size(), terminal_width() - 1));
  print("\r" + line + "\x1b[K");
  line_open_ = true;
}

}  // namespace sylvite
