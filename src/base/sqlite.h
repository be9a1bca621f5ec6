// SPDX-License-Identifier: Apache-2.0
// A thin SQLite wrapper for the stores: a connection, prepared statements, and SQLite's error codes
// turned into messages that say what to do. One thread at a time per database.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace kernelpro {

// A prepared statement. The destructor resets it; the database keeps it for reuse. Columns and
// parameters count from 0.
class Statement {
 public:
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // `text` must outlive the statement.
  Statement& bind(int index, std::string_view text);
  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, double value);
  Statement& bind_null(int index);

  // SQLite's result code: SQLITE_ROW, SQLITE_DONE or an error.
  int step();
  std::string text(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  bool is_null(int column) const;

 private:
  sqlite3_stmt* statement_;
};

class Database {
 public:
  enum class Mode { kCreate, kWrite, kRead };

  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() { close(); }

  // SQLite's result code; explain() turns it into an Error.
  int open(const std::string& path, Mode mode);
  void close();
  // Runs statements that return no rows.
  int execute(const char* sql);
  // Holds nullptr when the statement cannot be prepared; the next step() then returns an error.
  // REQUIRES: `sql` is a string constant.
  Statement prepare(const char* sql);
  std::int64_t last_row() const;
  bool in_transaction() const;
  // For calls that this wrapper lacks; nullptr when not open.
  sqlite3* handle() const { return handle_; }
  // The first column of the first row; returns SQLITE_ROW when there is one.
  int query_integer(const char* sql, std::int64_t* value);
  int query_text(const char* sql, std::string* value);

  // A readable error. `doing`: "write the evaluation of candidate 7".
  Error explain(int code, const std::string& doing) const;

 private:
  std::string path_;
  sqlite3* handle_ = nullptr;
  std::unordered_map<const char*, sqlite3_stmt*> statements_;
};

}  // namespace kernelpro
