#pragma once
// The open kernels of a model, kept between processes: what is open depends on which sizes came first, and a process after
// this one shall have the same kernels, which are compiled already.

#include <string>
#include <vector>

#include "frontend/onnx/model_sizes.h"
#include "lowering/plan/plan.h"

namespace sylvite {

struct Setup;

/// Texts of open kernels; of each the variants, the first of all first.
using OpenTexts = std::vector<std::vector<std::string>>;

/// A file among the compiled kernels. What cannot be read counts as empty, what cannot be written is not kept.
/// Thread safety: const use only. Process safe as ObjectCache is.
class MenuFile {
 public:
  /// Keeps nothing.
  MenuFile() = default;
  /// Of the model that has this plan at its first sizes.
  MenuFile(const Setup& setup, const ModelSizes& model, const Plan& plan);

  [[nodiscard]] OpenTexts load() const;
  /// Along with what other processes stored since.
  void store(OpenTexts texts) const;

 private:
  std::string folder_;
  std::string symbol_;
};

}  // namespace sylvite
