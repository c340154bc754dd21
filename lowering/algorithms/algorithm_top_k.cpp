#include <functional>
#include <optional>

#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/algorithms/top_k_order.h"

// The k first elements along an axis, in order. Three formulations, equal to the bit:
//
// By maxima, for few choices of rows: elements are numbers (vN_keys_steps) in the order of keys and then of places, all different.
// A choice is the largest below the one before: in lanes (vN_lanes_0), and among these (vN_best_0). n*k steps of vectors. Of long
// rows the largest of strips of 32 elements (vN_strips) stand for them; in the strip of a choice the next one is looked for
// (vN_next_0). n + n*k/32 steps of vectors.
//
// By choices: stage vN_fold, whose update 0 is a pass over the axis for each choice. n*k steps.
//
// By sorting: elements are integers of the order, vN_keys_steps, largest first. Few are ranked: of each it is counted how many
// come before it (vN_rank), n*n steps of vectors. Many are sorted by digits of 8 bits, the last first: digits are counted
// (vN_count_pass_3), counts are added from the largest digit down (vN_above_pass_3), and each element goes to the next place of its
// digit (vN_pass_3). Where k is less than n, the k first may be found before, some 10 steps an element: keys are counted by their
// highest digit (vN_count_0, vN_above_0), and that of the k-th key is read off (vN_digit_0); so the next one among the keys that share
// it, until the k-th key is known. Keys above it and the first of those equal to it are gathered (vN_placed, vN_begun, vN_taken).

namespace sylvite {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::select;
using Halide::Tuple;
using Halide::Var;

constexpr int digit_bits = 8;
constexpr int digits_of = 1 << digit_bits;
/// Tables of counts, by turns: a count waits for the one before it in the same place.
constexpr int tables = 4;

/// Slot 0 of vN_fold means "nothing chosen yet" by index -1; slot j+1 holds the j-th choice: the best element that comes after
/// slot j's in the order (key, then lower index).
void define_by_choices(const TopKOrder& order) {
  const RDom domain = open_reduction_domain({order.count, order.k});
  const Expr key = order.key(Expr(domain[0]));
  const std::vector<Expr> slot = order.at(domain[1] + 1);
  const std::vector<Expr> previous = order.at(Expr(domain[1]));

  Func folded = order.stage("_fold");
  folded(order.vars) = Tuple(Halide::Internal::make_zero(key.type()), Expr(-1));
  const auto comes_before = [&](const Expr& a, const Expr& index_a, const Expr& b, const Expr& index_b) {
    return (order.largest ? a > b : a < b) || (a == b && index_a < index_b);
  };
  const Expr index = domain[0];
  const Expr allowed =
      folded(previous)[1] < 0 || comes_before(folded(previous)[0], folded(previous)[1], key, index);
  const Expr better = folded(slot)[1] < 0 || comes_before(key, index, folded(slot)[0], folded(slot)[1]);
  folded(slot) = Tuple(select(allowed && better, key, folded(slot)[0]),
                       select(allowed && better, index, folded(slot)[1]));

  const std::vector<Expr> chosen = order.at(order.vars[order.position] + 1);
  order.define(folded(chosen)[0], folded(chosen)[1]);
}

constexpr int lanes_of_maxima = 16;

/// The element of the order at a place of the axis: its key, and that it stands further ahead than those behind it; at least 1.
Expr ordered_word(const Expr& key, const Expr& place) {
  const Expr ahead = ~cast<std::uint32_t>(place);
  return (cast<std::uint64_t>(key) << 32) | cast<std::uint64_t>(ahead);
}

/// Elements of the order at places of the axis, 0 where there are none.
using Words = std::function<Expr(const Expr& place)>;

/// The largest word below `previous`, if there is such: among `count` words, and `others`.
Expr largest_word(const TopKOrder& order, const std::string& suffix, const Words& words, const Expr& count,
                  const std::vector<Expr>& others, const Expr& previous) {
  const Expr nothing = Halide::Internal::make_zero(Halide::UInt(64));
  const auto below = [&](const Expr& word) {
    return previous.defined() ? select(word < previous, word, nothing) : word;
  };
  const RDom steps = open_reduction_domain({(count + (lanes_of_maxima - 1)) / lanes_of_maxima});
  Func lanes = order.stage("_lanes" + suffix);
  lanes(order.vars) = nothing;
  lanes(order.vars) =
      Halide::max(lanes(order.vars), below(words(steps[0] * lanes_of_maxima + order.vars[order.position])));
  Expr among_others = nothing;
  for (const Expr& other : others) among_others = Halide::max(among_others, below(other));
  const std::vector<Var> rows = order.rows();
  const RDom all = reduction_domain({lanes_of_maxima});
  Func largest = order.stage("_best" + suffix);
  largest(rows) = among_others;
  largest(rows) = Halide::max(largest(rows), lanes(order.at(Expr(all[0]))));
  return largest(rows);
}

/// The largest words of strips: strip i has the places i, i + strips, i + 2 strips, ...
struct Strips {
  static constexpr int length = 32;

