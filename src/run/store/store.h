// SPDX-License-Identifier: Apache-2.0
// The run's SQLite store, the only truth about a run. One writer (a lock file held by the process),
// rollback journal, one transaction per evaluation: SIGKILL at any moment loses at most the
// evaluation in flight. Readers open it read-only at any time. docs/run-store.md has the schema.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/machine/machine.h"
#include "core/proposal/proposal.h"
#include "core/task/task.h"
#include "run/store/brief.h"
#include "run/store/held_out.h"
#include "run/store/records.h"
#include "run/store/tool_record.h"

namespace kernelpro {

struct StoreFile;  // run/store/store_file.h

class Store {
 public:
  static constexpr int kSchemaVersion = 9;  // docs/run-store.md lists what each version added
  using Mode = StoreMode;

  // `directory`: the run's; for kRead also a run as text (run/store/run_text.h), which is read into
  // memory. kCreate needs `header`. Fails with kBusy (another process holds the run; its pid is
  // named), kStore (missing, damaged, read-only, full disk, newer version).
  static Result<std::unique_ptr<Store>> open(const std::string& directory, Mode mode,
                                             const RunHeader* header = nullptr);
  ~Store();
  // Fails with kStore when `directory` contains anything that a new run would overwrite.
  static Result<void> check_new(const std::string& directory);

  Result<RunHeader> header() const;
  // All candidates by id. `evidence`: include StoredCandidate::evidence, which is most of the text;
  // else it is empty. It is read with the ceilings of the run's machine.
  Result<std::vector<StoredCandidate>> candidates(bool evidence = true) const;
  // Evaluated candidates, in the order of evaluation and in brief (core/proposal/proposal.h), for a
  // resume. Whole when an older store is open for reading.
  Result<void> briefs(const std::function<void(StoredBrief)>& take) const;
  // Candidates without an evaluation, by id.
  Result<std::vector<StoredCandidate>> waiting() const;
  // One candidate. REQUIRES: it is stored.
  Result<StoredCandidate> candidate(std::int64_t id, bool evidence) const;
  // Whether any candidate is stored.
  Result<bool> begun() const;
  // The current confirmation; none once something was evaluated after it.
  Result<std::optional<StoredConfirmation>> confirmation() const;
  // Results of findings, in the order of evaluation.
  Result<std::vector<ToolStep>> tool_steps() const;
  // All of it, including evidence.
  Result<StoredRun> whole() const;
  double run_seconds() const;  // over all sittings
  // RunHeader::id; for a run of an older version, derived from its header.
  std::string run_id() const;

  // Stores the proposals of one expansion and returns their ids. Content hashes are unique: a known
  // one is left out (id 0). They become durable with the next `finish`, `confirm` or with the
  // store's end, in one transaction: a proposal lost to a kill before it led to anything is made
  // again.
  Result<std::vector<std::int64_t>> add(const std::vector<Candidate>& candidates);
  Result<std::int64_t> add_proposal(const Proposal& proposal);
  // Stores that a proposer has nothing more to add to a candidate; durable as what `add` stores.
  // REQUIRES: the candidate is evaluated and not closed yet.
  Result<void> close_line(const ClosedLine& closed);
  // In the order in which they were closed.
  Result<std::vector<ClosedLine>> closed_lines() const;
  // The request to the writer of a candidate and its answer; nullopt for other proposers.
  Result<std::optional<Writing>> writing(std::int64_t candidate) const;
  // Stores a request of the exchange, durable at once together with what `add` left open: its
  // reply may come at any time from then on. REQUIRES: no other has its name.
  Result<void> add_request(const ExchangeRequest& request);
  // By name.
  Result<std::vector<ExchangeRequest>> requests() const;
  // Stores a question to a model and its result, durable at once together with what `add` left
  // open, because it is paid for.
  Result<void> add_call(const ModelCall& call);
  // In the order of `add_call`.
  Result<std::vector<ModelCall>> calls() const;
  // Reads everything: pages, indexes, references between tables, every text, and whether each
  // source matches its hash. Fails with kStore when something is damaged.
  Result<void> check_whole() const;
  // Copies the store in the state between two evaluations, also while a run is active, or makes one
  // of a run as text. Fails with kStore when `directory` already has one.
  Result<void> copy_to(const std::string& directory) const;
  // Stores the result of one candidate in one transaction. `step`: how the finding that it answers
  // worked out; null: it answers none. `evidence`: as a station gives it, without ceilings.
  // REQUIRES: not yet evaluated.
  Result<void> finish(std::int64_t id, const Evaluation& evaluation, const Evidence& evidence,
                      const Diagnosis& diagnosis, double at_s, const ToolStep* step = nullptr);
  // Replaces the diagnoses of evaluated candidates, in one transaction: they were observed again,
  // or the machine's ceilings were measured again.
  struct Revision {
    std::int64_t id = 0;
    Diagnosis diagnosis;
    std::optional<Evidence> evidence;  // nullopt: what was observed stays
  };
  // `machine`: with better ceilings, the run's from now on; null: as it was.
  Result<void> revise(const std::vector<Revision>& revisions, const Machine* machine = nullptr);
  Result<void> confirm(const StoredConfirmation& confirmation);
  Result<void> save_settings(const std::string& settings_json);

 private:
  Store();
  static Result<std::unique_ptr<Store>> open_text(const std::string& path);
  std::unique_ptr<StoreFile> impl_;
};

// store.db inside a run directory, and the folder of its exchange (write/proposer.h).
std::string store_path(const std::string& directory);
std::string exchange_folder(const std::string& directory);
// Whether `path` names a run: a folder with a store, or a run as text (*.jsonl).
bool is_run(const std::string& path);

}  // namespace kernelpro
