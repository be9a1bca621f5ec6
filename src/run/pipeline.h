// SPDX-License-Identifier: Apache-2.0
// Carries candidates from the writer to the ledger: built in parallel on the CPU cores, measured on
// whichever GPU is free, and returned in the order in which they arrived. Decisions therefore do
// not depend on timing: runs with the same results make the same decisions, on one GPU or on four.
//
// With a single target everything happens inside `next`. All calls come from one thread, the owner
// of the mailbox.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mailbox.h"
#include "build/build_pool.h"
#include "run/bench.h"
#include "run/gpu_use.h"

namespace kernelpro {

struct PipelineParts {
  const Task* task = nullptr;
  const RunSettings* settings = nullptr;
  // The first is prepared. Each of the others joins once its entry in `ready` (same order) is done.
  std::vector<Target*> targets;
  std::vector<Readiness> ready;
  Bench* bench = nullptr;
  Mailbox* mailbox = nullptr;
  // Whether another measurement may begin while this many are in flight.
  std::function<bool(int under_way)> may_begin;
  // Called with the reason, one sentence, when a GPU is given up while others remain.
  std::function<void(const std::string&)> note;
};

class Pipeline {
 public:
  explicit Pipeline(PipelineParts parts);
  // Waits for builds and measurements in flight.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Appends to the queue; the build starts as soon as a core is free.
  void put(Known known);
  // Everything put in and not yet returned, in order.
  std::vector<const Candidate*> pending() const;
  bool empty() const { return jobs_.empty(); }

  struct Done {
    Known known;
    Measured measured;
  };
  enum class State {
    kDone,     // `*done` is the next result
    kWaiting,  // not ready: run the mailbox's next message, then call again
    kIdle,     // nothing is in flight, and nothing may begin
  };
  // Starts whatever can start. Fails on machine errors: the last GPU was given up, or a build could
  // not start.
  Result<State> next(std::optional<Done>* done);

  // GPU time up to the last `next`.
  const GpuUse& use() const { return use_; }

 private:
  struct Job {
    Known known;
    BuildPool::Future built;
    bool begun = false;
    int gpus_lost = 0;  // during its measurement
    std::optional<Measured> measured;
  };
  struct Station {
    Target* target = nullptr;
    std::string name;  // "GPU 1", for messages
    bool ready = false;
    bool busy = false;
    std::thread thread;
  };
  BuildHooks build_hooks();
  void make_ready(Station* station, const Readiness& readiness);
  Result<bool> begin_one(Station* station);
  void carry_out_on(Station* station, Job* job, MeasureOrder order);
  void give_up(Station* station, Job* job, Error error);
  Station* free_station();
  bool building() const;
  void tally(bool deciding = false);
  Result<State> next_state(std::optional<Done>* done);
  bool one() const { return stations_.size() == 1; }

  PipelineParts parts_;
  std::vector<std::unique_ptr<Station>> stations_;
  std::deque<std::unique_ptr<Job>> jobs_;
  int under_way_ = 0;           // begun and not yet returned
  std::optional<Error> error_;  // of the last GPU
  GpuUse use_;
  double tallied_s_ = 0;  // time of the last tally; 0: never
  bool waited_ = false;   // for a result that the last `next` could not return
  BuildPool pool_;
};

}  // namespace kernelpro
