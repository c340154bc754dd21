#include "autotune/database_open.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "autotune/database_schema.h"
#include "autotune/machine_failure.h"
#include "autotune/trial.h"

namespace sylvite {

namespace {

namespace fs = std::filesystem;

/// Larger files are not checked page by page on opening (about 1 ms per MB).
constexpr std::int64_t checked_bytes = std::int64_t{64} << 20;

enum class Contents { empty, ours, other_version, foreign };

Contents read_contents(SqliteConnection& connection) {
  std::int64_t application = connection.integer("PRAGMA application_id");
  std::int64_t version = connection.integer("PRAGMA user_version");
  if (application == schema_application_id)
    return version == schema_version ? Contents::ours : Contents::other_version;
  bool empty =
      application == 0 && version == 0 && connection.integer("SELECT count(*) FROM sqlite_schema") == 0;
  return empty ? Contents::empty : Contents::foreign;
}

void create_schema(SqliteConnection& connection) {
  SqliteTransaction transaction(connection);
  if (read_contents(connection) == Contents::empty) {  // else another process was first
    connection.execute(std::string(schema_sql));
    connection.execute(fmt::format("PRAGMA application_id = {}", schema_application_id));
    connection.execute(fmt::format("PRAGMA user_version = {}", schema_version));
    connection.execute(
        fmt::format("INSERT INTO meta VALUES ('schema_version', '{}'), "
                    "('created_at', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
                    schema_version));
  }
  transaction.commit();
}

/// SQL function failed_by_machine(verdict, message): whether a trial's row is no verdict.
void failed_by_machine(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  const auto text = [](sqlite3_value* value) -> std::string_view {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_value_text(value));
    return bytes == nullptr ? std::string_view() : bytes;
  };
  const bool failed = text(values[0]) != verdict_name(Verdict::ok) && is_machine_failure(text(values[1]));
  sqlite3_result_int(context, failed ? 1 : 0);
}

void add_functions(SqliteConnection& connection) {
  constexpr int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
  sqlite3_create_function(connection.handle(), "failed_by_machine", 2, flags, nullptr, failed_by_machine,
                          nullptr, nullptr);
}

/// A rollback journal always: SQLite before 3.51.3 can corrupt a file in WAL mode.
void configure(SqliteConnection& connection) {
  sqlite3_db_config(connection.handle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  add_functions(connection);
  connection.execute("PRAGMA trusted_schema = OFF");
  connection.execute("PRAGMA foreign_keys = ON");
}

void check_pages(SqliteConnection& connection) {
  std::int64_t bytes = connection.integer("PRAGMA page_count") * connection.integer("PRAGMA page_size");
  if (bytes > checked_bytes) return;
  SqliteStatement check(connection, "PRAGMA quick_check(1)");
  if (!check.step() || check.text(0) != "ok")
    throw SqliteError(SQLITE_CORRUPT, "quick_check: " + check.text(0));
}

/// In one read transaction: otherwise a process that creates the schema meanwhile may be seen half done, and
/// its file taken for a foreign one.
Contents read_contents_at_once(SqliteConnection& connection) {
  connection.execute("BEGIN");
  Contents contents = read_contents(connection);
  connection.execute("COMMIT");
  return contents;
}

void check_contents(SqliteConnection& connection, const std::string& path) {
  switch (read_contents_at_once(connection)) {
    case Contents::empty:
    case Contents::ours:
      return;
    case Contents::other_version:
      throw IoError("{} has schema version {}, this Sylvite reads {}; choose another file with --db", path,
                    connection.integer("PRAGMA user_version"), schema_version);
    case Contents::foreign:
      throw IoError("{} is a SQLite database of another program; choose another file with --db", path);
  }
}

OpenedDatabase in_memory(std::string warning) {
  return {memory_database(), "", std::move(warning)};
}

/// Throws SqliteError or IoError.
OpenedDatabase open_file(const std::string& path, int busy_timeout_ms) {
  SqliteConnection connection(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, busy_timeout_ms);
  configure(connection);
  check_contents(connection, path);
  if (connection.is_read_only()) {
    check_pages(connection);
    OpenedDatabase copy = in_memory(fmt::format("{} cannot be written; new trials stay in memory", path));
    if (read_contents(connection) == Contents::ours) copy.connection.copy_from(connection);
    return copy;
  }
  connection.execute("PRAGMA journal_mode = TRUNCATE");
  create_schema(connection);
  check_pages(connection);
  return {std::move(connection), path, ""};
}

ino_t inode_of(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

/// Renames the file and its journals to the first free FILE.corrupt-N; returns the new name.
std::string set_aside(const std::string& path) {
  std::string aside;
  for (int n = 1; aside.empty() || fs::exists(aside); ++n) aside = fmt::format("{}.corrupt-{}", path, n);
  for (const char* suffix : {"-journal", "-wal", "-shm"}) {
    std::error_code ignored;  // most often there is no such file
    fs::rename(path + suffix, aside + suffix, ignored);
  }
  fs::rename(path, aside);
  return aside;
}

OpenedDatabase begin_anew(const std::string& path, int busy_timeout_ms, ino_t damaged,
                          const std::string& reason) {
  std::string warning = fmt::format("{} is damaged ({})", path, reason);
  if (inode_of(path) == damaged)  // else another process has set it aside already
    warning += fmt::format("; set aside as {}", set_aside(path));
  OpenedDatabase opened = open_file(path, busy_timeout_ms);
  opened.warning = warning;
  return opened;
}

/// Whether what cannot be read was a tuning database: it has two of three marks. Nothing else is ever renamed.
bool was_ours(const std::string& path) {
  constexpr std::size_t enough = std::size_t{64} << 10;
  constexpr std::size_t id_offset = 68;  // in SQLite's header
  std::string bytes(enough, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(enough));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  const bool has_magic = bytes.starts_with("SQLite format 3");
  const bool has_id = bytes.size() > id_offset && bytes.compare(id_offset, 4, "SYLV") == 0;
  const bool has_tables = bytes.find("CREATE TABLE sweep_items(") != std::string::npos;
  return std::ranges::count(std::array{has_magic, has_id, has_tables}, true) >= 2;
}

bool is_damage(const SqliteError& error) {
  return error.result() == SQLITE_CORRUPT || error.result() == SQLITE_NOTADB;
}

OpenedDatabase open_or_begin_anew(const std::string& path, int busy_timeout_ms) {
  fs::path parent = fs::path(path).parent_path();
  if (!parent.empty()) fs::create_directories(parent);
  if (fs::exists(path) && !fs::is_regular_file(path)) throw IoError("{} is not a regular file", path);
  ino_t inode = inode_of(path);
  try {
    return open_file(path, busy_timeout_ms);
  } catch (const SqliteError& error) {
    if (!is_damage(error)) throw;
    if (!was_ours(path)) throw IoError("it is no tuning database; choose another file with --db");
    return begin_anew(path, busy_timeout_ms, inode == 0 ? inode_of(path) : inode, error.what());
  }
}

}  // namespace

SqliteConnection memory_database() {
  SqliteConnection connection;
  configure(connection);
  create_schema(connection);
  return connection;
}

OpenedDatabase open_database(const std::string& path, int busy_timeout_ms) {
  if (path.empty()) return in_memory("");
  try {
    return open_or_begin_anew(path, busy_timeout_ms);
  } catch (const std::exception& error) {  // SqliteError, IoError, filesystem_error: all mean "not this file"
    return in_memory(fmt::format("tuning database {} is not used: {}", path, error.what()));
  }
}

SqliteConnection open_for_reading(const std::string& path) {
  if (!fs::exists(path)) throw IoError("there is no tuning database {}", path);
  if (!fs::is_regular_file(path)) throw IoError("{} is not a regular file; name a tuning database", path);
  try {
    // Not read-only, so that what a killed process left half done can be undone.
    SqliteConnection connection(path, SQLITE_OPEN_READWRITE, 10000);
    configure(connection);
    connection.execute("PRAGMA query_only = ON");
    check_contents(connection, path);
    check_pages(connection);
    if (read_contents(connection) == Contents::empty)
      throw IoError("{} is empty; name a tuning database", path);
    return connection;
  } catch (const SqliteError& error) {
    throw IoError("{} cannot be read as a tuning database: {}", path, error.what());
  }
}

}  // namespace sylvite
