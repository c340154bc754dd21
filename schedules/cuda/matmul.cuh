// out = epilogue(x y^T) for every batch: x has X rows, y has Y rows, both K deep; sums are float. A convolution is one: its
// rows are windows of images, and the other side's are filters.
// One block is a producer warpgroup, of which one thread loads tiles by tensor memory access into a ring of stages,
// and two consumer warpgroups, which multiply them on the tensor cores and write the result.
//
// schedules/cuda_matmul.cpp writes these ahead of this text:
//   X, Y, BATCH               extents of the product
//   CHANNELS, TAPS_X, TAPS_Y  its depth: channels of every tap of a window; a matrix has one tap
//   STRIDE_X, STRIDE_Y, DILATION_X, DILATION_Y, PAD_X, PAD_Y, OUT_COLUMNS, OUT_LINES  of a convolution
//   X_ROLE, Y_ROLE            see Role
//   ELEMENT_BYTES             2 or 4 (tf32)
//   X_DEPTH_FAST, Y_DEPTH_FAST  does the operand lie with its depth innermost, or its rows
//   X_BATCHED, Y_BATCHED      0: one operand for all batches
//   X_IS_WEIGHT, Y_IS_WEIGHT  no kernel before this one writes the operand
//   TILE_X, TILE_Y, STAGES    rows and columns of a tile; stages of the ring
//   STAGE_ROW                 bytes that a stage is deep: 128, or 64 where depth lies innermost in both operands
//   CLUSTER_X, CLUSTER_Y      blocks that share loads: y's tile goes to CLUSTER_X blocks, x's to CLUSTER_Y
//   PING_PONG                 each consumer owns whole tiles in turn, so that one multiplies while the other writes;
//                             else both own halves of each tile
//   SPLIT                     blocks (a cluster) that share the depth of a tile and add their sums
//   GROUP                     rows of cluster tiles that are walked together, so that they meet in the L2 cache
//   SWAPPED                   the result lies [batch][y][x] instead of [batch][x][y]
//   STORE_BOXES               results leave by tensor memory access
//   STORE_ROWS                they leave by rows, which may begin anywhere (not SWAPPED); else by plain
//                             stores
//   UNCUT                     1, or what sums are multiplied by: see tf32_uncut in schedules/cuda_template.h
//   Out, Arguments            type of a result; pointers: out, and what the epilogue reads
//   CHUNK, OUT_BYTES          results pass through shared memory in chunks of 64 rows and CHUNK columns; bytes of a
//                             consumer's buffers, and of what the others of a split send
//   BUFFERS_AT                where the buffers begin: behind what is sent when both are in use at once
//   RESIDUAL                  the epilogue reads a tensor that lies as the result does: it comes into the result's
//                             buffers by tensor memory access, while the products are made
//   BUFFERS                   chunks that a consumer has buffers for
//   VECTOR_FLOATS             floats of shared memory that a consumer's epilogue wants
//   WAITS_TO_READ             the epilogue reads what kernels before this one may have written
//   multiply(sums, x, y, add) one product of 64 rows, TILE_Y columns and 32 bytes of depth
//   stage_vectors, Loaded, load_operands, set_residual, finish   the epilogue

constexpr int DEPTH = STAGE_ROW / ELEMENT_BYTES;  // of a stage
constexpr int CLUSTER = CLUSTER_X * CLUSTER_Y * SPLIT;
constexpr int CONSUMER_X = PING_PONG ? TILE_X : TILE_X / 2;  // rows of a tile that a consumer owns
constexpr int BLOCKS = CONSUMER_X / 64;                      // products of 64 rows
constexpr bool MANY_SUMS = BLOCKS * TILE_Y > 256;            // more than 128 registers of sums
constexpr int TAP_STEPS = (CHANNELS + DEPTH - 1) / DEPTH;
constexpr int STEPS = TAP_STEPS * TAPS_X * TAPS_Y;
constexpr int TILES_X = (X + TILE_X * CLUSTER_X - 1) / (TILE_X * CLUSTER_X);  // of a cluster
constexpr int TILES_Y = (Y + TILE_Y * CLUSTER_Y - 1) / (TILE_Y * CLUSTER_Y);
constexpr int TILES = TILES_X * TILES_Y * BATCH;
constexpr int X_BYTES = TILE_X * STAGE_ROW, Y_BYTES = TILE_Y * STAGE_ROW;

