#pragma once
// The options of one verb: declared, parsed, and explained by --help. Built on Boost.Program_options.

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sylvite/sylvite.h"

namespace sylvite {

/// Every value is text; the caller converts. Names are without the dashes; "output,o" has a short form, too. Options come in groups, as in
/// --help.
class Options {
 public:
  /// `synopsis` is what follows "usage: sylvite "; `about` one or two sentences.
  Options(std::string synopsis, std::string about);

  void add_flag(const std::string& name, const std::string& help);
  void add_value(const std::string& name, const std::string& placeholder, const std::string& help,
                 const std::string& fallback = "");
  void add_list(const std::string& name, const std::string& placeholder, const std::string& help);
  /// Words that are not options, e.g. "MODEL.onnx"; parse() refuses fewer than `least` or more than `most`.
  void expect_words(const std::string& what, std::size_t least, std::size_t most);
  /// What holds for every verb that takes a model: the model word, --config, --set, --json, --dump-config,
  /// and a flag for each knob that has one.
  void add_model_options();

  /// False when --help was asked for and printed. Throws UsageError, naming the nearest option.
  [[nodiscard]] bool parse(std::span<const std::string> arguments);

  [[nodiscard]] bool has(const std::string& name) const;                  ///< given, or has a fallback
  [[nodiscard]] const std::string& value(const std::string& name) const;  ///< REQUIRES has(name)
  [[nodiscard]] std::vector<std::string> values(const std::string& name) const;
  [[nodiscard]] double seconds(const std::string& name) const;  ///< a duration
  [[nodiscard]] std::int64_t integer(const std::string& name) const;
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }

 private:
  [[nodiscard]] std::string help_text() const;
  [[noreturn]] void refuse(const std::string& problem) const;
  void check_words() const;
  void check_unknown(const std::string& name) const;

  std::string synopsis_;
  std::string about_;
  std::string word_name_;
  std::size_t least_words_ = 0;
  std::size_t most_words_ = 0;
  std::vector<std::string> words_;
  std::vector<std::string> names_;
  boost::program_options::options_description own_;
  boost::program_options::options_description model_;
  boost::program_options::variables_map values_;
};

}  // namespace sylvite
