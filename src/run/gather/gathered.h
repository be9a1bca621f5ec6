// SPDX-License-Identifier: Apache-2.0
// Evidence and its origin.
#pragma once

#include <string>
#include <vector>

#include "core/evidence/evidence.h"
#include "core/evidence/samples.h"

namespace kernelpro {

struct Gathered {
  Evidence evidence;
  std::string subject;             // "candidate 17 of runs/softmax", "report.ncu-rep"
  std::string basis;               // "machine code alone"; one phrase
  std::string ceilings;            // their origin; "" = there are none
  std::vector<std::string> notes;  // sentences
  SampleAnswers samples;  // of the kernels, where they were sampled; functions as in their names
};

}  // namespace kernelpro
