// SPDX-License-Identifier: Apache-2.0
#include "run/store/store.h"

#include <unistd.h>

#include <cstdio>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "core/evidence/metrics.h"
#include "run/store/schema.h"
#include "run/store/store_file.h"

namespace kernelpro {

namespace {

constexpr const char* kNewName = "store.db.new";
// Schema versions.
constexpr std::int64_t kOutcomesSince = 6, kLabelsSince = 9;

std::string knobs_json(const KnobValues& knobs) { return dump_json(Json(knobs)); }

std::string new_run_id(const std::string& directory) {
  return hash_hex({utc_now(), absolute(directory), std::to_string(::getpid()),
                   std::to_string(real_clock().now_s())});
}

bool is_file(const std::string& path) { return exists(path) && !is_dir(path); }

// Above this size, only the pages that a resume reads are checked.
constexpr std::int64_t kCheckedWhole = 256 << 20;

}  // namespace

tl::unexpected<Error> damaged_store(const std::string& path, const std::string& what) {
  return fail(ErrorKind::kStore, "the store " + path + " is damaged: " + what,
              "restore the folder from a copy, or start a new run; what is readable can be saved "
              "with: sqlite3 " +
                  path + " .recover");
}

std::string store_path(const std::string& directory) { return join(directory, "store.db"); }

std::string exchange_folder(const std::string& directory) { return join(directory, "exchange"); }

bool is_run(const std::string& path) {
  return exists(store_path(path)) || (path.ends_with(".jsonl") && is_file(path));
}

Result<void> Store::check_new(const std::string& directory) {
  if (exists(directory) && !is_dir(directory)) {
    return fail(ErrorKind::kStore, directory + " is not a folder",
                "name another folder for the run");
  }
  for (const std::string& name : list_dir(directory)) {
    if (name == "lock" || name.starts_with(kNewName)) continue;  // left by a killed start
    return fail(ErrorKind::kStore,
                "the folder " + directory + " is not empty (it has " + name + ")",
                exists(store_path(directory))
                    ? "continue it with: kernelpro resume " + directory + ", or name another folder"
                    : "name another folder for the run");
  }
  return {};
}

Store::Store() : impl_(std::make_unique<StoreFile>()) {}
Store::~Store() {
  // Unevaluated proposals are worth keeping, though losing them would be harmless.
  if (impl_->db.in_transaction()) impl_->db.execute("COMMIT");
}

int StoreFile::begin_store(const RunHeader& header) {
  int code = db.execute("PRAGMA page_size = 8192; BEGIN IMMEDIATE");
  if (code == SQLITE_OK) code = db.execute(kSchema);
  if (code == SQLITE_OK) code = db.execute(kLaterTables);
  const std::string ids = "PRAGMA application_id = " + std::to_string(kApplicationId) +
                          "; PRAGMA user_version = " + std::to_string(Store::kSchemaVersion);
  if (code == SQLITE_OK) code = db.execute(ids.c_str());
  if (code != SQLITE_OK) return code;
  const std::map<std::string, std::string> meta = {
      {"task", task_to_json(header.task)},
      {"target", std::string(target_name(header.target))},
      {"machine", machine_to_json(header.machine)},
      {"settings", header.settings_json},
      {"record", header.record_json},
      {"recorded", header.recorded_json},
      {"facts", header.facts_json},
      {"id", header.id.empty() ? new_run_id(directory) : header.id},
      {"created", header.created.empty() ? utc_now() : header.created},
      {"version", header.version.empty() ? KERNELPRO_VERSION : header.version}};
  for (const auto& [key, value] : meta) {
    code = db.prepare("INSERT INTO meta VALUES(?, ?)").bind(0, key).bind(1, value).step();
    if (code != SQLITE_DONE) return code;
  }
  return db.execute("COMMIT");
}

// Created under another name and renamed into place when complete: a run directory has a whole
// store or none.
Result<void> StoreFile::create(const RunHeader& header) {
  KP_TRY(Store::check_new(directory));
  const std::string fresh = join(directory, kNewName);
  ::unlink(fresh.c_str());
  ::unlink((fresh + "-journal").c_str());
  const std::string doing = "create the run's store";
  int code = db.open(fresh, Database::Mode::kCreate);
  if (code == SQLITE_OK) code = begin_store(header);
  if (code != SQLITE_OK) return failed(code, doing);
  db.close();
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return failed(SQLITE_CANTOPEN, doing);
  return {};
}

Result<void> StoreFile::open(StoreMode mode) {
  if (is_file(directory)) {
    return fail(ErrorKind::kStore, directory + " is a file, and only a run's folder can be written",
                "make a folder of a run as text with: kernelpro pack " + directory + " DIR");
  }
  if (!exists(path)) {
    return fail(ErrorKind::kStore, "there is no run in " + directory + " (no store.db)",
                "`kernelpro list " + directory +
                    "` shows what is there, also in a suite; `kernelpro optimize` starts a run");
  }
  if (mode == StoreMode::kRead) {
    KP_TRY(open_for_reading());
  } else {
    int code = db.open(path, Database::Mode::kWrite);
    // Rolls back what a killed writer left, and checks that the folder is writable.
    if (code == SQLITE_OK) {
      code = db.execute(
          "PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = NORMAL;"
          "BEGIN IMMEDIATE; COMMIT");
    }
    if (code != SQLITE_OK) return failed(code, "open the run for writing");
  }
  return check(mode);
}

// A read-only connection cannot roll back a killed writer's journal; if no process holds the run, a
// short read-write connection does it.
Result<void> StoreFile::open_for_reading() {
  for (int attempt = 0;; ++attempt) {
    std::int64_t tables = 0;
    int code = db.open(path, Database::Mode::kRead);
    if (code == SQLITE_OK) code = db.query_integer("SELECT count(*) FROM sqlite_master", &tables);
    if (code == SQLITE_ROW) return {};
    const bool hot = code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY;
    if (!hot || attempt == 50) return failed(code, "read the run");
    if (!run_is_locked(directory)) {
      db.close();
      Database repair;
      code = repair.open(path, Database::Mode::kWrite);
      if (code == SQLITE_OK) code = repair.query_integer("SELECT count(*) FROM meta", &tables);
      if (code != SQLITE_ROW && (code & 0xff) == SQLITE_READONLY) {
        return tl::unexpected<Error>(
            repair.explain(code, "undo the write during which this run was interrupted"));
      }
    }
    ::usleep(20000);
  }
}

Result<void> StoreFile::check(StoreMode mode) {
  std::int64_t id = 0;
  int code = db.query_integer("PRAGMA application_id", &id);
  if (code == SQLITE_ROW) code = db.query_integer("PRAGMA user_version", &version);
  if (code != SQLITE_ROW) return failed(code, "read the run");
  if (id != kApplicationId) {
    return fail(ErrorKind::kStore, path + " is not a KernelPro run store",
                "check the path; `kernelpro list` shows runs");
  }
  if (version > Store::kSchemaVersion) {
    return fail(ErrorKind::kStore,
                path + " was written by a newer KernelPro (store version " +
                    std::to_string(version) + ", this one knows " +
                    std::to_string(Store::kSchemaVersion) + ")",
                "upgrade KernelPro, or use the version that made the run");
  }
  if (version < 1) return damaged_store(path, "it has no version");
  if (mode == StoreMode::kRead) return {};
  KP_TRY(check_pages());
  return version < Store::kSchemaVersion ? upgrade(version) : Result<void>();
}

// SQLite reads every page to check a store, which takes seconds for 100,000 candidates: most of it
// is evidence that nobody will ask for. The rest is checked when it is read.
Result<void> StoreFile::check_pages() {
  std::int64_t pages = 0;
  std::int64_t page_bytes = 0;
  int code = db.query_integer("PRAGMA page_count", &pages);
  if (code == SQLITE_ROW) code = db.query_integer("PRAGMA page_size", &page_bytes);
  std::string verdict = "ok";
  const auto check = [&](const char* pragma) {
    if (code == SQLITE_ROW && verdict == "ok") code = db.query_text(pragma, &verdict);
  };
  if (pages * page_bytes <= kCheckedWhole) {
    check("PRAGMA quick_check(1)");
  } else {
    check("PRAGMA quick_check(meta)");
    check("PRAGMA quick_check(candidates)");
    if (version >= kOutcomesSince) check("PRAGMA quick_check(outcomes)");
  }
  if (code != SQLITE_ROW) return failed(code, "check the run");
  if (verdict != "ok") return damaged_store(path, verdict);
  return {};
}

Result<void> StoreFile::upgrade(std::int64_t from) {
  const std::string doing = "bring the run's store up to this version";
  const std::string before =
      from < kLabelsSince ? "BEGIN IMMEDIATE; DROP TABLE IF EXISTS outcomes;" : "BEGIN IMMEDIATE;";
  int code = db.execute((before + kLaterTables).c_str());
  if (code != SQLITE_OK) return failed(code, doing);
  if (from < kRepairsSince) {
    code = db.execute(kAddRepairs);
    if (code != SQLITE_OK) return failed(code, doing);
  }
  version = Store::kSchemaVersion;  // `add_outcomes` reads it
  if (from < kLabelsSince) {
    if (auto added = add_outcomes(); !added) {
      if (db.in_transaction()) db.execute("ROLLBACK");
      return added;
    }
  }
  const std::string pragma = "PRAGMA user_version = " + std::to_string(Store::kSchemaVersion);
  code = db.execute((pragma + "; COMMIT").c_str());
  if (code != SQLITE_OK) return failed(code, doing);
  return {};
}

Result<std::unique_ptr<Store>> Store::open(const std::string& directory, Mode mode,
                                           const RunHeader* header) {
  KP_ASSERT(mode != StoreMode::kCreate || header != nullptr);
  if (mode == StoreMode::kRead && is_file(directory)) return open_text(directory);
  std::unique_ptr<Store> store(new Store());
  StoreFile& impl = *store->impl_;
  impl.directory = directory;
  impl.path = store_path(directory);
  if (mode == StoreMode::kCreate) KP_TRY(make_dirs(directory));
  if (mode == StoreMode::kWrite && !exists(impl.path)) KP_TRY(impl.open(mode));
  if (mode != StoreMode::kRead) {
    KP_ASSIGN(auto lock, RunLock::take(directory));
    impl.lock.emplace(std::move(lock));
  }
  if (mode == StoreMode::kCreate) KP_TRY(impl.create(*header));
  KP_TRY(impl.open(mode));
  return store;
}

// Returns 0 when the content is already known.
Result<std::int64_t> StoreFile::insert(const Candidate& candidate) {
  const std::string doing = "write a candidate";
  const std::string source = hash_hex(candidate.source);
  const std::string content = candidate.content_hash();
  const std::string language = std::string(language_name(candidate.language));
  const std::string knobs = knobs_json(candidate.knobs);
  int code = db.prepare("INSERT INTO sources VALUES(?, ?) ON CONFLICT DO NOTHING")
                 .bind(0, source)
                 .bind(1, candidate.source)
                 .step();
  if (code != SQLITE_DONE) return failed(code, doing);
  Statement known = db.prepare("SELECT 1 FROM candidates WHERE content_hash = ?");
  code = known.bind(0, content).step();
  if (code == SQLITE_ROW) return 0;
  if (code != SQLITE_DONE) return failed(code, doing);
  Statement row = db.prepare(
      "INSERT INTO candidates(content_hash, language, source, knobs, proposer, idea, answers,"
      " parent, repairs) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
  const Origin& origin = candidate.origin;
  const std::string answers = origin.answers.text();  // must outlive the binding
  row.bind(0, content).bind(1, language).bind(2, source).bind(3, knobs);
  row.bind(4, origin.proposer).bind(5, origin.idea).bind(6, answers);
  origin.parent == 0 ? row.bind_null(7) : row.bind(7, origin.parent);
  row.bind(8, origin.repairs);
  code = row.step();
  if (code != SQLITE_DONE) return failed(code, doing);
  return db.last_row();
}

Result<std::vector<std::int64_t>> Store::add(const std::vector<Candidate>& candidates) {
  if (const int code = impl_->begin(); code != SQLITE_OK) {
    return impl_->failed(code, "write candidates");
  }
  std::vector<std::int64_t> ids;
  for (const Candidate& candidate : candidates) {
    KP_ASSIGN(auto id, impl_->insert(candidate));
    ids.push_back(id);
  }
  return ids;
}

Result<std::int64_t> Store::add_proposal(const Proposal& proposal) {
  int code = impl_->begin();
  if (code != SQLITE_OK) return impl_->failed(code, "write a candidate");
  KP_ASSIGN(const auto id, impl_->insert(proposal.candidate));
  const std::optional<Writing>& w = proposal.writing;
  if (!w || id == 0) return id;
  Statement row = impl_->db.prepare("INSERT INTO writings VALUES(?, ?, ?, ?, ?, ?)");
  row.bind(0, id).bind(1, w->request).bind(2, w->writer).bind(3, w->prompt);
  code = row.bind(4, w->reply).bind(5, w->usage).step();
  if (code != SQLITE_DONE) return impl_->failed(code, "write what a writer answered");
  return id;
}

Result<void> Store::copy_to(const std::string& directory) const {
  const std::string path = store_path(directory);
  KP_TRY(make_dirs(directory));
  if (exists(path)) {
    return fail(ErrorKind::kStore, path + " is there already", "name a new or an empty folder");
  }
  Statement row = impl_->db.prepare("VACUUM INTO ?");
  const int code = row.bind(0, path).step();
  if (code != SQLITE_DONE) return impl_->failed(code, "copy the run's store to " + path);
  return {};
}

int StoreFile::insert_outcome(std::int64_t candidate, double at_s, const Evaluation& evaluation,
                              const Diagnosis& diagnosis) {
  const std::string outcome = outcome_name(evaluation.outcome);
  const Promise promise = promise_of(diagnosis);
  const Correct* correct = evaluation.correct();
  Statement row = db.prepare(
      "INSERT INTO outcomes VALUES(?1, (SELECT position FROM evaluations WHERE candidate = ?1),"
      " ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)");
  row.bind(0, candidate).bind(1, at_s).bind(2, outcome).bind(3, score_us(evaluation));
  for (int i = 4; i <= 11; ++i) row.bind_null(i);
  if (correct != nullptr && correct->versus) {
    const Correct::Versus& v = *correct->versus;
    row.bind(4, v.incumbent).bind(5, v.ratio).bind(6, v.low).bind(7, v.high);
  }
  if (correct != nullptr && correct->energy) {
    row.bind(8, correct->energy->millijoules);
    if (const auto& v = correct->energy->versus) {
      row.bind(9, v->ratio).bind(10, v->low).bind(11, v->high);
    }
  }
  row.bind(12, evaluation.code).bind(13, static_cast<std::int64_t>(diagnosis.bound));
  row.bind(14, diagnosis.floor_us).bind(15, diagnosis.fraction_of_ceiling);
  row.bind(16, static_cast<std::int64_t>(promise.stop)).bind(17, promise.likely);
  row.bind(18, promise.upper);
  return row.bind(19, correct != nullptr ? join_text(correct->labels, " ") : "").step();
}

Result<void> StoreFile::add_outcomes() {
  const std::string doing = "bring the run's store up to this version";
  for (std::int64_t after = 0;;) {
    std::int64_t id = 0;
    double at_s = 0;
    std::optional<Evaluation> evaluation;
    std::optional<Diagnosis> diagnosis;
    {
      Statement row = db.prepare(
          "SELECT e.candidate, e.at_s, e.json, d.json FROM evaluations e JOIN diagnosis d"
          " ON d.candidate = e.candidate WHERE e.candidate > ? ORDER BY e.candidate LIMIT 1");
      const int code = row.bind(0, after).step();
      if (code == SQLITE_DONE) return {};
      if (code != SQLITE_ROW) return failed(code, doing);
      id = row.integer(0);
      at_s = row.real(1);
      evaluation = evaluation_from_json(row.text(2));
      diagnosis = diagnosis_from_json(row.text(3));
    }
    if (!evaluation || !diagnosis) {
      return damaged_store(path, "candidate " + std::to_string(id) + " cannot be read");
    }
    const int code = insert_outcome(id, at_s, *evaluation, *diagnosis);
    if (code != SQLITE_DONE) return failed(code, doing);
    after = id;
  }
}

Result<void> Store::finish(std::int64_t id, const Evaluation& evaluation, const Evidence& evidence,
                           const Diagnosis& diagnosis, double at_s, const ToolStep* step) {
  Database& db = impl_->db;
  const std::string doing = "write the evaluation of candidate " + std::to_string(id);
  const std::string outcome = outcome_name(evaluation.outcome);
  const std::string evaluation_text = evaluation_to_json(evaluation);
  const std::string evidence_text = evidence_to_json(evidence);
  const std::string diagnosis_text = diagnosis_to_json(diagnosis);
  int code = impl_->begin();
  if (code != SQLITE_OK) return impl_->failed(code, doing);
  {
    Statement row = db.prepare(
        "INSERT INTO evaluations(candidate, position, outcome, at_s, json, score_us) VALUES(?,"
        " (SELECT coalesce(max(position), 0) + 1 FROM evaluations), ?, ?, ?, ?)");
    row.bind(0, id).bind(1, outcome).bind(2, at_s).bind(3, evaluation_text);
    const double score = score_us(evaluation);
    evaluation.correct() != nullptr ? row.bind(4, score) : row.bind_null(4);
    code = row.step();
  }
  if (code == SQLITE_DONE) {
    code =
        db.prepare("INSERT INTO evidence VALUES(?, ?)").bind(0, id).bind(1, evidence_text).step();
  }
  if (code == SQLITE_DONE) {
    code =
        db.prepare("INSERT INTO diagnosis VALUES(?, ?)").bind(0, id).bind(1, diagnosis_text).step();
  }
  // An earlier confirmation is outdated now.
  if (code == SQLITE_DONE) code = db.prepare("DELETE FROM confirmation").step();
  if (code == SQLITE_DONE) code = impl_->insert_outcome(id, at_s, evaluation, diagnosis);
  if (code == SQLITE_DONE && step != nullptr) {
    Statement row = db.prepare("INSERT INTO tool_steps VALUES(?, ?, ?, ?, ?, ?, ?)");
    row.bind(0, id).bind(1, step->tool).bind(2, step->tag).bind(3, step->likely);
    row.bind(4, step->upper).bind(5, step->measured).bind(6, step->record);
    code = row.step();
  }
  if (code != SQLITE_DONE) return impl_->failed(code, doing);
  return impl_->commit(doing);
}

namespace {

// Removes ceilings from evidence that has its own: of an earlier version, or of a run as text.
const char* drop_ceilings() {
  static const std::string statement = [] {
    std::string paths;
    for (const Metric& metric : metrics_of(Family::kCeilings)) {
      paths += ", '$.items.\"" + std::string(metric.name) + "\"'";
    }
    return "UPDATE evidence SET json = json_remove(json" + paths +
           ") WHERE instr(json, '\"ceiling.')";
  }();
  return statement.c_str();
}

}  // namespace

Result<void> Store::revise(const std::vector<Revision>& revisions, const Machine* machine) {
  Database& db = impl_->db;
  const std::string doing = "write what diagnoses are now";
  int code = impl_->begin();
  if (code != SQLITE_OK) return impl_->failed(code, doing);
  code = SQLITE_DONE;
  if (machine != nullptr) {
    const std::string text = machine_to_json(*machine);
    code = db.prepare("UPDATE meta SET value = ? WHERE key = 'machine'").bind(0, text).step();
    if (code == SQLITE_DONE) code = db.prepare(drop_ceilings()).step();
  }
  for (const Revision& each : revisions) {
    const auto set = [&](const char* statement, const std::string& text) {
      if (code == SQLITE_DONE) code = db.prepare(statement).bind(0, each.id).bind(1, text).step();
    };
    if (each.evidence) {
      set("UPDATE evidence SET json = ?2 WHERE candidate = ?1", evidence_to_json(*each.evidence));
    }
    set("UPDATE diagnosis SET json = ?2 WHERE candidate = ?1", diagnosis_to_json(each.diagnosis));
    if (code != SQLITE_DONE) break;
    const Promise promise = promise_of(each.diagnosis);
    Statement row = db.prepare(
        "UPDATE outcomes SET bound = ?2, floor_us = ?3, fraction = ?4, stop = ?5, likely = ?6,"
        " upper = ?7 WHERE candidate = ?1");
    row.bind(0, each.id).bind(1, static_cast<std::int64_t>(each.diagnosis.bound));
    row.bind(2, each.diagnosis.floor_us).bind(3, each.diagnosis.fraction_of_ceiling);
    row.bind(4, static_cast<std::int64_t>(promise.stop)).bind(5, promise.likely);
    code = row.bind(6, promise.upper).step();
  }
  if (code != SQLITE_DONE) return impl_->failed(code, doing);
  return impl_->commit(doing);
}

Result<void> Store::confirm(const StoredConfirmation& confirmation) {
  const std::string doing = "write the confirmation";
  const std::string text = evaluation_to_json(confirmation.evaluation);
  Database& db = impl_->db;
  int code = impl_->begin();
  if (code == SQLITE_OK) {
    code = db.prepare("INSERT OR REPLACE INTO confirmation VALUES(1, ?, ?, ?, ?)")
               .bind(0, confirmation.best)
               .bind(1, confirmation.stopped_by)
               .bind(2, confirmation.own_ms_per_evaluation)
               .bind(3, text)
               .step();
  }
  if (code == SQLITE_DONE) code = db.prepare("DELETE FROM held_out").step();
  std::int64_t position = 0;
  for (const HeldOut& each : confirmation.held_out) {
    if (code != SQLITE_DONE) break;
    const std::string evaluation = evaluation_to_json(each.evaluation);
    Statement row = db.prepare("INSERT INTO held_out VALUES(?, ?, ?, ?)");
    row.bind(0, ++position).bind(1, each.case_name).bind(2, each.problem);
    code = row.bind(3, evaluation).step();
  }
  if (code != SQLITE_DONE) return impl_->failed(code, doing);
  return impl_->commit(doing);
}

Result<void> Store::save_settings(const std::string& settings_json) {
  const int code = impl_->db.prepare("UPDATE meta SET value = ? WHERE key = 'settings'")
                       .bind(0, settings_json)
                       .step();
  if (code != SQLITE_DONE) return impl_->failed(code, "write the settings");
  return impl_->commit("write the settings");
}

}  // namespace kernelpro
