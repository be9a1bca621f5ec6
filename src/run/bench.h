// SPDX-License-Identifier: Apache-2.0
// What every candidate of a run goes through, whoever wrote it and whoever asks: built, evaluated
// against the best so far, observed, diagnosed, stored, ranked. The loop puts its candidates on it
// one after the other, and so does whoever evaluates what an MCP client sends (run/sitting.h).
// One thread at a time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/record.h"
#include "measure/station/measurement.h"
#include "measure/station/target.h"
#include "run/facts.h"
#include "run/result.h"
#include "run/store/fact_file.h"
#include "run/store/ledger.h"
#include "run/store/settings.h"
#include "run/store/store.h"

namespace kernelpro {

struct BenchParts {
  const Task* task = nullptr;
  const RunSettings* settings = nullptr;
  Store* store = nullptr;                               // open for writing
  Target* target = nullptr;                             // prepared; null where nothing is evaluated
  const TargetMaker* maker = nullptr;                   // for held-out cases; null: not measured
  ToolRecord record;                                    // that the run began with
  const Machine* machine = nullptr;                     // that the run is about
  std::function<bool()> stop;                           // asked between steps
  std::function<double()> elapsed_s;                    // run time: stored with each evaluation
  std::function<void(const std::string& phase)> phase;  // "compiling", ...; may be empty
};

class Bench {
 public:
  explicit Bench(BenchParts parts);

  // Rebuilds the ledger from the store, in the order of evaluation and in brief. What was stored
  // and never evaluated is returned. The store must outlive this: the rest of a candidate is read
  // from there when somebody asks for it, by Fatal when it cannot be.
  Result<std::vector<StoredCandidate>> restore();

  struct Verdict {
    const Known* known = nullptr;  // in the ledger
    bool better = false;           // it is the best now
    std::string note;              // something that went wrong beside it, one sentence; "" nothing
  };
  // Takes a stored candidate through to its committed evaluation; nullopt when `stop` said so
  // before it was run, or this thread's CancelScope did while it was (base/cancel.h): the
  // candidate then waits in the store.
  Result<std::optional<Verdict>> evaluate(Known known);

  // The same in three parts, of which only the middle one (carry_out,
  // measure/station/measurement.h) needs the target, and may run elsewhere meanwhile. nullopt: a
  // candidate with the same machine code was begun and is not finished; ask again then.
  Result<std::optional<MeasureOrder>> begin(const Known& known, BuiltKernel built);
  Result<std::optional<Verdict>> finish(Known known, Measured measured);
  // What was begun will not be finished.
  void forget(std::int64_t id);

  // What is known of the machine; with better ceilings once they were measured again.
  const Machine* machine() const { return &machine_; }
  // Better ceilings are known: the machine, and what is stored and recorded of earlier candidates,
  // get them.
  Result<void> adopt(const Ceilings& ceilings);

  // One candidate timed against another, turn by turn on the same buffers. Nothing is stored. A
  // candidate that does not compile has that as its outcome.
  Result<Evaluation> duel(const Candidate& candidate, const Candidate& versus);

  // Of the finalists, each measured against the start in fresh processes, the fastest wins; when
  // none holds, those who were best before, latest first. The winner is then measured on held-out
  // cases (run/store/held_out.h). The result goes to the store and into `result`; `tell` hears of
  // each. `result->stopped_by` becomes "interrupted" when `stop` says so.
  using Tell = std::function<void(const std::string& event, const Known&, const std::string&)>;
  Result<void> confirm(const Tell& tell, RunResult* result);

  // Goes on with another target of the same task; null: none for now.
  void set_target(Target* target) { parts_.target = target; }

  const Ledger& ledger() const { return ledger_; }
  // What was observed of a candidate, where the run's writers get it raw (Feedback::kRaw); else
  // null.
  const Evidence* evidence(std::int64_t id);
  // What this run learned, in the order of evaluation. Of candidates of earlier sittings the first
  // call works it out, for which it reads all of them.
  const std::vector<Fact>& facts();
  // Seconds spent in compilers, workers and disassemblers so far.
  double outside_s() const { return outside_s_; }

 private:
  // The evaluation of an earlier candidate with the same machine code, to stand for this one's.
  std::optional<Evaluation> evaluated_before(const std::string& code) const;
  Result<const Subject*> incumbent();
  bool ended_with_us(const Evaluation& evaluation) const;
  double fastest_source_us() const;
  std::optional<ToolStep> step_of(const Known& known) const;
  std::string learn(const ToolStep& step);
  std::string remember(const Known& known);
  Result<Evaluation> confirm_one(const Known& best);
  // False when asked to stop.
  Result<bool> measure_held_out(const Known& winner, std::vector<HeldOut>* cases);
  bool raw() const { return parts_.settings->feedback == Feedback::kRaw; }
  bool stopped() const { return parts_.stop && parts_.stop(); }
  void phase(const char* name) const {
    if (parts_.phase) parts_.phase(name);
  }
  template <class Work>
  auto outside(Work work);

  BenchParts parts_;
  Machine machine_;
  Ledger ledger_;
  ToolRecord record_;          // the run's: its beginning's and its own steps
  bool record_fails_ = false;  // the user's file cannot be written; said once
  FactFrame frame_;
  std::vector<Fact> facts_;         // of this sitting; of all since somebody asked
  std::size_t facts_not_told_ = 0;  // candidates of earlier sittings whose facts are not in it
  FactFile fact_file_;
  bool facts_fail_ = false;                      // as record_fails_
  std::string run_id_;                           // as the store has it; "" not read yet
  std::map<std::int64_t, Evidence> evidence_;    // where writers get it raw
  std::map<std::string, std::int64_t> by_code_;  // the first candidate of each machine code
  std::map<std::int64_t, std::string> begun_;    // machine codes that are being measured
  std::optional<Subject> best_subject_;
  double outside_s_ = 0;
};

}  // namespace kernelpro
