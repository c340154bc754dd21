#include "frontend/onnx/text_automaton.h"

#include <gtest/gtest.h>

#include <random>

#include "frontend/onnx/text_pattern.h"

namespace sylvite::text_automaton_test {
namespace {

/// By going back, which tries better ways first, as Perl does; slow for long texts.
std::wregex regex_of(const std::string& pattern) {
  return std::wregex(to_letters(pattern), std::regex_constants::ECMAScript);
}

/// Every text: is it matched as a whole, and where is the first match at or behind each place?
void expect_alike(const std::string& pattern, const std::vector<std::wstring>& texts) {
  std::optional<PatternProgram> program = program_of(to_letters(pattern));
  ASSERT_TRUE(program) << pattern;
  const TextAutomaton automaton(std::move(*program));
  const std::wregex regex = regex_of(pattern);
  for (const std::wstring& text : texts) {
    EXPECT_EQ(automaton.is_whole(text), std::regex_match(text, regex)) << pattern << " " << to_bytes(text);
    for (std::size_t from = 0; from <= text.size(); ++from) {
      std::wsmatch found;
      std::optional<std::pair<std::size_t, std::size_t>> expected;
      if (std::regex_search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), found, regex))
        expected = {from + static_cast<std::size_t>(found.position(0)),
                    static_cast<std::size_t>(found.length(0))};
      EXPECT_EQ(automaton.find(text, from), expected) << pattern << " " << to_bytes(text) << " " << from;
    }
  }
}

std::vector<std::wstring> random_texts(std::mt19937& random, const std::wstring& letters) {
  std::vector<std::wstring> texts = {L""};
  for (int i = 0; i < 40; ++i) {
    std::wstring& text = texts.emplace_back();
    for (auto left = random() % 12; left > 0; --left) text += letters[random() % letters.size()];
  }
  return texts;
}

TEST(TextAutomaton, FindsWhatRegularExpressionsFind) {
  std::mt19937 random(1);
  const std::vector<std::wstring> texts = random_texts(random, L"abAB09_ -.,\n\u00e9\u4e2d");
  for (const char* pattern : {"a",
                              "",
                              "a+b",
                              "[a-zA-Z0-9_]+",
                              "\\w\\w+",
                              "\\d{2,3}",
                              "a|ab|b",
                              "ab|a",
                              "(ab|a)(b?)",
                              "a*?b",
                              "(?:a|b)+?\\d",
                              ".",
                              ".*",
                              ".+?b",
                              "[^a-z]+",
                              "[\\d\\-_]*",
                              "\\.",
                              "a{0}b",
                              "(a|)b",
                              "[[:alpha:]]{2}",
                              "\u00e9+|\u4e2d",
                              "a??b",
                              "(a{1,2}){2}",
                              "\\s+",
                              "b{2,}"})
    expect_alike(pattern, texts);
}

TEST(TextAutomaton, LeavesWhatLooksAroundToRegularExpressions) {
  for (const char* pattern : {"^a", "a$", "\\ba", "(a)\\1", "a(?=b)", "(a*)*", "(a|b?)+", "[[.a.]]", "\\x41"})
    EXPECT_FALSE(program_of(to_letters(pattern))) << pattern;
}

/// Parts of patterns at random, one in another.
std::string random_pattern(std::mt19937& random, int depth) {
  const auto one_of = [&](const std::vector<std::string>& words) { return words[random() % words.size()]; };
  if (depth == 0) return one_of({"a", "b", ".", "[ab]", "[^a]", "\\d", "c"});
  std::string pattern;
  for (auto parts = 1 + random() % 3; parts > 0; --parts) {
    const std::string inner = random_pattern(random, depth - 1);
    switch (random() % 4) {
      case 0:
        pattern += inner;
        break;
      case 1:
        pattern += "(" + inner + "|" + random_pattern(random, depth - 1) + ")";
        break;
      default:
        pattern += "(?:" + inner + ")" + one_of({"*", "+", "?", "{2}", "{1,3}", "*?", "+?", "??", "{0,2}?"});
    }
  }
  return pattern;
}

TEST(TextAutomaton, FindsWhatRandomExpressionsFind) {
  std::mt19937 random(2);
  int served = 0;
  for (int i = 0; i < 400; ++i) {
    const std::string pattern = random_pattern(random, 1 + static_cast<int>(random() % 3));
    if (!program_of(to_letters(pattern))) continue;
    ++served;
    expect_alike(pattern, random_texts(random, L"abc1"));
  }
  EXPECT_GT(served, 150);
}

TEST(TextAutomaton, ForgetsStatesThatAreMany) {
  // After an `a` it must remember which of the last thirteen letters were one: 8,192 states of up to 14 steps.
  const std::string pattern = "[ab]*a[ab]{12}";
  const TextAutomaton automaton(std::move(*program_of(to_letters(pattern))));
  const std::wregex regex = regex_of(pattern);
  std::mt19937 random(3);
  for (int i = 0; i < 40; ++i) {
    std::wstring text;
    for (int k = 0; k < 1000; ++k) text += L"ab"[random() % 2];
    EXPECT_EQ(automaton.is_whole(text), text[text.size() - 13] == L'a');
  }
  EXPECT_EQ(automaton.is_whole(L"baaabbbbbbbbbbb"), std::regex_match(L"baaabbbbbbbbbbb", regex));
}

}  // namespace
}  // namespace sylvite::text_automaton_test
