#pragma once
// From the options of a verb that takes a model to a model that is ready, and what every such verb does at its end.

#include <memory>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "cli/options.h"
#include "cli/output.h"
#include "runtime/family.h"

namespace sylvite {

/// Options whose workers are this very command, whatever it is called and wherever it lies.
[[nodiscard]] CompileOptions command_options();

/// Config files, --set and knob flags, in that order; later wins; and the tensors of --bind. `mode`, if given, is what
/// compile.mode starts at.
[[nodiscard]] CompileOptions compile_options(const Options& options, const std::string& mode = "");

/// The setup of a verb: also sets up logging, checks that the files that are written at its end can be, and writes
/// --dump-config.
[[nodiscard]] std::shared_ptr<const Setup> begin(const Options& options, const CompileOptions& wanted);

/// A model ready to run, and what it was made of.
struct Prepared {
  Imported imported;
  Built built;
};

/// open_model, with the file named in every message.
[[nodiscard]] OpenModel open(const std::string& path, const std::shared_ptr<const Setup>& setup,
                             const ImportOptions& import);
/// begin and open, for the model that the words of `options` name. Sizes of --input files are those to be fast at. What
/// was assumed of sizes is said on stderr.
[[nodiscard]] OpenModel open(const Options& options, const CompileOptions& wanted);
/// bind_sizes, with the file named in every message; without sizes at the first to be fast at.
[[nodiscard]] Imported load(const OpenModel& model, const Sizes& sizes);
[[nodiscard]] Imported load(const OpenModel& model);
/// Adds the time that reading the file took.
void count_reading(const OpenModel& model, CompileReport& report);
/// choose_candidates, with progress on stderr. The first SIGINT or SIGTERM ends the tuning with what is known by then,
/// and the winners of that are stored.
[[nodiscard]] Chosen choose(const Imported& imported);
/// choose and end_if_interrupted.
[[nodiscard]] Chosen choose_or_end(const Imported& imported);
/// After choose: ends the command (`Interrupted`) when a signal ended the tuning.
void end_if_interrupted();
/// load, choose and build_program; then warnings on stderr. Ends the command when it was interrupted.
[[nodiscard]] Prepared prepare(const OpenModel& model);
/// The same once it is loaded, or chosen.
[[nodiscard]] Prepared prepare(Imported imported);
[[nodiscard]] Prepared prepare(Imported imported, Chosen chosen);
/// The same for every combination of sizes to be fast at.
[[nodiscard]] Family prepare_family(const OpenModel& model);
/// The model of `imported`, at its sizes, with other settings. Where that has a lock, these have none, and no database.
[[nodiscard]] Prepared prepare_again(const Imported& imported, const CompileOptions& wanted);

/// Before the work: throws IoError for files that options name and that cannot be written after it, and UsageError when two
/// of them are stdout.
void check_destinations(const Options& options);

/// Text for people: to stdout, or to stderr when a file has taken stdout (--json -).
void say(const Options& options, std::string_view text);

/// "resnet50: 56 launches of 25 kernels (0 compiled, 25 from the cache), ready in 0.12s, peak 15.1 MB".
[[nodiscard]] std::string summary_line(const std::string& model_path, const CompileReport& report);

/// --json of a verb whose document is not the report of a model.
void add_json_option(Options& options, const std::string& what);

/// Writes the document where --json says, if it was given.
void write_json(const Options& options, const nlohmann::json& document);

/// Prints report.warnings and forgets them.
void print_warnings(CompileReport& report);

}  // namespace sylvite
