#include "schedules/cuda/matmul_epilogue.h"

#include <fmt/format.h>

namespace sylvite {
namespace {

std::string arguments_text(const std::vector<EpilogueTerm>& terms, const EpilogueText& how) {
  std::string text = "struct Arguments {\n  Out* out;\n" + how.operands;
  for (const EpilogueTerm& term : terms)
    text += fmt::format("  const {}* {};\n", dtype_name(term.operand->dtype), term.operand->name);
  return text + extent_members(how.extents) + "};\n" + extents_text(how.extents);
}

/// Which of those that the operand has: C, of the number of the batch.
std::string batch_text(const PointwiseOperand& operand) {
  const std::string number = operand.each == 1 ? "batch" : fmt::format("(batch / {})", operand.each);
  return operand.period == 0 ? number : fmt::format("({} % {})", number, operand.period);
}

/// A stride of an operand: the number, or what it is in any run where the operand has rows as long as open ones of the result.
std::string stride_text(std::int64_t stride, const EpilogueTerm& term, const EpilogueText& how) {
  const CudaExtent& row = how.row();
  const bool has_rows = row.is_open && (how.swapped ? term.x : term.y) == 1;
  if (has_rows && stride == row.value) return fmt::format("(long long)extents.{}", row.name);
  if (has_rows && stride == how.extents[0].value * how.extents[1].value)
    return "(long long)extents.x * extents.y";
  return fmt::format("{}ll", stride);
}

std::string stage_vectors_text(const std::vector<EpilogueTerm>& terms, const EpilogueText& how) {
  std::string text =
      "DEVICE void stage_vectors(float* to, const Arguments& a, int batch, int x, int y, int thread) {\n"
      "  const Extents extents = extents_of(a);\n";
  for (const EpilogueTerm& term : terms) {
    if (!term.is_vector()) continue;
    const char* corner = term.x != 0 ? "x" : term.y != 0 ? "y" : "0";
    const char* limit = term.x != 0 ? "extents.x" : term.y != 0 ? "extents.y" : "1";
    text += fmt::format(
        "  for (int i = thread; i < {}; i += {})\n"
        "    to[{} + i] = {} + i < {} ? to_float({}[{} * {} + {} * ({} + i)]) : 0.f;\n",
        term.extent, how.threads, term.offset, corner, limit, term.operand->first("a." + term.operand->name),
        stride_text(term.batch, term, how), batch_text(*term.operand),
        stride_text(term.x != 0 ? term.x : term.y, term, how), corner);
  }
  return text + "}\n";
}

/// A pair of neighbours along y, as stored.
std::string load_text(const EpilogueTerm& term, const EpilogueText& how) {
  const std::string& name = term.operand->name;
  const std::string at = fmt::format("{} + ({} * {} + {} * x + {} * y)", term.operand->first("a." + name),
                                     stride_text(term.batch, term, how), batch_text(*term.operand),
                                     stride_text(term.x, term, how), stride_text(term.y, term, how));
  const bool y_is_even = how.y_is_even;
  const bool aligned =
      y_is_even && term.y == 1 && term.x % 2 == 0 && term.batch % 2 == 0 && term.operand->offset % 2 == 0;
  if (aligned) return fmt::format("  loaded.{} = load_pair({});\n", name, at);
  return fmt::format("  loaded.{0} = load_two({1}, {1} + (y + 1 < extents.y ? {2} : 0));\n", name, at,
                     stride_text(term.y, term, how));
}

std::string loads_text(const std::vector<EpilogueTerm>& terms, const EpilogueText& how) {
  std::string members, loads, bits, floats, beside;
  for (const EpilogueTerm& term : terms) {
    if (term.is_vector()) continue;
    members += fmt::format("  Pair<{}> {};\n", dtype_name(term.operand->dtype), term.operand->name);
    const bool is_wide = term.operand->dtype == DType::f32;
    if (term.box == EpilogueBox::none) {
      loads += load_text(term, how);
      continue;
    }
    (term.box == EpilogueBox::beside ? beside
     : is_wide                       ? floats
                                     : bits) =
        fmt::format("  loaded.{}.{} = r;\n", term.operand->name, is_wide ? "values" : "bits");
  }
  return fmt::format(
      "struct Loaded {{\n{}}};\n"
      "DEVICE Loaded load_operands(const Arguments& a, int batch, int x, int y) {{\n"
      "  const Extents extents = extents_of(a);\n  Loaded loaded = {{}};\n"
      "  if (x >= extents.x || y >= extents.y) return loaded;\n{}  return loaded;\n}}\n"
      "DEVICE void set_residual(Loaded& loaded, u32 r) {{\n{}}}\n"
      "DEVICE void set_residual(Loaded& loaded, float2 r) {{\n{}}}\n"
      "DEVICE void set_beside(Loaded& loaded, u32 r) {{\n{}}}\n",
      members, loads, bits, floats, beside);
}

std::string finish_text(const std::vector<EpilogueTerm>& terms) {
  std::string first = "v.x", second = "v.y", lines;
  for (const EpilogueTerm& term : terms) {
    const std::string& name = term.operand->name;
    if (!term.is_vector()) {
      lines += fmt::format("  const float2 {0} = to_floats(loaded.{0});\n", name);
    } else if (term.y != 0) {
      lines += fmt::format("  const float2 {} = *(const float2*)(vectors + {} + y);\n", name, term.offset);
    } else {
      lines += fmt::format(
          "  const float {0}_ = vectors[{1}{2}];\n  const float2 {0} = make_float2({0}_, {0}_);\n", name,
          term.offset, term.x != 0 ? " + x" : "");
    }
    first += fmt::format(", {}.x", name);
    second += fmt::format(", {}.y", name);
  }
  return fmt::format(
      "DEVICE float2 finish(float2 v, const float* vectors, const Loaded& loaded, int x, int y) {{\n{}"
      "  return make_float2(epilogue({}), epilogue({}));\n}}\n",
      lines, first, second);
}

}  // namespace

std::vector<EpilogueTerm> epilogue_terms(const CudaMatmulProblem& problem, const EpilogueTile& tile) {
  std::vector<EpilogueTerm> terms;
  int offset = 0;
  for (const PointwiseOperand& operand : problem.epilogue.operands) {
    const Dims& s = operand.strides;
    EpilogueTerm term{&operand, s[0], tile.swapped ? s[2] : s[1], tile.swapped ? s[1] : s[2]};
    if (term.is_vector()) {
      term.offset = offset;
      term.extent = term.x != 0 ? tile.rows : term.y != 0 ? tile.columns : 1;
      offset += (term.extent + 3) / 4 * 4;
    }
    terms.push_back(term);
  }
  return terms;
}

std::vector<CudaExtent> product_extents(const CudaMatmulProblem& problem, bool swapped) {
  const CudaExtent m{swapped ? "y" : "x", problem.m, problem.is_open};
  const CudaExtent n{swapped ? "x" : "y", problem.n, problem.n_is_open};
  const CudaMatmulProblem::Windows w = problem.windows.value_or(CudaMatmulProblem::Windows{});
  return {swapped ? n : m,
          swapped ? m : n,
          {"batch", problem.batch, problem.is_open && problem.batch != 1},
          {"depth", problem.part != 0 ? problem.part : problem.k, problem.k_is_open},
          {"out_lines", w.out_lines, problem.has_open_images},
          {"out_columns", w.out_columns, problem.has_open_images}};
}

std::string product_entry(const std::string& name, const CudaMatmulProblem& problem) {
  return entry_name(fmt::format("{}_{}", name, dtype_name(problem.element)),
                    problem.is_open || problem.k_is_open, {problem.batch, problem.m, problem.n, problem.k});
}

int vector_floats_of(const std::vector<EpilogueTerm>& terms) {
  int floats = 0;
  for (const EpilogueTerm& term : terms)
    if (term.is_vector()) floats = term.offset + (term.extent + 3) / 4 * 4;
  return floats;
}

std::string epilogue_text(const CudaMatmulProblem& problem, const std::vector<EpilogueTerm>& terms,
                          const EpilogueText& how) {
  return arguments_text(terms, how) + problem.epilogue.function + stage_vectors_text(terms, how) +
         loads_text(terms, how) + finish_text(terms);
}

}  // namespace sylvite
