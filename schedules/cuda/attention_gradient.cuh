// Gradients of out = softmax(scale q k^T) v for every head, of 16-bit elements, by products of single warps. Scores are made again
// from q and k, block by block. A block of threads owns ROWS rows, 16 of each warp, and walks blocks of BLOCK columns, which come into
// shared memory by asynchronous copies, the next while this one is multiplied. Rows are queries and columns keys, or the other way
// round:
//   OF 0  the gradient by q: rows are queries; sum over keys of slope * k
//   OF 1  by k: rows are keys; sum over queries of slope * q
//   OF 2  by v: rows are keys; sum over queries of weight * gradient
//   OF 3  no gradient, but the logarithm of the sum of exp(score) of each query
// where weight = exp(score + mask - sums[query]) and slope = weight * (gradient v^T - products[query]) * scale.
//
// schedules/cuda/attention_gradient.cpp writes these ahead of this text:
//   BATCH, HEADS, ROW_COUNT, COLUMN_COUNT, QUERIES   extents; how many of the two are queries
//   DEPTH, WIDTH              of a row; rounded up to 16
//   OF, CAUSAL, SCALE         SCALE has log2(e) in it
//   SUM_SCALE                 without it
//   BLOCK, WARPS, BLOCKS_PER_MULTIPROCESSOR
//   R1, R2, C1, C2, OUT       Lie: where a tensor begins, and its strides; scores are r1 c1^T, what they change by r2 c2^T
//   MASKED, MASK_..., Mask    as in attention.cuh
//   Element, Arguments        pointers: out, r1, r2, c1, c2, sums, products, mask

constexpr int ROWS = 16 * WARPS, THREADS = 32 * WARPS, PITCH = 2 * WIDTH + 16;
constexpr bool ROWS_ARE_QUERIES = OF == 0 || OF == 3, HAS_SLOPES = OF < 2, HAS_SECOND = OF != 3;
constexpr int ROW_BYTES = ROWS * PITCH, COLUMN_BYTES = BLOCK * PITCH;
constexpr int KNOWN_AT = COLUMN_BYTES * (HAS_SECOND ? 2 : 1), KNOWN_BYTES = BLOCK * 4;  // sums and products of a block of queries
constexpr int STAGE_BYTES = KNOWN_AT + (ROWS_ARE_QUERIES ? 0 : 2 * KNOWN_BYTES);
constexpr int TILES = (ROW_COUNT + ROWS - 1) / ROWS;
constexpr float LOG2_E = 1.4426950408889634f;

typedef float Scores[BLOCK / 2];
typedef float Result[WIDTH / 2];
typedef u32 Fragments[WIDTH / 16][4];

struct Tile {
  int batch, head, row;
};
// Causal: the longest first.
DEVICE Tile tile_at(int index) {
  const int head = index % (BATCH * HEADS), tile = index / (BATCH * HEADS);
  const int row = (CAUSAL && ROWS_ARE_QUERIES ? TILES - 1 - tile : tile) * ROWS;
  return {head / HEADS, head % HEADS, row};
}

