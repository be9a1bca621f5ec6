// SPDX-License-Identifier: Apache-2.0
#include "run/store/fact_file.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/sqlite.h"
#include "base/state_dir.h"
#include "base/text.h"
#include "core/task/operator_family.h"

namespace kernelpro {

namespace {

constexpr int kFactsId = 0x4b504641;  // "KPFA", in the file's header

// The triggers make the file itself append-only; the first also stops INSERT OR REPLACE, which
// would bypass the others.
constexpr const char* kFactsSchema = R"sql(
CREATE TABLE facts(
  id        INTEGER PRIMARY KEY,
  run       TEXT NOT NULL,
  candidate TEXT NOT NULL,
  at        TEXT NOT NULL,
  target    TEXT NOT NULL,
  task_hash TEXT NOT NULL,
  family    TEXT NOT NULL,
  json      TEXT NOT NULL,
  UNIQUE (run, candidate)
) STRICT;
CREATE TRIGGER facts_once BEFORE INSERT ON facts
WHEN EXISTS (SELECT 1 FROM facts WHERE id = NEW.id
             OR (run = NEW.run AND candidate = NEW.candidate))
BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER facts_stay BEFORE UPDATE ON facts
BEGIN SELECT RAISE(ABORT, 'facts are only added'); END;
CREATE TRIGGER facts_remain BEFORE DELETE ON facts
BEGIN SELECT RAISE(ABORT, 'facts are only added'); END;
)sql";

bool is_damage(int code) {
  const int kind = code & 0xff;
  return kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB;
}

}  // namespace

std::string user_facts_path() { return join(state_dir(), "facts.db"); }

struct FactFile::Impl {
  std::string path;
  Database db;
  bool open = false;
  bool damaged = false;  // found by the last read or write
  bool only_read = false;
  std::string note;

  Fd lock() const;
  Result<void> ensure(bool create);
  Result<bool> try_open();
  Result<void> begin_file();
  Result<void> set_aside(const std::string& why);
  Result<void> recover();
  tl::unexpected<Error> failed(int code, const std::string& doing);
  Result<int> insert(const std::string& run, const std::vector<Fact>& facts,
                     const std::string& when);
  Result<std::vector<Fact>> select(Statement* rows, const std::vector<std::string>& family,
                                   const std::string& task_hash, std::size_t most);
};

FactFile::FactFile(std::string path) : impl_(std::make_unique<Impl>()) {
  impl_->path = std::move(path);
}
FactFile::~FactFile() = default;
void FactFile::only_read() { impl_->only_read = true; }

tl::unexpected<Error> FactFile::Impl::failed(int code, const std::string& doing) {
  const std::string why = db.explain(code, doing).message;
  if (db.in_transaction()) db.execute("ROLLBACK");
  return fail(ErrorKind::kStore, why,
              "make room or see to its permissions; --no-record does without " + path);
}

// False: damaged.
Result<bool> FactFile::Impl::try_open() {
  std::int64_t id = 0;
  std::int64_t version = 0;
  std::int64_t tables = 0;
  int code = db.open(path, Database::Mode::kWrite);
  if (code == SQLITE_OK) code = db.query_integer("PRAGMA application_id", &id);
  if (code == SQLITE_ROW) code = db.query_integer("PRAGMA user_version", &version);
  if (code == SQLITE_ROW) code = db.query_integer("SELECT count(*) FROM sqlite_master", &tables);
  if (is_damage(code)) return false;
  if (code != SQLITE_ROW) return failed(code, "open the memory");
  if (id != kFactsId || version > kVersion) {
    db.close();
    return fail(ErrorKind::kStore,
                path + (id != kFactsId ? " is not KernelPro's memory"
                                       : " was written by a newer KernelPro"),
                "move it away, or name another state folder in KERNELPRO_STATE");
  }
  code = db.execute("PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = NORMAL");
  if (is_damage(code)) return false;
  if (code != SQLITE_OK) return failed(code, "open the memory");
  return true;
}

// Created under another name and renamed when complete, as a run's store is.
Result<void> FactFile::Impl::begin_file() {
  const std::string fresh = path + ".new";
  ::unlink(fresh.c_str());
  ::unlink((fresh + "-journal").c_str());
  int code = db.open(fresh, Database::Mode::kCreate);
  if (code == SQLITE_OK) code = db.execute("BEGIN IMMEDIATE");
  if (code == SQLITE_OK) code = db.execute(kFactsSchema);
  const std::string ids = "PRAGMA application_id = " + std::to_string(kFactsId) +
                          "; PRAGMA user_version = " + std::to_string(kVersion) + "; COMMIT";
  if (code == SQLITE_OK) code = db.execute(ids.c_str());
  if (code != SQLITE_OK) return failed(code, "begin a memory");
  db.close();
  if (std::rename(fresh.c_str(), path.c_str()) != 0)
    return failed(SQLITE_CANTOPEN, "begin a memory");
  return {};
}

// REQUIRES: the lock.
Result<void> FactFile::Impl::set_aside(const std::string& why) {
  db.close();
  if (only_read) {
    return fail(ErrorKind::kStore, path + " is not a memory file, or it is damaged: " + why,
                "name a memory with --file; the next run sets a damaged one of its own aside");
  }
  std::string aside;
  for (int i = 1; aside.empty() || exists(aside); ++i) {
    aside = path + ".damaged-" + std::to_string(i);
  }
  // The journal belongs to the damaged file and would be applied to the new one.
  const std::string journal = path + "-journal";
  if (exists(journal)) std::rename(journal.c_str(), (aside + "-journal").c_str());
  if (std::rename(path.c_str(), aside.c_str()) != 0) {
    return fail(ErrorKind::kStore, path + " is damaged (" + why + ") and cannot be moved away",
                "move it away, or use --no-record");
  }
  note = "the memory " + path + " was damaged (" + why + ") and now lies in " + aside +
         "; a new one is begun";
  return {};
}