constexpr int OWN_Y = TILE_Y / SPLIT;  // columns of a tile that a block of a split writes
constexpr bool WIDE = sizeof(Out) == 4;  // results are f32
constexpr int PIECE = 16 / sizeof(Out);  // results of 16 bytes
constexpr int ROW_BYTES = STORE_ROWS ? (CHUNK / PIECE | 1) * 16  // an odd number of pieces: no bank conflicts
                                     : CHUNK * sizeof(Out);
constexpr int BOX_X = 128 / sizeof(Out);  // results along x that a row of a swapped box has
constexpr int CHUNK_BYTES = 64 * ROW_BYTES;
constexpr int RECEIVED_BYTES = (SPLIT - 1) * CONSUMER_X * OWN_Y * 4;

// Places in shared memory.
struct Shared {
  u32 x, y, out, full, empty, received, residual;
  float* vectors;
};

DEVICE Shared shared_places(char* raw) {
  Shared s;
  const u32 start = shared_address(raw), aligned = (start + 1023) & ~1023u;
  s.x = aligned;
  s.y = s.x + STAGES * X_BYTES;
  s.out = (s.y + STAGES * Y_BYTES + 1023) & ~1023;
  const u32 vectors = s.out + 2 * OUT_BYTES;
  s.vectors = (float*)(raw + (vectors - start));
  s.full = vectors + 2 * VECTOR_FLOATS * 4;
  s.empty = s.full + 8 * STAGES;
  s.received = s.empty + 8 * STAGES;
  s.residual = s.received + 16;
  return s;
}

// The corner of tile `index`. Tiles are walked in columns of GROUP cluster tiles.
struct Tile {
  int batch, x, y;
};
DEVICE Tile tile_at(int index, int rank_x, int rank_y) {
  const int batch = index / (TILES_X * TILES_Y), t = index - batch * (TILES_X * TILES_Y);
  const int first = t / (GROUP * TILES_Y) * GROUP, rows = min(GROUP, TILES_X - first), r = t - first * TILES_Y;
  return {batch, ((first + r % rows) * CLUSTER_X + rank_x) * TILE_X, (r / rows * CLUSTER_Y + rank_y) * TILE_Y};
}

// What an operand is: a matrix; the filter of a convolution, [row][tap][channel]; or windows of its images,
// [image][line][column][channel], whose rows are the results, image by image.
enum Role { MATRIX, FILTER, WINDOWS };

// One of PARTS slices of an operand's stage, into the same place of the blocks of `mask`.
template <int ROLE, bool DEPTH_FAST, int ROWS, int PARTS>
DEVICE void load_operand(u32 stage, const TensorMap* map, int row, int step, int batch, u32 full, int part, u16 mask) {
  constexpr int SLICE = ROWS / PARTS;
  constexpr int BOX = DEPTH_FAST ? SLICE : 64;  // rows of a box
  const int tap = step / TAP_STEPS, channel = (step - tap * TAP_STEPS) * DEPTH;
#pragma unroll
  for (int r = 0; r < SLICE; r += BOX) {
    const int at = part * SLICE + r;
    const u32 to = stage + at * STAGE_ROW;
    if constexpr (ROLE == WINDOWS) {
      const int result = row + at, results_line = result / OUT_COLUMNS, image = results_line / OUT_LINES;
      const int column = (result - results_line * OUT_COLUMNS) * STRIDE_X - PAD_X;
      const int line = (results_line - image * OUT_LINES) * STRIDE_Y - PAD_Y;
      const int tap_y = tap / TAPS_X * DILATION_Y, tap_x = tap % TAPS_X * DILATION_X;
      if constexpr (PARTS > 1) load_windows_to(to, map, channel, column, line, image, tap_x, tap_y, full, mask);
      else load_windows(to, map, channel, column, line, image, tap_x, tap_y, full);
    } else {
      const int fast = DEPTH_FAST ? channel : row + at;
      const int next = ROLE == FILTER ? tap : DEPTH_FAST ? row + at : channel;
      const int last = ROLE == FILTER ? row + at : batch;
      if constexpr (PARTS > 1) load_box_to(to, map, fast, next, last, 0, full, mask);
      else load_box(to, map, fast, next, last, 0, full);
    }
  }
}

