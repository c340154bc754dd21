#include "frontend/quick/patches.h"

#include <algorithm>
#include <vector>

#include "frontend/quick/functions.h"

namespace sylvite::quick {
namespace {

/// Does each output position read the input position of the same number?
bool reads_in_place(const Window& window) {
  return std::ranges::all_of(window.axes, [](const WindowAxis& axis) {
    return axis.kernel == 1 && axis.stride == 1 && axis.low == 0 && axis.input == axis.output;
  });
}

/// One line of all positions.
Window as_one_line(const Window& window) {
  Window line;
  line.axes[2].input = line.axes[2].output = window.inputs();
  return line;
}

/// Columns [begin, end) of a panel, which lie in one line of the output and read `from` of a channel's plane; the others up to
/// `until` are zero.
struct Piece {
  std::int64_t zeros = 0;  ///< columns [zeros, begin) are zero as well
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t until = 0;
  std::int64_t from = 0;
};

/// What tap `tap` sees at `count` positions from `position` on, which lie in one line and are the columns from `column` on.
Piece piece_of(const Window& window, std::int64_t tap, std::int64_t position, std::int64_t column,
               std::int64_t count) {
  const auto& [z_axis, y_axis, x_axis] = window.axes;
  const std::int64_t kx = tap % x_axis.kernel;
  const std::int64_t line = position / x_axis.output;
  const std::int64_t x = position % x_axis.output;
  const std::int64_t z = z_axis.position(line / y_axis.output, tap / x_axis.kernel / y_axis.kernel);
  const std::int64_t y = y_axis.position(line % y_axis.output, tap / x_axis.kernel % y_axis.kernel);
  const Range inside = x_axis.inside(kx);
  const bool reads = z_axis.is_inside(z) && y_axis.is_inside(y);
  const std::int64_t begin = reads ? std::clamp(inside.begin, x, x + count) : x + count;
  const std::int64_t end = reads ? std::clamp(inside.end, begin, x + count) : x + count;
  const std::int64_t from = (z * y_axis.input + y) * x_axis.input + x_axis.position(begin, kx);
  return {column, column + begin - x, column + end - x, column + count, begin == end ? 0 : from};
}

/// The pieces of each panel: those of a tap one behind another.
std::vector<std::vector<Piece>> list_pieces(const Window& window, Part positions, std::int64_t panel) {
  const std::int64_t width = window.axes[2].output;
  std::vector<std::vector<Piece>> panels;
  for (std::int64_t first = 0; first < positions.count; first += panel) {
    std::vector<Piece>& pieces = panels.emplace_back();
    const std::int64_t begin = positions.first + first;
    const std::int64_t end = std::min(begin + panel, positions.first + positions.count);
    for (std::int64_t tap = 0; tap < window.taps(); ++tap)
      for (std::int64_t at = begin; at < end;) {
        const std::int64_t count = std::min(width - at % width, end - at);
        pieces.push_back(piece_of(window, tap, at, at - begin, count));
        at += count;
      }
  }
  return panels;
}

void copy_piece(const Piece& piece, const float* plane, std::int64_t stride, float* row) {
  const float* from = plane + piece.from;
  std::fill(row + piece.zeros, row + piece.begin, 0.0F);
  if (stride == 1)
    copy_row(from, piece.end - piece.begin, row + piece.begin);
  else
    for (std::int64_t i = piece.begin; i < piece.end; ++i) row[i] = from[(i - piece.begin) * stride];
  std::fill(row + piece.end, row + piece.until, 0.0F);
}

}  // namespace

void pack_patches(const Window& given, const float* image, Part depth, Part positions, std::int64_t panel,
                  float* panels) {
  const Window window = reads_in_place(given) ? as_one_line(given) : given;
  const std::int64_t stride = window.axes[2].stride;
  const std::int64_t taps = window.taps();
  const std::vector<std::vector<Piece>> pieces = list_pieces(window, positions, panel);
  const std::int64_t end = depth.first + depth.count;
  // By channels, so that lines of the image are read along all panels.
  for (std::int64_t k = depth.first, next = 0; k < end; k = next) {
    next = std::min((k / taps + 1) * taps, end);
    const float* plane = image + k / taps * window.inputs();
    float* to = panels + (k - depth.first) * panel;
    for (const std::vector<Piece>& of_panel : pieces) {
      const auto of_tap = static_cast<std::int64_t>(of_panel.size()) / taps;
      const Piece* piece = of_panel.data() + k % taps * of_tap;
      for (std::int64_t row = 0; row < next - k; ++row)
        for (std::int64_t i = 0; i < of_tap; ++i) copy_piece(*piece++, plane, stride, to + row * panel);
      to += depth.count * panel;
    }
  }
}

}  // namespace sylvite::quick
