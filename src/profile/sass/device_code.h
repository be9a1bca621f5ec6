// SPDX-License-Identifier: Apache-2.0
// Evidence about each kernel of a call from its compiled code and its launches: ptxas, SASS, launch
// shape, occupancy.
#pragma once

#include <map>
#include <string>

#include "core/binary.h"
#include "core/evidence.h"
#include "core/launch_plan.h"
#include "core/machine.h"

namespace kernelpro {

struct CodeFacts {
  std::map<std::string, KernelEvidence> kernels;  // by mangled name
  std::map<std::string, double> weights;  // an estimate of each one's work, to order them by
};

// Of the kernels that `plan` launches; of all in the cubin when it has no nodes. Blocks while the
// disassembler runs. What could not be read is noted as missing in `call`.
CodeFacts device_code(const Binary& binary, const LaunchPlan& plan, const Machine& machine,
                      Evidence* call);

}  // namespace kernelpro
