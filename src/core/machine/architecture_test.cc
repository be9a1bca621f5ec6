// SPDX-License-Identifier: Apache-2.0
#include "core/machine/architecture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace kernelpro {
namespace {

TEST(Architecture, ReadsNames) {
  EXPECT_EQ(*Architecture::parse("sm_90"), (Architecture{9, 0, 0}));
  EXPECT_EQ(*Architecture::parse("sm_90a"), (Architecture{9, 0, 'a'}));
  EXPECT_EQ(*Architecture::parse("sm_120a"), (Architecture{12, 0, 'a'}));
  for (const char* name : {"sm_75", "sm_103a", "sm_120f"}) {
    EXPECT_EQ(Architecture::parse(name)->name(), name);
  }
  for (const char* other :
       {"", "x86-64", "sm_", "sm_9", "sm_90b", "sm_90ab", "sm_x", "compute_90"}) {
    EXPECT_FALSE(Architecture::parse(other)) << other;
  }
}

// As text, "sm_100a" sorts before "sm_90".
TEST(Architecture, IsOrderedByAge) {
  std::vector<Architecture> all;
  for (const char* name : {"sm_120a", "sm_90", "sm_100a", "sm_75", "sm_90a", "sm_86"}) {
    all.push_back(*Architecture::parse(name));
  }
  std::sort(all.begin(), all.end());
  std::vector<std::string> names;
  for (const Architecture& each : all) names.push_back(each.name());
  EXPECT_EQ(names,
            (std::vector<std::string>{"sm_75", "sm_86", "sm_90", "sm_90a", "sm_100a", "sm_120a"}));
}

TEST(Architecture, KnowsFeatures) {
  const auto has = [](const char* name, GpuFeature feature) {
    return Architecture::parse(name)->has(feature);
  };
  for (const char* name :
       {"sm_90", "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121"}) {
    EXPECT_TRUE(has(name, GpuFeature::kTma)) << name;
  }
  EXPECT_FALSE(has("sm_89", GpuFeature::kTma));
  EXPECT_TRUE(has("sm_90a", GpuFeature::kWgmma));
  EXPECT_FALSE(has("sm_100a", GpuFeature::kWgmma));
  EXPECT_FALSE(has("sm_999", GpuFeature::kTma));  // without a row, no features
}

TEST(Architecture, IsCompiledForWithWhatFeaturesNeed) {
  EXPECT_EQ(Architecture::parse("sm_90")->compile_name(), "sm_90a");
  EXPECT_EQ(Architecture::parse("sm_86")->compile_name(), "sm_86");
  EXPECT_EQ(Architecture::parse("sm_100a")->gencode(), "-gencode=arch=compute_100a,code=sm_100a");
}

}  // namespace
}  // namespace kernelpro
