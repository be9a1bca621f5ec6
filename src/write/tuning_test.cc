// SPDX-License-Identifier: Apache-2.0
#include "write/tuning.h"

#include <gtest/gtest.h>

#include <memory>

#include "write/proposer.h"
#include "write/repairs.h"
#include "write/testing.h"
#include "write/tuner/tuner.h"

namespace kernelpro {
namespace {

using namespace proposing;

struct TuningTest : ::testing::Test {
  Task t = task();
  std::vector<Known> all = {known(1, {}, 100)};
  ProposalRequest request;

  // A written source of its own, with three knobs.
  Known written(std::int64_t id, double us, const KnobValues& values = {}) {
    Known k = known(id, values, us);
    k.candidate.source += "// written\n";
    k.candidate.origin = {kExchangeName, 1, "an idea", {}};
    return k;
  }
  // What the tuner gives next.
  std::vector<Proposal> next(int each, std::int64_t best) {
    request.task = &t;
    request.parent = shared(all[0]);
    set_history(all, best, &request);
    Given given;
    const auto tuner = make_tuner();
    const auto count = tune_written(request, each, Tuned::kWrittenAndParent, *tuner, given.sink());
    EXPECT_TRUE(count);
    EXPECT_EQ(count.value_or(-1), static_cast<int>(given.proposals.size()));
    return given.proposals;
  }
};

TEST_F(TuningTest, AWrittenSourceIsTunedWhoeverTheParentIs) {
  all.push_back(written(2, 50));
  request.wanted = 1;
  const auto given = next(2, 2);
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].candidate.source, all[1].candidate.source);
  EXPECT_EQ(given[0].candidate.origin.parent, 2);
  EXPECT_NE(given[0].candidate.knobs, all[1].candidate.knobs);
}

TEST_F(TuningTest, TheBestHasTwiceTheBudgetAndAnOutcastAQuarter) {
  all.push_back(written(2, 50));
  all.push_back(written(3, 60));
  all.back().candidate.source += "// close\n";
  all.push_back(written(4, 90));
  all.back().candidate.source += "// far\n";
  next(8, 2);
  EXPECT_EQ(tuning_budget(request, all[1], 8), 16);
  EXPECT_EQ(tuning_budget(request, all[2], 8), 8);
  EXPECT_EQ(tuning_budget(request, all[3], 8), 2);
  EXPECT_EQ(tuning_budget(request, all[1], 0), 0);
}

TEST_F(TuningTest, ItEndsWhenTheBudgetIsSpent) {
  all.push_back(written(2, 50));
  request.wanted = 100;
  auto given = next(2, 2);
  EXPECT_EQ(given.size(), 4u);
  // Its fastest setting stays the parent, and the slower ones count as tried.
  for (const Proposal& each : given) {
    Known k = written(static_cast<std::int64_t>(all.size()) + 1, 55);
    k.candidate = each.candidate;
    all.push_back(k);
  }
  given = next(2, 2);
  for (const Proposal& each : given) {
    EXPECT_EQ(each.candidate.source, all[0].candidate.source) << "the parent's own, and no other";
  }
  EXPECT_TRUE(next(0, 2).empty());
}

TEST_F(TuningTest, TheStartIsTheWritersOwnWhereItIsTheParent) {
  request.wanted = 1;
  EXPECT_EQ(next(2, 1).size(), 1u);
  Given given;
  const auto tuner = make_tuner();
  const auto written_alone = tune_written(request, 2, Tuned::kWritten, *tuner, given.sink());
  EXPECT_EQ(written_alone.value_or(-1), 0);
}

TEST_F(TuningTest, TheLastEvaluationsAreTheBests) {
  all.push_back(written(2, 50));
  all.push_back(written(3, 40));
  all.back().candidate.source = "// no knobs\n" + std::string("void launch(){}\n");
  all.back().candidate.knobs.clear();
  request.wanted = 1;
  request.evaluations_left = 10;
  EXPECT_EQ(next(4, 3).size(), 1u);
  request.evaluations_left = 1;
  EXPECT_TRUE(next(4, 3).empty());
}

TEST_F(TuningTest, RepairsComeByWhatTheyPromise) {
  all[0].diagnosis.findings = {finding("a-finding", {"vectorize"})};  // likely 2x
  all.push_back(written(2, 0));
  all.back().candidate.origin.answers = FindingRef::parse("a-finding: vectorize");
  all.push_back(written(3, 40));
  all.push_back(written(4, 0));
  all.back().candidate.origin.parent = 3;
  next(0, 3);
  const History failed = {request.history[1], request.history[3]};
  EXPECT_DOUBLE_EQ(promised_us(all[1], request), 50);
  EXPECT_LT(promised_us(all[3], request), 40);
  const History repaired = worth_repairing(failed, request);
  ASSERT_EQ(repaired.size(), 1u) << "the other could at best be slower than the best";
  EXPECT_EQ(repaired[0]->id, 4);
  request.best = request.history[0];
  EXPECT_EQ(worth_repairing(failed, request).at(0)->id, 4);
  EXPECT_EQ(worth_repairing(failed, request).size(), 2u);
}

}  // namespace
}  // namespace kernelpro
