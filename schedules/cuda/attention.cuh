// out = softmax(scale q k^T + mask) v for every head: rows of q are queries, those of k and v keys, all DEPTH wide. Scores never
// leave the registers. Two kernels: `WHOLE_KEYS` takes all keys of a head at once, with several blocks on a
// multiprocessor that overlap each other; otherwise blocks persist, one producer warpgroup loads through rings, and
// CONSUMERS warpgroups of 64 queries each walk the keys from the last block down, rescaling what they have.
//
// schedules/cuda/attention.cpp writes these ahead of this text:
//   HEADS                     and KEY_SHARE, VALUE_SHARE: neighbouring heads with the same keys, or values
//   Extents, extents_of       batch, queries, keys; mask_batch, mask_head, mask_row: strides of the mask (keys lie together),
//                             mask_share: neighbours in the batch for which it is the same; mask_period: after how many of
//                             these it repeats
//   KEYS_IN_L2                of heads that are walked together, so that their keys and values stay in the L2 cache
//   Arguments                 the mask, and open extents
//   WIDTH                     DEPTH rounded up to 64 columns: what is beyond reads as zero
//   CAUSAL                    query i sees keys 0 to i
//   SCALE                     of the scores, times log2(e)
//   BLOCK                     keys of a block; WHOLE_KEYS: all keys, rounded up to 16
//   CONSUMERS, STAGES         see above; stages of each of the two rings, keys and values
//   BLOCKS_PER_MULTIPROCESSOR WHOLE_KEYS: at least this many
//   MASKED                    there is a mask; Mask is its type (u8: truth values), MASK_PAIRS whether two of them load as one
//   Element                   bf16 or f16
//   multiply_scores(s, q, k, add), multiply_values(o, p, v, add)   products of 64 rows and 16 of depth
// and attention_scores.cuh.

constexpr int HALVES = WIDTH / 64;  // tiles lie as blocks of 64 columns, rows of 128 bytes
constexpr int QUERY_BYTES = TILE * WIDTH * 2, KEY_BYTES = BLOCK * WIDTH * 2;

typedef float Result[WIDTH / 2];
typedef u32 Probabilities[BLOCK / 4];

DEVICE void load_rows(u32 to, const TensorMap* map, int rows, int row, int head, int batch, u32 full) {
#pragma unroll
  for (int half = 0; half < HALVES; half++)
    load_box(to + half * rows * 128, map, half * 64, row, head, batch, full);
}

// Scores of 64 queries at `q` (rows of the tile `q_rows`) and a block of keys.
DEVICE void start_scores(Scores& s, u32 q, int q_rows, u32 k) {
  const u64 left = operand_descriptor(q, 16), right = operand_descriptor(k, 16);
  hold(s);
  products_begin();
#pragma unroll
  for (int d = 0; d < WIDTH / 16; d++)
    multiply_scores(s, left + d / 4 * (q_rows * 8) + d % 4 * 2, right + d / 4 * (BLOCK * 8) + d % 4 * 2,
                    MASKED || d != 0);
  products_commit();
}
DEVICE void start_values(Result& o, Probabilities& p, u32 v, bool add) {
  const u64 right = operand_descriptor(v, BLOCK * 128);
  hold(o);
  hold(p);
  products_begin();
#pragma unroll
  for (int k = 0; k < BLOCK / 16; k++) multiply_values(o, p + 4 * k, right + k * 128, add || k != 0);
  products_commit();
}

// The fragment of scores is that of a left operand.
DEVICE void round_scores(Probabilities& p, const Scores& s) {
#pragma unroll
  for (int i = 0; i < BLOCK / 4; i++) p[i] = pack(Element{}, s[2 * i], s[2 * i + 1]);
}
DEVICE void rescale(Result& o, const Rows& rows) {
#pragma unroll
  for (int i = 0; i < WIDTH / 2; i++) o[i] *= rows.factor[i / 2 % 2];
}
// 64 finished rows to a buffer in shared memory, swizzled.
DEVICE void buffer_result(u32 buffer, Result& o, const Rows& rows, int lane, int warp) {
  const int row = 16 * warp + lane % 16;
  const float scale[2] = {1 / row_sum(rows.sum[0]), 1 / row_sum(rows.sum[1])};
#pragma unroll
  for (int i = 0; i < WIDTH / 16; i++) {
    u32 r[4];
#pragma unroll
    for (int x = 0; x < 4; x++)
      r[x] = pack(Element{}, o[8 * i + 2 * x] * scale[x % 2], o[8 * i + 2 * x + 1] * scale[x % 2]);
    const u32 place = buffer + i / 4 * 8192 + row * 128 + (((2 * (i % 4) + lane / 16) ^ (row & 7)) << 4);
    store_matrices<false>(place, r[0], r[1], r[2], r[3]);
  }
  fence_shared_for_engines();
}
DEVICE void store_result(const TensorMap* map, u32 buffer, const Tile& tile, int row) {
#pragma unroll
  for (int half = 0; half < HALVES; half++)
    store_box(map, half * 64, row, tile.head, tile.batch, buffer + half * 8192);
  commit_stores();
}

