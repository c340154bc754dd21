// Exported libraries whose models hold values between runs, in C programs with AddressSanitizer.

#include <gmock/gmock.h>

#include "base/files.h"
#include "runtime/export/export.h"
#include "sylvite/graph_text.h"
#include "tests/runtime/test_session.h"
#include "tests/support/sample_states.h"
#include "tests/support/shell.h"

namespace sylvite::states_export_test {
namespace {

class StatesExport : public testing::Test {
 protected:
  /// What a C program prints that is linked with the exported model, called kept.
  std::string run_with(Built& built, const std::string& program) {
    ExportOptions options;
    options.folder = folder_.path();
    options.name = "kept";
    EXPECT_THAT(export_model(built, options).warnings, testing::IsEmpty());
    write_file(folder_.file("main.c"), program);
    output_of("cc -g -fsanitize=address,undefined -fno-sanitize-recover=all -I " + folder_.path() + " " +
              folder_.file("main.c") + " -L " + folder_.path() + " -lkept -lm -lpthread -ldl -o " +
              folder_.file("main"));
    return output_of(folder_.file("main") + " " + folder_.file("kept.weights"));
  }
  TemporaryFolder folder_;
};

TEST_F(StatesExport, ModelsKeepResetAndCopyStates) {
  const Graph graph = parse_graph(
      "graph counter(%step: f32[3], %count: f32[3], %sum: i64[2]) {\n"
      "  %one = constant i64[2] {1, 2}\n"
      "  %next: f32[3] = add(%count, %step)\n"
      "  %more: i64[2] = add(%sum, %one)\n"
      "  %twice: f32[3] = add(%next, %next)\n"
      "  return %twice, %next to %count, %more to %sum\n}\n");
  Built built = build_graph(graph, test_options(folder_.path()));
  EXPECT_EQ(run_with(built, R"(
#include <malloc.h>
#include <stdio.h>
#include "kept.h"
static void step(sylvite_model* model, float by) {
  float given[3] = {by, by, by}, twice[3];
  const void* inputs[] = {given};
  void* outputs[] = {twice};
  if (kept_run(model, inputs, outputs) != SYLVITE_OK) puts(kept_error_message(model));
  printf("%g ", twice[2]);
}
int main(int count, char** words) {
  sylvite_model *a, *b;
  int64_t sum[2] = {0, 0};
  float seven[3] = {7, 7, 7};
  if (kept_create(words[1], &a) != SYLVITE_OK || kept_create(words[1], &b) != SYLVITE_OK) return 1;
  printf("%d %d %d %s %s %d\n", kept_input_count(), kept_output_count(), kept_state_count(), kept_state(0)->name,
         kept_state(1)->dtype, kept_state(2) == NULL);
  step(a, 1), step(a, 1), step(b, 5);
  kept_copy_state(b, a), step(b, 1), step(a, 1);
  kept_get_state(a, 1, sum), printf("%d %d ", (int)sum[0], (int)sum[1]);
  kept_reset(a), step(a, 3), step(b, 1);
  kept_set_state(a, 0, seven), step(a, 1);
  printf("\n%d %s\n", kept_get_state(a, 2, sum), kept_error_message(a));
  printf("%d %s\n", kept_set_state(a, 1, NULL), kept_error_message(a));
  printf("%d %s\n", kept_copy_state(a, NULL), kept_error_message(a));
  printf("%d\n", kept_reset(NULL));
  const struct mallinfo2 before = mallinfo2();
  for (int i = 0; i < 10000; ++i) {
    float given[3] = {0, 0, 0}, twice[3];
    const void* inputs[] = {given};
    void* outputs[] = {twice};
    kept_run(a, inputs, outputs);
  }
  printf("%d\n", (int)(mallinfo2().uordblks - before.uordblks));
  kept_destroy(a), kept_destroy(b);
  return count != 2;
}
)"),
            "1 1 2 count i64 1\n"
            "2 4 10 6 6 3 6 6 8 16 \n"
            "1 get_state: there is no state 2; the model has 2\n"
            "1 set_state: the value of state 1 'sum' is null\n"
            "1 copy_state: the model to copy from is null, of another kind, or runs\n"
            "1\n0\n");
}

TEST_F(StatesExport, ADecoderGoesTokenByToken) {
  SampleDecoder decoder;
  decoder.capacity = 40;
  Built built = build_graph(decoder.by_tokens(), test_options(folder_.path()));
  double sum = 0;
  Tensor token(DType::i64, {1});
  Tensor position(DType::i64, {1});
  for (std::int64_t i = 0; i < decoder.capacity; ++i) {
    token.set_int64(0, i * 7 % decoder.tokens);
    position.set_int64(0, i);
    const Tensor logits = built.program.run({token, position})[0];
    for (std::int64_t j = 0; j < decoder.tokens; ++j) sum += logits.as_double(j) * static_cast<double>(j);
  }
  const std::string printed = run_with(built, R"(
#include <stdio.h>
#include "kept.h"
int main(int count, char** words) {
  sylvite_model* model;
  float logits[61];
  double sum = 0;
  if (count != 2 || kept_create(words[1], &model) != SYLVITE_OK) return 1;
  for (int64_t i = 0; i < 40; ++i) {
    int64_t token = i * 7 % 61;
    const void* inputs[] = {&token, &i};
    void* outputs[] = {logits};
    if (kept_run(model, inputs, outputs) != SYLVITE_OK) return 1;
    for (int j = 0; j < 61; ++j) sum += (double)logits[j] * j;
  }
  kept_destroy(model);
  printf("%.4f\n", sum);
  return 0;
}
)");
  EXPECT_NEAR(std::stod(printed), sum, 1e-3);
}

}  // namespace
}  // namespace sylvite::states_export_test
