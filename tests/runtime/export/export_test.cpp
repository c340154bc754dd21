#include "runtime/export/export.h"

#include <HalideRuntime.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "frontend/graph/copy.h"
#include "frontend/graph/loop_builder.h"
#include "runtime/export/embed/launcher.h"
#include "runtime/export/embed/weights_file.h"
#include "tests/runtime/test_session.h"
#include "tests/support/shell.h"

namespace sylvite::export_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

void damage(const std::string& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(at);
  file << "damage";
}

/// Sums of rows, whose 32 bytes are no unit of alignment: the last, and all of them.
void add_loop(Graph& graph, ValueId rows) {
  GraphBuilder builder(graph);
  const LoopSpec spec{6, true, {{builder.filled(DType::f32, {8}, 0)}, {Sym(builder, rows)}}};
  const TripValues sums = run_loop(builder, spec, [](const TripValues& trip) -> TripValues {
    const Sym sum = trip.states[0] + trip.slices[0];
    return {{sum}, {sum}};
  });
  graph.outputs.push_back(sums.states[0].id());
  graph.outputs.push_back(sums.slices[0].id());
}

/// Every kind of argument and output: weights packed and not, views, copies of inputs and weights.
Graph sample_graph() {
  Graph graph;
  const ValueId x = graph.add_input("x \"quoted\"", make_type(DType::f32, {6, 8}));
  const ValueId n = graph.add_input("n", make_type(DType::i64, {3}));
  const ValueId w = graph.add_constant(sample_tensor(DType::f32, {8, 40}, 1), "w");
  const ValueId b = graph.add_constant(sample_tensor(DType::f32, {40}, 2), "b");
  const ValueId product = graph.add(Op::relu, {graph.add(Op::add, {graph.add(Op::matmul, {x, w}), b})});
  const ValueId sum = graph.add(Op::softmax, {product}, {{"axis", std::int64_t{1}}});
  graph.outputs = {sum,
                   x,
                   w,
                   sum,
                   graph.add(Op::add, {n, n}),
                   graph.add(Op::reshape, {sum}, {{"shape", std::vector<std::int64_t>{240}}})};
  add_loop(graph, x);
  return without_dead_nodes(graph);
}

/// Results of a run, and where they lie.
struct ResultMemory {
  std::vector<Tensor> results;
  std::vector<void*> outputs;
};
ResultMemory memory_for(const std::vector<Tensor>& expected) {
  ResultMemory memory;
  memory.outputs.reserve(expected.size());
  for (const Tensor& tensor : expected)
    memory.outputs.push_back(memory.results.emplace_back(tensor.dtype(), tensor.dims()).mutable_data());
  return memory;
}

/// The exported sample, linked into a shared object that this process opens.
class ExportTest : public testing::Test {
 protected:
  void SetUp() override {
    built_.emplace(build_graph(sample_graph(), test_options(folder_.path())));
    ExportOptions options;
    options.folder = folder_.path() + "/out";
    options.name = "sample";
    options.embed_weights = embeds_weights_;
    report_ = export_model(*built_, options);
    EXPECT_THAT(report_.warnings, testing::IsEmpty());
    const std::string out = options.folder;
    const std::string shared = out + "/sample.so";
    output_of("cc -shared -o " + shared + " -Wl,--whole-archive " + out +
              "/libsample.a -Wl,--no-whole-archive" + " -lm -lpthread -ldl");
    library_ = ::dlopen(shared.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << ::dlerror();
    weights_ = out + "/sample.weights";
  }
  ~ExportTest() override {
    if (library_ != nullptr) ::dlclose(library_);
  }
  template <typename Function>
  Function* find(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(library_, name));
  }
  int create(const char* path, sylvite_model** model) {
    return find<int(const char*, sylvite_model**)>("sample_create")(path, model);
  }
  std::string message(const sylvite_model* model) {
    return find<const char*(const sylvite_model*)>("sample_error_message")(model);
  }

