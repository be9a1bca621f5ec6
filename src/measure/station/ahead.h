// SPDX-License-Identifier: Apache-2.0
// The parts of a station that do not depend on its task, made in the background while the task is
// still being opened: compilers report their versions, the evaluator's processes create contexts.
#pragma once

#include <memory>

#include "measure/cuda/start_ahead.h"
#include "measure/station/settings.h"

namespace kernelpro {

struct ToolsBegun;  // measure/station/target.cc
using ToolsAhead = std::shared_ptr<ToolsBegun>;

// Uses of `settings`: target, gpu, include_dirs, timing. `native`: whether candidates other than
// PyTorch files are to come, whose processes then start too. Returns at once.
ToolsAhead begin_tools(const StationSettings& settings, bool native, const ModulesAhead& modules);

}  // namespace kernelpro
