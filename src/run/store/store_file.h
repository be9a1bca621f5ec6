// SPDX-License-Identifier: Apache-2.0
// The internals of Store, shared by its parts: writing (store.cc), reading (store_read.cc), writers
// (store_writers.cc) and text (store_text.cc).
#pragma once

#include <sqlite3.h>

#include "base/sqlite.h"
#include "run/store/brief.h"
#include "run/store/lock.h"
#include "run/store/records.h"

namespace kernelpro {

inline constexpr std::int64_t kRepairsSince = 7;  // version of the schema

struct StoreFile {
  std::string directory;
  std::string path;
  std::optional<RunLock> lock;  // writers only
  mutable Database db;
  std::int64_t version = 0;  // schema version of the file as it is now

  tl::unexpected<Error> failed(int code, const std::string& doing) {
    Error error = db.explain(code, doing);
    if (db.in_transaction()) db.execute("ROLLBACK");
    return tl::unexpected<Error>(std::move(error));
  }

  Result<void> create(const RunHeader& header);
  // Makes the tables of an empty database and writes the header; returns SQLite's code.
  int begin_store(const RunHeader& header);
  Result<void> open(StoreMode mode);
  Result<void> open_for_reading();
  Result<void> check(StoreMode mode);
  Result<void> check_pages();
  Result<void> upgrade(std::int64_t from);
  // Adds the columns of every evaluation that lacks them; within a transaction.
  Result<void> add_outcomes();
  Result<std::int64_t> insert(const Candidate& candidate);
  int insert_outcome(std::int64_t candidate, double at_s, const Evaluation& evaluation,
                     const Diagnosis& diagnosis);
  // Stores of older versions are read as they are.
  Result<bool> has_table(const char* query, const std::string& doing);
  Result<Machine> read_machine();
  Result<std::vector<StoredCandidate>> read(const char* query, bool evidence, std::int64_t only);
  // Commits the transaction, which `add` may have begun.
  Result<void> commit(const std::string& doing) {
    const int code = db.in_transaction() ? db.execute("COMMIT") : SQLITE_OK;
    if (code != SQLITE_OK) return failed(code, doing);
    return {};
  }
  int begin() { return db.in_transaction() ? SQLITE_OK : db.execute("BEGIN IMMEDIATE"); }
};

// The store at `path` holds something impossible.
tl::unexpected<Error> damaged_store(const std::string& path, const std::string& what);

}  // namespace kernelpro
