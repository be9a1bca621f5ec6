// SPDX-License-Identifier: Apache-2.0
#include "core/plan/refusal.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

TEST(Refusal, ANameIsReadAsItIsWritten) {
  for (int i = 0; i < static_cast<int>(RefusalKind::kBrokenRule); ++i) {
    const auto kind = static_cast<RefusalKind>(i);
    if (kind == RefusalKind::kOutput) continue;
    EXPECT_EQ(refusal_kind(refusal_name(kind)), kind) << refusal_name(kind);
  }
}

TEST(Refusal, OutputsAreAFamilyAndOtherNamesAreTheCandidatesRules) {
  EXPECT_EQ(refusal_kind("output-shape"), RefusalKind::kOutput);
  EXPECT_EQ(refusal_kind("outputs"), RefusalKind::kBrokenRule);
  EXPECT_EQ(refusal_kind("stream-escape"), RefusalKind::kBrokenRule);
  EXPECT_EQ(refusal_kind("environment "), RefusalKind::kBrokenRule);
}

}  // namespace
}  // namespace kernelpro
