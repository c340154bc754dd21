#include "frontend/onnx/tensor_io.h"

#include <gtest/gtest.h>
#include <onnx-ml.pb.h>

#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "frontend/values/npy.h"

namespace sylvite::tensor_io_test {
namespace {

namespace fs = std::filesystem;

constexpr DType all_dtypes[] = {DType::f32, DType::f16, DType::bf16,   DType::f64, DType::i8,
                                DType::i16, DType::i32, DType::i64,    DType::u8,  DType::u16,
                                DType::u32, DType::u64, DType::boolean};

constexpr DType narrow_dtypes[] = {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz,
                                   DType::f8e8m0,   DType::f4e2m1,     DType::i4,     DType::u4,
                                   DType::i2,       DType::u2};

class TensorIo : public testing::Test {
 protected:
  TensorIo()
      : folder_(fs::temp_directory_path() / fmt::format("sylvite_tensor_io_{}_{}", getpid(), ++count_)) {
    fs::create_directories(folder_);
  }
  ~TensorIo() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

 private:
  static inline int count_ = 0;
  fs::path folder_;
};

Tensor counting(DType dtype, const Dims& dims) {
  Tensor tensor(dtype, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_int64(i, i);
  return tensor;
}

void expect_equal(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.type(), b.type());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.byte_size())), 0);
}

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string bytes = std::string("\x93NUMPY") + version + '\0';
  const std::size_t size = version == 1 ? 2 : 4;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xffU);
  return bytes + header + data;
}

TEST_F(TensorIo, RoundTripsEveryElementTypeAndRank) {
  for (DType dtype : all_dtypes) {
    for (const Dims& dims : {Dims{}, Dims{3}, Dims{2, 3, 4}, Dims{0}, Dims{2, 0, 5}}) {
      const Tensor tensor = counting(dtype, dims);
      for (const char* name : {"t.npy", "t.pb"}) {
        write_tensor(path(name), tensor, "t");
        expect_equal(read_tensor(path(name)), tensor);
      }
    }
  }
}

/// NumPy has no letters for these.
TEST_F(TensorIo, RoundTripsNarrowElementsAsProtos) {
  for (const DType dtype : narrow_dtypes) {
    for (const Dims& dims : {Dims{}, Dims{1}, Dims{2}, Dims{3}, Dims{7}, Dims{3, 3}, Dims{0}}) {
      const Tensor tensor = counting(dtype, dims);
      write_tensor(path("t.pb"), tensor, "t");
      expect_equal(read_tensor(path("t.pb")), tensor);
    }
  }
}

/// As ONNX says: two or four to a byte, lowest bits first, the last byte filled up with zeros.
TEST_F(TensorIo, PacksElementsOfLessThanAByte) {
  const auto written = [&](DType dtype, const std::vector<std::int64_t>& values) {
    Tensor tensor(dtype, {static_cast<std::int64_t>(values.size())});
    for (std::size_t i = 0; i < values.size(); ++i) tensor.set_int64(static_cast<std::int64_t>(i), values[i]);
    write_tensor(path("t.pb"), tensor, "t");
    onnx::TensorProto proto;
    EXPECT_TRUE(proto.ParseFromString(read_file(path("t.pb"))));
    return proto.raw_data();
  };
  EXPECT_EQ(written(DType::i4, {-1, 2, -8}), "\x2f\x08");
  EXPECT_EQ(written(DType::u4, {1, 15, 3}), "\xf1\x03");
  EXPECT_EQ(written(DType::i2, {-1, 0, 1, -2, -1}), "\x93\x03");
  EXPECT_EQ(written(DType::u2, {3, 2, 1, 1}), "\x5b");
  EXPECT_EQ(written(DType::f4e2m1, {1, 2, 6}), "\x42\x07");
}

TEST_F(TensorIo, RoundTripsValuesThatAreNoTensorsOfNumbers) {
  const HostValue floats = counting(DType::f32, {3});
  const HostValue strings(StringTensor{{2}, {"one", "two"}});
  const HostValue sequence(HostValue::Sequence{floats, HostValue(counting(DType::i4, {2, 3}))});
  const auto read_back = [&](const HostValue& value, ValueKind kind) {
    write_value(path("v.pb"), value, kind, "v");
    return read_value(path("v.pb"), kind);
  };
  EXPECT_EQ(read_back(strings, ValueKind::strings).strings(), strings.strings());
  for (const ValueKind kind : {ValueKind::sequence, ValueKind::optional}) {
    const HostValue back = read_back(sequence, kind);
    ASSERT_EQ(back.describe(), "a sequence of 2");
    for (std::size_t i = 0; i < 2; ++i)
      expect_equal(back.sequence()[i].tensor(), sequence.sequence()[i].tensor());
  }
  const HostValue nested(HostValue::Sequence{sequence, sequence});
  EXPECT_EQ(read_back(nested, ValueKind::sequence).sequence().at(1).describe(), "a sequence of 2");
  EXPECT_EQ(read_back(HostValue(HostValue::Sequence()), ValueKind::sequence).describe(), "a sequence of 0");
  expect_equal(read_back(floats, ValueKind::optional).tensor(), floats.tensor());
  EXPECT_EQ(read_back(strings, ValueKind::optional).strings(), strings.strings());
  EXPECT_TRUE(read_back(HostValue(), ValueKind::optional).is_absent());
}

