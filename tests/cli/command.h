#pragma once
// Runs the built command as a user would, and makes small models for it.

#include <cstdint>
#include <string>
#include <vector>

namespace sylvite::testing_command {

struct Result {
  int exit_code = -1;  ///< -N when signal N ended it
  std::string out;
  std::string err;
};

/// The command with these arguments; XDG_CACHE_HOME is `home`.
[[nodiscard]] Result run_command(const std::vector<std::string>& arguments, const std::string& home);

/// Starts the command in a process group of its own and returns its process id; its output is thrown away.
[[nodiscard]] int start_command(const std::vector<std::string>& arguments, const std::string& home);

/// `sylvite tune` with these arguments and one thread, until so many trials are stored in `db`, which a busy machine takes
/// longer for; the last result. Its report, where one is asked for, is that of the last call.
[[nodiscard]] Result tune(std::vector<std::string> arguments, const std::string& db, std::int64_t trials,
                          const std::string& home);

/// A fresh, empty folder named after the running test.
[[nodiscard]] std::string fresh_folder();

/// x: f32[4,64] -> relu(x * w1 + b1) * w2 -> softmax y: f32[4,16], with weights inside; as bytes of an ONNX
/// file. `depth` hidden layers of different widths make as many different kernels.
[[nodiscard]] std::string small_model(int depth = 1);

/// The same with depth 1 and x: f32[batch,64].
[[nodiscard]] std::string open_model();

/// x: strings[2] -> their concatenation with themselves, y; parts, a sequence of f32, and maybe, an optional f32, as they
/// are: as s and o.
[[nodiscard]] std::string model_of_other_values();

/// small_model with its first node's operator renamed.
[[nodiscard]] std::string model_with_operator(const std::string& name);

}  // namespace sylvite::testing_command
