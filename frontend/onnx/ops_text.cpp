// Operators on strings: computed where their inputs are known, which is in host steps for strings from
// outside.

#include <algorithm>
#include <bit>
#include <clocale>
#include <cwctype>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/text_pattern.h"
#include "frontend/onnx/text_tokens.h"
#include "frontend/ops/evaluate.h"
#include "frontend/ops/infer.h"

namespace sylvite {
namespace {

/// For each element of `to`, the element of a tensor of dims `from` that numpy's rule puts there.
std::vector<std::int64_t> broadcast_places(const Dims& from, const Dims& to) {
  Tensor places(DType::i64, from);
  for (std::int64_t i = 0; i < places.size(); ++i) places.set_int64(i, i);
  return expand(places, to).to_int64s();
}

struct StringPair {
  StringTensor left, right;  ///< broadcast to one shape
};

/// Reserves the memory of that many strings with so many characters together.
void reserve_strings(ImportContext& c, const Dims& dims, std::size_t characters) {
  constexpr std::int64_t words = static_cast<std::int64_t>(sizeof(std::string) / sizeof(double));
  c.builder().reserve_table({words, checked_product(dims, "strings")});
  c.builder().reserve_table({static_cast<std::int64_t>(characters / sizeof(double))});
}

std::size_t characters_of(const StringTensor& x) {
  std::size_t characters = 0;
  for (const std::string& text : x.values) characters += text.size();
  return characters;
}

StringTensor broadcast(ImportContext& c, const StringTensor& x, const Dims& dims) {
  const std::int64_t count = checked_product(dims, "strings");
  const std::int64_t repeats = x.values.empty() ? 0 : count / static_cast<std::int64_t>(x.values.size());
  reserve_strings(c, dims, characters_of(x) * static_cast<std::size_t>(repeats));
  StringTensor result{dims, {}};
  for (const std::int64_t place : broadcast_places(x.dims, dims))
    result.values.push_back(x.values[static_cast<std::size_t>(place)]);
  return result;
}

StringPair broadcast_inputs(ImportContext& c) {
  const StringTensor& a = c.strings(0);
  const StringTensor& b = c.strings(1);
  Symbols symbols;  // none: strings have known shapes
  const Dims dims = broadcast_shapes(a.dims, b.dims, symbols).known();
  return {broadcast(c, a, dims), broadcast(c, b, dims)};
}

void string_concat(ImportContext& c) {
  StringPair pair = broadcast_inputs(c);
  for (std::size_t i = 0; i < pair.left.values.size(); ++i) pair.left.values[i] += pair.right.values[i];
  c.output_strings(0, std::move(pair.left));
}

void equal(ImportContext& c) {
  if (!c.is_strings(0)) {
    const auto [x, y] = broadcast_operands(c);
    return c.output(apply(Op::equal, x, y));
  }
  const StringPair pair = broadcast_inputs(c);
  Tensor result(DType::boolean, pair.left.dims);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    result.set_int64(i, pair.left.values[at] == pair.right.values[at] ? 1 : 0);
  }
  c.output(c.builder().constant(result));
}

/// As Python's str.split: without a delimiter at runs of white space, dropping empty ends.
std::vector<std::string> split(const std::string& text, const std::string& delimiter, std::int64_t most) {
  std::vector<std::string> parts;
  const std::string spaces = " \t\n\r\f\v";
  std::size_t at = delimiter.empty() ? text.find_first_not_of(spaces) : 0;
  while (at != std::string::npos) {
    const bool is_last = static_cast<std::int64_t>(parts.size()) == most;
    const std::size_t end = is_last             ? std::string::npos
                            : delimiter.empty() ? text.find_first_of(spaces, at)
                                                : text.find(delimiter, at);
    parts.push_back(text.substr(at, end == std::string::npos ? end : end - at));
    if (end == std::string::npos) break;
    at = delimiter.empty() ? text.find_first_not_of(spaces, end) : end + delimiter.size();
  }
  return parts;
}

/// Short rows are filled with empty strings.
void string_split(ImportContext& c) {
  const StringTensor& x = c.strings(0);
  const std::string delimiter = c.string("delimiter", "");
  const std::int64_t most = c.integer("maxsplit", std::numeric_limits<std::int64_t>::max());
  std::vector<std::vector<std::string>> rows;
  std::vector<std::int64_t> counts;
  for (const std::string& text : x.values) {
    rows.push_back(split(text, delimiter, most));
    counts.push_back(static_cast<std::int64_t>(rows.back().size()));
  }
  const std::int64_t width = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  StringTensor parts{x.dims, {}};
  parts.dims.push_back(width);
  reserve_strings(c, parts.dims, characters_of(x));
  for (std::vector<std::string>& row : rows) {
    row.resize(static_cast<std::size_t>(width));
    parts.values.insert(parts.values.end(), row.begin(), row.end());
  }
  c.output_strings(0, std::move(parts));
  c.output(1, c.builder().constant(Tensor::of(DType::i64, x.dims, counts)));
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char letter) { return static_cast<unsigned char>(letter) < 0x80; });
}

