// Gradients of attention as in attention_gradient.cuh, by Hopper's products of warpgroups. A block of threads owns ROWS rows, 64 of
// each warpgroup, and walks blocks of BLOCK columns, which tensor memory access brings into STAGES places. Several blocks on a
// multiprocessor overlap each other.
//
// schedules/cuda/attention_gradient.cpp writes these ahead of this text:
//   WIDTH                     DEPTH rounded up to 64 columns: what is beyond reads as zero
//   RESULT                    DEPTH rounded up to 16
//   multiply_scores, multiply_values   as in attention.cuh; values are RESULT wide
// and attention_slopes.cuh.

constexpr int GROUPS = WARPS / 4, SLICES = WIDTH / 64;  // tiles lie as slices of 64 columns, rows of 128 bytes
constexpr int ROW_BYTES = ROWS * WIDTH * 2, COLUMN_BYTES = BLOCK * WIDTH * 2, STAGE_BYTES = COLUMN_BYTES * (HAS_SECOND ? 2 : 1);

typedef float Result[RESULT / 2];
typedef u32 Factors[BLOCK / 4];

/// Places in shared memory.
struct Places {
  u32 rows, stages;
  u32 known;             // of each warpgroup: two blocks of queries
  u32 ready, full, empty;  // barriers: of the rows, and of each stage
};
DEVICE Places make_places(const u8* raw) {
  Places p;
  p.rows = (shared_address(raw) + 1023) & ~1023u;
  p.stages = p.rows + (HAS_SLOPES ? 2 : 1) * ROW_BYTES;
  p.known = p.stages + STAGES * STAGE_BYTES;
  p.ready = p.known + (ROWS_ARE_QUERIES ? 0 : GROUPS * 4 * KNOWN_BYTES);
  p.full = p.ready + 8;
  p.empty = p.full + 8 * STAGES;
  return p;
}
DEVICE void init_barriers(const Places& p) {
  barrier_init(p.ready, 1);
  for (int i = 0; i < STAGES; i++) barrier_init(p.full + 8 * i, 1), barrier_init(p.empty + 8 * i, GROUPS);
  barrier_init_done();
}

DEVICE void load_slices(u32 to, const TensorMap* map, int rows, int row, const Tile& tile, u32 full) {
#pragma unroll
  for (int i = 0; i < SLICES; i++) load_box(to + i * rows * 128, map, i * 64, row, tile.head, tile.batch, full);
}
/// The block of columns that is met as the `count`th, once its place is free.
DEVICE void load_columns(const Places& p, const TensorMap* map_c1, const TensorMap* map_c2, const Tile& tile, int block, int count) {
  const int stage = count % STAGES;
  const u32 to = p.stages + stage * STAGE_BYTES, full = p.full + 8 * stage;
  if (count >= STAGES) barrier_wait(p.empty + 8 * stage, (count / STAGES - 1) & 1);
  barrier_expect(full, STAGE_BYTES);
  load_slices(to, map_c1, BLOCK, block * BLOCK, tile, full);
  if constexpr (HAS_SECOND) load_slices(to + COLUMN_BYTES, map_c2, BLOCK, block * BLOCK, tile, full);
}

/// Products of a warpgroup's rows and the columns.
DEVICE void start_scores(Scores& s, u32 rows, u32 columns) {
  const u64 left = operand_descriptor(rows, 16), right = operand_descriptor(columns, 16);
  hold(s);
  products_begin();
#pragma unroll
  for (int d = 0; d < RESULT / 16; d++)
    multiply_scores(s, left + d / 4 * (ROWS * 8) + d % 4 * 2, right + d / 4 * (BLOCK * 8) + d % 4 * 2, d != 0);
  products_commit();
}
/// Adds the products of factors and columns.
DEVICE void start_sums(Result& result, Factors& factors, u32 columns) {
  const u64 right = operand_descriptor(columns, BLOCK * 128);
  hold(result);
  hold(factors);
  products_begin();
#pragma unroll
  for (int k = 0; k < BLOCK / 16; k++) multiply_values(result, factors + 4 * k, right + k * 128, 1);
  products_commit();
}
DEVICE void round_factors(Factors& factors, const Scores& s) {
#pragma unroll
  for (int i = 0; i < BLOCK / 4; i++) factors[i] = pack(Element{}, s[2 * i], s[2 * i + 1]);
}

/// What a thread of a warpgroup reads of a block of queries, for all of them.
constexpr int KNOWN_PARTS = HAS_SLOPES ? 2 : 1, KNOWN_EACH = (KNOWN_PARTS * BLOCK + 127) / 128;
typedef float KnownPart[KNOWN_EACH];
DEVICE void read_known(const Extents& e, KnownPart& part, const Arguments& a, long long head, int first, int thread) {
#pragma unroll
  for (int i = 0; i < KNOWN_EACH; i++) {
    const int at = i * 128 + thread;
    const long long query = head * queries_of(e) + min(first + at % BLOCK, queries_of(e) - 1);
    part[i] = at < KNOWN_PARTS * BLOCK ? __ldg((at < BLOCK ? a.sums : a.products) + query) : 0.f;
  }
}
DEVICE void share_known(const KnownPart& part, u32 to, int thread, int group) {
#pragma unroll
  for (int i = 0; i < KNOWN_EACH; i++)
    if (i * 128 + thread < KNOWN_PARTS * BLOCK) write_shared(to + 4 * (i * 128 + thread), part[i]);
  named_sync(1 + group, 128);
}

