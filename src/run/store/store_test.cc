// SPDX-License-Identifier: Apache-2.0
// The store against real SQLite files.
#include "run/store/store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"
#include "run/store/testing.h"

namespace kernelpro {
namespace {

TEST(Store, GivesBackWhatWasStored) {
  TempDir dir;
  const std::string run = join(dir.path(), "run");
  {
    auto store = storing::create(run);
    ASSERT_NE(store, nullptr);
    auto ids = store->add({storing::candidate(1), storing::candidate(2, 1)});
    ASSERT_TRUE(ids) << ids.error().text();
    EXPECT_EQ(*ids, (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(store->add({storing::candidate(2, 1)})->front(), 0) << "the content is known";
    Evidence evidence;
    evidence.texts["loop"] = "vmulps";
    Diagnosis diagnosis;
    diagnosis.summary = "slow";
    ASSERT_TRUE(store->finish(2, storing::correct(50), evidence, diagnosis, 1.5));
    EXPECT_FALSE(store->finish(2, storing::correct(50), evidence, diagnosis, 1.6))
        << "evaluated already";
    ASSERT_TRUE(store->finish(1, Evaluation{CompileError{"bad"}, 1, 0, "", ""}, {}, {}, 2.5));
    ASSERT_TRUE(store->confirm({2, storing::correct(49), "the budget", 0.7}));
    ASSERT_TRUE(store->confirm({2, storing::correct(48), "the larger budget", 0.8}));
    ASSERT_TRUE(store->save_settings("{\"seed\":3}"));
  }
  auto store = Store::open(run, Store::Mode::kRead);
  ASSERT_TRUE(store) << store.error().text();
  const auto head = (*store)->header();
  ASSERT_TRUE(head);
  EXPECT_EQ(head->task.content_hash(), storing::header().task.content_hash());
  EXPECT_EQ(head->machine.name, "a machine");
  EXPECT_EQ(head->settings_json, "{\"seed\":3}");
  EXPECT_FALSE(head->created.empty());
  const auto all = (*store)->candidates();
  ASSERT_TRUE(all) << all.error().text();
  ASSERT_EQ(all->size(), 2u);
  const StoredCandidate& second = (*all)[1];
  EXPECT_EQ(second.known.candidate.content_hash(), storing::candidate(2).content_hash());
  EXPECT_EQ(second.known.candidate.origin.parent, 1);
  EXPECT_EQ(second.known.candidate.origin.answers.text(), "scalar-code: vectorize");
  EXPECT_EQ(second.order, 1);
  EXPECT_EQ(second.at_s, 1.5);
  EXPECT_DOUBLE_EQ(score_us(second.known.evaluation), 50);
  EXPECT_EQ(second.known.evaluation.correct()->versus->low, 1.4);
  EXPECT_EQ(second.evidence.texts.at("loop"), "vmulps");
  EXPECT_EQ(second.known.diagnosis.summary, "slow");
  EXPECT_EQ((*all)[0].order, 2);
  EXPECT_EQ(outcome_name((*all)[0].known.evaluation.outcome), "compile-error");
  EXPECT_EQ((*store)->run_seconds(), 2.5);
  const auto confirmation = (*store)->confirmation();
  ASSERT_TRUE(confirmation && *confirmation);
  EXPECT_EQ((*confirmation)->stopped_by, "the larger budget");
}

TEST(Store, OneWriterAndReadersBesideIt) {
  TempDir dir;
  auto store = storing::create(dir.path());
  ASSERT_NE(store, nullptr);
  const auto second = Store::open(dir.path(), Store::Mode::kWrite);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kBusy);
  EXPECT_TRUE(contains(second.error().message, "process " + std::to_string(::getpid())))
      << second.error().text();
  ASSERT_TRUE(store->add({storing::candidate(1)}));
  const auto reader = Store::open(dir.path(), Store::Mode::kRead);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_EQ((*reader)->candidates()->size(), 0u) << "a proposal is stored with its result";
  ASSERT_TRUE(store->finish(1, storing::correct(9), {}, {}, 0));
  EXPECT_EQ((*reader)->candidates()->size(), 1u);
  ASSERT_TRUE(store->add({storing::candidate(2)})) << "an open reader must not block the writer";
  ASSERT_TRUE(store->finish(2, storing::correct(8), {}, {}, 0)) << "nor its commits";
  EXPECT_EQ((*reader)->candidates()->size(), 2u);
}

TEST(Store, RefusesWhatIsNoRun) {
  TempDir dir;
  const auto missing = Store::open(join(dir.path(), "none"), Store::Mode::kWrite);
  ASSERT_FALSE(missing);
  EXPECT_TRUE(contains(missing.error().message, "there is no run")) << missing.error().text();
  EXPECT_FALSE(exists(join(dir.path(), "none")));
  ASSERT_TRUE(write_file(join(dir.path(), "notes.txt"), "mine"));
  const RunHeader h = storing::header();
  const auto occupied = Store::open(dir.path(), Store::Mode::kCreate, &h);
  ASSERT_FALSE(occupied);
  EXPECT_EQ(occupied.error().kind, ErrorKind::kStore);
  EXPECT_TRUE(contains(occupied.error().message, "notes.txt")) << occupied.error().text();
  const auto file = Store::open(join(dir.path(), "notes.txt"), Store::Mode::kCreate, &h);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind, ErrorKind::kStore);
}

TEST(Store, RefusesANewerVersionAndLeavesItAlone) {
  TempDir dir;
  storing::create(dir.path());
  storing::patch(dir.path(), "PRAGMA user_version = 99");
  for (const auto mode : {Store::Mode::kRead, Store::Mode::kWrite}) {
    const auto store = Store::open(dir.path(), mode);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().kind, ErrorKind::kStore);
    EXPECT_TRUE(contains(store.error().message, "newer KernelPro")) << store.error().text();
    EXPECT_TRUE(contains(store.error().next, "upgrade"));
  }
  storing::patch(dir.path(), "PRAGMA application_id = 7");
  const auto foreign = Store::open(dir.path(), Store::Mode::kRead);
  ASSERT_FALSE(foreign);
  EXPECT_TRUE(contains(foreign.error().message, "not a KernelPro run store"));
}

TEST(Store, BringsAnEarlierVersionUp) {
  TempDir dir;
  storing::create(dir.path());
  storing::patch(
      dir.path(),
      "DROP TABLE tool_steps; DROP TABLE writings; DROP TABLE calls; DROP TABLE outcomes;"
      "DROP TABLE held_out; ALTER TABLE candidates DROP COLUMN repairs;"
      "PRAGMA user_version = 2");
  {
    const auto store = Store::open(dir.path(), Store::Mode::kRead);
    ASSERT_TRUE(store) << store.error().text();
    const auto steps = (*store)->tool_steps();
    ASSERT_TRUE(steps) << steps.error().text();
    EXPECT_TRUE(steps->empty());
    const auto writing = (*store)->writing(1);
    ASSERT_TRUE(writing) << writing.error().text();
    EXPECT_FALSE(writing->has_value());
    const auto calls = (*store)->calls();
    ASSERT_TRUE(calls) << calls.error().text();
    EXPECT_TRUE(calls->empty());
  }
  auto store = Store::open(dir.path(), Store::Mode::kWrite);
  ASSERT_TRUE(store) << store.error().text();
  const auto ids = (*store)->add({storing::candidate(1)});
  ASSERT_TRUE(ids);
  const ToolStep step{ids->at(0), "scalar-loads", "vectorize", 1.5, 2.5, 1.25, "hash"};
  ASSERT_TRUE(
      (*store)->finish(ids->at(0), storing::correct(10), Evidence(), Diagnosis(), 1, &step));
  const auto steps = (*store)->tool_steps();
  ASSERT_TRUE(steps) << steps.error().text();
  ASSERT_EQ(steps->size(), 1u);
  EXPECT_EQ(steps->at(0).tool, "scalar-loads");
  EXPECT_EQ(steps->at(0).measured, 1.25);
  EXPECT_EQ(steps->at(0).record, "hash");
  EXPECT_TRUE((*store)->add_call(ModelCall()));
}

TEST(Store, TakesRepairsOutOfTheIdeasOfAnEarlierVersion) {
  TempDir dir;
  storing::create(dir.path());
  {
    const auto store = Store::open(dir.path(), Store::Mode::kWrite);
    ASSERT_TRUE(store) << store.error().text();
    ASSERT_TRUE(
        (*store)->add({storing::candidate(1), storing::candidate(2), storing::candidate(3)}));
  }
  storing::patch(dir.path(),
                 "ALTER TABLE candidates DROP COLUMN repairs;"
                 "UPDATE candidates SET idea = 'repair of 12: wider: loads' WHERE id = 1;"
                 "UPDATE candidates SET idea = 'repair of 2nd loads: no' WHERE id = 2;"
                 "UPDATE candidates SET idea = 'repair of 7' WHERE id = 3;"
                 "PRAGMA user_version = 6");
  const auto origins = [&](Store::Mode mode) {
    const auto store = Store::open(dir.path(), mode);
    EXPECT_TRUE(store) << store.error().text();
    const auto stored = (*store)->candidates();
    std::vector<Origin> all;
    for (const StoredCandidate& each : *stored) all.push_back(each.known.candidate.origin);
    return all;
  };
  const std::vector<Origin> before = origins(Store::Mode::kRead);
  ASSERT_EQ(before.size(), 3u);
  EXPECT_EQ(idea_text(before[0]), "repair of 12: wider: loads");
  const std::vector<Origin> after = origins(Store::Mode::kWrite);
  ASSERT_EQ(after.size(), 3u);
  EXPECT_EQ(after[0].repairs, 12);
  EXPECT_EQ(after[0].idea, "wider: loads");
  EXPECT_EQ(idea_text(after[0]), idea_text(before[0]));
  EXPECT_EQ(after[1].repairs, 0);
  EXPECT_EQ(after[1].idea, "repair of 2nd loads: no");
  EXPECT_EQ(after[2].idea, "repair of 7");
}

// A paid call is visible to other readers at once, with the proposals before it.
TEST(Store, KeepsQuestionsToModels) {
  TempDir dir;
  storing::create(dir.path());
  const auto store = Store::open(dir.path(), Store::Mode::kWrite);
  ASSERT_TRUE(store) << store.error().text();
  ASSERT_TRUE((*store)->add({storing::candidate(1)}));
  const ModelCall call{"0003.1",   ModelRole::kFixer, "openai:m",          7,
                       2,          "wider",           CallOutcome::kReply, "mend it",
                       "### read", "int x;",          "{\"output\":3}",    "hash"};
  ASSERT_TRUE((*store)->add_call(call));
  ASSERT_TRUE((*store)->add_call(ModelCall()));
  const auto reader = Store::open(dir.path(), Store::Mode::kRead);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_EQ((*reader)->candidates()->size(), 1u);
  const auto calls = (*reader)->calls();
  ASSERT_TRUE(calls) << calls.error().text();
  ASSERT_EQ(calls->size(), 2u);
  EXPECT_EQ(calls->at(0).request, "0003.1");
  EXPECT_EQ(calls->at(0).role, ModelRole::kFixer);
  EXPECT_EQ(calls->at(0).parent, 7);
  EXPECT_EQ(calls->at(0).repairs, 2);
  EXPECT_EQ(calls->at(0).prompt, "mend it");
  EXPECT_EQ(calls->at(0).tools, "### read");
  EXPECT_EQ(calls->at(0).reply, "int x;");
  EXPECT_EQ(calls->at(0).usage, "{\"output\":3}");
  EXPECT_EQ(calls->at(0).gave, "hash");
}

TEST(Store, KeepsWhatWritersWereAskedAndAnswered) {
  TempDir dir;
  storing::create(dir.path());
  auto store = Store::open(dir.path(), Store::Mode::kWrite);
  ASSERT_TRUE(store) << store.error().text();
  Proposal written{storing::candidate(1),
                   Writing{"0001", "exchange", "make it fast", "int x;", ""}};
  Proposal tuned{storing::candidate(2), std::nullopt};
  const auto first = (*store)->add_proposal(written);
  ASSERT_TRUE(first) << first.error().text();
  const auto second = (*store)->add_proposal(tuned);
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(*(*store)->add_proposal(written), 0) << "the same once more";
  const auto writing = (*store)->writing(*first);
  ASSERT_TRUE(writing && *writing);
  EXPECT_EQ((*writing)->request, "0001");
  EXPECT_EQ((*writing)->prompt, "make it fast");
  EXPECT_EQ((*writing)->reply, "int x;");
  const auto none = (*store)->writing(*second);
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
}

TEST(Store, KeepsRequestsAtOnceAndLinesThatAreExhausted) {
  TempDir dir;
  storing::create(dir.path());
  const auto store = Store::open(dir.path(), Store::Mode::kWrite);
  ASSERT_TRUE(store) << store.error().text();
  ASSERT_TRUE((*store)->add({storing::candidate(1), storing::candidate(2)}));
  ASSERT_TRUE((*store)->add_request({"0001", 1, {"scalar-code", "vectorize"}, "make it fast"}));
  EXPECT_FALSE((*store)->add_request({"0001", 2, {}, "make it faster"})) << "the name is taken";
  const auto reader = Store::open(dir.path(), Store::Mode::kRead);
  ASSERT_TRUE(reader) << reader.error().text();
  const auto requests = (*reader)->requests();
  ASSERT_TRUE(requests) << requests.error().text();
  ASSERT_EQ(requests->size(), 1u);
  EXPECT_EQ(requests->at(0).parent, 1);
  EXPECT_EQ(requests->at(0).answers.text(), "scalar-code: vectorize");
  EXPECT_EQ(requests->at(0).prompt, "make it fast");

  for (const std::int64_t id : {1, 2}) {
    ASSERT_TRUE((*store)->finish(id, storing::correct(10), Evidence(), Diagnosis(), 1));
  }
  ASSERT_TRUE((*store)->close_line({2, 2, "tuner"}));
  ASSERT_TRUE((*store)->close_line({1, 2, "tuner"}));
  ASSERT_TRUE((*store)->close_line({2, 1, "tuner"}));
  EXPECT_TRUE((*reader)->closed_lines()->empty()) << "durable with what follows";
  const auto closed = (*store)->closed_lines();
  ASSERT_TRUE(closed) << closed.error().text();
  ASSERT_EQ(closed->size(), 2u) << "none is closed before it is evaluated";
  EXPECT_EQ(closed->at(0).candidate, 2);
  EXPECT_EQ(closed->at(1).candidate, 1);
  EXPECT_EQ(closed->at(1).after, 2);
  EXPECT_EQ(closed->at(1).proposer, "tuner");
}

TEST(Store, IsCopiedBesideItsWriter) {
  TempDir dir;
  TempDir other;
  storing::create(dir.path());
  auto writer = Store::open(dir.path(), Store::Mode::kWrite);
  ASSERT_TRUE(writer);
  const auto ids = (*writer)->add({storing::candidate(1), storing::candidate(2)});
  ASSERT_TRUE(ids);
  ASSERT_TRUE((*writer)->finish(ids->at(0), storing::correct(10), Evidence(), Diagnosis(), 1));
  const std::string to = join(other.path(), "copy");
  {
    const auto reader = Store::open(dir.path(), Store::Mode::kRead);
    ASSERT_TRUE(reader);
    const auto copied = (*reader)->copy_to(to);
    ASSERT_TRUE(copied) << copied.error().text();
    EXPECT_FALSE((*reader)->copy_to(to)) << "there is one already";
  }
  const auto copy = Store::open(to, Store::Mode::kWrite);
  ASSERT_TRUE(copy) << copy.error().text();
  const auto all = (*copy)->candidates();
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2u);
  EXPECT_TRUE(all->at(0).evaluated);
  EXPECT_FALSE(all->at(1).evaluated);
}

}  // namespace
}  // namespace kernelpro