  /// Runs it as the program; twice, as memory is used again.
  void expect_the_programs_results(sylvite_model* model) {
    const std::vector<Tensor> given = {sample_tensor(DType::f32, {6, 8}), sample_tensor(DType::i64, {3})};
    const std::vector<Tensor> expected = built_->program.run(given);
    auto [results, outputs] = memory_for(expected);
    const void* inputs[] = {given[0].data(), given[1].data()};
    const auto run = find<int(sylvite_model*, const void* const*, void* const*)>("sample_run");
    for (int i = 0; i < 2; ++i) ASSERT_EQ(run(model, inputs, outputs.data()), SYLVITE_OK) << message(model);
    for (std::size_t i = 0; i < expected.size(); ++i) expect_near(results[i], expected[i], 0);
  }

  bool embeds_weights_ = false;
  TemporaryFolder folder_;
  std::optional<Built> built_;
  ExportReport report_;
  void* library_ = nullptr;
  std::string weights_;
};

TEST_F(ExportTest, ComputesWhatTheProgramComputes) {
  sylvite_model* model = nullptr;
  ASSERT_EQ(create(weights_.c_str(), &model), SYLVITE_OK) << message(nullptr);
  expect_the_programs_results(model);
  const void* inputs[] = {nullptr, nullptr};
  std::array<void*, 8> outputs{};
  const auto run = find<int(sylvite_model*, const void* const*, void* const*)>("sample_run");
  EXPECT_EQ(run(nullptr, inputs, outputs.data()), SYLVITE_NULL_ARGUMENT);
  EXPECT_EQ(run(model, nullptr, outputs.data()), SYLVITE_NULL_ARGUMENT);
  inputs[0] = static_cast<const void*>(&model);
  EXPECT_EQ(run(model, inputs, outputs.data()), SYLVITE_NULL_ARGUMENT);
  EXPECT_THAT(message(model), HasSubstr("input 1 'n' is null"));
  find<void(sylvite_model*)>("sample_destroy")(model);
  find<void(sylvite_model*)>("sample_destroy")(nullptr);
}

class EmbeddingExportTest : public ExportTest {
 protected:
  EmbeddingExportTest() { embeds_weights_ = true; }
};

/// The library is all there is.
TEST_F(EmbeddingExportTest, NeedsNoWeightsFile) {
  EXPECT_FALSE(fs::exists(weights_));
  EXPECT_THAT(report_.files, testing::Each(Not(HasSubstr(".weights"))));
  EXPECT_THAT(read_file(folder_.path() + "/out/sampleConfig.cmake"), HasSubstr("set(sample_WEIGHTS \"\")"));
  fs::remove_all(folder_.path() + "/out");
  for (const char* path : {static_cast<const char*>(nullptr), ""}) {
    sylvite_model* model = nullptr;
    ASSERT_EQ(create(path, &model), SYLVITE_OK) << message(nullptr);
    expect_the_programs_results(model);
    find<void(sylvite_model*)>("sample_destroy")(model);
  }
  sylvite_model* model = nullptr;
  EXPECT_EQ(create("/nonexistent/weights", &model), SYLVITE_BAD_WEIGHTS);
}

TEST_F(EmbeddingExportTest, ShowsNoFurtherNames) {
  EXPECT_THAT(output_of("nm -D --defined-only " + folder_.path() + "/out/sample.so"),
              Not(HasSubstr("weights")));
}

/// A program, which has fixed addresses, beside the weights file of an earlier export.
TEST_F(ExportTest, AProgramMayHoldItsWeights) {
  ASSERT_TRUE(fs::exists(weights_));
  const std::string out = folder_.path() + "/out";
  ExportOptions options;
  options.folder = out;
  options.name = "sample";
  options.embed_weights = true;
  (void)export_model(*built_, options);
  EXPECT_FALSE(fs::exists(weights_));
  write_file(out + "/main.c",
             "#include \"sample.h\"\nint main(void) {\n  sylvite_model* model;\n"
             "  return sample_create(0, &model);\n}\n");
  output_of("cc -no-pie -o " + out + "/main " + out + "/main.c " + out +
            "/libsample.a -lm -lpthread -ldl && " + out + "/main");
}

