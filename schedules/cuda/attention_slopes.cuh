// What both kernels of attention's gradients do with scores: where their tiles lie, masks, weights and slopes, and the logarithms of
// sums. A thread has the scores of two rows, 8 apart, as the tensor cores leave them: s[4 * i + 2 * r + e] is of row r and of column
// 8 * i + e from its first.
//
// Rows are queries and columns keys, or the other way round:
//   OF 0  the gradient by q: rows are queries; sum over keys of slope * k
//   OF 1  by k: rows are keys; sum over queries of slope * q
//   OF 2  by v: rows are keys; sum over queries of weight * gradient
//   OF 3  no gradient, but the logarithm of the sum of exp(score) of each query
// where weight = exp(score + mask - sums[query]) and slope = weight * (gradient v^T - products[query]) * scale.
//
// schedules/cuda/attention_gradient.cpp writes these ahead of this text:
//   HEADS
//   Extents, extents_of       extents: batch, rows, columns; mask_batch, mask_share, mask_period, mask_head, mask_row, how a
//                             mask lies
//   ROWS_IN_L2                of heads that are walked together, so that what they read stays in the L2 cache
//   DEPTH                     of a row
//   OF, CAUSAL, SCALE         SCALE has log2(e) in it
//   SUM_SCALE                 without it
//   BLOCK, WARPS              columns of a block; warps of a block of threads, of 16 rows each
//   STAGES                    blocks of columns that have a place in shared memory
//   BLOCKS_PER_MULTIPROCESSOR at least so many
//   MASKED, Mask              as in attention.cuh
//   FLAG_WORDS                words of a bit for each block of columns, of as many as there are at most
//   Element, Arguments        pointers: out, r1, r2, c1, c2, sums, products, mask; scores are r1 c1^T, what they change by r2 c2^T

constexpr int ROWS = 16 * WARPS, THREADS = 32 * WARPS;
constexpr bool ROWS_ARE_QUERIES = OF == 0 || OF == 3, HAS_SLOPES = OF < 2, HAS_SECOND = OF != 3;
constexpr int KNOWN_BYTES = BLOCK * 4;  // sums, or products, of a block of queries
constexpr float LOG2_E = 1.4426950408889634f;

typedef float Scores[BLOCK / 2];

struct Tile {
  int batch, head, row;
};
DEVICE int queries_of(const Extents& e) {
  return ROWS_ARE_QUERIES ? e.rows : e.columns;
}
// Causal: the longest first, in groups of heads.
DEVICE Tile tile_at(const Extents& e, int index) {
  const int tiles = (e.rows + ROWS - 1) / ROWS;
  const int group = max(1, ROWS_IN_L2 / (e.rows + e.columns));
  const int first = index / (group * tiles) * group, heads = min(group, e.batch * HEADS - first);
  const int r = index - first * tiles, head = first + r % heads, tile = r / heads;
  return {head / HEADS, head % HEADS, (CAUSAL && ROWS_ARE_QUERIES ? tiles - 1 - tile : tile) * ROWS};
}

/// Blocks of columns that a tile's rows see, from `begin` to before `end`.
struct Span {
  int begin, end;
};
DEVICE Span span_of(const Extents& e, const Tile& tile) {
  const int seen = CAUSAL && ROWS_ARE_QUERIES ? min(e.columns, tile.row + ROWS) : e.columns;
  return {CAUSAL && !ROWS_ARE_QUERIES ? min(tile.row, e.columns) / BLOCK : 0, (seen + BLOCK - 1) / BLOCK};
}
/// Whether no row of COUNT sees any column of a block, by order alone.
template <int COUNT>
DEVICE bool sees_none(int first_row, int first_column) {
  return CAUSAL && (ROWS_ARE_QUERIES ? first_column >= first_row + COUNT : first_column + BLOCK <= first_row);
}