char change_ascii(char letter, bool is_lower) {
  const char first = is_lower ? 'A' : 'a';
  return letter >= first && letter < first + 26 ? static_cast<char>(letter ^ 0x20) : letter;
}

/// Letters of all scripts, each to one letter, by no language's own rules.
std::string change_case(std::string text, const std::string& action) {
  if (action == "NONE") return text;
  const bool is_lower = action == "LOWER";
  if (is_ascii(text)) {
    for (char& letter : text) letter = change_ascii(letter, is_lower);
    return text;
  }
  static const locale_t letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  std::wstring changed = to_letters(text);
  for (wchar_t& letter : changed) {
    const auto given = std::bit_cast<wint_t>(letter);
    if (given < 0x80)
      letter = change_ascii(static_cast<char>(letter), is_lower);
    else if (letters != nullptr)  // a system without it has ASCII alone
      letter = static_cast<wchar_t>(is_lower ? towlower_l(given, letters) : towupper_l(given, letters));
  }
  return to_bytes(changed);
}

void string_normalizer(ImportContext& c) {
  const StringTensor& x = c.strings(0);
  const std::string action = c.string("case_change_action", "NONE");
  const bool is_exact = c.integer("is_case_sensitive", 0) != 0;
  const auto key = [&](const std::string& text) { return is_exact ? text : change_case(text, "LOWER"); };
  const auto stopwords = c.kept<std::set<std::string>>([&] {
    std::set<std::string> words;
    for (const std::string& word : c.strings("stopwords")) words.insert(key(word));
    return words;
  });
  if (x.dims.empty() || x.dims.size() > 2 || (x.dims.size() == 2 && x.dims[0] != 1))
    throw ModelError("the input has {} dims, expected [C] or [1,C]", x.dims.size());
  StringTensor result{x.dims, {}};
  for (const std::string& text : x.values)
    if (stopwords->empty() || !stopwords->contains(key(text)))
      result.values.push_back(change_case(text, action));
  if (result.values.empty()) result.values.emplace_back();
  result.dims.back() = static_cast<std::int64_t>(result.values.size());
  c.output_strings(0, std::move(result));
}

void regex_full_match(ImportContext& c) {
  const StringTensor& x = c.strings(0);
  const auto pattern = c.kept<TextPattern>([&] { return TextPattern(c.string("pattern", "")); });
  pattern->check(static_cast<std::int64_t>(characters_of(x) + x.values.size()));
  Tensor result(DType::boolean, x.dims);
  for (std::int64_t i = 0; i < result.size(); ++i)
    result.set_int64(i, pattern->is_whole(to_letters(x.values[static_cast<std::size_t>(i)])) ? 1 : 0);
  c.output(c.builder().constant(result));
}

/// How a Tokenizer of com.microsoft cuts texts: into letters, by separators in turn, or into what matches.
class TokenRule {
 public:
  explicit TokenRule(ImportContext& c) {
    const std::vector<std::string> separators = c.strings("separators");
    const std::string expression = c.string("tokenexp", "");
    const std::int64_t least = c.integer("mincharnum", 1);
    if (least < 1) throw ModelError("mincharnum is {}, expected at least 1", least);
    if (separators.empty() == expression.empty()) throw ModelError("expected one of separators and tokenexp");
    least_ = static_cast<std::size_t>(least);
    is_of_letters_ = separators.size() == 1 && separators[0].empty();
    if (is_of_letters_) return;
    for (const std::string& separator : separators) separators_.emplace_back(separator);
    if (!expression.empty()) tokens_.emplace(expression);
  }

