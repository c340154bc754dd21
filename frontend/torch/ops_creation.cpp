// Tensors that are made of numbers.

#include "frontend/torch/torch_ops.h"

namespace sylvite {
namespace {

/// What places a tensor in memory, and says again what the result's type says.
void ignore_options(TorchContext& c) {
  for (const std::string_view name : {"layout", "device", "pin_memory", "memory_format", "size", "stride",
                                      "physical_layout", "requires_grad", "dtype", "self", "length", "end"})
    c.ignore(name);
}

constexpr std::string_view full_schema = "size fill_value dtype layout device pin_memory";
constexpr std::string_view full_like_schema = "self fill_value dtype layout device pin_memory memory_format";
constexpr std::string_view scalar_schema = "s dtype layout device pin_memory";
constexpr std::string_view empty_schema = "size dtype layout device pin_memory memory_format";
constexpr std::string_view permuted_schema = "size physical_layout dtype layout device pin_memory";
constexpr std::string_view strided_schema = "self size stride dtype layout device pin_memory";
constexpr std::string_view new_schema = "self size dtype layout device pin_memory";
constexpr std::string_view like_schema = "self dtype layout device pin_memory memory_format";
constexpr std::string_view arange_schema = "start end step dtype layout device pin_memory";
constexpr std::string_view arange_end_schema = "end dtype layout device pin_memory";
constexpr std::string_view iota_schema = "length start step dtype device requires_grad";
constexpr std::string_view indices_schema = "row col offset dtype layout device pin_memory";

void full(TorchContext& c) {
  ignore_options(c);
  c.output(broadcast_to(c.operand("fill_value", c.result_dtype()), c.result_dims()));
}

void fill(TorchContext& c) {
  c.ignore("self");
  c.output(broadcast_to(c.operand("value", c.result_dtype()), c.result_dims()));
}

void scalar_tensor(TorchContext& c) {
  ignore_options(c);
  c.output(c.operand("s", c.result_dtype()));
}

/// What is not said is zero.
template <int value>
void constant(TorchContext& c) {
  ignore_options(c);
  c.output(c.builder().filled(c.result_dtype(), c.result_dims(), value));
}

/// start, start + step, ... Floats are computed in f64, as torch does.
Sym counted(TorchContext& c, double start, double step) {
  const DType dtype = is_float(c.result_dtype()) ? DType::f64 : DType::i64;
  Sym count = c.builder().iota(dtype, c.result_dims_of_rank(1), 0);
  if (step != 1) count = count * step;
  if (start != 0) count = count + start;
  return cast(count, c.result_dtype());
}

void arange(TorchContext& c) {
  ignore_options(c);
  c.output(counted(c, c.real("start", 0), c.real("step", 1)));
}

void arange_to(TorchContext& c) {
  ignore_options(c);
  c.output(counted(c, 0, 1));
}

void arange_from(TorchContext& c) {
  ignore_options(c);
  c.output(counted(c, c.real("start", 0), 1));
}

void iota(TorchContext& c) {
  ignore_options(c);
  c.output(counted(c, c.real("start", 0), c.real("step", 1)));
}

/// Rows and columns of a triangle: known now.
template <bool is_upper>
void triangle_indices(TorchContext& c) {
  ignore_options(c);
  const std::int64_t rows = c.integer("row"), columns = c.integer("col"), offset = c.integer("offset", 0);
  if (rows < 0 || columns < 0) throw ModelError("a triangle of {} by {}", rows, columns);
  c.builder().reserve_table({2, rows, columns});
  std::vector<std::int64_t> row_numbers, column_numbers;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      if (is_upper ? j - i < offset : j - i > offset) continue;
      row_numbers.push_back(i);
      column_numbers.push_back(j);
    }
  }
  const auto count = static_cast<std::int64_t>(row_numbers.size());
  row_numbers.insert(row_numbers.end(), column_numbers.begin(), column_numbers.end());
  c.output(cast(c.builder().constant(Tensor::of(DType::i64, {2, count}, row_numbers)), c.result_dtype()));
}

const TorchOp creation_rows[] = {
    {"aten._efficientzerotensor.default", empty_schema, constant<0>},
    {"aten.arange.default", arange_end_schema, arange_to},
    {"aten.arange.start", "start end dtype layout device pin_memory", arange_from},
    {"aten.arange.start_step", arange_schema, arange},
    {"aten.empty.memory_format", empty_schema, constant<0>},
    {"aten.empty_like.default", like_schema, constant<0>},
    {"aten.empty_permuted.default", permuted_schema, constant<0>},
    {"aten.fill.Scalar", "self value", fill},
    {"aten.fill.Tensor", "self value", fill},
    {"aten.full.default", full_schema, full},
    {"aten.full_like.default", full_like_schema, full},
    {"aten.new_empty.default", new_schema, constant<0>},
    {"aten.new_empty_strided.default", strided_schema, constant<0>},
    {"aten.new_full.default", "self size fill_value dtype layout device pin_memory", full},
    {"aten.new_zeros.default", new_schema, constant<0>},
    {"aten.ones.default", empty_schema, constant<1>},
    {"aten.ones_like.default", like_schema, constant<1>},
    {"aten.scalar_tensor.default", scalar_schema, scalar_tensor},
    {"aten.tril_indices.default", indices_schema, triangle_indices<false>},
    {"aten.triu_indices.default", indices_schema, triangle_indices<true>},
    {"aten.zeros.default", empty_schema, constant<0>},
    {"aten.zeros_like.default", like_schema, constant<0>},
    {"prims.iota.default", iota_schema, iota},
};

}  // namespace

std::span<const TorchOp> torch_creation_ops() {
  return creation_rows;
}

}  // namespace sylvite
