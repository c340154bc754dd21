#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/cuda/device.h"
#include "tests/gpu/gpu_test.h"

namespace sylvite::cuda_device_test {
namespace {

constexpr const char* add_one_ptx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry add_one(.param .u64 data, .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [data];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  cvta.to.global.u64 %d1, %d1;
  mul.wide.u32 %d2, %r5, 4;
  add.s64 %d3, %d1, %d2;
  ld.global.u32 %r6, [%d3];
  add.u32 %r7, %r6, 1;
  st.global.u32 [%d3], %r7;
done:
  ret;
}
)";

using GpuDevice = GpuTest;

TEST(CudaDriver, AbsenceIsOneClearLine) {
  const std::string reason = missing_gpu();
  if (reason.empty()) GTEST_SKIP() << "there is a GPU";
  EXPECT_THAT(reason, testing::HasSubstr("CUDA driver"));
  EXPECT_THAT(reason, testing::Not(testing::HasSubstr("\n")));
  EXPECT_EQ(missing_gpu(), reason);  // the second time, too
}

TEST_F(GpuDevice, LaunchesAndReplays) {
  constexpr unsigned count = 1000;
  const std::vector<std::uint32_t> zeros(count, 0);
  const cuda::Stream stream;
  const cuda::DeviceMemory memory(zeros.size() * 4);
  cuda::driver().copy_to_device(memory.address(), zeros.data(), memory.size(), stream.get());
  const cuda::Module module(add_one_ptx);
  cuda::Launch launch;
  launch.function = module.function("add_one");
  launch.shape.grid[0] = (count + 127) / 128;
  launch.shape.block[0] = 128;
  launch.add_argument(memory.address());
  launch.add_argument(count);
  cuda::launch(launch, stream.get());
  const cuda::Graph graph(stream, [&] {
    for (int i = 0; i < 3; ++i) cuda::launch(launch, stream.get());
  });
  cuda::Event start;
  cuda::Event end;
  start.record(stream.get());
  graph.launch(stream.get());
  graph.launch(stream.get());
  end.record(stream.get());
  const cuda::PinnedMemory back(zeros.size() * 4);
  cuda::driver().copy_to_host(back.data(), memory.address(), memory.size(), stream.get());
  stream.synchronize();
  std::vector<std::uint32_t> values(count);
  std::memcpy(values.data(), back.data(), memory.size());
  EXPECT_THAT(values, testing::Each(7));
  EXPECT_GT(cuda::microseconds_between(start, end), 0);
}

TEST_F(GpuDevice, ErrorsNameTheCall) {
  try {
    const cuda::DeviceMemory memory(std::size_t{1} << 50);
    FAIL() << "a petabyte was allocated";
  } catch (const cuda::CudaError& error) {
    EXPECT_EQ(error.result(), cuda::out_of_memory);
    EXPECT_THAT(error.what(), testing::HasSubstr("cuMemAlloc_v2 failed with CUDA_ERROR_OUT_OF_MEMORY"));
  }
  EXPECT_THROW(cuda::Module("no PTX"), CompileError);
}

}  // namespace
}  // namespace sylvite::cuda_device_test
