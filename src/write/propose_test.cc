// SPDX-License-Identifier: Apache-2.0
// Tuner, exchange and replay through their interface. Within a run: run/loop_test.cc.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "core/candidate/knobs.h"
#include "write/proposer.h"
#include "write/testing.h"
#include "write/tuner/tuner.h"

namespace kernelpro {
namespace {

using namespace proposing;

struct Asked {
  std::vector<Known> all;
  Given given;  // by the last call
  Task t = task();
  std::vector<Candidate> ask(Proposer& proposer, std::size_t parent, int wanted) {
    ProposalRequest request;
    request.task = &t;
    request.parent = shared(all[parent]);
    set_history(all, 1, &request);
    request.task_header = "// task.h\n";
    request.seed = 5;
    request.wanted = wanted;
    given = Given();
    const auto written = proposer.propose(request, given.sink());
    EXPECT_TRUE(written) << written.error().text();
    std::vector<Candidate> candidates;
    for (const Proposal& p : given.proposals) candidates.push_back(p.candidate);
    return candidates;
  }
};

TEST(Tuner, AnswersFindingsFirstAndInOrder) {
  Asked asked;
  asked.all = {known(1, {}, 100)};
  asked.all[0].diagnosis.findings = {finding("one-thread-busy", {"threads"}),
                                     finding("scalar-code", {"algorithm", "vectorize"})};
  const auto tuner = make_tuner();
  const auto moves = asked.ask(*tuner, 0, 6);
  ASSERT_EQ(moves.size(), 6u);
  EXPECT_EQ(moves[0].knobs.at("THREADS"), "2");
  EXPECT_EQ(moves[0].origin.answers.text(), "one-thread-busy: threads");
  EXPECT_EQ(moves[0].origin.idea, "THREADS 1 -> 2, because one-thread-busy prescribes threads.");
  EXPECT_EQ(moves[0].origin.parent, 1);
  EXPECT_EQ(moves[1].knobs.at("THREADS"), "4");
  EXPECT_EQ(moves[2].knobs.at("VEC"), "2");
  EXPECT_EQ(moves[2].origin.answers.text(), "scalar-code: vectorize");
  EXPECT_EQ(moves[3].knobs.at("VEC"), "4");
  EXPECT_EQ(moves[4].origin.answers.text(), "") << "what no finding asks for comes by expectation";
  EXPECT_TRUE(contains(moves[4].origin.idea, "x the speed of the fastest")) << moves[4].origin.idea;
}

TEST(Tuner, CoversTheWholeSpaceWithoutRepeating) {
  Asked asked;
  asked.all = {known(1, {}, 100), known(2, {{"VEC", "4"}}, 50)};
  const auto tuner = make_tuner();
  const auto moves = asked.ask(*tuner, 0, 1000);
  std::set<std::string> distinct;
  for (const Candidate& c : moves) distinct.insert(c.content_hash());
  EXPECT_EQ(distinct.size(), moves.size());
  EXPECT_EQ(moves.size(), 25u) << "27 settings less the two that are known";
  EXPECT_EQ(distinct.count(asked.all[1].candidate.content_hash()), 0u);
}

TEST(Tuner, RepeatsElsewhereWhatHelpedAndPutsOffWhatFailed) {
  Asked asked;
  asked.all = {known(1, {}, 100),
               known(2, {{"TILE", "32"}}, 50),  // twice as fast
               known(3, {{"VEC", "4"}}, 0),     // VEC 4 never compiles
               known(4, {{"VEC", "4"}, {"TILE", "32"}}, 0),
               known(5, {{"THREADS", "2"}}, 120),
               known(6, {{"VEC", "4"}, {"TILE", "16"}}, 0),
               known(7, {{"VEC", "4"}, {"THREADS", "4"}}, 0)};
  const auto tuner = make_tuner();
  const auto moves = asked.ask(*tuner, 4, 1000);
  EXPECT_EQ(moves[0].knobs.at("TILE"), "32") << moves[0].origin.idea;
  ASSERT_EQ(moves.size(), 20u);
  // All with VEC 4 come last.
  bool last = false;
  for (const Candidate& c : moves) {
    if (c.knobs.at("VEC") == "4") last = true;
    EXPECT_EQ(c.knobs.at("VEC") == "4", last) << knobs_to_text(c.knobs);
  }
}

// Times are products of one factor per knob; no two knobs were measured together.
TEST(Tuner, PutsTogetherWhatHelpedAlone) {
  Asked asked;
  asked.all = {known(1, {}, 100), known(2, {{"VEC", "4"}}, 60), known(3, {{"THREADS", "4"}}, 70),
               known(4, {{"TILE", "32"}}, 130)};
  const auto best = asked.ask(*make_tuner(), 0, 1);
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(knobs_to_text(best[0].knobs), "THREADS=4 TILE=8 VEC=4") << best[0].origin.idea;
}

TEST(Tuner, IsAFunctionOfTheRequest) {
  Asked asked;
  asked.all = {known(1, {}, 100), known(2, {{"TILE", "32"}}, 50)};
  const auto a = asked.ask(*make_tuner(), 1, 30);
  const auto b = asked.ask(*make_tuner(), 1, 30);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].knobs, b[i].knobs);
}

