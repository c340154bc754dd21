#include "sylvite/device_tensor.h"

#include <gmock/gmock.h>

#include "sylvite/error.h"

namespace sylvite::device_tensor_test {
namespace {

/// The members of DLPack's DLTensor.
struct DlTensor {
  void* data = nullptr;
  struct {
    int device_type = 2;
    std::int32_t device_id = 0;
  } device;
  std::int32_t ndim = 0;
  struct {
    std::uint8_t code = 2;
    std::uint8_t bits = 32;
    std::uint16_t lanes = 1;
  } dtype;
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;
  std::uint64_t byte_offset = 0;
};

struct DeviceTensorTest : testing::Test {
  std::int64_t shape[3] = {2, 1, 5};
  std::int64_t strides[3] = {5, 99, 1};  // a dim of one element may have any
  char bytes[64] = {};
  DlTensor tensor() {
    DlTensor made;
    made.data = bytes;
    made.ndim = 3;
    made.shape = shape;
    made.strides = strides;
    made.byte_offset = 16;
    return made;
  }
};

TEST_F(DeviceTensorTest, ViewsDlpack) {
  const DeviceTensor view = from_dlpack(tensor());
  EXPECT_EQ(view.type, make_type(DType::f32, {2, 1, 5}));
  EXPECT_EQ(view.data, bytes + 16);
  DlTensor compact = tensor();
  compact.strides = nullptr;
  compact.dtype.code = 4;
  compact.dtype.bits = 16;
  EXPECT_EQ(from_dlpack(compact).type, make_type(DType::bf16, {2, 1, 5}));
}

TEST_F(DeviceTensorTest, RefusesWhatCannotBeReadInPlace) {
  DlTensor other = tensor();
  other.device.device_type = 1;
  EXPECT_THROW((void)from_dlpack(other), InputError);
  other = tensor();
  strides[0] = 10;
  EXPECT_THROW((void)from_dlpack(other), InputError);
  strides[0] = 5;
  other.dtype.lanes = 4;
  EXPECT_THROW((void)from_dlpack(other), InputError);
  other.dtype.lanes = 1;
  other.dtype.code = 5;
  EXPECT_THROW((void)from_dlpack(other), InputError);
}

}  // namespace
}  // namespace sylvite::device_tensor_test
