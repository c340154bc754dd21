#pragma once
// Side tables of a graph: what is known of each of its values or nodes.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sylvite {

/// One T for each id from 0 on. Ids out of range, no_value and no_node among them, throw std::out_of_range.
template <typename T>
class IdMap {
 public:
  using Reference = std::vector<T>::reference;
  using ConstReference = std::vector<T>::const_reference;

  IdMap() = default;
  explicit IdMap(std::size_t count, const T& initial = T()) : items_(count, initial) {}

  [[nodiscard]] Reference operator[](std::int32_t id) { return items_.at(static_cast<std::size_t>(id)); }
  [[nodiscard]] ConstReference operator[](std::int32_t id) const {
    return items_.at(static_cast<std::size_t>(id));
  }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] auto begin() { return items_.begin(); }
  [[nodiscard]] auto end() { return items_.end(); }
  [[nodiscard]] auto begin() const { return items_.begin(); }
  [[nodiscard]] auto end() const { return items_.end(); }

 private:
  std::vector<T> items_;
};

}  // namespace sylvite
