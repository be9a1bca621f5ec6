// SPDX-License-Identifier: Apache-2.0
// `kernelpro optimize --model` from its command line to its report: the real binary, compiler and
// cpu target, and a local server that plays the model (bench/model/server.py).
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "base/files.h"
#include "base/json.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "core/testing/toy_task.h"
#include "write/model/local_server.h"

namespace kernelpro {
namespace {

constexpr const char* kSlow = R"(#include "task.h"
extern "C" void launch(const Args& args) {
  for (int i = 0; i < N; ++i) {
    for (volatile int k = 0; k < 20; k = k + 1) args.y[i] = 2 * args.x[i];
  }
}
)";
const std::string kBroken =
    "```cpp\n#include \"task.h\"\nextern \"C\" void launch(const Args& args) { no_such(args); "
    "}\n```";
const std::string kFast =
    "The function does not exist.\n```cpp\n// idea: one pass\n#include \"task.h\"\n"
    "extern \"C\" void launch(const Args& args) {\n"
    "  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i];\n}\n```\n";

Json rule(const char* when, const std::string& say) {
  Json json = Json::object();
  json["when"] = when;
  json["say"] = say;
  return json;
}

struct Writers : ::testing::Test {
  TempDir dir;
  std::string task = join(dir.path(), "twice");
  std::string run_dir = join(dir.path(), "run");
  Exit kernelpro(std::vector<std::string> arguments) {
    Command command;
    command.argv = {join(executable_dir(), "kernelpro")};
    command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
    command.limits.wall_seconds = 900;
    const auto exit = run(command);
    EXPECT_TRUE(exit.has_value());
    return exit ? *exit : Exit();
  }
  void SetUp() override {
    ASSERT_EQ(setenv("KERNELPRO_STATE", join(dir.path(), "state").c_str(), 1), 0);
    ASSERT_TRUE(
        testing::write_toy_task(task, {{"small", 77, ""}, {"large", 100000, "timed"}}, 2, kSlow));
  }
  void TearDown() override { unsetenv("KERNELPRO_STATE"); }
};

TEST_F(Writers, AModelMakesItFaster) {
  const auto server = LocalServer::start(KERNELPRO_SOURCE_DIR);
  ASSERT_TRUE(server) << server.error().text();
  server->script("cli", Json(std::vector<Json>{
                            rule("# Plan:", "IDEA: One pass.\nANSWERS: nothing\nGAIN: 10\n"),
                            rule("# Write:", kBroken), rule("# Repair: candidate 2", kFast)}));
  const Exit exit = kernelpro({"optimize", task, "--target", "cpu", "--run", run_dir, "--model",
                               server->base("cli", "script") + "#any", "--ideas", "1",
                               "--evaluations", "3", "--near-ceiling", "0", "--no-record"});
  ASSERT_EQ(exit.code, 0) << exit.output;
  EXPECT_TRUE(contains(exit.output, "written by a language model")) << exit.output;
  EXPECT_TRUE(contains(exit.output,
                       "3 questions to models (1 coder, 1 fixer, 1 planner): "
                       "3 requests"))
      << exit.output;
  const Exit show = kernelpro({"show", run_dir, "--json"});
  const auto json = parse_json(show.output);
  ASSERT_TRUE(json) << show.output;
  EXPECT_EQ((*json)["best"]["id"], 3);
  EXPECT_GT((*json)["best"]["speedup"].get<double>(), 2);
  EXPECT_EQ((*json)["calls"].size(), 3u);
  EXPECT_EQ((*json)["candidates"][1]["outcome"], "compile-error") << (*json)["candidates"][1];
  EXPECT_TRUE(contains((*json)["calls"][2]["prompt"].get<std::string>(), "no_such"))
      << "the fixer is shown what the compiler said";
  EXPECT_TRUE(contains(kernelpro({"show", run_dir}).output, "3 questions to models"));
  const Exit lines_out = kernelpro({"trajectories", run_dir, "--written"});
  const std::vector<std::string> all = lines(lines_out.output);
  ASSERT_EQ(all.size(), 2u) << lines_out.output;
  EXPECT_TRUE(contains(all[1], "\"role\":\"fixer\""));

  // As text it is the same run, and a folder can be made of it again.
  const std::string text = run_dir + ".jsonl";
  ASSERT_EQ(kernelpro({"trajectories", run_dir, "--output", text}).code, 0);
  EXPECT_EQ(replace_all(kernelpro({"show", text}).output, text, run_dir),
            kernelpro({"show", run_dir}).output);
  ASSERT_EQ(kernelpro({"pack", text, run_dir + "-again"}).code, 0);
  EXPECT_EQ(kernelpro({"trajectories", run_dir + "-again"}).output, *read_file(text));
  EXPECT_TRUE(contains(kernelpro({"list", dirname(run_dir)}).output, text));
  EXPECT_TRUE(exists(join(run_dir, "report.html")));

  // With its winner as the seed and a different budget.
  const Exit warm =
      kernelpro({"optimize", task, "--target", "cpu", "--run", run_dir + "-warm", "--start-from",
                 run_dir, "--evaluations", "2", "--no-record", "--near-ceiling", "0"});
  ASSERT_EQ(warm.code, 0) << warm.output;
  EXPECT_TRUE(
      contains(warm.output, "came from --start-from, not from this search: The best of the run"))
      << warm.output;
}

// A run that achieved nothing does not count as a success; a resume asks the writer again.
TEST_F(Writers, NoAnswerIsNotASuccess) {
  const auto server = LocalServer::start(KERNELPRO_SOURCE_DIR);
  ASSERT_TRUE(server) << server.error().text();
  const std::string model = server->base("silent", "script") + "#any";
  server->script("silent", Json(std::vector<Json>{rule("# ", "I had rather not.")}));
  const Exit silent =
      kernelpro({"optimize", task, "--target", "cpu", "--run", run_dir, "--model", model, "--ideas",
                 "1", "--fixes", "0", "--evaluations", "2", "--near-ceiling", "0", "--no-record"});
  EXPECT_EQ(silent.code, 7) << silent.output;
  EXPECT_TRUE(contains(silent.output, "achieved nothing")) << silent.output;
  EXPECT_TRUE(contains(silent.output, "kernelpro resume " + run_dir)) << silent.output;
  server->script("silent", Json(std::vector<Json>{
                               rule("# Plan:", "IDEA: One pass.\nANSWERS: nothing\nGAIN: 10\n"),
                               rule("# Write:", kFast)}));
  const Exit resumed = kernelpro({"resume", run_dir, "--json"});
  EXPECT_EQ(resumed.code, 0) << resumed.output;
  EXPECT_TRUE(contains(resumed.output, "\"end\":\"done\"")) << resumed.output;
}

TEST_F(Writers, NothingToTryIsNotASuccess) {
  const std::string plain = join(dir.path(), "plain.cpp");
  ASSERT_TRUE(
      write_file(plain,
                 "#include <algorithm>\n#include \"task.h\"\n"
                 "extern \"C\" void launch(const Args& args) {\n"
                 "  std::transform(args.x, args.x + N, args.y, [](auto x) { return 2 * x; });\n"
                 "}\n"));
  const Exit knobless = kernelpro({"optimize", task, "--target", "cpu", "--run", run_dir, "--start",
                                   plain, "--near-ceiling", "0", "--no-record"});
  EXPECT_EQ(knobless.code, 7) << knobless.output;
  EXPECT_TRUE(contains(knobless.output, "// @knob")) << knobless.output;
  const std::string other = run_dir + "-exchange";
  const Exit unanswered =
      kernelpro({"optimize", task, "--target", "cpu", "--run", other, "--proposer", "exchange",
                 "--exchange-wait", "0", "--near-ceiling", "0", "--no-record"});
  EXPECT_EQ(unanswered.code, 7) << unanswered.output;
  EXPECT_TRUE(contains(unanswered.output, other + "/exchange")) << unanswered.output;
  const Exit listed = kernelpro({"list", dir.path()});
  EXPECT_TRUE(contains(listed.output, "(stopped; kernelpro resume")) << listed.output;
  const Exit measured = kernelpro({"measure", other});
  EXPECT_EQ(measured.code, 7) << measured.output;
  EXPECT_TRUE(contains(measured.output, "kernelpro propose " + other)) << measured.output;
}

// Neither knobs nor a model: the tuner finds knobs in the text.
TEST_F(Writers, AKernelWithoutKnobsIsNotTheEnd) {
  const Exit exit = kernelpro({"optimize", task, "--target", "cpu", "--run", run_dir,
                               "--evaluations", "3", "--near-ceiling", "0", "--no-record"});
  EXPECT_EQ(exit.code, 0) << exit.output;
  EXPECT_TRUE(contains(exit.output, "UNROLL=0")) << exit.output;
  EXPECT_TRUE(contains(exit.output, "3/3")) << exit.output;
}

TEST_F(Writers, AnInterruptionHasTheStatusOfItsSignal) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string folder = run_dir + std::to_string(signal);
    Command command;
    command.argv = {join(executable_dir(), "kernelpro"),
                    "optimize",
                    task,
                    "--target",
                    "cpu",
                    "--run",
                    folder,
                    "--proposer",
                    "exchange",
                    "--near-ceiling",
                    "0",
                    "--no-record"};
    auto child = Child::start(command);
    ASSERT_TRUE(child) << child.error().text();
    const std::string waits = join(folder, "exchange/0001/prompt.md");
    for (int i = 0; i < 6000 && !exists(waits); ++i) ::usleep(10'000);
    ASSERT_TRUE(exists(waits));
    ::kill(child->pid(), signal);
    const Exit exit = child->wait(60);
    EXPECT_EQ(exit.kind, Exit::Kind::kExited) << exit.output;
    EXPECT_EQ(exit.code, 128 + signal) << exit.output;
    EXPECT_TRUE(contains(exit.output, "continue with: kernelpro resume " + folder)) << exit.output;
  }
}

