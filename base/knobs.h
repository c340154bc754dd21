#pragma once
// The one knob table: name, type, default, flag and help of every setting. It makes the command line, the
// keys of INI files, docs/knobs.md, and the values of CompileConfig.

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/config.h"

namespace sylvite {

enum class KnobType { boolean, integer, real, duration, size, text, list };

/// What an integer may be.
struct KnobRange {
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] constexpr bool is_bounded() const { return most != std::numeric_limits<std::int64_t>::max(); }
};

/// `name` is "section.key", as in INI files. On the command line every knob is --set section.key=value, and
/// also --FLAG where `flag` is not empty.
struct Knob {
  std::string_view name;
  std::string_view fallback;
  std::string_view flag;
  std::string_view help;
  KnobType type;
  std::span<const std::string_view> choices;  ///< empty: every value of the type
  KnobRange range;                            ///< of integers
  /// Sets the knob's member of `config`. REQUIRES one of the choices; throws UsageError for a value of another type.
  void (*read)(std::string_view text, const Knob& row, CompileConfig& config);
};
[[nodiscard]] std::span<const Knob> knob_table();
[[nodiscard]] std::string_view knob_type_name(KnobType type);
/// The knob table as the Markdown page docs/knobs.md.
[[nodiscard]] std::string knobs_markdown();

/// Text of configs/NAME.ini, which is built into the program. Throws UsageError naming the nearest mode.
[[nodiscard]] std::string_view mode_ini(const std::string& mode);

/// Seconds from "90", "90s", "5m", "2h" or "250ms". Throws UsageError; `what` names the thing in the message.
[[nodiscard]] double parse_duration(std::string_view text, std::string_view what);

/// Bytes from "500MB", "2GB", "64kB" or "1000". Throws UsageError; `what` names the thing in the message.
[[nodiscard]] Bytes parse_bytes(std::string_view text, std::string_view what);

/// Values of knobs as text, in layers: what was not set has its default. Thread safety: const use only.
class Settings {
 public:
  /// Throws UsageError for an unknown name (with the nearest known one) or a value of the wrong type.
  void set(const std::string& name, const std::string& value);
  /// Reads an INI file (base/ini.h); later files win. Errors name the file.
  void read_ini(const std::string& path);
  /// The same from text; `origin` names it in errors.
  void read_ini_text(std::string_view text, const std::string& origin);
  /// Sets all that was set in `later`.
  void override_with(const Settings& later);

  [[nodiscard]] CompileConfig config() const;
  /// Every knob and its value, in table order, as INI text that reads back.
  [[nodiscard]] std::string to_ini() const;

 private:
  [[nodiscard]] std::string_view text_of(const Knob& knob) const;

  std::map<std::string, std::string, std::less<>> values_;  ///< only what was set
};

}  // namespace sylvite
