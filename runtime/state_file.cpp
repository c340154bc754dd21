#include "runtime/state_file.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/words.h"

namespace sylvite {
namespace {

constexpr std::string_view first_line = "SYLVITE STATES 1";

std::string states_header(const SavedStates& states) {
  std::string text = fmt::format("model {}\n", states.model);
  for (std::size_t i = 0; i < states.values.size(); ++i)
    text += fmt::format("{} {}\n", states.values[i].type().to_string(), states.names.at(i));
  return text;
}

std::size_t bytes_of_states(const SavedStates& states) {
  std::size_t bytes = 0;
  for (const Tensor& value : states.values) bytes += static_cast<std::size_t>(value.byte_size());
  return bytes;
}

}  // namespace

std::string plan_id(const Plan& plan) {
  std::string text = plan.name;
  for (const Kernel& kernel : plan.kernels) text += kernel.id;
  for (const Tensor& weight : plan.weights)
    text +=
        sha256_hex({static_cast<const char*>(weight.data()), static_cast<std::size_t>(weight.byte_size())});
  return short_hash(text);
}

void write_states_file(const std::string& path, const SavedStates& states) {
  std::string content = states_header(states) + "\n";
  for (const Tensor& value : states.values)
    content.append(static_cast<const char*>(value.data()), static_cast<std::size_t>(value.byte_size()));
  write_file(path, fmt::format("{}\n{}\n{}", first_line, short_hash(content), content));
}

std::vector<Tensor> read_states_file(const std::string& path, const SavedStates& wanted) {
  const std::string file = read_file(path);
  std::string_view rest = file;
  const std::string_view first = take_line(rest);
  if (!first.starts_with("SYLVITE STATES "))
    throw IoError("'{}' holds no states: CompiledModel::save_state writes them", path);
  if (first != first_line)
    throw IoError("'{}' is '{}', expected '{}': save it again with this version", path, first, first_line);
  const std::string_view hash = take_line(rest);
  if (hash != short_hash(rest))
    throw IoError("'{}' is damaged: its bytes are not those that were written", path);
  const std::string header = states_header(wanted) + "\n";
  if (!rest.starts_with(header)) {
    const std::string_view model = take_line(rest);
    if (model != "model " + wanted.model)
      throw InputError("'{}' holds the states of another model: {}, expected model {}", path, model,
                       wanted.model);
    throw InputError("'{}' holds other states than the model has: the first is '{}', expected\n{}", path,
                     take_line(rest), states_header(wanted));
  }
  rest.remove_prefix(header.size());
  if (rest.size() != bytes_of_states(wanted))
    throw IoError("'{}' is damaged: {} bytes of states, expected {}", path, rest.size(),
                  bytes_of_states(wanted));
  std::vector<Tensor> values;
  for (const Tensor& each : wanted.values) {
    Tensor& value = values.emplace_back(each.dtype(), each.dims());
    const auto size = static_cast<std::size_t>(value.byte_size());
    if (size > 0) std::memcpy(value.mutable_data(), rest.data(), size);
    rest.remove_prefix(size);
  }
  return values;
}

}  // namespace sylvite
