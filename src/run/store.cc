// SPDX-License-Identifier: Apache-2.0
#include "run/store.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cstdio>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/sqlite.h"
#include "core/json.h"
#include "run/lock.h"
#include "run/schema.h"

namespace kernelpro {

namespace {

constexpr const char* kNewName = "store.db.new";

std::string knobs_json(const KnobValues& knobs) { return dump_json(Json(knobs)); }

std::string new_run_id(const std::string& directory) {
  return hash_hex({utc_now(), absolute(directory), std::to_string(::getpid()),
                   std::to_string(real_clock().now_s())});
}

tl::unexpected<Error> damaged(const std::string& path, const std::string& what) {
  return fail(ErrorKind::kStore, "the store " + path + " is damaged: " + what,
              "restore the folder from a copy, or start a new run");
}

}  // namespace

std::string store_path(const std::string& directory) { return join(directory, "store.db"); }

Result<void> Store::check_new(const std::string& directory) {
  if (exists(directory) && !is_dir(directory)) {
    return fail(ErrorKind::kStore, directory + " is not a folder",
                "name another folder for the run");
  }
  for (const std::string& name : list_dir(directory)) {
    if (name == "lock" || name.starts_with(kNewName)) continue;  // left by a start that was killed
    return fail(ErrorKind::kStore,
                "the folder " + directory + " is not empty (it has " + name + ")",
                exists(store_path(directory))
                    ? "go on with: kernelpro resume " + directory + ", or name another folder"
                    : "name another folder for the run");
  }
  return {};
}

struct Store::Impl {
  std::string directory;
  std::string path;
  std::optional<RunLock> lock;  // writers
  mutable Database db;

  tl::unexpected<Error> failed(int code, const std::string& doing) {
    Error error = db.explain(code, doing);
    if (db.in_transaction()) db.execute("ROLLBACK");
    return tl::unexpected<Error>(std::move(error));
  }

  Result<void> create(const RunHeader& header);
  Result<void> open(Mode mode);
  Result<void> open_for_reading();
  Result<void> check(Mode mode);
  Result<void> upgrade();
  Result<std::int64_t> insert(const Candidate& candidate);
  // A transaction that `add` may have begun already.
  Result<void> commit(const std::string& doing) {
    const int code = db.in_transaction() ? db.execute("COMMIT") : SQLITE_OK;
    if (code != SQLITE_OK) return failed(code, doing);
    return {};
  }
  int begin() { return db.in_transaction() ? SQLITE_OK : db.execute("BEGIN IMMEDIATE"); }
};

Store::Store() : impl_(std::make_unique<Impl>()) {}
Store::~Store() {
  // What was proposed and not evaluated is worth keeping; losing it would do no harm either.
  if (impl_->db.in_transaction()) impl_->db.execute("COMMIT");
}

// Built under another name and renamed into place when complete: a run directory either has a whole
// store or none.
Result<void> Store::Impl::create(const RunHeader& header) {
  KP_TRY(check_new(directory));
  const std::string fresh = join(directory, kNewName);
  ::unlink(fresh.c_str());
  ::unlink((fresh + "-journal").c_str());
  const std::string doing = "create the run's store";
  int code = db.open(fresh, Database::Mode::kCreate);
  if (code == SQLITE_OK) code = db.execute("PRAGMA page_size = 8192; BEGIN IMMEDIATE");
  if (code == SQLITE_OK) code = db.execute(kSchema);
  const std::string ids = "PRAGMA application_id = " + std::to_string(kApplicationId) +
                          "; PRAGMA user_version = " + std::to_string(kSchemaVersion);
  if (code == SQLITE_OK) code = db.execute(ids.c_str());
  if (code != SQLITE_OK) return failed(code, doing);
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
    if (code != SQLITE_DONE) return failed(code, doing);
  }
  code = db.execute("COMMIT");
  if (code != SQLITE_OK) return failed(code, doing);
  db.close();
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return failed(SQLITE_CANTOPEN, doing);
  return {};
}

