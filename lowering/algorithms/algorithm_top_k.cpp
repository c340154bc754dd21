#include <functional>
#include <optional>

#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/halide_types.h"
#include "lowering/algorithms/top_k_order.h"

// The k first elements along an axis, in order. Four formulations, equal to the bit:
//
// By maxima, for few choices of rows: elements are numbers (vN_keys_steps) in the order of keys and then of places, all different.
// A choice is the largest below the one before: in lanes (vN_lanes_0), and among these (vN_best_0). n*k steps of vectors. Of long
// rows the largest of strips of 32 elements (vN_strips) stand for them; in the strip of a choice the next one is looked for
// (vN_next_0). n + n*k/32 steps of vectors.
//
// By choices: stage vN_fold, whose update 0 is a pass over the axis for each choice. n*k steps.
//
// By a function (top_k_order.h): n steps of vectors, and some tens for each choice.
//
// By sorting, where many are chosen: elements are integers of the order, vN_keys_steps, largest first. Few are ranked: of each it is
// counted how many come before it (vN_rank), n*n steps of vectors; rows with equal ones among those chosen and the next one
// (vN_equals) go to the function where that is to break ties. Many are sorted by digits of 8 bits, the last first: digits are
// counted (vN_count_pass_3), counts are added from the largest digit down (vN_above_pass_3), and each element goes to the next place
// of its digit (vN_pass_3).

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

