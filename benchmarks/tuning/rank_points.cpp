// What it takes to begin a search: the points of all spaces of a kernel, ranked by their estimates. The machine
// is made up, so that the same points are ranked everywhere; the hash is of the first candidates, in order.
// usage: rank_points [REPEATS]

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "autotune/search.h"
#include "base/clock.h"
#include "base/hash.h"
#include "sylvite/graph_text.h"

namespace {

using namespace sylvite;  // NOLINT(google-build-using-namespace): a program of its own

struct Row {
  const char* name;
  const char* text;  ///< inputs named w are weights
};
constexpr Row rows[] = {
    {"matmul 128x768x3072",
     "graph g(%a: f32[128,768], %w: f32[768,3072]) { %v: f32[128,3072] = matmul(%a, %w) return %v }"},
    {"matmul 197x768x768",
     "graph g(%a: f32[197,768], %w: f32[768,768]) { %v: f32[197,768] = matmul(%a, %w) return %v }"},
    {"matmul of activations, 12x128x64x128",
     "graph g(%a: f32[12,128,64], %b: f32[12,64,128]) { %v: f32[12,128,128] = matmul(%a, %b) return %v }"},
    {"3x3 convolution, 64 channels of 56x56",
     "graph g(%x: f32[1,64,56,56]@c8, %w: f32[64,64,3,3]) { %v: f32[1,64,56,56]@c8 = conv(%x, %w) "
     "{strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1} return %v }"},
};

Kernel kernel_of(const Row& row) {
  Graph graph = parse_graph(row.text);
  std::vector<bool> is_weight;
  is_weight.reserve(graph.inputs.size());
  for (const ValueId id : graph.inputs) is_weight.push_back(graph.value(id).name == "w");
  return make_kernel(graph, std::move(is_weight));
}

/// AVX2 and two threads: the spaces of matmuls have the most parameters there.
Machine made_up_machine() {
  Machine machine;
  machine.target = "x86-64-linux-avx-avx2-f16c-fma-sse41";
  machine.vector_floats = 8;
  machine.vector_registers = 16;
  machine.threads = 2;
  return machine;
}

KernelSearch begin_search(const Kernel& kernel, const Machine& machine) {
  return KernelSearch(spaces_for(kernel, machine));
}

void run(const Row& row, int repeats) {
  const Kernel kernel = kernel_of(row);
  const Machine machine = made_up_machine();
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const double start = steady_seconds();
    (void)begin_search(kernel, machine);
    seconds.push_back(steady_seconds() - start);
  }
  std::string texts;
  KernelSearch search = begin_search(kernel, machine);
  for (const Candidate& candidate : search.propose(400)) texts += candidate.to_string();
  std::ranges::sort(seconds);
  fmt::print("{:<38} median {:>8.2f} ms  least {:>8.2f} ms  {}\n", row.name,
             1e3 * seconds[seconds.size() / 2], 1e3 * seconds.front(), short_hash(texts));
}

}  // namespace

int main(int count, char** words) {
  for (const Row& row : rows) run(row, count > 1 ? std::stoi(words[1]) : 9);
  return 0;
}
