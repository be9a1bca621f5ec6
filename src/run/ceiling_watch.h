// SPDX-License-Identifier: Apache-2.0
// When a candidate's result is a reason to remeasure the machine's ceilings: it beats them, or it
// comes close to ceilings from a busy machine. One thread at a time.
#pragma once

#include <functional>
#include <optional>

#include "base/error.h"
#include "core/evidence/evidence.h"
#include "core/machine/machine.h"

namespace kernelpro {

class CeilingWatch {
 public:
  // Near a ceiling, diagnosis and search conclude that nothing is left to gain. Remeasure ceilings
  // from a busy machine before that.
  static constexpr double kNear = 0.9;
  static constexpr int kMost = 3;  // remeasurements per sitting

  // Whether this evidence is a reason to remeasure. A kernel that a new measurement did not explain
  // triggers another only if it gets faster by kBeatsCeiling again.
  bool wants(const Evidence& evidence, const Ceilings& ceilings) const;
  // The ceilings were remeasured; `evidence` holds the new ones.
  void measured(const Evidence& evidence);

 private:
  int left_ = kMost;
  double accepted_ = 1;  // how far ceilings were exceeded after remeasuring
};

// The best of two measurements of one machine, of which one may include the other.
Ceilings best_known(const Ceilings& a, const Ceilings& b);

using Remeasure = std::function<Result<std::optional<Ceilings>>()>;
// Puts ceilings into a station's new evidence: the best known, of the machine and of the station,
// `here`. If the evidence is a reason to doubt them, has them remeasured (Station::remeasure); a
// measurement that fails or is not possible changes nothing. True when those of `machine` are
// better now: a rate improved, or they are known to be undisturbed. What was diagnosed earlier is
// then diagnosed anew.
bool check_ceilings(const Remeasure& remeasure, CeilingWatch* watch, const Ceilings& here,
                    Machine* machine, Evidence* evidence);

}  // namespace kernelpro