  /// See TextPattern.
  void check(std::int64_t letters) const {
    for (const TextPattern& separator : separators_) separator.check(letters);
    if (tokens_) tokens_->check(letters);
  }

  [[nodiscard]] std::vector<std::string> cut(const std::string& text) const {
    const std::wstring letters = to_letters(text);
    std::vector<std::string> tokens;
    if (tokens_) {
      const bool is_plain = letters.size() == text.size();  // a byte each
      for (const auto& [start, length] : matches_in(letters, *tokens_, least_))
        tokens.push_back(is_plain ? text.substr(start, length)
                                  : to_bytes(std::wstring_view(letters).substr(start, length)));
      return tokens;
    }
    for (const std::wstring& token : is_of_letters_ ? letters_of(letters) : cut_apart(letters))
      tokens.push_back(to_bytes(token));
    return tokens;
  }

 private:
  [[nodiscard]] std::vector<std::wstring> cut_apart(const std::wstring& text) const {
    std::vector<std::wstring> parts{text};
    for (const TextPattern& separator : separators_) {
      std::vector<std::wstring> smaller;
      for (const std::wstring& part : parts)
        for (std::wstring& piece : parts_between(part, separator, least_))
          smaller.push_back(std::move(piece));
      parts = std::move(smaller);
    }
    return parts;
  }

  std::size_t least_ = 1;
  bool is_of_letters_ = false;
  std::vector<TextPattern> separators_;
  std::optional<TextPattern> tokens_;
};

/// A new last axis of tokens; short rows are padded. With marks each row begins with byte 2 and ends with byte 3.
void tokenizer(ImportContext& c) {
  const StringTensor& x = c.strings(0);
  if (x.dims.empty() || x.dims.size() > 2)
    throw ModelError("the input has {} dims, expected 1 or 2", x.dims.size());
  const bool has_marks = c.integer("mark", 0) != 0;
  const std::string padding = c.string("pad_value", "");
  const auto rule = c.kept<TokenRule>([&] { return TokenRule(c); });
  rule->check(static_cast<std::int64_t>(characters_of(x) + x.values.size()));
  std::vector<std::vector<std::string>> rows;
  rows.reserve(x.values.size());
  std::size_t width = 0;
  for (const std::string& text : x.values) {
    rows.push_back(rule->cut(text));
    width = std::max(width, rows.back().size());
  }
  if (width > 0 && has_marks) width += 2;
  StringTensor tokens{x.dims, {}};
  tokens.dims.push_back(static_cast<std::int64_t>(width));
  reserve_strings(c, tokens.dims, characters_of(x) + padding.size() * width * rows.size());
  tokens.values.reserve(width * rows.size());
  for (std::vector<std::string>& row : rows) {
    if (has_marks && width > 0) {
      row.insert(row.begin(), "\x02");
      row.emplace_back("\x03");
    }
    std::ranges::move(row, std::back_inserter(tokens.values));
    tokens.values.resize(tokens.values.size() + width - row.size(), padding);
  }
  c.output_strings(0, std::move(tokens));
}

/// Words of the pool have numbers; all other words have this one.
constexpr std::int64_t unknown_word = -1;

/// N-grams of words as a tree: a state for each beginning of one. State 0 is the beginning of all.
class NgramTree {
 public:
  static constexpr std::int64_t none = -1;

  explicit NgramTree(std::int64_t words) : words_(words), first_(static_cast<std::size_t>(words), none) {}

  /// The n-gram's id, which is new unless it was there.
  void add(std::span<const std::int64_t> gram) {
    std::int64_t state = 0;
    for (const std::int64_t word : gram) {
      std::int64_t& to = state == 0 ? first_[static_cast<std::size_t>(word)]
                                    : next_.try_emplace(key(state, word), none).first->second;
      if (to == none) {
        to = static_cast<std::int64_t>(ids_.size());
        ids_.push_back(none);
      }
      state = to;
    }
    std::int64_t& id = ids_[static_cast<std::size_t>(state)];
    if (id == none) id = count_++;
  }

