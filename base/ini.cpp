#include "base/ini.h"

#include <set>

#include "base/error.h"
#include "base/words.h"

namespace sylvite {
namespace {

bool is_section(const std::string& line) {
  return line.starts_with('[') && line.ends_with(']');
}

}  // namespace

std::vector<std::pair<std::string, std::string>> parse_ini(std::string_view text, std::string_view origin) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  std::vector<std::pair<std::string, std::string>> pairs;
  std::set<std::string> seen;
  std::string section;
  for (int number = 1; !text.empty(); ++number) {
    const std::string whole = trimmed(take_line(text));
    const std::string line = trimmed(std::string_view(whole).substr(0, whole.find('#')));
    if (line.empty() || line.starts_with(';')) continue;
    const std::size_t equals = line.find('=');
    if (is_section(line)) {
      section = trimmed(std::string_view(line).substr(1, line.size() - 2)) + ".";
    } else if (equals != line.npos && equals > 0) {
      std::string key = (section == "." ? "" : section) + trimmed(line.substr(0, equals));
      if (!seen.insert(key).second) throw UsageError("{}: '{}' is there twice; leave one", origin, key);
      pairs.emplace_back(std::move(key), trimmed(line.substr(equals + 1)));
    } else {
      throw UsageError("{}, line {}: expected [SECTION], KEY = VALUE or # a comment, got '{}'", origin,
                       number, whole);
    }
  }
  return pairs;
}

}  // namespace sylvite
