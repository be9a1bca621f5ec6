// SPDX-License-Identifier: Apache-2.0
// Rights that a process gives up before it runs a cpu candidate: new processes, programs, sockets,
// messages, signals, files of any name, other processes' memory, and every system call that a
// kernel does not need. Holds for root as well and cannot be undone. Threads and memory stay
// allowed, and reading a few files that tell how many processors there are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/process/seccomp.h"
#include "core/plan/cpu_protocol.h"

namespace kernelpro {

constexpr unsigned kNobody = 65534;  // the user and group that a candidate sees

// Sets limits and a system-call filter for the rest of this process. `status` records the cause of
// its end: a refused system call, or a fault and its address. `object`: a descriptor of the
// candidate's, or -1; it stays open, and can be loaded as kCpuObjectName, with the libraries that
// compilers link to. The pages in `fixed` stay as they are: nothing can be mapped there, unmapped,
// or protected anew. From here on only cpu_gate.h can use the channel. Returns the error, or "".
// Call once, from the only thread.
std::string enter_cpu_sandbox(CpuStatus* status, int object, std::int64_t address_space,
                              std::vector<PageRange> fixed);

}  // namespace kernelpro
