// SPDX-License-Identifier: Apache-2.0
// What the capture process gives up after creating its CUDA context and before loading a
// candidate's host code: new processes and programs, sockets, making or changing files, files
// outside the system's and the candidate's own, shared memory, other processes and their memory,
// signals, kernel side doors (io_uring, bpf, perf events, namespaces, mounts). Holds for root and
// all threads; cannot be undone. Refused calls end the process with status kRefusedStatus and a
// line on standard error that names the rule ("fork", "file-write", "signal" ...).
#pragma once

#include <string>

#include "base/error.h"

namespace kernelpro {

inline constexpr int kRefusedStatus = 77;

// `object`: the candidate's shared object; its folder stays readable. Call once. Fails when the
// kernel has no seccomp.
Result<void> enter_capture_sandbox(const std::string& object);

// Number of threads of this process, to detect threads that a candidate leaves behind. CUDA's own
// threads, recognized by name, may start at any time and are not counted.
int own_threads();

}  // namespace kernelpro