// The blocks of a cluster are numbered along X first. Block (x, y) shares x's tile with the blocks of its x.
DEVICE u16 blocks_with_x(int rank_x) {
  u16 mask = 0;
#pragma unroll
  for (int j = 0; j < CLUSTER_Y; j++) mask |= 1 << (rank_x + CLUSTER_X * j);
  return mask;
}
DEVICE u16 blocks_with_y(int rank_y) {
  return ((1 << CLUSTER_X) - 1) << (CLUSTER_X * rank_y);
}

// Weights of the first stages are loaded before the kernels ahead of this one are over.
DEVICE void produce(const Shared& s, const TensorMap* map_x, const TensorMap* map_y, int rank_x, int rank_y,
                    int first_step, int steps) {
  const auto load_x = [&](int stage, const Tile& tile, int k) {
    load_operand<X_ROLE, X_DEPTH_FAST, TILE_X, CLUSTER_Y>(s.x + stage * X_BYTES, map_x, tile.x, k,
                                                          X_BATCHED * tile.batch, s.full + 8 * stage, rank_y,
                                                          blocks_with_x(rank_x));
  };
  const auto load_y = [&](int stage, const Tile& tile, int k) {
    load_operand<Y_ROLE, Y_DEPTH_FAST, TILE_Y, CLUSTER_X>(s.y + stage * Y_BYTES, map_y, tile.y, k,
                                                          Y_BATCHED * tile.batch, s.full + 8 * stage, rank_x,
                                                          blocks_with_y(rank_y));
  };
  int ahead = 0;
  if ((X_IS_WEIGHT || Y_IS_WEIGHT) && blockIdx.x / CLUSTER < TILES) {
    const Tile tile = tile_at(blockIdx.x / CLUSTER, rank_x, rank_y);
    for (; ahead < 2 && ahead < steps; ahead++) {
      barrier_expect(s.full + 8 * ahead, X_BYTES + Y_BYTES);
      if constexpr (X_IS_WEIGHT) load_x(ahead, tile, first_step + ahead);
      else load_y(ahead, tile, first_step + ahead);
    }
  }
  wait_previous_kernels();
  int stage = 0, parity = 1;
  for (int t = blockIdx.x / CLUSTER; t < TILES; t += gridDim.x / CLUSTER) {
    const Tile tile = tile_at(t, rank_x, rank_y);
    for (int k = first_step; k < first_step + steps; k++) {
      if (ahead > 0) {
        ahead--;
        if constexpr (X_IS_WEIGHT) load_y(stage, tile, k);
        else load_x(stage, tile, k);
      } else {
        barrier_wait(s.empty + 8 * stage, parity);
        barrier_expect(s.full + 8 * stage, X_BYTES + Y_BYTES);
        load_x(stage, tile, k);
        load_y(stage, tile, k);
      }
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
  }
}

typedef float Sums[BLOCKS][TILE_Y / 2];

// A consumer's place in the block and in the ring.
struct Consumer {
  int index, thread, lane, warp, rank, rank_x, rank_y;
  u32 step;    // steps taken by the ring so far
  u32 out;     // what others send, and its buffers
  u32 buffer;  // the next of the buffers
  u32 parity;  // of the residual's barrier
  float* vectors;
};

// The blocks that sent a part of a stage may send again.
DEVICE void release(const Shared& s, const Consumer& me, int stage) {
  if constexpr (CLUSTER_X * CLUSTER_Y == 1) {
    if (me.thread == 0) barrier_arrive(s.empty + 8 * stage);
  } else {
    const int other = me.thread;
    if (other < CLUSTER && (other % CLUSTER_X == me.rank_x || other / CLUSTER_X == me.rank_y))
      barrier_arrive_at(s.empty + 8 * stage, other);
  }
}

// Multiplies `steps` stages. One group of products stays in flight; returns the last stage, yet to be released.
DEVICE int accumulate(const Shared& s, Consumer& me, int steps, Sums& sums) {
  constexpr u32 X_STEP = (X_DEPTH_FAST ? 32 : 128 * 32 / ELEMENT_BYTES) >> 4;
  constexpr u32 Y_STEP = (Y_DEPTH_FAST ? 32 : 128 * 32 / ELEMENT_BYTES) >> 4;
  int stage = me.step % STAGES, parity = me.step / STAGES & 1, previous = 0;
  const u32 own_x = s.x + (PING_PONG ? 0 : me.index * CONSUMER_X * STAGE_ROW);
  for (int k = 0; k < steps; k++) {
    barrier_wait(s.full + 8 * stage, parity);
    const u64 x = operand_descriptor<STAGE_ROW>(own_x + stage * X_BYTES, X_DEPTH_FAST ? 16 : 8192);
    const u64 y = operand_descriptor<STAGE_ROW>(s.y + stage * Y_BYTES, Y_DEPTH_FAST ? 16 : 8192);
    products_begin();
#pragma unroll
    for (int q = 0; q < STAGE_ROW / 32; q++) {
#pragma unroll
      for (int i = 0; i < BLOCKS; i++)
        multiply(sums[i], x + q * X_STEP + i * (64 * STAGE_ROW >> 4), y + q * Y_STEP, (k | q) != 0);
    }
    products_commit();
    products_wait<1>();
    if (k) release(s, me, previous);
    previous = stage;
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }
  me.step += steps;
  return previous;
}

// Sends every block of a split its columns of the sums, and adds what the others sent.
DEVICE void add_parts(const Shared& s, const Consumer& me, Sums& sums) {
  constexpr int WIDTH = OWN_Y / 2;  // sums of a thread in a block's columns
  const u32 received = s.received + 8 * me.index;
#pragma unroll
  for (int q = 0; q < SPLIT; q++) {
    if (q == me.rank) continue;
    const u32 slot = me.rank - (me.rank > q);
    const u32 to = address_at(me.out + slot * (CONSUMER_X * OWN_Y * 4), q), barrier = address_at(received, q);
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
#pragma unroll
      for (int j = 0; j < WIDTH; j += 4) {
        const float* p = &sums[i][q * WIDTH + j];
        send(to + ((i * WIDTH + j) / 4 * 128 + me.thread) * 16, barrier, p[0], p[1], p[2], p[3]);
      }
    }
  }
  barrier_wait(received, 0);
#pragma unroll
  for (int q = 0; q < SPLIT; q++) {
    if (q != me.rank) continue;
#pragma unroll
    for (int slot = 0; slot < SPLIT - 1; slot++) {
#pragma unroll
      for (int i = 0; i < BLOCKS; i++) {
#pragma unroll
        for (int j = 0; j < WIDTH; j += 4) {
          const u32 from = me.out + slot * (CONSUMER_X * OWN_Y * 4) + ((i * WIDTH + j) / 4 * 128 + me.thread) * 16;
          const float4 part = read_shared(from);
          float* p = &sums[i][q * WIDTH + j];
          p[0] += part.x, p[1] += part.y, p[2] += part.z, p[3] += part.w;
        }
      }
    }
  }
}

