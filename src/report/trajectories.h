// SPDX-License-Identifier: Apache-2.0
// A run as data: for each evaluated candidate its writer's prompt and reply, its measurements and
// its diagnosis.
#pragma once

#include <string>

#include "base/error.h"

namespace kernelpro {

// JSON lines in the order of evaluation. Members: run (task, target, machine), candidate, parent,
// position, proposer, idea, answers, language, source, knobs, parent_source, prompt, reply, writer,
// request, usage (null where no writer was asked), evaluation, time_us (null unless correct),
// start_us, speedup_over_parent (null unless both are correct), diagnosis. `written`: only
// candidates with a prompt. Fails as Store::open does.
Result<std::string> trajectories(const std::string& directory, bool written);

}  // namespace kernelpro
