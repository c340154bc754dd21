// The K first of every row of COUNT elements, in their order: values and indices. An element and its place are one number of 64
// bits, or of 96, larger where it comes first, so that no two are alike. Unless all of a row is sorted, its K-th number is found digit by
// digit, by counts of 8 bits; what is not below it is kept. What is kept lies in shared memory, or, of long rows, where the indices
// are written, and is sorted by flips and halvings: pairs beyond the end are left alone, as nothing would move there.
// Of few, the K-th of the largest numbers of 4 K and more groups of elements is none of those behind the K-th of the row: what is
// not below it is mostly little, and put in order by counting what lies above each. Where it is more, digits are counted.
//
// schedules/cuda/top_k.cpp writes these ahead of this text:
//   COUNT, K, INNER, ROWS     elements of a row, those taken; elements from one of a row to its next; rows
//   THREADS, ROWS_OF_BLOCK    threads of a row, a multiple of 32; rows of a block
//   SORTS_ALL, IS_SHARED      is a row sorted whole; does what is kept lie in shared memory
//   GROUPS                    of elements, where few are taken by bounds of theirs; else 0
//   LARGEST, KEY_DIGITS       are the largest first; digits of an element that are not alike
//   IS_FLOAT, IS_SIGNED       what elements are
//   Number                    u64, or Wide: of elements of 64 bits, which are kept in shared memory
//   In; Arguments: pointers values, indices, x

constexpr int KEY_BITS = sizeof(Number) == 8 ? 32 : 64, NUMBER_BITS = KEY_BITS + 32;
constexpr int KEPT = SORTS_ALL ? COUNT : K, DIGIT = 8, DIGITS = 1 << DIGIT, LANES = 32;
constexpr int PLACE_DIGITS = COUNT <= 1 << 8 ? 1 : COUNT <= 1 << 16 ? 2 : COUNT <= 1 << 24 ? 3 : 4;

constexpr bool TAKES_FEW = GROUPS > 0;

struct Few {
  Number largest[TAKES_FEW ? GROUPS : 1], kept[TAKES_FEW ? GROUPS : 1], least;
  int taken;
};

struct Search {
  int counts[DIGITS];
  Number known;  // the K-th number's digits so far
  int left, taken, is_found;
};

// What is asked of numbers: the larger comes first.
DEVICE void set_number(u64& n, u64 key, u32 place) {
  n = key << 32 | place;
}
DEVICE void set_number(Wide& n, u64 key, u32 place) {
  n = {key, place};
}
DEVICE bool is_less(u64 a, u64 b) {
  return a < b;
}
DEVICE bool is_less(Wide a, Wide b) {
  return a.key != b.key ? a.key < b.key : a.place < b.place;
}
DEVICE u64 of_lane(u64 n, int apart) {
  return __shfl_xor_sync(~0u, n, apart);
}
DEVICE Wide of_lane(Wide n, int apart) {
  return {__shfl_xor_sync(~0u, n.key, apart), __shfl_xor_sync(~0u, n.place, apart)};
}
DEVICE u32 low_part(u64 n) {
  return (u32)n;
}
DEVICE u32 low_part(Wide n) {
  return n.place;
}
DEVICE int digit_at(u64 n, int shift) {
  return (int)(n >> shift) & (DIGITS - 1);
}
DEVICE int digit_at(Wide n, int shift) {
  return (int)(shift < 32 ? n.place >> shift : (u32)(n.key >> (shift - 32))) & (DIGITS - 1);
}
DEVICE void set_bits(u64& n, u32 bits, int shift) {
  n |= (u64)bits << shift;
}
DEVICE void set_bits(Wide& n, u32 bits, int shift) {
  if (shift < 32) n.place |= bits << shift;
  else n.key |= (u64)bits << (shift - 32);
}
/// Do they share the digits above that at `shift`? REQUIRES that it is not the first.
DEVICE bool share_above(u64 a, u64 b, int shift) {
  return ((a ^ b) >> shift >> DIGIT) == 0;
}
DEVICE bool share_above(Wide a, Wide b, int shift) {
  if (shift >= 32) return ((a.key ^ b.key) >> (shift - 32) >> DIGIT) == 0;
  return a.key == b.key && ((a.place ^ b.place) >> shift >> DIGIT) == 0;
}

