#include "cli/options.h"

#include <fmt/format.h>

#include <boost/program_options/errors.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <charconv>
#include <sstream>

#include "base/error.h"
#include "base/knobs.h"
#include "base/nearest.h"
#include "base/words.h"

namespace sylvite {
namespace {

namespace po = boost::program_options;

constexpr int style = po::command_line_style::allow_long | po::command_line_style::allow_short |
                      po::command_line_style::allow_dash_for_short | po::command_line_style::long_allow_next |
                      po::command_line_style::long_allow_adjacent | po::command_line_style::short_allow_next;

std::string knob_help(const Knob& knob) {
  std::string help(knob.help);
  if (!knob.choices.empty()) help += fmt::format(" ({})", fmt::join(knob.choices, "|"));
  if (!knob.fallback.empty()) help += fmt::format(" [{}]", knob.fallback);
  return help;
}

}  // namespace

Options::Options(std::string synopsis, std::string about)
    : synopsis_(std::move(synopsis)),
      about_(std::move(about)),
      own_("Options", 110),
      model_("Model options", 110) {
  own_.add_options()("help,h", "show this help");
  names_.emplace_back("help");
}

void Options::add_flag(const std::string& name, const std::string& help) {
  own_.add_options()(name.c_str(), help.c_str());
  names_.push_back(name);
}

void Options::add_value(const std::string& name, const std::string& placeholder, const std::string& help,
                        const std::string& fallback) {
  auto* const semantic = po::value<std::string>()->value_name(placeholder);
  if (!fallback.empty()) semantic->default_value(fallback);
  own_.add_options()(name.c_str(), semantic, help.c_str());
  names_.push_back(name.substr(0, name.find(',')));
}

void Options::add_list(const std::string& name, const std::string& placeholder, const std::string& help) {
  own_.add_options()(name.c_str(), po::value<std::vector<std::string>>()->value_name(placeholder),
                     help.c_str());
  names_.push_back(name);
}

void Options::expect_words(const std::string& what, std::size_t least, std::size_t most) {
  word_name_ = what;
  least_words_ = least;
  most_words_ = most;
}

void Options::add_model_options() {
  expect_words("MODEL.onnx", 1, 1);
  const auto list = [] { return po::value<std::vector<std::string>>(); };
  const auto text = [] { return po::value<std::string>(); };
  auto add = model_.add_options();
  add("config", list()->value_name("FILE"), "INI file of knobs; may be given again, later wins");
  add("set", list()->value_name("KEY=VALUE"), "set a knob; see docs/knobs.md");
  add("bind", list()->value_name("NAME=FILE"), "fix a model input at compile time to a .npy or .pb file");
  add("json", text()->value_name("FILE"), "write versions, counters, times and sizes as JSON; - for stdout");
  add("dump-config", text()->value_name("FILE"), "write every knob and its value as INI; - for stdout");
  for (const char* name : {"config", "set", "bind", "json", "dump-config"}) names_.emplace_back(name);
  for (const Knob& knob : knob_table()) {
    if (knob.flag.empty()) continue;
    const std::string flag(knob.flag);
    const std::string help = knob_help(knob);
    add(flag.c_str(), text()->value_name(std::string(knob_type_name(knob.type))), help.c_str());
    names_.push_back(flag);
  }
}

bool Options::parse(std::span<const std::string> arguments) {
  po::options_description all;
  all.add(own_).add(model_);
  try {
    const auto parsed = po::command_line_parser(std::vector<std::string>(arguments.begin(), arguments.end()))
                            .options(all)
                            .style(style)
                            .allow_unregistered()
                            .run();
    for (const auto& option : parsed.options) {
      if (option.unregistered) check_unknown(option.original_tokens.front());
      if (option.position_key >= 0) words_.push_back(option.value.front());
    }
    po::store(parsed, values_);
  } catch (const po::error& error) {
    refuse(error.what());
  }
  if (values_.contains("help")) {
    fmt::print("{}", help_text());
    return false;
  }
  check_words();
  return true;
}

std::string Options::help_text() const {
  std::ostringstream text;
  text << "usage: sylvite " << synopsis_ << "\n" << about_ << "\n\n" << own_;
  if (!model_.options().empty()) text << "\n" << model_;
  return text.str();
}

void Options::refuse(const std::string& problem) const {
  throw UsageError("{}; see sylvite {} --help", problem, synopsis_.substr(0, synopsis_.find(' ')));
}

void Options::check_words() const {
  if (words_.size() < least_words_)
    refuse(fmt::format("{} is missing", split(word_name_, ' ').at(words_.size())));
  if (words_.size() > most_words_) refuse(fmt::format("unexpected argument '{}'", words_[most_words_]));
}

void Options::check_unknown(const std::string& token) const {
  const std::string name = token.substr(0, token.find('='));
  const std::vector<std::string_view> known(names_.begin(), names_.end());
  const std::string near = nearest_name(name.substr(name.find_first_not_of('-')), known);
  refuse(fmt::format("unknown option '{}'{}", name, near.empty() ? "" : ", did you mean --" + near + "?"));
}

bool Options::has(const std::string& name) const {
  return values_.contains(name);
}

const std::string& Options::value(const std::string& name) const {
  if (!has(name)) throw InternalError("option --{} has no value", name);
  return values_[name].as<std::string>();
}

std::vector<std::string> Options::values(const std::string& name) const {
  return has(name) ? values_[name].as<std::vector<std::string>>() : std::vector<std::string>();
}

double Options::seconds(const std::string& name) const {
  return parse_duration(value(name), "--" + name);
}

std::int64_t Options::integer(const std::string& name) const {
  const std::string& text = value(name);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw UsageError("--{} {}: expected an integer", name, text);
  return number;
}

}  // namespace sylvite
