// SPDX-License-Identifier: Apache-2.0
// Runs as text: from a store and back, and files that are none.
#include "run/store/run_text.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "measure/station/testing/fake_target.h"
#include "run/store/pack.h"
#include "run/store/store.h"
#include "run/store/winner.h"

namespace kernelpro {
namespace {

Evaluation correct_at(double us, const std::string& incumbent = "") {
  Correct result;
  result.timings = {{"large", us, us * 0.99, us * 1.01, 40, "calls in turn"}};
  if (!incumbent.empty()) result.versus = Correct::Versus{incumbent, 2.5, 2.4, 2.6};
  Evaluation evaluation;
  evaluation.outcome = result;
  return evaluation;
}

Candidate numbered(int number, std::int64_t parent) {
  Candidate c;
  c.source = "// @knob V 1 2\nvoid launch() {} // " + std::to_string(number) + "\n";
  c.knobs = {{"V", "2"}};
  c.origin = {"exchange", parent, "idea " + std::to_string(number), {"scalar-code", "vectorize"}};
  return c;
}

StoredConfirmation a_confirmation() {
  StoredConfirmation confirmation{2, correct_at(39, "start"), "the budget", 0.7, {}};
  confirmation.held_out.push_back({"tall", correct_at(12), ""});
  confirmation.held_out.push_back({"wide", {}, "no memory"});
  return confirmation;
}

// Five candidates; the third repairs the second, the fourth was evaluated before it, the fifth not.
void make_run(const std::string& directory) {
  RunHeader header;
  header.task = testing::fake_task();
  header.machine.name = "a machine";
  header.machine.target = "cpu";
  header.settings_json = "{\"seed\":3}";
  header.record_json = "{\"version\":1,\"tools\":{}}";
  const auto store = Store::open(directory, Store::Mode::kCreate, &header);
  ASSERT_TRUE(store) << store.error().text();
  ASSERT_TRUE((*store)->add({numbered(1, 0)}));
  ASSERT_TRUE((*store)->finish(1, correct_at(100), {}, {}, 1));
  Proposal asked{numbered(2, 1), Writing{"0001", "exchange", "make \"it\" fast\n", "", ""}};
  asked.writing->reply = asked.candidate.source;
  Proposal chatty{numbered(3, 1), Writing{"0002", "a model", "again", "Here:\n", "{\"output\":1}"}};
  chatty.candidate.origin.repairs = 2;
  ASSERT_TRUE((*store)->add_request({"0001", 1, {"scalar-code", "vectorize"}, "make it fast"}));
  for (const Proposal& each :
       {asked, chatty, {numbered(4, 2), std::nullopt}, {numbered(5, 2), std::nullopt}}) {
    ASSERT_TRUE((*store)->add_proposal(each));
  }
  Evidence evidence;
  evidence.texts["loop"] = "vmulps";
  Diagnosis diagnosis;
  diagnosis.summary = "slow";
  const ToolStep step{2, "scalar-code", "vectorize", 1.5, 2.5, 2.5, "hash"};
  ASSERT_TRUE((*store)->finish(2, correct_at(40, numbered(1, 0).content_hash()), evidence,
                               diagnosis, 2.5, &step));
  ASSERT_TRUE((*store)->finish(4, Evaluation{CompileError{"line 1"}, 1, 0, "", ""}, {}, {}, 3));
  ASSERT_TRUE((*store)->finish(3, correct_at(60), {}, {}, 4.5));
  ASSERT_TRUE(
      (*store)->add_call({"0002", ModelRole::kFixer, "m", 1, 2, "wider", CallOutcome::kReply,
                          "mend it", "### read", "Here:\n", "{\"output\":1}", "hash"}));
  ASSERT_TRUE((*store)->close_line({1, 4, "exchange"}));
  ASSERT_TRUE((*store)->confirm(a_confirmation()));
}

std::string text_of(const std::string& run) {
  const auto store = Store::open(run, Store::Mode::kRead);
  EXPECT_TRUE(store) << store.error().text();
  const auto whole = (*store)->whole();
  EXPECT_TRUE(whole) << whole.error().text();
  return run_to_text(*whole);
}

struct RunText : ::testing::Test {
  TempDir dir;
  std::string run = join(dir.path(), "run");
  std::string file = join(dir.path(), "run.jsonl");
  void SetUp() override {
    make_run(run);
    ASSERT_TRUE(write_file(file, text_of(run)));
  }
  // What is wrong with the text in which one part is replaced.
  std::string problem(const std::string& from, const std::string& to) {
    const std::string text = *read_file(file);
    EXPECT_TRUE(contains(text, from)) << from;
    const auto read = run_from_text(replace_all(text, from, to), "run.jsonl");
    return read ? "" : read.error().message;
  }
};

TEST_F(RunText, IsReadLikeTheFolder) {
  const auto folder = Store::open(run, Store::Mode::kRead);
  const auto text = Store::open(file, Store::Mode::kRead);
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_EQ(text_of(file), *read_file(file));
  EXPECT_TRUE((*text)->check_whole());
  EXPECT_EQ((*text)->run_id(), (*folder)->run_id());
  EXPECT_EQ((*text)->run_seconds(), 4.5);
  EXPECT_EQ((*text)->header()->settings_json, "{\"seed\":3}");
  EXPECT_EQ((*text)->header()->created, (*folder)->header()->created);
  EXPECT_EQ((*text)->header()->recorded_json, "");
  const auto all = (*text)->candidates();
  ASSERT_TRUE(all && all->size() == 5u);
  EXPECT_EQ(all->at(1).known.candidate.content_hash(), numbered(2, 1).content_hash());
  EXPECT_EQ(all->at(2).known.candidate.origin.repairs, 2);
  EXPECT_EQ(all->at(2).order, 4);
  EXPECT_EQ(all->at(1).evidence.texts.at("loop"), "vmulps");
  EXPECT_FALSE(all->at(4).evaluated);
  const auto confirmation = (*text)->confirmation();
  ASSERT_TRUE(confirmation && *confirmation);
  EXPECT_EQ((*confirmation)->held_out.at(1).problem, "no memory");
  const RankedRun ranked(*(*text)->header(), *all);
  EXPECT_EQ(winner_of(ranked, &**confirmation).candidate->known.id, 2);
  EXPECT_EQ((*text)->tool_steps()->at(0).measured, 2.5);
  EXPECT_EQ((*text)->calls()->at(0).tools, "### read");
  EXPECT_EQ((*text)->requests()->at(0).prompt, "make it fast");
  EXPECT_EQ((*text)->closed_lines()->at(0).candidate, 1);
  EXPECT_EQ((**(*text)->writing(2)).reply, numbered(2, 1).source);
  EXPECT_EQ((**(*text)->writing(3)).reply, "Here:\n");
}

TEST_F(RunText, IsOneLineForEachThing) {
  const std::vector<std::string> rows = lines(*read_file(file));
  ASSERT_EQ(rows.size(), 10u);
  EXPECT_EQ(parse_json(rows[0])->at("run").at("task").at("name"), testing::fake_task().name);
  const Json second = *parse_json(rows[2]);
  EXPECT_EQ(second.at("candidate"), 2);
  EXPECT_EQ(second.at("prompt"), "make \"it\" fast\n");
  EXPECT_FALSE(second.contains("reply")) << "it is the source";
  EXPECT_DOUBLE_EQ(second.at("time_us").get<double>(), 40);
  EXPECT_DOUBLE_EQ(second.at("speedup_over_parent").get<double>(), 2.5);
  EXPECT_FALSE(parse_json(rows[4])->contains("time_us"));
  EXPECT_FALSE(parse_json(rows[5])->contains("evaluation"));
  EXPECT_EQ(parse_json(rows[6])->at("request").at("answers"), "scalar-code: vectorize");
  EXPECT_EQ(parse_json(rows[7])->at("call").at("role"), "fixer");
  EXPECT_EQ(parse_json(rows[8])->at("closed").at("after"), 4);
  EXPECT_EQ(parse_json(rows[9])->at("confirmation").at("best"), 2);
}

TEST_F(RunText, OfWritersAloneIsNoRun) {
  const auto store = Store::open(run, Store::Mode::kRead);
  const std::string text = run_to_text(*(*store)->whole(), true);
  EXPECT_EQ(lines(text).size(), 2u);
  const auto read = run_from_text(text, "data.jsonl");
  ASSERT_FALSE(read);
  EXPECT_TRUE(contains(read.error().message, "line 1: it does not begin with a run"))
      << read.error().text();
}

TEST_F(RunText, BecomesAFolderAgain) {
  const auto refused = Store::open(file, Store::Mode::kWrite);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(contains(refused.error().next, "kernelpro pack")) << refused.error().text();
  const std::string copy = join(dir.path(), "copy");
  const auto packed = pack_run(file, copy);
  ASSERT_TRUE(packed) << packed.error().text();
  const auto store = Store::open(copy, Store::Mode::kWrite);
  ASSERT_TRUE(store) << store.error().text();
  EXPECT_EQ(text_of(copy), *read_file(file));
  ASSERT_TRUE((*store)->finish(5, correct_at(30), {}, {}, 6)) << "it goes on";
  EXPECT_TRUE(is_run(copy));
  EXPECT_TRUE(is_run(file));
  EXPECT_FALSE(is_run(dir.path()));
}

TEST_F(RunText, NamesWhatIsWrong) {
  EXPECT_EQ(problem("\"format\":1", "\"format\":1"), "");
  const std::pair<const char*, const char*> changes[] = {
      {"\"format\":1", "\"format\":2"},
      {"\"target\":\"cpu\"", "\"target\":\"\""},
      {"{\"candidate\":3", "{\"candidate\":4"},
      {"{\"candidate\":5", "{\"other\":5"},
      {"\"language\":\"cpp\"", "\"language\":1"},
      {"{\"V\":\"2\"}", "[]"},
      {"\"parent\":2", "\"parent\":7"},
      {"\"position\":4", "\"position\":2"},
      {"\"evidence\":{", "\"evidences\":{"},
      {"\"best\":2", "\"best\":5"},
      {"{\"call\"", "\"call\""},
      {"0001\",\"parent\":1", "0001\""},
      {"closed\":{\"candidate\":1", "closed\":{\"candidate\":5"},
      {"{\"seed\":3}", "{\"seed\":3"}};
  for (const auto& [from, to] : changes) EXPECT_NE(problem(from, to), "") << from;
  EXPECT_TRUE(contains(problem("\"best\":2", "\"best\":5"), "line 10: the winner"));
  EXPECT_TRUE(contains(problem("\"seed\":3", "\"seed\":" + std::string(200, '[')), "too deep"));
  EXPECT_FALSE(run_from_text("", "empty"));
  const std::string text = *read_file(file);
  ASSERT_TRUE(write_file(file, replace_all(text, "{} // 4", "{} // 3")));
  const auto twice = Store::open(file, Store::Mode::kRead);
  ASSERT_FALSE(twice);
  EXPECT_TRUE(contains(twice.error().message, "candidates 3 and 4 are the same"))
      << twice.error().text();
}

// The runs behind results/exchange.md: their text is read, whole, and means the same when written
// again.
TEST(RecordedRuns, AreRead) {
  const TempDir dir;
  const std::string again = join(dir.path(), "again.jsonl");
  const std::string folder = std::string(KERNELPRO_SOURCE_DIR) + "/results/exchange";
  int written = 0, correct_ones = 0;
  for (const std::string& name : list_dir(folder)) {
    const std::string path = join(folder, name);
    const auto store = Store::open(path, Store::Mode::kRead);
    ASSERT_TRUE(store) << store.error().text();
    EXPECT_TRUE((*store)->check_whole()) << path;
    const auto whole = (*store)->whole();
    ASSERT_TRUE(whole) << whole.error().text();
    EXPECT_TRUE(whole->confirmation) << path;
    for (const StoredCandidate& each : whole->candidates) {
      if (whole->writings.count(each.known.id) == 0) continue;
      ++written;
      correct_ones += each.known.evaluation.correct() != nullptr;
    }
    const std::string text = run_to_text(*whole);
    ASSERT_TRUE(write_file(again, text));
    EXPECT_TRUE(text_of(again) == text) << path;
  }
  EXPECT_EQ(written, 55) << "as results/search.md says";
  EXPECT_EQ(correct_ones, 41);
}

}  // namespace
}  // namespace kernelpro
