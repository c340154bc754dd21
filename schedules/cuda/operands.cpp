#include "schedules/cuda/operands.h"

#include <algorithm>

#include "base/error.h"

namespace sylvite {
namespace {

/// The stride that walks dims [from, to) as one; false where there is none.
bool join_dims(const CudaGroups& groups, const Dims& strides, std::size_t from, std::size_t to,
               std::int64_t& stride) {
  std::int64_t extent = 1;
  for (std::size_t i = to; i-- > from;) {
    if (groups.dims[i] == 1) continue;
    if (extent == 1) stride = strides[i];
    if (strides[i] != stride * extent) return false;
    extent *= groups.dims[i];
  }
  return true;
}

/// Runs of the dims [from, to) that lie together, those that are broadcast left out.
std::vector<CudaOperand::Digit> digits_of(const CudaGroups& groups, const Dims& strides, std::size_t from,
                                          std::size_t to) {
  std::vector<CudaOperand::Digit> digits;
  std::int64_t divisor = 1;
  for (std::size_t i = to; i-- > from; divisor *= groups.dims[i]) {
    if (groups.dims[i] == 1 || strides[i] == 0) continue;
    const bool goes_on = !digits.empty() && digits.back().divisor * digits.back().extent == divisor &&
                         strides[i] == digits.back().stride * digits.back().extent;
    if (goes_on)
      digits.back().extent *= groups.dims[i];
    else
      digits.push_back({divisor, groups.dims[i], strides[i]});
  }
  if (!digits.empty() && digits.back().divisor * digits.back().extent == divisor) digits.back().extent = 0;
  return digits;
}

std::string set_strides(const CudaGroups& groups, const PointwiseOperand& of, CudaOperand& operand) {
  operand.of = of;
  Dims strides = of.strides;
  for (std::size_t i = 0; i < groups.order.size(); ++i) strides[i] = of.strides[groups.order[i]];
  bool joined = join_dims(groups, strides, 0, groups.first, operand.batch);
  if (!join_dims(groups, strides, groups.last, groups.dims.size(), operand.column)) {
    operand.column = 0;
    operand.column_digits = digits_of(groups, strides, groups.last, groups.dims.size());
    joined = joined && groups.divides_columns;
  }
  if (!join_dims(groups, strides, groups.first, groups.last, operand.row)) {
    operand.row = 0;
    operand.digits = digits_of(groups, strides, groups.first, groups.last);
    joined = joined && groups.divides_rows;
  }
  if (!joined) return "an operand is broadcast over some rows or columns";
  return operand.column == 0 || operand.column == 1 ? "" : "columns of an operand lie apart";
}

/// The function of schedules/cuda/pointwise.cuh that rounds to a type.
const char* rounding_of(DType dtype) {
  return dtype == DType::bf16 ? "round_bf16" : dtype == DType::f16 ? "round_f16" : "";
}

}  // namespace

bool CudaOperand::reads_as(const CudaOperand& other) const {
  return of.input == other.of.input && of.offset == other.of.offset && batch == other.batch &&
         row == other.row && column == other.column && digits == other.digits &&
         column_digits == other.column_digits && follows_rows == other.follows_rows &&
         follows_columns == other.follows_columns;
}

CudaGroups ordered(const Dims& dims, const std::vector<std::size_t>& order) {
  CudaGroups groups{dims, 0, 0, order};
  for (std::size_t i = 0; i < order.size(); ++i) groups.dims[i] = dims[order[i]];
  return groups;
}

std::string read_work(const Graph& body, ValueId from, ValueId to, const CudaGroups& groups,
                      const std::string& name, bool fast, PointwiseText& text,
                      std::vector<CudaOperand>& operands, const Graph* open) {
  try {
    text = print_pointwise(body, from, to, name, fast, open);
  } catch (const UnsupportedError& error) {
    return error.what();
  }
  for (const PointwiseOperand& of : text.operands) {
    std::string refusal = set_strides(groups, of, operands.emplace_back());
    if (!refusal.empty()) return refusal;
  }
  return "";
}

void share_operands(std::vector<CudaOperand> own, PointwiseText& text, std::vector<CudaOperand>& all) {
  for (std::size_t i = 0; i < own.size(); ++i) {
    auto same = std::ranges::find_if(all, [&](const CudaOperand& other) { return other.reads_as(own[i]); });
    if (same == all.end()) {
      const bool is_taken =
          std::ranges::any_of(all, [&](const CudaOperand& other) { return other.of.name == own[i].of.name; });
      if (is_taken) own[i].of.name += fmt::format("_{}", all.size());
      same = all.insert(all.end(), own[i]);
    }
    text.operands[i].name = same->of.name;
  }
}

bool are_open(const Kernel& kernel, ValueId id, const CudaGroups& groups, std::size_t first,
              std::size_t end) {
  if (!kernel.open) return false;
  const Shape& shape = kernel.open->type(id).shape;
  for (std::size_t i = first; i < end; ++i)
    if (!shape[groups.order.empty() ? i : groups.order[i]].is_known()) return true;
  return false;
}

std::string follow_rows(std::int64_t batches, std::int64_t rows, std::vector<CudaOperand>& operands) {
  for (CudaOperand& operand : operands) {
    if (!operand.digits.empty()) return "an operand is broadcast over some rows, whose number is open";
    if (operand.row == 0 || batches == 1) continue;
    if (operand.batch != operand.row * rows) return "an operand's batches lie apart from its rows";
    operand.follows_rows = true;
  }
  return "";
}

std::string follow_columns(std::int64_t columns, std::vector<CudaOperand>& operands) {
  for (CudaOperand& operand : operands) {
    if (!operand.column_digits.empty())
      return "an operand is broadcast over some columns, whose number is open";
    if (operand.column == 0) continue;
    std::vector<std::int64_t*> strides = {&operand.row};
    for (CudaOperand::Digit& digit : operand.digits) strides.push_back(&digit.stride);
    for (std::int64_t* stride : strides) {
      if (*stride % columns != 0) return "an operand's rows lie apart";
      *stride /= columns;
    }
    operand.follows_columns = true;
  }
  return "";
}

void rename_counts(const std::string& function, PointwiseText& text) {
  for (PointwiseCount& count : text.counts) count.name = function + "_" + count.name;
}

bool is_float_storage(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f32;
}

std::string digit_text(const CudaOperand::Digit& digit, const char* number) {
  return fmt::format(" + {}ll * ((unsigned){} / {}u{})", digit.stride, number, digit.divisor,
                     digit.extent == 0 ? "" : fmt::format(" % {}u", digit.extent));
}

std::string load_text(const CudaOperand& operand, int vector, const char* streams) {
  const bool whole =
      operand.column == 1 && operand.batch % vector == 0 && operand.of.offset % vector == 0 &&
      (operand.follows_columns ||
       (operand.row % vector == 0 &&
        std::ranges::all_of(operand.digits, [&](const auto& digit) { return digit.stride % vector == 0; })));
  const char* columns = operand.follows_columns ? " * e.columns" : "";
  std::string at = operand.of.first("a." + operand.of.name);
  if (operand.follows_rows)
    at += fmt::format(" + {}ll * (batch * e.rows + row)", operand.row);
  else if (operand.batch != 0)
    at += fmt::format(" + {}ll * batch", operand.batch);
  if (operand.row != 0 && !operand.follows_rows) at += fmt::format(" + {}ll * row{}", operand.row, columns);
  for (const CudaOperand::Digit& digit : operand.digits) at += digit_text(digit, "row") + columns;
  if (operand.column == 1) at += " + column";
  const std::string name = "v_" + operand.of.name;
  if (!operand.column_digits.empty()) {
    const bool same = std::ranges::all_of(operand.column_digits,
                                          [&](const auto& digit) { return digit.divisor % vector == 0; });
    for (const CudaOperand::Digit& digit : operand.column_digits)
      at += digit_text(digit, same ? "column" : "(column + j)");
    if (same) return fmt::format("  float {0}[VECTOR];\n  load_same({1}, {0});\n", name, at);
    return fmt::format(
        "  float {0}[VECTOR];\n  for (int j = 0; j < VECTOR; j++) {0}[j] = to_float(*({1}));\n", name, at);
  }
  if (operand.column == 0) return fmt::format("  float {}[VECTOR];\n  load_same({}, {});\n", name, at, name);
  if (whole)
    return fmt::format("  float {}[VECTOR];\n  load_vector<{}>({}, {});\n", name,
                       operand.passes_by() ? streams : "false", at, name);
  return fmt::format(
      "  float {0}[VECTOR];\n  for (int j = 0; j < VECTOR; j++) {0}[j] = to_float(({1})[j]);\n", name, at);
}

std::string count_arguments(const PointwiseText& text) {
  std::string arguments;
  for (const PointwiseCount& count : text.counts) {
    const char* const of = count.form == CountForm::inverse ? "1.f / "
                           : count.form == CountForm::half  ? "0.5f * "
                                                            : "";
    arguments += fmt::format(", {}({}(float)e.{})", rounding_of(count.dtype), of, count.name);
  }
  return arguments;
}

std::string call_text(const PointwiseText& text, const std::string& function, const std::string& root) {
  std::string arguments = root;
  for (const PointwiseOperand& of : text.operands) arguments += fmt::format(", v_{}[j]", of.name);
  return fmt::format("{}({}{})", function, arguments, count_arguments(text));
}

std::string arguments_text(const std::vector<const CudaOperand*>& read,
                           const std::vector<CudaExtent>& extents, const std::vector<DType>& further) {
  std::string text = "struct Arguments {\n  Out* out;\n";
  for (std::size_t i = 0; i < further.size(); ++i)
    text += fmt::format("  {}* out{};\n", dtype_name(further[i]), i + 1);
  for (const CudaOperand* operand : read)
    text += fmt::format("  const {}* {};\n", dtype_name(operand->of.dtype), operand->of.name);
  text += extent_members(extents) + "};\n";
  return extents.empty() ? text : text + extents_text(extents);
}

void pass_arguments(LaunchSpec& launch, int out, const std::vector<const CudaOperand*>& read,
                    const std::vector<CudaExtent>& extents, std::size_t further) {
  for (std::size_t i = 0; i <= further; ++i) launch.pointers.push_back(out + static_cast<int>(i));
  for (const CudaOperand* operand : read) launch.pointers.push_back(operand->of.input);
  launch.numbers = extent_numbers(extents);
}

std::vector<const CudaOperand*> operands_in(std::initializer_list<const std::vector<CudaOperand>*> lists) {
  std::vector<const CudaOperand*> all;
  for (const std::vector<CudaOperand>* list : lists)
    for (const CudaOperand& operand : *list) all.push_back(&operand);
  return all;
}

}  // namespace sylvite
