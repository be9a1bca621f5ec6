// SPDX-License-Identifier: Apache-2.0
// The stations on this machine. Those of several GPUs share a workshop.
#pragma once

#include <memory>

#include "core/machine/machine.h"
#include "measure/station/ahead.h"
#include "measure/station/station.h"

namespace kernelpro {

class ModuleReference;  // task/reference/module_reference.h

// `module`: a running reference that has described the task; null: each station of a task with a
// Module starts one. It and `tools` (null: each station finds its own) are for the first GPU. A
// station does not open, with kEnvironment, when this machine or this build lacks the target.
StationMaker local_stations(std::shared_ptr<ModuleReference> module = nullptr,
                            ToolsAhead tools = nullptr);

// Stations that compile for `machine`, which need not be here. REQUIRES: the cuda target, and
// orders that only inspect (Order::inspect).
StationMaker compiling_stations(const Machine& machine);

}  // namespace kernelpro
