#include "runtime/object_loader.h"

#include <Halide.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "runtime/threads.h"

namespace sylvite::object_loader_test {
namespace {

/// out(x, y) = in(x, y) + y, parallel over y, as an object of the kind the compiler makes.
std::string sample_object(const std::string& symbol) {
  using namespace Halide;
  ImageParam in(Float(32), 2, "in");
  Func out("out");
  Var x("x"), y("y");
  out(x, y) = in(x, y) + cast<float>(y);
  out.parallel(y);
  const Target target = get_host_target().with_feature(Target::NoRuntime).with_feature(Target::UserContext);
  const auto path = std::filesystem::temp_directory_path() / (symbol + std::to_string(::getpid()) + ".o");
  out.compile_to_object(path.string(), {in}, symbol, target);
  std::ifstream file(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  std::filesystem::remove(path);
  return bytes;
}

class ObjectLoaderTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { object_ = new std::string(sample_object("sample")); }

  int call(KernelArgv kernel, RunContext& context, Halide::Runtime::Buffer<float>& in,
           Halide::Runtime::Buffer<float>& out) {
    void* user_context = &context;
    void* arguments[] = {static_cast<void*>(&user_context), in.raw_buffer(), out.raw_buffer()};
    return kernel(arguments);
  }

  static std::string* object_;
};
std::string* ObjectLoaderTest::object_ = nullptr;

TEST_F(ObjectLoaderTest, LoadsAndRunsOnSeveralThreads) {
  ObjectLoader loader;
  const KernelArgv kernel = loader.load(*object_, "sample");
  Halide::Runtime::Buffer<float> in(16, 100), out(16, 100);
  in.fill(1.0F);
  RunContext context(3);
  ASSERT_EQ(call(kernel, context, in, out), 0) << context.take_error();
  for (int y = 0; y < 100; ++y) EXPECT_EQ(out(5, y), 1.0F + static_cast<float>(y));
}

TEST_F(ObjectLoaderTest, ReportsKernelErrorsInTheContext) {
  ObjectLoader loader;
  const KernelArgv kernel = loader.load(*object_, "sample");
  Halide::Runtime::Buffer<float> in(8, 100), out(16, 100);
  RunContext context(2);
  EXPECT_NE(call(kernel, context, in, out), 0);
  EXPECT_THAT(context.take_error(), testing::HasSubstr("in"));
  EXPECT_EQ(context.take_error(), "");
}

TEST_F(ObjectLoaderTest, LoadersAreIndependent) {
  ObjectLoader first;
  auto second = std::make_unique<ObjectLoader>();
  EXPECT_NE(first.load(*object_, "sample"), second->load(*object_, "sample"));
  second.reset();
  EXPECT_THROW((void)first.load(*object_, "sample"), IoError);
}

TEST_F(ObjectLoaderTest, RefusesWhatDoesNotLink) {
  ObjectLoader loader;
  EXPECT_THROW((void)loader.load("not an object", "sample"), IoError);
  EXPECT_THROW((void)loader.load(object_->substr(0, object_->size() / 2), "sample"), IoError);
  EXPECT_THROW((void)loader.load(*object_, "another_name"), IoError);
  EXPECT_THROW((void)loader.load("", "sample"), IoError);
}

}  // namespace
}  // namespace sylvite::object_loader_test
