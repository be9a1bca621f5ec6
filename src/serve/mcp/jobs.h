// SPDX-License-Identifier: Apache-2.0
// Job scheduling: one lane evaluates one candidate at a time, so that nothing disturbs a timing;
// the others answer look-ups in the meantime, and wait for news. Each lane is a thread that runs
// its jobs in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kernelpro {

enum class Lane { kLookUp, kRunKernels, kWait };
inline constexpr int kLanes = 3;

// A job's handle, shared by its submitter and the work itself. Any thread.
class Ticket {
 public:
  // `progress` increases with every call. May be empty.
  using OnProgress = std::function<void(double progress, const std::string& message)>;
  explicit Ticket(OnProgress on_progress) : on_progress_(std::move(on_progress)) {}

  // The work ends soon or never begins; its answer is dropped.
  void cancel() { flag_ = true; }
  bool cancelled() const { return flag_; }
  const std::atomic<bool>* flag() const { return &flag_; }
  // Reports the current phase of the work.
  void phase(const std::string& message);
  // Repeats the phase with its elapsed time, so that a waiting client sees that the job is alive.
  void tick();

 private:
  std::atomic<bool> flag_{false};
  std::mutex mutex_;  // guards the members below
  OnProgress on_progress_;
  std::string phase_;
  double since_ = 0;     // start of the phase
  double progress_ = 0;  // phases so far, plus a fraction for this one
};

class Jobs {
 public:
  explicit Jobs(double tick_s = 5);
  // Cancels all jobs and waits for them.
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // Runs `work` on the lane's thread, in a CancelScope of the ticket (base/cancel.h); drops it if
  // the ticket is cancelled first. Where it must wait, the ticket reports that before this returns,
  // on this thread.
  using Work = std::function<void(Ticket& ticket)>;
  void submit(Lane lane, Work work, const std::shared_ptr<Ticket>& ticket);

 private:
  struct Job {
    std::shared_ptr<Ticket> ticket;
    Work work;
  };
  struct Queue {
    std::deque<Job> waiting;
    std::shared_ptr<Ticket> running;
  };
  void serve(Queue* queue);
  void keep_ticking(double tick_s);

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  Queue queues_[kLanes];
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kernelpro
