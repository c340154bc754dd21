// out = softmax(scale q k^T + mask) v for every head, of 16-bit elements, by products of single warps: on every card from
// Ampere on. A block has WARPS warps of 16 * SIXTEENS queries each. They walk the keys from the first block up; blocks come
// into shared memory by asynchronous copies, the next while this one is multiplied.
//
// schedules/cuda/attention_warps.cpp writes these ahead of this text:
//   HEADS, Extents, extents_of, CAUSAL, SCALE, MASKED, ...   as in attention.cuh; CONSUMERS is 64 queries of a block
//   DEPTH, VALUE_DEPTH        of a key and of a value; DEPTH_WIDTH, VALUE_WIDTH the same rounded up to 16: beyond is zero
//   BLOCK                     keys of a block, a multiple of 16
//   WARPS, SIXTEENS           see above
//   BLOCKS_PER_MULTIPROCESSOR at least so many
//   KEEPS_QUERIES             queries stay in registers; else they are read again for every block of keys
//   lie_q, lie_k, lie_v, lie_out   Lie: where a tensor begins, and its strides
// and attention_scores.cuh.

constexpr int THREADS = 32 * WARPS;
// Rows are an odd number of 16 bytes apart, so that eight of them lie in different banks.
constexpr int KEY_PITCH = 2 * DEPTH_WIDTH + 16, VALUE_PITCH = 2 * VALUE_WIDTH + 16;
constexpr int QUERY_BYTES = TILE * KEY_PITCH, STAGE_BYTES = BLOCK * (KEY_PITCH + VALUE_PITCH);

typedef float Result[VALUE_WIDTH / 2];
typedef u32 Queries[DEPTH_WIDTH / 16][4];

// ROWS rows from row `first` of `limit` on, COLUMNS wide.
template <int ROWS, int COLUMNS, int PITCH>
DEVICE void copy_rows(u32 to, const Element* from, long long stride, int first, int limit) {
  constexpr int PIECES = (PITCH - 16) / 16, ALL = ROWS * PIECES;
#pragma unroll
  for (int i = 0; i < (ALL + THREADS - 1) / THREADS; i++) {
    const int at = i * THREADS + threadIdx.x, row = at / PIECES, column = at % PIECES * 8;
    if (ALL % THREADS != 0 && at >= ALL) break;
    const bool is_there = first + row < limit && (COLUMNS % 16 == 0 || column < COLUMNS);
    copy_later(to + row * PITCH + column * 2, is_there ? from + (first + row) * stride + column : from, is_there);
  }
}

DEVICE void load_queries(Queries& q, u32 from, int lane) {
#pragma unroll
  for (int d = 0; d < DEPTH_WIDTH / 16; d++)
    load_matrices<false, 4>(from + lane % 16 * KEY_PITCH + d * 32 + lane / 16 * 16, q[d]);
}

DEVICE void multiply_scores(Scores (&s)[SIXTEENS], const Queries (&kept)[SIXTEENS], u32 queries, u32 keys, int lane) {
  const u32 key = keys + (lane / 16 * 8 + lane % 8) * KEY_PITCH + lane / 8 % 2 * 16;
#pragma unroll
  for (int d = 0; d < DEPTH_WIDTH / 16; d++) {
    u32 q[SIXTEENS][4];
#pragma unroll
    for (int m = 0; m < SIXTEENS; m++) {
      if constexpr (KEEPS_QUERIES) {
#pragma unroll
        for (int e = 0; e < 4; e++) q[m][e] = kept[m][d][e];
      } else {
        load_matrices<false, 4>(queries + (16 * m + lane % 16) * KEY_PITCH + d * 32 + lane / 16 * 16, q[m]);
      }
    }
#pragma unroll
    for (int i = 0; i < BLOCK / 8; i += 2) {
      u32 k[4];
      load_matrices<false, 4>(key + 8 * i * KEY_PITCH + d * 32, k);
#pragma unroll
      for (int m = 0; m < SIXTEENS; m++) {
        multiply(Element{}, s[m] + 4 * i, q[m], k[0], k[1]);
        multiply(Element{}, s[m] + 4 * i + 4, q[m], k[2], k[3]);
      }
    }
  }
}

// Most blocks leave the maxima of all rows of a warp as they are.
DEVICE void rescale(Result& o, const Rows& rows) {
  if (!__any_sync(~0u, rows.factor[0] != 1.f || rows.factor[1] != 1.f)) return;
#pragma unroll
  for (int i = 0; i < VALUE_WIDTH / 2; i++) o[i] *= rows.factor[i / 2 % 2];
}

