// SPDX-License-Identifier: Apache-2.0
// Who works when: one lane evaluates, one candidate at a time, because what is timed must not be
// disturbed; another answers what only has to be looked up, meanwhile. Each lane is a thread that
// takes its jobs in order.
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

enum class Lane { kLookUp, kRunKernels };

// One job, seen from whoever asked for it and from the work itself. Any thread.
class Ticket {
 public:
  // `progress` grows from call to call; may be empty.
  using OnProgress = std::function<void(double progress, const std::string& message)>;
  explicit Ticket(OnProgress on_progress) : on_progress_(std::move(on_progress)) {}

  // The work ends soon, or never begins; what it answers is dropped.
  void cancel() { flag_ = true; }
  bool cancelled() const { return flag_; }
  const std::atomic<bool>* flag() const { return &flag_; }
  // Tells what the work is at now.
  void phase(const std::string& message);
  // Says again what it is at, and for how long, so that the one who waits knows that it lives.
  void tick();

 private:
  std::atomic<bool> flag_{false};
  std::mutex mutex_;  // guards what follows
  OnProgress on_progress_;
  std::string phase_;
  double since_ = 0;     // when the phase began
  double progress_ = 0;  // phases so far, and a share of this one
};

class Jobs {
 public:
  explicit Jobs(double tick_s = 5);
  // Cancels everything and waits for it.
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // `work` runs on the lane's thread, in a CancelScope of the ticket (base/cancel.h), unless the
  // ticket is cancelled before that; then it is dropped.
  using Work = std::function<void(Ticket& ticket)>;
  std::shared_ptr<Ticket> submit(Lane lane, Work work, Ticket::OnProgress on_progress);

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

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Queue queues_[2];
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kernelpro
