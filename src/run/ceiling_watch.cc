// SPDX-License-Identifier: Apache-2.0
#include "run/ceiling_watch.h"

#include <algorithm>

#include "core/evidence/rates.h"
#include "diagnose/roofline/roofline.h"

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

Ceilings best_known(const Ceilings& a, const Ceilings& b) {
  Ceilings best = better_of(a, b);
  best.rounds = std::max(a.rounds, b.rounds);  // the later ones include the earlier ones
  return best;
}

bool check_ceilings(const Remeasure& remeasure, CeilingWatch* watch, const Ceilings& here,
                    Machine* machine, Evidence* evidence) {
  const Ceilings before = machine->ceilings;
  if (better_than(here, before)) machine->ceilings = best_known(before, here);
  set_ceilings(*machine, evidence);
  if (remeasure && watch->wants(*evidence, machine->ceilings)) {
    const auto again = remeasure();
    const bool impossible = again && !*again;
    if (again && *again) machine->ceilings = better_of(machine->ceilings, **again);
    if (!impossible) {
      set_ceilings(*machine, evidence);
      watch->measured(*evidence);
    }
  }
  return better_than(machine->ceilings, before);
}

}  // namespace kernelpro