/// How many of the digits at all places are as large as a value, or larger; 0 beyond all.
Func counts_from_above(const TopKOrder& order, const std::string& suffix,
                       const std::function<Expr(const Expr& place)>& digit_at) {
  const RDom places = open_reduction_domain({order.count});
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

/// The first `kept` places of the axis in order, by how many elements come before each.
Func define_ranked(const TopKOrder& order, const Func& keys, const Expr& kept) {
  const RDom others = open_reduction_domain({order.count});
  const Expr element = order.vars[order.position];
  const Expr own = keys(order.vars);
  const Expr other = keys(order.at(others[0]));
  Func rank = order.stage("_rank");
  rank(order.vars) = 0;
  rank(order.vars) += cast<std::int32_t>(other > own || (other == own && others[0] < element));

  Func sorted = order.stage("_sorted");
  const RDom all = open_reduction_domain({order.count});
  sorted(order.vars) = 0;
  sorted(order.at(Halide::clamp(rank(order.at(all[0])), 0, kept))) = all[0];
  return sorted;
}

/// The same by digits, the last first: a pass puts the elements of each digit one after another, in the order that they had.
/// Its first places are counters, where the next element of a digit goes.
Func define_by_passes(const TopKOrder& order, const Func& keys) {
  const int digits = keys.type().bits() / digit_bits;
  std::function<Expr(const Expr&)> element_at = [](const Expr& place) { return place; };
  for (int digit = digits - 1; digit >= 0; --digit) {
    const int shift = digit_bits * (digits - 1 - digit);
    const std::string suffix = "_pass_" + std::to_string(digit);
    const auto digit_at = [&](const Expr& element) { return digit_of(keys(order.at(element)), shift); };
    const Func above = counts_from_above(order, suffix, digit_at);
    const Expr place = order.vars[order.position];
    Func moved = order.stage(suffix);
    moved(order.vars) = select(place < digits_of, above(order.at(Halide::min(place, digits_of - 1) + 1)), 0);
    const RDom places = open_reduction_domain({order.count});
    const Expr element = element_at(places[0]);
    const Expr own = digit_at(element);
    const Expr next = moved(order.at(own));
    moved(order.at(Halide::scatter(digits_of + Halide::clamp(next, 0, order.count - 1), own))) =
        Halide::gather(element, next + 1);
    element_at = [&order, moved](const Expr& at) {
      return Halide::clamp(moved(order.at(digits_of + at)), 0, order.count - 1);
    };
  }
  Func sorted = order.stage("_sorted");
  sorted(order.vars) = element_at(order.vars[order.position]);
  return sorted;
}

enum class Way { choices, function, ranks, digits };

void define_sorted(const TopKOrder& order, Way way) {
  const Expr own = order.key(order.vars[order.position]);
  Func keys = order.stage("_keys_steps");
  keys(order.vars) = to_unsigned(own, order.largest);
  const Func sorted = way == Way::ranks ? define_ranked(order, keys, order.k) : define_by_passes(order, keys);
  const Expr index = Halide::clamp(sorted(order.vars), 0, order.count - 1);
  order.define(from_unsigned(keys(order.at(index)), own.type(), order.largest), index);
}

/// Ranks, and the function for rows with equal elements among those chosen and the next one.
void define_ranked_by_library(const TopKOrder& order) {
  const Expr own = order.key(order.vars[order.position]);
  Func keys = order.stage("_keys_steps");
  keys(order.vars) = cast(Halide::UInt(std::max(32, own.type().bits())), to_unsigned(own, order.largest));
  const Func sorted = define_ranked(order, keys, order.k + 1);
  const auto place_at = [&](const Expr& slot) {
    return Halide::clamp(sorted(order.at(slot)), 0, order.count - 1);
  };
  const RDom chosen = open_reduction_domain({order.k});
  const Expr next = chosen[0] + 1;
  const Expr is_equal = keys(order.at(place_at(Expr(chosen[0])))) == keys(order.at(place_at(next)));
  const std::vector<Var> rows = order.rows();
  Func equals = order.stage("_equals");
  equals(rows) = 0;
  equals(rows) += cast<std::int32_t>(next < order.count && is_equal);
  const Expr is_needed = equals(rows) > 0 || is_left_unsorted(order);
  const Expr place =
      select(is_needed, place_by_library(order, keys, is_needed), place_at(order.vars[order.position]));
  order.define(
      from_unsigned(cast(Halide::UInt(own.type().bits()), keys(order.at(place))), own.type(), order.largest),
      place);
}

/// By maxima of all elements: what one row may take, choices times elements.
constexpr std::int64_t most_steps = 4096;

/// Do the largest of strips stand for rows? Where there are many strips, or may be, and where all elements would take too long.
bool has_long_rows(const TopKOrder& order) {
  constexpr std::int64_t long_row = 1024;
  const Extent& count = order.builder.type(order.in).shape.at(order.axis);
  const std::int64_t k = order.type.shape.at(order.axis).known();
  if (k <= 1 || !count.is_known()) return k > 1;
  return count.known() >= long_row || (!follows_library(order) && k * count.known() > most_steps);
}

constexpr std::int64_t few_ranked = 2 * std::int64_t{lanes_of_maxima};

/// Ranks take steps for each pair of elements of such rows, maxima for each choice.
bool is_ranked_by_library(const TopKOrder& order) {
  const Extent& count = order.builder.type(order.in).shape.at(order.axis);
  const Extent& k = order.type.shape.at(order.axis);
  if (order.position != 0 || !count.is_known() || count.known() > few_ranked || !k.is_known()) return false;
  constexpr std::int64_t of_row = 100, of_pair = 4, of_choice = 320;  // tenths of nanoseconds
  return of_row + count.known() * count.known() * of_pair <= (k.known() + 1) * of_choice;
}

/// Known few choices of rows that lie in memory one after another, of keys that a word of 64 bits has beside a place. Where a
/// library's order of equal elements is wanted, the function takes more steps than these.
bool is_by_maxima(const TopKOrder& order) {
  constexpr std::int64_t most_choices = 24, most_of_strips = 10, most_by_library = 50;
  if (DeviceMath::is_used() || order.position != 0) return false;
  const Extent& count = order.builder.type(order.in).shape.at(order.axis);
  const Extent& k = order.type.shape.at(order.axis);
  const bool is_ranked = count.is_known() && count.known() <= few_ranked && !follows_library(order);
  if (!k.is_known() || k.known() < 1 || is_ranked) return false;
  if (order.key(Expr(0)).type().bits() > 32) return false;
  const bool has_strips = has_long_rows(order);
  if (follows_library(order))
    return k.known() <= (has_strips && count.is_known() ? most_by_library : most_choices);
  return has_strips ? k.known() <= most_of_strips
                    : k.known() <= most_choices && k.known() * count.known() <= most_steps;
}

/// Tenths of nanoseconds that one row takes. Where rows lie across lines of memory, choices of many are made at once, and the function
/// has to gather its elements.
struct RowTimes {
  std::int64_t choices = 0, function = 0, ranks = 0, digits = 0;
};

RowTimes row_times(const TopKOrder& order, std::int64_t count, std::int64_t k) {
  constexpr std::int64_t lanes = 16;
  std::int64_t across = 1;
  for (std::size_t i = order.axis + 1; i < order.type.shape.size(); ++i)
    across *= order.type.shape[i].is_known() ? order.type.shape[i].known() : lanes;
  const std::int64_t of_choice = across < lanes ? 28 : 4;
  const std::int64_t of_element = across == 1 ? 5 : across <= lanes ? 20 : 90;
  return {count * k * of_choice, 2500 + count * of_element + k * 300, 400 + count * count * 10 / lanes,
          10000 + count * 90};
}

/// The way that takes the least time. One thread of a GPU has a row for itself, and few of them.
Way way_of(const TopKOrder& order) {
  if (DeviceMath::is_used()) return Way::choices;
  const Extent& count = order.builder.type(order.in).shape.at(order.axis);
  const Extent& k = order.type.shape.at(order.axis);
  if (!k.is_known()) return Way::digits;
  if (!count.is_known()) return k.known() <= 1 ? Way::choices : Way::function;
  const RowTimes times = row_times(order, count.known(), k.known());
  if (times.choices <= std::min({times.function, times.ranks, times.digits})) return Way::choices;
  if (times.ranks <= std::min(times.function, times.digits)) return Way::ranks;
  return times.function <= times.digits ? Way::function : Way::digits;
}

}  // namespace

void define_top_k(AlgorithmBuilder& builder, const Node& node) {
  const TopKOrder order{builder, node};
  const bool by_library = follows_library(order);
  const bool is_unsorted =
      by_library && Halide::Internal::is_const_one(Halide::Internal::simplify(is_left_unsorted(order)));
  if (by_library && !is_unsorted && is_ranked_by_library(order)) return define_ranked_by_library(order);
  if (is_by_maxima(order) && !is_unsorted) {
    const std::int64_t one_more =
        by_library ? 1 : 0;  // of equal ones beyond the last it says whether there are any
    return define_by_maxima(order, order.type.shape.at(order.axis).known() + one_more, has_long_rows(order));
  }
  const Way way = by_library ? Way::function : way_of(order);
  if (way == Way::function) return define_by_function(order);
  if (way == Way::choices) return define_by_choices(order);
  define_sorted(order, way);
}

}  // namespace sylvite
