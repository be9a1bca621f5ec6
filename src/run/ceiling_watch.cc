// SPDX-License-Identifier: Apache-2.0
#include "run/ceiling_watch.h"

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

bool check_ceilings(const Remeasure& remeasure, CeilingWatch* watch, const Ceilings& then,
                    Machine* machine, Evidence* evidence) {
  if (better_than(machine->ceilings, then)) set_ceilings(*machine, evidence);
  if (!remeasure || !watch->wants(*evidence, machine->ceilings)) return false;
  const auto again = remeasure();
  if (again && !*again) return false;
  const Ceilings before = machine->ceilings;
  if (again) machine->ceilings = better_of(before, **again);
  set_ceilings(*machine, evidence);
  watch->measured(*evidence);
  return better_than(machine->ceilings, before);
}

}  // namespace kernelpro
