#pragma once
// The one knob table: name, type, default, scope and help of every setting. It makes the command line, the keys of
// INI files, and docs/knobs.md.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sylvite {

enum class KnobType { boolean, integer, real, duration, string, list };

/// `name` is "section.key" as in INI files; on the command line it is --key where `flag` is set, and always
/// --set section.key=value.
struct Knob {
  std::string_view name;
  KnobType type;
  std::string_view fallback;
  bool flag;
  std::string_view help;
};
[[nodiscard]] std::span<const Knob> knob_table();

/// Values of all knobs; starts at the defaults. Durations are seconds, written "90", "90s", "5m", "2h" or "250ms".
class Settings {
 public:
  /// Throws UsageError for an unknown name (with the nearest known one) or a value of the wrong type.
  void set(const std::string& name, const std::string& value);
  /// Reads an INI file through Boost.Program_options; later files win. Errors name the file.
  void read_ini(const std::string& path);

  [[nodiscard]] bool boolean(const std::string& name) const;
  [[nodiscard]] std::int64_t integer(const std::string& name) const;
  [[nodiscard]] double real(const std::string& name) const;  ///< also durations, in seconds
  [[nodiscard]] const std::string& string(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> list(const std::string& name) const;  ///< comma separated
  /// Every knob and its value, in table order, as INI text that reads back.
  [[nodiscard]] std::string to_ini() const;

 private:
  std::map<std::string, std::string> values_;  ///< only what was set
};

}  // namespace sylvite
