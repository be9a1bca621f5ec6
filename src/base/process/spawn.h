// SPDX-License-Identifier: Apache-2.0
// Starts a process, in its sandbox if it has one: fork and exec, with pipes for what it prints. Who
// waits for it, and how long, is Child's business (subprocess.h). Safe from any thread.
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/files.h"
#include "base/process/command.h"

namespace kernelpro {

struct Started {
  pid_t pid = -1;
  Fd output;  // what it prints on both streams; does not block
  Fd report;  // of its warden (warden.h); invalid without one
};

// `channel_end`: the child's descriptor kChannelFd, or -1. The process leads a group of its
// own. An Error says what is missing: the program, memory, descriptors.
Result<Started> spawn(const Command& command, int channel_end);

}  // namespace kernelpro
