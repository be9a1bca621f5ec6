// SPDX-License-Identifier: Apache-2.0
// What becomes of a winner in cases that the search did not know (Task::held_out): after it was
// confirmed, it and the start are compiled, checked and timed there, in a target of each case's own
// (Bench::measure_held_out). A winner that fails one stays the winner, and is said to fail.
#pragma once

#include <string>
#include <vector>

#include "core/evaluation.h"

namespace kernelpro {

struct HeldOut {
  std::string case_name;
  // Of the winner; `versus` the start, where that is another kernel and correct there.
  Evaluation evaluation;
  std::string problem = {};  // why it could not be measured, for people; "" it was
};

// Geometric mean of the speed-ups over the start; 0 where one is missing or not correct.
double held_out_speedup(const std::vector<HeldOut>& cases);
// Does the winner give a wrong result, or none, in one of them?
bool held_out_failed(const std::vector<HeldOut>& cases);
// "1.84x the start (1.8 to 1.88)", "35 us", "FAILED: wrong-result ...", "not measured: ...".
std::string held_out_outcome(const HeldOut& one);
// Lines for people, with what to do next after a failure; "" where there are no such cases.
std::string held_out_text(const std::vector<HeldOut>& cases);

// {"speedup": ..., "failed": ..., "cases": [...]}
std::string held_out_to_json(const std::vector<HeldOut>& cases);

}  // namespace kernelpro