DEVICE float exp2_fast(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
#define HIDDEN __int_as_float(0xff800000)  // minus infinity

DEVICE bool is_seen(const Extents& e, int row, int column) {
  if (column >= e.columns || row >= e.rows) return false;
  return !CAUSAL || (ROWS_ARE_QUERIES ? column <= row : row <= column);
}
DEVICE float masked(float score, u8 is_visible) {
  return is_visible ? score : HIDDEN;
}
template <class T>
DEVICE float masked(float score, T added) {
  return fmaf(LOG2_E, to_float(added), score);
}
/// A product as the exponent of two that it stands for, or HIDDEN. `mask`: of the tile's head.
DEVICE float score_of(const Extents& e, const Mask* mask, float product, int row, int column) {
  if (!is_seen(e, row, column)) return HIDDEN;
  if (!MASKED) return product * SCALE;
  const int query = ROWS_ARE_QUERIES ? row : column, key = ROWS_ARE_QUERIES ? column : row;
  return masked(product * SCALE, mask[(long long)query * e.mask_row + key]);
}

DEVICE const Mask* mask_of(const Extents& e, const Arguments& a, const Tile& tile) {
  return a.mask + (long long)(tile.batch / e.mask_share % e.mask_period) * e.mask_batch + (long long)tile.head * e.mask_head;
}

/// What a mask says of blocks of columns for all of a tile's rows, a bit each: whether one of them is hidden, and whether one is
/// seen. Blocks of which nothing is seen are left out, and of those that are seen whole the mask is not read again.
struct Flags {
  u32 hides[FLAG_WORDS], shows[FLAG_WORDS];
};
DEVICE bool is_set(const u32* flags, int block) {
  return flags[block / 32] >> block % 32 & 1;
}
/// Elements of a mask that all hide, or hide nothing, four bytes of them.
DEVICE u32 hiding(u8) { return 0; }
DEVICE u32 hiding(bf16) { return 0xff80ff80; }
DEVICE u32 hiding(f16) { return 0xfc00fc00; }
DEVICE u32 hiding(f32) { return 0xff800000; }
DEVICE u32 showing(u8) { return 0x01010101; }
template <class T>
DEVICE u32 showing(T) { return 0; }
DEVICE bool are_all(const uint4& words, u32 one) {
  return words.x == one && words.y == one && words.z == one && words.w == one;
}
/// `mask`: of the tile's head.
DEVICE void read_flags(const Extents& e, Flags& flags, const Mask* mask, const Tile& tile, int begin, int end) {
  constexpr int PIECE = 16 / sizeof(Mask), QUERY_ROWS = ROWS_ARE_QUERIES ? ROWS : BLOCK, KEYS = ROWS_ARE_QUERIES ? BLOCK : ROWS;
  constexpr int PIECES = KEYS / PIECE, ALL = QUERY_ROWS * PIECES;
  const int key_count = ROWS_ARE_QUERIES ? e.columns : e.rows;
  const bool is_aligned = ((u64)mask | e.mask_row * sizeof(Mask)) % 16 == 0;
  for (int i = threadIdx.x; i < FLAG_WORDS; i += THREADS) flags.hides[i] = flags.shows[i] = is_aligned ? 0 : ~0u;
  __syncthreads();
  for (int block = is_aligned ? begin : end; block < end; block++) {
    const int query = ROWS_ARE_QUERIES ? tile.row : block * BLOCK, key = ROWS_ARE_QUERIES ? block * BLOCK : tile.row;
    bool shows = true, hides = true;
#pragma unroll
    for (int i = 0; i < (ALL + THREADS - 1) / THREADS; i++) {
      const int at = i * THREADS + threadIdx.x, row = query + at / PIECES, column = key + at % PIECES * PIECE;
      if ((ALL % THREADS != 0 && at >= ALL) || row >= queries_of(e) || column >= key_count) continue;
      const bool is_whole = column + PIECE <= key_count;
      const uint4 words = is_whole ? __ldg((const uint4*)(mask + (long long)row * e.mask_row + column)) : make_uint4(1, 2, 3, 4);
      shows = shows && are_all(words, showing(Mask{}));
      hides = hides && are_all(words, hiding(Mask{}));
    }
    const bool all_show = __all_sync(~0u, shows), all_hide = __all_sync(~0u, hides);
    if (threadIdx.x % 32 == 0 && !all_show) atomicOr(&flags.hides[block / 32], 1u << block % 32);
    if (threadIdx.x % 32 == 0 && !all_hide) atomicOr(&flags.shows[block / 32], 1u << block % 32);
  }
  __syncthreads();
}

/// The first block from `block` on, before `end`, of which something is seen.
DEVICE int next_seen(const Flags& flags, int block, int end) {
  while (MASKED && block < end && !is_set(flags.shows, block)) block++;
  return block;
}

/// Whether a warp's rows see all columns of a block, but for the mask.
DEVICE bool sees_all(const Extents& e, int first_row, int first_column) {
  if (first_row + 16 > e.rows || first_column + BLOCK > e.columns) return false;
  return !CAUSAL || (ROWS_ARE_QUERIES ? first_column + BLOCK <= first_row + 1 : first_row + 15 <= first_column);
}

/// What is known of two queries: of a thread's rows, or of two of its columns.
struct Known {
  float sums[2], products[2];
};
DEVICE Known known_of_rows(const Extents& e, const Arguments& a, long long head, int row) {
  Known known = {};
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const long long at = head * queries_of(e) + min(row + 8 * r, queries_of(e) - 1);
    known.sums[r] = __ldg(a.sums + at);
    if constexpr (HAS_SLOPES) known.products[r] = __ldg(a.products + at);
  }
  return known;
}
/// Of the columns 8 j and 8 j + 1 from a thread's first, of a block whose queries are known at `at`.
DEVICE float2 sums_of_columns(u32 at, int j) {
  return read_shared_pair(at + 4 * (8 * j + threadIdx.x % 4 * 2));
}
DEVICE float2 products_of_columns(u32 at, int j) {
  return sums_of_columns(at + KNOWN_BYTES, j);
}