  /// The state of a longer beginning; `none` where no n-gram begins so.
  [[nodiscard]] std::int64_t step(std::int64_t state, std::int64_t word) const {
    if (word == unknown_word) return none;
    if (state == 0) return first_[static_cast<std::size_t>(word)];
    const auto found = next_.find(key(state, word));
    return found == next_.end() ? none : found->second;
  }

  /// Of the n-gram that ends there, or `none`.
  [[nodiscard]] std::int64_t id(std::int64_t state) const { return ids_[static_cast<std::size_t>(state)]; }
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  [[nodiscard]] std::int64_t key(std::int64_t state, std::int64_t word) const {
    return state * words_ + word;
  }

  std::int64_t words_, count_ = 0;
  std::vector<std::int64_t> first_;                      ///< per word, from state 0
  std::unordered_map<std::int64_t, std::int64_t> next_;  ///< from the others
  std::vector<std::int64_t> ids_ = {none};               ///< per state
};

struct NgramPool {
  std::unordered_map<std::string, std::int64_t> texts;      ///< numbers of words
  std::unordered_map<std::int64_t, std::int64_t> integers;  ///< the same of words that are integers
  NgramTree grams = NgramTree(0);
  std::int64_t longest = 0;           ///< of the n-grams
  std::vector<std::int64_t> columns;  ///< per id
  std::vector<double> weights;        ///< per id
  std::int64_t last_column = -1;
};

template <typename Word>
void number_words(const std::vector<Word>& pool, std::unordered_map<Word, std::int64_t>& numbers,
                  std::vector<std::int64_t>& words) {
  for (const Word& word : pool)
    words.push_back(numbers.emplace(word, static_cast<std::int64_t>(numbers.size())).first->second);
}

NgramPool read_pool(ImportContext& c) {
  const std::vector<std::int64_t> starts = c.integers("ngram_counts");
  NgramPool pool;
  std::vector<std::int64_t> words;
  number_words(c.strings("pool_strings"), pool.texts, words);
  if (!words.empty() && c.has_attribute("pool_int64s"))
    throw ModelError("the pool has words that are texts and words that are integers");
  number_words(c.integers("pool_int64s"), pool.integers, words);
  pool.grams = NgramTree(static_cast<std::int64_t>(pool.texts.size() + pool.integers.size()));
  pool.columns = c.integers("ngram_indexes");
  pool.weights = c.reals("weights");
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto n = static_cast<std::int64_t>(i) + 1;
    const auto total = static_cast<std::int64_t>(words.size());
    const std::int64_t end = i + 1 < starts.size() ? starts[i + 1] : total;
    if (starts[i] < 0 || starts[i] > end || end > total) throw ModelError("ngram_counts do not fit the pool");
    for (std::int64_t at = starts[i]; at + n <= end; at += n) {
      pool.grams.add(std::span(words).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(n)));
      pool.longest = n;
    }
  }
  const auto count = static_cast<std::size_t>(pool.grams.count());
  if (pool.columns.size() != count || (!pool.weights.empty() && pool.weights.size() != count))
    throw ModelError("{} n-grams with {} columns and {} weights", count, pool.columns.size(),
                     pool.weights.size());
  for (const std::int64_t column : pool.columns) {
    if (column < 0 || column >= (1 << 26)) throw ModelError("ngram_indexes hold {}", column);
    pool.last_column = std::max(pool.last_column, column);
  }
  return pool;
}

template <typename Word>
std::vector<std::int64_t> numbers_of(const std::vector<Word>& given,
                                     const std::unordered_map<Word, std::int64_t>& numbers) {
  std::vector<std::int64_t> words;
  words.reserve(given.size());
  for (const Word& word : given) {
    const auto found = numbers.find(word);
    words.push_back(found == numbers.end() ? unknown_word : found->second);
  }
  return words;
}

/// Counts n-grams, and the words that it looks at for that.
class NgramCounter {
 public:
  NgramCounter(ImportContext& c, const NgramPool& pool)
      : builder_(c.builder()),
        grams_(pool.grams),
        shortest_(c.required_integer("min_gram_length")),
        longest_(std::min(c.required_integer("max_gram_length"), pool.longest)),
        most_skipped_(c.required_integer("max_skip_count")),
        counts_(static_cast<std::size_t>(pool.grams.count()), 0) {
    if (shortest_ < 1) throw ModelError("min_gram_length is {}, expected at least 1", shortest_);
  }

