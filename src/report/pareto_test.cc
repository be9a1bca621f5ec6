// SPDX-License-Identifier: Apache-2.0
#include "report/pareto.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace kernelpro {
namespace {

StoredCandidate measured(std::int64_t id, double us, double millijoules) {
  StoredCandidate candidate;
  candidate.known.id = id;
  candidate.evaluated = true;
  Correct correct;
  correct.timings = {{"large", us, us, us, 20, "graph replay"}};
  if (millijoules > 0) {
    Energy energy;
    energy.case_name = "large";
    energy.millijoules = millijoules;
    correct.energy = energy;
  }
  candidate.known.evaluation.outcome = correct;
  return candidate;
}

std::vector<std::int64_t> front_of(const RunView& view) {
  std::vector<std::int64_t> ids;
  for (const StoredCandidate* candidate : pareto_front(view)) ids.push_back(candidate->known.id);
  return ids;
}

TEST(Pareto, HoldsWhatNoneBeatsInBoth) {
  RunView view;
  view.candidates = {measured(1, 200, 90), measured(2, 100, 60), measured(3, 101, 50),
                     measured(4, 105, 55), measured(5, 90, 0),   measured(6, 100, 70)};
  EXPECT_EQ(front_of(view), (std::vector<std::int64_t>{2, 3}));
  const std::string text = energy_lines(view);
  EXPECT_TRUE(contains(text, "#3  101 us  50 mJ")) << text;
  EXPECT_FALSE(contains(text, "#4")) << text;
}

TEST(Pareto, SaysNothingWithoutEnergy) {
  RunView view;
  view.candidates = {measured(1, 200, 0)};
  EXPECT_TRUE(front_of(view).empty());
  EXPECT_EQ(energy_lines(view), "");
}

}  // namespace
}  // namespace kernelpro
