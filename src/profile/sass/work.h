// SPDX-License-Identifier: Apache-2.0
// What one instruction does (core/evidence/work_kind.h). Pure.
#pragma once

#include "core/evidence/work_kind.h"
#include "profile/sass/program.h"

namespace kernelpro {

bool is_move(const SassInstruction& i);    // a copy between registers, whatever it is called
bool is_select(const SassInstruction& i);  // a minimum, maximum, comparison or selection

// Addresses are integers here: what a result serves is not looked at.
WorkKind kind_of_work(const SassInstruction& i);

}  // namespace kernelpro
