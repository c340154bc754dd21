#include "schedules/cuda/object.h"

#include <cstring>
#include <optional>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/error.h"

// The bytes: a line that names the format, then every field in turn. Numbers are as they lie in memory; texts and
// lists begin with their length, what may be absent with a flag, and a variant with its index.

namespace sylvite {
namespace {

constexpr std::string_view magic = "sylvite-cuda-object ";
constexpr std::string_view version = "3\n";  // counts changes of what follows

// The fields of each struct, in the order in which they are written and read.
auto fields(CudaWindows& s) {
  return std::tie(s.first, s.last, s.step);
}
auto fields(CudaTensorMap& s) {
  return std::tie(s.argument, s.offset, s.dtype, s.rounds_to_tf32, s.dims, s.pitches, s.box, s.swizzle,
                  s.windows);
}
auto fields(BlockStep& s) {
  return std::tie(s.kind, s.number);
}
auto fields(LaunchShape& s) {
  return std::tie(s.grid, s.steps, s.most, s.block, s.cluster, s.shared_bytes, s.programmatic);
}
auto fields(MatmulOperand& s) {
  return std::tie(s.input, s.depth_fast, s.offset, s.pitch, s.batch_pitch, s.each, s.period, s.inner,
                  s.outer_pitch, s.is_weight);
}
auto fields(SimpleEpilogue& s) {
  return std::tie(s.bias, s.bias_type, s.activation);
}
auto fields(LibraryMatmulProblem& s) {
  return std::tie(s.a, s.b, s.element, s.out, s.batch, s.m, s.n, s.k, s.out_argument, s.epilogue);
}
auto fields(LibraryMatmul& s) {
  return std::tie(s.problem, s.algorithm);
}
auto fields(LibraryConvProblem& s) {
  return std::tie(s.images_argument, s.filter_argument, s.bias_argument, s.residual_argument, s.out_argument,
                  s.element, s.bias_type, s.images, s.filter, s.out, s.strides, s.dilations, s.pads_before,
                  s.pads_after, s.relu);
}
auto fields(LibraryConv& s) {
  return std::tie(s.problem, s.engine);
}
auto fields(LaunchSpec& s) {
  return std::tie(s.entry, s.shape, s.maps, s.pointers, s.numbers, s.library);
}
auto fields(CudaObject& s) {
  return std::tie(s.launch, s.image, s.architecture);
}

class Writer {
 public:
  explicit Writer(std::string& bytes) : bytes_(bytes) {}

  template <typename T>
  void add(T& value) {
    if constexpr (std::is_same_v<T, bool>)
      add_number(value ? 1 : 0);
    else if constexpr (std::is_arithmetic_v<T>)
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    else
      std::apply([this](auto&... each) { (this->add(each), ...); }, fields(value));
  }
  void add(std::string& text) {
    add_number(text.size());
    bytes_ += text;
  }
  void add(DType& dtype) {
    std::string name(dtype_name(dtype));
    add(name);
  }
  void add(SimpleEpilogue::Activation& activation) { add_number(static_cast<std::uint64_t>(activation)); }
  void add(BlockStep::Kind& kind) { add_number(static_cast<std::uint64_t>(kind)); }
  template <typename T, std::size_t count>
  void add(T (&values)[count]) {
    for (T& value : values) add(value);
  }
  template <typename T>
  void add(std::vector<T>& values) {
    add_number(values.size());
    for (T& value : values) add(value);
  }
  template <typename T>
  void add(std::optional<T>& value) {
    bool present = value.has_value();
    add(present);
    if (present) add(*value);
  }
  void add(LibraryCall& call) {
    add_number(call.index());
    std::visit([this](auto& each) { add(each); }, call);
  }

 private:
  void add_number(std::uint64_t number) { add(number); }

  std::string& bytes_;
};

/// Takes from the front of bytes what a Writer wrote there, or throws IoError.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  void take_end() const {
    if (!bytes_.empty()) fail();
  }
  template <typename T>
  void take(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = take_number(1) != 0;
    } else if constexpr (std::is_arithmetic_v<T>) {
      const auto bytes = take_bytes(sizeof value);
      std::memcpy(&value, bytes.data(), bytes.size());
    } else {
      std::apply([this](auto&... each) { (this->take(each), ...); }, fields(value));
    }
  }
  void take(std::string& text) { text = take_bytes(take_number(bytes_.size())); }
  void take(DType& dtype) {
    std::string name;
    take(name);
    try {
      dtype = parse_dtype(name);
    } catch (const ModelError&) {
      fail();
    }
  }
  void take(SimpleEpilogue::Activation& activation) {
    using Activation = SimpleEpilogue::Activation;
    activation = static_cast<Activation>(take_number(static_cast<std::uint64_t>(Activation::gelu_tanh)));
  }
  void take(BlockStep::Kind& kind) {
    kind = static_cast<BlockStep::Kind>(take_number(static_cast<std::uint64_t>(BlockStep::Kind::parts)));
  }
  template <typename T, std::size_t count>
  void take(T (&values)[count]) {
    for (T& value : values) take(value);
  }
  template <typename T>
  void take(std::vector<T>& values) {
    for (std::uint64_t left = take_number(bytes_.size()); left > 0; --left) take(values.emplace_back());
  }
  template <typename T>
  void take(std::optional<T>& value) {
    bool present = false;
    take(present);
    if (present) take(value.emplace());
  }
  void take(LibraryCall& call) {
    if (take_number(std::variant_size_v<LibraryCall> - 1) == 1) call.emplace<LibraryConv>();
    std::visit([this](auto& each) { take(each); }, call);
  }

 private:
  [[noreturn]] static void fail() { throw IoError("{}", "a compiled CUDA kernel is damaged"); }
  std::string_view take_bytes(std::uint64_t size) {
    if (size > bytes_.size()) fail();
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  /// At most `most`: lengths cannot exceed the bytes that are left.
  std::uint64_t take_number(std::uint64_t most) {
    std::uint64_t number = 0;
    take(number);
    if (number > most) fail();
    return number;
  }

  std::string_view bytes_;
};

}  // namespace

std::string to_bytes(const CudaObject& object) {
  std::string bytes = std::string(magic) + std::string(version);
  CudaObject copy = object;  // the lists of fields are for reading, too
  Writer(bytes).add(copy);
  return bytes;
}

bool is_cuda_object(std::string_view bytes) {
  return bytes.starts_with(magic);
}

CudaObject parse_cuda_object(std::string_view bytes) {
  if (!is_cuda_object(bytes)) throw IoError("{}", "the bytes are no compiled CUDA kernel");
  bytes.remove_prefix(magic.size());
  if (!bytes.starts_with(version)) throw IoError("{}", "a compiled CUDA kernel is of another version");
  Reader reader(bytes.substr(version.size()));
  CudaObject object;
  reader.take(object);
  reader.take_end();
  return object;
}

}  // namespace sylvite
