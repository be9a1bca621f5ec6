// SPDX-License-Identifier: Apache-2.0
// Candidates on their way from the writer to the ledger: built side by side on the CPU's cores,
// measured on whichever GPU is free, and handed back in the order in which they came, whichever is
// done first. So what is decided from results does not hang on who was quicker, and runs with the
// same results make the same decisions, on one GPU or on four.
//
// With one target everything happens within `next`. All calls come from one thread, the owner of
// the mailbox.
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
  // The first is prepared; each of the others serves when it is, which `ready` tells in the same
  // order.
  std::vector<Target*> targets;
  std::vector<Readiness> ready;
  Bench* bench = nullptr;
  Mailbox* mailbox = nullptr;
  // Whether another measurement may begin, with so many under way that have no result yet.
  std::function<bool(int under_way)> may_begin;
  // A GPU that is given up while others are left: why. One sentence.
  std::function<void(const std::string&)> note;
};

class Pipeline {
 public:
  explicit Pipeline(PipelineParts parts);
  // Waits for what is being built and measured.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Behind all others; its build begins as soon as a core is free.
  void put(Known known);
  // All that were put in and not handed back, in order.
  std::vector<const Candidate*> pending() const;
  bool empty() const { return jobs_.empty(); }

  struct Done {
    Known known;
    Measured measured;
  };
  enum class State {
    kDone,     // `*done` is the next result
    kWaiting,  // it takes a while: run the mailbox's next message, and ask again
    kIdle,     // nothing is under way, and nothing may begin
  };
  // Begins what can be begun. Fails for the machine's sake: the last GPU was given up, or a build
  // could not be begun.
  Result<State> next(std::optional<Done>* done);

  // Of the GPUs' time up to the last `next`.
  const GpuUse& use() const { return use_; }

 private:
  struct Job {
    Known known;
    BuildPool::Future built;
    bool begun = false;
    int gpus_lost = 0;  // while they measured it
    std::optional<Measured> measured;
  };
  struct Station {
    Target* target = nullptr;
    std::string name;  // "GPU 1", for people
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
  int under_way_ = 0;           // begun and not handed back
  std::optional<Error> error_;  // of the last GPU
  GpuUse use_;
  double tallied_s_ = 0;  // up to when; 0: never
  bool waited_ = false;   // for what the last `next` could not hand back
  BuildPool pool_;
};

}  // namespace kernelpro
