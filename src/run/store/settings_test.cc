// SPDX-License-Identifier: Apache-2.0
#include "run/store/settings.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace kernelpro {
namespace {

TEST(Settings, RoundTrip) {
  RunSettings s;
  s.target = TargetKind::kCuda;
  s.proposer = "replay";
  s.replay_from = "x";
  s.seed = 9;
  s.search = "beam";
  s.preset = "paper";
  s.max_evaluations = 3;
  s.max_seconds = 4.5;
  s.near_ceiling = 0.5;
  s.plateau = 6;
  s.timeout_s = 7;
  s.exchange_wait_s = 8;
  s.roles.coder = "openai:m";
  s.roles.fixer = "anthropic:f";
  s.roles.one_call = true;
  s.roles.ideas = 5;
  s.roles.max_tokens = 1LL << 40;
  s.roles.max_usd = 0.25;
  s.roles.max_calls = 12;
  s.feedback = Feedback::kRaw;
  s.prompts = "mine";
  s.start_from = {"a", "b"};
  const auto back = settings_from_json(settings_to_json(s));
  ASSERT_TRUE(back);
  EXPECT_EQ(settings_to_json(*back), settings_to_json(s));
  EXPECT_EQ(back->target, TargetKind::kCuda);
  EXPECT_EQ(back->search, "beam");
  EXPECT_EQ(back->preset, "paper");
  EXPECT_EQ(settings_from_json("{}")->preset, "default") << "a run of an earlier version";
  EXPECT_EQ(back->roles.max_tokens, 1LL << 40);
  EXPECT_EQ(back->feedback, Feedback::kRaw);
  EXPECT_EQ(back->start_from.size(), 2u);
  EXPECT_FALSE(settings_from_json("{\"seed\":\"many\"}"));
  EXPECT_FALSE(settings_from_json("rubbish"));
}

// Runs of earlier versions must open, and later versions must read what this one writes.
TEST(Settings, TheStoredFormStays) {
  RunSettings s;
  s.target = TargetKind::kCuda;
  s.gpus = {"0", "1"};
  s.stations = {"box"};
  s.counters = CounterSet::kFull;
  s.jobs = 3;  // of this process, like those below
  s.redraw = true;
  s.timing = false;
  s.standby = 4;
  const std::string text = settings_to_json(s);
  EXPECT_TRUE(text.starts_with(
      "{\"target\":\"cuda\",\"proposer\":\"tuner\",\"replay_from\":\"\",\"seed\":1,"))
      << text;
  EXPECT_TRUE(contains(text,
                       "\"timeout_s\":30.0,\"exchange_wait_s\":3600.0,\"objective\":\"time\","
                       "\"policy\":\"contract\",\"probes\":true,\"gpu\":\"\",\"gpus\":[\"0\","
                       "\"1\"],\"stations\":[\"box\"],\"include_dirs\":[],\"counters\":\"full\","
                       "\"profile_each\":false,"
                       "\"record\":\"\""))
      << text;
  for (const char* name : {"jobs", "redraw", "timing", "standby", "modules_ahead", "evaluations"}) {
    EXPECT_FALSE(contains(text, "\"" + std::string(name) + "\"")) << text;
  }
  EXPECT_EQ(settings_from_json(text)->gpus, s.gpus);
  EXPECT_EQ(settings_from_json(text)->stations, s.stations);
  EXPECT_FALSE(settings_from_json("{\"policy\":\"none\"}"));
}

}  // namespace
}  // namespace kernelpro
