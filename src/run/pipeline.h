// SPDX-License-Identifier: Apache-2.0
// Carries candidates from the writer to the ledger: built in parallel, measured at whichever
// station is free, and returned in the order in which they arrived. Decisions therefore do not
// depend on timing: runs with the same results make the same decisions, on one GPU or on four.
//
// With a single station everything happens inside `next`. All calls come from one thread, the owner
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
#include "measure/station/station.h"
#include "run/bench.h"
#include "run/gpu_use.h"

namespace kernelpro {

struct PipelineParts {
  const Task* task = nullptr;
  const RunSettings* settings = nullptr;
  // The first is prepared. Each of the others joins once its entry in `ready` (same order) is done.
  std::vector<Station*> stations;
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
  std::vector<Candidate> pending() const;
  bool empty() const { return jobs_.empty(); }
  // One that is ready and measures nothing, or null; it is free until the next call of `next`.
  Station* free_station();

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
    Building built;
    bool begun = false;
    int gpus_lost = 0;  // during its measurement
    std::optional<Measured> measured;
  };
  struct Place {
    Station* station = nullptr;
    bool ready = false;
    bool busy = false;
    std::thread thread;
  };
  void make_ready(Place* place, const Readiness& readiness);
  Result<bool> begin_one(Place* place);
  void measure_at(Place* place, Job* job, Order order);
  void give_up(Place* place, Job* job, Error error);
  Place* free_place();
  bool building() const;
  void tally(bool deciding = false);
  Result<State> next_state(std::optional<Done>* done);
  bool one() const { return places_.size() == 1; }

  PipelineParts parts_;
  std::vector<std::unique_ptr<Place>> places_;
  std::deque<std::unique_ptr<Job>> jobs_;
  int under_way_ = 0;           // begun and not yet returned
  std::optional<Error> error_;  // of the last GPU
  GpuUse use_;
  double tallied_s_ = 0;  // time of the last tally; 0: never
  bool waited_ = false;   // for a result that the last `next` could not return
};

}  // namespace kernelpro
