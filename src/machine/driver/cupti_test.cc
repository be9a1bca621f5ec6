// SPDX-License-Identifier: Apache-2.0
// CUPTI's host part knows every chip, so no GPU is needed to check that the registry's counters
// exist and how many passes they take.
#include "machine/driver/cupti_host.h"

#if KERNELPRO_HAVE_CUPTI

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/text.h"
#include "core/evidence/counters.h"
#include "core/evidence/metrics.h"

namespace kernelpro {
namespace {

struct Chip {
  const char* name;
  int most_missing;  // registry counters that it lacks
  std::size_t triage_passes, full_passes;
};
// Passes for one order of the metrics; a better order is sought at run time.
constexpr Chip kChips[] = {
    {"GH100", 0, 3, 14}, {"GA100", 4, 3, 14}, {"AD102", 4, 4, 14},
    {"GB100", 3, 4, 14}, {"GB202", 3, 5, 15},
};

std::vector<std::string> on_chip(CounterSet set, const CounterHost& host,
                                 std::vector<std::string>* missing) {
  std::vector<std::string> names;
  for (const std::string& metric : counters_of(set)) {
    const std::string name = counter_on(metric, host.chip());
    (host.has(name) ? names : *missing).push_back(name);
  }
  return names;
}

TEST(CuptiHost, HasTheRegistrysCountersInFewPasses) {
  if (const auto library = cupti(); !library) GTEST_SKIP() << library.error().text();
  for (const Chip& chip : kChips) {
    const Result<CounterHost> host = CounterHost::open(chip.name);
    ASSERT_TRUE(host) << host.error().text();
    for (const auto& [set, most] : {std::pair{CounterSet::kTriage, chip.triage_passes},
                                    std::pair{CounterSet::kFull, chip.full_passes}}) {
      std::vector<std::string> missing;
      std::vector<std::string> names = on_chip(set, *host, &missing);
      EXPECT_LE(static_cast<int>(missing.size()), chip.most_missing)
          << chip.name << " lacks " << join_text(missing, ", ");
      const auto config = host->schedule(names);
      ASSERT_TRUE(config) << config.error().text();
      EXPECT_GE(config->passes, 1u);
      EXPECT_LE(config->passes, most) << chip.name << " " << counter_set_name(set);
      std::printf("%-6s %-6s %3zu counters, %2zu passes; not there: %s\n", chip.name,
                  std::string(counter_set_name(set)).c_str(), names.size(), config->passes,
                  missing.empty() ? "none" : join_text(missing, ", ").c_str());
    }
  }
}

// On the chip that the registry takes its names from, all resolve, including those not collected.
TEST(CuptiHost, KnowsEveryRow) {
  if (const auto library = cupti(); !library) GTEST_SKIP() << library.error().text();
  const Result<CounterHost> host = CounterHost::open("GH100");
  ASSERT_TRUE(host) << host.error().text();
  for (const Metric& metric : metrics_of(Family::kCounters)) {
    EXPECT_TRUE(host->has(std::string(metric.name))) << metric.name;
  }
  EXPECT_FALSE(host->has("dram__bytes_red.sum"));
  EXPECT_FALSE(host->has("dram__bytes_read"));  // without its roll-up
  EXPECT_FALSE(host->has(""));
  EXPECT_FALSE(host->schedule({"dram__bytes_read.sum", "nonsense"}));
}

TEST(CuptiHost, RefusesUnknownChips) {
  if (const auto library = cupti(); !library) GTEST_SKIP() << library.error().text();
  for (const char* chip : {"", "GX999", "gh100"}) {
    const Result<CounterHost> host = CounterHost::open(chip);
    ASSERT_FALSE(host) << chip;
    EXPECT_FALSE(host.error().next.empty());
  }
}

TEST(CuptiHost, SaysWhatToDo) {
  const Error error =
      cupti_error("cu_->RangeProfilerStart(&start)", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
  EXPECT_TRUE(contains(error.message, "cuptiRangeProfilerStart")) << error.message;
  EXPECT_TRUE(contains(error.next, "NVreg_RestrictProfilingToAdminUsers=0")) << error.next;
  EXPECT_TRUE(contains(cupti_error("f", CUPTI_ERROR_HARDWARE_BUSY).next, "dcgmi profile --pause"));
  EXPECT_FALSE(cupti_error("f", CUPTI_ERROR_UNKNOWN).next.empty());
}

}  // namespace
}  // namespace kernelpro

#endif
