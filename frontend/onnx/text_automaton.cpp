#include "frontend/onnx/text_automaton.h"

#include <algorithm>
#include <cwctype>

namespace sylvite {
namespace {

constexpr std::size_t most_steps = 20'000, most_stored = 200'000, most_letters = 10'000;
constexpr std::size_t low_letters = 128;

bool is_among(wchar_t letter, std::wstring_view letters) {
  return letters.find(letter) != std::wstring_view::npos;
}

/// A part of a pattern. What does not fit ends the reading.
struct Part {
  enum class Kind { set, sequence, choice, repeat } kind = Kind::sequence;
  int set = -1;
  std::vector<Part> parts = {};
  int least = 0, most = -1;  ///< of a repeat; -1 for any number
  bool is_lazy = false;

  [[nodiscard]] bool may_be_empty() const {
    const auto may = [](const Part& part) { return part.may_be_empty(); };
    if (kind == Kind::set) return false;
    if (kind == Kind::choice) return std::ranges::any_of(parts, may);
    return (kind == Kind::repeat && least == 0) || std::ranges::all_of(parts, may);
  }
};

struct NotServed {};

class PatternReader {
 public:
  explicit PatternReader(const std::wstring& pattern) : pattern_(pattern) {}

  Part whole() {
    Part part = choice();
    if (at_ != pattern_.size()) throw NotServed();
    return part;
  }
  std::vector<LetterSet> sets;

 private:
  [[nodiscard]] wchar_t peek(std::size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : L'\0';
  }
  bool takes(wchar_t letter) {
    if (at_ >= pattern_.size() || peek() != letter) return false;
    ++at_;
    return true;
  }

  Part choice() {
    Part part{Part::Kind::choice};
    do {
      part.parts.push_back(sequence());
    } while (takes(L'|'));
    return part;
  }

  Part sequence() {
    Part part{Part::Kind::sequence};
    while (at_ < pattern_.size() && peek() != L'|' && peek() != L')') part.parts.push_back(repeated(atom()));
    return part;
  }

  Part atom() {
    const std::size_t begin = at_;
    const wchar_t letter = pattern_[at_++];
    if (letter == L'(') {
      if (takes(L'?') && !takes(L':')) throw NotServed();
      Part part = choice();
      if (!takes(L')')) throw NotServed();
      return part;
    }
    if (letter == L'[') skip_set();
    if (letter == L'\\') {
      const wchar_t escaped = peek();
      const bool is_sign =
          escaped > L' ' && escaped < 127 && std::iswalnum(static_cast<wint_t>(escaped)) == 0;
      if (!is_sign && !is_among(escaped, L"dDwWsStnvfr")) throw NotServed();
      ++at_;
    }
    if (is_among(letter, L"^$*+?{}])") || letter == L'\0') throw NotServed();
    return set_of(pattern_.substr(begin, at_ - begin));
  }

  void skip_set() {
    takes(L'^');
    if (peek() == L']') throw NotServed();
    for (; at_ < pattern_.size() && peek() != L']'; ++at_) {
      if (peek() == L'\\') ++at_;
      if (peek() != L'[' || !is_among(peek(1), L":.=")) continue;
      if (peek(1) != L':') throw NotServed();
      at_ = std::min(pattern_.find(L":]", at_ + 2), pattern_.size()) + 1;
    }
    if (!takes(L']')) throw NotServed();
  }

  Part set_of(const std::wstring& text) {
    const auto found = std::ranges::find(sets, text, &LetterSet::text);
    const auto number = static_cast<int>(found - sets.begin());
    if (found == sets.end()) {
      sets.push_back({text, {}});
      if (text.size() > 1 || text == L".")
        sets.back().regex = std::wregex(text, std::regex_constants::ECMAScript);
    }
    return {Part::Kind::set, number};
  }

