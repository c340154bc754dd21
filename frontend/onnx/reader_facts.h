#pragma once
// What the operators that read an input say of its shape.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace onnx {
class GraphProto;
}  // namespace onnx

namespace sylvite {

struct ReaderFacts {
  std::optional<int> rank;  ///< nothing: no reader says it
  std::map<int, std::int64_t>
      extents;  ///< axis -> its only size, as weights have it; negative axes count from the end
};

/// Facts of values of one graph, which must live as long. Operators that change no shape are looked through.
class ReaderFactFinder {
 public:
  explicit ReaderFactFinder(const onnx::GraphProto& graph);
  ~ReaderFactFinder();
  ReaderFactFinder(const ReaderFactFinder&) = delete;
  ReaderFactFinder& operator=(const ReaderFactFinder&) = delete;

  [[nodiscard]] ReaderFacts facts_of(const std::string& value) const;

 private:
  struct Index;
  std::unique_ptr<Index> index_;
};

}  // namespace sylvite