// One result pair by plain stores.
DEVICE void store_result(const Arguments& arguments, int batch, int x, int y, float2 v) {
  if (x >= X || y >= Y) return;
  if constexpr (SWAPPED) {
    Out* out = arguments.out + ((long long)batch * Y + y) * X + x;
    store_one(out, v.x);
    if (y + 1 < Y) store_one(out + X, v.y);
  } else {
    Out* out = arguments.out + ((long long)batch * X + x) * Y + y;
    if constexpr (Y % 2 == 0) {
      store_pair(out, v);
    } else {
      store_one(out, v.x);
      if (y + 1 < Y) store_one(out + 1, v.y);
    }
  }
}

// Columns of a chunk are stored in pairs of 8, and what is left alone. Where a lane's row of the pair at j lies in a
// buffer, as tensor memory access wants it: rows of results, swizzled. (STORE_ROWS: not swizzled.)
template <bool PAIR>
DEVICE u32 matrices_row(const Consumer& me, u32 buffer, int j) {
  const int matrix = me.lane / 8 % (PAIR ? 4 : 2), line = me.lane % 8;
  if constexpr (SWAPPED) {  // a row is 64 results along x
    const int row = 8 * (j + matrix / 2) + line, piece = 2 * me.warp + matrix % 2;
    return buffer + row * 128 + ((piece ^ (row & 7)) << 4);
  } else {  // a row is CHUNK results along y
    const int row = 16 * me.warp + 8 * (matrix % 2) + line, piece = j + matrix / 2;
    const int swizzle =
        STORE_ROWS ? 0 : CHUNK == 64 ? row & 7 : CHUNK == 32 ? row >> 1 & 3 : CHUNK == 16 ? row >> 2 & 1 : 0;
    return buffer + row * ROW_BYTES + ((piece ^ swizzle) << 4);
  }
}

