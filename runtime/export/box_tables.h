#pragma once
// What embed/sized_program.h describes, as C: numbers that depend on sizes, and the box of sizes that a program serves.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "runtime/export/exported_program.h"

namespace sylvite {

/// Numbers as the tables of one program have them: those that depend on sizes stand in a list, once each.
class TableNumbers {
 public:
  explicit TableNumbers(const std::vector<SizeSymbol>& sizes);

  [[nodiscard]] std::string of(const Extent& value);
  [[nodiscard]] std::vector<std::string> of(const std::vector<Extent>& values);
  [[nodiscard]] std::size_t count() const { return expressions_.size(); }
  /// The function that computes them, or nothing.
  [[nodiscard]] std::string function(const std::string& name) const;

 private:
  [[nodiscard]] std::string expression(const Extent& value) const;
  [[nodiscard]] std::string factor_text(const ExtentFactor& factor) const;

  std::map<std::string, std::string> names_;
  std::map<Extent, std::size_t> known_;
  std::vector<std::string> expressions_;
};

/// Of program number `number`, with which the names of its tables end.
class BoxTables {
 public:
  /// `numbers` must live as long.
  BoxTables(const ExportedProgram& program, TableNumbers& numbers, std::size_t number);

  [[nodiscard]] const std::string& text() const { return text_; }
  /// `table` with that end.
  [[nodiscard]] std::string name(const std::string& table) const;
  /// The function that computes the numbers, and the box itself, once all tables have asked for their numbers.
  [[nodiscard]] std::string function() const { return numbers_.function(name("numbers")); }
  [[nodiscard]] std::string row() const;

 private:
  TableNumbers& numbers_;
  std::size_t number_;
  std::size_t condition_count_;
  std::size_t grown_count_;
  std::string added_ = "0";
  std::string text_;
};

}  // namespace sylvite