  Strips(const TopKOrder& of, Words from)
      : order(of), words(std::move(from)), count((of.count + (length - 1)) / length) {
    const RDom along = reduction_domain({length});
    Func largest = order.stage("_strips");
    largest(order.vars) = Halide::Internal::make_zero(Halide::UInt(64));
    largest(order.vars) =
        Halide::max(largest(order.vars), words(along[0] * count + order.vars[order.position]));
    all = [this, largest](const Expr& place) {
      return select(place < count, largest(order.at(place)), Halide::Internal::make_zero(Halide::UInt(64)));
    };
  }
  /// The largest word below `chosen` in its strip.
  [[nodiscard]] Expr next(const std::string& suffix, const Expr& chosen) const {
    const Expr nothing = Halide::Internal::make_zero(Halide::UInt(64));
    const RDom along = reduction_domain({length});
    const Expr place = cast<std::int32_t>(~cast<std::uint32_t>(chosen));
    const Expr strip = Halide::clamp(place % count, 0, count - 1);
    const Expr word = words(along[0] * count + strip);
    const std::vector<Var> rows = order.rows();
    Func largest = order.stage("_next" + suffix);
    largest(rows) = nothing;
    largest(rows) = Halide::max(largest(rows), select(word < chosen, word, nothing));
    return largest(rows);
  }