// A chunk's fragments to a buffer, and back.
// f32 goes there one by one, or two by two. Where the result of row x (of 64) and column y of a chunk lies.
DEVICE u32 float_place(u32 buffer, int x, int y) {
  if constexpr (SWAPPED)
    return buffer + (x / BOX_X * CHUNK + y) * 128 + ((x % BOX_X / 4 ^ (y & 7)) << 4) + x % 4 * 4;
  const int swizzle = STORE_ROWS ? 0 : CHUNK == 32 ? x & 7 : CHUNK == 16 ? x >> 1 & 3 : CHUNK == 8 ? x >> 2 & 1 : 0;
  return buffer + x * ROW_BYTES + ((y / 4 ^ swizzle) << 4) + y % 4 * 4;
}
DEVICE void buffer_pair(u32 buffer, int x, int y, float2 v) {
  if constexpr (SWAPPED) {
    write_shared(float_place(buffer, x, y), v.x);
    write_shared(float_place(buffer, x, y + 1), v.y);
  } else {
    write_shared(float_place(buffer, x, y), v);
  }
}
DEVICE float2 buffered_pair(u32 buffer, int x, int y) {
  if constexpr (!SWAPPED) return read_shared_pair(float_place(buffer, x, y));
  return make_float2(read_shared_float(float_place(buffer, x, y)), read_shared_float(float_place(buffer, x, y + 1)));
}

template <class Pack>
DEVICE void buffer_chunk(const Consumer& me, u32 buffer, const Pack& packed) {
#pragma unroll
  for (int j = 0; j + 1 < CHUNK / 8; j += 2) {
    store_matrices<SWAPPED>(matrices_row<true>(me, buffer, j), packed[j][0], packed[j][1], packed[j + 1][0],
                            packed[j + 1][1]);
  }
  if constexpr (CHUNK / 8 % 2 != 0) {
    constexpr int j = CHUNK / 8 - 1;
    store_matrices<SWAPPED>(matrices_row<false>(me, buffer, j), packed[j][0], packed[j][1]);
  }
}
DEVICE void read_residual(const Consumer& me, u32 buffer, Loaded (&loaded)[CHUNK / 8][2]) {
  if constexpr (WIDE) {
#pragma unroll
    for (int j = 0; j < CHUNK / 8; j++) {
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int x = 16 * me.warp + me.lane / 4 + 8 * h, y = 8 * j + 2 * (me.lane % 4);
        set_residual(loaded[j][h], buffered_pair(buffer, x, y));
      }
    }
    return;
  }
  u32 pairs[4];
#pragma unroll
  for (int j = 0; j + 1 < CHUNK / 8; j += 2) {
    load_matrices<SWAPPED, 4>(matrices_row<true>(me, buffer, j), pairs);
#pragma unroll
    for (int m = 0; m < 4; m++) set_residual(loaded[j + m / 2][m % 2], pairs[m]);
  }
  if constexpr (CHUNK / 8 % 2 != 0) {
    constexpr int j = CHUNK / 8 - 1;
    load_matrices<SWAPPED, 2>(matrices_row<false>(me, buffer, j), pairs);
    for (int m = 0; m < 2; m++) set_residual(loaded[j][m], pairs[m]);
  }
}

