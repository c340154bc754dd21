#include "runtime/schedule_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/words.h"

namespace sylvite {
namespace {

constexpr std::string_view kernel_word = "kernel ";

/// Names of models may hold anything; here they are the end of a line.
std::string in_a_line(std::string_view name) {
  std::string line = printable(name);
  std::ranges::replace(line, '\n', ' ');
  return trimmed(line);
}

/// Reads line by line; what belongs to one kernel is collected in `body_` until the next begins.
class ScheduleReader {
 public:
  ScheduleReader(const std::string& origin, int lines_before) : origin_(origin), line_(lines_before) {}

  void read(std::string_view text) {
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      read_line(line);
    }
    finish();
  }
  [[nodiscard]] std::vector<KernelSchedule> take() { return std::move(schedules_); }

 private:
  [[noreturn]] void fail(int line, const std::string& problem) const {
    throw UsageError("{}, line {}: {}", origin_, line, problem);
  }

  void read_line(const std::string& line) {
    const bool is_indented = line.starts_with(' ') || line.starts_with('\t');
    const std::string words = trimmed(line);
    if (words.empty() || words.starts_with('#')) return;
    if (line.starts_with(kernel_word))
      begin(words.substr(kernel_word.size()));
    else if (is_indented && !schedules_.empty())
      add(words.substr(0, words.find("//")));
    else
      fail(line_, fmt::format("expected 'kernel ID', or an indented line of its schedule, got '{}'", words));
  }

  void begin(const std::string& words) {
    finish();
    const std::size_t end = std::min(words.find(' '), words.size());
    KernelSchedule schedule{words.substr(0, end), trimmed(words.substr(end)), {}};
    const auto same = std::ranges::find(schedules_, schedule.kernel, &KernelSchedule::kernel);
    if (same != schedules_.end()) fail(line_, fmt::format("kernel {} is there twice", schedule.kernel));
    schedules_.push_back(std::move(schedule));
    body_.clear();
    begun_ = line_;
  }

  /// What begins with a dot goes on with the line before.
  void add(const std::string& words) {
    if (words.empty()) return;
    const bool goes_on = words.starts_with('.') && body_.ends_with('\n');
    if (goes_on) body_.pop_back();
    body_ += words + "\n";
  }

  void finish() {
    if (schedules_.empty()) return;
    KernelSchedule& last = schedules_.back();
    try {
      last.candidate = Candidate::parse(body_);
    } catch (const Error& error) {
      fail(begun_, fmt::format("kernel {}: {}", last.kernel, error.what()));
    }
  }

  const std::string& origin_;
  int line_;
  int begun_ = 0;  ///< the line of the last kernel
  std::string body_;
  std::vector<KernelSchedule> schedules_;
};

}  // namespace

std::string readable_name(const Plan& plan, std::size_t kernel) {
  const std::string kind(kernel_class_name(plan.kernels.at(kernel).kind));
  const auto launch = std::ranges::find(plan.launches, static_cast<int>(kernel), &Launch::kernel);
  return launch == plan.launches.end() ? kind : kind + " " + in_a_line(launch->name);
}

std::string readable(const Schedule& schedule) {
  constexpr std::size_t long_line = 100;
  std::string text;
  std::istringstream lines(schedule.to_string());
  for (std::string line; std::getline(lines, line);) {
    for (std::size_t at = line.find(").", 0); line.size() > long_line && at != std::string::npos;) {
      line.insert(at + 1, "\n    ");
      at = line.find(").", at + 2);
    }
    text += line + "\n";
  }
  return text;
}

std::string to_text(const KernelSchedule& schedule) {
  std::string text = trimmed(fmt::format("{}{} {}", kernel_word, schedule.kernel, schedule.name));
  text += fmt::format("\n  form: {}\n", schedule.candidate.form.to_string());
  std::istringstream lines(readable(schedule.candidate.schedule));
  for (std::string line; std::getline(lines, line);) text += "  " + line + "\n";
  return text;
}

std::vector<KernelSchedule> parse_schedules(std::string_view text, const std::string& origin,
                                            int lines_before) {
  ScheduleReader reader(origin, lines_before);
  reader.read(text);
  return reader.take();
}

}  // namespace sylvite