/// NaN is the largest, and zeros are alike.
template <class T>
DEVICE u64 key_of(T x) {
  if constexpr (IS_FLOAT) {
    const float v = to_float(x);
    const u32 bits = v == 0.f ? 0 : __float_as_uint(v);
    return v != v ? ~0u : (bits >> 31) != 0 ? ~bits : bits | 1u << 31;
  } else {
    const u64 sign = IS_SIGNED ? 1ull << 63 : 0;
    return (((u64)x << (64 - 8 * sizeof(T))) ^ sign) >> (64 - KEY_BITS);
  }
}
DEVICE Number number_of(const In* row, int place) {
  constexpr u64 used = (~0ull << (KEY_BITS - KEY_DIGITS * DIGIT)) & ~0ull >> (64 - KEY_BITS);
  const u64 key = key_of(row[(long long)place * INNER]);
  Number number;
  set_number(number, (LARGEST ? key : ~key) & used, ~(u32)place);
  return number;
}

/// Lets the digit at `shift` of the K-th number be known; a warp does.
DEVICE void find_digit(Search& search, int shift, int lane) {
  constexpr int OWN = DIGITS / LANES;
  int own = 0;
  for (int i = 0; i < OWN; i++) own += search.counts[DIGITS - 1 - lane * OWN - i];
  int upto = own;
#pragma unroll
  for (int step = 1; step < LANES; step *= 2) {
    const int other = __shfl_up_sync(~0u, upto, step);
    if (lane >= step) upto += other;
  }
  const int left = search.left;
  int before = upto - own;
  __syncwarp();
  if (before >= left || upto < left) return;
  for (int i = 0; i < OWN; i++) {
    const int digit = DIGITS - 1 - lane * OWN - i, count = search.counts[digit];
    if (before + count < left) {
      before += count;
      continue;
    }
    set_bits(search.known, digit, shift);
    search.left = left - before;
    search.is_found = count == left - before;
    return;
  }
}

/// Counts a digit of the numbers that share those above it.
DEVICE void count_digit(Search& search, const In* row, int shift, int thread, int lane) {
  const Number known = search.known;
  for (int first = 0; first < COUNT; first += THREADS) {
    const int place = first + thread;
    const Number number = place < COUNT ? number_of(row, place) : Number{};
    const bool counts = place < COUNT && (shift == NUMBER_BITS - DIGIT || share_above(number, known, shift));
    const int digit = digit_at(number, shift);
    const unsigned alike = __match_any_sync(~0u, counts ? digit : DIGITS);
    if (counts && lane == __ffs(alike) - 1) atomicAdd(&search.counts[digit], __popc(alike));
  }
}

/// One digit more of the K-th number; true when all rows of the block know enough.
DEVICE bool step_search(Search& search, const In* row, int shift, int thread, int lane) {
  for (int i = thread; i < DIGITS; i += THREADS) search.counts[i] = 0;
  __syncthreads();
  count_digit(search, row, shift, thread, lane);
  __syncthreads();
  if (thread < LANES) find_digit(search, shift, lane);
  __syncthreads();
  return __syncthreads_and(search.is_found);
}

template <int STRIDE>
DEVICE void keep(Search& search, const In* row, Number* kept, int thread, int lane) {
  if (SORTS_ALL) {
    for (int place = thread; place < COUNT; place += THREADS)
      kept[(long long)place * STRIDE] = number_of(row, place);
    __syncthreads();
    return;
  }
  if (thread == 0) search.known = Number{}, search.left = K, search.taken = 0, search.is_found = 0;
  int shift = NUMBER_BITS - DIGIT;
  bool done = false;
  for (int i = 0; i < KEY_DIGITS && !done; i++, shift -= DIGIT)
    done = step_search(search, row, shift, thread, lane);
  if (!done) {
    shift = PLACE_DIGITS * DIGIT - DIGIT;
    if (thread == 0 && PLACE_DIGITS < 4) set_bits(search.known, ~0u << (PLACE_DIGITS * DIGIT % 32), 0);
  }
  for (int i = 0; i < PLACE_DIGITS && !done; i++, shift -= DIGIT)
    done = step_search(search, row, shift, thread, lane);
  const Number least = search.known;
  for (int place = thread; place < COUNT; place += THREADS) {
    const Number number = number_of(row, place);
    if (!is_less(number, least)) {
      const int at = atomicAdd(&search.taken, 1);
      if (at < K) kept[(long long)at * STRIDE] = number;
    }
  }
  __syncthreads();
}

template <int STRIDE>
DEVICE void order_pair(Number* kept, int a, int b) {
  if (b >= KEPT) return;
  Number &first = kept[(long long)a * STRIDE], &second = kept[(long long)b * STRIDE];
  const Number x = first, y = second;
  if (is_less(x, y)) first = y, second = x;
}