// The corner of a chunk, columns [chunk * CHUNK, + CHUNK) of block i, as boxes count it.
struct Box {
  int fast, slow;
};
DEVICE Box box_at(const Tile& tile, int own_x, int i, int chunk) {
  const int x = tile.x + own_x + i * 64, y = tile.y + chunk * CHUNK;
  return {SWAPPED ? x : y, SWAPPED ? y : x};
}
// Chunks of a block of a split are its own columns.
constexpr int OWN_CHUNKS = OWN_Y / CHUNK;
// Boxes of a chunk: rows of swapped f32 are twice as long as a box is wide.
constexpr int BOX_PARTS = SWAPPED ? 64 / BOX_X : 1;

DEVICE void load_residual(const Shared& s, const Consumer& me, const TensorMap* map, const Tile& tile, int own_x) {
  const u32 barrier = s.residual + 8 * me.index;
  wait_stores_read<0>();
  barrier_expect(barrier, BLOCKS * OWN_CHUNKS * CHUNK_BYTES);
  for (int i = 0; i < BLOCKS; i++) {
    for (int c = 0; c < OWN_CHUNKS; c++) {
      const Box box = box_at(tile, own_x, i, (SPLIT > 1 ? me.rank * OWN_CHUNKS : 0) + c);
      const u32 to = me.out + BUFFERS_AT + (i * OWN_CHUNKS + c) * CHUNK_BYTES;
#pragma unroll
      for (int part = 0; part < BOX_PARTS; part++)
        load_box(to + part * CHUNK * 128, map, box.fast + part * BOX_X, box.slow, tile.batch, 0, barrier);
    }
  }
}