  const TopKOrder& order;
  Words words;
  Expr count;
  Words all;
};

/// Are there equal keys among choices, each of which comes after the one before?
Expr has_equals(const std::vector<Expr>& choices) {
  Expr found = Halide::Internal::const_false();
  for (std::size_t i = 1; i < choices.size(); ++i) found = found || choices[i] >> 32 == choices[i - 1] >> 32;
  return found;
}

/// Where ties are broken by partitions, one more is chosen: rows without equal ones among these need none.
void define_by_maxima(const TopKOrder& order, std::int64_t choices, bool has_strips) {
  const Var axis = order.vars[order.position];
  const Expr own = order.key(Halide::clamp(Halide::likely(axis), 0, order.count - 1));
  Func keys = order.stage("_keys_steps");
  keys(order.vars) = cast<std::uint32_t>(to_unsigned(own, order.largest));
  const Words words = [&](const Expr& place) {
    return select(place < order.count, ordered_word(keys(order.at(place)), place),
                  Halide::Internal::make_zero(Halide::UInt(64)));
  };
  std::optional<Strips> strips;
  if (has_strips) strips.emplace(order, words);
  std::vector<Expr> best;
  std::vector<Expr> others;
  for (std::int64_t choice = 0; choice < choices; ++choice) {
    const std::string suffix = "_" + std::to_string(choice);
    const Expr previous = best.empty() ? Expr() : best.back();
    if (has_strips && choice > 0) others.push_back(strips->next("_" + std::to_string(choice - 1), previous));
    best.push_back(has_strips ? largest_word(order, suffix, strips->all, strips->count, others, previous)
                              : largest_word(order, suffix, words, order.count, {}, previous));
  }
  Expr chosen = best.back();
  for (auto choice = static_cast<int>(choices) - 1; choice-- > 0;)
    chosen = select(axis == choice, best[static_cast<std::size_t>(choice)], chosen);
  const Halide::Type word = Halide::UInt(own.type().bits());
  Expr key = cast(word, chosen >> 32);
  Expr index = cast<std::int32_t>(~cast<std::uint32_t>(chosen));
  if (follows_library(order)) {
    const Expr is_needed = has_equals(best) || is_left_unsorted(order);
    const Expr place = place_by_library(order, keys, is_needed);
    key = select(is_needed, cast(word, keys(order.at(place))), key);
    index = select(is_needed, place, index);
  }
  order.define(from_unsigned(key, own.type(), order.largest), index);
}

/// The k-th key, and how many of those equal to it are taken.
struct Limit {
  Expr key;
  Expr equals;
};

/// How many of `count` digits, each of a place, are as large as a value, or larger; 0 beyond all.
Func counts_from_above(const TopKOrder& order, const std::string& suffix, const Expr& count,
                       const std::function<Expr(const Expr& place)>& digit_at) {
  const RDom places = open_reduction_domain({count});
  Func counts = order.stage("_count" + suffix);
  counts(order.vars) = 0;
  counts(order.at(digit_at(Expr(places[0])) * tables + places[0] % tables)) += 1;
  Func above = order.stage("_above" + suffix);
  const RDom downwards = reduction_domain({digits_of});
  const Expr value = digits_of - 1 - downwards[0];
  above(order.vars) = 0;
  Expr total = 0;
  for (int table = 0; table < tables; ++table) total += counts(order.at(value * tables + table));
  above(order.at(value)) = above(order.at(value + 1)) + total;
  return above;
}

Expr digit_of(const Expr& key, int shift) {
  return cast<std::int32_t>(cast<std::uint8_t>(key >> shift));
}

/// One digit more of it. `known` has the digits above, and zeros; of the keys that share them, `known.equals` are taken.
Limit next_digit(const TopKOrder& order, const Func& keys, const Limit& known, int digit) {
  const Halide::Type word = known.key.type();
  const int shift = word.bits() - digit_bits * (digit + 1);
  const std::string suffix = "_" + std::to_string(digit);
  const Func above = counts_from_above(order, suffix, order.count, [&](const Expr& place) {
    const Expr key = keys(order.at(place));
    // Keys of other digits above are counted in a place of their own, which nobody reads.
    const int above_bits = shift + digit_bits;
    const Expr is_of_them =
        digit == 0 ? Halide::Internal::const_true() : (key >> above_bits) == (known.key >> above_bits);
    return select(is_of_them, digit_of(key, shift), digits_of);
  });

  const std::vector<Var> rows = order.rows();
  Func found = order.stage("_digit" + suffix);
  const RDom values = reduction_domain({digits_of});
  found(rows) = 0;
  found(rows) = Halide::max(found(rows), select(above(order.at(values[0])) >= known.equals, values[0], 0));

  const Expr chosen = Halide::clamp(found(rows), 0, digits_of - 1);
  return {known.key | (cast(word, chosen) << shift), known.equals - above(order.at(chosen + 1))};
}

/// Indices of the elements above the limit, and then of the first of those equal to it, each in the order of the axis. The axis
/// is counted in parts side by side, which then begin where those before them end.
Func define_taken(const TopKOrder& order, const Func& keys, const Limit& limit) {
  constexpr int parts = 16;
  const Expr length = (order.count + (parts - 1)) / parts;
  const Var step("step");
  const auto at = [&](const Expr& part, const Expr& of_it) {
    std::vector<Expr> arguments = order.at(part);
    arguments.push_back(of_it);
    return arguments;
  };
  const Expr part = order.vars[order.position];
  const RDom steps = open_reduction_domain({length});
  const Expr own = part * length + steps[0];
  const Expr counted = keys(order.at(Halide::clamp(own, 0, order.count - 1)));
  const Expr is_there = own < order.count;
  Func placed = order.stage("_placed");
  placed(at(part, step)) = Tuple(0, 0);
  placed(at(part, steps[0] + 1)) =
      Tuple(placed(at(part, steps[0]))[0] + cast<std::int32_t>(is_there && counted > limit.key),
            placed(at(part, steps[0]))[1] + cast<std::int32_t>(is_there && counted == limit.key));
  Func begun = order.stage("_begun");
  const RDom all = reduction_domain({parts});
  begun(order.vars) = Tuple(0, 0);
  begun(order.at(all[0] + 1)) = Tuple(begun(order.at(Expr(all[0])))[0] + placed(at(all[0], length))[0],
                                      begun(order.at(Expr(all[0])))[1] + placed(at(all[0], length))[1]);

  const RDom places = open_reduction_domain({parts, length});
  const Expr place = places[0] * length + places[1];
  const Expr key = keys(order.at(Halide::clamp(place, 0, order.count - 1)));
  const std::vector<Expr> from = order.at(Expr(places[0]));
  const std::vector<Expr> here = at(places[0], places[1]);
  const Expr above = begun(from)[0] + placed(here)[0];
  const Expr equals = begun(from)[1] + placed(here)[1];
  const Expr is_taken = place < order.count && key >= limit.key;
  Func taken = order.stage("_taken");
  const Expr slot = select(is_taken && key > limit.key, above, is_taken && equals < limit.equals,
                           order.k - limit.equals + equals, order.k);
  taken(order.vars) = 0;
  taken(order.at(Halide::clamp(slot, 0, order.k))) = place;
  return taken;
}

/// Elements to be put in order: `count` keys, and which place of the axis each has.
struct Unordered {
  Func keys;
  Expr count;
  std::function<Expr(const Expr& element)> place;
};

/// The places of the axis in order, by how many elements come before each.
Func define_ranked(const TopKOrder& order, const Unordered& elements) {
  const RDom others = open_reduction_domain({elements.count});
  const Expr element = order.vars[order.position];
  const Expr own = elements.keys(order.vars);
  const Expr other = elements.keys(order.at(others[0]));
  Func rank = order.stage("_rank");
  rank(order.vars) = 0;
  rank(order.vars) += cast<std::int32_t>(other > own || (other == own && others[0] < element));

  Func sorted = order.stage("_sorted");
  const RDom all = open_reduction_domain({elements.count});
  sorted(order.vars) = 0;
  sorted(order.at(Halide::clamp(rank(order.at(all[0])), 0, order.k))) = elements.place(all[0]);
  return sorted;
}

/// The same by digits, the last first: a pass puts the elements of each digit one after another, in the order that they had.
/// Its first places are counters, where the next element of a digit goes.
Func define_by_passes(const TopKOrder& order, const Unordered& elements) {
  const int digits = elements.keys.type().bits() / digit_bits;
  std::function<Expr(const Expr&)> element_at = [](const Expr& place) { return place; };
  for (int digit = digits - 1; digit >= 0; --digit) {
    const int shift = digit_bits * (digits - 1 - digit);
    const std::string suffix = "_pass_" + std::to_string(digit);
    const auto digit_at = [&](const Expr& element) {
      return digit_of(elements.keys(order.at(element)), shift);
    };
    const Func above = counts_from_above(order, suffix, elements.count, digit_at);
    const Expr place = order.vars[order.position];
    Func moved = order.stage(suffix);
    moved(order.vars) = select(place < digits_of, above(order.at(Halide::min(place, digits_of - 1) + 1)), 0);
    const RDom places = open_reduction_domain({elements.count});
    const Expr element = element_at(places[0]);
    const Expr own = digit_at(element);
    const Expr next = moved(order.at(own));
    moved(order.at(Halide::scatter(digits_of + Halide::clamp(next, 0, elements.count - 1), own))) =
        Halide::gather(element, next + 1);
    element_at = [&order, &elements, moved](const Expr& at) {
      return Halide::clamp(moved(order.at(digits_of + at)), 0, elements.count - 1);
    };
  }
  Func sorted = order.stage("_sorted");
  sorted(order.vars) = elements.place(element_at(order.vars[order.position]));
  return sorted;
}

/// The k first of all.
Unordered define_selected(const TopKOrder& order, const Func& keys) {
  Limit limit{Halide::Internal::make_zero(keys.type()), order.k};
  const int digits = keys.type().bits() / digit_bits;
  for (int digit = 0; digit < digits; ++digit) limit = next_digit(order, keys, limit, digit);
  const Func taken = define_taken(order, keys, limit);
  const auto place = [&order, taken](const Expr& element) {
    return Halide::clamp(taken(order.at(element)), 0, order.count - 1);
  };
  Func chosen = order.stage("_chosen_steps");
  chosen(order.vars) = keys(order.at(place(order.vars[order.position])));
  return {chosen, order.k, place};
}

/// What is put in order, and how.
struct Sorting {
  bool selects = true;  ///< the k first are found before; else all are put in order
  bool ranks = true;
};

void define_sorted(const TopKOrder& order, const Sorting& how) {
  const Expr own = order.key(order.vars[order.position]);
  Func keys = order.stage("_keys_steps");
  keys(order.vars) = to_unsigned(own, order.largest);
  const Unordered elements = how.selects
                                 ? define_selected(order, keys)
                                 : Unordered{keys, order.count, [](const Expr& element) { return element; }};
  const Func sorted = how.ranks ? define_ranked(order, elements) : define_by_passes(order, elements);
  const Expr index = Halide::clamp(sorted(order.vars), 0, order.count - 1);
  order.define(from_unsigned(keys(order.at(index)), own.type(), order.largest), index);
}

/// Do the largest of strips stand for rows? Where there are many strips, or may be.
bool has_long_rows(const TopKOrder& order) {
  constexpr std::int64_t long_row = 1024;
  const Extent& count = order.builder.type(order.in).shape.at(order.axis);
  return order.type.shape.at(order.axis).known() > 1 && (!count.is_known() || count.known() >= long_row);
}

/// Known few choices of rows that lie in memory one after another, of keys that a word of 64 bits has beside a place.
bool is_by_maxima(const TopKOrder& order) {
  constexpr std::int64_t most_choices = 24, most_of_strips = 50;
  constexpr std::int64_t few = 2 * std::int64_t{lanes_of_maxima};
  if (DeviceMath::is_used() || order.position != 0) return false;
  const Extent& count = order.builder.type(order.in).shape.at(order.axis);
  const Extent& k = order.type.shape.at(order.axis);
  if (!k.is_known() || k.known() < 1 || (count.is_known() && count.known() <= few) ||
      k.known() > (has_long_rows(order) && count.is_known() ? most_of_strips : most_choices))
    return false;
  return order.key(Expr(0)).type().bits() <= 32;
}

/// Steps of ranking so many elements, each of some nanoseconds.
std::int64_t steps_of_ranks(std::int64_t count) {
  constexpr std::int64_t lanes = 16, at_least = 100;
  return at_least + count * count / lanes;
}

/// Which way of sorting takes fewer steps; nullopt where choices do. One thread of a GPU has a row for itself, and few of them.
std::optional<Sorting> sorting_of(const TopKOrder& order) {
  if (DeviceMath::is_used()) return std::nullopt;
  const auto steps_by_digits = [](std::int64_t count) { return 1000 + 9 * count; };  // to select, and to sort
  const Extent& count = order.builder.type(order.in).shape.at(order.axis);
  const Extent& k = order.type.shape.at(order.axis);
  if (!k.is_known()) return Sorting{.selects = false, .ranks = false};
  const std::int64_t of_ranks = steps_of_ranks(k.known());
  if (!count.is_known()) {
    if (k.known() <= 1) return std::nullopt;
    return Sorting{.selects = true, .ranks = of_ranks <= steps_by_digits(k.known())};
  }
  const std::int64_t of_digits = steps_by_digits(count.known());
  const std::int64_t of_all_ranks = steps_of_ranks(count.known());
  if (count.known() * k.known() <= std::min(of_all_ranks, of_digits)) return std::nullopt;
  if (of_all_ranks <= of_digits) return Sorting{.selects = false, .ranks = true};
  const bool selects =
      of_ranks < count.known() / 2;  // what it leaves takes less than sorting in place of selecting
  return Sorting{.selects = selects, .ranks = selects};
}

}  // namespace

void define_top_k(AlgorithmBuilder& builder, const Node& node) {
  const TopKOrder order{builder, node};
  const bool by_library = follows_library(order);
  const bool is_unsorted =
      by_library && Halide::Internal::is_const_one(Halide::Internal::simplify(is_left_unsorted(order)));
  if (is_by_maxima(order) && !is_unsorted) {
    const std::int64_t one_more =
        by_library ? 1 : 0;  // of equal ones beyond the last it says whether there are any
    return define_by_maxima(order, order.type.shape.at(order.axis).known() + one_more, has_long_rows(order));
  }
  if (by_library) return define_by_library(order);
  if (const std::optional<Sorting> how = sorting_of(order)) return define_sorted(order, *how);
  define_by_choices(order);
}

}  // namespace sylvite