template <int STRIDE>
DEVICE void sort_kept(Number* kept, int thread) {
  int half = 1, pairs = 1;
  while (2 * pairs < KEPT) pairs *= 2;
  for (; half < KEPT; half *= 2) {
    for (int i = thread; i < pairs; i += THREADS) {
      const int first = i / half * half * 2, at = i % half;
      order_pair<STRIDE>(kept, first + at, first + 2 * half - 1 - at);
    }
    __syncthreads();
    for (int step = half / 2; step > 0; step /= 2) {
      for (int i = thread; i < pairs; i += THREADS) {
        const int at = i / step * step * 2 + i % step;
        order_pair<STRIDE>(kept, at, at + step);
      }
      __syncthreads();
    }
  }
}

DEVICE void write_out(const Arguments& arguments, const In* row, Number number, long long out, int at) {
  const u32 place = ~low_part(number);
  arguments.values[out + (long long)at * INNER] = row[(long long)place * INNER];
  arguments.indices[out + (long long)at * INNER] = place;
}

/// Writes the K first by a bound of the groups' largest; false where more than GROUPS reach it in a row of the block.
DEVICE bool take_few(Few& few, const Arguments& arguments, const In* row, long long out, bool writes, int thread) {
  constexpr int OF_GROUP = TAKES_FEW ? THREADS / GROUPS : 1;
  Number largest{};  // none is as small
#pragma unroll 8
  for (int place = thread; place < COUNT; place += THREADS) {
    const Number number = number_of(row, place);
    if (is_less(largest, number)) largest = number;
  }
#pragma unroll
  for (int apart = OF_GROUP / 2; apart > 0; apart /= 2) {
    const Number other = of_lane(largest, apart);
    if (is_less(largest, other)) largest = other;
  }
  if (thread % OF_GROUP == 0) few.largest[thread / OF_GROUP] = largest;
  if (thread == 0) few.taken = 0;
  __syncthreads();
  if (thread < GROUPS) {
    const Number own = few.largest[thread];
    int before = 0;
#pragma unroll 8
    for (int i = 0; i < GROUPS; i++) before += is_less(own, few.largest[i]);
    if (before == K - 1) few.least = own;
  }
  __syncthreads();
  const Number least = few.least;
#pragma unroll 8
  for (int place = thread; place < COUNT; place += THREADS) {
    const Number number = number_of(row, place);
    if (is_less(number, least)) continue;
    const int at = atomicAdd(&few.taken, 1);
    if (at < GROUPS) few.kept[at] = number;
  }
  __syncthreads();
  const int taken = few.taken;
  if (__syncthreads_or(taken > GROUPS)) return false;
  if (thread < taken && writes) {
    const Number own = few.kept[thread];
    int before = 0;
    for (int i = 0; i < taken; i++) before += is_less(own, few.kept[i]);
    if (before < K) write_out(arguments, row, own, out, before);
  }
  return true;
}

template <int STRIDE>
DEVICE void take(Search& search, const Arguments& arguments, const In* row, Number* kept, long long out,
                 bool writes, int thread, int lane) {
  keep<STRIDE>(search, row, kept, thread, lane);
  sort_kept<STRIDE>(kept, thread);
  for (int i = thread; i < K && writes; i += THREADS)
    write_out(arguments, row, kept[(long long)i * STRIDE], out, i);
}

extern "C" __global__ void __launch_bounds__(THREADS* ROWS_OF_BLOCK) KERNEL(const Arguments arguments) {
  __shared__ Search searches[SORTS_ALL ? 1 : ROWS_OF_BLOCK];
  __shared__ Number shared[IS_SHARED ? ROWS_OF_BLOCK : 1][IS_SHARED ? KEPT : 1];
  allow_next_kernel();
  const int own = threadIdx.x / THREADS, thread = threadIdx.x % THREADS, lane = threadIdx.x % LANES;
  const long long wanted = (long long)blockIdx.x * ROWS_OF_BLOCK + own,
                  at = wanted < ROWS ? wanted : ROWS - 1;
  const long long outer = at / INNER, inner = at % INNER, out = outer * K * INNER + inner;
  const In* row = arguments.x + outer * COUNT * INNER + inner;
  Search& search = searches[SORTS_ALL ? 0 : own];
  wait_previous_kernels();
  if constexpr (TAKES_FEW) {
    __shared__ Few few[ROWS_OF_BLOCK];
    if (take_few(few[own], arguments, row, out, wanted < ROWS, thread)) return;
  }
  if constexpr (IS_SHARED)
    take<1>(search, arguments, row, shared[own], out, wanted < ROWS, thread, lane);
  else
    take<INNER>(search, arguments, row, (Number*)(arguments.indices + out), out, true, thread, lane);
}
