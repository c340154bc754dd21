#pragma once
// What the templates of folds read of a kernel, and the texts that they share: row_folds folds the innermost dim, columns others.

#include <functional>
#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/operands.h"

namespace sylvite {

/// What a fold makes of the numbers that it takes.
enum class FoldKind { sum, most, least, product, count, place_of_most, place_of_least };

/// out = epilogue(x, folds) for each element x, with folds of work on all elements along some dims and on the folds before, all
/// computed in f32, but for counts of what is true, and places of the greatest or the least, which are whole numbers.
struct CudaFolds {
  struct Fold {
    PointwiseText text;  ///< what it takes; its operands are called as those of `operands`, or as a fold
    FoldKind kind = FoldKind::sum;
    bool takes_last = false;  ///< a place: of equal elements the last
    int pass = 0;             ///< one more than that of the folds that it reads
  };
  std::vector<Fold> folds;
  bool has_row = true;  ///< else all results are numbers
  PointwiseText epilogue;
  /// Further results without the folded dims: work on the folds and on what is read once for each, or a fold as it is.
  struct Number {
    PointwiseText text;
    std::vector<CudaOperand> operands;
    DType out = DType::f32;
    int fold = -1;             ///< as it is; -1: work
    std::vector<DType> types;  ///< that the fold has one after the other, the last as it is stored
  };
  std::vector<Number> numbers;
  std::vector<CudaOperand> operands;  ///< of all of it, each once
  DType out = DType::f32;             ///< of the first result
  int out_argument = 0;               ///< numbers follow it
};

/// How the dims of a kernel's folds lie.
struct FoldDims {
  Dims axes;          ///< that all of its folds take
  CudaGroups groups;  ///< of what they take
  /// Those of a number of this type, which may be in another layout; "" or why it is none.
  std::function<std::string(const TensorType& number, bool keeps, CudaGroups& groups)> number_groups;
  const Graph* open = nullptr;  ///< the body with symbols, where its constants may count
};

/// The value that the first fold of a kernel takes; no_value where there is none.
[[nodiscard]] ValueId folded_value(const Graph& body);
/// "", or why the reductions of a kernel are no folds of one and the same dims.
[[nodiscard]] std::string refuse_folds(const Graph& body);
/// Reads what each fold takes and what the results are made of, once has_row and out_argument are set; "" or why a template cannot
/// do it.
[[nodiscard]] std::string read_folds(const Kernel& kernel, const FoldDims& dims, CudaFolds& problem);

/// Operands that take registers: one for each element.
[[nodiscard]] std::int64_t held_operands(const CudaFolds& problem);
/// Passes over what is folded.
[[nodiscard]] int passes_of(const CudaFolds& problem);
/// C for the result of fold number `fold` in `folds`.
[[nodiscard]] std::string fold_name(std::size_t fold);
/// Which fold is what, and in which pass: what schedules/cuda/row_folds.cuh lists.
[[nodiscard]] std::string folds_text(const CudaFolds& problem);
/// Item, load_item(a, `place`, item) and term<F>: what is read of VECTOR elements at a place, whose C parameters are given.
[[nodiscard]] std::string items_text(const CudaFolds& problem, int vector, const std::string& place);
/// The epilogue of element j of an item.
[[nodiscard]] std::string epilogue_call(const CudaFolds& problem);
/// Functions of the epilogue and of numbers.
[[nodiscard]] std::string result_functions(const CudaFolds& problem);
/// Stores all numbers at the C `index`; what they read of memory is at the places that its operands say.
[[nodiscard]] std::string numbers_text(const CudaFolds& problem, const std::string& index);
/// All that is read, in the order of the kernel's arguments.
[[nodiscard]] std::vector<const CudaOperand*> operands_of(const CudaFolds& problem);
/// The types of the results behind the first.
[[nodiscard]] std::vector<DType> further_results(const CudaFolds& problem);
/// Extents that constants count.
[[nodiscard]] std::vector<CudaExtent> counted_extents(const CudaFolds& problem);

}  // namespace sylvite
