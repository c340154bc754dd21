#pragma once
// What a library runs at sizes of one box: launches whose numbers depend on the sizes.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lowering/plan/extent_fit.h"
#include "runtime/bindings.h"
#include "runtime/cuda/noted_launch.h"
#include "runtime/export/size_boxes.h"
#include "runtime/program.h"
#include "runtime/state_room.h"

namespace sylvite {

struct ExportedArgument {
  DType dtype = DType::f32;
  std::vector<Extent> stored;  ///< as Argument, with has_outer_blocks
  bool has_outer_blocks = false;
  BufferKind kind = BufferKind::arena;
  Extent place;   ///< as Location; of a weight, bytes into the weights file
  Extent stride;  ///< as Window, with phase and period; 0: it does not move
  Extent phase;
  Extent period;
};

struct ExportedLaunch {
  std::string symbol;
  std::string name;
  std::vector<ExportedArgument> arguments;
  std::size_t inputs = 0;     ///< how many of the arguments
  std::vector<Extent> sizes;  ///< arguments between inputs and outputs
};

/// Bytes on a device as SymbolicAddress has them, or a plain number.
struct ExportedPlace {
  std::optional<cuda::Region> region;
  std::uint32_t number = 0;  ///< of inputs and outputs
  Extent offset;             ///< of a weight, bytes into the weights file
};

/// As MapArgument.
struct ExportedMap {
  CudaTensorMap map;  ///< at one of the sizes: what is not below is the same at all
  ExportedPlace place;
  std::vector<Extent> dims;
  std::vector<Extent> pitches;
  std::vector<Extent> box;
};

/// Of a launch on a device: bytes; a struct of addresses and numbers; a map, or one that nothing uses.
using ExportedParameter =
    std::variant<cuda::BytesArgument, std::vector<ExportedPlace>, std::optional<ExportedMap>>;

struct ExportedDeviceLaunch {
  std::string name;
  cuda::NotedLaunch noted;  ///< at one of the sizes: what is not below is the same at all
  std::vector<Extent> grid;
  std::vector<ExportedParameter> parameters;
};

/// As PlanLoop.
struct ExportedLoop {
  std::size_t first = 0;
  std::size_t end = 0;
  Extent trips;
};

/// An output that is a copy of other bytes, made after the launches.
struct ExportedCopy {
  std::size_t output = 0;
  BufferKind kind = BufferKind::arena;
  std::int64_t place = 0;
  Extent bytes;
};

/// See StateRoom.
struct ExportedRoom {
  struct Input {
    std::size_t number = 0;
    std::size_t axis = 0;
    std::size_t element_bytes = 0;
    Extent beyond;
  };
  Extent added;
  std::vector<Input> inputs;
};

/// What the sizes of a program's kernels must be.
struct ExportedCondition {
  Extent number;
  std::int64_t low = 0;
  std::int64_t high = 0;
};

struct ExportedProgram {
  SizeBox box;  ///< empty where the model's sizes are fixed
  std::vector<ExportedCondition> conditions;
  std::vector<ExportedLaunch> launches;  ///< on a CPU
  std::vector<ExportedLoop> loops;
  std::vector<ExportedDeviceLaunch> device_launches;
  std::vector<ExportedCopy> copies;
  std::vector<std::vector<Extent>> inputs;  ///< their dims; with room those of the program
  std::vector<std::vector<Extent>> outputs;
  std::optional<ExportedRoom> room;
  std::int64_t arena_bytes = 0;
  std::int64_t scratch_bytes = 0;  ///< on a device
};

/// A program at one of the points of a grid.
struct ProgramCase {
  const Plan* plan = nullptr;
  Bindings bindings;
  std::optional<StateRoom> room;
  std::shared_ptr<const DeviceNotes> notes = nullptr;  ///< of a program for a device: what it launches
};

/// Where a program's weights lie in the weights file, in bytes: per slot, and of those that an output returns (by number in
/// the plan).
struct WeightPlaces {
  std::vector<std::int64_t> slots;
  /// By slot, of tables that are others at other sizes; these lie one after another.
  std::map<std::int64_t, Extent> tables = {};
  std::function<std::int64_t(std::int64_t)> returned;

  [[nodiscard]] Extent at(std::int64_t slot) const {
    const auto table = tables.find(slot);
    return table != tables.end() ? table->second : Extent(slots.at(static_cast<std::size_t>(slot)));
  }
};

/// Of a program for a device: its code, and sizes of the box, at which numbers are compared that host code computes.
struct SampledCode {
  std::shared_ptr<const ProgramCode> code;
  std::vector<SymbolValues> sizes;
};

/// Throws UnsupportedError where `fit` has no expression for a number. `cases` are at the points that it knows, of joined plans,
/// that of the greatest sizes at `greatest`; symbols are per kernel.
[[nodiscard]] ExportedProgram export_program(ExtentFit& fit, const std::vector<ProgramCase>& cases,
                                             std::size_t greatest, const std::vector<std::string>& symbols,
                                             const WeightPlaces& weights, const SampledCode& device);

}  // namespace sylvite