Result<void> Store::Impl::open(Mode mode) {
  if (!exists(path)) {
    return fail(ErrorKind::kStore, "there is no run in " + directory + " (no store.db)",
                "check the path; `kernelpro list` shows runs, `kernelpro optimize` starts one");
  }
  if (mode == Mode::kRead) {
    KP_TRY(open_for_reading());
  } else {
    int code = db.open(path, Database::Mode::kWrite);
    // Rolls back what a killed writer left, and finds out whether the folder can be written to.
    if (code == SQLITE_OK) {
      code = db.execute(
          "PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = NORMAL;"
          "BEGIN IMMEDIATE; COMMIT");
    }
    if (code != SQLITE_OK) return failed(code, "open the run for writing");
  }
  return check(mode);
}

// A read-only connection cannot roll back the journal of a killed writer; then, if no process holds
// the run, a short read-write connection does it.
Result<void> Store::Impl::open_for_reading() {
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

Result<void> Store::Impl::check(Mode mode) {
  std::int64_t id = 0;
  std::int64_t version = 0;
  int code = db.query_integer("PRAGMA application_id", &id);
  if (code == SQLITE_ROW) code = db.query_integer("PRAGMA user_version", &version);
  if (code != SQLITE_ROW) return failed(code, "read the run");
  if (id != kApplicationId) {
    return fail(ErrorKind::kStore, path + " is not a KernelPro run store",
                "check the path; `kernelpro list` shows runs");
  }
  if (version > kSchemaVersion) {
    return fail(ErrorKind::kStore,
                path + " was written by a newer KernelPro (store version " +
                    std::to_string(version) + ", this one knows " + std::to_string(kSchemaVersion) +
                    ")",
                "upgrade KernelPro, or use the version that made the run");
  }
  if (version < 1) return damaged(path, "it has no version");
  if (mode == Mode::kRead) return {};
  std::string verdict;
  code = db.query_text("PRAGMA quick_check(1)", &verdict);
  if (code != SQLITE_ROW) return failed(code, "check the run");
  if (verdict != "ok") return damaged(path, verdict);
  return version < kSchemaVersion ? upgrade() : Result<void>();
}

Result<void> Store::Impl::upgrade() {
  const std::string statements = std::string("BEGIN IMMEDIATE;") + kUpgrade +
                                 "PRAGMA user_version = " + std::to_string(kSchemaVersion) +
                                 "; COMMIT";
  const int code = db.execute(statements.c_str());
  if (code != SQLITE_OK) return failed(code, "bring the run's store up to this version");
  return {};
}

Result<std::unique_ptr<Store>> Store::open(const std::string& directory, Mode mode,
                                           const RunHeader* header) {
  KP_ASSERT(mode != Mode::kCreate || header != nullptr);
  std::unique_ptr<Store> store(new Store());
  Impl& impl = *store->impl_;
  impl.directory = directory;
  impl.path = store_path(directory);
  if (mode == Mode::kCreate) KP_TRY(make_dirs(directory));
  if (mode == Mode::kWrite && !exists(impl.path)) KP_TRY(impl.open(mode));
  if (mode != Mode::kRead) {
    auto lock = RunLock::take(directory);
    if (!lock) return tl::unexpected<Error>(std::move(lock.error()));
    impl.lock.emplace(std::move(*lock));
  }
  if (mode == Mode::kCreate) KP_TRY(impl.create(*header));
  KP_TRY(impl.open(mode));
  return store;
}

Result<RunHeader> Store::header() const {
  std::map<std::string, std::string> meta;
  {
    Statement rows = impl_->db.prepare("SELECT key, value FROM meta");
    int code = rows.step();
    for (; code == SQLITE_ROW; code = rows.step()) meta[rows.text(0)] = rows.text(1);
    if (code != SQLITE_DONE) return impl_->failed(code, "read the run's header");
  }
  const auto task = task_from_json(meta["task"]);
  const auto target = target_from_name(meta["target"]);
  const auto machine = machine_from_json(meta["machine"]);
  if (!task || !target || !machine) return damaged(impl_->path, "its header cannot be read");
  return RunHeader{*task,           *target,         *machine,       meta["settings"],
                   meta["created"], meta["version"], meta["record"], meta["recorded"],
                   meta["facts"],   meta["id"]};
}

namespace {

constexpr const char* kSelectCandidates =
    "SELECT c.id, c.language, s.text, c.knobs, c.proposer, c.parent, c.idea, c.answers,"
    " e.position, e.at_s, e.json, d.json, v.json FROM candidates c"
    " JOIN sources s ON s.hash = c.source LEFT JOIN evaluations e ON e.candidate = c.id"
    " LEFT JOIN diagnosis d ON d.candidate = c.id LEFT JOIN evidence v ON v.candidate = c.id"
    " ORDER BY c.id";
constexpr const char* kSelectWithoutEvidence =
    "SELECT c.id, c.language, s.text, c.knobs, c.proposer, c.parent, c.idea, c.answers,"
    " e.position, e.at_s, e.json, d.json FROM candidates c"
    " JOIN sources s ON s.hash = c.source LEFT JOIN evaluations e ON e.candidate = c.id"
    " LEFT JOIN diagnosis d ON d.candidate = c.id ORDER BY c.id";

// False when a text in the row cannot be understood.
bool read_row(const Statement& row, bool with_evidence, StoredCandidate* stored) {
  Candidate& candidate = stored->known.candidate;
  stored->known.id = row.integer(0);
  candidate.language = language_from_name(row.text(1)).value_or(Language::kCuda);
  candidate.source = row.text(2);
  const Json knobs = parse_json(row.text(3)).value_or(Json());
  if (!knobs.is_object()) return false;
  for (const auto& [name, value] : knobs.items()) {
    if (!value.is_string()) return false;
    candidate.knobs[name] = value.get<std::string>();
  }
  candidate.origin = {row.text(4), row.integer(5), row.text(6), row.text(7)};
  stored->evaluated = !row.is_null(8);
  if (!stored->evaluated) return true;
  stored->order = row.integer(8);
  stored->at_s = row.real(9);
  auto evaluation = evaluation_from_json(row.text(10));
  auto diagnosis = diagnosis_from_json(row.text(11));
  if (!evaluation || !diagnosis) return false;
  stored->known.evaluation = std::move(*evaluation);
  stored->known.diagnosis = std::move(*diagnosis);
  if (!with_evidence) return true;
  auto evidence = evidence_from_json(row.text(12));
  if (!evidence) return false;
  stored->evidence = std::move(*evidence);
  return true;
}

}  // namespace

Result<std::vector<StoredCandidate>> Store::candidates(bool evidence) const {
  std::vector<StoredCandidate> all;
  Statement rows = impl_->db.prepare(evidence ? kSelectCandidates : kSelectWithoutEvidence);
  int code = rows.step();
  for (; code == SQLITE_ROW; code = rows.step()) {
    StoredCandidate stored;
    if (!read_row(rows, evidence, &stored)) {
      return damaged(impl_->path,
                     "candidate " + std::to_string(rows.integer(0)) + " cannot be read");
    }
    all.push_back(std::move(stored));
  }
  if (code != SQLITE_DONE) return impl_->failed(code, "read the run's candidates");
  return all;
}

Result<std::optional<StoredConfirmation>> Store::confirmation() const {
  Statement row = impl_->db.prepare("SELECT best, stopped_by, own_ms, json FROM confirmation");
  const int code = row.step();
  if (code == SQLITE_DONE) return std::optional<StoredConfirmation>();
  if (code != SQLITE_ROW) return impl_->failed(code, "read the run's confirmation");
  auto evaluation = evaluation_from_json(row.text(3));
  if (!evaluation) return damaged(impl_->path, "its confirmation cannot be read");
  return std::optional<StoredConfirmation>(
      StoredConfirmation{row.integer(0), std::move(*evaluation), row.text(1), row.real(2)});
}

Result<std::vector<ToolStep>> Store::tool_steps() const {
  std::vector<ToolStep> steps;
  std::int64_t tables = 0;
  // Stores of earlier versions are read as they are.
  int code = impl_->db.query_integer("SELECT count(*) FROM sqlite_master WHERE name = 'tool_steps'",
                                     &tables);
  if (code != SQLITE_ROW) return impl_->failed(code, "read what came of findings");
  if (tables == 0) return steps;
  Statement rows = impl_->db.prepare(
      "SELECT s.candidate, s.tool, s.tag, s.likely, s.upper, s.measured, s.record FROM tool_steps s"
      " JOIN evaluations e ON e.candidate = s.candidate ORDER BY e.position");
  for (code = rows.step(); code == SQLITE_ROW; code = rows.step()) {
    steps.push_back({rows.integer(0), rows.text(1), rows.text(2), rows.real(3), rows.real(4),
                     rows.real(5), rows.text(6)});
  }
  if (code != SQLITE_DONE) return impl_->failed(code, "read what came of findings");
  return steps;
}

std::string Store::run_id() const {
  const auto known = header();
  if (!known) return "";
  if (!known->id.empty()) return known->id;
  return hash_hex({known->created, known->task.content_hash(), machine_to_json(known->machine)});
}

double Store::run_seconds() const {
  Statement row = impl_->db.prepare("SELECT max(at_s) FROM evaluations");
  return row.step() == SQLITE_ROW ? row.real(0) : 0;
}

// 0 when the content is already known.
Result<std::int64_t> Store::Impl::insert(const Candidate& candidate) {
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
      " parent) VALUES(?, ?, ?, ?, ?, ?, ?, ?)");
  const Origin& origin = candidate.origin;
  row.bind(0, content).bind(1, language).bind(2, source).bind(3, knobs);
  row.bind(4, origin.proposer).bind(5, origin.idea).bind(6, origin.answers);
  origin.parent == 0 ? row.bind_null(7) : row.bind(7, origin.parent);
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
    auto id = impl_->insert(candidate);
    if (!id) return tl::unexpected<Error>(std::move(id.error()));
    ids.push_back(*id);
  }
  return ids;
}

