// SPDX-License-Identifier: Apache-2.0
// Builds a task's candidates on this machine's cores, in parallel and ahead of their measurement,
// and keeps what was built. Stations of several GPUs share one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "build/build.h"
#include "measure/station/order.h"

namespace kernelpro {

class Workshop {
 public:
  // Builds `jobs` at a time (0: one per core). `afterwards`: further work in advance for a
  // candidate that compiled, on the building thread; counts as building; may be empty. Only for the
  // first setting of a source, unless `each`: of further ones most are slower, and hardly any is
  // looked into. `task` must outlive the workshop.
  Workshop(const Task& task, TargetKind kind, std::shared_ptr<Compiler> compiler, int jobs,
           std::function<void(const Subject&)> afterwards = {}, bool each = false);
  // Waits for builds in progress; drops those not started.
  ~Workshop();
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  // Both are safe from any thread. `begin` returns at once; builds start in call order as threads
  // become free, and `done` is called on the building thread (it may be empty).
  Building begin(const Candidate& candidate, std::function<void()> done);
  // What was built for this candidate: waits for a build that was begun, or builds on this thread,
  // under its CancelScope. A cancelled build and a machine error are not kept.
  BuiltKernel kernel(const Candidate& candidate);

  // Waits until all work is done, `afterwards` included. Safe from any thread.
  void wait_until_idle();
  // The same, after dropping builds that have not started: nobody may wait for them any more.
  void drop_waiting();

 private:
  static constexpr std::size_t kMostKept = 256;

  struct Job {
    Candidate candidate;
    std::string hash;
    std::function<void()> done;
    std::promise<BuiltKernel> kernel;
    std::promise<Result<Built>> built;
  };
  struct Kept {
    std::shared_future<BuiltKernel> kernel;
    Building built;
    std::uint64_t used = 0;  // when, in calls
  };
  Kept* find(const std::string& hash);
  void keep(const std::string& hash, Kept kept);
  void work();
  void carry_out(Job* job);
  bool is_new_source(const Candidate& candidate);

  const Task& task_;
  const TargetKind kind_;
  const std::shared_ptr<Compiler> compiler_;
  const std::size_t most_;  // threads
  const std::function<void(const Subject&)> afterwards_;
  const bool each_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::map<std::string, Kept> kept_;  // by content hash
  std::set<std::string> sources_;     // hashes of those that compiled
  std::uint64_t calls_ = 0;
  std::size_t busy_ = 0;  // threads
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

// How a build ended, as a plain value.
Result<Built> built_of(const Candidate& candidate, const BuiltKernel& kernel);

}  // namespace kernelpro