#if WHOLE_KEYS

extern "C" __global__ void __launch_bounds__(128, BLOCKS_PER_MULTIPROCESSOR)
    KERNEL(const __grid_constant__ TensorMap map_q, const __grid_constant__ TensorMap map_k,
           const __grid_constant__ TensorMap map_v, const __grid_constant__ TensorMap map_out,
           const Arguments arguments) {
  extern __shared__ char raw[];
  const u32 q = (shared_address(raw) + 1023) & ~1023u, k = q + QUERY_BYTES, v = k + KEY_BYTES;
  const u32 scores_ready = v + KEY_BYTES, values_ready = scores_ready + 8;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = 2 * (lane % 4);
  const Extents e = extents_of(arguments);
  const Tile tile = tile_at(e, blockIdx.x);
  allow_next_kernel();
  if (threadIdx.x == 0) {
    barrier_init(scores_ready, 1);
    barrier_init(values_ready, 1);
    barrier_init_done();
    wait_previous_kernels();
    barrier_expect(scores_ready, QUERY_BYTES + KEY_BYTES);
    load_rows(q, &map_q, TILE, tile.query, tile.head, tile.batch, scores_ready);
    load_rows(k, &map_k, BLOCK, 0, tile.head / KEY_SHARE, tile.batch, scores_ready);
    barrier_expect(values_ready, KEY_BYTES);
    load_rows(v, &map_v, BLOCK, 0, tile.head / VALUE_SHARE, tile.batch, values_ready);
  }
  __syncthreads();
  Scores s;
  Result o;
  Probabilities p;
  Rows rows = no_rows();
  const int row = tile.query + 16 * warp + lane / 4;
  if constexpr (MASKED) {
    wait_previous_kernels();
    load_mask(s, e, arguments.mask, tile, row, 0, column);
  }
  barrier_wait(scores_ready, 0);
  start_scores(s, q, TILE, k);
  products_wait<0>();
  hold(s);
  hide_unseen(s, e, row, column, 0);
  weigh(s, rows);
  round_scores(p, s);
  barrier_wait(values_ready, 0);
  start_values(o, p, v, false);
  products_wait<0>();
  hold(o);
  __syncthreads();  // every score is known: the result may take the queries' place
  buffer_result(q, o, rows, lane, warp);
  __syncthreads();
  if (threadIdx.x == 0) {
    store_result(&map_out, q, tile, tile.query);
    wait_stores_read<0>();
  }
}

#else

constexpr int QUERY_STAGES = 2;

// Tiles are taken in turn by whichever block is free: {next, blocks that are done}. The last block resets it, so that
// launches on one stream need no preparation.
__device__ u32 taken[2];

// Stages of a ring, from its user's side.
template <int COUNT, int BYTES>
struct Ring {
  u32 places, full, empty, parity;
  int stage;
  DEVICE u32 place() const { return places + stage * BYTES; }
  DEVICE u32 is_full() const { return full + 8 * stage; }
  DEVICE u32 is_empty() const { return empty + 8 * stage; }
  DEVICE void next() {
    if (++stage == COUNT) stage = 0, parity ^= 1;
  }
};

struct Rings {
  Ring<QUERY_STAGES, QUERY_BYTES> q;
  Ring<STAGES, KEY_BYTES> k, v;
  u32 out;      // CONSUMERS buffers of 64 rows
  u32 numbers;  // of the tiles in q's stages
};

DEVICE Rings make_rings(char* raw, u32 parity) {
  Rings r;
  const u32 q = (shared_address(raw) + 1023) & ~1023u;
  r.out = q + QUERY_STAGES * QUERY_BYTES;
  const u32 k = r.out + QUERY_BYTES, v = k + STAGES * KEY_BYTES, barriers = v + STAGES * KEY_BYTES;
  r.q = {q, barriers, barriers + 8 * QUERY_STAGES, parity, 0};
  const u32 more = barriers + 16 * QUERY_STAGES;
  r.k = {k, more, more + 8 * STAGES, parity, 0};
  r.v = {v, more + 16 * STAGES, more + 24 * STAGES, parity, 0};
  r.numbers = more + 32 * STAGES;
  return r;
}

