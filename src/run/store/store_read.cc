// SPDX-License-Identifier: Apache-2.0
// The reading part of Store.
#include <algorithm>
#include <functional>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "core/evaluation/label.h"
#include "core/evidence/metrics.h"
#include "core/evidence/rates.h"
#include "run/store/schema.h"
#include "run/store/store.h"
#include "run/store/store_file.h"

namespace kernelpro {

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
  if (!task || !target || !machine) return damaged_store(impl_->path, "its header cannot be read");
  return RunHeader{*task,           *target,         *machine,       meta["settings"],
                   meta["created"], meta["version"], meta["record"], meta["recorded"],
                   meta["facts"],   meta["id"]};
}

namespace {

// A query that depends on the store's version. Queries are kept: a database caches prepared
// statements by the address of their text.
struct Query {
  explicit Query(const std::function<std::string(const char* repairs)>& text)
      : now(text("c.repairs")), before(text("0")) {}
  const char* of(const StoreFile& file) const {
    return (file.version >= kRepairsSince ? now : before).c_str();
  }
  std::string now, before;
};

// Columns of a candidate; evidence, which is most of the text, only on request.
Query candidates_query(bool evidence, const std::string& rows) {
  return Query([&](const char* repairs) {
    return std::string(
               "SELECT c.id, c.language, s.text, c.knobs, c.proposer, c.parent, c.idea, "
               "c.answers, ") +
           repairs + ", e.position, e.at_s, e.json, d.json" + (evidence ? ", v.json" : "") +
           " FROM candidates c JOIN sources s ON s.hash = c.source"
           " LEFT JOIN evaluations e ON e.candidate = c.id"
           " LEFT JOIN diagnosis d ON d.candidate = c.id" +
           (evidence ? " LEFT JOIN evidence v ON v.candidate = c.id" : "") + rows;
  });
}

const Query& briefs_query() {
  static const Query query([&](const char* repairs) {
    return std::string(
               "SELECT c.id, c.language, c.source, c.content_hash, c.knobs, c.proposer, c.parent,"
               " c.idea, c.answers, ") +
           repairs +
           ", o.outcome, o.score_us, o.incumbent, o.ratio, o.low, o.high, o.energy_mj,"
           " o.energy_ratio, o.energy_low, o.energy_high, o.code, o.bound, o.floor_us, o.fraction,"
           " o.stop, o.likely, o.upper, o.labels, o.at_s"
           " FROM outcomes o JOIN candidates c ON c.id = o.candidate"
           " ORDER BY o.position";
  });
  return query;
}

// False when a text in the row cannot be parsed, or its language is not one of this version's.
bool read_row(const Statement& row, bool with_evidence, StoredCandidate* stored) {
  Candidate& candidate = stored->known.candidate;
  stored->known.id = row.integer(0);
  const auto language = language_from_name(row.text(1));
  if (!language) return false;
  candidate.language = *language;
  candidate.source = row.text(2);
  if (!knobs_from_text(row.text(3), &candidate.knobs)) return false;
  candidate.origin = {row.text(4), row.integer(5), row.text(6), FindingRef::parse(row.text(7)),
                      row.integer(8)};
  stored->evaluated = !row.is_null(9);
  if (!stored->evaluated) return true;
  stored->order = row.integer(9);
  stored->at_s = row.real(10);
  auto evaluation = evaluation_from_json(row.text(11));
  auto diagnosis = diagnosis_from_json(row.text(12));
  if (!evaluation || !diagnosis) return false;
  stored->known.evaluation = std::move(*evaluation);
  stored->known.diagnosis = std::move(*diagnosis);
  if (!with_evidence) return true;
  auto evidence = evidence_from_json(row.text(13));
  if (!evidence) return false;
  stored->evidence = std::move(*evidence);
  return true;
}

// What is stored was observed; the ceilings are the machine's. Evidence of an earlier version, and
// of a run as text, has its own: those that it was diagnosed at.
void add_ceilings(const std::optional<Machine>& machine, Evidence* evidence) {
  const auto known = metrics_of(Family::kCeilings);
  const bool own = std::any_of(known.begin(), known.end(), [&](const Metric& metric) {
    return evidence->find(std::string(metric.name)) != nullptr;
  });
  if (machine && !own && !evidence->items().empty()) set_ceilings(*machine, evidence);
}

bool read_brief(const Statement& row, StoredBrief* brief) {
  Known& known = brief->known;
  known.id = row.integer(0);
  const auto language = language_from_name(row.text(1));
  if (!language) return false;
  known.candidate.language = *language;
  known.source_hash = row.text(2);
  known.content_hash = row.text(3);
  if (!knobs_from_text(row.text(4), &known.candidate.knobs)) return false;
  known.candidate.origin = {row.text(5), row.integer(6), row.text(7),
                            FindingRef::parse(row.text(8)), row.integer(9)};
  if (!brief_outcome(row.text(10), row.real(11), &known.evaluation.outcome)) return false;
  if (auto* correct = std::get_if<Correct>(&known.evaluation.outcome)) {
    if (!row.is_null(13)) {
      correct->versus = Correct::Versus{row.text(12), row.real(13), row.real(14), row.real(15)};
    }
    if (!row.is_null(16)) correct->energy.emplace().millijoules = row.real(16);
    if (!row.is_null(17)) {
      correct->energy->versus = Energy::Versus{row.real(17), row.real(18), row.real(19)};
    }
  }
  known.evaluation.code = row.text(20);
  const auto bound = bound_from_number(row.integer(21));
  if (!bound) return false;
  known.diagnosis.bound = *bound;
  known.diagnosis.floor_us = row.real(22);
  known.diagnosis.fraction_of_ceiling = row.real(23);
  brief->promise = {row.integer(24) != 0, row.real(25), row.real(26)};
  brief->at_s = row.real(28);
  if (auto* correct = std::get_if<Correct>(&known.evaluation.outcome)) {
    correct->labels = words(row.text(27));
  }
  return true;
}

}  // namespace

