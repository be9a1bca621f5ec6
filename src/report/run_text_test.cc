// SPDX-License-Identifier: Apache-2.0
// A run as text has the same report as its folder: the winner, the times and the search's tree.
#include "run/store/run_text.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"
#include "measure/station/testing/fake_target.h"
#include "report/report.h"
#include "run/launch.h"
#include "run/store/store.h"
#include "run/store/testing.h"

namespace kernelpro {
namespace {

TEST(RunText, HasTheReportOfItsFolder) {
  TempDir dir;
  RunSettings settings;
  settings.directory = join(dir.path(), "run");
  settings.max_evaluations = 25;
  settings.near_ceiling = 0;
  testing::FakeSettings fake;
  fake.landscape = testing::smooth_landscape;
  ASSERT_TRUE(optimize_with(testing::fake_station(fake), testing::fake_task(), settings, {}));
  const std::string text = join(dir.path(), "run.jsonl");
  {
    const auto store = Store::open(settings.directory, Store::Mode::kRead);
    ASSERT_TRUE(store) << store.error().text();
    ASSERT_TRUE(write_file(text, run_to_text(*(*store)->whole())));
  }
  for (const auto report : {json_report, text_report, html_report}) {
    const auto of_folder = report(settings.directory);
    const auto of_text = report(text);
    ASSERT_TRUE(of_folder) << of_folder.error().text();
    ASSERT_TRUE(of_text) << of_text.error().text();
    EXPECT_EQ(replace_all(*of_text, text, settings.directory), *of_folder);
  }
}

// Between the two evaluations the machine got twice as fast; timed in turn, the change won 1.25x.
TEST(RunText, WhatAChangeDidIsFreeOfTheMachinesDrift) {
  const TempDir dir;
  {
    const auto store = storing::create(dir.path());
    const Candidate start = storing::candidate(1);
    ASSERT_TRUE(store->add({start, storing::candidate(2, 1)}));
    Evaluation first = storing::correct(1000), second = storing::correct(400);
    std::get<Correct>(first.outcome).versus.reset();
    std::get<Correct>(second.outcome).versus = {start.content_hash(), 1.25, 1.2, 1.3};
    Diagnosis before, after;
    before.account.us = 1000;
    after.account.us = 400;
    ASSERT_TRUE(store->finish(1, first, {}, before, 1));
    ASSERT_TRUE(store->finish(2, second, {}, after, 2));
  }
  const auto report = text_report(dir.path());
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_TRUE(contains(*report, "#1 to #2: 500 us became 400 us (1.25x)")) << *report;
}

}  // namespace
}  // namespace kernelpro
