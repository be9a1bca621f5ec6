// SPDX-License-Identifier: Apache-2.0
#include "measure/station/energy.h"

namespace kernelpro {

Result<void> add_energy(Evaluator* evaluator, const Objective& objective, const Subject& subject,
                        const Subject* versus, const EnergyPlan& plan, Evaluation* evaluation) {
  auto* correct = std::get_if<Correct>(&evaluation->outcome);
  if (correct == nullptr || !worth_energy(*correct, objective)) return {};
  if (subject.binaries.front().form == Binary::Form::kModule) {
    correct->notes.push_back("the energy of a PyTorch candidate is not measured");
    return {};
  }
  KP_ASSIGN(auto energy, evaluator->energy(subject, versus, plan));
  if (auto* outcome = std::get_if<Outcome>(&energy)) {
    evaluation->outcome = std::move(*outcome);
  } else {
    correct->energy = std::move(std::get<Energy>(energy));
  }
  return {};
}

}  // namespace kernelpro