Result<std::vector<StoredCandidate>> StoreFile::read(const char* query, bool evidence,
                                                     std::int64_t only) {
  std::vector<StoredCandidate> all;
  std::optional<Machine> machine;
  if (evidence) {
    KP_ASSIGN(machine, read_machine());
  }
  Statement rows = db.prepare(query);
  if (only != 0) rows.bind(0, only);
  int code = rows.step();
  for (; code == SQLITE_ROW; code = rows.step()) {
    StoredCandidate stored;
    if (!read_row(rows, evidence, &stored)) {
      return damaged_store(path,
                           "candidate " + std::to_string(rows.integer(0)) + " cannot be read");
    }
    add_ceilings(machine, &stored.evidence);
    all.push_back(std::move(stored));
  }
  if (code != SQLITE_DONE) return failed(code, "read the run's candidates");
  return all;
}

Result<Machine> StoreFile::read_machine() {
  std::string text;
  const int code = db.query_text("SELECT value FROM meta WHERE key = 'machine'", &text);
  if (code != SQLITE_ROW) return failed(code, "read the run's machine");
  const auto machine = machine_from_json(text);
  if (!machine) return damaged_store(path, "its header cannot be read");
  return *machine;
}

Result<bool> StoreFile::has_table(const char* query, const std::string& doing) {
  std::int64_t tables = 0;
  const int code = db.query_integer(query, &tables);
  if (code != SQLITE_ROW) return failed(code, doing);
  return tables != 0;
}

Result<std::vector<StoredCandidate>> Store::candidates(bool evidence) const {
  static const Query with = candidates_query(true, " ORDER BY c.id");
  static const Query without = candidates_query(false, " ORDER BY c.id");
  return impl_->read((evidence ? with : without).of(*impl_), evidence, 0);
}

Result<std::vector<StoredCandidate>> Store::waiting() const {
  static const Query query = candidates_query(false, " WHERE e.candidate IS NULL ORDER BY c.id");
  return impl_->read(query.of(*impl_), false, 0);
}

Result<void> Store::check_whole() const {
  std::string verdict;
  int code = impl_->db.query_text("PRAGMA integrity_check(1)", &verdict);
  if (code != SQLITE_ROW) return impl_->failed(code, "check the store");
  if (verdict != "ok") return damaged_store(impl_->path, verdict);
  code = impl_->db.query_text("PRAGMA foreign_key_check", &verdict);
  if (code == SQLITE_ROW) {
    return damaged_store(impl_->path, "a row of " + verdict + " refers to one that is missing");
  }
  if (code != SQLITE_DONE) return impl_->failed(code, "check the store");
  std::map<std::int64_t, std::string> hashes;
  {
    Statement rows = impl_->db.prepare("SELECT id, content_hash FROM candidates");
    for (code = rows.step(); code == SQLITE_ROW; code = rows.step()) {
      hashes[rows.integer(0)] = rows.text(1);
    }
    if (code != SQLITE_DONE) return impl_->failed(code, "read the run's candidates");
  }
  KP_TRY(header());
  for (const auto& [id, hash] : hashes) {
    KP_ASSIGN(const auto stored, candidate(id, true));
    if (stored.known.candidate.content_hash() != hash) {
      return damaged_store(impl_->path, "the source or the knobs of candidate " +
                                            std::to_string(id) + " are not what they were");
    }
  }
  KP_TRY(confirmation());
  KP_TRY(calls());
  KP_TRY(requests());
  KP_TRY(closed_lines());
  return {};
}

