#pragma once
// Opening a database file whatever state it is in; see the class comment of Database for the cases.

#include <string>

#include "autotune/sqlite.h"

namespace sylvite {

struct OpenedDatabase {
  SqliteConnection connection;  ///< has the schema of autotune/database_schema.h
  std::string path;             ///< "" when in memory
  std::string warning;
};

/// Never throws for the state of the file.
[[nodiscard]] OpenedDatabase open_database(const std::string& path, int busy_timeout_ms);

/// An empty database in memory.
[[nodiscard]] SqliteConnection memory_database();

/// Opens an existing file without ever writing to it. Throws IoError that names it and says what is wrong.
[[nodiscard]] SqliteConnection open_for_reading(const std::string& path);

}  // namespace sylvite
