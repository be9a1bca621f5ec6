// SPDX-License-Identifier: Apache-2.0
#include "base/sqlite.h"

#include <sqlite3.h>

#include "base/files.h"

namespace kernelpro {

namespace {
constexpr int kBusyWaitMs = 10000;
}  // namespace

Statement::~Statement() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Statement& Statement::bind(int index, std::string_view text) {
  sqlite3_bind_text64(statement_, index + 1, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind(int index, std::int64_t value) {
  sqlite3_bind_int64(statement_, index + 1, value);
  return *this;
}

Statement& Statement::bind(int index, double value) {
  sqlite3_bind_double(statement_, index + 1, value);
  return *this;
}

Statement& Statement::bind_null(int index) {
  sqlite3_bind_null(statement_, index + 1);
  return *this;
}

int Statement::step() { return statement_ == nullptr ? SQLITE_ERROR : sqlite3_step(statement_); }

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  const int size = sqlite3_column_bytes(statement_, column);
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

int Database::open(const std::string& path, Mode mode) {
  close();
  path_ = path;
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  flags |= mode == Mode::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (mode == Mode::kCreate) flags |= SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(path.c_str(), &handle_, flags, nullptr);
  if (code != SQLITE_OK) return code;
  sqlite3_busy_timeout(handle_, kBusyWaitMs);
  // The file may come from anywhere: do not trust its schema.
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  return execute("PRAGMA foreign_keys = ON");
}

void Database::close() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  statements_.clear();
  if (handle_ != nullptr) sqlite3_close(handle_);
  handle_ = nullptr;
}

int Database::execute(const char* sql) {
  return sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
}

Statement Database::prepare(const char* sql) {
  sqlite3_stmt*& statement = statements_[sql];
  if (statement == nullptr) {
    sqlite3_prepare_v3(handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  }
  return Statement(statement);
}

std::int64_t Database::last_row() const { return sqlite3_last_insert_rowid(handle_); }

bool Database::in_transaction() const {
  return handle_ != nullptr && sqlite3_get_autocommit(handle_) == 0;
}

int Database::query_integer(const char* sql, std::int64_t* value) {
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(handle_, sql, -1, &statement, nullptr);
  if (code == SQLITE_OK) {
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW) *value = sqlite3_column_int64(statement, 0);
  }
  sqlite3_finalize(statement);
  return code;
}

int Database::query_text(const char* sql, std::string* value) {
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(handle_, sql, -1, &statement, nullptr);
  if (code == SQLITE_OK) {
    code = sqlite3_step(statement);
    const auto* text = code == SQLITE_ROW
                           ? reinterpret_cast<const char*>(sqlite3_column_text(statement, 0))
                           : nullptr;
    *value = text == nullptr ? "" : text;
  }
  sqlite3_finalize(statement);
  return code;
}

Error Database::explain(int code, const std::string& doing) const {
  const std::string cannot = "cannot " + doing + " (" + path_ + "): ";
  const std::string detail = handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  const std::string folder = dirname(path_);
  switch (code & 0xff) {
    case SQLITE_FULL:
      return {ErrorKind::kStore, cannot + "the disk is full",
              "free some space, then continue with: kernelpro resume " + folder};
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return {ErrorKind::kStore, cannot + "the run folder is read-only",
              "make the folder and the files in it writable, or copy the run elsewhere"};
    case SQLITE_CANTOPEN:
      return {ErrorKind::kStore, cannot + "the file or its journal cannot be opened",
              "check that the folder exists and that you may read and write it"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {ErrorKind::kStore, cannot + "the store is damaged (" + detail + ")",
              "restore the folder from a copy, or start a new run; what is readable can be saved "
              "with: sqlite3 " +
                  path_ + " .recover"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorKind::kBusy, cannot + "another process has kept the store locked",
              "end the program that has store.db open and try again"};
    case SQLITE_IOERR:
      return {ErrorKind::kStore, cannot + "reading or writing the disk failed (" + detail + ")",
              "check the disk's space, quota and health, then: kernelpro resume " + folder};
    default:
      return {ErrorKind::kStore, cannot + detail, "report this message if the folder is intact"};
  }
}

}  // namespace kernelpro
