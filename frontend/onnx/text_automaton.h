#pragma once
// Patterns that are sets of letters, groups, alternatives and repeats, matched by one look-up a letter.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sylvite {

/// One of a pattern's letters or sets of them.
struct LetterSet {
  std::wstring text;  ///< as the pattern has it: "a", "\\d", "[^a-z]", "."
  std::wregex regex;  ///< says which letters it has, unless it is one
};

/// A program for patterns: a letter, or two ways, the better first.
struct PatternStep {
  int set = -1;  ///< of a letter; -1 for two ways
  int next = 0, other = 0;
};

struct PatternProgram {
  std::vector<LetterSet> sets;
  std::vector<PatternStep> steps;
  int start = 0;
  static constexpr int match = -1;  ///< the step that ends a match
};

/// The program of a pattern that std::wregex takes. Nothing where it has what depends on more than the letters of the match
/// (^, $, \b, references, looking ahead), repeats what may be empty, or is long.
[[nodiscard]] std::optional<PatternProgram> program_of(const std::wstring& pattern);

/// Where a program is after some letters: steps in order, the better first. Found when they are first needed, and
/// forgotten when they are many.
/// Thread safety: const use is safe.
class TextAutomaton {
 public:
  explicit TextAutomaton(PatternProgram program);
  [[nodiscard]] bool is_whole(std::wstring_view text) const;
  /// Where the first match at or behind `from` begins, and its length: as of std::regex_search.
  [[nodiscard]] std::optional<std::pair<std::size_t, std::size_t>> find(std::wstring_view text,
                                                                        std::size_t from) const;

 private:
  struct State {
    std::vector<int> steps;  ///< that wait for a letter
    bool has_match = false;  ///< ends one here
    std::vector<int> next;   ///< per class of letters; -1 while unknown
  };
  /// The states of a search leave out what is worse than a match; those for whole texts do not.
  struct Machine {
    bool is_search = false;
    int start = -1;  ///< while unknown
    std::size_t stored = 0;
    std::vector<State> states = {};
    std::map<std::vector<int>, int> numbers = {};
  };

  [[nodiscard]] int class_of(wchar_t letter) const;
  [[nodiscard]] int new_class(wchar_t letter) const;
  [[nodiscard]] int start_of(Machine& machine) const;
  [[nodiscard]] int step(Machine& machine, int state, int letter_class) const;
  [[nodiscard]] int number_of(Machine& machine, State state) const;
  /// Adds what can be reached without a letter. Is the rest worse than a match?
  [[nodiscard]] bool add(State& state, int step, bool is_search) const;

  PatternProgram program_;
  mutable std::mutex mutex_;  ///< of all below
  mutable Machine whole_{false}, search_{true};
  mutable std::vector<std::vector<bool>> classes_;  ///< per class, which sets have its letters
  mutable std::vector<int> low_letters_;            ///< their classes; -1 while unknown
  mutable std::unordered_map<wchar_t, int> high_letters_;
  mutable std::vector<std::int64_t> marks_;  ///< per step, when it was last added
  mutable std::int64_t time_ = 0;
};

}  // namespace sylvite