Result<StoredCandidate> Store::candidate(std::int64_t id, bool evidence) const {
  static const Query with = candidates_query(true, " WHERE c.id = ?");
  static const Query without = candidates_query(false, " WHERE c.id = ?");
  KP_ASSIGN(auto found, impl_->read((evidence ? with : without).of(*impl_), evidence, id));
  if (found.size() == 1) return std::move(found.front());
  return damaged_store(impl_->path, "candidate " + std::to_string(id) + " is not there");
}

Result<bool> Store::begun() const {
  std::int64_t any = 0;
  const int code = impl_->db.query_integer("SELECT EXISTS (SELECT 1 FROM candidates)", &any);
  if (code != SQLITE_ROW) return impl_->failed(code, "read the run's candidates");
  return any != 0;
}

Result<void> Store::briefs(const std::function<void(StoredBrief)>& take) const {
  const std::string doing = "read what the run's candidates came to";
  KP_ASSIGN(const auto columns,
            impl_->has_table("SELECT count(*) FROM pragma_table_info('outcomes')"
                             " WHERE name = 'labels'",
                             doing));
  if (!columns) {
    static const Query query =
        candidates_query(false, " WHERE e.candidate IS NOT NULL ORDER BY e.position");
    KP_ASSIGN(auto all, impl_->read(query.of(*impl_), false, 0));
    for (StoredCandidate& each : all) {
      const Promise promise = promise_of(each.known.diagnosis);
      take({std::move(each.known), promise, each.at_s});
    }
    return {};
  }
  Statement rows = impl_->db.prepare(briefs_query().of(*impl_));
  int code = rows.step();
  for (; code == SQLITE_ROW; code = rows.step()) {
    StoredBrief brief;
    if (!read_brief(rows, &brief)) {
      return damaged_store(impl_->path,
                           "candidate " + std::to_string(rows.integer(0)) + " cannot be read");
    }
    take(std::move(brief));
  }
  if (code != SQLITE_DONE) return impl_->failed(code, doing);
  return {};
}

Result<std::optional<StoredConfirmation>> Store::confirmation() const {
  const std::string doing = "read the run's confirmation";
  StoredConfirmation confirmation;
  {
    Statement row = impl_->db.prepare("SELECT best, stopped_by, own_ms, json FROM confirmation");
    const int code = row.step();
    if (code == SQLITE_DONE) return std::optional<StoredConfirmation>();
    if (code != SQLITE_ROW) return impl_->failed(code, doing);
    auto evaluation = evaluation_from_json(row.text(3));
    if (!evaluation) return damaged_store(impl_->path, "its confirmation cannot be read");
    confirmation = {row.integer(0), std::move(*evaluation), row.text(1), row.real(2), {}};
  }
  KP_ASSIGN(const auto held_out,
            impl_->has_table("SELECT count(*) FROM sqlite_master WHERE name = 'held_out'", doing));
  if (!held_out) return std::optional<StoredConfirmation>(std::move(confirmation));
  Statement rows = impl_->db.prepare("SELECT name, problem, json FROM held_out ORDER BY position");
  int code = rows.step();
  for (; code == SQLITE_ROW; code = rows.step()) {
    auto evaluation = evaluation_from_json(rows.text(2));
    if (!evaluation) return damaged_store(impl_->path, "a held-out case cannot be read");
    confirmation.held_out.push_back({rows.text(0), std::move(*evaluation), rows.text(1)});
  }
  if (code != SQLITE_DONE) return impl_->failed(code, doing);
  return std::optional<StoredConfirmation>(std::move(confirmation));
}

Result<std::vector<ToolStep>> Store::tool_steps() const {
  std::vector<ToolStep> steps;
  const std::string doing = "read what came of findings";
  KP_ASSIGN(
      const auto table,
      impl_->has_table("SELECT count(*) FROM sqlite_master WHERE name = 'tool_steps'", doing));
  if (!table) return steps;
  Statement rows = impl_->db.prepare(
      "SELECT s.candidate, s.tool, s.tag, s.likely, s.upper, s.measured, s.record FROM tool_steps s"
      " JOIN evaluations e ON e.candidate = s.candidate ORDER BY e.position");
  int code = rows.step();
  for (; code == SQLITE_ROW; code = rows.step()) {
    steps.push_back({rows.integer(0), rows.text(1), rows.text(2), rows.real(3), rows.real(4),
                     rows.real(5), rows.text(6)});
  }
  if (code != SQLITE_DONE) return impl_->failed(code, doing);
  return steps;
}

std::string Store::run_id() const {
  const auto known = header();
  if (!known) return "";
  if (!known->id.empty()) return known->id;
  return hash_hex({known->created, known->task.content_hash(), machine_to_json(known->machine)});
}

// Uses the index of positions: the latest evaluation holds the run time.
double Store::run_seconds() const {
  Statement row = impl_->db.prepare("SELECT at_s FROM evaluations ORDER BY position DESC LIMIT 1");
  return row.step() == SQLITE_ROW ? row.real(0) : 0;
}

}  // namespace kernelpro
