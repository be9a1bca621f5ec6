// SPDX-License-Identifier: Apache-2.0
// What the instructions of a kernel's hot loops are, from machine code. Pure.
#pragma once

#include "core/evidence/evidence.h"
#include "core/finding/account.h"

namespace kernelpro {

// Fills account->mix and hot_instructions. Leaves them empty where the loops that were counted are
// not those that do the work: the kernel has matrix instructions, and these loops have none.
void add_mix(const Evidence& facts, KernelAccount* account);

}  // namespace kernelpro
