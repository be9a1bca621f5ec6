// SPDX-License-Identifier: Apache-2.0
// The steps that every candidate of a run goes through, whoever wrote it: build, evaluate against
// the best so far, observe, diagnose, store, rank. The loop feeds it candidates one after the
// other; so does the evaluation of what an MCP client sends (run/sitting.h). One thread at a time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "diagnose/record.h"
#include "measure/station/station.h"
#include "run/ceiling_watch.h"
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
  Store* store = nullptr;               // open for writing
  Station* station = nullptr;           // prepared; null: nothing is evaluated
  const StationMaker* maker = nullptr;  // for held-out cases; null: not measured
  ToolRecord record;                    // as the run began
  const Machine* machine = nullptr;     // the run's machine
  bool asked_elsewhere = false;         // requests are written where nothing can be profiled
  std::function<bool()> stop;           // polled between steps
  std::function<double()> elapsed_s;    // run time: stored with each evaluation
  std::function<void(const std::string& phase)> phase;  // "compiling", ...; may be empty
};

class Bench {
 public:
  explicit Bench(BenchParts parts);

  // Rebuilds the ledger from the store, in the order of evaluation and in brief, and returns the
  // stored candidates that were never evaluated. The machine has the run's ceilings from then on,
  // or the station's where these are better. The store must outlive this.
  Result<std::vector<StoredCandidate>> restore();

  struct Verdict {
    KnownPtr known;       // in the ledger
    bool better = false;  // it is the new best
    std::string note;     // one sentence on anything else that went wrong; "" = nothing
  };
  // Takes a stored candidate through to its committed evaluation. nullopt when `stop` returned true
  // before it ran, or when this thread's CancelScope cancelled it while it ran (base/cancel.h): the
  // candidate then waits in the store.
  Result<std::optional<Verdict>> evaluate(Known known);

  // The same in three parts. Only the middle one (Station::measure) needs the station, and it may
  // run elsewhere in the meantime. A candidate that does not compile, or whose machine code was
  // measured before, needs no station: its result is known at once.
  struct Busy {};  // one with the same machine code is still being measured: begin again later
  using Begun = std::variant<Busy, Order, Measured>;
  Result<Begun> begin(const Known& known, const Built& built);
  Result<std::optional<Verdict>> finish(Known known, Measured measured);
  // Drops a candidate that was begun and will not be finished.
  void forget(std::int64_t id);

  // The machine as known now; its ceilings improve once they are measured again.
  const Machine* machine() const { return &machine_; }
  // How many times its ceilings improved: diagnoses of earlier candidates changed with it.
  int revisions() const { return revisions_; }

  // Profiles a correct candidate that was never profiled, since others are to be derived from it,
  // and diagnoses it anew. Once in a sitting for each, and only while all of these together take at
  // most a tenth of the run and ten seconds. True when its diagnosis changed.
  Result<bool> profile(std::int64_t id, Station* station);

  // The same for those that the next question may be about: the best, and where questions are asked
  // elsewhere, each source's best setting that is about as fast. Settings are not profiled while a
  // source is tuned.
  Result<void> profile_leaders(Station* station);

  // Times one candidate against another in alternation on the same inputs. Nothing is stored. A
  // compile error of the first is returned as the outcome; nullopt: cancelled.
  Result<std::optional<Evaluation>> duel(const Candidate& candidate, const Candidate& versus);

  // Measures the best (or `first`), and up to two others that are about as fast, against the start
  // in fresh processes; it wins unless another is clearly faster there. If none holds up, tries
  // earlier bests, latest first. Then measures the winner on held-out cases (run/store/held_out.h).
  // Writes to the store and to `result`, and calls `tell` for each. `result->stopped_by` becomes
  // "interrupted" when `stop` returns true. `first`: a candidate to measure before the finalists;
  // 0: none.
  using Tell = std::function<void(Event, const Known&, const std::string&)>;
  Result<void> confirm(const Tell& tell, RunResult* result, std::int64_t first = 0);

  // Continues with another station of the same task; null: none for now.
  void set_station(Station* station) { parts_.station = station; }

  const Ledger& ledger() const { return ledger_; }
  // A candidate of the ledger, or all of them, whole: what the ledger has in brief is read from the
  // store, once. nullptr: the ledger has none of that number.
  Result<KnownPtr> whole(std::int64_t id);
  Result<History> whole_history();
  // The evidence of a candidate when the run's writers get it raw (Feedback::kRaw); else nullopt.
  Result<std::optional<Evidence>> evidence(std::int64_t id);
  // What this run learned, in the order of evaluation. The first call reads every candidate of
  // earlier sittings to derive theirs.
  Result<std::vector<Fact>> facts();

  // Runs `work` and counts its time as spent outside: in compilers, workers and disassemblers, or
  // in waiting for a writer.
  template <class Work>
  auto outside(Work work) {
    const double from = real_clock().now_s();
    auto value = work();
    outside_s_ += real_clock().now_s() - from;
    return value;
  }
  // Seconds spent outside so far.
  double outside_s() const { return outside_s_; }

 private:
  Result<void> adopt(const Ceilings& ceilings);
  Result<void> check(Evidence* evidence);
  Result<Measured> measured_before(std::int64_t twin, const Built& built);
  double fastest_source_us() const;
  bool is_variant(const Candidate& candidate, const Known& best) const;
  Result<void> whole_around(const Known& known);
  Result<std::optional<ToolStep>> step_of(const Known& known);
  Result<std::optional<Fact>> fact(const Known& known);
  std::string learn(const ToolStep& step);
  std::string remember(Fact fact);
  bool may_beat(const Known& one, const Known& other) const;
  Result<std::optional<Evaluation>> confirm_one(const Known& finalist, const Known& start);
  // False when asked to stop.
  Result<bool> measure_held_out(const Known& winner, const Known& start,
                                std::vector<HeldOut>* cases);
  bool raw() const { return parts_.settings->feedback == Feedback::kRaw; }
  bool stopped() const { return parts_.stop && parts_.stop(); }
  void phase(const char* name) const {
    if (parts_.phase) parts_.phase(name);
  }

  BenchParts parts_;
  Machine machine_;
  CeilingWatch watch_;
  Ledger ledger_;
  ToolRecord record_;          // the record the run began with, plus its own steps
  bool record_fails_ = false;  // the user's file cannot be written; reported once
  FactFrame frame_;
  std::vector<Fact> facts_;         // this sitting's; all sittings' once facts() was called
  std::size_t facts_not_told_ = 0;  // candidates of earlier sittings whose facts are missing here
  FactFile fact_file_;
  bool facts_fail_ = false;                      // as record_fails_
  std::string run_id_;                           // as stored; "" = not read yet
  std::map<std::int64_t, Evidence> evidence_;    // when writers get it raw
  std::map<std::string, std::int64_t> by_code_;  // machine code -> first candidate that has it
  std::map<std::int64_t, std::string> begun_;    // machine codes being measured
  double outside_s_ = 0;
  std::set<std::int64_t> profiled_;  // by `profile`, or tried to
  double profiling_s_ = 0;           // spent on these
  int revisions_ = 0;
};

}  // namespace kernelpro