/// A warpgroup's rows leave by way of the place of its rows of r1.
DEVICE void store_result(const Extents& e, const TensorMap* map, u32 rows, Result& result, const Tile& tile, int group, int thread) {
  const int first_row = tile.row + 64 * group, row = 64 * group + thread / 32 * 16 + thread % 16;
  const float scale = HAS_SLOPES ? SUM_SCALE : 1.f;
  named_sync(1 + group, 128);  // all of them are multiplied
#pragma unroll
  for (int i = 0; i < RESULT / 16; i++) {
    u32 r[4];
#pragma unroll
    for (int x = 0; x < 4; x++) r[x] = pack(Element{}, result[8 * i + 2 * x] * scale, result[8 * i + 2 * x + 1] * scale);
    const u32 place = rows + i / 4 * (ROWS * 128) + row * 128 + (((2 * (i % 4) + thread % 32 / 16) ^ (row & 7)) << 4);
    store_matrices<false>(place, r[0], r[1], r[2], r[3]);
  }
  fence_shared_for_engines();
  named_sync(1 + group, 128);
  if (thread != 0 || first_row >= e.rows) return;
#pragma unroll
  for (int i = 0; i < SLICES; i++)
    store_box(map, i * 64, first_row, tile.head, tile.batch, rows + i * (ROWS * 128) + group * 8192);
  commit_stores();
  wait_stores_read<0>();
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR)
    KERNEL(const __grid_constant__ TensorMap map_r1, const __grid_constant__ TensorMap map_r2,
           const __grid_constant__ TensorMap map_c1, const __grid_constant__ TensorMap map_c2,
           const __grid_constant__ TensorMap map_out, const Arguments arguments) {
  extern __shared__ __align__(128) u8 raw[];
  __shared__ Flags flags;
  const int thread = threadIdx.x % 128, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int group = GROUPS == 1 ? 0 : __shfl_sync(~0u, threadIdx.x / 128, 0);
  const Places p = make_places(raw);
  const Extents e = extents_of(arguments);
  const Tile tile = tile_at(e, blockIdx.x);
  const long long head = (long long)tile.batch * HEADS + tile.head;
  const int first_row = tile.row + 16 * warp, row = first_row + lane / 4;
  const Mask* mask = mask_of(e, arguments, tile);
  const Span span = span_of(e, tile);
  allow_next_kernel();
  if (threadIdx.x == 0) init_barriers(p);
  __syncthreads();
  wait_previous_kernels();
  if constexpr (MASKED) read_flags(e, flags, mask, tile, span.begin, span.end);
  int ahead = next_seen(flags, span.begin, span.end), loaded = 0;  // of the thread that loads
  const auto load_ahead = [&] {
    if (ahead >= span.end) return;
    load_columns(p, &map_c1, &map_c2, tile, ahead, loaded++);
    ahead = next_seen(flags, ahead + 1, span.end);
  };
  const int first = ahead;
  if (threadIdx.x == 0) {
    barrier_expect(p.ready, (HAS_SLOPES ? 2 : 1) * ROW_BYTES);
    load_slices(p.rows, &map_r1, ROWS, tile.row, tile, p.ready);
    if constexpr (HAS_SLOPES) load_slices(p.rows + ROW_BYTES, &map_r2, ROWS, tile.row, tile, p.ready);
    for (int i = 0; i < STAGES - 1; i++) load_ahead();
  }
  Result result = {};
  Totals totals = {{-1e30f, -1e30f}, {0.f, 0.f}};
  Known known = {};
  if constexpr (OF == 0) known = known_of_rows(e, arguments, head, row);
  const u32 r1 = p.rows + group * 8192;
  barrier_wait(p.ready, 0);
  int count = 0;
#pragma unroll 1
  for (int block = first; block < span.end; block = next_seen(flags, block + 1, span.end), count++) {
    if (threadIdx.x == 0) load_ahead();
    const int stage = count % STAGES;
    const u32 c1 = p.stages + stage * STAGE_BYTES, c2 = c1 + COLUMN_BYTES;
    const u32 known_at = p.known + (2 * group + count % 2) * 2 * KNOWN_BYTES;
    barrier_wait(p.full + 8 * stage, count / STAGES & 1);
    if (!sees_none<64>(tile.row + 64 * group, block * BLOCK)) {
      KnownPart part;
      if constexpr (!ROWS_ARE_QUERIES) read_known(e, part, arguments, head, block * BLOCK, thread);
      Scores s, change;
      start_scores(s, r1, c1);
      if constexpr (HAS_SLOPES) start_scores(change, r1 + ROW_BYTES, c2);
      if constexpr (!ROWS_ARE_QUERIES) share_known(part, known_at, thread, group);
      products_wait<(HAS_SLOPES ? 1 : 0)>();
      hold(s);
      const int column = block * BLOCK + lane % 4 * 2;
      const bool is_seen = sees_all(e, first_row, block * BLOCK) && !(MASKED && is_set(flags.hides, block));
      if constexpr (OF == 3) {
        if (is_seen) add_powers<true>(e, totals, mask, s, row, column);
        else add_powers<false>(e, totals, mask, s, row, column);
      } else {
        if (is_seen) weigh<true>(e, mask, s, known, known_at, row, column);
        else weigh<false>(e, mask, s, known, known_at, row, column);
        if constexpr (HAS_SLOPES) {
          products_wait<0>();
          hold(change);
          turn_into_slopes(change, s, known, known_at);
        }
        Factors factors;
        round_factors(factors, HAS_SLOPES ? change : s);
        start_sums(result, factors, OF == 2 ? c2 : c1);
        products_wait<0>();
        hold(result);
        hold(factors);
      }
    }
    if (thread == 0) barrier_arrive(p.empty + 8 * stage);
  }
  if constexpr (OF == 3) store_totals(e, arguments, totals, head, row, lane);
  else store_result(e, &map_out, p.rows, result, tile, group, thread);
}