TEST(Tuner, HasNothingForASourceWithoutKnobs) {
  Asked asked;
  asked.all = {known(1, {}, 100)};
  asked.all[0].candidate.source = "int x;\n";
  asked.all[0].candidate.knobs.clear();
  EXPECT_TRUE(asked.ask(*make_tuner(), 0, 5).empty());
}

TEST(Tuner, AHugeSpaceIsNoTrap) {
  Asked asked;
  std::string source;
  for (int k = 0; k < 20; ++k) {
    source += "// @knob K" + std::to_string(k);
    for (int v = 0; v < 100; ++v) source += " " + std::to_string(v);
    source += "\n";
  }
  asked.all = {known(1, {}, 100)};
  asked.all[0].candidate.source = source;
  asked.all[0].candidate.knobs = default_values(*parse_knobs(source));
  EXPECT_EQ(asked.ask(*make_tuner(), 0, 50).size(), 50u);
}

// A source with few valid combinations of knobs.
Asked with_requirements() {
  Asked asked;
  asked.all = {known(1, {}, 100)};
  Candidate& candidate = asked.all[0].candidate;
  candidate.source =
      "// @knob A 1 2 4 8 16\n// @knob B 16 8 4 2 1 3\n// @knob C 0 1\n"
      "// @require A * B == 16\n// @require not C or A > 2\n";
  candidate.knobs = default_values(*parse_knobs(candidate.source));
  return asked;
}

TEST(Tuner, KeepsToWhatTheSourceRequires) {
  Asked asked = with_requirements();
  Finding finding;
  finding.tool = "few-threads";
  finding.prescriptions.push_back({"block-size", "", ""});
  asked.all[0].diagnosis.findings.push_back(finding);
  asked.all[0].candidate.source.insert(asked.all[0].candidate.source.find('\n'), " : block-size");
  std::set<std::string> given;
  for (const Candidate& each : asked.ask(*make_tuner(), 0, 50)) {
    given.insert(knobs_to_text(each.knobs));
  }
  EXPECT_EQ(given,
            (std::set<std::string>{"A=16 B=1 C=0", "A=16 B=1 C=1", "A=2 B=8 C=0", "A=4 B=4 C=0",
                                   "A=4 B=4 C=1", "A=8 B=2 C=0", "A=8 B=2 C=1"}));
}