/// One handle in two threads: each call computes what it should, or is refused.
TEST_F(ExportTest, OneCallAtATime) {
  sylvite_model* model = nullptr;
  ASSERT_EQ(create(weights_.c_str(), &model), SYLVITE_OK) << message(nullptr);
  const auto run = find<int(sylvite_model*, const void* const*, void* const*)>("sample_run");
  std::atomic<int> refused = 0;
  const auto run_often = [&](int seed) {
    const std::vector<Tensor> given = {sample_tensor(DType::f32, {6, 8}, seed),
                                       sample_tensor(DType::i64, {3}, seed)};
    std::vector<Tensor> expected;
    {
      static std::mutex one_program;
      const std::lock_guard lock(one_program);
      expected = built_->program.run(given);
    }
    auto [results, outputs] = memory_for(expected);
    const void* inputs[] = {given[0].data(), given[1].data()};
    for (int i = 0; i < 3000 || (refused == 0 && i < 300'000); ++i) {  // until the threads meet
      const int status = run(model, inputs, outputs.data());
      if (status == SYLVITE_BUSY) {
        ++refused;
        EXPECT_THAT(message(model), HasSubstr("another thread"));
        continue;
      }
      ASSERT_EQ(status, SYLVITE_OK) << message(model);
      expect_near(results[0], expected[0], 0);
    }
  };
  {
    const std::jthread other(run_often, 1);
    run_often(2);
  }
  EXPECT_GT(refused, 0);
  find<void(sylvite_model*)>("sample_destroy")(model);
}

TEST_F(ExportTest, RefusesAnotherModelsHandle) {
  sylvite_model* model = nullptr;
  ASSERT_EQ(create(weights_.c_str(), &model), SYLVITE_OK) << message(nullptr);
  // A second library with the same launcher, as two models in one program have.
  const std::string out = folder_.path() + "/out";
  output_of("sed 's/sample_/second_/g' " + out + "/sample.h > " + out + "/second.h && sed " +
            "'s/sample_/second_/g; s/sample[.]h/second.h/' " + out + "/sample.c > " + out + "/second.c");
  output_of("cc -shared -fPIC -o " + out + "/both.so " + out + "/second.c -Wl,--whole-archive " + out +
            "/libsample.a -Wl,--no-whole-archive -lm -lpthread -ldl");
  void* both = ::dlopen((out + "/both.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(both, nullptr) << ::dlerror();
  const auto create_first =
      reinterpret_cast<int (*)(const char*, sylvite_model**)>(::dlsym(both, "sample_create"));
  const auto run_second = reinterpret_cast<int (*)(sylvite_model*, const void* const*, void* const*)>(
      ::dlsym(both, "second_run"));
  const auto message_of =
      reinterpret_cast<const char* (*)(const sylvite_model*)>(::dlsym(both, "second_error_message"));
  sylvite_model* first = nullptr;
  ASSERT_EQ(create_first(weights_.c_str(), &first), SYLVITE_OK);
  EXPECT_EQ(run_second(first, nullptr, nullptr), SYLVITE_WRONG_MODEL);
  EXPECT_THAT(message_of(first), HasSubstr("was not created by"));
  find<void(sylvite_model*)>("sample_destroy")(model);
}

TEST_F(ExportTest, AChildOfAProcessThatRanModelsIsToldSo) {
  sylvite_model* model = nullptr;
  ASSERT_EQ(create(weights_.c_str(), &model), SYLVITE_OK) << message(nullptr);
  const std::vector<Tensor> given = {sample_tensor(DType::f32, {6, 8}), sample_tensor(DType::i64, {3})};
  auto [results, outputs] = memory_for(built_->program.run(given));
  const void* inputs[] = {given[0].data(), given[1].data()};
  const auto run = find<int(sylvite_model*, const void* const*, void* const*)>("sample_run");
  ASSERT_EQ(run(model, inputs, outputs.data()), SYLVITE_OK);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(run(model, inputs, outputs.data()));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), SYLVITE_FORKED);
  EXPECT_EQ(run(model, inputs, outputs.data()), SYLVITE_OK) << "the parent goes on";
  find<void(sylvite_model*)>("sample_destroy")(model);
}

TEST_F(ExportTest, ANegativeCountOfThreadsDoesNotEndTheProgram) {
  const auto set_threads = find<int(int)>("sample_set_threads");
  EXPECT_EQ(set_threads(-5), -1);
  EXPECT_GE(set_threads(0), 0);
}

/// An error of Halide's runtime that belongs to no run.
TEST_F(ExportTest, ErrorsOfTheRuntimeAreKept) {
  sylvite_model* model = nullptr;
  ASSERT_EQ(create(weights_.c_str(), &model), SYLVITE_OK) << message(nullptr);
  const std::string out = folder_.path() + "/out";
  std::ofstream(out + "/fail.c") << "#include \"sample.h\"\n#include <stdio.h>\n"
                                    "void halide_error(void*, const char*);\n"
                                    "int main(int n, char** words) {\n"
                                    "  sylvite_model* model;\n"
                                    "  int status = sample_create(words[1], &model);\n"
                                    "  halide_error(NULL, \"planted\");\n"
                                    "  puts(sample_error_message(NULL));\n"
                                    "  return n - 2 + status;\n}\n";
  output_of("cc -o " + out + "/fail " + out + "/fail.c -I" + out + " " + out +
            "/libsample.a -lm -lpthread -ldl");
  EXPECT_THAT(output_of(out + "/fail " + weights_), HasSubstr("planted"));
  find<void(sylvite_model*)>("sample_destroy")(model);
}

TEST_F(ExportTest, OnlyItsOwnNamesAreExported) {
  const std::string names = output_of("nm -D --defined-only " + folder_.path() + "/out/sample.so");
  EXPECT_THAT(names, HasSubstr(" sample_create\n"));
  EXPECT_THAT(names, Not(HasSubstr("halide_")));
  EXPECT_THAT(names, Not(HasSubstr("sylvite_")));
  EXPECT_THAT(names, Not(HasSubstr("_argv")));
}

TEST_F(ExportTest, DescribesInputsAndOutputs) {
  EXPECT_EQ(find<int()>("sample_input_count")(), 2);
  EXPECT_EQ(find<int()>("sample_output_count")(), 8);
  const auto input = find<const sylvite_tensor_info*(int)>("sample_input");
  EXPECT_STREQ(input(0)->name, "x \"quoted\"");
  EXPECT_STREQ(input(1)->dtype, "i64");
  EXPECT_EQ(input(0)->rank, 2);
  EXPECT_EQ(input(0)->dims[1], 8);
  EXPECT_EQ(input(0)->bytes, 6U * 8U * 4U);
  EXPECT_EQ(input(2), nullptr);
  EXPECT_EQ(input(-1), nullptr);
}

/// Names of outputs, as the exported functions give them.
TEST(ExportNames, OfOutputsAreThoseOfTheModel) {
  const TemporaryFolder folder;
  Built built = build_graph(blocked_outputs(), test_options(folder.path()));
  ExportOptions options;
  options.folder = folder.path() + "/out";
  options.name = "named";
  (void)export_model(built, options);
  const std::string program = folder.path() + "/names";
  write_file(program + ".c",
             "#include <stdio.h>\n#include \"named.h\"\n"
             "int main(void) {\n"
             "  for (int i = 0; i < named_output_count(); ++i) printf(\"%s \", named_output(i)->name);\n"
             "  return 0;\n}\n");
  output_of("cc -I" + options.folder + " -o " + program + " " + program + ".c " + options.folder +
            "/libnamed.a -lm -lpthread -ldl");
  EXPECT_EQ(output_of(program), "features again x_too ");
}

/// A library, its header and its weights belong together.
TEST_F(ExportTest, AnExportThatFailsChangesNoFile) {
  const std::string out = folder_.path() + "/out";
  const auto contents = [&] {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(out)) files[entry.path()] = read_file(entry.path());
    return files;
  };
  for (const char* file : {"/sample.c", "/sample.h"}) write_file(out + file, "of another model");
  const auto before = contents();
  ExportOptions options;
  options.folder = out;
  options.name = "sample";
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  const auto usual_action = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = usual;
  small.rlim_cur = fs::file_size(weights_) + 1;  // the library is larger
  ASSERT_LT(small.rlim_cur, fs::file_size(out + "/libsample.a"));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW((void)export_model(*built_, options), IoError);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &usual), 0);
  std::signal(SIGXFSZ, usual_action);
  EXPECT_EQ(contents(), before);
}

