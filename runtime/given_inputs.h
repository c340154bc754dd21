#pragma once
// The inputs of a program's current run, where kernels read them.

#include <map>
#include <vector>

#include "lowering/plan/plan.h"
#include "sylvite/tensor.h"

namespace sylvite {

class GivenInputs {
 public:
  /// `types` are those of the ports at the sizes of the program. The ports must outlive it.
  GivenInputs(const std::vector<Port>& ports, const std::vector<TensorType>& types);

  /// Throws InputError naming the input whose dtype or shape differs.
  void check(const std::vector<Tensor>& given) const;
  /// Checks. `given` must live until `release`. Kernels read vectors at any address, numbers at multiples of their size:
  /// what lies elsewhere is copied.
  void take(const std::vector<Tensor>& given);
  /// REQUIRES that inputs were taken.
  [[nodiscard]] const Tensor& at(std::size_t number) const;
  [[nodiscard]] std::size_t size() const { return dims_.size(); }
  void release();

 private:
  const std::vector<Port>* ports_;
  std::vector<Dims> dims_;  ///< per port
  const std::vector<Tensor>* given_ = nullptr;
  std::map<std::size_t, Tensor> copied_;
};

}  // namespace sylvite