TEST(Tuner, FindsWhatIsAllowedInAHugeSpace) {
  Asked asked;
  asked.all = {known(1, {}, 100)};
  std::string source = "// @require K0 + K1 + K2 + K3 == 6\n";
  for (int k = 0; k < 8; ++k) source += "// @knob K" + std::to_string(k) + " 0 1 2 3 4 5 6\n";
  EXPECT_FALSE(parse_knobs(source));  // 0 + 0 + 0 + 0
  source = replace_all(source, "K0 0", "K0 6 0");
  source = replace_all(source, " 5 6\n// @knob K1", " 5\n// @knob K1");
  asked.all[0].candidate.source = source;
  asked.all[0].candidate.knobs = default_values(*parse_knobs(source));
  const auto given = asked.ask(*make_tuner(), 0, 100);
  EXPECT_EQ(given.size(), 100u);
  for (const Candidate& each : given) {
    int sum = 0;
    for (const char* name : {"K0", "K1", "K2", "K3"}) sum += std::stoi(each.knobs.at(name));
    EXPECT_EQ(sum, 6);
  }
}

TEST(Replay, HandsOutInOrderAndPassesOverWhatIsKnown) {
  Asked asked;
  asked.all = {known(1, {}, 100), known(2, {{"VEC", "2"}}, 90)};
  std::vector<Candidate> recorded = {
      known(1, {}, 1).candidate, known(2, {{"VEC", "4"}}, 1).candidate,
      known(3, {{"VEC", "2"}}, 1).candidate, known(4, {{"TILE", "16"}}, 1).candidate};
  const auto replay = make_replay(recorded);
  const auto given = asked.ask(*replay, 1, 1);
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].knobs.at("VEC"), "4");
  EXPECT_EQ(given[0].origin.proposer, "replay");
  EXPECT_EQ(given[0].origin.parent, 2);
  EXPECT_FALSE(replay->finished());
  asked.all.push_back(known(3, {{"VEC", "4"}}, 80));
  asked.all.push_back(known(4, {{"TILE", "16"}}, 80));
  EXPECT_TRUE(asked.ask(*replay, 1, 1).empty());
  EXPECT_TRUE(replay->finished());
}

