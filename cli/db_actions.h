#pragma once
// The larger actions of `sylvite db`, a file each, and what all of them share.

#include <span>
#include <string>

#include "autotune/database.h"
#include "cli/options.h"

namespace sylvite {

void add_database_option(Options& options);

/// The file that --db names.
[[nodiscard]] std::string database_file(const Options& options);

/// That file, for questions.
[[nodiscard]] Database open_database(const Options& options);

/// The same, to be changed: it must be there. Throws IoError when it cannot be written.
[[nodiscard]] Database open_to_change(const Options& options);

int db_trials(std::span<const std::string> arguments);
int db_replay(std::span<const std::string> arguments);

}  // namespace sylvite
