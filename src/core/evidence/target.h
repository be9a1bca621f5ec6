// SPDX-License-Identifier: Apache-2.0
// Which target a candidate's evidence is about. Pure.
#pragma once

#include <optional>

#include "core/evidence/evidence.h"
#include "core/task/task.h"

namespace kernelpro {

// The first that is known of: the text "target", which collectors and importers write; the first of
// the evidence's own metrics whose family exists for one target only; the same of its kernels'
// metrics. nullopt: none of them, such as for a task's theory alone.
std::optional<TargetKind> evidence_target(const Evidence& evidence);
// Sets that text.
void set_evidence_target(TargetKind target, Evidence* evidence);

}  // namespace kernelpro