/// Scores become weights. `rows`: what is known of rows that are queries; `known_at`: of columns. IS_SEEN: every row sees every column.
template <bool IS_SEEN>
DEVICE void weigh(const Extents& extents, const Mask* mask, Scores& s, const Known& rows, u32 known_at, int row, int column) {
#pragma unroll
  for (int j = 0; j < BLOCK / 8; j++) {
    const float2 columns = ROWS_ARE_QUERIES ? float2{} : sums_of_columns(known_at, j);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int i = 4 * j + e;
      const float shift = -LOG2_E * (ROWS_ARE_QUERIES ? rows.sums[e / 2] : e % 2 == 0 ? columns.x : columns.y);
      if constexpr (IS_SEEN) {
        s[i] = exp2_fast(fmaf(s[i], SCALE, shift));
      } else {
        const float score = score_of(extents, mask, s[i], row + e / 2 * 8, column + 8 * j + e % 2);
        // Of scores as large as finite masks may be, the difference is rounded.
        s[i] = score > HIDDEN ? exp2_fast(fminf(score + shift, 0.f)) : 0.f;
      }
    }
  }
}
/// What changes by the scores becomes slopes, but for their scale.
DEVICE void turn_into_slopes(Scores& change, const Scores& weights, const Known& rows, u32 known_at) {
#pragma unroll
  for (int j = 0; j < BLOCK / 8; j++) {
    const float2 columns = ROWS_ARE_QUERIES ? float2{} : products_of_columns(known_at, j);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int i = 4 * j + e;
      const float product = ROWS_ARE_QUERIES ? rows.products[e / 2] : e % 2 == 0 ? columns.x : columns.y;
      change[i] = weights[i] == 0.f ? 0.f : weights[i] * (change[i] - product);
    }
  }
}

/// The highest score of a row so far, and the sum of the powers of the differences.
struct Totals {
  float max[2], sum[2];
};
template <bool IS_SEEN>
DEVICE void add_powers(const Extents& e, Totals& totals, const Mask* mask, Scores& s, int row, int column) {
#pragma unroll
  for (int i = 0; i < BLOCK / 2; i++)
    s[i] = IS_SEEN ? s[i] * SCALE : score_of(e, mask, s[i], row + i / 2 % 2 * 8, column + i / 4 * 8 + i % 2);
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float max = totals.max[r];
#pragma unroll
    for (int i = 0; i < BLOCK / 2; i++)
      if (i / 2 % 2 == r) max = fmaxf(max, s[i]);
    max = fmaxf(max, __shfl_xor_sync(~0u, max, 1));
    max = fmaxf(max, __shfl_xor_sync(~0u, max, 2));
    float sum = totals.max[r] == max ? totals.sum[r] : totals.sum[r] * exp2_fast(totals.max[r] - max);
#pragma unroll
    for (int i = 0; i < BLOCK / 2; i++)
      if (i / 2 % 2 == r) sum += exp2_fast(s[i] - max);
    totals.max[r] = max;
    totals.sum[r] = sum;
  }
}
DEVICE void store_totals(const Extents& e, const Arguments& a, const Totals& totals, long long head, int row, int lane) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float sum = totals.sum[r];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    if (lane % 4 == 0 && row + 8 * r < e.rows)
      ((float*)a.out)[head * e.rows + row + 8 * r] = (totals.max[r] + log2f(sum)) / LOG2_E;
  }
}
