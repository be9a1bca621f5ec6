// SPDX-License-Identifier: Apache-2.0
// Models as writers against a real server on real sockets (bench/model/server.py) with scripted
// answers. Within a run: run/model_run_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "write/calls.h"
#include "write/knowledge/knowledge_base.h"
#include "write/memory.h"
#include "write/model/local_server.h"
#include "write/proposer.h"
#include "write/testing.h"

namespace kernelpro {
namespace {

using namespace proposing;

const LocalServer& server() {
  static const Result<LocalServer> started = LocalServer::start(KERNELPRO_SOURCE_DIR);
  if (!started) throw Fatal(started.error());
  return *started;
}

// A different kernel for each request: {n} is the request's number.
const std::string kKernel =
    "Wider loads.\n```cpp\n// idea: version {n}\n#include \"task.h\"\nint v{n};\n"
    "extern \"C\" void launch(const Args& args) {}\n```\n";
const std::string kPlan =
    "IDEA: Load four numbers at once.\nANSWERS: scalar-code: vectorize\nGAIN: 2\n"
    "IDEA: Split the rows.\nANSWERS: nothing\nGAIN: 1.5\n";

// A rule of server.py's act "script".
Json rule(const char* when, const std::string& say, const std::vector<Json>& tools = {},
          int times = 1000000) {
  Json json = Json::object();
  json["when"] = when;
  json["say"] = say;
  json["tools"] = tools;
  json["times"] = times;
  return json;
}
Json call(const char* name, const char* arguments) {
  Json json = Json::array();
  json.push_back(name);
  json.push_back(*parse_json(arguments));
  return json;
}

struct ModelTest : ::testing::Test {
  TempDir dir;
  std::string id = "model" + std::to_string(++next_id);
  ModelSettings settings;
  std::vector<ModelCall> calls;
  std::vector<std::string> notes;
  std::vector<Known> all = {known(1, {}, 100)};
  Task t = task();
  std::unique_ptr<Proposer> proposer;
  static inline int next_id = 0;

