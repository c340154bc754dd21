#include "runtime/export/tables_in_box.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/rounding.h"

namespace sylvite {

TablesInBox tables_in_box(const ModelSizes& model, const SizeBox& box, const FittedTable& table) {
  constexpr std::int64_t alignment = 64, most_bytes = std::int64_t{64} << 20;
  std::set<std::string> symbols;
  for (const Extent& number : table.numbers)
    for (const std::string& name : number.symbols()) symbols.insert(name);
  std::vector<Tensor> made;
  std::int64_t stride = alignment;
  // All of them: the first symbol's fastest.
  (void)find_sizes(model, box, {symbols.begin(), symbols.end()}, [&](const SymbolValues& sizes) {
    made.push_back(table.at(sizes));
    stride = std::max(stride, round_up(made.back().byte_size(), alignment));
    if (stride * static_cast<std::int64_t>(made.size()) > most_bytes)
      throw UnsupportedError(
          "a table of the model, {}, is another one at each size, and all are {} MB and more",
          made.back().type().to_string(), most_bytes >> 20);
    return false;
  });
  TablesInBox result{Tensor(DType::u8, {stride * static_cast<std::int64_t>(made.size())}), Extent(0)};
  char* to = static_cast<char*>(result.bytes.mutable_data());
  for (const Tensor& each : made) {
    std::copy_n(static_cast<const char*>(each.data()), each.byte_size(), to);
    to += stride;
  }
  for (std::size_t i = 0; i < model.symbols.size(); ++i) {
    const auto& [name, range] = std::tie(model.symbols[i].name, model.symbols[i].range);
    if (!symbols.contains(name)) continue;
    result.place = result.place +
                   (floor_div(Extent::symbol(name), range.multiple) - Extent(box.low[i] / range.multiple)) *
                       Extent(stride);
    stride *= count_along(model, box, i);
  }
  return result;
}

}  // namespace sylvite
