// SPDX-License-Identifier: Apache-2.0
// Evidence in, diagnosis out. Pure and deterministic: the same evidence gives the same bytes.
#pragma once

#include "core/evaluation/evaluation.h"
#include "core/evidence/evidence.h"
#include "core/finding/finding.h"
#include "diagnose/record.h"

namespace kernelpro {

// Classifies by the roofline, then runs every tool in tools.cc whose trigger matches the class.
// Ranks with the record of what came of earlier findings; the diagnosis keeps its hash.
Diagnosis diagnose(const Evidence& evidence, const ToolRecord& record = {});
// Of what was measured: for a kernel that is not correct, its outcome is all there is to say.
Diagnosis diagnose(const Evaluation& evaluation, const Evidence& evidence,
                   const ToolRecord& record = {});

}  // namespace kernelpro