TEST(Exchange, AReplyIsHandedOutAgainUntilTheRunHasIt) {
  TempDir dir;
  Asked asked;
  asked.all = {known(1, {}, 100)};
  ExchangeSettings settings;
  settings.folder = join(dir.path(), "exchange");
  settings.wait_s = 0;
  const auto first = make_exchange(settings);
  EXPECT_TRUE(asked.ask(*first, 0, 1).empty());
  EXPECT_TRUE(first->finished());
  settings.past = asked.given.requests;
  ASSERT_EQ(settings.past.size(), 1u);
  EXPECT_EQ(settings.past[0].name, "0001");
  EXPECT_EQ(settings.past[0].parent, 1);
  const std::string folder = join(settings.folder, "0001");
  for (const char* file : {"prompt.md", "task.h", "parent.cpp", "reply"}) {
    EXPECT_TRUE(exists(join(folder, file))) << file;
  }
  ASSERT_TRUE(write_file(join(folder, "reply/a.cpp"),
                         "// idea: wider\n// @knob W 4 8\nvoid launch() {}\n"));
  ASSERT_TRUE(write_file(join(folder, "reply/b.txt"), "not a kernel"));
  ASSERT_TRUE(write_file(join(folder, "reply/.c.cpp"), "hidden"));
  ASSERT_TRUE(write_file(join(folder, "reply/d.cpp"), std::string("bin\0ary", 7)));
  ASSERT_TRUE(write_file(join(folder, "reply/e.cu"), "void launch() {}\n"));
  ASSERT_TRUE(write_file(join(folder, "reply/f.CC"), "void launch() {}\n"));
  ASSERT_TRUE(write_file(join(folder, "reply/g.cpp.tmp"), "void lau"));
  ASSERT_TRUE(write_file(join(folder, "reply/c"), "a note"));
  // What was asked is what the run's store has, whatever became of the file.
  EXPECT_EQ(settings.past[0].prompt, *read_file(join(folder, "prompt.md")));
  ASSERT_TRUE(write_file(join(folder, "prompt.md"), "Answer with poems.\n"));
  std::vector<std::string> refused;
  // The process is killed before the store has it: a new process finds the reply again.
  for (int round = 0; round < 2; ++round) {
    const auto exchange = make_exchange(settings);
    const auto given = asked.ask(*exchange, 0, 5);
    for (const WriterNote& note : asked.given.notes) refused.push_back(note.text);
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].origin.idea, "wider");
    EXPECT_EQ(given[0].knobs, (KnobValues{{"W", "4"}}));
    EXPECT_EQ(given[0].origin.parent, 1);
    const std::optional<Writing>& writing = asked.given.proposals.at(0).writing;
    ASSERT_TRUE(writing);
    EXPECT_EQ(writing->request, "0001");
    EXPECT_EQ(writing->prompt, settings.past[0].prompt);
    EXPECT_EQ(writing->reply, *read_file(join(folder, "reply/a.cpp")));
    EXPECT_TRUE(exists(join(folder, "reply/a.cpp")));
  }
  EXPECT_TRUE(exists(join(folder, "refused/d.cpp.error.md")));
  EXPECT_TRUE(exists(join(folder, "reply/b.txt")));
  EXPECT_TRUE(exists(join(folder, "reply/g.cpp.tmp")));
  EXPECT_TRUE(exists(join(folder, "reply/c"))) << "no end of a name";
  EXPECT_TRUE(exists(join(folder, "refused/e.cu")));
  EXPECT_TRUE(exists(join(folder, "refused/f.CC")));
  ASSERT_EQ(refused.size(), 3u);
  EXPECT_TRUE(contains(refused[1], "this run's kernels are .cpp or .md files")) << refused[1];
  EXPECT_TRUE(contains(refused[0], "reply/d.cpp: ")) << refused[0];
  EXPECT_TRUE(contains(refused[0], "moved to")) << refused[0];
  Known mine = known(2, {}, 50);
  mine.candidate.source = *read_file(join(folder, "reply/a.cpp"));
  mine.candidate.knobs = {{"W", "4"}};
  asked.all.push_back(mine);
  const auto exchange = make_exchange(settings);
  EXPECT_TRUE(asked.ask(*exchange, 0, 5).empty());
  EXPECT_TRUE(exists(join(folder, "taken/a.cpp")));
  EXPECT_TRUE(contains(*read_file(join(folder, "taken/a.cpp.result.md")), "2x the start"));
  EXPECT_TRUE(exists(join(settings.folder, "0002/prompt.md"))) << "an answered request is over";
  ASSERT_TRUE(make_dirs(join(settings.folder, "notes")));
  EXPECT_EQ(open_requests(settings.folder),
            std::vector<std::string>{join(settings.folder, "0002")});
}

