// SPDX-License-Identifier: Apache-2.0
// A run driven from outside, one candidate at a time; it records an MCP client's evaluations. On
// disk it is an ordinary run: report, trajectories, replay and resume work on it. The station stays
// prepared between calls until `cool`.
//
// One thread at a time evaluates, compares and finishes, under a CancelScope (base/cancel.h) if it
// can be cancelled; `rows`, `row`, `best` and `directory` may be called from any thread meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "measure/station/station.h"
#include "run/bench.h"
#include "run/evaluate_one.h"
#include "run/run.h"
#include "run/store/store.h"

namespace kernelpro {

class Sitting {
 public:
  // A candidate at the time of its evaluation.
  struct Row {
    Known known;
    double speedup = 0;         // versus the baseline, by comparable times; 0 when not correct
    bool start_failed = false;  // the baseline is not the start, but the first correct candidate
    bool better = false;        // it became the best
  };
  using RowPtr = std::shared_ptr<const Row>;

  // Prepares the station and creates the run's folder; nothing is evaluated yet. `maker`: opens the
  // station again after it was cooled. `first`: for the first time, if not null (it may hold the
  // running reference of a task with a Module). Fails as `optimize` does (run/run.h).
  static Result<std::unique_ptr<Sitting>> open(Task task, const RunSettings& settings,
                                               StationMaker maker, const Phase& phase,
                                               StationMaker first = nullptr);

  struct Given {
    KernelFile kernel;
    std::string idea;
    FindingRef answers;       // a finding of its parent's diagnosis
    std::int64_t parent = 0;  // 0: the best so far, else the start
  };
  struct Evaluated {
    RowPtr row;
    bool again = false;     // already evaluated: nothing was run
    std::string note;       // anything else that went wrong; "" = nothing
    double outside_ms = 0;  // in compilers, workers and disassemblers; the rest is our own
  };
  // nullopt: cancelled. The first call also evaluates the task's start, before the candidate. Fails
  // with kBadInput on faulty knobs or an unknown parent, before anything runs.
  Result<std::optional<Evaluated>> evaluate(const Given& given, const Phase& phase);

  // Times two evaluated candidates in alternation on the same inputs; nullopt: cancelled. A clear
  // winner over the best becomes the best, until an evaluation finds a better one; the store does
  // not know, but `finish` confirms it first. REQUIRES: both are correct, and they differ.
  Result<std::optional<Evaluation>> compare(const Row& a, const Row& b, const Phase& phase);

  // Confirms the best against the start in fresh processes and stores the result; `best` 0: none
  // held up. nullopt: cancelled. Fails with kBadInput when nothing was correct.
  Result<std::optional<RunResult>> finish(const Phase& phase);

  // Ends the station's processes and frees its memory; the next evaluation prepares it again.
  void cool();
  bool warm() const { return station_ != nullptr; }

  const Task& task() const { return task_; }
  const RunSettings& settings() const { return settings_; }
  const std::string& directory() const { return settings_.directory; }
  const std::string& machine() const { return machine_; }

  std::vector<RowPtr> rows() const;  // in order of evaluation
  RowPtr row(std::int64_t id) const;
  RowPtr best() const;      // null: nothing correct yet
  RowPtr baseline() const;  // the first correct one, which speed-ups are over; null

 private:
  Sitting(Task task, RunSettings settings, StationMaker maker, StationMaker first);
  Result<void> warm_up(const Phase& phase);
  Result<std::optional<Evaluated>> put(Candidate candidate);
  Result<std::optional<Evaluated>> begin();
  void diagnose_anew();
  // Calls `work` with the station prepared and `phase` connected.
  template <class Work>
  auto with_station(const Phase& phase, Work work) -> decltype(work());

  const Task task_;
  const RunSettings settings_;
  StationMaker first_;  // until the first station was opened; null after that
  const StationMaker maker_;
  const double opened_;
  std::string machine_;
  std::unique_ptr<Station> station_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Bench> bench_;
  Phase phase_;                           // of the call in progress
  std::map<std::string, Known> waiting_;  // by content hash: cancelled before their evaluation

  mutable std::mutex mutex_;  // guards what follows
  std::vector<RowPtr> rows_;
  std::int64_t best_ = 0;
  // Over best_, by a comparison: the candidate, and its gain at the lower end of the interval.
  std::int64_t preferred_ = 0;  // 0: none
  double preferred_gain_ = 0;
  std::int64_t baseline_ = 0;
  int revisions_ = 0;  // the bench's, when rows_ were diagnosed
};

}  // namespace kernelpro
