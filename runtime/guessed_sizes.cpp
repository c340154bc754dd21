#include "runtime/guessed_sizes.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "frontend/onnx/initializer_store.h"
#include "frontend/onnx/traced_sizes.h"

namespace sylvite {
namespace {

/// Halves the largest size to be fast at of those that go by names alone; false where all are as small as can be.
bool shrink_guess(ModelSizes& sizes) {
  SizeSymbol* largest = nullptr;
  for (SizeSymbol& symbol : sizes.symbols) {
    if (!symbol.is_guessed || symbol.range.hints.front() / 2 < symbol.range.low) continue;
    if (largest == nullptr || symbol.range.hints.front() > largest->range.hints.front()) largest = &symbol;
  }
  if (largest == nullptr) return false;
  largest->range.hints = {largest->range.hints.front() / 2};
  return true;
}

/// Makes them powers of two, and then shrinks them: a model may take 128 where it takes neither 224 nor 112.
bool shrink_power(ModelSizes& sizes) {
  bool is_changed = false;
  for (SizeSymbol& symbol : sizes.symbols) {
    const auto hint = static_cast<std::uint64_t>(symbol.range.hints.front());
    const auto power = static_cast<std::int64_t>(std::bit_ceil(hint));
    if (!symbol.is_guessed || std::has_single_bit(hint) || power > symbol.range.high) continue;
    symbol.range.hints = {power};
    is_changed = true;
  }
  return is_changed || shrink_guess(sizes);
}

/// Doubles the smallest of them that is at least `least`; false where all are as large as anybody would guess.
bool grow_from(ModelSizes& sizes, std::int64_t least) {
  constexpr std::int64_t largest_guess = 4096;
  SizeSymbol* smallest = nullptr;
  for (SizeSymbol& symbol : sizes.symbols) {
    const std::int64_t hint = symbol.range.hints.front();
    if (!symbol.is_guessed || hint < least || hint * 2 > std::min(symbol.range.high, largest_guess)) continue;
    if (smallest == nullptr || hint < smallest->range.hints.front()) smallest = &symbol;
  }
  if (smallest == nullptr) return false;
  smallest->range.hints = {smallest->range.hints.front() * 2};
  return true;
}

/// Batches aside.
bool grow_guess(ModelSizes& sizes) {
  return grow_from(sizes, 2);
}

/// What stands where batches do may be points of a cloud or nodes of a graph, of which a model needs a few.
bool grow_batch(ModelSizes& sizes) {
  return grow_from(sizes, 1);
}

/// Makes the sizes 1 that one input alone has, of the last input that has larger ones; false where only the first is left.
/// Such inputs are states: one element before the first run, and of sizes that follow from the others' after it.
bool empty_state(ModelSizes& sizes) {
  std::vector<int> inputs_with(sizes.symbols.size(), 0);
  const auto for_symbols = [&](const SizedInput& input, const auto& use) {
    std::set<int> symbols;
    for (const SizedInput::Axis& axis : input.axes)
      if (axis.symbol >= 0) symbols.insert(axis.symbol);
    for (const int symbol : symbols) use(static_cast<std::size_t>(symbol));
  };
  for (const SizedInput& input : sizes.inputs)
    for_symbols(input, [&](std::size_t symbol) { ++inputs_with[symbol]; });
  for (std::size_t i = sizes.inputs.size(); i-- > 1;) {
    bool is_changed = false;
    for_symbols(sizes.inputs[i], [&](std::size_t at) {
      SizeSymbol& symbol = sizes.symbols[at];
      const std::int64_t least = std::max<std::int64_t>(symbol.range.low, 1);
      if (!symbol.is_guessed || inputs_with[at] > 1 || symbol.range.hints.front() <= least) return;
      symbol.range.hints = {least};
      is_changed = true;
    });
    if (is_changed) return true;
  }
  return false;
}

/// Do its first sizes suit the model? If so, the next import is there.
bool try_first_sizes(const ParsedModel& model) {
  const Sizes sizes = first_sizes(model.sizes);
  try {
    model.initializers->keep(sizes, import_at(model, sizes));
    return true;
  } catch (const Error& error) {
    log_line(LogLevel::debug, "sizes: not {}: {}", describe(model.sizes, sizes), error.what());
    return false;
  }
}

/// As often as `change` finds other sizes.
bool fit_by(ParsedModel& model, const ModelSizes& usual, bool (*change)(ModelSizes&)) {
  model.sizes = usual;
  while (change(model.sizes))
    if (try_first_sizes(model)) return true;
  return false;
}

/// Sizes that the exporter traced stand in the model as numbers, where it takes no others.
bool fit_traced(ParsedModel& model, const ModelSizes& usual) {
  for (const std::int64_t size : traced_sizes(model)) {
    model.sizes = usual;
    for (SizeSymbol& symbol : model.sizes.symbols)
      if (symbol.is_guessed && symbol.range.hints.front() > 1 && symbol.range.contains(size))
        symbol.range.hints = {size};
    if (try_first_sizes(model)) return true;
  }
  return false;
}

/// The guessed size of an axis of the input, counted from behind; nullptr where it has none.
SizeSymbol* guessed_size(ModelSizes& sizes, const SizedInput& input, std::size_t from_behind) {
  if (from_behind >= input.axes.size()) return nullptr;
  const int symbol = input.axes[input.axes.size() - 1 - from_behind].symbol;
  if (symbol < 0) return nullptr;
  SizeSymbol& found = sizes.symbols[static_cast<std::size_t>(symbol)];
  return found.is_guessed ? &found : nullptr;
}

/// The same, nullptr where it may not be so large.
SizeSymbol* guessed_size(ModelSizes& sizes, const SizedInput& input, std::size_t from_behind,
                         std::int64_t size) {
  SizeSymbol* found = guessed_size(sizes, input, from_behind);
  return found != nullptr && size > 1 && found->range.contains(size) ? found : nullptr;
}

/// Features have as many elements as the weights of a first layer do: the last extent is one of theirs, or the last two are.
bool fit_weights(ParsedModel& model, const ModelSizes& usual) {
  for (const Dims& shape : first_weights(model)) {
    for (std::size_t at = 0; at < usual.inputs.size(); ++at) {
      for (std::size_t last = shape.size(); last-- > 0;) {
        model.sizes = usual;
        SizeSymbol* size = guessed_size(model.sizes, usual.inputs[at], 0, shape[last]);
        if (size == nullptr) continue;
        size->range.hints = {shape[last]};
        if (try_first_sizes(model)) return true;
        SizeSymbol* beside =
            last == 0 ? nullptr : guessed_size(model.sizes, usual.inputs[at], 1, shape[last - 1]);
        if (beside == nullptr || beside == size) continue;
        beside->range.hints = {shape[last - 1]};
        if (try_first_sizes(model)) return true;
      }
    }
  }
  return false;
}

/// Images have three channels or one, which stand second or last.
bool fit_channels(ParsedModel& model, const ModelSizes& usual) {
  for (const std::int64_t channels : {3, 1}) {
    for (const bool are_last : {false, true}) {
      model.sizes = usual;
      bool is_changed = false;
      for (const SizedInput& input : usual.inputs) {
        if (input.axes.size() < 4) continue;
        const std::size_t from_behind = are_last ? 0 : input.axes.size() - 2;
        SizeSymbol* size = guessed_size(model.sizes, input, from_behind);
        if (size == nullptr || !size->range.contains(channels)) continue;
        size->range.hints = {channels};
        is_changed = true;
      }
      if (is_changed && try_first_sizes(model)) return true;
    }
  }
  return false;
}

/// Where batches stand there may be frames, of which windows take several.
ModelSizes with_frames(ModelSizes sizes) {
  constexpr std::int64_t frames = 128;
  for (SizeSymbol& symbol : sizes.symbols)
    if (symbol.is_guessed && symbol.range.hints.front() == 1 && symbol.range.contains(frames))
      symbol.range.hints = {frames};
  return sizes;
}

}  // namespace

void fit_guesses(ParsedModel& model) {
  if (std::ranges::none_of(model.sizes.symbols, &SizeSymbol::is_guessed)) return;
  const ModelSizes usual = model.sizes;
  if (try_first_sizes(model)) return;
  for (const auto change : {empty_state, shrink_guess, shrink_power})
    if (fit_by(model, usual, change)) return;
  if (fit_traced(model, usual) || fit_channels(model, usual)) return;
  for (const auto change : {grow_guess, grow_batch})
    if (fit_by(model, usual, change)) return;
  if (fit_weights(model, usual) || fit_weights(model, with_frames(usual))) return;
  model.sizes = usual;
}

}  // namespace sylvite
