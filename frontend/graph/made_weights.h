#pragma once
// Constants that passes make of a model's weights: a model that is imported again, at other sizes, has the same tensors, not
// equal ones, which would be made, compared and packed again.

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sylvite/tensor.h"

namespace sylvite {

/// What imports of one model made, by how it was made. Thread safety: safe.
class MadeWeights {
 public:
  /// One import. While it lives, what its thread makes by `made_of` is looked up.
  class Import {
   public:
    /// nullptr: nothing is looked up or kept.
    explicit Import(MadeWeights* weights);
    ~Import();
    Import(const Import&) = delete;
    Import& operator=(const Import&) = delete;

    [[nodiscard]] Tensor find_or_make(const std::string& recipe, const std::vector<Tensor>& sources,
                                      const std::function<Tensor()>& make);
    /// Later imports find those of these tensors that this one made, and what they were made of stays.
    void keep(const std::vector<Tensor>& wanted);

   private:
    /// How a tensor was made, down to what nothing here made.
    struct Origin {
      std::string recipe;
      std::vector<Tensor>
          roots;  ///< named in the recipe by their identity, which is theirs as long as they live
      Tensor made = {};
    };
    void add_source(Origin& origin, const Tensor& source) const;

    MadeWeights* weights_;
    Import* before_;                                        ///< of this thread
    std::unordered_map<const void*, Origin> origins_ = {};  ///< of what this import made, by identity
  };

 private:
  struct Kept {
    Tensor made;
    std::vector<Tensor> roots;
    std::int64_t import = 0;  ///< number of the latest that has it
  };
  [[nodiscard]] std::optional<Tensor> find(const std::string& recipe);

  std::mutex mutex_;
  std::map<std::string, Kept> kept_;  ///< by recipe
  std::int64_t imports_ = 0;
};

/// What `make` gives, or what it gave an earlier import of the model by the same recipe of the same tensors. `recipe` says
/// everything else that the result depends on.
[[nodiscard]] Tensor made_of(const std::string& recipe, const std::vector<Tensor>& sources,
                             const std::function<Tensor()>& make);

}  // namespace sylvite
