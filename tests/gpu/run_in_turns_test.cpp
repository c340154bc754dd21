// Runs that take memory as they need it, and let it go.

#include <map>
#include <memory>
#include <set>

#include "sylvite/graph_text.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/runtime/test_session.h"

namespace sylvite::run_in_turns_test {
namespace {

/// Values of a megabyte and more, one after another and beside each other, small ones, and results that are copies.
Graph long_graph() {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {640, 512}));
  const ValueId w = graph.add_input("w", make_type(DType::f32, {512, 512}));
  const ValueId b = graph.add_constant(sample_tensor(DType::f32, {512}, 2));
  ValueId value = x, sum = no_value;
  for (int i = 0; i < 6; ++i) {
    const ValueId product = graph.add(Op::matmul, {value, w});
    value = graph.add(Op::tanh, {graph.add(Op::add, {product, b})});
    const ValueId rows =
        graph.add(Op::reduce_max, {product}, {{"axes", Dims{1}}, {"keepdims", std::int64_t{1}}});
    sum = sum == no_value ? rows : graph.add(Op::add, {sum, rows});
  }
  graph.outputs = {sum, value, x, b, graph.add(Op::mul, {value, sum})};
  return graph;
}

/// Hands out new memory, and spoils what is let go, on the stream of the run.
class SpoilingMemory {
 public:
  SpoilingMemory(const cuda::Stream& stream, std::size_t work_bytes, std::vector<std::size_t> result_bytes,
                 std::vector<cuda::DevicePointer> inputs, std::vector<std::size_t> input_bytes)
      : stream_(stream),
        result_bytes_(std::move(result_bytes)),
        inputs_(std::move(inputs)),
        input_bytes_(std::move(input_bytes)) {
    memory.work = take(work_bytes);
    memory.take_output = [this](std::size_t output) {
      EXPECT_TRUE(outputs.try_emplace(output, take(result_bytes_.at(output))).second);
      return outputs.at(output);
    };
    memory.take_value = [this](std::size_t value, std::size_t bytes) {
      EXPECT_TRUE(values.try_emplace(value, take(bytes), bytes).second);
      most_values = std::max(most_values, values.size());
      return values.at(value).first;
    };
    memory.drop_value = [this](std::size_t value) {
      spoil(values.at(value).first, values.at(value).second);
      values.erase(value);
    };
    memory.drop_input = [this](std::size_t input) {
      EXPECT_TRUE(dropped.insert(input).second);
      spoil(inputs_.at(input), input_bytes_.at(input));
    };
  }

  RunMemory memory;
  std::map<std::size_t, cuda::DevicePointer> outputs;
  std::map<std::size_t, std::pair<cuda::DevicePointer, std::size_t>> values;
  std::set<std::size_t> dropped;
  std::size_t most_values = 0;

 private:
  cuda::DevicePointer take(std::size_t bytes) {
    blocks_.push_back(std::make_unique<cuda::DeviceMemory>(bytes));
    return blocks_.back()->address();
  }
  void spoil(cuda::DevicePointer address, std::size_t bytes) {
    cuda::driver().fill_bytes(address, 0xff, bytes, stream_.get());
  }

  const cuda::Stream& stream_;
  std::vector<std::size_t> result_bytes_;
  std::vector<cuda::DevicePointer> inputs_;
  std::vector<std::size_t> input_bytes_;
  std::vector<std::unique_ptr<cuda::DeviceMemory>> blocks_;
};

class RunInTurns : public GpuTest {
 protected:
  TemporaryFolder folder_;
};

TEST_F(RunInTurns, GivesWhatWholeRunsGive) {
  CompileOptions options = test_options(folder_.path());
  options.set["compile.device"] = "cuda";
  Built made = build_graph(long_graph(), options);
  const cuda::Stream stream;
  for (const int seed : {5, 6}) {
    const std::vector<Tensor> given = {sample_tensor(DType::f32, {640, 512}, seed),
                                       sample_tensor(DType::f32, {512, 512}, seed + 7)};
    const std::vector<Tensor> wanted = made.program.run(given);
    std::vector<cuda::DeviceMemory> memory;
    std::vector<cuda::DevicePointer> inputs;
    std::vector<std::size_t> input_bytes, result_bytes;
    for (const Tensor& each : given) {
      input_bytes.push_back(static_cast<std::size_t>(each.byte_size()));
      inputs.push_back(memory.emplace_back(input_bytes.back()).address());
      cuda::driver().copy_to_device(inputs.back(), each.data(), input_bytes.back(), stream.get());
    }
    for (const Tensor& each : wanted) result_bytes.push_back(static_cast<std::size_t>(each.byte_size()));
    SpoilingMemory run(stream, made.program.work_bytes(true), result_bytes, inputs, input_bytes);
    made.program.run_in_turns(stream.get(), inputs, run.memory);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      Tensor result(wanted[i].dtype(), wanted[i].dims());
      cuda::driver().copy_to_host(result.mutable_data(), run.outputs.at(i), result_bytes[i], stream.get());
      stream.synchronize();
      expect_near(result, wanted[i], 0);
    }
    EXPECT_EQ(run.dropped, std::set<std::size_t>{1}) << "the first is a result";
    EXPECT_TRUE(run.values.empty());
    EXPECT_LE(run.most_values, 3U);
    EXPECT_LT(made.program.work_bytes(true), made.program.work_bytes());
  }
}

}  // namespace
}  // namespace sylvite::run_in_turns_test
