#pragma once
// SQLite's C interface as two small value classes with typed errors. Used by this stage only.

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sylvite {

/// `result` is SQLite's primary result code.
class SqliteError : public IoError {
 public:
  SqliteError(int result, const std::string& message) : IoError(message), result_(result) {}
  [[nodiscard]] int result() const { return result_; }

 private:
  int result_;
};

/// An open database file, or ":memory:". Not for use across fork. Every call throws SqliteError.
class SqliteConnection {
 public:
  SqliteConnection(const std::string& path, int open_flags, int busy_timeout_ms);
  SqliteConnection() : SqliteConnection(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, 0) {}

  void execute(const std::string& sql);
  /// First column of the first row; 0 when there is no row.
  [[nodiscard]] std::int64_t integer(const std::string& sql);
  /// Replaces everything in this database with the contents of `source`.
  void copy_from(SqliteConnection& source);
  [[nodiscard]] bool is_read_only() const { return sqlite3_db_readonly(handle_.get(), "main") == 1; }
  [[nodiscard]] sqlite3* handle() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

/// A prepared statement. Parameters are bound in order by `bind`; then `step` until it returns false.
class SqliteStatement {
 public:
  SqliteStatement(SqliteConnection& connection, std::string_view sql);

  SqliteStatement& bind(std::int64_t value);
  SqliteStatement& bind(int value) { return bind(std::int64_t{value}); }
  SqliteStatement& bind(double value);  ///< NaN is stored as NULL
  SqliteStatement& bind(std::string_view value);
  SqliteStatement& bind(const char* value) { return bind(std::string_view(value)); }

  [[nodiscard]] bool step();  ///< true while there is a row
  void run();                 ///< steps to the end

  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;

 private:
  void check(int result) const;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  sqlite3* database_ = nullptr;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
};

/// BEGIN IMMEDIATE; rolled back when destroyed without commit().
class SqliteTransaction {
 public:
  explicit SqliteTransaction(SqliteConnection& connection);
  ~SqliteTransaction();
  SqliteTransaction(const SqliteTransaction&) = delete;
  SqliteTransaction& operator=(const SqliteTransaction&) = delete;
  void commit();

 private:
  SqliteConnection& connection_;
  bool open_ = true;
};

}  // namespace sylvite