// A warp's 16 rows of a chunk from its buffer, whose first result belongs to row x and column y of the result. A row of the
// result begins `shift` elements behind a boundary of 16 bytes: 16 bytes that lie aligned there are two neighbours here,
// shifted; the results at both ends of the chunk leave one by one. `line`: row of the buffer.
template <int BYTES>
struct Word {
  typedef u16 Type;
  DEVICE static u16 read(u32 address) { return read_shared_half(address); }
  DEVICE static u16 of(const u32 (&words)[4], int e) { return (u16)(words[e / 2] >> (e % 2 * 16)); }
};
template <>
struct Word<4> {
  typedef u32 Type;
  DEVICE static u32 read(u32 address) { return __float_as_uint(read_shared_float(address)); }
  DEVICE static u32 of(const u32 (&words)[4], int e) { return words[e]; }
};
DEVICE void store_rows(const Arguments& arguments, u32 buffer, int lane, int batch, int x, int y) {
  typedef Word<sizeof(Out)> Bits;
  constexpr int PIECES = CHUNK / PIECE - 1;  // between the ends
  const int limit = min(CHUNK, Y - y);
  Bits::Type* const out = (Bits::Type*)arguments.out + ((long long)batch * X + x) * Y + y;
  const u32 begin = (u32)((u64)out / sizeof(Out));
#pragma unroll
  for (int i = 0; i < (16 * PIECES + 31) / 32; i++) {
    const int at = i * 32 + lane, line = at / PIECES, piece = at - line * PIECES;
    const int shift = (begin + line * Y) % PIECE, column = PIECE * (piece + 1) - shift;
    if (line >= 16 || x + line >= X) continue;
    const u32 from = buffer + line * ROW_BYTES + piece * 16;
    const uint4 v = shifted<PIECE>(read_shared_bits(from), read_shared_bits(from + 16), shift);
    if (column + PIECE <= limit) {
      __stcs((uint4*)(out + (long long)line * Y + column), v);  // weights and rows of x stay in the L2 cache instead
    } else {
      const u32 words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int e = 0; e < PIECE; e++) {
        if (column + e < limit) out[(long long)line * Y + column + e] = Bits::of(words, e);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < PIECE / 2; i++) {
    const int line = i * (32 / PIECE) + lane / PIECE, e = lane % PIECE, shift = (begin + line * Y) % PIECE;
    const int column = e < PIECE - shift ? e : CHUNK - PIECE + e;
    if (x + line < X && column < limit)
      out[(long long)line * Y + column] = Bits::read(buffer + line * ROW_BYTES + column * sizeof(Out));
  }
}

// Finishes a chunk: columns [chunk * CHUNK, + CHUNK) of block i. A template, so that f32 needs no pack.
template <class Result>
DEVICE void write_chunk(Consumer& me, const TensorMap* map_out, const Arguments& arguments, const Tile& tile,
                        int own_x, int i, int chunk, const Sums& sums) {
  const int local_x = own_x + i * 64 + 16 * me.warp + me.lane / 4, local_y = chunk * CHUNK + 2 * (me.lane % 4);
  Loaded loaded[CHUNK / 8][2];
#pragma unroll
  for (int j = 0; j < CHUNK / 8; j++) {
#pragma unroll
    for (int h = 0; h < 2; h++)
      loaded[j][h] = load_operands(arguments, tile.batch, tile.x + local_x + 8 * h, tile.y + local_y + 8 * j);
  }
  const u32 buffer = me.out + BUFFERS_AT + me.buffer * CHUNK_BYTES;
  if constexpr (RESIDUAL) {
    read_residual(me, buffer, loaded);
  } else if constexpr (STORE_BOXES) {
    if (me.thread == 0) wait_stores_read<1>();
  }
  if constexpr (STORE_BOXES && !RESIDUAL || VECTOR_FLOATS > 0) named_sync(3 + me.index, 128);
  if constexpr (STORE_ROWS) __syncwarp();  // the rows before have left
  u32 packed[CHUNK / 8][2];
#pragma unroll
  for (int j = 0; j < CHUNK / 8; j++) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const float* sum = &sums[i][(chunk * CHUNK + 8 * j) / 2 + 2 * h];
      const int x = local_x + 8 * h, y = local_y + 8 * j;
      const float2 v = finish(make_float2(sum[0] * UNCUT, sum[1] * UNCUT), me.vectors, loaded[j][h], x - own_x, y);
      if constexpr ((STORE_BOXES || STORE_ROWS) && WIDE)
        buffer_pair(STORE_ROWS ? me.out : buffer, x - own_x - i * 64, 8 * j + 2 * (me.lane % 4), v);
      else if constexpr (STORE_BOXES || STORE_ROWS) packed[j][h] = pack(Result{}, v.x, v.y);
      else store_result(arguments, tile.batch, tile.x + x, tile.y + y, v);
    }
  }
  if constexpr (STORE_BOXES) {
    if constexpr (!WIDE) buffer_chunk(me, buffer, packed);
    fence_shared_for_engines();
    named_sync(3 + me.index, 128);
    if (me.thread == 0) {
      const Box box = box_at(tile, own_x, i, chunk);
#pragma unroll
      for (int part = 0; part < BOX_PARTS; part++)
        store_box(map_out, box.fast + part * BOX_X, box.slow, tile.batch, 0, buffer + part * CHUNK * 128);
      commit_stores();
    }
    if (++me.buffer == BUFFERS) me.buffer = 0;
  } else if constexpr (STORE_ROWS) {
    if constexpr (!WIDE) buffer_chunk(me, me.out, packed);
    __syncwarp();
    store_rows(arguments, me.out + 16 * me.warp * ROW_BYTES, me.lane, tile.batch, tile.x + own_x + i * 64 + 16 * me.warp,
               tile.y + chunk * CHUNK);
    if constexpr (VECTOR_FLOATS > 0) named_sync(3 + me.index, 128);
  } else if constexpr (VECTOR_FLOATS > 0) {
    named_sync(3 + me.index, 128);  // the next tile's vectors may replace these
  }
}