TEST_F(ExportTest, RefusesBadWeights) {
  sylvite_model* model = nullptr;
  EXPECT_EQ(create(nullptr, &model), SYLVITE_NULL_ARGUMENT);
  EXPECT_EQ(create(weights_.c_str(), nullptr), SYLVITE_NULL_ARGUMENT);
  EXPECT_EQ(create("/nonexistent/weights", &model), SYLVITE_BAD_WEIGHTS);
  EXPECT_EQ(model, nullptr);
  EXPECT_THAT(message(nullptr), HasSubstr("/nonexistent/weights cannot be opened"));
  EXPECT_EQ(create("", &model), SYLVITE_BAD_WEIGHTS);
  EXPECT_THAT(message(nullptr), HasSubstr("without a name"));
  EXPECT_EQ(create(folder_.path().c_str(), &model), SYLVITE_BAD_WEIGHTS);
  const std::string pipe = folder_.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(create(pipe.c_str(), &model), SYLVITE_BAD_WEIGHTS) << "nobody writes to it: it is not waited for";
  damage(weights_, SYLVITE_WEIGHTS_OFFSET + 100);
  EXPECT_EQ(create(weights_.c_str(), &model), SYLVITE_BAD_WEIGHTS);
  EXPECT_THAT(message(nullptr), HasSubstr("damaged"));
  damage(weights_, 16);
  EXPECT_EQ(create(weights_.c_str(), &model), SYLVITE_BAD_WEIGHTS);
  EXPECT_THAT(message(nullptr), HasSubstr("another model"));
  fs::resize_file(weights_, 10);
  EXPECT_EQ(create(weights_.c_str(), &model), SYLVITE_BAD_WEIGHTS);
  EXPECT_THAT(message(nullptr), HasSubstr("not a weights file"));
}

