// SPDX-License-Identifier: Apache-2.0
// The supervisor's view of one worker process of the cpu target, with one shared object loaded. Any
// failure of it becomes an Outcome with the fault, its place and the phase.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/process/subprocess.h"
#include "core/evaluation/evaluation.h"
#include "core/plan/binary.h"
#include "core/plan/cpu_protocol.h"
#include "core/task/task.h"
#include "machine/cpu.h"
#include "machine/host_load.h"
#include "measure/cpu/buffers.h"
#include "measure/cpu/processors.h"

namespace kernelpro {

// The time that a candidate's processes may waste in one case, all together: limits of single
// calls, loads and stops do not add up to one, and an evaluation has hundreds of each. Wasted is
// what a call takes beyond several times the quickest one on given values, less the time that its
// threads waited for a processor; and what loads and stops take beyond the usual.
struct Patience {
  double limit_s = 0;
  double wasted_s = 0;
  double call_s = INFINITY;  // the quickest call on given values
  bool spent() const { return wasted_s > limit_s; }
};

// Workers use all hardware threads, with OpenMP threads that sleep soon after a call, so that an
// untimed process disturbs the timed one as little as possible.
struct SessionSettings {
  std::string worker;  // path of kernelpro-worker
  double load_timeout_s = 30;
  std::shared_ptr<Patience> patience;  // null: without end
};

struct Called {
  // By the supervisor's clock, from the moment that the worker may run until its answer arrives.
  double wall_ns = 0;
};

// Of all calls since begin_turn.
struct TurnUse {
  double cpu_ns = 0;  // processor time of all its threads
  // ... of all but the first, which makes the calls. Infinite where the system does not report it.
  double others_cpu_ns = 0;
  // Share of the machine that others used meanwhile, 0..1 (machine/host_load.h).
  double foreign = 0;
  // How long its threads were ready to run while other threads, its own included, had the
  // processors, summed. Infinite where the system does not report it or a thread has ended.
  double waited_ns = 0;
};

// Used by one thread at a time. `tensors` must outlive it. The process ends with it, and so does
// its memory: no two processes that run candidate code ever map the same pages, at the same time or
// one after the other.
class CpuSession {
 public:
  using Started = std::variant<std::unique_ptr<CpuSession>, Outcome>;
  // Loads the candidate. A candidate without a shared object does nothing when called: its time is
  // the cost of an order. `buffers` hold `tensors` once or several times (as the sets that CpuCall
  // counts), then the workspace if there is one. An Error is the machine's fault.
  static Result<Started> start(const SessionSettings& settings, const Binary& binary,
                               const std::vector<Shaped>& tensors, CpuBuffers buffers,
                               const std::string& phase);
  const CpuBuffers& buffers() const { return buffers_; }

  // Of a process that runs no candidate code. `phase`: for the outcome, "running the reference". A
  // call that runs late while others use the machine gets more time, up to eight times `timeout_s`.
  std::variant<Called, Outcome> call(const CpuCall& wanted, double timeout_s,
                                     const std::string& phase);
  enum class Values { kGiven, kProbe };  // a call on a probe may take far longer
  // The same for a stopped worker, which is stopped again on return: it can do nothing outside the
  // timed interval, except until the signal to stop arrives, and results that change in that time
  // are rejected. REQUIRES: begin_turn.
  std::variant<Called, Outcome> timed_call(const CpuCall& wanted, double timeout_s,
                                           const std::string& phase,
                                           Values values = Values::kGiven);
  // Around timed calls, while the worker is stopped.
  void begin_turn();
  TurnUse end_turn() const;
  ~CpuSession();
  // `pause` stops all threads and waits until they are stopped; `go_on` resumes them. A worker that
  // does not stop within a few seconds is killed.
  void pause();
  void go_on();
  // Spreads the threads of a stopped worker over its allowed processors, one each from a random one
  // on, and leaves it stopped. A thread wakes up where it last ran or near another: left alone, two
  // could share a processor for a whole comparison, and its order would no longer be the only
  // chance in it. A thread pool stays pinned until the next call, as with OMP_PROC_BIND=spread. A
  // single thread, whose children would stay beside it, and more threads than processors are
  // unpinned again.
  void scatter(std::uint64_t seed);
  // After a call that others like it will follow. Threads that it started are spread as well. A
  // thread that never had another's help is held where it last ran until `scatter`: it wakes up
  // beside the one that waits for it (processors.h), and so will what it starts nevertheless.
  void settle();
  bool out_of_patience() const { return patience_ && patience_->spent(); }
  pid_t pid() const { return child_.pid(); }
  // Processor time of all threads of the process, including finished ones; 0 where the system does
  // not report it.
  double cpu_ns() const;
  // The same of the living thread that has used most: what the work took, had nothing disturbed it.
  double busiest_thread_ns() const;

