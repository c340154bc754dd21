#include "sylvite/symbols.h"

#include <fmt/format.h>

#include <algorithm>

namespace sylvite {

bool Guard::holds(const SymbolValues& binding) const {
  const std::int64_t value = extent.at(binding);
  return kind == Kind::zero ? value == 0 : value >= 0;
}

std::string Guard::to_string() const {
  return fmt::format("{} {} 0", extent.to_string(), kind == Kind::zero ? "=" : ">=");
}

void Symbols::add_guard(Guard guard) {
  const auto is_same = [&](const Guard& noted) {
    return noted.kind == guard.kind && noted.extent == guard.extent;
  };
  if (std::ranges::none_of(guards_, is_same)) guards_.push_back(std::move(guard));
}

bool Symbols::equal(const Extent& a, const Extent& b) {
  if (a == b) return true;
  if (a.is_known() && b.is_known()) return false;
  const Extent difference = simplify(a - b, table);
  const Interval range = bounds(difference, table);
  if (range.low > 0 || range.high < 0) return false;
  if (range != Interval{0, 0}) add_guard({Guard::Kind::zero, difference, origin});
  return true;
}

bool Symbols::at_least(const Extent& a, const Extent& b) {
  if (a.is_known() && b.is_known()) return a.constant() >= b.constant();
  const Extent difference = simplify(a - b, table);
  const Interval range = bounds(difference, table);
  if (range.high < 0) return false;
  if (range.low < 0) add_guard({Guard::Kind::not_negative, difference, origin});
  return true;
}

bool Symbols::equal(const std::vector<Extent>& a, const std::vector<Extent>& b) {
  return a.size() == b.size() &&
         std::ranges::equal(a, b, [&](const Extent& x, const Extent& y) { return equal(x, y); });
}

}  // namespace sylvite
