#include "cli/kernel_story.h"

#include "cli/timing.h"
#include "lowering/plan/plan_loops.h"
#include "schedules/space.h"

namespace sylvite {
namespace {

std::string origin_of(const Choice& choice, const Kernel& kernel, const TuningKey& key,
                      const Database& database) {
  if (choice.source == Source::database)
    if (const std::optional<Winner> winner = database.find_winner(kernel, key)) return winner->origin;
  return std::string(source_name(choice.source));
}

nlohmann::json ratio_json(double ratio) {
  return ratio > 0 ? nlohmann::json(ratio) : nullptr;
}

}  // namespace

std::vector<KernelStory> tell_kernels(const Imported& imported, const std::vector<Choice>& choices) {
  const Setup& setup = *imported.setup;
  const Plan& plan = *imported.plan;
  const Database database(setup.lock == nullptr ? setup.database : "");  // a lock asks no database
  const TuningKey key = setup.key();
  std::vector<KernelStory> stories(plan.kernels.size());
  const std::vector<std::int64_t> counts = launch_counts(plan);
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    KernelStory& story = stories[static_cast<std::size_t>(plan.launches[i].kernel)];
    if (story.launches == 0) story.first_launch = plan.launches[i].name;
    story.launches += counts[i];
  }
  for (std::size_t i = 0; i < stories.size(); ++i) {
    const Kernel& kernel = plan.kernels[i];
    stories[i].origin = origin_of(choices[i], kernel, key, database);
    stories[i].standing =
        standing_of(choices[i].candidate, choices[i].median_us, default_candidate(kernel, setup.machine),
                    database.trials(kernel, key), database.races(kernel, key));
  }
  return stories;
}

std::string why_text(const Choice& choice, const KernelStory& story) {
  const std::string stands = describe(story.standing);
  if (choice.why.empty()) return stands.empty() ? "the heuristic schedule, nothing was measured" : stands;
  return choice.why + (stands.empty() ? "" : ": " + stands);
}

std::string excess_text(double ratio) {
  if (ratio == 1) return "same";
  return ratio > 0 ? fmt::format("{:+.1f}%", 100 * (ratio - 1)) : "-";
}

nlohmann::json kernels_json(const Imported& imported, const std::vector<Choice>& choices,
                            const std::vector<KernelStory>& stories) {
  const Plan& plan = *imported.plan;
  nlohmann::json kernels = work_json(plan);
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    nlohmann::json& kernel = kernels[plan.kernels[i].id];
    const auto& [launches, first_launch, origin, standing] = stories[i];
    kernel["launches"] = launches;
    kernel["first_launch"] = first_launch;
    kernel["form"] = choices[i].candidate.form.to_string();
    kernel["schedule"] = choices[i].candidate.schedule.to_string();
    kernel["origin"] = origin;
    kernel["why"] = why_text(choices[i], stories[i]);
    kernel["stored_us"] = ratio_json(choices[i].median_us);
    kernel["tried"] = standing.tried;
    kernel["failed"] = standing.failed;
    kernel["next_ratio"] = ratio_json(standing.next_ratio);
    kernel["default_ratio"] = ratio_json(standing.default_ratio);
    std::vector<Refusal> refusals;
    (void)spaces_for(plan.kernels[i], imported.setup->machine, &refusals);
    for (const Refusal& refusal : refusals) kernel["refusals"][refusal.space] = refusal.reason;
  }
  return kernels;
}

}  // namespace sylvite