// The fragment of scores is that of a left operand.
DEVICE void multiply_values(Result (&o)[SIXTEENS], const Scores (&s)[SIXTEENS], u32 values, int lane) {
  const u32 value = values + lane % 16 * VALUE_PITCH + lane / 16 * 16;
#pragma unroll
  for (int k = 0; k < BLOCK / 16; k++) {
    u32 p[SIXTEENS][4];
#pragma unroll
    for (int m = 0; m < SIXTEENS; m++) {
#pragma unroll
      for (int e = 0; e < 4; e++) p[m][e] = pack(Element{}, s[m][8 * k + 2 * e], s[m][8 * k + 2 * e + 1]);
    }
#pragma unroll
    for (int c = 0; c < VALUE_WIDTH / 8; c += 2) {
      u32 v[4];
      load_matrices<true, 4>(value + 16 * k * VALUE_PITCH + c * 16, v);
#pragma unroll
      for (int m = 0; m < SIXTEENS; m++) {
        multiply(Element{}, o[m] + 4 * c, p[m], v[0], v[1]);
        multiply(Element{}, o[m] + 4 * c + 4, p[m], v[2], v[3]);
      }
    }
  }
}

// A warp's rows leave by way of its part of shared memory.
DEVICE void store_result(const Arguments& arguments, u8* buffer, const Tile& tile, const Result (&o)[SIXTEENS],
                         const Rows (&rows)[SIXTEENS], int first_row, int lane) {
#pragma unroll
  for (int m = 0; m < SIXTEENS; m++) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const float scale = 1.f / row_sum(rows[m].sum[r]);
      u8* to = buffer + (16 * m + 8 * r + lane / 4) * VALUE_PITCH + lane % 4 * 4;
#pragma unroll
      for (int c = 0; c < VALUE_WIDTH / 8; c++)
        *(u32*)(to + 16 * c) = pack(Element{}, o[m][4 * c + 2 * r] * scale, o[m][4 * c + 2 * r + 1] * scale);
    }
  }
  __syncwarp();
  constexpr int PIECES = VALUE_DEPTH / 8;
  const Extents e = extents_of(arguments);
  Element* out = arguments.out + lie_out(e).at(tile);
  for (int i = lane; i < 16 * SIXTEENS * PIECES; i += 32) {
    const int row = i / PIECES, piece = i % PIECES;
    if (first_row + row < e.queries)
      *(uint4*)(out + (first_row + row) * lie_out(e).row + 8 * piece) = *(const uint4*)(buffer + row * VALUE_PITCH + 16 * piece);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR) KERNEL(const Arguments arguments) {
  extern __shared__ __align__(128) u8 raw[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const u32 queries = shared_address(raw), stages = queries + QUERY_BYTES;
  const u32 own_queries = queries + warp * 16 * SIXTEENS * KEY_PITCH;
  const Extents e = extents_of(arguments);
  const Tile tile = tile_at(e, blockIdx.x);
  const int first_row = tile.query + warp * 16 * SIXTEENS, row = first_row + lane / 4;
  const Element* k = arguments.k + lie_k(e).at(tile);
  const Element* v = arguments.v + lie_v(e).at(tile);
  const auto load = [&](int block) {
    const u32 stage = stages + block % 2 * STAGE_BYTES;
    copy_rows<BLOCK, DEPTH, KEY_PITCH>(stage, k, lie_k(e).row, block * BLOCK, e.keys);
    copy_rows<BLOCK, VALUE_DEPTH, VALUE_PITCH>(stage + BLOCK * KEY_PITCH, v, lie_v(e).row, block * BLOCK, e.keys);
    copies_commit();
  };
  allow_next_kernel();
  wait_previous_kernels();
  copy_rows<TILE, DEPTH, KEY_PITCH>(queries, arguments.q + lie_q(e).at(tile), lie_q(e).row, tile.query, e.queries);
  load(0);
  Queries kept[SIXTEENS];
  Result o[SIXTEENS] = {};
  Rows rows[SIXTEENS];
#pragma unroll
  for (int m = 0; m < SIXTEENS; m++) rows[m] = no_rows();
  const int blocks = blocks_before(e, min(tile.query + TILE, e.queries));
#pragma unroll 1
  for (int block = 0; block < blocks; block++) {
    if (block + 1 < blocks) load(block + 1);
    else copies_commit();
    Scores s[SIXTEENS] = {};
#pragma unroll
    for (int m = 0; m < SIXTEENS; m++) {
      if constexpr (MASKED) load_mask(s[m], e, arguments.mask, tile, row + 16 * m, block * BLOCK, lane % 4 * 2);
    }
    copies_wait<1>();
    __syncthreads();
    if constexpr (KEEPS_QUERIES) {
      if (block == 0) {
#pragma unroll
        for (int m = 0; m < SIXTEENS; m++) load_queries(kept[m], own_queries + 16 * m * KEY_PITCH, lane);
      }
    }
    const u32 stage = stages + block % 2 * STAGE_BYTES;
    multiply_scores(s, kept, own_queries, stage, lane);
#pragma unroll
    for (int m = 0; m < SIXTEENS; m++) {
      hide_unseen(s[m], e, row + 16 * m, lane % 4 * 2, block * BLOCK);
      weigh(s[m], rows[m]);
      rescale(o[m], rows[m]);
    }
    multiply_values(o, s, stage + BLOCK * KEY_PITCH, lane);
    __syncthreads();  // the stage may be filled again
  }
  copies_wait<0>();
  store_result(arguments, raw + QUERY_BYTES + warp * 16 * SIXTEENS * VALUE_PITCH, tile, o, rows, first_row, lane);
}
