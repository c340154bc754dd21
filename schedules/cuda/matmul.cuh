// out = epilogue(x y^T) for every batch, of x rows and y rows that are K deep; sums are float. A convolution is one: its
// rows are windows of images, and the other side's are filters.
// One block is a producer warpgroup, of which one thread loads tiles by tensor memory access into a ring of stages,
// and two consumer warpgroups, which multiply them on the tensor cores and write the result.
//
// schedules/cuda/matmul.cpp writes these ahead of this text:
//   Extents, extents_of       extents of the product: x, y, batch; out_lines, out_columns of a convolution
//   CHANNELS, TAPS_X, TAPS_Y  its depth: channels of every tap of a window; a matrix has one tap, and 0 where runs give its depth
//   STRIDE_X, STRIDE_Y, DILATION_X, DILATION_Y, PAD_X, PAD_Y  of a convolution
//   X_ROLE, Y_ROLE            see Role
//   ELEMENT_BYTES             2 or 4 (f32)
//   EXACT                     f32 is multiplied three times (matmul_exact.cuh); else once (matmul_once.cuh), f32 as TF32
//   X_DEPTH_FAST, Y_DEPTH_FAST  does the operand lie with its depth innermost, or its rows
//   X_BATCHED, Y_BATCHED      0: one operand for all batches
//   X_EACH, X_PERIOD, ...     neighbouring batches that read one of the operand's, and how many it has where they begin again, or 0
//   X_INNER, Y_INNER          how many of the operand's batches are a run, where runs lie elsewhere than behind each other, or 0
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
//   STORE_ROWS                they leave by rows, which may begin anywhere (not SWAPPED); else by plain stores
//   Out, Arguments            type of a result; pointers: out, and what the epilogue reads
//   CHUNK, OUT_BYTES          results pass through shared memory in chunks of 64 rows and CHUNK columns; bytes of a
//                             consumer's buffers, and of what the others of a split send
//   BUFFERS_AT                where the buffers begin: behind what is sent when both are in use at once
//   RESIDUAL                  the epilogue reads a tensor that lies as the result does: it comes into the result's
//                             buffers by tensor memory access, while the products are made
//   BESIDE_BYTES, BESIDE_AT   bytes of an element of another such tensor, which has buffers of its own, 1 or 2, or 0 for none; bytes
//                             before them
//   BUFFERS                   chunks that a consumer has buffers for
//   VECTOR_FLOATS             floats of shared memory that a consumer's epilogue wants
//   WAITS_TO_READ             the epilogue reads what kernels before this one may have written
//   multiply(sums, x, y, add) one product of 64 rows, TILE_Y columns and 32 bytes of depth; EXACT: x is a fragment
//   stage_vectors, Loaded, load_operands, set_residual, set_beside, finish   the epilogue
// and matmul_tiles.cuh, matmul_once.cuh or matmul_exact.cuh, and matmul_results.cuh.

DEVICE void consume(const Shared& s, Consumer& me, const TensorMap* map_out, const TensorMap* map_residual,
                    const TensorMap* map_beside, const Arguments& arguments, int steps) {
  Sums sums;
  const Extents extents = extents_of(arguments);
  const int own_x = PING_PONG ? 0 : me.index * CONSUMER_X, tiles = tile_count(extents);
  if (PING_PONG && me.index == 1) named_arrive(1, 256);
  if constexpr (WAITS_TO_READ) wait_previous_kernels();
  int turn = 0;
  for (int t = blockIdx.x / CLUSTER; t < tiles; t += gridDim.x / CLUSTER, turn ^= 1) {
    if (PING_PONG && turn != me.index) {
      me.step += steps;
      continue;
    }
    const Tile tile = tile_at(extents, t, me.rank_x, me.rank_y);
    if constexpr (BOXED) {
      if (me.thread == 0) load_boxed(s, me, map_residual, map_beside, tile, own_x);
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
    if constexpr (BOXED) {
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
  init_rests(s);
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
           const __grid_constant__ TensorMap map_beside, const Arguments arguments) {
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
    if constexpr (BESIDE_BYTES > 0) prefetch_map(&map_beside);
    init_barriers(s);
  }
  if constexpr (CLUSTER > 1) cluster_sync();
  else __syncthreads();
  allow_next_kernel();
  const int all_steps = steps_of(extents_of(arguments));
  const int first_step = SPLIT > 1 ? rank * all_steps / SPLIT : 0;
  const int steps = SPLIT > 1 ? (rank + 1) * all_steps / SPLIT - first_step : all_steps;
  if (warpgroup == 0) {
    set_registers_down<(MANY_SUMS ? 24 : 40)>();
    if (threadIdx.x >= 32)
      make_rests(s, extents_of(arguments), steps);
    else if (elect())
      produce(s, extents_of(arguments), &map_x, &map_y, rank_x, rank_y, first_step, steps);
  } else {
    set_registers_up<(MANY_SUMS ? 240 : 232)>();
    const int thread = threadIdx.x & 127, index = warpgroup - 1;
    Consumer me = {index,  thread, thread & 31, thread >> 5, rank, rank_x, rank_y, 0, s.out + index * OUT_BYTES, 0, 0,
                   s.vectors + index * VECTOR_FLOATS};
    consume(s, me, &map_out, &map_residual, &map_beside, arguments, steps);
  }
  __syncwarp();
  if constexpr (CLUSTER > 1) cluster_sync();  // no block leaves while another may still write into it
}
