#pragma once
// What templates over rows and columns read, and the C text of their loads.

#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

#include "lowering/algorithms/pointwise_text.h"
#include "schedules/cuda/extents.h"
#include "schedules/cuda/launch_spec.h"

namespace sylvite {

/// An input that is read at [batch, row, column]: strides in elements; `column` is 1 or 0.
struct CudaOperand {
  /// Some dims of the rows: number row / divisor % extent of them, which lie a stride apart; extent 0: row / divisor. So of columns.
  struct Digit {
    std::int64_t divisor = 1, extent = 0, stride = 0;
    bool operator==(const Digit&) const = default;
  };
  PointwiseOperand of;
  std::int64_t batch = 0, row = 0, column = 0;
  std::vector<Digit> digits;         ///< where it is broadcast over some dims of the rows; `row` is 0 then
  std::vector<Digit> column_digits;  ///< the same of the columns; `column` is 0 then
  bool follows_rows = false;         ///< a batch is behind the rows of the one before, whose number runs give
  bool follows_columns =
      false;  ///< `row` and strides of `digits` count in rows of columns, whose number runs give

  /// The same elements, whatever both are called.
  [[nodiscard]] bool reads_as(const CudaOperand& other) const;
  /// Read once: a matrix, not what all rows share.
  [[nodiscard]] bool passes_by() const { return column == 1 && row != 0; }
};

/// Where a tensor's dims, outermost in memory first, are: [0, first) the batch, [first, last) the rows, and the
/// rest the columns.
struct CudaGroups {
  Dims dims;
  std::size_t first = 0, last = 0;
  std::vector<std::size_t> order = {};  ///< the tensor's dim that each of `dims` is; empty: as they are
  bool divides_rows = false;  ///< operands may be broadcast over some dims of the rows, which are below 2^31
  bool divides_columns = false;  ///< so of the columns
};

/// `dims` as memory has them, in `order`, with no groups yet.
[[nodiscard]] CudaGroups ordered(const Dims& dims, const std::vector<std::size_t>& order);

/// Pointwise work from value `from` to value `to`, whose dims are grouped as `groups` says, and what it
/// reads. `open` as for print_pointwise. "", or why a template cannot do it.
[[nodiscard]] std::string read_work(const Graph& body, ValueId from, ValueId to, const CudaGroups& groups,
                                    const std::string& name, bool fast, PointwiseText& text,
                                    std::vector<CudaOperand>& operands, const Graph* open = nullptr);

/// Adds the operands of a text to those of others: what is read already is called as it is, the rest gets names of its own.
void share_operands(std::vector<CudaOperand> own, PointwiseText& text, std::vector<CudaOperand>& all);

/// Do runs of a kernel give any of the dims [first, end) of `groups`, as a value has them?
[[nodiscard]] bool are_open(const Kernel& kernel, ValueId id, const CudaGroups& groups, std::size_t first,
                            std::size_t end);

/// Makes what is read once a row of `rows`, whose number runs give, follow them into the next of `batches`; "" or why an operand
/// lies otherwise.
[[nodiscard]] std::string follow_rows(std::int64_t batches, std::int64_t rows,
                                      std::vector<CudaOperand>& operands);

/// Makes what is read of each column follow the number of `columns`, which runs give, into the next row; "" or why an operand lies
/// otherwise.
[[nodiscard]] std::string follow_columns(std::int64_t columns, std::vector<CudaOperand>& operands);

/// Counts that the function takes get names of their own among those of the kernel.
void rename_counts(const std::string& function, PointwiseText& text);

[[nodiscard]] bool is_float_storage(DType dtype);

/// What a digit of the C `number` adds to an address.
[[nodiscard]] std::string digit_text(const CudaOperand::Digit& digit, const char* number);
/// Declares v_NAME[VECTOR], loaded at `batch`, `row`, `column` of `a`, whose extents `e` are where an operand follows rows or columns; `streams` is C for whether what passes
/// by leaves the L2 cache first.
[[nodiscard]] std::string load_text(const CudaOperand& operand, int vector, const char* streams);
/// FUNCTION(ROOT, v_NAME[j]..., counts), the counts being extents of `e`.
[[nodiscard]] std::string call_text(const PointwiseText& text, const std::string& function,
                                    const std::string& root);
/// ", COUNT..." for the counts of a text.
[[nodiscard]] std::string count_arguments(const PointwiseText& text);
/// struct Arguments: out, further results as out1, out2, ..., then what is read, then the extents that are open; and what
/// extents_text writes.
[[nodiscard]] std::string arguments_text(const std::vector<const CudaOperand*>& read,
                                         const std::vector<CudaExtent>& extents = {},
                                         const std::vector<DType>& further = {});
/// What the members are: out is the kernel's argument `out`, and `further` results are those behind it.
void pass_arguments(LaunchSpec& launch, int out, const std::vector<const CudaOperand*>& read,
                    const std::vector<CudaExtent>& extents, std::size_t further = 0);
/// The operands of these lists, in order; the lists must outlive the result.
[[nodiscard]] std::vector<const CudaOperand*> operands_in(
    std::initializer_list<const std::vector<CudaOperand>*> lists);

}  // namespace sylvite
