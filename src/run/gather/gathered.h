// SPDX-License-Identifier: Apache-2.0
// Evidence with where it comes from.
#pragma once

#include <string>
#include <vector>

#include "core/evidence.h"

namespace kernelpro {

struct Gathered {
  Evidence evidence;
  std::string subject;             // "candidate 17 of runs/softmax", "report.ncu-rep"
  std::string basis;               // "machine code alone"; one phrase
  std::string ceilings;            // where they come from; "" = there are none
  std::vector<std::string> notes;  // sentences
};

}  // namespace kernelpro