  /// The ids of n-grams that occur, in order, each with how often, its words up to max_skip apart.
  std::vector<std::pair<std::int64_t, double>> count(std::span<const std::int64_t> words) {
    const auto length = static_cast<std::int64_t>(words.size());
    const std::int64_t most = std::min(longest_, length);
    std::vector<std::int64_t> found;
    spend(length + 4);
    const std::int64_t gaps =
        std::clamp<std::int64_t>(most_skipped_, 0, std::max<std::int64_t>(length - 1, 0));
    for (std::int64_t step = 1; step <= gaps + 1; ++step) {
      spend(most * length);
      for (std::int64_t start = 0; start < length; ++start) count_from(words, start, step, most, found);
      if (most < 2) break;  // one word has no gaps
    }
    std::sort(found.begin(), found.end());
    std::vector<std::pair<std::int64_t, double>> result;
    for (const std::int64_t id : found)
      result.emplace_back(id, std::exchange(counts_[static_cast<std::size_t>(id)], 0));
    return result;
  }

 private:
  void count_from(std::span<const std::int64_t> words, std::int64_t start, std::int64_t step,
                  std::int64_t most, std::vector<std::int64_t>& found) {
    const auto length = static_cast<std::int64_t>(words.size());
    std::int64_t state = 0;
    for (std::int64_t n = 1; n <= most && start < length; ++n, start += step) {
      state = grams_.step(state, words[static_cast<std::size_t>(start)]);
      if (state == NgramTree::none) return;
      const std::int64_t id = grams_.id(state);
      if (id == NgramTree::none || n < shortest_ || (n == 1 && step > 1)) continue;
      double& count = counts_[static_cast<std::size_t>(id)];
      if (count == 0) found.push_back(id);
      count += 1;
    }
  }
  void spend(std::int64_t words) { builder_.charge(0, 64 * words); }

  GraphBuilder& builder_;
  const NgramTree& grams_;
  std::int64_t shortest_, longest_, most_skipped_;
  std::vector<double> counts_;  ///< per id; zeros between calls
};

void tf_idf_vectorizer(ImportContext& c) {
  if (!c.is_strings(0) && !c.input(0).is_constant()) c.wait_for_run("counts n-grams in a table");
  const std::shared_ptr<const NgramPool> pool = c.kept<NgramPool>([&] { return read_pool(c); });
  Dims dims = c.is_strings(0) ? c.strings(0).dims : c.input(0).dims();
  const std::vector<std::int64_t> words = c.is_strings(0)
                                              ? numbers_of(c.strings(0).values, pool->texts)
                                              : numbers_of(c.constant_integers(0), pool->integers);
  if (dims.empty() || dims.size() > 2)
    throw ModelError("the input has {} dims, expected 1 or 2", dims.size());
  const std::int64_t rows = dims.size() == 2 ? dims[0] : 1;
  const std::int64_t length = dims.back();
  const std::int64_t width = pool->last_column + 1;
  dims.back() = width;
  c.builder().reserve_table(dims);
  c.builder().reserve_table({2, pool->grams.count()});  // a count for each
  Tensor result(DType::f32, dims);
  const std::string mode = c.string("mode", "TF");
  NgramCounter counter(c, *pool);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto found = counter.count(
        std::span(words).subspan(static_cast<std::size_t>(row * length), static_cast<std::size_t>(length)));
    for (const auto& [id, count] : found) {
      const auto at = static_cast<std::size_t>(id);
      const double weight = pool->weights.empty() ? 1 : pool->weights[at];
      const double value = mode == "TF" ? count : (mode == "IDF" ? std::min(count, 1.0) : count) * weight;
      if (value != 0) result.set_double(row * width + pool->columns[at], value);
    }
  }
  c.output(c.builder().constant(result));
}

const OnnxOp text_rows[] = {
    {"Equal", 7, equal},
    {"RegexFullMatch", 20, regex_full_match},
    {"StringConcat", 20, string_concat},
    {"StringNormalizer", 10, string_normalizer},
    {"StringSplit", 20, string_split},
    {"Tokenizer", 1, tokenizer, "com.microsoft"},
    {"TfIdfVectorizer", 9, tf_idf_vectorizer},
};

}  // namespace

std::span<const OnnxOp> onnx_text_ops() {
  return text_rows;
}

}  // namespace sylvite