DEVICE void consume(const Shared& s, Consumer& me, const TensorMap* map_out, const TensorMap* map_residual,
                    const Arguments& arguments, int steps) {
  Sums sums;
  const int own_x = PING_PONG ? 0 : me.index * CONSUMER_X;
  if (PING_PONG && me.index == 1) named_arrive(1, 256);
  if constexpr (WAITS_TO_READ) wait_previous_kernels();
  int turn = 0;
  for (int t = blockIdx.x / CLUSTER; t < TILES; t += gridDim.x / CLUSTER, turn ^= 1) {
    if (PING_PONG && turn != me.index) {
      me.step += steps;
      continue;
    }
    const Tile tile = tile_at(t, me.rank_x, me.rank_y);
    if constexpr (RESIDUAL) {
      if (me.thread == 0) load_residual(s, me, map_residual, tile, own_x);
    }
    stage_vectors(me.vectors, arguments, tile.batch, tile.x + own_x, tile.y, me.thread);
    if constexpr (PING_PONG) named_sync(1 + me.index, 256);  // the other consumer has taken its last stage
    const int last = accumulate(s, me, steps, sums);
    if constexpr (PING_PONG) named_arrive(2 - me.index, 256);
    products_wait<0>();
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) hold(sums[i]);
    release(s, me, last);
    if constexpr (SPLIT > 1) add_parts(s, me, sums);
    if constexpr (RESIDUAL) {
      barrier_wait(s.residual + 8 * me.index, me.parity);
      me.parity ^= 1;
    }
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
#pragma unroll
      for (int chunk = 0; chunk < TILE_Y / CHUNK; chunk++) {
        if (SPLIT > 1 && chunk / OWN_CHUNKS != me.rank) continue;
        write_chunk<Out>(me, map_out, arguments, tile, own_x, i, chunk, sums);
      }
    }
  }
  if constexpr (STORE_BOXES) {
    if (me.thread == 0) wait_stores_read<0>();
  }
}

DEVICE void init_barriers(const Shared& s) {
  for (int i = 0; i < STAGES; i++) {
    barrier_init(s.full + 8 * i, 1);
    barrier_init(s.empty + 8 * i, (PING_PONG ? 1 : 2) * (CLUSTER_X + CLUSTER_Y - 1));
  }
  for (int i = 0; i < 2; i++) barrier_init(s.residual + 8 * i, 1);
  if constexpr (SPLIT > 1) {
    for (int i = 0; i < 2; i++) {
      barrier_init(s.received + 8 * i, 1);
      barrier_expect(s.received + 8 * i, RECEIVED_BYTES);
    }
  }
  barrier_init_done();
}

extern "C" __global__ void __launch_bounds__(384, 1)
    KERNEL(const __grid_constant__ TensorMap map_x, const __grid_constant__ TensorMap map_y,
           const __grid_constant__ TensorMap map_out, const __grid_constant__ TensorMap map_residual,
           const Arguments arguments) {
  extern __shared__ char raw[];
  const Shared s = shared_places(raw);
  const int warpgroup = __shfl_sync(~0u, threadIdx.x >> 7, 0);
  const int rank = CLUSTER > 1 ? cluster_rank() : 0;
  const int rank_x = SPLIT > 1 ? 0 : rank % CLUSTER_X, rank_y = SPLIT > 1 ? 0 : rank / CLUSTER_X;
  if (threadIdx.x == 0) {
    prefetch_map(&map_x);
    prefetch_map(&map_y);
    if constexpr (STORE_BOXES) prefetch_map(&map_out);
    if constexpr (RESIDUAL) prefetch_map(&map_residual);
    init_barriers(s);
  }
  if constexpr (CLUSTER > 1) cluster_sync();
  else __syncthreads();
  allow_next_kernel();
  const int first_step = SPLIT > 1 ? rank * STEPS / SPLIT : 0;
  const int steps = SPLIT > 1 ? (rank + 1) * STEPS / SPLIT - first_step : STEPS;
  if (warpgroup == 0) {
    set_registers_down<(MANY_SUMS ? 24 : 40)>();
    if (threadIdx.x < 32 && elect()) produce(s, &map_x, &map_y, rank_x, rank_y, first_step, steps);
  } else {
    set_registers_up<(MANY_SUMS ? 240 : 232)>();
    const int thread = threadIdx.x & 127, index = warpgroup - 1;
    Consumer me = {index,  thread, thread & 31, thread >> 5, rank, rank_x, rank_y, 0, s.out + index * OUT_BYTES, 0, 0,
                   s.vectors + index * VECTOR_FLOATS};
    consume(s, me, &map_out, &map_residual, arguments, steps);
  }
  __syncwarp();
  if constexpr (CLUSTER > 1) cluster_sync();  // no block leaves while another may still write into it
}