// One process at a time creates a file or sets it aside; the others then open the result. Released
// with the descriptor.
Fd FactFile::Impl::lock() const {
  const std::string beside = path + ".lock";
  Fd fd(::open(beside.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (fd.valid()) static_cast<void>(::flock(fd.get(), LOCK_EX));
  return fd;
}

Result<void> FactFile::Impl::ensure(bool create) {
  if (open || (!create && !exists(path))) return {};
  if (!only_read) KP_TRY(make_dirs(dirname(absolute(path))));
  const Fd held = only_read ? Fd() : lock();
  if (exists(path)) {
    KP_ASSIGN(open, try_open());
    if (open) return {};
    KP_TRY(set_aside("it cannot be read as SQLite"));
  }
  if (!create) return {};
  KP_TRY(begin_file());
  KP_ASSIGN(open, try_open());
  return {};
}

// Call after a read or write that hit damage. Another process may have repaired the file meanwhile.
Result<void> FactFile::Impl::recover() {
  db.close();
  open = false;
  const Fd held = only_read ? Fd() : lock();
  if (!exists(path)) return {};
  std::string verdict = "it cannot be read as SQLite";
  Database probe;
  int code = probe.open(path, Database::Mode::kRead);
  if (code == SQLITE_OK) code = probe.query_text("PRAGMA quick_check(1)", &verdict);
  probe.close();
  if (code == SQLITE_ROW && verdict == "ok") return {};
  return set_aside(lines(verdict).empty() ? "damaged" : lines(verdict)[0]);
}

Result<int> FactFile::Impl::insert(const std::string& run, const std::vector<Fact>& facts,
                                   const std::string& when) {
  int added = 0;
  int code = db.execute("BEGIN IMMEDIATE");
  for (const Fact& each : facts) {
    if (code != SQLITE_OK && code != SQLITE_DONE) break;
    Fact fact = each;
    if (fact.when.empty()) fact.when = when;
    const std::string json = fact_to_json(fact);
    const std::string family = join_text(fact.family, " ");
    Statement row = db.prepare(
        "INSERT INTO facts(run, candidate, at, target, task_hash, family, json)"
        " VALUES(?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
    row.bind(0, run).bind(1, fact.candidate).bind(2, fact.when);
    row.bind(3, target_name(fact.target)).bind(4, fact.task_hash).bind(5, family);
    code = row.bind(6, json).step();
    if (code == SQLITE_DONE) added += sqlite3_changes(db.handle());
  }
  if (code == SQLITE_DONE || code == SQLITE_OK) code = db.execute("COMMIT");
  damaged = is_damage(code);
  if (code != SQLITE_OK) return failed(code, "add to the memory");
  return added;
}

Result<int> FactFile::add(const std::string& run, const std::vector<Fact>& facts,
                          const std::string& when) {
  const std::string now = when.empty() ? utc_now() : when;
  for (int attempt = 0;; ++attempt) {
    KP_TRY(impl_->ensure(true));
    auto added = impl_->insert(run, facts, now);
    if (!impl_->damaged || attempt == 1) return added;
    KP_TRY(impl_->recover());
  }
}

Result<std::vector<Fact>> FactFile::Impl::select(Statement* rows,
                                                 const std::vector<std::string>& family,
                                                 const std::string& task_hash, std::size_t most) {
  std::vector<Fact> facts;
  int unreadable = 0;
  int code = rows->step();
  for (; code == SQLITE_ROW && facts.size() < most; code = rows->step()) {
    const bool same = rows->text(0) == task_hash;
    if (!family.empty() && !same && family_likeness(words(rows->text(1)), family) <= 0) continue;
    auto fact = fact_from_json(rows->text(2));
    unreadable += fact ? 0 : 1;
    if (fact) facts.push_back(std::move(*fact));
  }
  if (unreadable > 0) {
    note = std::to_string(unreadable) + " facts in " + path + " cannot be read and are left out";
  }
  std::reverse(facts.begin(), facts.end());
  if (code != SQLITE_ROW && code != SQLITE_DONE && !is_damage(code)) {
    return failed(code, "read the memory");
  }
  damaged = is_damage(code);
  return facts;
}

Result<std::vector<Fact>> FactFile::read(TargetKind target, const std::vector<std::string>& family,
                                         const std::string& task_hash, std::size_t most) {
  KP_TRY(impl_->ensure(false));
  if (!impl_->open) return std::vector<Fact>();
  const std::string name(target_name(target));
  Result<std::vector<Fact>> facts;
  {
    Statement rows = impl_->db.prepare(
        "SELECT task_hash, family, json FROM facts WHERE target = ? ORDER BY id DESC");
    rows.bind(0, name);
    facts = impl_->select(&rows, family, task_hash, most);
  }
  if (impl_->damaged) KP_TRY(impl_->recover());
  return facts;
}

Result<std::vector<Fact>> FactFile::read_all() {
  KP_TRY(impl_->ensure(false));
  if (!impl_->open) return std::vector<Fact>();
  Result<std::vector<Fact>> facts;
  {
    Statement rows =
        impl_->db.prepare("SELECT task_hash, family, json FROM facts ORDER BY id DESC");
    facts = impl_->select(&rows, {}, "", SIZE_MAX);
  }
  if (impl_->damaged) KP_TRY(impl_->recover());
  return facts;
}

std::string FactFile::take_note() { return std::exchange(impl_->note, ""); }

}  // namespace kernelpro
