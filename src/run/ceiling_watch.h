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

// For new evidence of a station. Puts the machine's ceilings into it where they are better than the
// station's, `then`. If it is a reason to doubt them, has them remeasured (Station::remeasure), and
// puts the better ones into both; a measurement that fails or is not possible changes nothing. True
// when a rate improved or the ceilings are now known to be undisturbed.
using Remeasure = std::function<Result<std::optional<Ceilings>>()>;
bool check_ceilings(const Remeasure& remeasure, CeilingWatch* watch, const Ceilings& then,
                    Machine* machine, Evidence* evidence);

}  // namespace kernelpro
