#include "runtime/hot_sizes.h"

#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "runtime/build.h"

namespace sylvite {

bool HotSizes::note_run(Uses& uses, double seconds) {
  constexpr std::int64_t between = 64;  // runs: looking at the clock shall cost none of them much
  constexpr std::int64_t part = 16;
  ++runs_;
  if (uses.is_decided) return false;
  if (uses.runs++ % between != 0) return false;
  const double now = steady_seconds();
  if (uses.runs == 1) uses.since = now;
  return uses.runs > 1 && is_idle() && part * uses.runs >= runs_ && now - uses.since >= seconds;
}

void HotSizes::compile(Imported imported, Chosen chosen) {
  const auto given = std::make_shared<Specialized>(Specialized{std::move(imported), std::move(chosen), {}});
  making_ = std::make_unique<Background<Specialized>>([given](const std::stop_token& stop) {
    if (given->imported.setup->machine.gpu) {  // which runs of another thread have
      get_objects(given->imported, given->chosen, stop);
      given->chosen.has_untried = true;
      return std::move(*given);
    }
    Built alone = build_program(given->imported, std::move(given->chosen), {}, stop);
    return Specialized{
        std::move(given->imported), {*alone.choices, std::move(alone.report)}, std::move(alone.program)};
  });
}

void HotSizes::wait() const {
  if (!is_idle()) making_->wait();
}

std::optional<Specialized> HotSizes::take() {
  if (is_idle() || is_compiling()) return std::nullopt;
  const std::unique_ptr<Background<Specialized>> done = std::move(making_);
  if (!done->is_mine()) return std::nullopt;
  try {
    return done->take();
  } catch (const Error& error) {
    log_line(LogLevel::info, "sizes: no kernels for them alone: {}", error.what());
    return std::nullopt;
  }
}

}  // namespace sylvite
