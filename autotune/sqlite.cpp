#include "autotune/sqlite.h"

#include <fmt/format.h>

namespace sylvite {

namespace {

[[noreturn]] void fail_database(sqlite3* database, int result, std::string_view doing) {
  throw SqliteError(result & 0xff,
                    fmt::format("{}: {}", doing, database ? sqlite3_errmsg(database) : "out of memory"));
}

}  // namespace

SqliteConnection::SqliteConnection(const std::string& path, int open_flags, int busy_timeout_ms) {
  sqlite3* raw = nullptr;
  int result = sqlite3_open_v2(path.c_str(), &raw, open_flags, nullptr);
  handle_.reset(raw);
  if (result != SQLITE_OK) fail_database(raw, result, "opening");
  sqlite3_busy_timeout(raw, busy_timeout_ms);
}

void SqliteConnection::execute(const std::string& sql) {
  int result = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) fail_database(handle_.get(), result, sql.substr(0, 40));
}

std::int64_t SqliteConnection::integer(const std::string& sql) {
  SqliteStatement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

void SqliteConnection::copy_from(SqliteConnection& source) {
  sqlite3_backup* backup = sqlite3_backup_init(handle_.get(), "main", source.handle(), "main");
  if (backup == nullptr) fail_database(handle_.get(), sqlite3_errcode(handle_.get()), "copying");
  int step = sqlite3_backup_step(backup, -1);
  int result = sqlite3_backup_finish(backup);
  if (step != SQLITE_DONE) fail_database(handle_.get(), result == SQLITE_OK ? step : result, "copying");
}

SqliteStatement::SqliteStatement(SqliteConnection& connection, std::string_view sql)
    : database_(connection.handle()) {
  sqlite3_stmt* raw = nullptr;
  int result = sqlite3_prepare_v2(database_, sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  statement_.reset(raw);
  check(result);
}

SqliteStatement& SqliteStatement::bind(std::int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), ++bound_, value));
  return *this;
}

SqliteStatement& SqliteStatement::bind(double value) {
  check(sqlite3_bind_double(statement_.get(), ++bound_, value));
  return *this;
}

SqliteStatement& SqliteStatement::bind(std::string_view value) {
  const char* bytes = value.empty() ? "" : value.data();  // a null pointer would bind NULL
  check(sqlite3_bind_text64(statement_.get(), ++bound_, bytes, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

bool SqliteStatement::step() {
  int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result != SQLITE_DONE)
    fail_database(database_, result, std::string_view(sqlite3_sql(statement_.get())).substr(0, 40));
  return false;
}

void SqliteStatement::run() {
  while (step()) {
  }
}

std::string SqliteStatement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return bytes == nullptr ? std::string() : std::string(bytes, size);
}

std::int64_t SqliteStatement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double SqliteStatement::real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

void SqliteStatement::check(int result) const {
  if (result != SQLITE_OK) fail_database(database_, result, "preparing a statement");
}

SqliteTransaction::SqliteTransaction(SqliteConnection& connection) : connection_(connection) {
  connection_.execute("BEGIN IMMEDIATE");
}

SqliteTransaction::~SqliteTransaction() {
  // SQLite itself has rolled back after some errors; a second rollback then fails harmlessly.
  if (open_) sqlite3_exec(connection_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void SqliteTransaction::commit() {
  connection_.execute("COMMIT");
  open_ = false;
}

}  // namespace sylvite
