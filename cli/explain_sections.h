#pragma once
// What `sylvite explain` prints, part by part: each a heading and its lines, or "" where there is nothing to say.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/kernel_story.h"
#include "frontend/onnx/model_sizes.h"
#include "runtime/session.h"

namespace sylvite {

[[nodiscard]] std::string heading(const std::string& title);

[[nodiscard]] std::string size_section(const ModelSizes& model, const Sizes& shown);
[[nodiscard]] std::string graph_section(const Imported& imported);
[[nodiscard]] std::string pass_section(const Imported& imported);
[[nodiscard]] std::string launch_section(const Plan& plan);
[[nodiscard]] std::string host_section(const HostPart* host);
[[nodiscard]] std::string memory_section(const Plan& plan);
/// A line for each kernel.
[[nodiscard]] std::string kernel_table(const Imported& imported, const std::vector<Choice>& choices,
                                       const std::vector<KernelStory>& stories);
/// Algorithm and schedule of one kernel of the plan.
[[nodiscard]] std::string kernel_section(const Imported& imported, const Choice& choice,
                                         const KernelStory& story, std::size_t kernel);
/// The spaces that take it, and those that do not.
[[nodiscard]] std::string refusal_section(const Imported& imported, std::size_t kernel);

/// All that explain can print, as docs/formats.md says; nothing of a profile.
[[nodiscard]] nlohmann::json explain_json(const Imported& imported, const Chosen& chosen,
                                          const std::vector<KernelStory>& stories);

}  // namespace sylvite
