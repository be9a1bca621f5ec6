// SPDX-License-Identifier: Apache-2.0
// Describes this machine with its ceilings: the highest rates that anything on it can reach.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "core/machine/machine.h"
#include "core/task/task.h"

namespace kernelpro {

enum class CeilingsWanted {
  kAny,    // cached ceilings where they are good enough
  kAgain,  // measure now, even if they are cached
};
// Describes this machine, with ceilings measured in a child process and cached
// (measure/ceilings/rounds.h): for the UTC day if the machine was quiet, else for five minutes.
// Keeps the best rates seen. Fails with kEnvironment when the target cannot be used here; the
// message gives the reason.
Result<Machine> describe_cpu_machine(CeilingsWanted wanted = CeilingsWanted::kAny);
Result<Machine> describe_cuda_machine(CeilingsWanted wanted = CeilingsWanted::kAny);

// The machine of this name as the cache has it, latest measurement first; it need not be present.
// nullopt: its ceilings were never measured here.
std::optional<Machine> remembered_machine(TargetKind target, const std::string& name);

// Updates the cache; meant for a background thread.
void measure_ceilings(TargetKind target);

}  // namespace kernelpro
