// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp/jobs.h"

#include <chrono>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/text.h"

namespace kernelpro {

void Ticket::phase(const std::string& message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  phase_ = message;
  since_ = real_clock().now_s();
  progress_ = static_cast<double>(static_cast<int>(progress_)) + 1;
  if (on_progress_ && !flag_) on_progress_(progress_, phase_);
}

void Ticket::tick() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (phase_.empty() || !on_progress_ || flag_) return;
  const double whole = static_cast<double>(static_cast<int>(progress_));
  progress_ += (whole + 1 - progress_) / 8;  // never reaches the next integer
  on_progress_(progress_, phase_ + ", " + human_seconds(real_clock().now_s() - since_));
}

Jobs::Jobs(double tick_s) {
  for (Queue& queue : queues_) threads_.emplace_back([this, &queue] { serve(&queue); });
  threads_.emplace_back([this, tick_s] { keep_ticking(tick_s); });
}

Jobs::~Jobs() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    for (Queue& queue : queues_) {
      if (queue.running) queue.running->cancel();
      for (Job& job : queue.waiting) job.ticket->cancel();
    }
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Jobs::submit(Lane lane, Work work, const std::shared_ptr<Ticket>& ticket) {
  Queue& queue = queues_[static_cast<int>(lane)];
  std::size_t before = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    before = queue.waiting.size() + (queue.running ? 1 : 0);
  }
  // Before the job can run, which reports phases of its own.
  if (before > 0) ticket->phase("waiting for " + std::to_string(before) + " before it");
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue.waiting.push_back({ticket, std::move(work)});
  }
  changed_.notify_all();
}

void Jobs::serve(Queue* queue) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !queue->waiting.empty(); });
    if (queue->waiting.empty()) return;
    Job job = std::move(queue->waiting.front());
    queue->waiting.pop_front();
    queue->running = job.ticket;
    lock.unlock();
    if (!job.ticket->cancelled()) {
      const CancelScope scope(job.ticket->flag());
      job.work(*job.ticket);
    }
    job.work = nullptr;  // destroy its captures without the lock
    lock.lock();
    queue->running = nullptr;
  }
}

void Jobs::keep_ticking(double tick_s) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto step = std::chrono::duration<double>(tick_s);
  while (!ending_) {
    if (changed_.wait_for(lock, step, [&] { return ending_; })) return;
    std::vector<std::shared_ptr<Ticket>> all;
    for (const Queue& queue : queues_) {
      if (queue.running) all.push_back(queue.running);
      for (const Job& job : queue.waiting) all.push_back(job.ticket);
    }
    lock.unlock();
    for (const auto& ticket : all) ticket->tick();
    lock.lock();
  }
}

}  // namespace kernelpro
