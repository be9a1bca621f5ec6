// SPDX-License-Identifier: Apache-2.0
// When a candidate's result is a reason to remeasure the machine's ceilings: it beats them, or it
// comes close to ceilings from a busy machine. Pure. One thread at a time.
#pragma once

#include <functional>

#include "base/error.h"
#include "core/evidence.h"
#include "core/machine.h"

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

// Remeasures the ceilings when `evidence` is a reason, and puts the better ones into both `machine`
// and `evidence`. `remeasure` may be empty and may fail: nothing changes then. True when a rate
// improved or the ceilings are now known to be undisturbed.
bool check_ceilings(const std::function<Result<Machine>()>& remeasure, CeilingWatch* watch,
                    Machine* machine, Evidence* evidence);

}  // namespace kernelpro
