// Of the matmul template (see matmul.cuh): how results leave, a chunk at a time, and how a residual comes in.

// One result pair by plain stores.
DEVICE void store_result(const Arguments& arguments, int batch, int x, int y, float2 v) {
  const Extents e = extents_of(arguments);
  if (x >= e.x || y >= e.y) return;
  if constexpr (SWAPPED) {
    Out* out = arguments.out + ((long long)batch * e.y + y) * e.x + x;
    store_one(out, v.x);
    if (y + 1 < e.y) store_one(out + e.x, v.y);
  } else {
    Out* out = arguments.out + ((long long)batch * e.x + x) * e.y + y;
    if constexpr (Y_IS_EVEN) {
      store_pair(out, v);
    } else {
      store_one(out, v.x);
      if (y + 1 < e.y) store_one(out + 1, v.y);
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
/// Pairs of 16-bit elements of a chunk that lies as one of 16-bit results: set(fragment, pair).
template <class Set>
DEVICE void read_pairs(const Consumer& me, u32 buffer, Loaded (&loaded)[CHUNK / 8][2], const Set& set) {
  u32 pairs[4];
#pragma unroll
  for (int j = 0; j + 1 < CHUNK / 8; j += 2) {
    load_matrices<SWAPPED, 4>(matrices_row<true>(me, buffer, j), pairs);
#pragma unroll
    for (int m = 0; m < 4; m++) set(loaded[j + m / 2][m % 2], pairs[m]);
  }
  if constexpr (CHUNK / 8 % 2 != 0) {
    constexpr int j = CHUNK / 8 - 1;
    load_matrices<SWAPPED, 2>(matrices_row<false>(me, buffer, j), pairs);
    for (int m = 0; m < 2; m++) set(loaded[j][m], pairs[m]);
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
  read_pairs(me, buffer, loaded, [](Loaded& one, u32 pair) { set_residual(one, pair); });
}
/// What lies beside the results, whose rows of a chunk are 64 elements along x.
DEVICE void read_beside(const Consumer& me, u32 buffer, Loaded (&loaded)[CHUNK / 8][2]) {
  if constexpr (BESIDE_BYTES == 2) {
    read_pairs(me, buffer, loaded, [](Loaded& one, u32 pair) { set_beside(one, pair); });
    return;
  }
  const auto byte_at = [&](int x, int y) {
    return read_shared_byte(buffer + y * 64 + ((x / 16 ^ (y >> 1 & 3)) << 4) + x % 16);
  };
#pragma unroll
  for (int j = 0; j < CHUNK / 8; j++) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int x = 16 * me.warp + me.lane / 4 + 8 * h, y = 8 * j + 2 * (me.lane % 4);
      set_beside(loaded[j][h], byte_at(x, y) | byte_at(x, y + 1) << 8);
    }
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

// What lies as the result does comes in boxes: into the buffers of its chunks, and beside them.
constexpr bool BOXED = RESIDUAL || BESIDE_BYTES > 0;
constexpr int BESIDE_CHUNK_BYTES = 64 * CHUNK * BESIDE_BYTES;
DEVICE void load_boxed(const Shared& s, const Consumer& me, const TensorMap* map_residual, const TensorMap* map_beside,
                       const Tile& tile, int own_x) {
  const u32 barrier = s.residual + 8 * me.index;
  if constexpr (RESIDUAL) wait_stores_read<0>();
  barrier_expect(barrier, BLOCKS * OWN_CHUNKS * ((RESIDUAL ? CHUNK_BYTES : 0) + BESIDE_CHUNK_BYTES));
  for (int i = 0; i < BLOCKS; i++) {
    for (int c = 0; c < OWN_CHUNKS; c++) {
      const int number = i * OWN_CHUNKS + c;
      const Box box = box_at(tile, own_x, i, (SPLIT > 1 ? me.rank * OWN_CHUNKS : 0) + c);
      const u32 to = me.out + BUFFERS_AT + number * CHUNK_BYTES;
#pragma unroll
      for (int part = 0; RESIDUAL && part < BOX_PARTS; part++)
        load_box(to + part * CHUNK * 128, map_residual, box.fast + part * BOX_X, box.slow, tile.batch, 0, barrier);
      if constexpr (BESIDE_BYTES > 0)
        load_box(me.out + BESIDE_AT + number * BESIDE_CHUNK_BYTES, map_beside, box.fast, box.slow, tile.batch, 0, barrier);
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
  const Extents e = extents_of(arguments);
  const int limit = min(CHUNK, e.y - y);
  Bits::Type* const out = (Bits::Type*)arguments.out + ((long long)batch * e.x + x) * e.y + y;
  const u32 begin = (u32)((u64)out / sizeof(Out));
#pragma unroll
  for (int i = 0; i < (16 * PIECES + 31) / 32; i++) {
    const int at = i * 32 + lane, line = at / PIECES, piece = at - line * PIECES;
    const int shift = (begin + line * e.y) % PIECE, column = PIECE * (piece + 1) - shift;
    if (line >= 16 || x + line >= e.x) continue;
    const u32 from = buffer + line * ROW_BYTES + piece * 16;
    const uint4 v = shifted<PIECE>(read_shared_bits(from), read_shared_bits(from + 16), shift);
    if (column + PIECE <= limit) {
      __stcs((uint4*)(out + (long long)line * e.y + column), v);  // weights and rows of x stay in the L2 cache instead
    } else {
      const u32 words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int i = 0; i < PIECE; i++) {
        if (column + i < limit) out[(long long)line * e.y + column + i] = Bits::of(words, i);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < PIECE / 2; i++) {
    const int line = i * (32 / PIECE) + lane / PIECE, at = lane % PIECE, shift = (begin + line * e.y) % PIECE;
    const int column = at < PIECE - shift ? at : CHUNK - PIECE + at;
    if (x + line < e.x && column < limit)
      out[(long long)line * e.y + column] = Bits::read(buffer + line * ROW_BYTES + column * sizeof(Out));
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
  if constexpr (BESIDE_BYTES > 0)
    read_beside(me, me.out + BESIDE_AT + (i * OWN_CHUNKS + chunk % OWN_CHUNKS) * BESIDE_CHUNK_BYTES, loaded);
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
      const float2 v = finish(make_float2(sum[0], sum[1]), me.vectors, loaded[j][h], x - own_x, y);
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
