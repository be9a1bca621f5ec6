// SPDX-License-Identifier: Apache-2.0
// What a case's inputs are made of.
#include "measure/cpu/case.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "measure/cpu/case_probes.h"
#include "measure/cpu/reference.h"
#include "measure/cpu/testing.h"

namespace kernelpro {
namespace {

// A reference on a machine where other work holds each computation up.
class HeldUp : public CpuReference {
 public:
  HeldUp(CpuReference& inner, double seconds) : inner_(inner), seconds_of_others_(seconds) {}

 protected:
  Result<std::optional<InputSet>> compute_set(const SetRequest& request) override {
    Result<std::optional<InputSet>> set = inner_.make_set(request);
    for (; runs_ < inner_.runs(); ++runs_) {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds_of_others_));
    }
    return set;
  }

 private:
  CpuReference& inner_;
  double seconds_of_others_;
};

TEST(CpuCase, OtherWorkTakesNoInputsAway) {
  const Task task = testing::scale_task();
  const Case& timed = task.cases[1];
  const TempDir cache;
  auto compiler = make_cpu_compiler(testing::compile_settings(cache.path()));
  ASSERT_TRUE(compiler) << compiler.error().text();
  const auto built = build_references(task, TargetKind::kCpu, **compiler, nullptr);
  ASSERT_TRUE(built) << built.error().text();
  CpuReferenceSettings settings;
  settings.worker = join(executable_dir(), "kernelpro-worker");
  CpuCaseSettings budget;
  budget.budget_s = budget.probe_budget_s = 0.1;  // of this reference: hundreds of computations
  std::vector<std::size_t> sets, probes;
  for (const double seconds : {0.0, 0.02}) {
    const auto reference = make_native_reference(task, timed, built->binaries[1], settings);
    ASSERT_TRUE(reference) << reference.error().text();
    HeldUp held_up(**reference, seconds);
    const auto made = make_cpu_case(task, timed, held_up, budget);
    ASSERT_TRUE(made) << made.error().text();
    sets.push_back(made->sets.size());
    probes.push_back(made->probes.size());
  }
  EXPECT_GT(sets[0], kFewestSets);
  EXPECT_GT(probes[0], kFewestProbes);
  EXPECT_GE(sets[1], sets[0] / 2);
  // By the luck of the draw, one in a dozen cases has a probe that rounding makes inconclusive.
  EXPECT_GE(probes[1] + 2, probes[0]);
}

}  // namespace
}  // namespace kernelpro
