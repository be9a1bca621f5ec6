// SPDX-License-Identifier: Apache-2.0
// How much memory there is to use. Safe from any thread.
#pragma once

#include <cstdint>

namespace kernelpro {

// Memory that can still be used without swapping: the kernel's estimate, and no more than what the
// control group leaves.
std::int64_t available_memory_bytes();

// The limit for a process that runs a file of the user's (a PyTorch module): half of what is
// available, so that one file cannot take the whole machine, but no less than 4 GB where four
// fifths of what is available is that much, and never less than the 1 GB that PyTorch needs.
std::int64_t module_memory_limit(std::int64_t available_bytes);

// For a process that works on many tasks: what it frees goes back to the system. Called at the
// start: large blocks are mapped by themselves, however many were freed before, and threads share a
// few heaps.
void keep_freed_memory_small();
// Gives back what lies free between blocks that are in use. A few milliseconds.
void return_freed_memory();

}  // namespace kernelpro
