// SPDX-License-Identifier: Apache-2.0
// The worker's end of its channel while candidate code is in the process. An answer counts only if
// the worker's own code gave it, on its first thread, with the state that a call must leave:
//
// - The system-call filter lets the channel be read and written at two instructions only
//   (`gate_addresses`), and nothing may change the pages that hold them (`gate_ranges`).
// - Whoever reaches one of these instructions, however, goes on in this file: the state is checked,
//   the next order is read, and the entry point is called. There is no way back to a caller, so a
//   kernel that jumps here to answer early is where it would be had it returned.
// - No signal can interpose a handler: only those of a thread's own faults may have one, and
// nothing
//   here can fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/process/seccomp.h"
#include "core/plan/cpu_protocol.h"

namespace kernelpro {

// What orders run. Candidate code may change it: it decides what its own entry point does.
struct Orderly {
  void (*entry)(const void* arguments) = nullptr;
  std::vector<std::vector<void*>> arguments;  // by set: the contents of the kernel's Args
  std::int32_t sets = 0;
};

struct GateAddresses {
  std::uintptr_t wrote = 0, read = 0;  // behind the system calls
};
GateAddresses gate_addresses();
// The program's own code and data, and the part of the stack on which it waits. Nothing may map,
// unmap or protect them anew.
std::vector<PageRange> gate_ranges();

// Fixes what must not change from here on: the calling thread, its stack from here upwards, its
// signal mask, the handlers of faults and their stack, and the thread pointer. Call once, on the
// first thread, with the handlers in place, before the system-call filter. False: memory could not
// be protected.
bool close_gate(CpuStatus* status);

// Sends a frame, then serves orders until the supervisor is gone; ends the process with status 1 if
// there is no entry point. All must stay valid. REQUIRES: close_gate.
[[noreturn]] void answer_and_serve(const void* frame, std::size_t bytes, Orderly* orderly);

}  // namespace kernelpro
