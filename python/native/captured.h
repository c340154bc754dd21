#pragma once
// A graph that torch captured, compiled for each combination of sizes that it is called with.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/torch/torch_import.h"
#include "python/native/array.h"
#include "python/native/captured_ports.h"
#include "python/native/result_blocks.h"
#include "runtime/ahead.h"
#include "runtime/alike_programs.h"
#include "runtime/session.h"

namespace sylvite::python {

struct CapturedInput {
  /// Parameters lie at fixed addresses; statistics are those that norms change without torch counting it.
  enum class Kind { unused, size, tensor, parameter, statistics } kind = Kind::unused;
  std::string name;  ///< in the text, of tensors and parameters
  [[nodiscard]] bool may_be_constant() const { return kind == Kind::parameter || kind == Kind::statistics; }
};

/// Where a symbol's number stands at a call: input `input` itself, or its extent at `axis`.
struct CapturedSymbol {
  std::string name;
  std::size_t input = 0;
  int axis = -1;  ///< -1: the input is the number
};

using Constants = std::map<std::string, Tensor>;

/// The text and what stands around it. The text's inputs are the symbols, then tensors and parameters in order, then what
/// the graph holds itself.
struct CapturedGraph {
  std::string text;
  std::vector<CapturedInput> inputs;  ///< as called
  std::vector<CapturedSymbol> symbols;
  Constants held;
  /// Outputs of the text that are written over inputs, by name, and that nothing else shows.
  std::vector<std::pair<std::size_t, std::string>> overwrites = {};
};

/// A parameter whose value the program has taken in.
struct TakenParameter {
  std::size_t input = 0;
  const void* data = nullptr;
  std::int64_t version = 0;  ///< see WriteCounts
  bool operator==(const TakenParameter&) const = default;
};
/// Of a program; those for several sizes share it.
using TakenParameters = std::shared_ptr<const std::vector<TakenParameter>>;

/// What torch makes for a program on a device. Destroyed with the GIL.
struct DeviceState {
  std::vector<Ref> makes;           ///< per output of the program: how its tensor is allocated
  std::map<const void*, Ref> work;  ///< by stream: work memory of recorded runs
  bool is_captured = false;  ///< a caller's graph has its launches: it lives as long as the captured graph
};

/// Where results of calls on the CPU lie. Vectors stay between calls.
struct HostResults {
  std::vector<std::shared_ptr<ResultBlocks>> blocks;  ///< per output of the text: nullptr for others
  std::vector<ResultBlocks::Taken> taken;             ///< likewise, of the call
  std::vector<void*> places;                          ///< per output of the program, see Program::run_at
  std::vector<Tensor> values;                         ///< likewise: what has no place
};

/// One combination of sizes.
struct CapturedProgram {
  Built built;
  CapturedPorts ports;
  std::vector<Tensor> given;  ///< per input, as the last call on the CPU had it; keeps nothing alive
  TakenParameters taken;
  std::vector<CapturedRead> lies;          ///< per output of the text: an input that lies as it does
  std::vector<bool> owns;                  ///< per output of the program: it is memory of its own
  std::vector<Overwrite> overwrites = {};  ///< what the graph writes that may be written in place, by output
  std::vector<Overwrite> written = {};     ///< what its kernels write in place, whatever memory it is given
  bool is_borrowed = false;                ///< its kernels are the best at other sizes
  int runs = 0;                            ///< while they are
  bool has_run = false;                    ///< what is wrong with its kernels is known
  HostResults results = {};                ///< of a program on the CPU
  DeviceState device = {};                 ///< of a program on a device
};

/// A parameter's value in the CPU's memory, and what tells whether it is still that.
struct GivenParameter {
  Array array;
  const void* data = nullptr;  ///< where the parameter lies
  std::int64_t version = 0;
};

/// One combination of sizes on its way to a program.
struct ChosenCapture {
  Imported imported;
  Chosen chosen;
  CapturedPorts ports;
  TakenParameters taken;
  bool is_told = false;  ///< by imports at other sizes
};

/// What sizes of a graph have in common where they are open.
struct OpenCapture {
  OpenModel model;                                       ///< without a file
  OpenPorts ports;                                       ///< as long as the plans
  KnownKernels known;                                    ///< what kernels of programs run
  AlikePrograms alike;                                   ///< with the same parameters
  TakenParameters taken;                                 ///< whose values its plans have
  Constants constants;                                   ///< of its imports, which share them
  std::vector<Extent> said;                              ///< sizes in the text
  std::map<std::size_t, std::set<std::string>> extents;  ///< symbols in shapes of parameters, by input
  /// Per symbol: its number, where it is an extent of what is taken, and so is no symbol of the model.
  std::vector<std::optional<std::int64_t>> held;
};
/// nullptr where each size has kernels of its own.
[[nodiscard]] std::unique_ptr<OpenCapture> open_capture(const CapturedGraph& graph,
                                                        const std::shared_ptr<const Setup>& setup);

/// Imports and chooses; `parameters` become constants; `open` may be nullptr. Needs no GIL, as the next. Throws what these throw.
[[nodiscard]] ChosenCapture choose_captured(const CapturedGraph& graph, const Sizes& sizes,
                                            const std::map<std::size_t, GivenParameter>& parameters,
                                            const std::shared_ptr<const Setup>& setup, OpenCapture* open);
/// A number for each symbol, by name.
[[nodiscard]] SymbolValues by_name(const CapturedGraph& graph, const Sizes& sizes);
/// One at these sizes with the kernels of others; nullopt where there is none. Needs no GIL. `relatives` as for build_program.
[[nodiscard]] std::optional<CapturedProgram> borrow_captured(
    const std::map<std::size_t, GivenParameter>& parameters, const Sizes& sizes, OpenCapture& open,
    const Relatives& relatives);
/// Before a run: has it run so often with the kernels of others that finding its own is worth it?
[[nodiscard]] bool may_have_better(CapturedProgram& program);
/// Of a program that is built: others may have its kernels.
void note_captured(const ChosenCapture& capture, const CapturedProgram& program, OpenCapture& open);
/// `relatives` and `stop` as for build_program.
[[nodiscard]] CapturedProgram build_captured(const ChosenCapture& capture, const Relatives& relatives,
                                             const std::stop_token& stop = {});

/// Is it of the type and shape, on a device of that type, and does it lie as torch promised?
[[nodiscard]] bool is_in_place(const CapturedRead& read, const dlpack::DlTensor& tensor,
                               std::int32_t device_type);
/// The input as the program reads it, in place where it lies as torch promised, else a copy; zeros where elements have no
/// memory, as torch's tensors of zeros. Throws InputError for
/// another type, shape or device.
[[nodiscard]] Tensor read_input(const CapturedRead& read, const Array& array);

/// Writes `value`, whose elements lie as `from` says, over the elements of `target`. REQUIRES equal dims and dtypes.
void write_back(const Tensor& value, const TorchTensor& from, const Array& target);

}  // namespace sylvite::python
