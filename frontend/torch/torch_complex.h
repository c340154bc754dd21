#pragma once
// Complex numbers inside of captured graphs: a real value for the real parts, and one for the imaginary parts.

#include <string_view>
#include <vector>

#include "frontend/torch/torch_context.h"

namespace sylvite {

struct Complex {
  Sym re, im;  ///< `im` tests false where a value is real
};

[[nodiscard]] Complex times(Complex a, Complex b);
[[nodiscard]] Complex over(Complex a, Complex b);

/// What the import of one operation on complex numbers sees. The two contexts are of the same node, with the element types
/// of its parts: in one complex arguments are their real parts, in the other their imaginary parts, and real numbers 0.
struct ComplexContext {
  TorchContext& re;
  TorchContext& im;
  const TorchScope& scope;     ///< with both parts
  void (*row)(TorchContext&);  ///< of the operation on real numbers; nullptr where there is none
  bool gives_complex = true;   ///< is its first result one of complex numbers?
  std::vector<Complex> results = {};

  [[nodiscard]] Complex value(std::string_view name) { return {re.tensor(name), im.tensor(name)}; }
  [[nodiscard]] bool is_complex(std::string_view name) {
    const auto found = scope.find(re.name_of(name));
    return found != scope.end() && !found->second.imaginary.empty();
  }
  void output(Complex value) { results = {value}; }
};

/// The rule of linalg_lu_factor_ex.
void factorize_complex(ComplexContext& c);

/// Of a node that takes or gives complex numbers: a value for each result. Throws UnsupportedError for operations without
/// a rule.
[[nodiscard]] std::vector<Complex> import_complex(GraphBuilder& builder, const TorchScope& scope,
                                                  const TorchNode& node, const TorchImportOptions& options);

/// c64 -> f32. Other names as they are.
[[nodiscard]] std::string_view part_dtype(std::string_view dtype);
/// Those that have rules.
[[nodiscard]] std::vector<std::string_view> complex_op_names();

}  // namespace sylvite
