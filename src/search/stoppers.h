// SPDX-License-Identifier: Apache-2.0
// When a run ends. A stopper inspects the state of the run and returns its reason to stop, one line
// for display, or nothing. Stoppers are pure and compose with `first_of`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernelpro {

struct Standing {
  int evaluations = 0;             // finished, over all sittings
  double elapsed_s = 0;            // run time, over all sittings
  double fraction_of_ceiling = 0;  // of the best; 0 unknown
  bool ceiling_disturbed = false;  // other work ran during every measurement of the ceiling
  int since_best = 0;              // evaluations since the best was found
  bool has_correct = false;
};

class Stopper {
 public:
  virtual ~Stopper() = default;
  virtual std::optional<std::string> reason(const Standing& standing) const = 0;
};

// A limit of 0 or less disables the stopper.
std::unique_ptr<Stopper> stop_after_evaluations(int most);
std::unique_ptr<Stopper> stop_after_seconds(double most);
// A ceiling that was measured under other load, or beaten by more than kBeyondCeiling
// (core/machine/machine.h), never stops a run: it is no measure of what is left to win.
std::unique_ptr<Stopper> stop_near_ceiling(double fraction);
// For writers that cost: ends a run when the next evaluation is expected to gain less than `least`
// (0.005 is 0.5 %). Expected is half of what the speed of light leaves, times the chance of a new
// best after as many evaluations without one (Laplace's rule of succession). Never where the
// ceiling is no measure of what is left.
std::unique_ptr<Stopper> stop_when_little_is_expected(double least);
// The same for display and tests; nullopt: not known.
std::optional<double> expected_gain(const Standing& standing);
std::unique_ptr<Stopper> stop_at_plateau(int evaluations_without_better);
// Returns the reason of the first stopper, in order, that has one.
std::unique_ptr<Stopper> first_of(std::vector<std::unique_ptr<Stopper>> stoppers);

}  // namespace kernelpro
