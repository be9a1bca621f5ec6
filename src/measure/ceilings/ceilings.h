// SPDX-License-Identifier: Apache-2.0
// This machine with its ceilings: the rates that nothing here can exceed.
#pragma once

#include "base/error.h"
#include "core/machine.h"
#include "core/task.h"

namespace kernelpro {

enum class CeilingsWanted {
  kAny,    // those of the cache where they will do
  kAgain,  // measured now, whatever is known
};
// What this machine is and can do, with ceilings measured in a child process and cached
// (measure/ceilings/rounds.h): for the day when the machine was quiet, else until the next command
// asks. The best rates that were seen stay. Fails with kEnvironment when the target cannot be used
// here; the message says why.
Result<Machine> describe_cpu_machine(CeilingsWanted wanted = CeilingsWanted::kAny);
Result<Machine> describe_cuda_machine(CeilingsWanted wanted = CeilingsWanted::kAny);

// Brings the cache up to date, for whoever has other things to do meanwhile.
void measure_ceilings(TargetKind target);

}  // namespace kernelpro