Result<std::vector<std::int64_t>> Store::add_proposals(const std::vector<Proposal>& proposals) {
  std::vector<Candidate> candidates;
  for (const Proposal& proposal : proposals) candidates.push_back(proposal.candidate);
  auto ids = add(candidates);
  if (!ids) return ids;
  for (std::size_t i = 0; i < proposals.size(); ++i) {
    const std::optional<Writing>& w = proposals[i].writing;
    if (!w || (*ids)[i] == 0) continue;
    Statement row = impl_->db.prepare("INSERT INTO writings VALUES(?, ?, ?, ?, ?, ?)");
    row.bind(0, (*ids)[i]).bind(1, w->request).bind(2, w->writer).bind(3, w->prompt);
    const int code = row.bind(4, w->reply).bind(5, w->usage).step();
    if (code != SQLITE_DONE) return impl_->failed(code, "write what a writer answered");
  }
  return ids;
}

Result<std::optional<Writing>> Store::writing(std::int64_t candidate) const {
  const std::string doing = "read what a writer answered";
  std::int64_t tables = 0;
  int code = impl_->db.query_integer("SELECT count(*) FROM sqlite_master WHERE name = 'writings'",
                                     &tables);
  if (code != SQLITE_ROW) return impl_->failed(code, doing);
  if (tables == 0) return std::optional<Writing>();  // a store of an earlier version
  Statement row = impl_->db.prepare(
      "SELECT request, writer, prompt, reply, usage FROM writings WHERE candidate = ?");
  code = row.bind(0, candidate).step();
  if (code == SQLITE_DONE) return std::optional<Writing>();
  if (code != SQLITE_ROW) return impl_->failed(code, doing);
  return std::optional<Writing>(
      Writing{row.text(0), row.text(1), row.text(2), row.text(3), row.text(4)});
}

