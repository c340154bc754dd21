#include "base/table.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace sylvite {
namespace {

bool looks_numeric(const std::string& cell) {
  if (cell.empty()) return true;
  const auto first = static_cast<unsigned char>(cell.front());
  return std::isdigit(first) != 0 || first == '-' || first == '+' || first == '.';
}

/// Code points, so that UTF-8 names line up.
std::size_t width_of(const std::string& cell) {
  return static_cast<std::size_t>(std::ranges::count_if(cell, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& cell, std::size_t width, bool right) {
  const std::string space(width - width_of(cell), ' ');
  return right ? space + cell : cell + space;
}

void append_line(std::string& text, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + "\n";
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != rows_.front().size())
    throw InternalError("table row has {} cells, its header {}", cells.size(), rows_.front().size());
  rows_.push_back(std::move(cells));
}

std::string Table::to_string() const {
  const std::size_t columns = rows_.front().size();
  std::vector<std::size_t> widths(columns, 0);
  std::vector<bool> right(columns, size() > 0);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      widths[j] = std::max(widths[j], width_of(rows_[i][j]));
      if (i > 0) right[j] = right[j] && looks_numeric(rows_[i][j]);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    std::string line;
    std::string rule;
    for (std::size_t j = 0; j < columns; ++j) {
      line += padded(rows_[i][j], widths[j], right[j]) + "  ";
      rule += std::string(widths[j], '-') + "  ";
    }
    append_line(text, line);
    if (i == 0) append_line(text, rule);
  }
  return text;
}

}  // namespace sylvite
