// Gradients of out = softmax(scale q k^T) v for every head, of 16-bit elements, by products of single warps. Scores are made again
// from q and k, block by block. A block of threads owns ROWS rows, 16 of each warp, and walks blocks of BLOCK columns, which come into
// shared memory by asynchronous copies, the next while this one is multiplied.
//
// schedules/cuda/attention_gradient.cpp writes these ahead of this text:
//   WIDTH                     DEPTH rounded up to 16
//   lie_r1, lie_r2, lie_c1, lie_c2, lie_out   Lie of extents: where a tensor begins, and its strides
// and attention_slopes.cuh.

constexpr int PITCH = 2 * WIDTH + 16, ROW_BYTES = ROWS * PITCH, COLUMN_BYTES = BLOCK * PITCH;
constexpr int KNOWN_AT = COLUMN_BYTES * (HAS_SECOND ? 2 : 1), STAGE_BYTES = KNOWN_AT + (ROWS_ARE_QUERIES ? 0 : 2 * KNOWN_BYTES);

typedef float Result[WIDTH / 2];
typedef u32 Fragments[WIDTH / 16][4];

// COUNT rows from row `first` on.
template <int COUNT>
DEVICE void copy_rows(u32 to, const Element* from, long long stride, int first, int limit) {
  constexpr int PIECES = WIDTH / 8, ALL = COUNT * PIECES;
#pragma unroll
  for (int i = 0; i < (ALL + THREADS - 1) / THREADS; i++) {
    const int at = i * THREADS + threadIdx.x, row = at / PIECES, column = at % PIECES * 8;
    if (ALL % THREADS != 0 && at >= ALL) break;
    const bool is_there = first + row < limit && column < DEPTH;
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

/// What is known of a block of queries, to a stage.
DEVICE void copy_known(const Extents& e, const Arguments& a, u32 to, long long head, int first) {
  for (int i = threadIdx.x; i < BLOCK; i += THREADS) {
    const bool is_there = first + i < queries_of(e);
    const long long at = head * queries_of(e) + (is_there ? first + i : 0);
    copy_bytes_later<4>(to + 4 * i, a.sums + at, is_there ? 4 : 0);
    if constexpr (HAS_SLOPES) copy_bytes_later<4>(to + KNOWN_BYTES + 4 * i, a.products + at, is_there ? 4 : 0);
  }
}

// A warp's rows leave by way of its part of shared memory.
DEVICE void store_result(const Extents& e, Element* out, u8* buffer, const Result& result, int first_row, int lane) {
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
    if (first_row + row < e.rows)
      *(uint4*)(out + (first_row + row) * lie_out(e).row + 8 * piece) = *(const uint4*)(buffer + row * PITCH + 16 * piece);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR) KERNEL(const Arguments arguments) {
  extern __shared__ __align__(128) u8 raw[];
  __shared__ Flags flags;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const u32 rows = shared_address(raw), stages = rows + (HAS_SLOPES ? 2 : 1) * ROW_BYTES;
  const Extents e = extents_of(arguments);
  const Tile tile = tile_at(e, blockIdx.x);
  const long long head = (long long)tile.batch * HEADS + tile.head;
  const int first_row = tile.row + 16 * warp, row = first_row + lane / 4;
  const Element* c1 = arguments.c1 + lie_c1(e).at(tile);
  const Element* c2 = arguments.c2 + lie_c2(e).at(tile);
  const Mask* mask = mask_of(e, arguments, tile);
  const auto load = [&](int block, int turn) {
    const u32 stage = stages + turn * STAGE_BYTES;
    copy_rows<BLOCK>(stage, c1, lie_c1(e).row, block * BLOCK, e.columns);
    if constexpr (HAS_SECOND) copy_rows<BLOCK>(stage + COLUMN_BYTES, c2, lie_c2(e).row, block * BLOCK, e.columns);
    if constexpr (!ROWS_ARE_QUERIES) copy_known(e, arguments, stage + KNOWN_AT, head, block * BLOCK);
    copies_commit();
  };
  const auto [begin, end] = span_of(e, tile);
  allow_next_kernel();
  wait_previous_kernels();
  copy_rows<ROWS>(rows, arguments.r1 + lie_r1(e).at(tile), lie_r1(e).row, tile.row, e.rows);
  if constexpr (HAS_SLOPES) copy_rows<ROWS>(rows + ROW_BYTES, arguments.r2 + lie_r2(e).at(tile), lie_r2(e).row, tile.row, e.rows);
  if constexpr (MASKED) read_flags(e, flags, mask, tile, begin, end);
  const int first = next_seen(flags, begin, end);
  if (first < end) load(first, 0);
  else copies_commit();
  Fragments r1, r2;
  Result result = {};
  Totals totals = {{-1e30f, -1e30f}, {0.f, 0.f}};
  Known known = {};
  if constexpr (OF == 0) known = known_of_rows(e, arguments, head, row);
  int turn = 0;
#pragma unroll 1
  for (int block = first; block < end; turn ^= 1) {
    const int after = next_seen(flags, block + 1, end);
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
    const bool is_seen = sees_all(e, first_row, block * BLOCK) && !(MASKED && is_set(flags.hides, block));
    if constexpr (OF == 3) {
      if (is_seen) add_powers<true>(e, totals, mask, s, row, column);
      else add_powers<false>(e, totals, mask, s, row, column);
    } else {
      if constexpr (HAS_SLOPES) multiply_rows(change, r2, stage + COLUMN_BYTES, lane);
      if (is_seen) weigh<true>(e, mask, s, known, stage + KNOWN_AT, row, column);
      else weigh<false>(e, mask, s, known, stage + KNOWN_AT, row, column);
      if constexpr (HAS_SLOPES) turn_into_slopes(change, s, known, stage + KNOWN_AT);
      multiply_columns(result, OF == 2 ? s : change, stage + (OF == 2 ? COLUMN_BYTES : 0), lane);
    }
    block = after;
    __syncthreads();  // the stage may be filled again
  }
  copies_wait<0>();
  __syncthreads();
  if constexpr (OF == 3) store_totals(e, arguments, totals, head, row, lane);
  else store_result(e, arguments.out + lie_out(e).at(tile), raw + 16 * warp * PITCH, result, first_row, lane);
}
