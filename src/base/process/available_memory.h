// SPDX-License-Identifier: Apache-2.0
// How much memory can be used. Safe from any thread.
#pragma once

#include <cstdint>

namespace kernelpro {

// Memory usable without swapping: the kernel's estimate, capped by what the cgroup leaves.
std::int64_t available_memory_bytes();

// Memory limit for a process that runs a user's file (a PyTorch module): half of the available
// memory, so that one file cannot take the whole machine; at least 4 GB if that is no more than
// four fifths of the available memory; never less than the 1 GB that PyTorch needs.
std::int64_t module_memory_limit(std::int64_t available_bytes);

// For a process that works on many tasks: makes freed memory go back to the system. Call at start.
// Large blocks always get their own mapping, however many were freed before, and threads share a
// few heaps.
void keep_freed_memory_small();
// Returns free memory between live blocks to the system. Takes a few milliseconds.
void return_freed_memory();

}  // namespace kernelpro
