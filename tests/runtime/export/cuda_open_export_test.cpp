// Libraries for a GPU whose functions take sizes, on a machine without one: a driver that launches nothing counts blocks. That results
// are right is tests/gpu's part.

#include <gmock/gmock.h>

#include <sstream>

#include "base/files.h"
#include "runtime/export/export.h"
#include "tests/runtime/export/fake_cuda_driver.h"
#include "tests/runtime/test_session.h"
#include "tests/support/growing_decoder.h"
#include "tests/support/open_models.h"
#include "tests/support/sample_card.h"
#include "tests/support/shell.h"

namespace sylvite::cuda_open_export_test {
namespace {

using testing::HasSubstr;

/// Runs at all sizes that its arguments say, says what was launched, then calls in turn without more memory.
constexpr const char* user = R"(
#include <stdio.h>
#include <stdlib.h>
#include "opened.h"
extern void fake_report(void);
extern size_t __sanitizer_get_current_allocated_bytes(void);
static int run(sylvite_model* model, const int64_t* sizes) {
  void *inputs[4], *outputs[4];
  int64_t dims[8];
  for (int i = 0; i < opened_input_count() + opened_output_count(); ++i) {
    const int is_output = i >= opened_input_count(), number = is_output ? i - opened_input_count() : i;
    const struct sylvite_tensor_info* info = is_output ? opened_output(number) : opened_input(number);
    size_t all = 1, now = 1;
    const int status = is_output ? opened_output_dims(model, sizes, number, dims) : opened_input_dims(model, sizes, number, dims);
    if (status != SYLVITE_OK) return status;
    for (int j = 0; j < info->rank; ++j) all *= info->dims[j], now *= dims[j];
    *(is_output ? &outputs[number] : &inputs[number]) = calloc(1, info->bytes / all * now);  /* and no byte more */
  }
  const int status = opened_run(model, sizes, (const void* const*)inputs, outputs);
  for (int i = 0; i < opened_input_count(); ++i) free(inputs[i]);
  for (int i = 0; i < opened_output_count(); ++i) free(outputs[i]);
  return status;
}
int main(int words, char** word) {
  sylvite_model* model;
  const int count = opened_size_count(), runs = (words - 2) / count;
  int64_t sizes[64];
  for (int i = 2; i < words; ++i) sizes[i - 2] = atoll(word[i]);
  if (opened_create(word[1], &model) != SYLVITE_OK) return puts(opened_error_message(NULL)), 1;
  for (int i = 0; i < runs; ++i) {
    if (run(model, sizes + i * count) != SYLVITE_OK) puts(opened_error_message(model));
    fake_report();
  }
  const size_t before = __sanitizer_get_current_allocated_bytes();
  for (int i = 0; i < 500; ++i)
    if (run(model, sizes + i % runs * count) == SYLVITE_NO_ROOM) opened_reset(model);
  printf("%d bytes more\n", (int)(__sanitizer_get_current_allocated_bytes() - before));
  printf("%d\n", opened_run(model, NULL, NULL, NULL));
  printf("%d %s\n", opened_run_on_stream(model, sizes, NULL, NULL, &sizes), opened_error_message(model));
  opened_destroy(model);
  return 0;
}
)";

class CudaOpenExport : public testing::Test {
 protected:
  ExportReport exported(const std::string& model, const std::string& dims, bool has_states = false) {
    CompileOptions options = test_options(folder_.path());
    options.set["import.dims"] = dims;
    if (has_states) options.set["import.state"] = "usual";
    const auto setup = std::make_shared<sylvite::Setup>(*make_setup(options));
    setup->machine = with_gpu(setup->machine, sample_card());
    setup->runs_here = false;
    write_file(folder_.file("opened.onnx"), model);
    const OpenModel open = open_model(folder_.file("opened.onnx"), setup);
    ExportOptions wanted;
    wanted.folder = folder_.path();
    wanted.name = "opened";
    wanted.architectures = {"sm_90"};
    CompileReport compiled;
    return export_open_model(
        open, [](const Imported& imported) { return choose_candidates(imported); }, wanted, compiled);
  }
  /// What the user prints.
  std::string run(const std::vector<Sizes>& runs) {
    write_file(folder_.file("driver.c"), fake_cuda_driver);
    write_file(folder_.file("main.c"), user);
    output_of("cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o " + folder_.file("libcuda.so.1") + " " +
              folder_.file("driver.c"));
    output_of("cc -g -fsanitize=address,undefined -fno-sanitize-recover=all -I " + folder_.path() + " " +
              folder_.file("main.c") + " -L " + folder_.path() +
              " -lopened -lpthread -ldl -l:libcuda.so.1 -o " + folder_.file("main"));
    std::string words;
    for (const Sizes& sizes : runs)
      for (const std::int64_t size : sizes) words += " " + std::to_string(size);
    return output_of("LD_LIBRARY_PATH=" + folder_.path() + " " + folder_.file("main") + " " +
                     folder_.file("opened.weights") + words);
  }
  /// The blocks of each run, of which all have launches.
  static std::vector<long> blocks_in(const std::string& printed) {
    std::vector<long> blocks;
    std::istringstream lines(printed);
    long launches = 0, count = 0;
    for (std::string line; std::getline(lines, line);)
      if (std::sscanf(line.c_str(), "%ld launches, %ld blocks", &launches, &count) == 2)
        blocks.push_back(launches > 0 ? count : 0);
    return blocks;
  }

