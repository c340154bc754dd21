#pragma once
// From the options of a verb that takes a model to a Session, and what every such verb does at its end.

#include <string>
#include <string_view>

#include "base/progress.h"
#include "cli/options.h"
#include "cli/output.h"
#include "runtime/session.h"

namespace sylvite {

/// Config files, --set and knob flags, in that order; later wins. Also sets up logging, and writes
/// --dump-config. `mode`, if given, is what compile.mode starts at.
[[nodiscard]] CompileOptions compile_options(const Options& options, const std::string& mode = "");

/// load_model, with the file named in every message.
[[nodiscard]] Session load_session(const std::string& path, const CompileOptions& options);
/// load_session and choose_candidates, with progress on stderr.
[[nodiscard]] Session choose_session(const std::string& path, const CompileOptions& options);
/// choose_session and build_program; then warnings on stderr.
[[nodiscard]] Session prepare_session(const std::string& path, const CompileOptions& options);

/// Text for people: to stdout, or to stderr when --json - or --dump-config - has taken stdout.
void say(const Options& options, std::string_view text);

/// "resnet50: 56 launches of 25 kernels (0 compiled, 25 from the cache), ready in 0.12s, peak 15.1 MB".
[[nodiscard]] std::string summary_line(const Session& session);

/// Writes the document where --json says, if it was given.
void write_json(const Options& options, const nlohmann::json& document);

/// Prints session.report.warnings and forgets them.
void print_warnings(Session& session);

}  // namespace sylvite
