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

}  // namespace
}  // namespace kernelpro
