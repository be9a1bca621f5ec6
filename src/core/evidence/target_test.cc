// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/target.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

TEST(EvidenceTarget, IsUnknownOfTheoryAndTimes) {
  Evidence e;
  EXPECT_EQ(evidence_target(e), std::nullopt);
  e.set("timing.median", 100, "timing");
  e.set("task.compulsory_bytes", 1e6, "task");
  EXPECT_EQ(evidence_target(e), std::nullopt);
  e.texts["target"] = "abacus";
  EXPECT_EQ(evidence_target(e), std::nullopt) << "a target of a later version";
}

TEST(EvidenceTarget, FollowsFromMetricsOfOneTarget) {
  Evidence cpu;
  cpu.set("cpu.threads_busy", 1, "timing");
  EXPECT_EQ(evidence_target(cpu), TargetKind::kCpu);
  Evidence gpu;
  gpu.set("plan.kernels", 1, "launch plan");
  EXPECT_EQ(evidence_target(gpu), TargetKind::kCuda);
  Evidence call;
  call.kernels.push_back({"k", {}});
  EXPECT_EQ(evidence_target(call), std::nullopt);
  call.kernels[0].facts.set("launch__grid_size", 8, "launch plan");
  EXPECT_EQ(evidence_target(call), TargetKind::kCuda);
}

// The text comes before metrics, the call's metrics before its kernels'.
TEST(EvidenceTarget, HasOneOrder) {
  Evidence e;
  e.kernels.push_back({"k", {}});
  e.kernels[0].facts.set("launch__grid_size", 8, "launch plan");
  e.set("cpu.threads_busy", 1, "timing");
  EXPECT_EQ(evidence_target(e), TargetKind::kCpu);
  e.texts["target"] = "abacus";
  EXPECT_EQ(evidence_target(e), TargetKind::kCpu);
  e.texts["target"] = "cuda";
  EXPECT_EQ(evidence_target(e), TargetKind::kCuda);
}

}  // namespace
}  // namespace kernelpro
