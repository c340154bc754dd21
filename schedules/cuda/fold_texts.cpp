#include <algorithm>

#include "base/error.h"
#include "schedules/cuda/folds.h"

namespace sylvite {
namespace {

/// C for a fold's running result of type `type`: what it begins with, and with x at `place`, and with another such result.
struct FoldText {
  const char* type;
  const char* identity;
  const char* take;
  const char* join;
};
FoldText text_of(const CudaFolds::Fold& fold) {
  static constexpr FoldText of_place[2] = {{"u64", "0ull", "max(a, place_key(x, ~(u32)place))", "max(a, b)"},
                                           {"u64", "0ull", "max(a, place_key(x, (u32)place))", "max(a, b)"}};
  static constexpr FoldText of_least_place[2] = {
      {"u64", "0ull", "max(a, place_key(-x, ~(u32)place))", "max(a, b)"},
      {"u64", "0ull", "max(a, place_key(-x, (u32)place))", "max(a, b)"}};
  switch (fold.kind) {
    case FoldKind::sum:
      return {"float", "0.f", "a + x", "a + b"};
    case FoldKind::most:
      return {"float", "__int_as_float(0xff800000)", "nan_max(a, x)", "nan_max(a, b)"};
    case FoldKind::least:
      return {"float", "__int_as_float(0x7f800000)", "nan_min(a, x)", "nan_min(a, b)"};
    case FoldKind::product:
      return {"float", "1.f", "a * x", "a * b"};
    case FoldKind::count:
      return {"int", "0", "a + (int)x", "a + b"};
    case FoldKind::place_of_most:
      return of_place[fold.takes_last ? 1 : 0];
    case FoldKind::place_of_least:
      return of_least_place[fold.takes_last ? 1 : 0];
  }
  throw InternalError("no such fold");
}

/// FUNCTION(0, operands..., counts...).
std::string call_of(const PointwiseText& text, const std::string& function) {
  std::string arguments = "0.f";
  for (const PointwiseOperand& of : text.operands) arguments += ", " + of.name;
  return fmt::format("{}({}{})", function, arguments, count_arguments(text));
}

std::string number_text(const CudaFolds& problem, const CudaFolds::Number& number, std::size_t output,
                        const std::string& index) {
  const std::string to = fmt::format("a.out{}", output == 0 ? "" : fmt::format("{}", output));
  if (number.fold < 0) {
    std::string loads;
    for (const CudaOperand& operand : number.operands) loads += load_text(operand, 1, "false");
    const std::string made = call_of(number.text, fmt::format("number{}", output));
    const std::string store = number.out == DType::boolean
                                  ? fmt::format("{}[{}] = {} != 0.f", to, index, made)
                                  : fmt::format("store_one({} + {}, {})", to, index, made);
    return fmt::format("  {{\n  [[maybe_unused]] constexpr int VECTOR = 1, j = 0;\n{}  {};\n  }}\n", loads,
                       store);
  }
  const auto f = static_cast<std::size_t>(number.fold);
  const CudaFolds::Fold& fold = problem.folds[f];
  std::string value = fold_name(f);
  if (fold.kind == FoldKind::place_of_most || fold.kind == FoldKind::place_of_least)
    value = fmt::format("(long long){}(u32){}", fold.takes_last ? "" : "~", value);
  for (const DType type : number.types) value = fmt::format("({})({})", dtype_name(type), value);
  return fmt::format("  {}[{}] = {};\n", to, index, value);
}

std::size_t first_number(const CudaFolds& problem) {
  return problem.has_row ? 1 : 0;
}

}  // namespace

std::int64_t held_operands(const CudaFolds& problem) {
  return std::max<std::int64_t>(1, std::ranges::count_if(problem.operands, [](const CudaOperand& operand) {
                                  return operand.column == 1;
                                }));
}

int passes_of(const CudaFolds& problem) {
  int last = 0;
  for (const CudaFolds::Fold& fold : problem.folds) last = std::max(last, fold.pass);
  return last + 1;
}

std::string fold_name(std::size_t fold) {
  return fmt::format("fold_of<{}>(folds)", fold);
}

std::string folds_text(const CudaFolds& problem) {
  std::string members, ats, begins, takes, joins, passes;
  for (std::size_t f = 0; f < problem.folds.size(); ++f) {
    const FoldText text = text_of(problem.folds[f]);
    members += fmt::format("  {} of{};\n", text.type, f);
    const std::string is_it = fmt::format("  {}if constexpr (F == {})", f == 0 ? "" : "else ", f);
    ats += fmt::format("{} return (folds.of{});\n", is_it, f);
    begins += fmt::format("{} return {};\n", is_it, text.identity);
    takes += fmt::format("{} return {};\n", is_it, text.take);
    joins += fmt::format("{} return {};\n", is_it, text.join);
    passes += fmt::format("{} return {};\n", is_it, problem.folds[f].pass);
  }
  return fmt::format(
      "constexpr int FOLDS = {}, PASSES = {};\nstruct Folds {{\n{}}};\n"
      "template <int F>\nDEVICE decltype(auto) fold_of(Folds& folds) {{\n{}}}\n"
      "template <int F>\nDEVICE decltype(auto) fold_of(const Folds& folds) {{\n{}}}\n"
      "template <int F>\nDEVICE auto identity() {{\n{}}}\n"
      "template <int F, class T>\nDEVICE T take(T a, float x, int place) {{\n{}}}\n"
      "template <int F, class T>\nDEVICE T join(T a, T b) {{\n{}}}\n"
      "template <int F>\n__device__ constexpr int pass_of() {{\n{}}}\n",
      problem.folds.size(), passes_of(problem), members, ats, ats, begins, takes, joins, passes);
}

std::string items_text(const CudaFolds& problem, int vector, const std::string& place) {
  std::string functions, members, loads, terms;
  for (const CudaOperand& operand : problem.operands) {
    members += fmt::format("  float {}[VECTOR];\n", operand.of.name);
    loads += load_text(operand, vector, "STREAM_LOADS");
    loads += fmt::format("  for (int j = 0; j < VECTOR; j++) item.{0}[j] = v_{0}[j];\n", operand.of.name);
  }
  for (std::size_t f = 0; f < problem.folds.size(); ++f) {
    functions += problem.folds[f].text.function;
    terms += fmt::format("  if constexpr (F == {}) return {};\n", f,
                         call_of(problem.folds[f].text, fmt::format("fold{}", f)));
  }
  return functions + fmt::format(
                         "struct Item {{\n{}}};\n"
                         "DEVICE void load_item(const Arguments& a, {}, Item& item) {{\n"
                         "  [[maybe_unused]] const Extents e = extents_of(a);\n{}}}\n"
                         "template <int F>\n"
                         "DEVICE float term(const Item& item, const Folds& folds, const Extents& e, int j) "
                         "{{\n{}  return 0.f;\n}}\n",
                         members, place, loads, terms);
}

std::string epilogue_call(const CudaFolds& problem) {
  return call_of(problem.epilogue, "epilogue");
}

std::string result_functions(const CudaFolds& problem) {
  std::string functions = problem.epilogue.function;
  for (const CudaFolds::Number& number : problem.numbers) functions += number.text.function;
  return functions;
}

std::string numbers_text(const CudaFolds& problem, const std::string& index) {
  std::string text;
  for (std::size_t i = 0; i < problem.numbers.size(); ++i)
    text += number_text(problem, problem.numbers[i], first_number(problem) + i, index);
  return text;
}

std::vector<const CudaOperand*> operands_of(const CudaFolds& problem) {
  std::vector<const CudaOperand*> operands = operands_in({&problem.operands});
  for (const CudaFolds::Number& number : problem.numbers)
    for (const CudaOperand& operand : number.operands) operands.push_back(&operand);
  return operands;
}

std::vector<DType> further_results(const CudaFolds& problem) {
  std::vector<DType> further;
  for (std::size_t i = 1 - first_number(problem); i < problem.numbers.size(); ++i)
    further.push_back(problem.numbers[i].out);
  return further;
}

std::vector<CudaExtent> counted_extents(const CudaFolds& problem) {
  std::vector<CudaExtent> extents;
  const auto add = [&](const PointwiseText& text) {
    for (const PointwiseCount& count : text.counts) extents.push_back({count.name, count.extent, true});
  };
  for (const CudaFolds::Fold& fold : problem.folds) add(fold.text);
  add(problem.epilogue);
  for (const CudaFolds::Number& number : problem.numbers) add(number.text);
  return extents;
}

}  // namespace sylvite