DEVICE void init_barriers(const Rings& r) {
  for (int i = 0; i < QUERY_STAGES; i++)
    barrier_init(r.q.full + 8 * i, 1), barrier_init(r.q.empty + 8 * i, 128 * CONSUMERS);
  for (int i = 0; i < STAGES; i++) {
    barrier_init(r.k.full + 8 * i, 1), barrier_init(r.k.empty + 8 * i, CONSUMERS);
    barrier_init(r.v.full + 8 * i, 1), barrier_init(r.v.empty + 8 * i, CONSUMERS);
  }
  barrier_init_done();
}

template <class OneRing>
DEVICE void produce_keys(OneRing& ring, const TensorMap* map, int head, int batch, int block) {
  barrier_wait(ring.is_empty(), ring.parity);
  barrier_expect(ring.is_full(), KEY_BYTES);
  load_rows(ring.place(), map, BLOCK, block * BLOCK, head, batch, ring.is_full());
  ring.next();
}

// One thread. The values of a block follow the keys of the block below it, as they are used.
DEVICE void produce(Rings& r, const Extents& e, const TensorMap* map_q, const TensorMap* map_k,
                    const TensorMap* map_v) {
  wait_previous_kernels();
  int index = blockIdx.x;
  while (true) {
    barrier_wait(r.q.is_empty(), r.q.parity);
    const bool done = index >= tile_count(e);
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(r.numbers + 4 * r.q.stage), "r"(done ? -1 : index)
                 : "memory");
    if (done) {
      barrier_arrive(r.q.is_full());
      break;
    }
    const Tile tile = tile_at(e, index);
    barrier_expect(r.q.is_full(), QUERY_BYTES);
    load_rows(r.q.place(), map_q, TILE, tile.query, tile.head, tile.batch, r.q.is_full());
    r.q.next();
    index = gridDim.x + atomicAdd(&taken[0], 1);
    const int blocks = blocks_before(e, tile.query + TILE);
    for (int j = blocks; j >= 0; j--) {
      if (j > 0) produce_keys(r.k, map_k, tile.head / KEY_SHARE, tile.batch, j - 1);
      if (j < blocks) produce_keys(r.v, map_v, tile.head / VALUE_SHARE, tile.batch, j);
    }
  }
  if (atomicAdd(&taken[1], 1) == gridDim.x - 1) taken[0] = 0, taken[1] = 0;
}

struct Consumer {
  int index, thread, lane, warp;
  const Mask* mask;
  Extents extents;
  DEVICE void release(u32 barrier) const {
    if (thread == 0) barrier_arrive(barrier);
  }
  // Consumers take turns to issue products, so that one's softmax runs beside another's products.
  DEVICE void wait_turn() const { named_sync(1 + index, 256); }
  DEVICE void pass_turn() const { named_arrive(1 + (index + 1) % CONSUMERS, 256); }
};

// Blocks of keys that no query of a consumer sees are waited for and given back. A tile has a turn for every block
// but one.
DEVICE void skip_blocks(Rings& r, const Consumer& me, int count, bool all) {
  for (int i = 0; i < count; i++) {
    if (!all || i > 0) me.wait_turn(), me.pass_turn();
    barrier_wait(r.k.is_full(), r.k.parity), me.release(r.k.is_empty()), r.k.next();
    barrier_wait(r.v.is_full(), r.v.parity), me.release(r.v.is_empty()), r.v.next();
  }
}

DEVICE void first_block(Rings& r, const Consumer& me, const Tile& tile, u32 q, int row, int block, Scores& s,
                        Rows& rows) {
  if constexpr (MASKED) load_mask(s, me.extents, me.mask, tile, row, block * BLOCK, 2 * (me.lane % 4));
  barrier_wait(r.k.is_full(), r.k.parity);
  start_scores(s, q, TILE, r.k.place());
  products_wait<0>();
  hold(s);
  me.release(r.k.is_empty()), r.k.next();
  hide_unseen(s, me.extents, row, 2 * (me.lane % 4), block * BLOCK);
  weigh(s, rows);
  barrier_wait(r.v.is_full(), r.v.parity);
}

