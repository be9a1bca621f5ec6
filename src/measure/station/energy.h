// SPDX-License-Identifier: Apache-2.0
// Adds the energy per call to a correct evaluation, if the objective needs it. Blocks for seconds;
// one thread at a time, as its evaluator.
#pragma once

#include "core/evaluation/objective.h"
#include "measure/judge/evaluator.h"

namespace kernelpro {

// `versus`: the subject to alternate with; may be null. A candidate that fails meanwhile gets that
// failure as its outcome; a PyTorch one gets a note instead. Fails as Evaluator::energy does.
Result<void> add_energy(Evaluator* evaluator, const Objective& objective, const Subject& subject,
                        const Subject* versus, const EnergyPlan& plan, Evaluation* evaluation);

}  // namespace kernelpro
