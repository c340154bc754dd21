#pragma once
// How a captured graph is called, as it follows from sizes: an import at each would say the same.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/torch/torch_import.h"
#include "lowering/plan/extent_fit.h"
#include "python/native/dlpack.h"
#include "sylvite/types.h"

namespace sylvite::python {

/// How a program's input follows from an input of the call.
struct CapturedRead {
  std::size_t input = 0;
  DType dtype = DType::f32;
  Dims dims;              ///< as torch sees it
  Dims strides;           ///< of memory that is read in place
  Dims stored;            ///< dims of the graph's input: the memory in order
  dlpack::DataType type;  ///< dtype, as DLPack names it
};

struct CapturedPorts {
  std::vector<CapturedRead> reads;   ///< per input of the program
  std::vector<TorchOutput> outputs;  ///< of the text
};

/// Numbers of ports as expressions of sizes.
struct FittedNumbers {
  std::vector<Extent> numbers;
  std::vector<ExtentFit::Follower> followers;  ///< where these hold
};

/// Ports of one graph whose sizes are open, found by what imports at a few sizes made of them. Thread safety: one thread at a time.
class OpenPorts {
 public:
  OpenPorts() = default;
  /// `said`: expressions of the symbols that a number may be, or be made of.
  OpenPorts(std::vector<FitSymbol> symbols, std::vector<Extent> said)
      : symbols_(std::move(symbols)), said_(std::move(said)) {}

  /// They are these at these sizes.
  void learn(const Dims& sizes, const CapturedPorts& ports);
  /// nullopt where what was learned does not tell, as where ports differ in more than numbers. Whether an import decides as those did
  /// is for the caller to know.
  [[nodiscard]] std::optional<CapturedPorts> at(const Dims& sizes);

 private:
  [[nodiscard]] std::optional<FittedNumbers> fit() const;

  std::vector<FitSymbol> symbols_;
  std::vector<Extent> said_;
  std::map<Dims, std::vector<std::int64_t>> numbers_;  ///< by sizes
  CapturedPorts first_;
  std::string structure_;  ///< of all
  bool differ_ = false;
  /// Of the numbers; nullopt until they are looked for, a nullopt inside where none tell them.
  std::optional<std::optional<FittedNumbers>> expressions_;
};

}  // namespace sylvite::python
