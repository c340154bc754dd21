#pragma once
// What the import of one ATen operation sees: the arguments of its node, what its results are declared to be, and the
// builder.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "frontend/graph/graph_builder.h"
#include "frontend/torch/torch_import.h"
#include "frontend/torch/torch_text.h"

namespace sylvite {

/// What a name of the text stands for: one value, or several.
struct TorchValue {
  std::vector<Sym> results;  ///< absent ones are none
  bool is_tuple = false;
  std::vector<Sym> imaginary = {};  ///< of complex values, whose real parts are the results; else none
  std::optional<Dims> strides =
      {};  ///< of the one value in torch's memory, from its start, where that is known
  std::vector<Extent> shape = {};  ///< of the one value, as the text declares it
};
using TorchScope = std::map<std::string, TorchValue>;

/// Lives while one node is imported. Messages need not name the node: the importer puts its name in front. Arguments
/// are asked for by the names that the operation's row gives them, and one that the row does not name is not given;
/// those that nobody asked for are refused.
class TorchContext {
 public:
  TorchContext(GraphBuilder& builder, const TorchScope& scope, const TorchNode& node,
               const TorchImportOptions& options, std::string_view schema);

  [[nodiscard]] GraphBuilder& builder() { return builder_; }
  [[nodiscard]] GradientKernels gradients() const { return options_.gradients; }
  [[nodiscard]] bool has_gradient_templates() const { return gradients() == GradientKernels::templates; }
  [[nodiscard]] bool has(std::string_view name);  ///< is given, and not as none
  [[nodiscard]] bool is_tensor(std::string_view name);
  [[nodiscard]] std::string name_of(std::string_view name);  ///< of the value that is given, else empty
  [[nodiscard]] bool is_real(std::string_view name);         ///< a number with a fraction, not a tensor
  [[nodiscard]] bool is_boolean(std::string_view name);      ///< true or false, not a tensor
  [[nodiscard]] bool is_whole(std::string_view name);        ///< a number without a fraction, not a tensor
  [[nodiscard]] bool is_open_size(std::string_view name);    ///< one that follows from symbols
  [[nodiscard]] Sym tensor(std::string_view name);           ///< throws ModelError when it is none
  [[nodiscard]] Sym optional(std::string_view name);         ///< tests false when not given or none
  [[nodiscard]] std::vector<Sym> tensors(std::string_view name);  ///< of a list; absent ones test false
  /// Is it a tensor with one of these axes as long as symbols say?
  [[nodiscard]] bool has_open_axis(std::string_view name, const std::vector<std::int64_t>& axes);
  /// Of a tensor in torch's memory. Throws UnsupportedError where the text does not say them.
  [[nodiscard]] Dims strides_of(std::string_view name);
  // Numbers. Without a fallback they must be given.
  [[nodiscard]] std::int64_t integer(std::string_view name, std::optional<std::int64_t> fallback = {});
  [[nodiscard]] double real(std::string_view name, std::optional<double> fallback = {});  ///< any number
  [[nodiscard]] bool flag(std::string_view name, std::optional<bool> fallback = {});
  [[nodiscard]] std::string string(std::string_view name, std::string_view fallback);
  /// One number stands for a list of one.
  [[nodiscard]] Dims integers(std::string_view name, const std::optional<Dims>& fallback = {});
  [[nodiscard]] std::vector<double> reals(std::string_view name);
  [[nodiscard]] DType dtype(std::string_view name, DType fallback);
  /// A tensor or a number, as `to`; a number has rank 0.
  [[nodiscard]] Sym operand(std::string_view name, DType to);
  /// For rows that say that an argument does not matter here.
  void ignore(std::string_view name) { (void)find(name); }

  [[nodiscard]] std::size_t result_count() const { return node_.types.size(); }
  [[nodiscard]] DType result_dtype(std::size_t i = 0) const;  ///< as declared
  [[nodiscard]] Dims result_dims(std::size_t i = 0) const;
  /// The same, of as many axes. Throws ModelError when the text declares others.
  [[nodiscard]] Dims result_dims_of_rank(std::size_t rank, std::size_t i = 0) const;
  void output(Sym value) { results_ = {value}; }
  /// For an operation with several results. Absent ones are refused when they are read.
  void outputs(std::vector<Sym> values) { results_ = std::move(values); }
  [[nodiscard]] const std::vector<Sym>& results() const { return results_; }

  /// Throws UnsupportedError when an argument is given that nobody asked for.
  void check_no_surplus() const;

 private:
  [[nodiscard]] const TorchLiteral* find(std::string_view name);
  [[nodiscard]] const TorchLiteral& need(std::string_view name);
  [[nodiscard]] Sym symbol(const TorchLiteral& literal) const;
  [[nodiscard]] std::int64_t number(const TorchLiteral& literal, std::string_view name) const;
  [[nodiscard]] double any_number(const TorchLiteral& literal, std::string_view name) const;

  GraphBuilder& builder_;
  const TorchScope& scope_;
  const TorchNode& node_;
  const TorchImportOptions& options_;
  std::vector<std::string_view> names_;
  std::vector<const TorchLiteral*> given_;  ///< per name; nullptr when not given
  std::vector<bool> asked_;
  std::vector<Sym> results_;
};

/// The number of an extent. Throws UsageError when a symbol has no value.
[[nodiscard]] std::int64_t size_at(const Extent& extent, const SymbolValues& sizes);
[[nodiscard]] Dims sizes_at(const std::vector<Extent>& extents, const SymbolValues& sizes);

}  // namespace sylvite
