// Hopper's own instructions (sm_90a) as functions, behind those of card.cuh: tensor memory access, barriers, warpgroup products.

struct __align__(64) TensorMap {
  u64 opaque[16];
};

// Barriers of shared memory. A wait is for the phase of the given parity to be over; a parity wait that is more
// than one phase ahead passes at once.
DEVICE void barrier_init(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
DEVICE void barrier_init_done() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
DEVICE void barrier_expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
DEVICE void barrier_arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Relaxed: what was read from shared memory is in registers already, and a release to the cluster costs a fence.
DEVICE void barrier_arrive_at(u32 barrier, u32 block) {
  asm volatile(
      "{.reg .b32 r;\n mapa.shared::cluster.u32 r, %0, %1;\n"
      " mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [r];}" ::"r"(barrier),
      "r"(block)
      : "memory");
}
DEVICE void barrier_wait(u32 barrier, u32 parity) {
  asm volatile(
      "{.reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      " @p bra DONE;\n bra AGAIN;\nDONE: }" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// Named barriers of the block; `count` threads take part.
DEVICE void named_sync(int name, int count) {
  asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(count) : "memory");
}
DEVICE void named_arrive(int name, int count) {
  asm volatile("bar.arrive %0, %1;" ::"r"(name), "r"(count) : "memory");
}

// Relaxed, as above: nothing passes through memory that barriers of shared memory do not order.
DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
// Orders shared memory, too: what any thread of the cluster wrote before is read by all after.
DEVICE void cluster_sync_shared() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
DEVICE u32 cluster_rank() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
DEVICE u32 address_at(u32 address, u32 block) {
  u32 result;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address), "r"(block));
  return result;
}
/// From another block's shared memory: an address of address_at.
DEVICE float read_at(u32 address) {
  float r;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(r) : "r"(address) : "memory");
  return r;
}
DEVICE u64 read_bits_at(u32 address) {
  u64 r;
  asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(r) : "r"(address) : "memory");
  return r;
}
/// Four floats into another block's shared memory; its barrier counts their bytes.
DEVICE void send(u32 to, u32 barrier, float a, float b, float c, float d) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, [%1];" ::"r"(to),
      "r"(barrier), "f"(a), "f"(b), "f"(c), "f"(d)
      : "memory");
}
/// True in one thread of the warp.
DEVICE bool elect() {
  u32 chosen;
  asm volatile("{.reg .pred q;\n elect.sync _|q, 0xffffffff;\n selp.u32 %0, 1, 0, q;}" : "=r"(chosen));
  return chosen;
}

// Boxes of a tensor of rank 4: innermost coordinate first. Elements outside read as 0 and are not written.
DEVICE void prefetch_map(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
DEVICE void load_box(u32 to, const TensorMap* map, int x, int y, int z, int w, u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
      : "memory");
}
/// Into the same place of every block of the cluster whose bit is set; each block's barrier counts the bytes.
DEVICE void load_box_to(u32 to, const TensorMap* map, int x, int y, int z, int w, u32 barrier, u16 blocks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier), "h"(blocks)
      : "memory");
}
// Windows of a tensor [image][line][column][channel]: from the corner at (column, line, image) on, as many columns as
// the map says, moving on to the next line and image where they end, each seen at tap (tap_x, tap_y) of its window.
DEVICE void load_windows(u32 to, const TensorMap* map, int channel, int column, int line, int image, int tap_x, int tap_y,
                         u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.im2col.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(to),
      "l"(map), "r"(channel), "r"(column), "r"(line), "r"(image), "r"(barrier), "h"((u16)tap_x), "h"((u16)tap_y)
      : "memory");
}
DEVICE void load_windows_to(u32 to, const TensorMap* map, int channel, int column, int line, int image, int tap_x,
                            int tap_y, u32 barrier, u16 blocks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.im2col.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%2, %3, %4, %5}], [%6], {%7, %8}, %9;" ::"r"(to),
      "l"(map), "r"(channel), "r"(column), "r"(line), "r"(image), "r"(barrier), "h"((u16)tap_x), "h"((u16)tap_y),
      "h"(blocks)
      : "memory");
}
DEVICE void store_box(const TensorMap* map, int x, int y, int z, int w, u32 from) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(map), "r"(x),
               "r"(y), "r"(z), "r"(w), "r"(from)
               : "memory");
}
DEVICE void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Makes a number in the shared memory of a block of the cluster no smaller than `x`.
DEVICE void raise_at(u32 address, int x) {
  asm volatile("red.relaxed.cluster.shared::cluster.max.s32 [%0], %1;" ::"r"(address), "r"(x) : "memory");
}
/// At most N groups of stores still read shared memory.
template <int N>
DEVICE void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
/// Orders this thread's writes to shared memory before what the copy engine and the tensor cores read.
DEVICE void fence_shared_for_engines() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Products of a warpgroup. Operands lie in shared memory in rows of ROW bytes (128 or 64), swizzled; groups of 8 rows
// follow each other. Where the depth is the slow dimension, blocks of 64 columns are `columns_stride` bytes apart.
template <int ROW = 128>
DEVICE u64 operand_descriptor(u32 address, u32 columns_stride) {
  constexpr u64 swizzle = ROW == 128 ? 1 : 2;
  return (swizzle << 62) | ((u64)(ROW * 8 >> 4) << 32) | ((u64)(columns_stride >> 4) << 16) |
         (u64)((address & 0x3ffff) >> 4);
}
DEVICE void products_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
DEVICE void products_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// At most N committed groups still run.
template <int N>
DEVICE void products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

/// Ties registers to this point: nothing that reads or writes them moves past it.
template <int N>
DEVICE void hold(float (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+f"(r[i])::"memory");
}
template <int N>
DEVICE void hold(u32 (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+r"(r[i])::"memory");
}

// 8x8 matrices of 16-bit elements from fragments to shared memory; each lane names one row of 16 bytes.
template <bool TRANSPOSED>
DEVICE void store_matrices(u32 row, u32 a, u32 b, u32 c, u32 d) {
  if constexpr (TRANSPOSED) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(a), "r"(b),
                 "r"(c), "r"(d)
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(a), "r"(b),
                 "r"(c), "r"(d)
                 : "memory");
  }
}
template <bool TRANSPOSED>
DEVICE void store_matrices(u32 row, u32 a, u32 b) {
  if constexpr (TRANSPOSED) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(row), "r"(a), "r"(b)
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(row), "r"(a), "r"(b) : "memory");
  }
}

template <int N>
DEVICE void set_registers_up() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N>
DEVICE void set_registers_down() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
