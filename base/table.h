#pragma once
// Lined-up text tables for people.

#include <string>
#include <vector>

namespace sylvite {

/// A column whose cells all start with a digit, sign or '-' is right-aligned; the others are left-aligned.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add_row(std::vector<std::string> cells);  ///< REQUIRES as many cells as the header has
  [[nodiscard]] std::size_t size() const { return rows_.size() - 1; }  ///< without the header
  /// Two spaces between columns, a line of dashes under the header, no trailing spaces.
  [[nodiscard]] std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace sylvite
