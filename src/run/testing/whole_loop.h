// SPDX-License-Identifier: Apache-2.0
// For tests: the whole loop in a temporary folder; only compiling and running are faked.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/stop.h"
#include "measure/station/testing/fake_target.h"
#include "run/run.h"
#include "run/store/store.h"

namespace kernelpro::testing {

struct LoopTest : ::testing::Test {
  static RunSettings settings_for(const std::string& directory, int evaluations = 40) {
    RunSettings settings;
    settings.directory = directory;
    settings.max_evaluations = evaluations;
    settings.near_ceiling = 0;
    settings.roles.tune = 0;  // sources are measured as they were written
    return settings;
  }

  static std::vector<StoredCandidate> stored_in(const std::string& directory) {
    const auto store = Store::open(directory, Store::Mode::kRead);
    EXPECT_TRUE(store) << store.error().text();
    auto all = (*store)->candidates();
    EXPECT_TRUE(all) << all.error().text();
    return std::move(*all);
  }

  // What was evaluated, in order: a run's whole course.
  static std::vector<std::string> course(const std::string& directory) {
    std::map<std::int64_t, std::string> by_order;
    for (const StoredCandidate& each : stored_in(directory)) {
      if (each.evaluated) by_order[each.order] = knobs_to_text(each.known.candidate.knobs);
    }
    std::vector<std::string> all;
    for (const auto& [order, text] : by_order) all.push_back(text);
    return all;
  }

  TempDir dir;
  std::string run = join(dir.path(), "run");
  FakeSettings fake;
  std::vector<Progress> seen;
  Observer observer = [this](const Progress& p) { seen.push_back(p); };
  void SetUp() override {
    clear_stop();
    fake.landscape = smooth_landscape;
    fake.log = join(dir.path(), "log");
  }
  int count(Event event) const {
    int n = 0;
    for (const Progress& p : seen) n += p.event == event;
    return n;
  }
};

}  // namespace kernelpro::testing
