#include "tests/cli/command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <onnx-ml.pb.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "autotune/database.h"
#include "base/files.h"

namespace sylvite::testing_command {
namespace {

void add_tensor(onnx::GraphProto& graph, const std::string& name, const std::vector<std::int64_t>& dims) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) {
    tensor.add_dims(dim);
    count *= dim;
  }
  for (std::int64_t i = 0; i < count; ++i)
    tensor.add_float_data(static_cast<float>(std::sin(static_cast<double>(i * 7 + 3))) * 0.1F);
}

void add_node(onnx::GraphProto& graph, const std::string& op, const std::vector<std::string>& inputs,
              const std::string& output) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  node.set_name(output);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
}

void set_type(onnx::ValueInfoProto& value, const std::string& name, const std::vector<std::int64_t>& dims) {
  value.set_name(name);
  auto& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t dim : dims) tensor.mutable_shape()->add_dim()->set_dim_value(dim);
}

onnx::ModelProto make_model(int depth) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("small");
  set_type(*graph.add_input(), "x", {4, 64});
  set_type(*graph.add_output(), "y", {4, 16});
  std::string value = "x";
  std::int64_t width = 64;
  for (int i = 0; i < depth; ++i) {
    const std::string n = std::to_string(i);
    const std::int64_t next = 48 + 16 * i;
    add_tensor(graph, "w" + n, {width, next});
    add_tensor(graph, "b" + n, {next});
    add_node(graph, "MatMul", {value, "w" + n}, "product" + n);
    add_node(graph, "Add", {"product" + n, "b" + n}, "sum" + n);
    add_node(graph, "Relu", {"sum" + n}, "hidden" + n);
    value = "hidden" + n;
    width = next;
  }
  add_tensor(graph, "w", {width, 16});
  add_node(graph, "MatMul", {value, "w"}, "logits");
  add_node(graph, "Softmax", {"logits"}, "y");
  return model;
}

std::vector<char*> argv_of(std::vector<std::string>& words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return argv;
}

/// Ends the process when the file cannot be opened.
void open_as(int descriptor, const std::string& path, int flags) {
  const int file = ::open(path.c_str(), flags, 0644);
  if (file < 0) ::_exit(127);
  ::dup2(file, descriptor);
}

/// Forks and executes the command with stdout and stderr in these files.
pid_t spawn(const std::vector<std::string>& arguments, const std::string& home, const std::string& out,
            const std::string& err) {
  std::vector<std::string> words{SYLVITE_COMMAND};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv = argv_of(words);
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setpgid(0, 0);
  ::setenv("XDG_CACHE_HOME", home.c_str(), 1);
  open_as(STDIN_FILENO, "/dev/null", O_RDONLY);
  open_as(STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC);
  open_as(STDERR_FILENO, err, O_WRONLY | O_CREAT | O_TRUNC);
  ::execv(argv.front(), argv.data());
  ::_exit(127);
}

}  // namespace

Result run_command(const std::vector<std::string>& arguments, const std::string& home) {
  const std::string out = home + "/stdout";
  const std::string err = home + "/stderr";
  int status = 0;
  ::waitpid(spawn(arguments, home, out, err), &status, 0);
  const int exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return {exit_code, read_file(out), read_file(err)};
}

int start_command(const std::vector<std::string>& arguments, const std::string& home) {
  return spawn(arguments, home, "/dev/null", "/dev/null");
}

Result tune(std::vector<std::string> arguments, const std::string& db, std::int64_t trials,
            const std::string& home) {
  arguments.insert(arguments.begin(), "tune");
  arguments.insert(arguments.end(), {"--db", db, "--threads", "1", "--budget", ""});
  Result result;
  for (const char* budget : {"5s", "20s", "120s", "600s"}) {  // a larger one goes on where the last one ended
    arguments.back() = budget;
    result = run_command(arguments, home);
    if (result.exit_code != 0 || Database(db).trial_count() >= trials) break;
  }
  return result;
}

std::string fresh_folder() {
  const auto& info = *testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string("sylvite_") + info.test_suite_name() + "_" + info.name();
  for (char& c : name) c = c == '/' ? '_' : c;
  std::string folder = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  make_folder(folder);
  return folder;
}

std::string small_model(int depth) {
  return make_model(depth).SerializeAsString();
}

std::string open_model() {
  onnx::ModelProto model = make_model(1);
  auto& type = *model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
  type.mutable_shape()->mutable_dim(0)->set_dim_param("batch");
  model.mutable_graph()->mutable_output(0)->clear_type();
  return model.SerializeAsString();
}

std::string model_of_other_values() {
  onnx::ModelProto model;
  model.set_ir_version(9);
  model.add_opset_import()->set_version(20);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("other");
  const auto set_types = [](auto& values, const std::vector<std::string>& names) {
    for (const std::string& name : names) values.Add()->set_name(name);
    auto& strings = *values.Mutable(0)->mutable_type()->mutable_tensor_type();
    strings.set_elem_type(onnx::TensorProto::STRING);
    strings.mutable_shape()->add_dim()->set_dim_value(2);
    auto& items = *values.Mutable(1)->mutable_type()->mutable_sequence_type()->mutable_elem_type();
    items.mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    auto& value = *values.Mutable(2)->mutable_type()->mutable_optional_type()->mutable_elem_type();
    value.mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  };
  set_types(*graph.mutable_input(), {"x", "parts", "maybe"});
  set_types(*graph.mutable_output(), {"y", "s", "o"});
  add_node(graph, "StringConcat", {"x", "x"}, "y");
  add_node(graph, "Identity", {"parts"}, "s");
  add_node(graph, "Identity", {"maybe"}, "o");
  return model.SerializeAsString();
}

std::string model_with_operator(const std::string& name) {
  onnx::ModelProto model = make_model(1);
  model.mutable_graph()->mutable_node(0)->set_op_type(name);
  return model.SerializeAsString();
}

}  // namespace sylvite::testing_command