  int number() {
    int result = 0;
    if (peek() < L'0' || peek() > L'9') throw NotServed();
    for (; peek() >= L'0' && peek() <= L'9'; ++at_) {
      result = result * 10 + static_cast<int>(peek() - L'0');
      if (result > 10'000) throw NotServed();
    }
    return result;
  }

  Part repeated(Part part) {
    Part repeat{Part::Kind::repeat};
    if (takes(L'+')) {
      repeat.least = 1;
    } else if (takes(L'?')) {
      repeat.most = 1;
    } else if (takes(L'{')) {
      repeat.least = number();
      repeat.most = repeat.least;
      if (takes(L',')) repeat.most = peek() == L'}' ? -1 : number();
      if (!takes(L'}') || (repeat.most >= 0 && repeat.most < repeat.least)) throw NotServed();
    } else if (!takes(L'*')) {
      return part;
    }
    repeat.is_lazy = takes(L'?');
    if (part.may_be_empty() || is_among(peek(), L"*+?{")) throw NotServed();
    repeat.parts.push_back(std::move(part));
    return repeat;
  }

  const std::wstring& pattern_;
  std::size_t at_ = 0;
};

class ProgramWriter {
 public:
  /// The first step of `part`, behind which `next` comes.
  int write(const Part& part, int next) {
    switch (part.kind) {
      case Part::Kind::set:
        return add({part.set, next, 0});
      case Part::Kind::sequence:
        for (auto it = part.parts.rbegin(); it != part.parts.rend(); ++it) next = write(*it, next);
        return next;
      case Part::Kind::choice: {
        int start = write(part.parts.back(), next);
        for (auto it = part.parts.rbegin() + 1; it != part.parts.rend(); ++it)
          start = add({-1, write(*it, next), start});
        return start;
      }
      case Part::Kind::repeat:
        return write_repeat(part, next);
    }
    throw NotServed();
  }
  std::vector<PatternStep> steps;

 private:
  int add(PatternStep step) {
    if (steps.size() >= most_steps) throw NotServed();
    steps.push_back(step);
    return static_cast<int>(steps.size()) - 1;
  }
  static PatternStep ways(bool is_lazy, int body, int next) {
    return is_lazy ? PatternStep{-1, next, body} : PatternStep{-1, body, next};
  }

