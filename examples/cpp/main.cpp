// Compiles an ONNX model and runs it once on zeros.
#include <sylvite/sylvite.h>

#include <iostream>

int main(int count, char** arguments) try {
  if (count != 2) throw sylvite::UsageError("usage: example MODEL.onnx");
  sylvite::CompileOptions options;
  options.import.random_weights = true;
  auto model = sylvite::compile(arguments[1], options);
  std::vector<sylvite::Tensor> inputs;
  for (const auto& type : model.input_types()) inputs.emplace_back(type.dtype, type.dims());
  for (const auto& output : model.run(inputs)) std::cout << output.type().to_string() << '\n';
  return 0;
} catch (const sylvite::Error& error) {
  std::cerr << error.what() << '\n';
  return static_cast<int>(error.code());
}