TEST_F(ExportTest, RefusesProcessorsWithoutTheFeatures) {
  // The tables as for a processor with instructions that none of today has.
  const std::string source = folder_.path() + "/out/sample.c";
  std::string text = output_of("cat " + source);
  const std::string array = "static const struct sylvite_feature features[] = {\n";
  ASSERT_NE(text.find(array), std::string::npos);
  ASSERT_NE(text.find("programs, features"), std::string::npos);
  text.insert(text.find(array) + array.size(),
              fmt::format("{{{}, \"avx512_knl\"}},\n", int{halide_target_feature_avx512_knl}));
  // Of the last three counts the first is the features'.
  std::size_t count = text.find(",\n};", text.find("programs, features"));
  for (int i = 0; i < 3; ++i) count = text.rfind(", ", count - 1);
  text.replace(count, 2, ", 1 + ");
  std::ofstream(source) << text;
  const std::string out = folder_.path() + "/out";
  output_of("cc -shared -fPIC -o " + out + "/other.so " + source + " -Wl,--allow-multiple-definition " + out +
            "/libsample.a -lm -lpthread -ldl");
  void* other = ::dlopen((out + "/other.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(other, nullptr) << ::dlerror();
  sylvite_model* model = nullptr;
  const auto create_other =
      reinterpret_cast<int (*)(const char*, sylvite_model**)>(::dlsym(other, "sample_create"));
  EXPECT_EQ(create_other(weights_.c_str(), &model), SYLVITE_UNSUPPORTED_CPU);
  ::dlclose(other);
}

TEST(ExportNamesTest, AreIdentifiers) {
  EXPECT_EQ(identifier_of("/a/resnet-18.v2.onnx"), "resnet_18_v2");
  EXPECT_EQ(identifier_of("18.onnx"), "model_18");
  EXPECT_EQ(identifier_of(""), "model");
  const TemporaryFolder folder;
  Built built = build_graph(sample_graph(), test_options(folder.path()));
  ExportOptions options;
  options.folder = folder.path() + "/out";
  options.name = "not-a-name";
  EXPECT_THROW((void)export_model(built, options), UsageError);
}

TEST(ExportNamesTest, WithoutACompilerTheUsersProjectCompilesTheTables) {
  const TemporaryFolder folder;
  Built built = build_graph(sample_graph(), test_options(folder.path()));
  ExportOptions options;
  options.folder = folder.path() + "/out";
  options.c_compiler = "/nonexistent/cc";
  const ExportReport report = export_model(built, options);
  EXPECT_THAT(report.warnings, testing::ElementsAre(HasSubstr("model.c")));
  EXPECT_THAT(output_of("cat " + options.folder + "/modelConfig.cmake"), HasSubstr("INTERFACE_SOURCES"));
}

/// A library beyond the limit of file sizes, as on a full disk.
TEST(ExportNamesTest, ALibraryThatCannotBeWrittenIsAnError) {
  const TemporaryFolder folder;
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {8, 512}));
  graph.outputs = {
      graph.add(Op::matmul, {x, graph.add_constant(sample_tensor(DType::f32, {512, 512}, 1), "w")})};
  Built built = build_graph(graph, test_options(folder.path()));
  ExportOptions options;
  options.folder = folder.path() + "/out";
  options.embed_weights = true;
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit lower{512 << 10, before.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &lower);
  EXPECT_THAT([&] { (void)export_model(built, options); },
              testing::ThrowsMessage<IoError>(HasSubstr("libmodel.a: File too large")));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_FALSE(fs::exists(options.folder + "/libmodel.a"));
}