  int write_repeat(const Part& part, int next) {
    const Part& body = part.parts[0];
    int start = next;
    if (part.most < 0) {
      start = add({});
      const int first = write(body, start);
      steps[static_cast<std::size_t>(start)] = ways(part.is_lazy, first, next);
    }
    for (int i = part.least; i < part.most; ++i) start = add(ways(part.is_lazy, write(body, start), next));
    for (int i = 0; i < part.least; ++i) start = write(body, start);
    return start;
  }
};

}  // namespace

std::optional<PatternProgram> program_of(const std::wstring& pattern) {
  try {
    PatternReader reader(pattern);
    const Part part = reader.whole();
    ProgramWriter writer;
    const int start = writer.write(part, PatternProgram::match);
    return PatternProgram{std::move(reader.sets), std::move(writer.steps), start};
  } catch (const NotServed&) {
    return std::nullopt;
  } catch (const std::regex_error&) {
    return std::nullopt;
  }
}

TextAutomaton::TextAutomaton(PatternProgram program)
    : program_(std::move(program)), low_letters_(low_letters, -1), marks_(program_.steps.size(), 0) {}

int TextAutomaton::class_of(wchar_t letter) const {
  const auto at = static_cast<std::size_t>(letter);
  if (at < low_letters)
    return low_letters_[at] >= 0 ? low_letters_[at] : low_letters_[at] = new_class(letter);
  const auto found = high_letters_.find(letter);
  if (found != high_letters_.end()) return found->second;
  if (high_letters_.size() >= most_letters) high_letters_.clear();
  return high_letters_[letter] = new_class(letter);
}

int TextAutomaton::new_class(wchar_t letter) const {
  std::vector<bool> members;
  for (const LetterSet& set : program_.sets) {
    const bool is_letter = set.text.size() == 1 && set.text != L".";
    members.push_back(is_letter ? set.text[0] == letter
                                : std::regex_match(std::wstring(1, letter), set.regex));
  }
  const auto found = std::ranges::find(classes_, members);
  const auto number = static_cast<int>(found - classes_.begin());
  if (found == classes_.end()) classes_.push_back(members);
  return number;
}

bool TextAutomaton::add(State& state, int step, bool is_search) const {
  std::vector<int> left = {step};
  while (!left.empty()) {
    const int now = left.back();
    left.pop_back();
    if (now == PatternProgram::match) {
      state.has_match = true;
      if (is_search) return true;
      continue;
    }
    const auto at = static_cast<std::size_t>(now);
    if (std::exchange(marks_[at], time_) == time_) continue;
    const PatternStep& found = program_.steps[at];
    if (found.set >= 0) {
      state.steps.push_back(now);
    } else {
      left.push_back(found.other);
      left.push_back(found.next);
    }
  }
  return false;
}

int TextAutomaton::number_of(Machine& machine, State state) const {
  std::vector<int> key = state.steps;
  if (state.has_match) key.push_back(PatternProgram::match);
  const auto found = machine.numbers.find(key);
  if (found != machine.numbers.end()) return found->second;
  if (machine.stored > most_stored) machine = {machine.is_search};
  machine.stored += key.size() + 1;
  const auto number = static_cast<int>(machine.states.size());
  machine.numbers.emplace(std::move(key), number);
  machine.states.push_back(std::move(state));
  return number;
}

int TextAutomaton::start_of(Machine& machine) const {
  if (machine.start >= 0) return machine.start;
  State state;
  ++time_;
  (void)add(state, program_.start, machine.is_search);
  const int number = number_of(machine, std::move(state));
  return machine.start = number;
}

int TextAutomaton::step(Machine& machine, int state, int letter_class) const {
  const auto at = static_cast<std::size_t>(letter_class);
  State& from = machine.states[static_cast<std::size_t>(state)];
  if (at < from.next.size() && from.next[at] >= 0) return from.next[at];
  State to;
  ++time_;
  for (const int waiting : from.steps) {
    const PatternStep& now = program_.steps[static_cast<std::size_t>(waiting)];
    if (!classes_[at][static_cast<std::size_t>(now.set)]) continue;
    if (add(to, now.next, machine.is_search)) break;
  }
  const std::size_t before = machine.states.size();
  const int number = number_of(machine, std::move(to));
  if (machine.states.size() < before) return number;  // all others are forgotten
  std::vector<int>& next = machine.states[static_cast<std::size_t>(state)].next;
  if (next.size() <= at) next.resize(at + 1, -1);
  return next[at] = number;
}

bool TextAutomaton::is_whole(std::wstring_view text) const {
  const std::scoped_lock lock(mutex_);
  int state = start_of(whole_);
  for (const wchar_t letter : text) {
    if (whole_.states[static_cast<std::size_t>(state)].steps.empty()) return false;
    state = step(whole_, state, class_of(letter));
  }
  return whole_.states[static_cast<std::size_t>(state)].has_match;
}

std::optional<std::pair<std::size_t, std::size_t>> TextAutomaton::find(std::wstring_view text,
                                                                       std::size_t from) const {
  const std::scoped_lock lock(mutex_);
  for (std::size_t begin = from; begin <= text.size(); ++begin) {
    int state = start_of(search_);
    std::optional<std::size_t> end;
    for (std::size_t at = begin;; ++at) {
      const State& now = search_.states[static_cast<std::size_t>(state)];
      if (now.has_match) end = at;
      if (at == text.size() || now.steps.empty()) break;
      state = step(search_, state, class_of(text[at]));
    }
    if (end) return std::pair{begin, *end - begin};
  }
  return std::nullopt;
}

}  // namespace sylvite
