// SPDX-License-Identifier: Apache-2.0
// What a process gives up before it runs a cpu candidate: new processes, programs, sockets, files
// for writing, other processes' memory and every system call that a kernel has no use for. It holds
// for root as well and cannot be undone. Threads, memory and reading the system's files stay
// allowed.
#pragma once

#include <cstdint>
#include <string>

#include "core/cpu_protocol.h"

namespace kernelpro {

// Limits and system-call filter of this process, from here to its end. `status` records what ends
// it: a refused system call, a fault and its address. `object`: the candidate's, whose folder stays
// readable. Returns what went wrong, or "".
// Call once, from the only thread.
std::string enter_cpu_sandbox(CpuStatus* status, const std::string& object,
                              std::int64_t address_space);

}  // namespace kernelpro
