// SPDX-License-Identifier: Apache-2.0
// Which processors threads run on: those of a worker, and the one that waits for it.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace kernelpro {

// A thread that was bound to one processor, and what it may use otherwise.
struct BoundThread {
  pid_t id = 0;
  cpu_set_t allowed;
};

// Binds a thread to the n-th of its processors, counted round and round. nullopt: it has fewer than
// two, or has ended.
std::optional<BoundThread> bind_thread(pid_t thread, std::uint64_t n);
// ... to the one that it last ran on.
std::optional<BoundThread> hold_thread(pid_t thread);
void free_thread(const BoundThread& bound);

// While it lives, the calling thread runs where `other` last ran, as far as it may. Waking up a
// thread of one's own processor takes a few microseconds, always the same; another processor has to
// be interrupted first, or even woken up itself: tens of microseconds on a virtual machine, and
// never twice the same.
class RunBeside {
 public:
  explicit RunBeside(pid_t other);
  ~RunBeside();
  RunBeside(const RunBeside&) = delete;
  RunBeside& operator=(const RunBeside&) = delete;

 private:
  std::optional<BoundThread> self_;
};

}  // namespace kernelpro