TEST_F(Writers, Faults) {
  const Exit unnamed = kernelpro({"optimize", task, "--target", "cpu", "--run", run_dir, "--model",
                                  "my-model", "--no-record"});
  EXPECT_EQ(unnamed.code, 2);
  EXPECT_TRUE(contains(unnamed.output, "anthropic:MODEL")) << unnamed.output;
  const Exit none = kernelpro({"optimize", task, "--target", "cpu", "--run", run_dir, "--proposer",
                               "model", "--no-record"});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(contains(none.output, "--model")) << none.output;
  const Exit price = kernelpro({"optimize", task, "--target", "cpu", "--run", run_dir, "--model",
                                "http://127.0.0.1:1/v1#any", "--max-usd", "1", "--no-record"});
  EXPECT_EQ(price.code, 2);
  EXPECT_TRUE(contains(price.output, "price")) << price.output;
  EXPECT_EQ(kernelpro({"optimize", task, "--ideas", "0"}).code, 2);
  const Exit alone = kernelpro({"optimize", task, "--run", run_dir, "--planner", "openai:m"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_TRUE(contains(alone.output, "--coder")) << alone.output;
  EXPECT_EQ(kernelpro({"optimize", task, "--feedback", "much"}).code, 2);
  EXPECT_FALSE(exists(run_dir));
}

}  // namespace
}  // namespace kernelpro
