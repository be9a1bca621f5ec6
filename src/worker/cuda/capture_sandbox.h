// SPDX-License-Identifier: Apache-2.0
// What the capture process gives up once its CUDA context stands and before it loads a candidate's
// host code: new processes and programs, internet sockets, creating or truncating files, other
// processes' memory. Holds for root; cannot be undone. Refused calls end the process with status
// kRefusedStatus and a line on standard error that names the call.
#pragma once

namespace kernelpro {

inline constexpr int kRefusedStatus = 77;

// Returns false when the kernel has no seccomp. Call once.
bool enter_capture_sandbox();

}  // namespace kernelpro