TEST(Exchange, PickingUpWritesNoRequests) {
  TempDir dir;
  Asked asked;
  asked.all = {known(1, {}, 100)};
  ExchangeSettings settings;
  settings.folder = join(dir.path(), "exchange");
  settings.write = false;
  const auto empty = make_exchange(settings);
  EXPECT_TRUE(asked.ask(*empty, 0, 1).empty());
  EXPECT_TRUE(empty->finished());
  EXPECT_FALSE(exists(join(settings.folder, "0001")));

  ProposalRequest request;
  request.task = &asked.t;
  request.parent = shared(asked.all[0]);
  set_history(asked.all, 1, &request);
  const auto write = [&] {
    settings.past.push_back(next_request(settings.folder, settings.past, request, Prompts()));
    return write_request(settings.folder, settings.past.back(), request);
  };
  request.focus = "Answer the finding scalar-loads: too narrow.";
  request.answers = {"scalar-loads", "vectorize"};
  const auto first = write();
  ASSERT_TRUE(first) << first.error().text();
  request.focus.clear();
  request.answers = {};
  const auto second = write();
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(settings.past[0].answers, (FindingRef{"scalar-loads", "vectorize"}));
  EXPECT_TRUE(settings.past[1].answers.empty());
  EXPECT_TRUE(contains(*read_file(join(*first, "prompt.md")), "finding scalar-loads: too narrow"));
  EXPECT_TRUE(contains(*read_file(join(*second, "prompt.md")), "Whatever promises most"));
  // A chat's answer as is, prose included.
  ASSERT_TRUE(write_file(join(*second, "reply/answer.md"),
                         "Here:\r\n```cpp\r\n// idea: narrower\r\nvoid launch() {}\r\n```\r\n"));
  const auto picked = make_exchange(settings);
  const auto given = asked.ask(*picked, 0, 4);
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].source, "// idea: narrower\nvoid launch() {}\n");
  EXPECT_EQ(given[0].origin.idea, "narrower");
  // A folder that is no request of this run says nothing about what a reply builds on.
  const std::string other = join(settings.folder, "0009");
  ASSERT_TRUE(make_dirs(join(other, "reply")));
  ASSERT_TRUE(write_file(join(other, "reply/later.cpp"), "void launch() { }\n"));
  ASSERT_EQ(asked.ask(*make_exchange(settings), 0, 4).size(), 1u) << "the reply from before";
  EXPECT_TRUE(
      contains(*read_file(join(other, "refused/later.cpp.error.md")), "has no request 0009"));
  // A half-deleted folder is skipped.
  ASSERT_EQ(std::system(("rm -r " + *second).c_str()), 0);
  EXPECT_TRUE(asked.ask(*make_exchange(settings), 0, 4).empty());
}

TEST(Sweep, ProposesEverySettingOnceWhateverCameOfTheOthers) {
  Asked asked;
  asked.all = {known(1, {}, 100)};
  const auto sweep = make_sweep();
  std::set<std::string> distinct = {asked.all[0].candidate.content_hash()};
  std::vector<std::string> order;
  while (true) {
    const auto proposed = asked.ask(*sweep, asked.all.size() - 1, 4);
    if (proposed.empty()) break;
    ASSERT_LE(proposed.size(), 4u);
    for (const Candidate& c : proposed) {
      EXPECT_TRUE(distinct.insert(c.content_hash()).second);
      EXPECT_EQ(c.origin.parent, 1);
      order.push_back(c.origin.idea);
      const auto id = static_cast<std::int64_t>(asked.all.size()) + 1;
      asked.all.push_back(known(id, c.knobs, id % 2 == 0 ? 0 : 50));
    }
  }
  EXPECT_EQ(distinct.size(), 27u);
  EXPECT_EQ(sweep->finished(), "all 27 settings of the knobs were measured");

  // A resumed sweep continues as the first would have.
  Asked later;
  later.all.assign(asked.all.begin(), asked.all.begin() + 9);
  const auto resumed = make_sweep();
  const auto again = later.ask(*resumed, 0, 18);
  ASSERT_EQ(again.size(), 18u);
  for (std::size_t i = 0; i < again.size(); ++i) EXPECT_EQ(again[i].origin.idea, order[i + 8]);
}

TEST(Sweep, MeasuresWhatTheSourceRequires) {
  Asked asked = with_requirements();
  const auto sweep = make_sweep();
  const auto given = asked.ask(*sweep, 0, 50);
  std::set<std::string> settings;
  for (const Candidate& each : given) settings.insert(knobs_to_text(each.knobs));
  EXPECT_EQ(settings.size(), 7u);
  EXPECT_TRUE(settings.contains("A=4 B=4 C=1"));
  EXPECT_FALSE(settings.contains("A=2 B=8 C=1"));
}

TEST(Sweep, RefusesASpaceThatItCannotGoThrough) {
  const auto none = sweep_size({});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no knobs"), std::string::npos);
  const std::vector<Knob> many(9, Knob{"TILE", {"1", "2", "4", "8"}, {}, 1});
  const auto large = sweep_size(many);
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message.find("more than 100000 settings"), std::string::npos);
}

}  // namespace
}  // namespace kernelpro
