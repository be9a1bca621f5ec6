// SPDX-License-Identifier: Apache-2.0
// Results of a winner in cases that the search did not see (Task::held_out): after confirmation,
// the winner and the start are compiled, checked and timed there, each case in its own target
// (Bench::measure_held_out). A winner that fails one stays the winner, and the failure is reported.
#pragma once

#include <string>
#include <vector>

#include "core/evaluation/evaluation.h"

namespace kernelpro {

struct HeldOut {
  std::string case_name;
  // The winner's; `versus` is the start, if that is another kernel and correct there.
  Evaluation evaluation;
  std::string problem = {};  // why it could not be measured; "" = it was
};

// Geometric mean of the speed-ups over the start; 0 if one is missing or not correct.
double held_out_speedup(const std::vector<HeldOut>& cases);
// Whether the winner gives a wrong result, or none, in any case.
bool held_out_failed(const std::vector<HeldOut>& cases);
// "1.84x the baseline (95 % interval 1.8 to 1.88), 35 us a call", "35 us", "FAILED: wrong-result
// ...", "not measured: ...".
std::string held_out_outcome(const HeldOut& one);
// Lines for display, with what to do next after a failure; "" when there are no such cases.
std::string held_out_text(const std::vector<HeldOut>& cases);

// {"speedup": ..., "failed": ..., "cases": [...]}
std::string held_out_to_json(const std::vector<HeldOut>& cases);

}  // namespace kernelpro