 private:
  struct ThreadTime {
    double cpu_ns = 0, waited_ns = 0;
  };
  using ThreadTimes = std::map<pid_t, ThreadTime>;
  ThreadTimes thread_times() const;
  CpuSession(const std::vector<Shaped>& tensors, CpuBuffers buffers)
      : tensors_(tensors), buffers_(std::move(buffers)) {}
  std::optional<Outcome> order(const CpuCall& wanted, double timeout_s, const std::string& phase);
  std::optional<Outcome> answer(double timeout_s, const std::string& phase);
  // A few words of a set's outputs, at places that nobody can predict.
  struct Watched {
    const char* at = nullptr;
    std::size_t bytes = 0;
    std::uint64_t seen = 0;
    void note() { std::memcpy(&seen, at, bytes); }
    bool same() const { return std::memcmp(&seen, at, bytes) == 0; }
  };
  std::vector<Watched> watch(std::size_t set, std::uint64_t words, std::uint64_t secret) const;
  std::vector<Watched> watch_others(const CpuCall& wanted) const;
  // TimedOut once the limit is reached.
  std::optional<Outcome> charge_call(const CpuCall& wanted, double seconds, Values values,
                                     const std::string& phase);
  double waited_s() const;
  std::vector<Watched> watch_outputs(const CpuCall& wanted) const;
  std::optional<Outcome> count_late_work(Called* called) const;
  void wait_until_stopped();
  std::string task_folder() const;
  Result<void> map_status();
  std::string setup_frame() const;
  Outcome explain(double timeout_s, const std::string& phase);
  Outcome explain_signal(const Exit& exit, const std::string& phase) const;
  std::string explain_address(std::uint64_t address, bool is_write) const;
  bool near_memory_limit(const Exit& exit) const;
  std::string buffer_name(std::size_t slot) const;
  std::size_t sets() const { return buffers_.slots().size() / tensors_.size(); }
  bool is_workspace(std::size_t slot) const { return slot >= sets() * tensors_.size(); }

  void free_threads();
  double waited_since(const ThreadTimes& now, double cpu_ns) const;

  struct StatusPage {
    Fd fd;
    CpuStatus* at = nullptr;
    StatusPage() = default;
    StatusPage(const StatusPage&) = delete;
    StatusPage& operator=(const StatusPage&) = delete;
    ~StatusPage();
  };

  const std::vector<Shaped>& tensors_;
  const CpuBuffers buffers_;
  StatusPage status_;
  Child child_;
  std::vector<BoundThread> bound_;  // by `scatter` or `settle`
  std::uint64_t seed_ = 0;          // of the last `scatter`
  std::size_t scattered_ = 0;       // threads that it found
  LoadMeter load_;                  // since the turn began
  std::shared_ptr<Patience> patience_;
  ThreadTimes threads_then_;  // when the turn began
  double cpu_then_ns_ = 0;
  bool would_not_stop_ = false;
  struct Late {
    double wall_ns = 0, cpu_ns = 0;
  };
  Late late_;  // from SIGSTOP until all threads had stopped, the last time
  const int threads_ = std::max(1, read_cpu_info().threads);  // of the machine
  Limits limits_;
  std::int64_t address_space_ = 0;
  std::vector<std::uint64_t> addresses_;  // of the slots, in the worker
};

// Explains an overwritten canary: "wrote past the end of tensor y (element 128; it has 128)".
std::string describe_stray(const std::string& name, std::int64_t bytes, std::int64_t element_bytes,
                           std::int64_t at, bool is_write);

}  // namespace kernelpro
