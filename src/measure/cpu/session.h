// SPDX-License-Identifier: Apache-2.0
// One worker process of the cpu target with one shared object loaded, seen from the supervisor.
// Whatever happens to it becomes an Outcome that says what, where and in which phase.
#pragma once

#include <sched.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/process/subprocess.h"
#include "core/binary.h"
#include "core/cpu_protocol.h"
#include "core/evaluation.h"
#include "core/task.h"
#include "machine/host_load.h"
#include "measure/cpu/buffers.h"

namespace kernelpro {

// Environment of workers: all hardware threads, and OpenMP threads that soon sleep between calls,
// so that a process that is not being timed disturbs the other as little as possible.
struct SessionSettings {
  std::string worker;  // path of kernelpro-worker
  double load_timeout_s = 30;
};

struct Called {
  // By the supervisor's clock: `call`, from the order to the answer; `timed_call`, from the moment
  // that the worker may run until all its threads are seen to have stopped again.
  double wall_ns = 0;
  double cpu_ns = 0;  // processor time of all its threads meanwhile
  // `timed_call`: what others took of the machine meanwhile, 0..1 (machine/host_load.h).
  double foreign = 0;
};

// Used by one thread at a time. `tensors` and `buffers` must outlive it. The process ends with it.
class CpuSession {
 public:
  using Started = std::variant<std::unique_ptr<CpuSession>, Outcome>;
  // Loads the candidate; one without a shared object does nothing when called, and shows what an
  // order costs by itself. `buffers` hold `tensors` once or several times (as sets that CpuCall
  // counts), then the workspace if there is one. An Error is the machine's fault.
  static Result<Started> start(const SessionSettings& settings, const Binary& binary,
                               const std::vector<Shaped>& tensors, const CpuBuffers& buffers,
                               const std::string& phase);

  // `phase`: for the outcome, "checking case small". A call that runs late while others use the
  // machine gets more time, up to eight times `timeout_s`.
  std::variant<Called, Outcome> call(const CpuCall& order, double timeout_s,
                                     const std::string& phase);
  // The same for a worker that is stopped, and that is stopped again when this returns: nothing
  // that it does before or after counts less than what it does when asked.
  std::variant<Called, Outcome> timed_call(const CpuCall& order, double timeout_s,
                                           const std::string& phase);
  ~CpuSession();
  // Stops all its threads where they are, and waits until they are stopped; lets them go on. A
  // worker that does not stop within some seconds is killed.
  void pause();
  void go_on();
  // Puts the threads of a stopped worker onto the processors it may use, one after the other from a
  // random one on, and leaves it stopped. Threads wake up where they were last, or beside each
  // other: left alone, two would share a processor for a whole comparison, and its order would no
  // longer be the only chance in it. A pool of threads stays where it was put until the next call
  // of this, as OMP_PROC_BIND=spread has it; a single thread, whose children would stay beside it,
  // and more threads than processors are free to move.
  void scatter(std::uint64_t seed);
  pid_t pid() const { return child_.pid(); }
  // Processor time of all threads of the process, those that are gone included; 0 where the system
  // does not tell.
  double cpu_ns() const;

 private:
  CpuSession(const std::vector<Shaped>& tensors, const CpuBuffers& buffers)
      : tensors_(tensors), buffers_(buffers) {}
  std::variant<Called, Outcome> answer(double timeout_s, const std::string& phase);
  Result<void> map_status();
  std::string setup_frame(const std::string& object);
  Outcome explain(double timeout_s, const std::string& phase);
  Outcome explain_signal(const Exit& exit, const std::string& phase) const;
  std::string explain_address(std::uint64_t address, bool is_write) const;
  bool near_memory_limit(const Exit& exit) const;
  std::string buffer_name(std::size_t slot) const;
  std::size_t sets() const { return buffers_.slots().size() / tensors_.size(); }
  bool is_workspace(std::size_t slot) const { return slot >= sets() * tensors_.size(); }

  void free_threads();

  struct Placed {
    pid_t id = 0;
    cpu_set_t allowed;  // before it was placed
  };
  struct StatusPage {
    Fd fd;
    CpuStatus* at = nullptr;
    StatusPage() = default;
    StatusPage(const StatusPage&) = delete;
    StatusPage& operator=(const StatusPage&) = delete;
    ~StatusPage();
  };

  const std::vector<Shaped>& tensors_;
  const CpuBuffers& buffers_;
  StatusPage status_;
  Child child_;
  std::vector<Placed> placed_;  // threads that are kept where `scatter` put them
  LoadMeter load_;              // since the last order
  Limits limits_;
  std::int64_t address_space_ = 0;
  std::vector<std::uint64_t> addresses_;  // of the slots, in the worker
};

// What a canary that was overwritten means: "wrote past the end of tensor y (element 128; it has
// 128)".
std::string describe_stray(const std::string& name, std::int64_t bytes, std::int64_t element_bytes,
                           std::int64_t at, bool is_write);

}  // namespace kernelpro
