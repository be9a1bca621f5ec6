// SPDX-License-Identifier: Apache-2.0
// The loop with kernels from elsewhere: replays, writers that answer in a folder, packed runs.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "measure/station/testing/fake_target.h"
#include "run/launch.h"
#include "run/run.h"
#include "run/seeds.h"
#include "run/store/pack.h"
#include "run/store/recorded.h"
#include "run/store/run_text.h"
#include "run/store/store.h"
#include "run/testing/whole_loop.h"

namespace kernelpro {
namespace {

using testing::fake_station;
using testing::fake_task;
using testing::knob;
using testing::LoopTest;

TEST_F(LoopTest, ReplayMeasuresARecordedRunAgain) {
  ASSERT_TRUE(optimize_with(fake_station(fake), fake_task(), settings_for(run, 25), observer));
  RunSettings settings = settings_for(join(dir.path(), "again"), 100);
  settings.proposer = "replay";
  settings.replay_from = run;
  const auto result = optimize_with(fake_station(fake), fake_task(), settings, observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->evaluations, 25);
  EXPECT_EQ(course(settings.directory), course(run));
  EXPECT_TRUE(contains(result->stopped_by, "recorded")) << result->stopped_by;

  // The recorded results stay with the replay, even when the recording is gone.
  const auto before = read_recorded(run);
  ASSERT_TRUE(before);
  ASSERT_EQ(before->results.size(), 25U);
  const auto store = Store::open(settings.directory, Store::Mode::kRead);
  ASSERT_TRUE(store);
  const Recorded kept = recorded_from_json((*store)->header()->recorded_json);
  EXPECT_EQ(kept.directory, run);
  EXPECT_EQ(recorded_to_json(kept), recorded_to_json(*before));
  EXPECT_EQ(kept.results.at(0).speedup, 1);
}

// A writer thread: answers three requests, one of them with garbage.
TEST_F(LoopTest, ReplayMeasuresARunThatIsText) {
  ASSERT_TRUE(optimize_with(fake_station(fake), fake_task(), settings_for(run, 25), observer));
  const std::string text = join(dir.path(), "run.jsonl");
  {
    const auto store = Store::open(run, Store::Mode::kRead);
    ASSERT_TRUE(store) << store.error().text();
    const auto whole = (*store)->whole();
    ASSERT_TRUE(whole) << whole.error().text();
    ASSERT_TRUE(write_file(text, run_to_text(*whole)));
  }
  RunSettings settings = settings_for(join(dir.path(), "again"), 100);
  settings.proposer = "replay";
  settings.replay_from = text;
  const auto result = optimize_with(fake_station(fake), fake_task(), settings, observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(course(settings.directory), course(run));
  EXPECT_EQ(recorded_to_json(*read_recorded(text)),
            replace_all(recorded_to_json(*read_recorded(run)), run, text));
  const auto seed = seeds({text}, fake_task(), TargetKind::kCpu);
  ASSERT_TRUE(seed) << seed.error().text();
  EXPECT_TRUE(contains(seed->at(0).origin.idea, text));
}

// A writer thread: answers three requests, one of them with garbage.
TEST_F(LoopTest, ExchangeWithAWriter) {
  fake.landscape = [](const KnobValues& k) { return 1000 / (1 + knob(k, "V")); };
  RunSettings settings = settings_for(run, 4);
  settings.proposer = "exchange";
  settings.exchange_wait_s = 300;
  const std::string source = fake_task().kernel_cpp;
  // The writer sees each request, and takes its time to answer.
  constexpr double kWritingS = 0.4;
  std::promise<void> requested[2];
  int requests = 0;
  const Observer hearing = [&](const Progress& p) {
    observer(p);
    if (p.event == Event::kWaiting && requests < 2) requested[requests++].set_value();
  };
  std::thread writer([&] {
    for (int request = 1; request <= 2; ++request) {
      const std::string folder = join(run, "exchange/000" + std::to_string(request));
      auto heard = requested[request - 1].get_future();
      if (heard.wait_for(std::chrono::minutes(5)) != std::future_status::ready) return;
      std::this_thread::sleep_for(std::chrono::duration<double>(kWritingS));
      const std::string reply = join(folder, "reply");
      const std::string value = std::to_string(4 * request);
      const std::string text = "// idea: wider loads, answer " + value + "\n" +
                               replace_all(source, "V 1 2 4 8 16", "V " + value + " 1");
      EXPECT_TRUE(write_file(join(reply, "half.cpp.tmp"), "not complete"));
      EXPECT_TRUE(write_file(join(reply, "bad.cpp"), "// @knob V\n"));
      EXPECT_TRUE(write_file(join(reply, "kernel.cpp"), text));
      if (request == 2) {
        EXPECT_TRUE(write_file(join(reply, "second.cpp"), replace_all(text, "C 16", "C 32 16 //")));
        EXPECT_TRUE(write_file(join(reply, "third.cpp"), replace_all(text, "S 0 1", "S 1 0")));
      }
    }
  });
  const double from = real_clock().now_s();
  const auto result = optimize_with(fake_station(fake), fake_task(), settings, hearing);
  const double took_s = real_clock().now_s() - from;
  writer.join();
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->evaluations, 4);
  EXPECT_GE(count(Event::kWaiting), 2);
  EXPECT_GE(count(Event::kRefused), 1);
  EXPECT_LT(4 * result->own_ms_per_evaluation, 1000 * (took_s - 1.8 * kWritingS))
      << "waiting is no cost of the loop, however busy the machine";
  const std::vector<StoredCandidate> all = stored_in(run);
  EXPECT_EQ(all[1].known.candidate.origin.idea, "wider loads, answer 4");
  EXPECT_EQ(all[1].known.candidate.origin.proposer, "exchange");
  const std::string first = join(run, "exchange/0001");
  EXPECT_TRUE(exists(join(first, "taken/kernel.cpp")));
  EXPECT_TRUE(contains(*read_file(join(first, "taken/kernel.cpp.result.md")), "Candidate 2"));
  EXPECT_TRUE(exists(join(first, "refused/bad.cpp.error.md")));
  EXPECT_TRUE(exists(join(first, "reply/half.cpp.tmp"))) << "an incomplete reply is left alone";
}

TEST_F(LoopTest, ExchangeWithoutAWriterEnds) {
  RunSettings settings = settings_for(run);
  settings.proposer = "exchange";
  settings.exchange_wait_s = 0.05;
  const auto result = optimize_with(fake_station(fake), fake_task(), settings, observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_TRUE(contains(result->stopped_by, "no reply")) << result->stopped_by;
  EXPECT_EQ(result->evaluations, 1);
  // A reply may still come: nothing is exhausted.
  const auto store = Store::open(run, Store::Mode::kRead);
  ASSERT_TRUE(store) << store.error().text();
  EXPECT_TRUE((*store)->closed_lines()->empty());
  EXPECT_EQ((*store)->requests()->at(0).name, "0001");
}

TEST_F(LoopTest, WritingAndMeasuringHappenApart) {
  fake.landscape = [](const KnobValues& k) { return 1000 / (1 + knob(k, "V")); };
  RunSettings settings = settings_for(run);
  settings.proposer = "exchange";
  settings.exchange_wait_s = 0;
  ASSERT_TRUE(optimize_with(fake_station(fake), fake_task(), settings, observer));
  // On the writer's machine: a copy of the folder, no target.
  const std::string there = join(dir.path(), "there");
  ASSERT_EQ(std::system(("cp -r " + run + " " + there).c_str()), 0);
  const auto folders = propose(there, 3);
  ASSERT_TRUE(folders) << folders.error().text();
  ASSERT_EQ(folders->size(), 3u);
  const std::string source = fake_task().kernel_cpp;
  for (int i = 0; i < 3; ++i) {
    const std::string& folder = folders->at(static_cast<std::size_t>(i));
    EXPECT_TRUE(exists(join(folder, "prompt.md"))) << folder;
    if (i == 1) continue;  // no answer
    ASSERT_TRUE(write_file(join(folder, "prompt.md"), "Something else."));
    const std::string text =
        replace_all(source, "V 1 2 4 8 16", "V " + std::to_string(4 + i) + " 1");
    ASSERT_TRUE(write_file(join(folder, "reply/kernel.cpp"), text));
  }
  ASSERT_TRUE(write_file(join(folders->at(0), "reply/refusal.cpp"), "I had rather not."));
  // Back on the machine that measures.
  ASSERT_EQ(std::system(("rm -r " + run + " && cp -r " + there + " " + run).c_str()), 0);
  const auto measured = measure_with(fake_station(fake), run, observer);
  ASSERT_TRUE(measured) << measured.error().text();
  EXPECT_EQ(measured->evaluations, 3);
  EXPECT_TRUE(contains(measured->stopped_by, "every usable reply")) << measured->stopped_by;
  EXPECT_EQ(count(Event::kRefused), 1);
  EXPECT_GT(measured->speedup, 3);
  EXPECT_TRUE(exists(join(run, "exchange/0002/taken/kernel.cpp.result.md")));
  EXPECT_TRUE(exists(join(run, "exchange/0002/refused/refusal.cpp.error.md")));
  // The request and the answer stay with the candidate; nothing is measured twice.
  {
    const auto store = Store::open(run, Store::Mode::kRead);
    ASSERT_TRUE(store);
    const auto writing = (*store)->writing(2);
    ASSERT_TRUE(writing && *writing);
    EXPECT_EQ((*writing)->request, "0002");
    EXPECT_TRUE(contains((*writing)->prompt, "request 0002")) << "as it was asked";
  }
  const auto again = measure_with(fake_station(fake), run, observer);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->evaluations, 3);
  EXPECT_EQ(again->best, measured->best);
  EXPECT_FALSE(propose(join(dir.path(), "nowhere"), 1));
}

// One run may ask in several ways, which is how their worth is compared.
TEST_F(LoopTest, RequestsMayDifferFromTheRunsSettings) {
  fake.landscape = [](const KnobValues&) { return 1000.0; };
  RunSettings settings = settings_for(run);
  settings.proposer = "exchange";
  settings.exchange_wait_s = 0;
  ASSERT_TRUE(optimize_with(fake_station(fake), fake_task(), settings, observer));
  const auto prompt = [&](const RequestChanges& wanted) {
    const auto folders = propose(run, 1, wanted);
    EXPECT_TRUE(folders) << folders.error().text();
    return folders ? read_file(join(folders->at(0), "prompt.md")).value_or("") : "";
  };
  EXPECT_TRUE(contains(prompt({}), "## Diagnosis"));
  EXPECT_FALSE(contains(prompt({Feedback::kNone, {}}), "## Diagnosis"));
  ASSERT_TRUE(write_file(join(dir.path(), "exchange.md"), "Write {{task}} anew."));
  EXPECT_TRUE(contains(prompt({{}, dir.path()}), " anew."));
  EXPECT_FALSE(contains(prompt({}), " anew."));
}

TEST_F(LoopTest, WhereEnergyCountsTheFirstRequestAsksForLess) {
  fake.landscape = [](const KnobValues&) { return 1000.0; };
  fake.energy.emplace();
  fake.energy->millijoules = 400;
  fake.energy->busy_w = 430;
  fake.energy->idle_w = 130;
  RunSettings settings = settings_for(run);
  settings.proposer = "exchange";
  settings.exchange_wait_s = 0;
  // Its own request, of a free choice, does not ask for it.
  ASSERT_TRUE(optimize_with(fake_station(fake), fake_task(), settings, observer));
  {
    // A run on the CPU, which measures no energy, stands for one on a GPU.
    const auto store = Store::open(run, Store::Mode::kWrite);
    ASSERT_TRUE(store) << store.error().text();
    const auto header = (*store)->header();
    ASSERT_TRUE(header);
    auto changed = parse_json(header->settings_json);
    ASSERT_TRUE(changed);
    (*changed)["objective"] = "time,energy";
    ASSERT_TRUE((*store)->save_settings(dump_json(*changed)));
  }
  const std::string words = "Use less energy a call, without losing speed: of the 430 W";
  for (const bool first : {true, false}) {
    const auto folders = propose(run, 1);
    ASSERT_TRUE(folders) << folders.error().text();
    const std::string prompt = read_file(join(folders->at(0), "prompt.md")).value_or("");
    EXPECT_TRUE(contains(prompt, "400 mJ a call")) << prompt;
    EXPECT_EQ(contains(prompt, words), first) << prompt;
  }
}

// A reply's first values are seldom its best ones.
TEST_F(LoopTest, MeasureTunesTheKnobsOfAReply) {
  fake.landscape = [](const KnobValues& k) { return 1000 / (1 + knob(k, "V")); };
  RunSettings settings = settings_for(run);
  settings.proposer = "exchange";
  settings.exchange_wait_s = 0;
  settings.roles.tune = 8;
  ASSERT_TRUE(optimize_with(fake_station(fake), fake_task(), settings, observer));
  EXPECT_EQ(stored_in(run).size(), 1u) << "the start is no reply";
  const std::string text = "// idea: wider\n" + fake_task().kernel_cpp;
  ASSERT_TRUE(write_file(join(run, "exchange/0001/reply/kernel.cpp"), text));
  const auto measured = measure_with(fake_station(fake), run, observer);
  ASSERT_TRUE(measured) << measured.error().text();
  EXPECT_GE(measured->evaluations, 10) << "the start, the reply, and eight or more settings of it";
  EXPECT_LE(measured->evaluations, 18) << "twice as many of the best";
  const std::vector<StoredCandidate> all = stored_in(run);
  EXPECT_EQ(all[2].known.candidate.origin.proposer, "tuner");
  EXPECT_EQ(all[2].known.candidate.source, all[1].known.candidate.source);
  EXPECT_GT(measured->speedup, 1.5);
  // The budget is a source's: nothing more comes of it later.
  const auto again = measure_with(fake_station(fake), run, observer);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->evaluations, measured->evaluations);
}

// Between generations nobody needs a winner; at the end there is one.
TEST_F(LoopTest, ConfirmationMayWait) {
  int confirmations = 0;
  fake.confirm_factor = [&confirmations] { return ++confirmations, 1.0; };
  RunSettings settings = settings_for(run);
  settings.proposer = "exchange";
  settings.exchange_wait_s = 0;
  ASSERT_TRUE(optimize_with(fake_station(fake), fake_task(), settings, observer));
  ASSERT_TRUE(write_file(join(run, "exchange/0001/reply/kernel.cpp"),
                         replace_all(fake_task().kernel_cpp, "V 1 2 4 8 16", "V 8 1")));
  const auto confirmed = [&] {
    const auto store = Store::open(run, Store::Mode::kRead);
    const auto found = (*store)->confirmation();
    return found && found->has_value();
  };
  const auto measured = measure_with(fake_station(fake), run, observer, false);
  ASSERT_TRUE(measured) << measured.error().text();
  EXPECT_EQ(measured->end, RunEnd::kDone);
  EXPECT_EQ(measured->evaluations, 2);
  EXPECT_FALSE(confirmed());
  const auto later = measure_with(fake_station(fake), run, observer);
  ASSERT_TRUE(later) << later.error().text();
  EXPECT_EQ(later->end, RunEnd::kDone) << later->next;
  EXPECT_EQ(later->best, measured->best);
  EXPECT_TRUE(confirmed());
  const int before = confirmations;
  const auto nothing = measure_with(fake_station(fake), run, observer);
  ASSERT_TRUE(nothing) << nothing.error().text();
  EXPECT_EQ(nothing->end, RunEnd::kNothing) << "no reply, and nothing left to confirm";
  EXPECT_EQ(nothing->best, later->best);
  EXPECT_EQ(nothing->speedup, later->speedup);
  EXPECT_EQ(confirmations, before) << "another draw of a figure that is confirmed";
}

TEST_F(LoopTest, APackedRunGoesOnElsewhere) {
  RunSettings settings = settings_for(run);
  settings.proposer = "exchange";
  settings.exchange_wait_s = 0;
  ASSERT_TRUE(optimize_with(fake_station(fake), fake_task(), settings, observer));
  const std::string reply = join(run, "exchange/0001/reply");
  ASSERT_TRUE(write_file(join(reply, "half.cpp.tmp"), "not complete"));
  ASSERT_TRUE(write_file(join(reply, "kernel.cpp"),
                         replace_all(fake_task().kernel_cpp, "V 1 2 4 8 16", "V 8 1")));
  const std::string copy = join(dir.path(), "copy");
  const auto packed = pack_run(run, copy);
  ASSERT_TRUE(packed) << packed.error().text();
  EXPECT_FALSE(exists(join(copy, "exchange/0001/reply/half.cpp.tmp")));
  EXPECT_FALSE(pack_run(run, copy)) << "it is there already";
  EXPECT_FALSE(pack_run(join(dir.path(), "nowhere"), join(dir.path(), "other")));
  const auto measured = measure_with(fake_station(fake), copy, observer);
  ASSERT_TRUE(measured) << measured.error().text();
  EXPECT_EQ(measured->evaluations, 2);
  EXPECT_EQ(stored_in(run).size(), 1u) << "the first one is as it was";
}

}  // namespace
}  // namespace kernelpro
