// SPDX-License-Identifier: Apache-2.0
// What the evidence lacks, the way reports list it.
#pragma once

#include <string>
#include <vector>

#include "core/evidence/evidence.h"

namespace kernelpro {

// Everything that is missing for one reason.
struct NotSeen {
  std::vector<std::string> names;  // for people: "hardware counters", "timing of softmax"
  std::string reason;
  std::string next;
};

// About the call, then about its kernels.
std::vector<NotSeen> not_seen(const Evidence& evidence);

}  // namespace kernelpro
