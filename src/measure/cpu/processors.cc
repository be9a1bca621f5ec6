// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/processors.h"

#include "base/process/processes.h"

namespace kernelpro {

namespace {

std::optional<BoundThread> bind_to(BoundThread thread, int cpu) {
  if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &thread.allowed)) return std::nullopt;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (::sched_setaffinity(thread.id, sizeof one, &one) != 0) return std::nullopt;
  return thread;
}

std::optional<BoundThread> movable(pid_t thread) {
  BoundThread found;
  found.id = thread;
  if (::sched_getaffinity(thread, sizeof found.allowed, &found.allowed) != 0) return std::nullopt;
  if (CPU_COUNT(&found.allowed) < 2) return std::nullopt;
  return found;
}

}  // namespace

std::optional<BoundThread> bind_thread(pid_t thread, std::uint64_t n) {
  const std::optional<BoundThread> found = movable(thread);
  if (!found) return std::nullopt;
  std::uint64_t left = n % static_cast<std::uint64_t>(CPU_COUNT(&found->allowed));
  int cpu = 0;
  while (!CPU_ISSET(cpu, &found->allowed) || left-- > 0) ++cpu;
  return bind_to(*found, cpu);
}

std::optional<BoundThread> hold_thread(pid_t thread) {
  const std::optional<BoundThread> found = movable(thread);
  return found ? bind_to(*found, last_processor(thread)) : std::nullopt;
}

void free_thread(const BoundThread& bound) {
  static_cast<void>(::sched_setaffinity(bound.id, sizeof bound.allowed, &bound.allowed));
}

RunBeside::RunBeside(pid_t other) {
  if (const std::optional<BoundThread> found = movable(0)) {
    self_ = bind_to(*found, last_processor(other));
  }
}

RunBeside::~RunBeside() {
  if (self_) free_thread(*self_);
}

}  // namespace kernelpro