// Scores of block `block` beside the values of the block before.
DEVICE void next_block(Rings& r, const Consumer& me, const Tile& tile, u32 q, int row, int block, bool add,
                       Scores& s, Result& o, Probabilities& p, Rows& rows) {
  if constexpr (MASKED) load_mask(s, me.extents, me.mask, tile, row, block * BLOCK, 2 * (me.lane % 4));
  barrier_wait(r.k.is_full(), r.k.parity);
  me.wait_turn();
  start_scores(s, q, TILE, r.k.place());
  const bool changed = rows.factor[0] != 1.f || rows.factor[1] != 1.f;
  if (add && __any_sync(~0u, changed)) rescale(o, rows);
  start_values(o, p, r.v.place(), add);
  me.pass_turn();
  products_wait<1>();
  hold(s);
  me.release(r.k.is_empty()), r.k.next();
  hide_unseen(s, me.extents, row, 2 * (me.lane % 4), block * BLOCK);
  weigh(s, rows);
  hold(s);
  const u32 used = r.v.is_empty();
  r.v.next();
  barrier_wait(r.v.is_full(), r.v.parity);  // a branch: without one, the assembler moves the next wait up
  products_wait<0>();
  hold(o);
  hold(p);
  me.release(used);
}

DEVICE void consume_tile(Rings& r, const Consumer& me, const TensorMap* map_out, const Tile& tile) {
  const int first_row = tile.query + 64 * me.index, row = first_row + 16 * me.warp + me.lane / 4;
  const Extents& e = me.extents;
  const int all = blocks_before(e, tile.query + TILE);
  const int own = first_row < e.queries ? blocks_before(e, first_row + 64) : 0;
  const u32 q = r.q.place() + 64 * me.index * 128, buffer = r.out + me.index * 64 * WIDTH * 2;
  skip_blocks(r, me, all - own, own == 0);
  if (own == 0) return barrier_arrive(r.q.is_empty()), r.q.next();
  Scores s;
  Result o;
  Probabilities p;
  Rows rows = no_rows();
  first_block(r, me, tile, q, row, own - 1, s, rows);
  round_scores(p, s);
  for (int j = own - 2; j >= 0; j--) {
    next_block(r, me, tile, q, row, j, j < own - 2, s, o, p, rows);
    round_scores(p, s);
  }
  barrier_arrive(r.q.is_empty()), r.q.next();  // every thread: each has read the tile's number
  if (own > 1) rescale(o, rows);
  start_values(o, p, r.v.place(), own > 1);
  if (me.thread == 0) wait_stores_read<0>();
  named_sync(5 + me.index, 128);  // the buffer is free
  products_wait<0>();
  hold(o);
  me.release(r.v.is_empty()), r.v.next();
  buffer_result(buffer, o, rows, me.lane, me.warp);
  named_sync(5 + me.index, 128);
  if (me.thread == 0) store_result(map_out, buffer, tile, first_row);
}

DEVICE void consume(Rings& r, const Consumer& me, const TensorMap* map_out) {
  if (me.index == CONSUMERS - 1) named_arrive(1, 256);
  if constexpr (MASKED) wait_previous_kernels();
  while (true) {
    barrier_wait(r.q.is_full(), r.q.parity);
    int index;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(index) : "r"(r.numbers + 4 * r.q.stage) : "memory");
    if (index < 0) break;
    consume_tile(r, me, map_out, tile_at(me.extents, index));
  }
  if (me.thread == 0) wait_stores_read<0>();
}

extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1)
    KERNEL(const __grid_constant__ TensorMap map_q, const __grid_constant__ TensorMap map_k,
           const __grid_constant__ TensorMap map_v, const __grid_constant__ TensorMap map_out,
           const Arguments arguments) {
  extern __shared__ char raw[];
  const int warpgroup = __shfl_sync(~0u, threadIdx.x >> 7, 0);
  Rings r = make_rings(raw, warpgroup == 0);
  if (threadIdx.x == 0) {
    prefetch_map(&map_q), prefetch_map(&map_k), prefetch_map(&map_v), prefetch_map(&map_out);
    init_barriers(r);
  }
  __syncthreads();
  allow_next_kernel();
  if (warpgroup == 0) {
    set_registers_down<(CONSUMERS == 3 ? 32 : 24)>();
    if (threadIdx.x < 32 && elect()) produce(r, extents_of(arguments), &map_q, &map_k, &map_v);
  } else {
    set_registers_up<(CONSUMERS == 3 ? 160 : 240)>();
    const int thread = threadIdx.x & 127;
    const Extents extents = extents_of(arguments);
    consume(r, {warpgroup - 1, thread, thread & 31, thread >> 5, arguments.mask, extents}, &map_out);
  }
}

#endif