DEVICE float exp2_fast(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

// COUNT rows from row `first` on.
template <int COUNT, int LIMIT>
DEVICE void copy_rows(u32 to, const Element* from, long long stride, int first) {
  constexpr int PIECES = WIDTH / 8, ALL = COUNT * PIECES;
#pragma unroll
  for (int i = 0; i < (ALL + THREADS - 1) / THREADS; i++) {
    const int at = i * THREADS + threadIdx.x, row = at / PIECES, column = at % PIECES * 8;
    if (ALL % THREADS != 0 && at >= ALL) break;
    const bool is_there = first + row < LIMIT && column < DEPTH;
    copy_later(to + row * PITCH + column * 2, is_there ? from + (first + row) * stride + column : from, is_there);
  }
}

DEVICE void load_rows(Fragments& rows, u32 from, int lane) {
#pragma unroll
  for (int d = 0; d < WIDTH / 16; d++)
    load_matrices<false, 4>(from + lane % 16 * PITCH + d * 32 + lane / 16 * 16, rows[d]);
}

/// Products of the warp's rows and the columns.
DEVICE void multiply_rows(Scores& s, const Fragments& rows, u32 columns, int lane) {
  const u32 column = columns + (lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 16;
#pragma unroll
  for (int i = 0; i < BLOCK / 2; i++) s[i] = 0.f;
#pragma unroll
  for (int d = 0; d < WIDTH / 16; d++) {
#pragma unroll
    for (int i = 0; i < BLOCK / 8; i += 2) {
      u32 c[4];
      load_matrices<false, 4>(column + 8 * i * PITCH + d * 32, c);
      multiply(Element{}, s + 4 * i, rows[d], c[0], c[1]);
      multiply(Element{}, s + 4 * i + 4, rows[d], c[2], c[3]);
    }
  }
}

/// Adds the products of scores and columns.
DEVICE void multiply_columns(Result& result, const Scores& s, u32 columns, int lane) {
  const u32 column = columns + lane % 16 * PITCH + lane / 16 * 16;
#pragma unroll
  for (int k = 0; k < BLOCK / 16; k++) {
    u32 p[4];
#pragma unroll
    for (int e = 0; e < 4; e++) p[e] = pack(Element{}, s[8 * k + 2 * e], s[8 * k + 2 * e + 1]);
#pragma unroll
    for (int c = 0; c < WIDTH / 8; c += 2) {
      u32 v[4];
      load_matrices<true, 4>(column + 16 * k * PITCH + c * 16, v);
      multiply(Element{}, result + 4 * c, p, v[0], v[1]);
      multiply(Element{}, result + 4 * c + 4, p, v[2], v[3]);
    }
  }
}

#define HIDDEN __int_as_float(0xff800000)  // minus infinity

DEVICE bool is_seen(int row, int column) {
  if (column >= COLUMN_COUNT || row >= ROW_COUNT) return false;
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
DEVICE float score_of(const Mask* mask, float product, int row, int column) {
  if (!is_seen(row, column)) return HIDDEN;
  if (!MASKED) return product * SCALE;
  const int query = ROWS_ARE_QUERIES ? row : column, key = ROWS_ARE_QUERIES ? column : row;
  return masked(product * SCALE, mask[(long long)query * MASK_ROW + key]);
}

/// What a mask says of blocks of columns for all of a tile's rows, a bit each: whether one of them is hidden, and whether one is
/// seen. Blocks of which nothing is seen are left out, and of those that are seen whole the mask is not read again.
constexpr int FLAG_WORDS = MASKED ? (COLUMN_COUNT + 32 * BLOCK - 1) / (32 * BLOCK) : 1;
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
DEVICE void read_flags(Flags& flags, const Mask* mask, const Tile& tile, int begin, int end) {
  constexpr int PIECE = 16 / sizeof(Mask), QUERY_ROWS = ROWS_ARE_QUERIES ? ROWS : BLOCK, KEYS = ROWS_ARE_QUERIES ? BLOCK : ROWS;
  constexpr int PIECES = KEYS / PIECE, ALL = QUERY_ROWS * PIECES, KEY_COUNT = ROWS_ARE_QUERIES ? COLUMN_COUNT : ROW_COUNT;
  const bool is_aligned = ((u64)mask | MASK_ROW * sizeof(Mask)) % 16 == 0;
  for (int i = threadIdx.x; i < FLAG_WORDS; i += THREADS) flags.hides[i] = flags.shows[i] = is_aligned ? 0 : ~0u;
  __syncthreads();
  for (int block = is_aligned ? begin : end; block < end; block++) {
    const int query = ROWS_ARE_QUERIES ? tile.row : block * BLOCK, key = ROWS_ARE_QUERIES ? block * BLOCK : tile.row;
    bool shows = true, hides = true;
#pragma unroll
    for (int i = 0; i < (ALL + THREADS - 1) / THREADS; i++) {
      const int at = i * THREADS + threadIdx.x, row = query + at / PIECES, column = key + at % PIECES * PIECE;
      if ((ALL % THREADS != 0 && at >= ALL) || row >= QUERIES || column >= KEY_COUNT) continue;
      const bool is_whole = column + PIECE <= KEY_COUNT;
      const uint4 words = is_whole ? __ldg((const uint4*)(mask + (long long)row * MASK_ROW + column)) : make_uint4(1, 2, 3, 4);
      shows = shows && are_all(words, showing(Mask{}));
      hides = hides && are_all(words, hiding(Mask{}));
    }
    const bool all_show = __all_sync(~0u, shows), all_hide = __all_sync(~0u, hides);
    if (threadIdx.x % 32 == 0 && !all_show) atomicOr(&flags.hides[block / 32], 1u << block % 32);
    if (threadIdx.x % 32 == 0 && !all_hide) atomicOr(&flags.shows[block / 32], 1u << block % 32);
  }
  __syncthreads();
}

/// Whether a warp's rows see all columns of a block, but for the mask.
DEVICE bool sees_all(int first_row, int first_column) {
  if (first_row + 16 > ROW_COUNT || first_column + BLOCK > COLUMN_COUNT) return false;
  return !CAUSAL || (ROWS_ARE_QUERIES ? first_column + BLOCK <= first_row + 1 : first_row + 15 <= first_column);
}

/// What is known of a query.
struct Known {
  float sum, product;
};
DEVICE Known known_of(const Arguments& a, long long head, int query) {
  const long long at = head * QUERIES + min(query, QUERIES - 1);
  return {__ldg(a.sums + at), HAS_SLOPES ? __ldg(a.products + at) : 0.f};
}
/// Of a block of queries, to a stage.
DEVICE void copy_known(const Arguments& a, u32 to, long long head, int first) {
  for (int i = threadIdx.x; i < BLOCK; i += THREADS) {
    const bool is_there = first + i < QUERIES;
    const long long at = head * QUERIES + (is_there ? first + i : 0);
    copy_bytes_later<4>(to + 4 * i, a.sums + at, is_there ? 4 : 0);
    if constexpr (HAS_SLOPES) copy_bytes_later<4>(to + KNOWN_BYTES + 4 * i, a.products + at, is_there ? 4 : 0);
  }
}
/// `change`: of the score, where that matters.
template <bool IS_SEEN>
DEVICE float weight_of(float score, const Known& known, float change) {
  if (!IS_SEEN && !(score > HIDDEN)) return 0.f;
  const float exponent = fmaf(-LOG2_E, known.sum, score);
  // Of scores as large as finite masks may be, the difference is rounded.
  const float weight = exp2_fast(IS_SEEN ? exponent : fminf(exponent, 0.f));
  return HAS_SLOPES ? weight * (change - known.product) : weight;
}

/// Scores become weights, or slopes. A thread has two rows, and two columns of every eight. `known`: of rows that are queries;
/// `known_at`: of columns. IS_SEEN: every row sees every column.
template <bool IS_SEEN>
DEVICE void weigh(const Mask* mask, Scores& s, const Scores& change, const Known (&known)[2], u32 known_at, int row, int column) {
#pragma unroll
  for (int j = 0; j < BLOCK / 8; j++) {
    float2 sums = {0.f, 0.f}, products = {0.f, 0.f};
    if constexpr (!ROWS_ARE_QUERIES) {
      sums = read_shared_pair(known_at + 4 * (8 * j + threadIdx.x % 4 * 2));
      if constexpr (HAS_SLOPES) products = read_shared_pair(known_at + KNOWN_BYTES + 4 * (8 * j + threadIdx.x % 4 * 2));
    }
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int i = 4 * j + e;
      const Known one = ROWS_ARE_QUERIES ? known[e / 2]
                        : e % 2 == 0     ? Known{sums.x, products.x}
                                         : Known{sums.y, products.y};
      const float score =
          IS_SEEN ? s[i] * SCALE : score_of(mask, s[i], row + e / 2 * 8, column + 8 * j + e % 2);
      s[i] = weight_of<IS_SEEN>(score, one, HAS_SLOPES ? change[i] : 0.f);
    }
  }
}

/// The highest score of a row so far, and the sum of the powers of the differences.
struct Totals {
  float max[2], sum[2];
};
template <bool IS_SEEN>
DEVICE void add_powers(Totals& totals, const Mask* mask, Scores& s, int row, int column) {
#pragma unroll
  for (int i = 0; i < BLOCK / 2; i++)
    s[i] = IS_SEEN ? s[i] * SCALE : score_of(mask, s[i], row + i / 2 % 2 * 8, column + i / 4 * 8 + i % 2);
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
DEVICE void store_totals(const Arguments& a, const Totals& totals, long long head, int row, int lane) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float sum = totals.sum[r];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    if (lane % 4 == 0 && row + 8 * r < ROW_COUNT)
      ((float*)a.out)[head * ROW_COUNT + row + 8 * r] = (totals.max[r] + log2f(sum)) / LOG2_E;
  }
}

// A warp's rows leave by way of its part of shared memory.
DEVICE void store_result(Element* out, u8* buffer, const Result& result, int first_row, int lane) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const float scale = HAS_SLOPES ? SUM_SCALE : 1.f;
    u8* to = buffer + (8 * r + lane / 4) * PITCH + lane % 4 * 4;
#pragma unroll
    for (int c = 0; c < WIDTH / 8; c++)
      *(u32*)(to + 16 * c) = pack(Element{}, result[4 * c + 2 * r] * scale, result[4 * c + 2 * r + 1] * scale);
  }
  __syncwarp();
  constexpr int PIECES = DEPTH / 8;
  for (int i = lane; i < 16 * PIECES; i += 32) {
    const int row = i / PIECES, piece = i % PIECES;
    if (first_row + row < ROW_COUNT)
      *(uint4*)(out + (first_row + row) * OUT.row + 8 * piece) = *(const uint4*)(buffer + row * PITCH + 16 * piece);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR) KERNEL(const Arguments arguments) {
  extern __shared__ __align__(128) u8 raw[];
  __shared__ Flags flags;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const u32 rows = shared_address(raw), stages = rows + (HAS_SLOPES ? 2 : 1) * ROW_BYTES;
  const Tile tile = tile_at(blockIdx.x);
  const long long head = (long long)tile.batch * HEADS + tile.head;
  const int first_row = tile.row + 16 * warp, row = first_row + lane / 4;
  const Element* c1 = arguments.c1 + C1.at(tile);
  const Element* c2 = arguments.c2 + C2.at(tile);
  const Mask* mask = arguments.mask + (long long)(tile.batch % MASK_PERIOD) * MASK_BATCH + (long long)tile.head * MASK_HEAD;
  const auto load = [&](int block, int turn) {
    const u32 stage = stages + turn * STAGE_BYTES;
    copy_rows<BLOCK, COLUMN_COUNT>(stage, c1, C1.row, block * BLOCK);
    if constexpr (HAS_SECOND) copy_rows<BLOCK, COLUMN_COUNT>(stage + COLUMN_BYTES, c2, C2.row, block * BLOCK);
    if constexpr (!ROWS_ARE_QUERIES) copy_known(arguments, stage + KNOWN_AT, head, block * BLOCK);
    copies_commit();
  };
  // Columns that the rows see.
  const int begin = CAUSAL && !ROWS_ARE_QUERIES ? min(tile.row, COLUMN_COUNT) / BLOCK : 0;
  const int seen = CAUSAL && ROWS_ARE_QUERIES ? min(COLUMN_COUNT, tile.row + ROWS) : COLUMN_COUNT;
  const int end = (seen + BLOCK - 1) / BLOCK;
  allow_next_kernel();
  wait_previous_kernels();
  copy_rows<ROWS, ROW_COUNT>(rows, arguments.r1 + R1.at(tile), R1.row, tile.row);
  if constexpr (HAS_SLOPES) copy_rows<ROWS, ROW_COUNT>(rows + ROW_BYTES, arguments.r2 + R2.at(tile), R2.row, tile.row);
  if constexpr (MASKED) read_flags(flags, mask, tile, begin, end);
  const auto next = [&](int block) {
    while (MASKED && block < end && !is_set(flags.shows, block)) block++;
    return block;
  };
  const int first = next(begin);
  if (first < end) load(first, 0);
  else copies_commit();
  Fragments r1, r2;
  Result result = {};
  Totals totals = {{-1e30f, -1e30f}, {0.f, 0.f}};
  Known known[2] = {};
  if constexpr (OF == 0) known[0] = known_of(arguments, head, row), known[1] = known_of(arguments, head, row + 8);
  int turn = 0;
#pragma unroll 1
  for (int block = first; block < end; turn ^= 1) {
    const int after = next(block + 1);
    if (after < end) load(after, turn ^ 1);
    else copies_commit();
    copies_wait<1>();
    __syncthreads();
    if (block == first) {
      load_rows(r1, rows + 16 * warp * PITCH, lane);
      if constexpr (HAS_SLOPES) load_rows(r2, rows + ROW_BYTES + 16 * warp * PITCH, lane);
    }
    const u32 stage = stages + turn * STAGE_BYTES;
    const int column = block * BLOCK + lane % 4 * 2;
    Scores s, change;
    multiply_rows(s, r1, stage, lane);
    const bool is_seen = sees_all(first_row, block * BLOCK) && !(MASKED && is_set(flags.hides, block));
    if constexpr (OF == 3) {
      if (is_seen) add_powers<true>(totals, mask, s, row, column);
      else add_powers<false>(totals, mask, s, row, column);
    } else {
      if constexpr (HAS_SLOPES) multiply_rows(change, r2, stage + COLUMN_BYTES, lane);
      if (is_seen) weigh<true>(mask, s, change, known, stage + KNOWN_AT, row, column);
      else weigh<false>(mask, s, change, known, stage + KNOWN_AT, row, column);
      multiply_columns(result, s, stage + (OF == 2 ? COLUMN_BYTES : 0), lane);
    }
    block = after;
    __syncthreads();  // the stage may be filled again
  }
  copies_wait<0>();
  __syncthreads();
  if constexpr (OF == 3) store_totals(arguments, totals, head, row, lane);
  else store_result(arguments.out + OUT.at(tile), raw + 16 * warp * PITCH, result, first_row, lane);
}