TEST_F(TensorIo, RefusesMessagesOfAnotherKind) {
  write_tensor(path("t.pb"), counting(DType::f32, {3}), "t");
  EXPECT_THROW((void)read_value(path("t.pb"), ValueKind::sequence), ModelError);
  EXPECT_THROW((void)read_value(path("t.pb"), ValueKind::optional), ModelError);
  write_value(path("s.pb"), HostValue(HostValue::Sequence{counting(DType::f32, {3})}), ValueKind::sequence,
              "s");
  EXPECT_THROW((void)read_value(path("s.pb"), ValueKind::tensor), ModelError);
  const HostValue strings(StringTensor{{1}, {"one"}});
  EXPECT_THROW(write_value(path("s.npy"), strings, ValueKind::strings, "s"), IoError);
}

TEST_F(TensorIo, RefusesOtherExtensionsAndMissingFiles) {
  EXPECT_THROW((void)read_tensor(path("t.txt")), IoError);
  EXPECT_THROW((void)read_tensor(path("absent.npy")), IoError);
  EXPECT_THROW(write_tensor(path("no/such/folder/t.npy"), Tensor(DType::f32, {}), "t"), IoError);
}

TEST_F(TensorIo, EveryTruncationIsATypedError) {
  for (const char* name : {"t.npy", "t.pb"}) {
    write_tensor(path(name), counting(DType::f32, {2, 3}), "t");
    const std::string bytes = read_file(path(name));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      write_file(path(name), std::string_view(bytes).substr(0, size));
      EXPECT_THROW((void)read_tensor(path(name)), Error) << name << " cut to " << size;
    }
  }
}

TEST(Npy, WritesWhatNumpyWrites) {
  const std::string bytes = tensor_to_npy(counting(DType::f32, {2, 3}));
  EXPECT_EQ(bytes.size(), 128U + 24U);
  EXPECT_TRUE(bytes.substr(10).starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,3,), }"));
  EXPECT_EQ(bytes[127], '\n');
}

TEST(Npy, ReadsFortranOrderBigEndianAndLaterVersions) {
  const std::string columns = {0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6};
  for (char version : {1, 2, 3}) {
    const std::string header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}\n";
    const Tensor tensor = tensor_from_npy(npy(header, columns, version), "t");
    EXPECT_EQ(tensor.to_int64s(), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}));
  }
}

TEST(Npy, MakesBooleansCanonical) {
  const Tensor tensor =
      tensor_from_npy(npy("{'descr':'|b1','fortran_order':False,'shape':(3,),}", {0, 1, 7}), "t");
  EXPECT_EQ(tensor.to_int64s(), (std::vector<std::int64_t>{0, 1, 1}));
}

TEST(Npy, RefusesMalformedHeaders) {
  const auto refuse = [](const std::string& header) {
    EXPECT_THROW((void)tensor_from_npy(npy(header, "abcd"), "t"), ModelError) << header;
  };
  refuse("");
  refuse("{");
  refuse("{}");
  refuse("{'descr': '<f4', 'fortran_order': False}");
  refuse("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}");
  refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}");
  refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}");
  refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}");
  refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}");
  refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x");
  refuse("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}");
  refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}");
  refuse("{'descr: 1}");
}

TEST(Npy, RefusesOtherElementTypes) {
  for (const char* descr : {"'<c8'", "'<U3'", "'|O'", "''", "'f'", "[('a', '<f4')]"}) {
    const std::string header = fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': (1,)}}", descr);
    EXPECT_THROW((void)tensor_from_npy(npy(header, "abcd"), "t"), UnsupportedError) << descr;
  }
}

TEST_F(TensorIo, ReadsEveryDataFieldOfATensorProto) {
  const auto read_back = [&](const onnx::TensorProto& proto) {
    write_file(path("t.pb"), proto.SerializeAsString());
    return read_tensor(path("t.pb"));
  };
  onnx::TensorProto proto;
  proto.add_dims(1);
  proto.set_data_type(onnx::TensorProto::FLOAT);
  EXPECT_THROW((void)read_back(proto), ModelError);
  proto.add_float_data(1.5F);
  EXPECT_EQ(read_back(proto).as_double(0), 1.5);
  proto.set_data_type(onnx::TensorProto::FLOAT16);
  proto.add_int32_data(0x3c00);
  EXPECT_EQ(read_back(proto).as_double(0), 1.0);
  proto.set_data_type(onnx::TensorProto::UINT32);
  proto.add_uint64_data(4000000000U);
  EXPECT_EQ(read_back(proto).as_int64(0), 4000000000);
  proto.set_data_type(onnx::TensorProto::DOUBLE);
  proto.add_double_data(2.5);
  EXPECT_EQ(read_back(proto).as_double(0), 2.5);
  proto.set_data_type(onnx::TensorProto::INT64);
  proto.add_int64_data(-7);
  EXPECT_EQ(read_back(proto).as_int64(0), -7);
  proto.set_data_type(onnx::TensorProto::STRING);
  EXPECT_THROW((void)read_back(proto), UnsupportedError);
}

TEST_F(TensorIo, RefusesHugeDimsWithoutAllocating) {
  onnx::TensorProto proto;
  proto.set_data_type(onnx::TensorProto::FLOAT);
  for (int i = 0; i < 3; ++i) proto.add_dims(std::int64_t{1} << 30);
  proto.set_raw_data("abcd");
  write_file(path("t.pb"), proto.SerializeAsString());
  EXPECT_THROW((void)read_tensor(path("t.pb")), Error);
}

}  // namespace
}  // namespace sylvite::tensor_io_test
