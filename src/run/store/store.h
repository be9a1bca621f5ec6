// SPDX-License-Identifier: Apache-2.0
// The run's SQLite store, the only truth about a run. One writer (a lock file held by the process),
// rollback journal, every evaluation one transaction: SIGKILL at any moment loses at most the
// evaluation in flight. Readers open it read-only at any time. docs/run-store.md has the schema.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/machine.h"
#include "core/proposal.h"
#include "core/task.h"
#include "run/store/brief.h"
#include "run/store/held_out.h"
#include "run/store/records.h"
#include "run/store/tool_record.h"

namespace kernelpro {

struct StoreFile;  // run/store/store_file.h

class Store {
 public:
  static constexpr int kSchemaVersion = 7;  // docs/run-store.md tells what each brought
  using Mode = StoreMode;

  // kCreate needs `header`. Fails with kBusy (another process holds the run, its pid is named),
  // kStore (missing, damaged, read-only, full disk, newer version).
  static Result<std::unique_ptr<Store>> open(const std::string& directory, Mode mode,
                                             const RunHeader* header = nullptr);
  ~Store();
  // Fails with kStore when `directory` has anything in it that a new run would have to overwrite.
  static Result<void> check_new(const std::string& directory);

  Result<RunHeader> header() const;
  // All candidates by id.
  // `evidence`: with what was observed, which is most of the text; else StoredCandidate::evidence
  // is empty.
  Result<std::vector<StoredCandidate>> candidates(bool evidence = true) const;
  // Those with an evaluation, in the order of evaluation and in brief (core/proposal.h): what a
  // resume reads. Whole in a store of an earlier version that is open for reading.
  Result<void> briefs(const std::function<void(StoredBrief)>& take) const;
  // Those without one, by id.
  Result<std::vector<StoredCandidate>> waiting() const;
  // One of them. REQUIRES: it is stored.
  Result<StoredCandidate> candidate(std::int64_t id, bool evidence) const;
  // Is any candidate stored?
  Result<bool> begun() const;
  // Of the run as it is: none once something was evaluated after it.
  Result<std::optional<StoredConfirmation>> confirmation() const;
  // What came of findings, in the order of evaluation.
  Result<std::vector<ToolStep>> tool_steps() const;
  double run_seconds() const;  // over all sittings
  // RunHeader::id; of an earlier version's run, what its header comes to.
  std::string run_id() const;

  // Proposals of one expansion; gives their ids. Content hashes are unique: a known one is left out
  // (id 0). They become durable with the next `finish`, `confirm` or with the store's end, in one
  // transaction: a proposal that a kill loses before anything came of it is made again.
  Result<std::vector<std::int64_t>> add(const std::vector<Candidate>& candidates);
  Result<std::vector<std::int64_t>> add_proposals(const std::vector<Proposal>& proposals);
  // What the writer of a candidate was asked and answered; nullopt for those of other proposers.
  Result<std::optional<Writing>> writing(std::int64_t candidate) const;
  // A question to a model and what came of it; durable at once, with what `add` left open: it is
  // paid, whatever happens next. From any thread, while no other uses the store.
  Result<void> add_call(const ModelCall& call);
  // In the order in which they were added.
  Result<std::vector<ModelCall>> calls() const;
  // Reads all of it: pages, indexes, references between tables, every text, and whether each
  // source is the one that its hash names. Fails with kStore when something is damaged.
  Result<void> check_whole() const;
  // A copy of the store as it is between two evaluations, also beside a run that goes on. Fails
  // with kStore when there is one in `directory` already.
  Result<void> copy_to(const std::string& directory) const;
  // The result of one candidate, one transaction. `step`: what came of the finding that it answers;
  // null: it answers none. REQUIRES: not yet evaluated.
  Result<void> finish(std::int64_t id, const Evaluation& evaluation, const Evidence& evidence,
                      const Diagnosis& diagnosis, double at_s, const ToolStep* step = nullptr);
  // What is known of evaluated candidates since the machine's ceilings were measured again, and the
  // machine with them; one transaction.
  struct Revision {
    std::int64_t id = 0;
    Evidence evidence;
    Diagnosis diagnosis;
  };
  Result<void> revise(const Machine& machine, const std::vector<Revision>& revisions);
  Result<void> confirm(const StoredConfirmation& confirmation);
  Result<void> save_settings(const std::string& settings_json);

 private:
  Store();
  std::unique_ptr<StoreFile> impl_;
};

// store.db inside a run directory.
std::string store_path(const std::string& directory);

}  // namespace kernelpro