Result<void> Store::add_call(const ModelCall& c) {
  const std::string doing = "write a question to a model";
  if (const int code = impl_->begin(); code != SQLITE_OK) return impl_->failed(code, doing);
  int code = SQLITE_OK;
  {
    Statement row = impl_->db.prepare(
        "INSERT INTO calls(request, role, model, parent, repairs, idea, outcome, prompt, tools,"
        " reply, usage, gave) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    row.bind(0, c.request).bind(1, c.role).bind(2, c.model).bind(3, c.parent).bind(4, c.repairs);
    row.bind(5, c.idea).bind(6, c.outcome).bind(7, c.prompt).bind(8, c.tools).bind(9, c.reply);
    code = row.bind(10, c.usage).bind(11, c.gave).step();
  }
  if (code != SQLITE_DONE) return impl_->failed(code, doing);
  return impl_->commit(doing);
}

Result<std::vector<ModelCall>> Store::calls() const {
  const std::string doing = "read the questions to models";
  std::vector<ModelCall> all;
  std::int64_t tables = 0;
  int code =
      impl_->db.query_integer("SELECT count(*) FROM sqlite_master WHERE name = 'calls'", &tables);
  if (code != SQLITE_ROW) return impl_->failed(code, doing);
  if (tables == 0) return all;  // a store of an earlier version
  Statement rows = impl_->db.prepare(
      "SELECT request, role, model, parent, repairs, idea, outcome, prompt, tools, reply, usage,"
      " gave FROM calls ORDER BY id");
  for (code = rows.step(); code == SQLITE_ROW; code = rows.step()) {
    all.push_back({rows.text(0), rows.text(1), rows.text(2), rows.integer(3), rows.integer(4),
                   rows.text(5), rows.text(6), rows.text(7), rows.text(8), rows.text(9),
                   rows.text(10), rows.text(11)});
  }
  if (code != SQLITE_DONE) return impl_->failed(code, doing);
  return all;
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
  // Who was confirmed before this is not the last word any more.
  if (code == SQLITE_DONE) code = db.prepare("DELETE FROM confirmation").step();
  if (code == SQLITE_DONE && step != nullptr) {
    Statement row = db.prepare("INSERT INTO tool_steps VALUES(?, ?, ?, ?, ?, ?, ?)");
    row.bind(0, id).bind(1, step->tool).bind(2, step->tag).bind(3, step->likely);
    row.bind(4, step->upper).bind(5, step->measured).bind(6, step->record);
    code = row.step();
  }
  if (code != SQLITE_DONE) return impl_->failed(code, doing);
  return impl_->commit(doing);
}

Result<void> Store::confirm(const StoredConfirmation& confirmation) {
  const std::string text = evaluation_to_json(confirmation.evaluation);
  const int code = impl_->db.prepare("INSERT OR REPLACE INTO confirmation VALUES(1, ?, ?, ?, ?)")
                       .bind(0, confirmation.best)
                       .bind(1, confirmation.stopped_by)
                       .bind(2, confirmation.own_ms_per_evaluation)
                       .bind(3, text)
                       .step();
  if (code != SQLITE_DONE) return impl_->failed(code, "write the confirmation");
  return impl_->commit("write the confirmation");
}

Result<void> Store::save_settings(const std::string& settings_json) {
  const int code = impl_->db.prepare("UPDATE meta SET value = ? WHERE key = 'settings'")
                       .bind(0, settings_json)
                       .step();
  if (code != SQLITE_DONE) return impl_->failed(code, "write the settings");
  return impl_->commit("write the settings");
}

}  // namespace kernelpro
