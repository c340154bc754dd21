// Reference semantics of reductions, scans and orderings.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "frontend/ops/evaluate.h"
#include "frontend/ops/top_k_ties.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

template <typename C>
bool is_nan(C value) {
  return value != value;
}

/// What folding nothing gives: 0, 1, or the value that every other one replaces.
double fold_start(Op op, DType dtype, double) {
  (void)dtype;
  switch (op) {
    case Op::reduce_prod:
    case Op::cumprod:
      return 1;
    case Op::reduce_max:
      return -std::numeric_limits<double>::infinity();
    case Op::reduce_min:
      return std::numeric_limits<double>::infinity();
    default:
      return 0;
  }
}

template <typename C>
C fold_start(Op op, DType dtype, C) {
  if (op == Op::reduce_prod || op == Op::cumprod) return C{1};
  if (op != Op::reduce_max && op != Op::reduce_min) return C{0};
  return with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      return static_cast<C>(op == Op::reduce_max ? Limits::min() : Limits::max());
    } else {
      return C{0};
    }
  });
}

/// acc = acc op value, lane by lane.
template <typename C>
void fold_row(Op op, C* acc, const C* values, std::int64_t count) {
  const auto each = [&](auto combine) {
    for (std::int64_t i = 0; i < count; ++i) acc[i] = combine(acc[i], values[i]);
  };
  switch (op) {
    case Op::reduce_prod:
    case Op::cumprod:
      return each([](C a, C b) {
        if constexpr (std::is_integral_v<C>)
          return static_cast<C>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
        else
          return a * b;
      });
    case Op::reduce_max:
      return each([](C a, C b) { return is_nan(a) || a > b ? a : b; });
    case Op::reduce_min:
      return each([](C a, C b) { return is_nan(a) || a < b ? a : b; });
    default:
      return each([](C a, C b) {
        if constexpr (std::is_integral_v<C>)
          return static_cast<C>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
        else
          return a + b;
      });
  }
}

template <typename C>
Tensor reduce(Op op, const Tensor& input, const std::vector<std::int64_t>& axes, const TensorType& type) {
  const std::vector<C> values = decode<C>(input);
  std::vector<C> folded(static_cast<std::size_t>(type.element_count()), fold_start(op, input.dtype(), C{}));
  // Strides of the result as seen from the input: 0 along reduced axes.
  const std::size_t rank = input.dims().size();
  Dims strides(rank, 0);
  std::int64_t stride = 1;
  for (std::size_t i = rank; i-- > 0;) {
    if (std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i))) continue;
    strides[i] = stride;
    stride *= input.dims()[i];
  }
  const std::int64_t row = rank == 0 ? 1 : input.dims().back();
  const bool row_is_reduced = rank > 0 && strides.back() == 0;
  const std::int64_t rows = row == 0 ? 0 : input.size() / row;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t target = 0;
    std::int64_t rest = r;
    for (std::size_t i = rank > 0 ? rank - 1 : 0; i-- > 0; rest /= input.dims()[i])
      target += rest % input.dims()[i] * strides[i];
    const C* source = values.data() + r * row;
    C* acc = folded.data() + target;
    if (!row_is_reduced) {
      fold_row(op, acc, source, row);
      continue;
    }
    for (std::int64_t i = 0; i < row; ++i) fold_row(op, acc, source + i, 1);
  }
  return encode(type.dtype, type.dims(), folded);
}

template <typename C>
Tensor scan(Op op, const Tensor& input, const Attributes& attributes) {
  std::vector<C> values = decode<C>(input);
  const AxisView view = view_axis(input.dims(), attributes.integer("axis"));
  const bool exclusive = attributes.integer("exclusive") != 0;
  const bool reverse = attributes.integer("reverse") != 0;
  std::vector<C> acc(static_cast<std::size_t>(view.inner));
  std::vector<C> kept(static_cast<std::size_t>(view.inner));
  for (std::int64_t outer = 0; outer < view.outer; ++outer) {
    std::fill(acc.begin(), acc.end(), fold_start(op, input.dtype(), C{}));
    for (std::int64_t step = 0; step < view.extent; ++step) {
      const std::int64_t i = reverse ? view.extent - 1 - step : step;
      C* row = values.data() + (outer * view.extent + i) * view.inner;
      if (exclusive) std::copy(acc.begin(), acc.end(), kept.begin());
      fold_row(op, acc.data(), row, view.inner);
      const std::vector<C>& result = exclusive ? kept : acc;
      std::copy(result.begin(), result.end(), row);
    }
  }
  return encode(input.dtype(), input.dims(), values);
}

/// Orders values with NaN above all.
template <typename C>
bool below(C a, C b) {
  return a < b || (!is_nan(a) && is_nan(b));
}

/// As numpy: a NaN is the largest and the smallest.
template <typename C>
std::int64_t choose(const C* values, const AxisView& view, bool largest, bool last) {
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < view.extent; ++i) {
    const C candidate = values[i * view.inner];
    const C champion = values[best * view.inner];
    const bool is_first_nan = is_nan(candidate) && !is_nan(champion);
    const bool better = is_first_nan || (largest ? candidate > champion : candidate < champion);
    const bool equal = candidate == champion || (is_nan(candidate) && is_nan(champion));
    if (better || (equal && last)) best = i;
  }
  return best;
}

