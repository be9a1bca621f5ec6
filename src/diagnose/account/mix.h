// SPDX-License-Identifier: Apache-2.0
// What the instructions of a kernel are, from samples, or those of its hot loops from machine code.
// Pure.
#pragma once

#include "core/evidence/evidence.h"
#include "core/finding/account.h"

namespace kernelpro {

// Fills account->mix and hot_instructions. Without samples it leaves them empty where the loops
// that were counted are not those that do the work: the kernel has matrix instructions, these have
// none.
void add_mix(const Evidence& facts, KernelAccount* account);

}  // namespace kernelpro
