#include "python/native/writes.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace sylvite::python {
namespace {

bool lie_alike(const CapturedRead& one, const CapturedRead& other) {
  return one.dtype == other.dtype && one.dims == other.dims && one.strides == other.strides;
}

}  // namespace

std::vector<Write> lone_writes(const std::vector<Write>& writes, const std::vector<Result>& results) {
  std::map<std::size_t, int> uses;  // of the text's outputs
  for (const Write& write : writes) ++uses[write.result];
  for (const Result& result : results)
    if (result.kind == Result::Kind::value || result.kind == Result::Kind::part) ++uses[result.number];
  std::vector<Write> found;
  std::ranges::copy_if(writes, std::back_inserter(found),
                       [&](const Write& write) { return write.is_alone && uses[write.result] == 1; });
  return found;
}

void note_overwrites(const std::vector<Write>& writes, CapturedProgram& program) {
  const Bindings& bindings = program.built.program.bindings();
  for (const Write& write : writes) {
    const TorchOutput& output = program.ports.outputs.at(write.result);
    const auto read = std::ranges::find(program.ports.reads, write.input, &CapturedRead::input);
    if (output.graph_output < 0 || read == program.ports.reads.end() ||
        !lie_alike(*read, program.lies.at(write.result)))
      continue;
    const Overwrite places{static_cast<std::size_t>(output.graph_output),
                           static_cast<std::size_t>(read - program.ports.reads.begin())};
    const Location input{BufferKind::input, static_cast<std::int64_t>(places.input)};
    if (bindings.outputs.at(places.output) == input) {
      program.owns.at(places.output) = true;
      program.written.push_back(places);
    } else if (program.built.program.may_write_over(places)) {
      program.overwrites.push_back(places);
    }
  }
}

}  // namespace sylvite::python
