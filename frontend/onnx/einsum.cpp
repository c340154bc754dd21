#include "frontend/onnx/einsum.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace sylvite {
namespace {

/// A value and one label per axis. Axes that an ellipsis covers get the labels '0', '1', ... from the right.
struct Term {
  Sym value;
  std::string labels;
};

bool holds(const std::string& labels, char label) {
  return labels.find(label) != std::string::npos;
}

std::vector<std::string> split_terms(const std::string& text) {
  std::vector<std::string> terms;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    terms.push_back(text.substr(begin, end - begin));
    if (end == text.size()) return terms;
    begin = end + 1;
  }
}

/// Writes the ellipsis out as `count` digits, the last axis '0'.
std::string expand_ellipsis(const std::string& term, int count) {
  const std::size_t at = term.find("...");
  const std::string letters = at == std::string::npos ? term : term.substr(0, at) + term.substr(at + 3);
  for (const char label : letters)
    if (std::isalpha(static_cast<unsigned char>(label)) == 0)
      throw ModelError("'{}' in an equation is no label", label);
  if (at == std::string::npos) return term;
  if (count < 0 || count > 10) throw ModelError("term '{}' does not fit its operand", term);
  std::string digits;
  for (int i = count; i-- > 0;) digits += static_cast<char>('0' + i);
  return term.substr(0, at) + digits + term.substr(at + 3);
}

Sym permuted(const Term& term, const std::string& order) {
  std::vector<std::int64_t> perm;
  for (const char label : order) perm.push_back(static_cast<std::int64_t>(term.labels.find(label)));
  return transpose(term.value, perm);
}

/// Keeps the diagonal of two axes with one label: what is off it is multiplied by zero and summed away.
Term take_diagonals(Term term) {
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    const std::size_t twin = term.labels.find(term.labels[i], i + 1);
    if (twin == std::string::npos) continue;
    const std::int64_t extent = term.value.dim(static_cast<int>(i));
    if (term.value.dim(static_cast<int>(twin)) != extent)
      throw ModelError("the axes '{}' have different extents", term.labels[i]);
    Dims dims(term.labels.size(), 1);
    dims[i] = dims[twin] = extent;
    GraphBuilder& b = term.value.builder();
    const Sym is_equal = apply(Op::equal, b.iota(DType::i64, dims, static_cast<int>(i)),
                               b.iota(DType::i64, dims, static_cast<int>(twin)));
    const Sym kept = where(is_equal, term.value, 0.0);
    term.value = reduce(Op::reduce_sum, kept, {static_cast<std::int64_t>(twin)}, false);
    term.labels.erase(twin, 1);
    --i;
  }
  return term;
}

/// Sums axes away that nobody else needs.
Term sum_unneeded(Term term, const std::string& needed) {
  std::vector<std::int64_t> axes;
  std::string left;
  for (std::size_t i = 0; i < term.labels.size(); ++i)
    if (holds(needed, term.labels[i]))
      left += term.labels[i];
    else
      axes.push_back(static_cast<std::int64_t>(i));
  return {reduce(Op::reduce_sum, term.value, axes, false), left};
}

using Extents = std::map<char, std::int64_t>;

std::int64_t extent_of(const std::string& labels, const Extents& extents) {
  std::int64_t product = 1;
  for (const char label : labels) product *= extents.at(label);
  return product;
}

void note_extents(const Term& term, Extents& extents) {
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    const std::int64_t extent = term.value.dim(static_cast<int>(i));
    const auto [known, is_new] = extents.emplace(term.labels[i], extent);
    if (is_new || known->second == extent || extent == 1) continue;
    if (known->second != 1)
      throw ModelError("label '{}' has extents {} and {}", term.labels[i], known->second, extent);
    known->second = extent;
  }
}

/// Brings axes of extent 1 that broadcast to their full extent.
Term widen(Term term, const Extents& extents) {
  Dims dims;
  for (const char label : term.labels) dims.push_back(extents.at(label));
  term.value = broadcast_to(term.value, dims);
  return term;
}

/// One batched matrix product: labels in both and needed later are batch axes, in both and not needed are
/// summed.
Term contract(const Term& a, const Term& b, const std::string& needed, const Extents& extents) {
  std::string batch;
  std::string summed;
  std::string left;
  std::string right;
  for (const char label : a.labels)
    if (!holds(b.labels, label))
      left += label;
    else if (holds(needed, label))
      batch += label;
    else
      summed += label;
  for (const char label : b.labels)
    if (!holds(a.labels, label)) right += label;
  const Dims a_dims{extent_of(batch, extents), extent_of(left, extents), extent_of(summed, extents)};
  const Dims b_dims{extent_of(batch, extents), extent_of(summed, extents), extent_of(right, extents)};
  const Sym product = matmul(reshape(permuted(a, batch + left + summed), a_dims),
                             reshape(permuted(b, batch + summed + right), b_dims));
  const std::string labels = batch + left + right;
  Dims dims;
  for (const char label : labels) dims.push_back(extents.at(label));
  return {reshape(product, dims), labels};
}

/// numpy's implicit result: the ellipsis, then labels that occur once, in alphabetical order.
std::string implicit_result(const std::string& given) {
  std::map<char, int> uses;
  for (const char label : given) ++uses[label];
  std::string digits;
  std::string letters;
  for (const auto& [label, count] : uses) {
    if (std::isdigit(static_cast<unsigned char>(label)) != 0) digits.insert(digits.begin(), label);
    if (std::isalpha(static_cast<unsigned char>(label)) != 0 && count == 1) letters += label;
  }
  return digits + letters;
}

}  // namespace

Sym einsum(const std::string& equation, const std::vector<Sym>& operands) {
  std::string text;
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(text), [](char c) { return c != ' '; });
  const std::size_t arrow = text.find("->");
  const std::vector<std::string> given = split_terms(text.substr(0, arrow));
  if (given.size() != operands.size() || operands.empty())
    throw ModelError("the equation has {} terms, {} operands are given", given.size(), operands.size());
  std::vector<Term> terms;
  std::string all_labels;
  int ellipsis = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const int covered = operands[i].rank() - static_cast<int>(given[i].size()) + 3;
    const std::string labels = expand_ellipsis(given[i], covered);
    if (labels.size() != static_cast<std::size_t>(operands[i].rank()))
      throw ModelError("term '{}' does not fit its operand", given[i]);
    if (given[i].find("...") != std::string::npos) ellipsis = std::max(ellipsis, covered);
    all_labels += labels;
    terms.push_back(take_diagonals({operands[i], labels}));
  }
  const std::string result = arrow == std::string::npos ? implicit_result(all_labels)
                                                        : expand_ellipsis(text.substr(arrow + 2), ellipsis);
  Extents extents;
  for (const Term& term : terms) note_extents(term, extents);
  for (const char label : result)
    if (!extents.contains(label)) throw ModelError("label '{}' of the result is in no operand", label);
  const auto needed_after = [&](std::size_t from) {
    std::string needed = result;
    for (std::size_t i = from; i < terms.size(); ++i) needed += terms[i].labels;
    return needed;
  };
  Term total = sum_unneeded(widen(terms[0], extents), needed_after(1));
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const Term next = sum_unneeded(widen(terms[i], extents), needed_after(i + 1) + total.labels);
    total = contract(total, next, needed_after(i + 1), extents);
  }
  return permuted(total, result);
}

}  // namespace sylvite