/// The example project of examples/embed, against an export of ResNet-18; with Winograd's convolutions, whose
/// filters are not as in the model.
TEST(EmbedExampleTest, RunsWithNothingButLibc) {
  const TemporaryFolder folder;
  CompileOptions options = test_options(folder.path());
  options.set["import.random_weights"] = "0";
  const Imported imported =
      load_model(std::string(SYLVITE_TEST_DATA) + "/models/resnet18.onnx", make_setup(options));
  Chosen chosen = choose_candidates(imported);
  EXPECT_GE(choose_space(imported, chosen, "conv_winograd"), 4);
  Built built = build_program(imported, chosen);
  EXPECT_THAT(built.report.warnings, testing::IsEmpty());
  ExportOptions export_options;
  export_options.folder = folder.path() + "/resnet18";
  export_options.name = "resnet18";
  const ExportReport report = export_model(built, export_options);
  EXPECT_LT(report.library_bytes, 5 << 20);

  const std::string build = folder.path() + "/build";
  output_of(std::string(SYLVITE_CMAKE) + " -S " + SYLVITE_EXAMPLES + "/embed -B " + build +
            " -Dresnet18_DIR=" + export_options.folder);
  output_of(std::string(SYLVITE_CMAKE) + " --build " + build);
  Tensor image(DType::f32, {1, 3, 224, 224});
  std::ranges::fill(image.mutable_view<float>(), 1.0F);
  const Tensor scores = built.program.run({image})[0];
  const auto best = std::ranges::max_element(scores.view<float>());
  const std::string expected = fmt::format("class {}, score", best - scores.view<float>().begin());
  for (const char* program : {"/embed_c", "/embed_cpp"}) {
    EXPECT_THAT(output_of(build + program + " " + export_options.folder + "/resnet18.weights"),
                HasSubstr(expected));
    EXPECT_THAT(output_of("ldd " + build + program), Not(testing::ContainsRegex("Halide|LLVM|gomp|python")));
  }
}

}  // namespace
}  // namespace sylvite::export_test
