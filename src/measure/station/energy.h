// SPDX-License-Identifier: Apache-2.0
// Puts what a call draws into a correct evaluation, where the objective asks for it. Blocks for
// seconds; one thread at a time, as its evaluator.
#pragma once

#include "core/objective.h"
#include "measure/judge/evaluator.h"

namespace kernelpro {

// `versus`: what to compare with, in turn; may be null. A candidate that goes wrong meanwhile has
// that as its outcome; a PyTorch one gets a note instead. Fails as Evaluator::energy does.
Result<void> add_energy(Evaluator* evaluator, const Objective& objective, const Subject& subject,
                        const Subject* versus, const EnergyPlan& plan, Evaluation* evaluation);

}  // namespace kernelpro