  void SetUp() override {
    all[0].diagnosis.findings = {finding("scalar-code", {"vectorize"})};
    settings.roles.coder = spec("script");
    settings.roles.tune = 0;
    settings.knowledge = join(dir.path(), "knowledge");
  }
  std::string spec(const std::string& acts) const { return server().base(id, acts) + "#any"; }
  void script(const std::vector<Json>& rules) const { server().script(id, Json(rules)); }
  int asked() const {
    const Json last = server().ask("/last/" + id);
    return last.is_null() ? 0 : last["turns"].get<int>();
  }
  std::vector<Proposal> propose(int wanted = 3, std::size_t parent = 0,
                                Feedback feedback = Feedback::kDiagnosed) {
    if (!proposer) {
      auto made = make_model(settings);
      if (!made) throw Fatal(made.error());
      proposer = std::move(*made);
    }
    ProposalRequest request;
    request.task = &t;
    request.parent = shared(all[parent]);
    set_history(all, 1, &request);
    request.target = target;
    request.dialect = dialect;
    request.task_header = "#define N 65536\n";
    request.wanted = wanted;
    request.implementations = implementations;
    request.temperature = temperature;
    request.feedback = feedback;
    Given given;
    const auto written = proposer->propose(request, given.sink());
    EXPECT_TRUE(written) << written.error().text();
    calls.insert(calls.end(), given.calls.begin(), given.calls.end());
    for (const WriterNote& note : given.notes) notes.push_back(note.text);
    // They end in any order.
    std::stable_sort(given.proposals.begin(), given.proposals.end(),
                     [](const Proposal& a, const Proposal& b) { return name_of(a) < name_of(b); });
    return given.proposals;
  }
  static std::string name_of(const Proposal& proposal) {
    return proposal.writing ? proposal.writing->request : "";
  }
  TargetKind target = TargetKind::kCpu;
  std::optional<Dialect> dialect;
  int implementations = 1;
  std::optional<double> temperature;
  // As the run adds a measured candidate; us 0: it does not compile.
  void measured(const Proposal& proposal, double us) {
    Known k = known(static_cast<std::int64_t>(all.size()) + 1, {}, us);
    k.candidate = proposal.candidate;
    all.push_back(k);
  }
  std::map<std::string, int> outcomes() const {
    std::map<std::string, int> counts;
    for (const ModelCall& call : calls)
      ++counts[std::string(model_role_name(call.role)) + " " +
               std::string(call_outcome_name(call.outcome))];
    return counts;
  }
};

using Counted = std::map<std::string, int>;

TEST_F(ModelTest, PlansAndWritesASourceForEachIdea) {
  script({rule("# Plan:", kPlan), rule("# Write:", kKernel)});
  const auto given = propose();
  ASSERT_EQ(given.size(), 2u);
  EXPECT_EQ(outcomes(), (Counted{{"planner reply", 1}, {"coder reply", 2}}));
  const Candidate& first = given[0].candidate;
  EXPECT_EQ(first.origin.proposer, "model");
  EXPECT_EQ(first.origin.parent, 1);
  EXPECT_EQ(first.origin.idea, "Load four numbers at once.");
  EXPECT_EQ(first.origin.answers.text(), "scalar-code: vectorize");
  EXPECT_EQ(given[1].candidate.origin.answers.text(), "");
  EXPECT_TRUE(first.source.starts_with("// idea: version"));
  const std::optional<Writing>& writing = given[0].writing;
  ASSERT_TRUE(writing);
  EXPECT_EQ(writing->request, "0001.1");
  EXPECT_EQ(writing->writer, spec("script"));
  EXPECT_TRUE(contains(writing->prompt, "Load four numbers at once."));
  EXPECT_TRUE(contains(writing->prompt, "#define N 65536"));
  EXPECT_TRUE(contains(writing->reply, "Wider loads."));
  const CallUsage usage = usage_from_json(writing->usage);
  EXPECT_EQ(usage.requests, 1);
  EXPECT_GT(usage.tokens.input, 100);
  EXPECT_GE(usage.tokens.output, 3);
  EXPECT_FALSE(usage.cost_known);
  EXPECT_TRUE(contains(writing->usage, "\"role\":\"coder\""));
  // The constant part is the system text, and is not repeated elsewhere.
  const Json body = server().ask("/last/" + id)["body"];
  ASSERT_EQ(body["messages"].size(), 2u);
  EXPECT_EQ(body["messages"][0]["role"], "system");
  EXPECT_TRUE(contains(body["messages"][0]["content"].get<std::string>(), "#define N 65536"));
  EXPECT_FALSE(contains(body["messages"][1]["content"].get<std::string>(), "#define N 65536"));
  EXPECT_FALSE(body.contains("tools")) << "there is no library";
  EXPECT_FALSE(proposer->finished());
  EXPECT_TRUE(contains(calls_text(calls), "3 questions to models (2 coder, 1 planner): 3 requests"))
      << calls_text(calls);
  EXPECT_TRUE(contains(calls_text(calls), "price unknown"));
}

// A question is on record before anything that came of it.
TEST_F(ModelTest, ACallComesBeforeItsCandidate) {
  script({rule("# Plan:", kPlan), rule("# Write:", kKernel)});
  const auto made = make_model(settings);
  ASSERT_TRUE(made) << made.error().text();
  ProposalRequest request;
  request.task = &t;
  request.parent = shared(all[0]);
  set_history(all, 1, &request);
  request.wanted = 3;
  std::set<std::string> gave;
  int proposed = 0;
  ASSERT_TRUE((*made)->propose(request, [&](WriterEvent event) {
    if (const auto* call = std::get_if<ModelCall>(&event)) gave.insert(call->gave);
    if (const auto* proposal = std::get_if<Proposal>(&event)) {
      ++proposed;
      EXPECT_TRUE(gave.contains(proposal->candidate.content_hash()));
    }
  }));
  EXPECT_EQ(proposed, 2);
}

TEST_F(ModelTest, AnIdeaMayBeImplementedSeveralTimesAtATemperature) {
  script({rule("# Plan:", kPlan), rule("# Write:", kKernel)});
  implementations = 2;
  temperature = 0.25;
  const auto given = propose(2);
  ASSERT_EQ(given.size(), 2u);
  EXPECT_EQ(outcomes(), (Counted{{"planner reply", 1}, {"coder reply", 2}}));
  EXPECT_EQ(given[0].candidate.origin.idea, given[1].candidate.origin.idea);
  EXPECT_TRUE(contains(given[0].writing->prompt, "implementation 1 of 2 of the idea"));
  EXPECT_TRUE(contains(given[1].writing->prompt, "implementation 2 of 2 of the idea"));
  EXPECT_EQ(server().ask("/last/" + id)["body"]["temperature"], 0.25);
}

TEST_F(ModelTest, OneCallAnswersTheFindingsAndThenAnything) {
  settings.roles.one_call = true;
  script({rule("# Write:", kKernel)});
  const auto given = propose();
  ASSERT_EQ(given.size(), 2u);
  EXPECT_EQ(outcomes(), (Counted{{"coder reply", 2}}));
  EXPECT_EQ(given[0].candidate.origin.answers.text(), "scalar-code: vectorize");
  EXPECT_TRUE(given[0].candidate.origin.idea.starts_with("version "));
  EXPECT_EQ(given[1].candidate.origin.answers.text(), "");
  // Without the diagnosis no finding is named.
  calls.clear();
  EXPECT_EQ(propose(3, 0, Feedback::kNone).size(), 1u);
  EXPECT_FALSE(contains(calls[0].prompt, "scalar-code"));
}

TEST_F(ModelTest, TheSameSourceTwiceIsOneCandidate) {
  script({rule("# Plan:", kPlan), rule("# Write:", replace_all(kKernel, "{n}", "7"))});
  const auto given = propose();
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(outcomes(),
            (Counted{{"planner reply", 1}, {"coder reply", 1}, {"coder duplicate", 1}}));
  measured(given[0], 90);
  calls.clear();
  EXPECT_TRUE(propose().empty()) << "and it is known from then on";
  EXPECT_EQ(outcomes(), (Counted{{"planner reply", 3}, {"coder duplicate", 6}}));
}

TEST_F(ModelTest, RepairsWhatFailedSoManyTimes) {
  settings.roles.ideas = 1;
  script({rule("# Plan:", kPlan), rule("# Write:", kKernel), rule("# Repair:", kKernel)});
  measured(propose(1).at(0), 0);
  calls.clear();
  auto repaired = propose(1);
  ASSERT_EQ(repaired.size(), 1u);
  EXPECT_EQ(outcomes(), (Counted{{"fixer reply", 1}}));
  EXPECT_EQ(calls[0].repairs, 2);
  EXPECT_TRUE(contains(calls[0].prompt, "no such register")) << "the compiler's words";
  EXPECT_TRUE(contains(calls[0].prompt, "int v2;")) << "the source that failed";
  EXPECT_EQ(idea_text(repaired[0].candidate.origin), "repair of 2: Load four numbers at once.");
  EXPECT_EQ(repaired[0].candidate.origin.parent, 1) << "a failure is nothing to build on";
  EXPECT_EQ(repaired[0].candidate.origin.answers.text(), "scalar-code: vectorize");
  measured(repaired[0], 0);
  repaired = propose(1);
  ASSERT_EQ(repaired.size(), 1u);
  EXPECT_EQ(idea_text(repaired[0].candidate.origin), "repair of 3: Load four numbers at once.");
  measured(repaired[0], 0);
  // Two repairs are enough: a new idea.
  calls.clear();
  EXPECT_EQ(propose(1).size(), 1u);
  EXPECT_EQ(outcomes(), (Counted{{"planner reply", 1}, {"coder reply", 1}}));
}

TEST_F(ModelTest, AnAnswerWithoutCodeIsRepairedOrCounted) {
  settings.roles.ideas = 1;
  script({rule("# Plan:", kPlan), rule("# Write:", "I would rather talk about it."),
          rule("talk about it", kKernel)});
  const auto given = propose(1);
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(outcomes(), (Counted{{"planner reply", 1}, {"coder no-code", 1}, {"fixer reply", 1}}));
  EXPECT_TRUE(contains(notes.at(0), "does not define `launch`")) << notes[0];
}

TEST_F(ModelTest, WhatNeverCameIsRememberedAsTried) {
  settings.roles.ideas = 1;
  settings.roles.fixes = 0;
  script({rule("# Write:", "Two.\n" + kKernel + kKernel), rule("# Plan:", kPlan, {}, 1),
          rule("(not written): Load four numbers at once. => no-code", kPlan)});
  EXPECT_TRUE(propose(1).empty());
  ASSERT_TRUE(proposer->finished());
  EXPECT_TRUE(contains(*proposer->finished(), "no kernel 3 times in a row"))
      << *proposer->finished();
  EXPECT_TRUE(contains(*proposer->finished(), "2 blocks")) << *proposer->finished();
  EXPECT_EQ(outcomes(), (Counted{{"planner reply", 3}, {"coder no-code", 3}}));
}

TEST_F(ModelTest, EveryWayOfGivingNothingIsCounted) {
  const std::map<std::string, std::string> kinds = {{"refusal", "refusal"},  {"empty", "empty"},
                                                    {"length", "truncated"}, {"ok", "no-ideas"},
                                                    {"400", "bad-request"},  {"html", "garbage"}};
  for (const auto& [act, outcome] : kinds) {
    calls.clear();
    proposer.reset();
    id = act + std::to_string(++next_id);
    settings.roles.coder = spec(act);
    EXPECT_TRUE(propose().empty()) << act;
    EXPECT_EQ(outcomes(), (Counted{{"planner " + outcome, 3}})) << act;
    EXPECT_TRUE(proposer->finished()) << act;
  }
}

TEST_F(ModelTest, AWrongKeyEndsItAtOnceAndIsNowhere) {
  const char* key = "sk-test-0123456789abcdefghij";
  ASSERT_EQ(setenv("KERNELPRO_API_KEY", key, 1), 0);
  settings.roles.coder = spec("401");
  EXPECT_TRUE(propose().empty());
  unsetenv("KERNELPRO_API_KEY");
  EXPECT_EQ(outcomes(), (Counted{{"planner auth", 1}}));
  ASSERT_TRUE(proposer->finished());
  EXPECT_TRUE(contains(*proposer->finished(), "cannot be asked")) << *proposer->finished();
  std::string everything = *proposer->finished() + notes.at(0);
  for (const ModelCall& c : calls) everything += c.model + c.prompt + c.tools + c.reply + c.usage;
  EXPECT_FALSE(contains(everything, "0123456789"));
}

TEST_F(ModelTest, BudgetsEndIt) {
  settings.roles.max_calls = 2;
  script({rule("# Plan:", kPlan), rule("# Write:", kKernel)});
  EXPECT_EQ(propose().size(), 1u) << "the plan and one of its two ideas";
  EXPECT_EQ(asked(), 2);
  EXPECT_EQ(calls.size(), 2u) << "what was not sent is no call";
  ASSERT_TRUE(proposer->finished());
  EXPECT_TRUE(contains(*proposer->finished(), "all of the 2 calls are used up"))
      << *proposer->finished();
  // Another sitting continues the numbering.
  settings.past = calls;
  proposer.reset();
  all.push_back(known(2, {{"VEC", "2"}}, 90));
  EXPECT_TRUE(propose().empty());
  EXPECT_EQ(asked(), 2);
  EXPECT_TRUE(proposer->finished());
  // Tokens count at a request's worst case.
  proposer.reset();
  settings.roles.max_calls = 0;
  settings.roles.max_tokens = 5000;
  EXPECT_TRUE(propose().empty());
  EXPECT_TRUE(contains(*proposer->finished(), "of 5000 tokens")) << *proposer->finished();
}

TEST_F(ModelTest, AMoneyBudgetNeedsAPrice) {
  settings.roles.max_usd = 0.5;
  const auto unknown = make_model(settings);
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(contains(unknown.error().text(), "is unknown")) << unknown.error().text();
  EXPECT_TRUE(contains(unknown.error().next, "docs/models.md"));
  const std::string table = join(dir.path(), "prices.toml");
  ASSERT_TRUE(
      write_file(table, "[[price]]\nmodel = \"http://127.0.0.1\"\ninput = 10\noutput = 20\n"));
  ASSERT_EQ(setenv("KERNELPRO_PRICES", table.c_str(), 1), 0);
  script({rule("# Plan:", kPlan), rule("# Write:", kKernel)});
  EXPECT_EQ(propose(1).size(), 1u);
  unsetenv("KERNELPRO_PRICES");
  EXPECT_GT(spend_of(calls).usd, 0.001);
  EXPECT_TRUE(contains(calls_text(calls), ", $0.0")) << calls_text(calls);
}

struct ToolsTest : ModelTest {
  void SetUp() override {
    ModelTest::SetUp();
    settings.roles.one_call = true;
    settings.roles.ideas = 1;
    const std::string tree = join(dir.path(), "tree");
    ASSERT_TRUE(make_dirs(tree));
    ASSERT_TRUE(
        write_file(join(tree, "copy.hpp"),
                   "// Copies a tile by the bulk engine.\nvoid bulk_copy_tile(int n) {}\n"));
    ASSERT_TRUE(write_file(join(dir.path(), "secret.hpp"), "int secret_number = 7;\n"));
    KnowledgeBase base(settings.knowledge);
    ASSERT_TRUE(base.add("lib", tree, false));
  }
  std::map<std::string, int> tools() const { return usage_from_json(calls.at(0).usage).tools; }
};

TEST_F(ToolsTest, LooksThingsUpAndThenWrites) {
  script({rule("# Write:", "Let me look.",
               {call("search_code", R"({"query": "bulk_copy_tile"})"),
                call("list_code", R"({"library": "lib"})")}),
          rule("copy.hpp:", "", {call("read_code", R"({"library": "lib", "path": "copy.hpp"})")}),
          rule("lines 1 to 2 of 2", kKernel)});
  const auto given = propose(1);
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(tools(), (Counted{{"search_code", 1}, {"list_code", 1}, {"read_code", 1}}));
  EXPECT_EQ(usage_from_json(calls[0].usage).requests, 3);
  EXPECT_TRUE(contains(given[0].writing->prompt, "### read_code")) << "what it read is kept";
  EXPECT_TRUE(contains(calls[0].prompt, "These source trees are indexed: lib."));
}

// The other API, from a server that is overloaded at first: the same course with one more attempt,
// and the constant prefix is marked for caching.
TEST_F(ToolsTest, SpeaksTheMessagesApiToo) {
  settings.roles.coder = "anthropic:" + spec("529;script");
  script({rule("# Write:", "Let me look.", {call("search_code", R"({"query": "bulk_copy_tile"})")}),
          rule("copy.hpp:", kKernel)});
  ASSERT_EQ(propose(1).size(), 1u);
  const CallUsage usage = usage_from_json(calls.at(0).usage);
  EXPECT_EQ(usage.requests, 2);
  EXPECT_EQ(usage.attempts, 3);
  const Json body = server().ask("/last/" + id)["body"];
  EXPECT_TRUE(body["system"][0].contains("cache_control")) << body["system"];
  EXPECT_TRUE(body["messages"].back()["content"].back().contains("cache_control"));
  EXPECT_EQ(body["tools"].size(), 3u);
}

TEST_F(ToolsTest, WhatItMayNotOrCannotDoIsAnErrorForTheModel) {
  script(
      {rule("# Write:", "",
            {call("delete_everything", "{}"),
             call("read_code", R"({"library": "lib", "path": "../secret.hpp"})"),
             call("read_code", R"({"library": "lib", "path": "/etc/passwd"})"),
             call("search_code", R"({"query": 5})"), call("read_code", R"({"library": "other"})")}),
       rule("error: ", kKernel)});
  ASSERT_EQ(propose(1).size(), 1u);
  EXPECT_EQ(tools(), (Counted{{"unknown", 1}, {"refused", 4}}));
  EXPECT_TRUE(contains(calls[0].tools, "there is no tool \"delete_everything\""));
  EXPECT_FALSE(contains(calls[0].tools, "secret_number"));
  EXPECT_FALSE(contains(calls[0].tools, "root:"));
}

TEST_F(ToolsTest, ALoopEndsAndIsCounted) {
  settings.roles.tool_rounds = 3;
  script({rule("", "", {call("search_code", R"({"query": "copies a tile"})")})});
  EXPECT_TRUE(propose(1).empty());
  EXPECT_EQ(outcomes(), (Counted{{"coder tool-loop", 3}}));
  EXPECT_EQ(tools(), (Counted{{"search_code", 1}, {"refused", 3}})) << calls[0].tools;
  EXPECT_TRUE(contains(calls[0].tools, "You have looked this up already"));
  EXPECT_TRUE(contains(calls[0].tools, "Answer it now"));
  EXPECT_EQ(usage_from_json(calls[0].usage).requests, 5);
}

TEST_F(ModelTest, WhatIsPaidIsNotAskedAgain) {
  script({rule("# Plan:", kPlan), rule("# Write:", kKernel)});
  const auto first = propose();
  ASSERT_EQ(first.size(), 2u);
  const int before = asked();
  // Killed before the store had any of them: the same answers, from the record.
  settings.past = calls;
  proposer.reset();
  calls.clear();
  const auto again = propose();
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(asked(), before);
  EXPECT_TRUE(calls.empty()) << "it is recorded already";
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(again[i].candidate.content_hash(), first[i].candidate.content_hash());
    EXPECT_EQ(again[i].candidate.origin.idea, first[i].candidate.origin.idea);
    EXPECT_EQ(again[i].writing->usage, first[i].writing->usage);
  }
  // A failed candidate is repaired in a later sitting too, since the record names its author.
  measured(first[0], 0);
  proposer.reset();
  script({rule("# Repair: candidate 2", kKernel)});
  const auto repaired = propose();
  ASSERT_EQ(repaired.size(), 1u);
  EXPECT_EQ(calls.at(0).request, "0002.1");
}

TEST_F(ModelTest, WritesInTheLanguageThatWasChosen) {
  settings.roles.ideas = 1;
  settings.roles.one_call = true;
  script({rule("# Write:",
               "```python\n# idea: in Triton\nimport torch\n\n\nclass ModelNew(torch.nn.Module):\n"
               "    def forward(self, x):\n        return x\n```\n")});
  target = TargetKind::kCuda;
  dialect = Dialect::kTriton;
  const auto written = propose(1);
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].candidate.language, Language::kPython);
}

TEST_F(ModelTest, TheTunerMovesTheKnobsOfASourceFirst) {
  settings.roles.tune = 1;  // twice that for the best
  settings.roles.ideas = 1;
  script({rule("# Plan:", kPlan), rule("# Write:", kKernel)});
  const auto tuned = propose(5);
  ASSERT_EQ(tuned.size(), 2u);
  EXPECT_EQ(tuned[0].candidate.origin.proposer, "tuner");
  EXPECT_EQ(asked(), 0);
  for (const Proposal& each : tuned) measured(each, 90);
  EXPECT_EQ(propose(5).at(0).candidate.origin.proposer, "model");
}

}  // namespace
}  // namespace kernelpro
