// SPDX-License-Identifier: Apache-2.0
#include "measure/ceilings/watch.h"

#include <algorithm>

#include "diagnose/roofline/roofline.h"
#include "profile/collect/collect.h"

namespace kernelpro {

bool CeilingWatch::wants(const Evidence& evidence, const Ceilings& ceilings) const {
  if (left_ <= 0) return false;
  const Roofline roof = roofline(evidence);
  if (roof.beats() > kBeatsCeiling * accepted_) return true;
  return !ceilings.quiet && std::max(roof.beats(), roof.fraction) >= kNear;
}

void CeilingWatch::measured(const Evidence& evidence) {
  --left_;
  accepted_ = std::max(accepted_, roofline(evidence).beats());
}

bool check_ceilings(const std::function<Result<Machine>()>& remeasure, CeilingWatch* watch,
                    Machine* machine, Evidence* evidence) {
  if (!remeasure || !watch->wants(*evidence, machine->ceilings)) return false;
  const Result<Machine> again = remeasure();
  const Ceilings before = machine->ceilings;
  if (again) machine->ceilings = better_of(before, again->ceilings);
  set_ceilings(*machine, evidence);
  watch->measured(*evidence);
  return better_than(machine->ceilings, before);
}

}  // namespace kernelpro
