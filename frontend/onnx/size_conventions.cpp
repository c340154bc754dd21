#include "frontend/onnx/size_conventions.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>
#include <vector>

namespace sylvite {
namespace {

constexpr SizeConvention batch = {1 << 16, 1};
constexpr SizeConvention sequence = {1 << 17, 128};
constexpr SizeConvention image = {1 << 14, 224};

struct Row {
  std::string_view word;
  SizeConvention sizes;
};

/// The first row whose word is in the name decides. A single letter of a batch does so at axis 0 alone: elsewhere `n` is a
/// number of anything.
constexpr Row conventions[] = {
    {"batch", batch},     {"batchsize", batch}, {"bs", batch},        {"n", batch},
    {"b", batch},         {"seq", sequence},    {"seqlen", sequence}, {"sequence", sequence},
    {"length", sequence}, {"len", sequence},    {"tokens", sequence}, {"time", sequence},
    {"frames", sequence}, {"height", image},    {"width", image},     {"h", image},
    {"w", image},
};

/// Lower-case words of a name such as batch_size or numTokens.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  bool was_lower = false;
  for (const char letter : name) {
    const auto c = static_cast<unsigned char>(letter);
    const bool begins = std::isupper(c) != 0 && was_lower;
    if (std::isalpha(c) == 0 || begins) words.emplace_back();
    if (std::isalpha(c) != 0) words.back() += static_cast<char>(std::tolower(c));
    was_lower = std::islower(c) != 0;
  }
  return words;
}

SizeConvention by_place(int axis, int rank) {
  if (axis == 0) return batch;
  return rank == 4 && axis >= 2 ? image : sequence;
}

/// 32 of `32*height`; 1 of other names.
std::int64_t multiple_of(std::string_view name) {
  constexpr std::int64_t most = 1 << 12;
  std::int64_t multiple = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), multiple);
  const std::string_view rest(end, static_cast<std::size_t>(name.data() + name.size() - end));
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  const bool is_product = rest.size() > 1 && rest[0] == '*' && std::ranges::all_of(rest.substr(1), is_plain);
  return error == std::errc() && is_product && multiple > 0 && multiple <= most ? multiple : 1;
}

SizeConvention by_words(std::string_view name, int axis, int rank) {
  const std::vector<std::string> words = words_of(name);
  for (const Row& row : conventions) {
    const bool counts = axis == 0 || (row.word != "n" && row.word != "b");
    if (counts && std::ranges::find(words, row.word) != words.end()) return row.sizes;
  }
  return by_place(axis, rank);
}

}  // namespace

SizeConvention size_convention(std::string_view name, int axis, int rank) {
  SizeConvention convention = by_words(name, axis, rank);
  convention.multiple = multiple_of(name);
  return convention;
}

}  // namespace sylvite
