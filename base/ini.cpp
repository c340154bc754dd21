#include "base/ini.h"

#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <set>
#include <sstream>

#include "base/error.h"

namespace sylvite {

std::vector<std::pair<std::string, std::string>> parse_ini(std::string_view text, std::string_view origin) {
  namespace po = boost::program_options;
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  std::istringstream stream{std::string(text)};
  std::vector<std::pair<std::string, std::string>> pairs;
  std::set<std::string> seen;
  try {
    const po::options_description none;
    for (const auto& option : po::parse_config_file(stream, none, /*allow_unregistered=*/true).options) {
      if (!seen.insert(option.string_key).second)
        throw UsageError("{}: '{}' is there twice; leave one", origin, option.string_key);
      pairs.emplace_back(option.string_key, option.value.empty() ? "" : option.value.front());
    }
  } catch (const po::error& error) {
    throw UsageError("{}: {}", origin, error.what());
  }
  return pairs;
}

}  // namespace sylvite
