// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/metrics.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace kernelpro {
namespace {

TEST(Metrics, RowsAreComplete) {
  std::set<std::string_view> names;
  for (const Metric& metric : metrics()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name << " has two rows";
    EXPECT_FALSE(metric.unit.empty() || metric.description.empty()) << metric.name;
    EXPECT_EQ(find_metric(metric.name), &metric);
  }
  EXPECT_EQ(find_metric("no.such"), nullptr);
}

TEST(Metrics, EachIsOfOneFamily) {
  std::size_t all = 0;
  std::set<std::string_view> names, words;
  for (int i = 0; i < kFamilies; ++i) {
    const auto family = static_cast<Family>(i);
    const std::span<const Metric> rows = metrics_of(family);
    EXPECT_FALSE(rows.empty()) << family_name(family);
    for (const Metric& metric : rows) EXPECT_EQ(metric.family, family) << metric.name;
    all += rows.size();
    EXPECT_EQ(family_from_name(family_name(family)), family);
    names.insert(family_name(family));
    words.insert(family_words(family));
  }
  EXPECT_EQ(all, metrics().size()) << "the tables of a family do not follow one another";
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kFamilies));
  EXPECT_EQ(words.size(), names.size());
  EXPECT_FALSE(family_from_name("no-such"));
}

TEST(Metrics, LevelsAndScopesComeFromTheTables) {
  EXPECT_EQ(find_metric("cpu.perf.ipc")->level, Level::kCounters);
  EXPECT_EQ(find_metric("cpu.threads_busy")->level, Level::kTiming);
  EXPECT_EQ(find_metric("sm__maximum_warps_per_active_cycle_pct")->level, Level::kStatic);
  EXPECT_EQ(find_metric("sm__cycles_active.max")->level, Level::kCounters);
  EXPECT_EQ(find_metric("plan.kernels")->scope, Scope::kCall);
  EXPECT_EQ(find_metric("plan.matrix_elsewhere")->scope, Scope::kKernel);
  EXPECT_EQ(find_metric("machine.parallel_units")->scope, Scope::kMachine);
  for (const Level level : {Level::kCounters, Level::kStatic, Level::kTiming}) {
    EXPECT_EQ(level_from_name(level_name(level)), level);
  }
  EXPECT_FALSE(level_from_name("no-such"));
}

}  // namespace
}  // namespace kernelpro