/// As torch's kthvalue on a CPU: partitions about the middle one of three.
template <typename Before>
void put_nth_as_torch(std::vector<std::int64_t>& order, std::ptrdiff_t nth, Before comes_before) {
  auto first = order.begin();
  auto last = order.end() - 1;
  const auto kth = first + nth;
  const auto put_in_order = [&](auto a, auto b) {
    if (comes_before(*b, *a)) std::iter_swap(a, b);
  };
  while (last - first > 1) {
    std::iter_swap(first + (last - first) / 2, first + 1);
    put_in_order(first + 1, last);
    put_in_order(first, last);
    put_in_order(first + 1, first);
    const std::int64_t pivot = *first;
    auto up = first + 2;
    auto down = last - 1;
    while (true) {
      while (comes_before(*up, pivot)) ++up;
      while (comes_before(pivot, *down)) --down;
      if (down < up) break;
      std::iter_swap(up++, down--);
    }
    std::iter_swap(first, down);
    if (down <= kth) first = up;
    if (down >= kth) last = down - 1;
  }
  if (last - first == 1) put_in_order(first, last);
}

/// As torch's topk on a CPU.
template <typename Before>
void put_first_by_library(std::vector<std::int64_t>& order, std::int64_t k, bool is_sorted,
                          Before comes_before) {
  constexpr std::int64_t of_heap = 64;
  if (k * of_heap <= std::ssize(order)) {
    std::partial_sort(order.begin(), order.begin() + k, order.end(), comes_before);
    return;
  }
  std::nth_element(order.begin(), order.begin() + k - 1, order.end(), comes_before);
  if (is_sorted) std::sort(order.begin(), order.begin() + k - 1, comes_before);
}

}  // namespace

OutputTensors evaluate_reduce(Op op, InputTensors inputs, const Attributes& attributes, ResultTypes types) {
  return {with_arithmetic(inputs[0]->dtype(), [&](auto zero) {
    return reduce<decltype(zero)>(op, *inputs[0], attributes.integers("axes"), types[0]);
  })};
}

OutputTensors evaluate_arg_reduce(Op op, InputTensors inputs, const Attributes& attributes,
                                  ResultTypes types) {
  Tensor result(DType::i64, types[0].dims());
  const AxisView view = view_axis(inputs[0]->dims(), attributes.integer("axis"));
  const bool last = attributes.integer("select_last") != 0;
  const std::span<std::int64_t> out = result.mutable_view<std::int64_t>();
  with_arithmetic(inputs[0]->dtype(), [&](auto zero) {
    const auto values = decode<decltype(zero)>(*inputs[0]);
    for (std::int64_t i = 0; i < result.size(); ++i) {
      const std::int64_t start = i / view.inner * view.extent * view.inner + i % view.inner;
      out[static_cast<std::size_t>(i)] = choose(values.data() + start, view, op == Op::arg_max, last);
    }
  });
  return {result};
}

OutputTensors evaluate_scan(Op op, InputTensors inputs, const Attributes& attributes, ResultTypes) {
  return {with_arithmetic(inputs[0]->dtype(),
                          [&](auto zero) { return scan<decltype(zero)>(op, *inputs[0], attributes); })};
}

OutputTensors evaluate_top_k(Op, InputTensors inputs, const Attributes& attributes, ResultTypes types) {
  const Tensor& input = *inputs[0];
  const AxisView view = view_axis(input.dims(), attributes.integer("axis"));
  const std::int64_t k = attributes.integers("k")[0];
  const bool largest = attributes.integer("largest") != 0;
  const std::int64_t ties = attributes.integer("ties");
  Tensor indices(DType::i64, types[1].dims());
  const std::span<std::int64_t> index_out = indices.mutable_view<std::int64_t>();
  Tensor values = with_arithmetic(input.dtype(), [&](auto zero) {
    using C = decltype(zero);
    const std::vector<C> source = decode<C>(input);
    std::vector<C> chosen(index_out.size());
    std::vector<std::int64_t> order(static_cast<std::size_t>(view.extent));
    for (std::int64_t lane = 0; k > 0 && lane < view.outer * view.inner; ++lane) {
      const C* column = source.data() + lane / view.inner * view.extent * view.inner + lane % view.inner;
      std::iota(order.begin(), order.end(), 0);
      const auto comes_before = [&](std::int64_t a, std::int64_t b) {
        return below(column[(largest ? b : a) * view.inner], column[(largest ? a : b) * view.inner]);
      };
      if (ties == as_kth_value) {
        put_nth_as_torch(order, k - 1, comes_before);
      } else if (ties != first_of_equals) {
        put_first_by_library(order, k, ties == as_library, comes_before);
      } else {
        std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](std::int64_t a, std::int64_t b) {
          return comes_before(a, b) || (a < b && !comes_before(b, a));
        });
      }
      for (std::int64_t i = 0; i < k; ++i) {
        const auto at =
            static_cast<std::size_t>((lane / view.inner * k + i) * view.inner + lane % view.inner);
        index_out[at] = order[static_cast<std::size_t>(i)];
        chosen[at] = column[order[static_cast<std::size_t>(i)] * view.inner];
      }
    }
    return encode(input.dtype(), types[0].dims(), chosen);
  });
  return {values, indices};
}

}  // namespace sylvite
