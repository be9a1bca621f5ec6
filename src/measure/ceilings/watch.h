// SPDX-License-Identifier: Apache-2.0
// When what a candidate reached is a reason to measure the machine's ceilings again: it beats them,
// or it comes near ceilings that were measured beside other work. Pure. One thread at a time.
#pragma once

#include <functional>

#include "base/error.h"
#include "core/evidence.h"
#include "core/machine.h"

namespace kernelpro {

class CeilingWatch {
 public:
  // Near a ceiling, diagnosis and search say that nothing is left to win. Before that, a ceiling
  // that was measured beside other work is measured again.
  static constexpr double kNear = 0.9;
  static constexpr int kMost = 3;  // times in a sitting

  // Is this evidence a reason? A kernel that a new measurement did not explain is none a second
  // time, unless it gets faster by kBeatsCeiling again.
  bool wants(const Evidence& evidence, const Ceilings& ceilings) const;
  // They were measured again; `evidence` has the new ones.
  void measured(const Evidence& evidence);

 private:
  int left_ = kMost;
  double accepted_ = 1;  // how far ceilings were beaten after measuring again
};

// Measures the ceilings again when `evidence` is a reason, and puts the better ones into both.
// `remeasure` may be empty, and may fail: then everything stays. True when a rate got better or
// the ceilings are known to be undisturbed now.
bool check_ceilings(const std::function<Result<Machine>()>& remeasure, CeilingWatch* watch,
                    Machine* machine, Evidence* evidence);

}  // namespace kernelpro
