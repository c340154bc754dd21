#include "runtime/export/program_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "lowering/algorithms/halide_types.h"
#include "runtime/export/box_tables.h"

namespace sylvite {
namespace {

/// The tables of program number `number`, whose names end with it.
class ProgramText {
 public:
  ProgramText(const ExportedModel& model, std::size_t number)
      : program_(model.programs[number]), numbers_(model.sizes), box_(program_, numbers_, number) {}

  std::string write() {
    for (const ExportedLaunch& launch : program_.launches) add_launch(launch);
    std::vector<std::string> copies;
    copies.reserve(program_.copies.size());
    for (const ExportedCopy& copy : program_.copies)
      copies.push_back(fmt::format("{{{}, {}, {}, {}}}", copy.output, source_name(copy.kind), copy.place,
                                   numbers_.of(copy.bytes)));
    std::string text = box_.text() + array("const int64_t", "dims", dims_) +
                       array("const struct sylvite_argument", "arguments", arguments_) +
                       array("const struct sylvite_launch", "launches", launches_) +
                       array("const struct sylvite_loop", "loops", loop_rows()) +
                       array("const struct sylvite_copy", "copies", copies);
    text += box_.function();  // once all tables have asked for their numbers
    row_ = fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}", name("dims"), name("arguments"),
                       name("launches"), name("loops"), name("copies"), argument_count_, dim_count_,
                       launches_.size(), program_.loops.size(), copies.size());
    return text;
  }
  /// Once they are written.
  [[nodiscard]] const std::string& row() const { return row_; }
  [[nodiscard]] std::string box_row() const { return box_.row(); }
  [[nodiscard]] std::size_t number_count() const { return numbers_.count(); }

 private:
  [[nodiscard]] std::string name(const std::string& table) const { return box_.name(table); }
  [[nodiscard]] std::string array(const std::string& type, const std::string& table,
                                  const std::vector<std::string>& rows) const {
    return array_of(type, name(table), rows);
  }
  [[nodiscard]] std::vector<std::string> loop_rows() {
    std::vector<std::string> rows;
    rows.reserve(program_.loops.size());
    for (const ExportedLoop& loop : program_.loops)
      rows.push_back(fmt::format("{{{}, {}, {}}}", loop.first, loop.end, numbers_.of(loop.trips)));
    return rows;
  }
  void add_launch(const ExportedLaunch& launch) {
    launches_.push_back(fmt::format("{{{}_argv, {}, {}, {}}}", launch.symbol, c_string(launch.name),
                                    argument_count_, launch.arguments.size() + launch.sizes.size()));
    for (std::size_t i = 0; i <= launch.arguments.size(); ++i) {
      if (i == launch.inputs)
        for (const Extent& size : launch.sizes)
          add_row("SYLVITE_INTEGER", {}, {}, false, fmt::format("{}, 0, 0, 0", numbers_.of(size)));
      if (i == launch.arguments.size()) break;
      const ExportedArgument& argument = launch.arguments[i];
      add_row(source_name(argument.kind), halide_type_of(argument.dtype), argument.stored,
              argument.has_outer_blocks,
              fmt::format("{}, {}, {}, {}", numbers_.of(argument.place), numbers_.of(argument.stride),
                          numbers_.of(argument.phase), numbers_.of(argument.period)));
    }
  }
  void add_row(std::string_view source, halide_type_t type, const std::vector<Extent>& stored,
               bool has_outer_blocks, const std::string& places) {
    arguments_.push_back(fmt::format("{{{}, {}, {}, {}, {}, {}, {}}}", source, static_cast<int>(type.code),
                                     static_cast<int>(type.bits), stored.size(), int{has_outer_blocks},
                                     first_dim(stored, has_outer_blocks), places));
    ++argument_count_;
  }
  /// Where the dims of a value stand: those of equal ones once, so that a change of sizes has few to write.
  std::size_t first_dim(const std::vector<Extent>& stored, bool has_outer_blocks) {
    if (stored.empty()) return 0;
    std::vector<std::string> dims = numbers_.of(stored);
    std::ranges::reverse(dims);
    const std::string row = joined(dims);
    const auto [known, is_new] = known_dims_.try_emplace({row, has_outer_blocks}, dim_count_);
    if (is_new) {
      dims_.push_back(row);
      dim_count_ += dims.size();
    }
    return known->second;
  }

  const ExportedProgram& program_;
  TableNumbers numbers_;
  BoxTables box_;
  std::vector<std::string> dims_;
  std::map<std::pair<std::string, bool>, std::size_t> known_dims_;
  std::vector<std::string> arguments_;
  std::vector<std::string> launches_;
  std::size_t dim_count_ = 0;
  std::size_t argument_count_ = 0;
  std::string row_;
};

}  // namespace

ProgramTables program_tables(const ExportedModel& model) {
  ProgramTables tables;
  std::set<std::string> symbols;
  for (const ExportedProgram& program : model.programs)
    for (const ExportedLaunch& launch : program.launches) symbols.insert(launch.symbol);
  for (const std::string& symbol : symbols)
    tables.text += fmt::format("extern int {}_argv(void**);\n", symbol);
  tables.text += '\n';
  std::vector<std::string> rows, boxes;
  for (std::size_t i = 0; i < model.programs.size(); ++i) {
    ProgramText program(model, i);
    tables.text += program.write();
    rows.push_back(program.row());
    boxes.push_back(program.box_row());
    tables.arena_bytes = std::max(tables.arena_bytes, model.programs[i].arena_bytes);
    tables.number_count = std::max(tables.number_count, program.number_count());
  }
  tables.text += array_of("const struct sylvite_box", "boxes", boxes) +
                 array_of("const struct sylvite_program", "programs", rows);
  return tables;
}

}  // namespace sylvite