  TemporaryFolder folder_;
};

TEST_F(CudaOpenExport, ATransformerTakesBatchAndLength) {
  GrowingDecoder decoder;
  decoder.has_past = false;
  decoder.style = GrowingDecoder::Style::ranges;
  decoder.layers = 1;
  const ExportReport report = exported(decoder.model().SerializeAsString(), "batch=1..3@1,sequence=1..80@64");
  EXPECT_LE(report.programs, 16);
  const std::string printed = run({{1, 64}, {3, 80}, {1, 1}, {2, 7}, {3, 80}, {1, 64}, {7, 3}, {2, 33}});
  const std::vector<long> blocks = blocks_in(printed);
  ASSERT_EQ(blocks.size(), 8U) << printed;
  EXPECT_GT(blocks[1], blocks[0]);
  EXPECT_LT(blocks[2], blocks[0]);
  EXPECT_EQ(blocks[4], blocks[1]);
  EXPECT_EQ(blocks[5], blocks[0]);
  EXPECT_EQ(blocks[6], 0);
  EXPECT_THAT(printed, HasSubstr("run: size 0 'batch' is 7, expected 1 to 3\n"));
  EXPECT_THAT(printed, HasSubstr("0 bytes more\n1\n"));
}

/// How long they are is counted where runs are queued; the driver's kernels write nothing.
TEST_F(CudaOpenExport, StatesGrowByWhatARunAdds) {
  GrowingDecoder decoder;
  decoder.layers = 1;
  (void)exported(decoder.model().SerializeAsString(), "batch=1,sequence=1..6@1,past_sequence=1..16", true);
  const std::string printed = run({{4}, {1}, {6}, {4}, {5}, {1}});
  const std::vector<long> blocks = blocks_in(printed);
  ASSERT_EQ(blocks.size(), 6U) << printed;
  EXPECT_GT(blocks[3], 0);
  EXPECT_EQ(blocks[4], 0);  // the fifth run does not fit
  EXPECT_GT(blocks[5], 0);
  EXPECT_THAT(printed,
              HasSubstr("run: 'past_sequence' is 15, and this run adds 5: states have room for 16\n"));
  EXPECT_THAT(printed, HasSubstr("0 bytes more\n1\n5 run: a model whose states grow is not captured"));
}

TEST_F(CudaOpenExport, ImagesMayHaveManySizes) {
  const ExportReport report = exported(image_model("lines", "columns", {2, 1, 2}),
                                       "batch=1..8@8,lines=32..96%16,columns=32..96%16@64");
  EXPECT_LE(report.programs, 40);
  const std::string printed = run({{1, 32, 48}, {8, 64, 96}, {2, 48, 64}, {5, 32, 64}, {8, 64, 96}});
  const std::vector<long> blocks = blocks_in(printed);
  ASSERT_EQ(blocks.size(), 5U) << printed;
  EXPECT_GT(blocks[1], blocks[3]);
  EXPECT_GT(blocks[3], blocks[0]);
  EXPECT_EQ(blocks[4], blocks[1]);
  EXPECT_THAT(printed, HasSubstr("0 bytes more\n1\n"));
}

}  // namespace
}  // namespace sylvite::cuda_open_export_test
