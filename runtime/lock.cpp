#include "runtime/lock.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"
#include "base/files.h"
#include "base/words.h"
#include "schedules/code_id.h"

namespace sylvite {
namespace {

constexpr std::string_view title = "sylvite lock ";
constexpr std::string_view format_version = "1";
constexpr std::string_view last_line = "end\n";
constexpr std::string_view remark = "# Made by `sylvite lock`, read by --frozen. Keep it; do not edit it.\n";

/// A line of the head: its name, its value in a lock, and whether another value is refused.
struct HeadRow {
  std::string_view name;
  std::string (*get)(const Lock& lock);
  void (*set)(Lock& lock, const std::string& value);
  bool is_binding;
};

constexpr std::array<HeadRow, 7> head = {{
    {"code", [](const Lock& lock) { return lock.code; },
     [](Lock& lock, const std::string& value) { lock.code = value; }, true},
    {"versions", [](const Lock& lock) { return lock.key.versions; },
     [](Lock& lock, const std::string& value) { lock.key.versions = value; }, true},
    {"target", [](const Lock& lock) { return lock.key.target; },
     [](Lock& lock, const std::string& value) { lock.key.target = value; }, true},
    {"threads", [](const Lock& lock) { return std::to_string(lock.key.threads); },
     [](Lock& lock, const std::string& value) {
       lock.key.threads = 0;  // what is no number is no number of threads either
       std::from_chars(value.data(), value.data() + value.size(), lock.key.threads);
     },
     true},
    {"precision", [](const Lock& lock) { return lock.key.precision; },
     [](Lock& lock, const std::string& value) { lock.key.precision = value; }, true},
    {"mode", [](const Lock& lock) { return lock.mode; },
     [](Lock& lock, const std::string& value) { lock.mode = value; }, false},
    {"machine", [](const Lock& lock) { return lock.key.machine; },
     [](Lock& lock, const std::string& value) { lock.key.machine = value; }, false},
}};

constexpr std::string_view advice = "run `sylvite lock` again";

void check_title(std::string_view line, const std::string& path) {
  if (!line.starts_with(title))
    throw UsageError("{} is no lock: its first line is not '{}{}'", path, title, format_version);
  if (line.substr(title.size()) != format_version) {
    throw UsageError("{} is a lock of format {}, this Sylvite reads format {}; {}", path,
                     printable(line.substr(title.size())), format_version, advice);
  }
}

/// The head: a line "NAME VALUE" for each row, in their order.
void read_head(Lock& lock, std::string_view& text) {
  for (const HeadRow& row : head) {
    const std::string_view line = take_line(text);
    const std::string prefix = fmt::format("{} ", row.name);
    if (!line.starts_with(prefix))
      throw UsageError("{}: the head of the lock has no '{}' where it belongs, but '{}'; {}", lock.path,
                       row.name, printable(line), advice);
    row.set(lock, std::string(line.substr(prefix.size())));
  }
}

}  // namespace

Lock begin_lock(const Setup& setup) {
  return {"", setup.key(), std::string(name_of(setup.config.mode)), std::string(code_id), {}};
}

void add_kernels(Lock& lock, const Plan& plan, const std::vector<Choice>& choices) {
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    const std::string& id = plan.kernels[i].id;
    lock.kernels.emplace(id, KernelSchedule{id, readable_name(plan, i), choices.at(i).candidate});
  }
}

std::string to_text(const Lock& lock) {
  std::string text = fmt::format("{}{}\n{}", title, format_version, remark);
  for (const HeadRow& row : head) text += fmt::format("{} {}\n", row.name, row.get(lock));
  for (const auto& [id, schedule] : lock.kernels) text += "\n" + to_text(schedule);
  return text + "\n" + std::string(last_line);
}

Lock read_lock(const std::string& path) {
  const std::string bytes = read_file(path);
  std::string_view text = bytes;
  check_title(take_line(text), path);
  if (!bytes.ends_with("\n" + std::string(last_line)))
    throw UsageError("{} is cut short: a lock ends with a line 'end'; {}", path, advice);
  text.remove_suffix(last_line.size());
  while (text.starts_with('#')) (void)take_line(text);
  Lock lock;
  lock.path = path;
  read_head(lock, text);
  const std::string_view before =
      std::string_view(bytes).substr(0, bytes.size() - last_line.size() - text.size());
  const auto lines_before = std::ranges::count(before, '\n');
  for (KernelSchedule& schedule : parse_schedules(text, path, static_cast<int>(lines_before)))
    lock.kernels.emplace(schedule.kernel, std::move(schedule));
  return lock;
}

void check_lock(const Lock& lock, const Setup& setup) {
  const Lock here = begin_lock(setup);
  for (const HeadRow& row : head) {
    if (!row.is_binding || row.get(lock) == row.get(here)) continue;
    throw UsageError("{} is a lock for {} '{}', here it is '{}'; compile as it says, or {}", lock.path,
                     row.name, row.get(lock), row.get(here), advice);
  }
}

Chosen choose_locked(const Imported& imported) {
  const Lock& lock = *imported.setup->lock;
  const Plan& plan = *imported.plan;
  const auto is_missing = [&](const Kernel& kernel) { return !lock.kernels.contains(kernel.id); };
  const auto first = std::ranges::find_if(plan.kernels, is_missing);
  if (first != plan.kernels.end()) {
    const auto others = std::count_if(first + 1, plan.kernels.end(), is_missing);
    throw UsageError("kernel {} ({}) is not in the lock {}{}; run `sylvite lock {} -o {}` again", first->id,
                     readable_name(plan, static_cast<std::size_t>(first - plan.kernels.begin())), lock.path,
                     others == 0 ? "" : fmt::format(" (nor are {} more)", others),
                     imported.path.empty() ? "MODEL" : imported.path, lock.path);
  }
  return choose_each(imported, [&](const Kernel& kernel) -> Choice {
    return {lock.kernels.at(kernel.id).candidate, Source::lock, 0, "the lock " + lock.path};
  });
}

void refuse_lock(const Setup& setup, std::string_view what) {
  if (setup.lock != nullptr)
    throw UsageError(
        "{} measures, or reads or stores winners, which --frozen {} forbids; leave one of them out", what,
        setup.lock->path);
}

}  // namespace sylvite
