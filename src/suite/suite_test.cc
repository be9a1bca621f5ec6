// SPDX-License-Identifier: Apache-2.0
// `kernelpro bench` as a user runs it: the real program on small tasks for the cpu target.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/json.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "run/store/store.h"
#include "suite/report.h"
#include "suite/testing.h"
#include "suite/work.h"
#include "task/open/open_task.h"
#include "write/model/local_server.h"

namespace kernelpro {
namespace {

Exit bench(const std::vector<std::string>& arguments) {
  Command command;
  command.argv = {join(executable_dir(), "kernelpro"), "bench"};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.limits.wall_seconds = 60;
  const auto exit = run(command);
  EXPECT_TRUE(exit.has_value());
  return exit ? *exit : Exit();
}

Json report_of(const std::string& out) {
  const auto text = read_file(join(out, "report.json"));
  return text ? parse_json(*text).value_or(Json()) : Json();
}

// A broken task is reported, the rest run, and repeating the command does nothing again.
TEST(Bench, RunsReportsAndGoesOn) {
  const TempDir folder;
  const std::string tasks = join(folder.path(), "tasks"), out = join(folder.path(), "out");
  ASSERT_TRUE(testing::write_scale_task(join(tasks, "double"), 2));
  ASSERT_TRUE(testing::write_scale_task(join(tasks, "broken"), 3));
  ASSERT_TRUE(write_file(join(tasks, "broken/task.toml"), "[task]\nname = 3\n"));
  const std::vector<std::string> command = {tasks, "--out",          out,        "--target",
                                            "cpu", "--arms",         "seed=1,2", "--evaluations",
                                            "3",   "--near-ceiling", "0"};
  const Exit exit = bench(command);
  ASSERT_TRUE(exit.ok()) << exit.output;
  EXPECT_TRUE(contains(exit.output, "broken: ")) << exit.output;
  const auto settings = read_suite(out);
  ASSERT_TRUE(settings);
  const std::vector<TaskResult> results = read_results(*settings);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].state, RunState::kBroken);
  EXPECT_TRUE(contains(results[0].reason, "task.toml")) << results[0].reason;
  for (const std::size_t i : {std::size_t{1}, std::size_t{3}}) {
    EXPECT_EQ(results[i].state, RunState::kFinished);
    EXPECT_TRUE(results[i].correct);
    EXPECT_GT(results[i].speedup, 0.2);
    EXPECT_LT(results[i].speedup, 5);
    EXPECT_EQ(results[i].evaluations, 3);
  }
  const Json report = report_of(out);
  EXPECT_EQ(report["measures"].size(), 2u);  // one per arm, all levels, against the start
  EXPECT_EQ(report["measures"][0]["tasks"], 1);
  EXPECT_EQ(report["measures"][0]["success"], 1.0);
  EXPECT_EQ(report["comparisons"].size(), 1u);
  const auto page = read_file(join(out, "report.md"));
  ASSERT_TRUE(page);
  EXPECT_TRUE(contains(*page, "## Broken tasks"));
  EXPECT_TRUE(contains(*page, "seed=1/double/report.html"));

  const Exit again = bench(command);
  EXPECT_TRUE(again.ok());
  EXPECT_FALSE(contains(again.output, "begins")) << again.output;
  EXPECT_EQ(report_of(out), report);
  EXPECT_TRUE(bench({"--out", out}).ok());  // the same command, shorter
  // A repaired task is tried again.
  ASSERT_TRUE(testing::write_scale_task(join(tasks, "broken"), 3));
  EXPECT_TRUE(bench({"--out", out}).ok());
  for (const TaskResult& result : read_results(*settings)) {
    EXPECT_EQ(result.state, RunState::kFinished) << result.task.name;
  }

  std::vector<std::string> other = command;
  other[8] = "4";
  const Exit refused = bench(other);
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.output, "max_evaluations (3 then, 4 now)")) << refused.output;
}

// If a model cannot be reached, its tasks are tried again.
TEST(Bench, AModelThatDoesNotAnswerIsNoResult) {
  const auto server = LocalServer::start(KERNELPRO_SOURCE_DIR);
  ASSERT_TRUE(server) << server.error().text();
  const TempDir folder;
  const std::string task = join(folder.path(), "tasks/double"), out = join(folder.path(), "out");
  ASSERT_TRUE(testing::write_scale_task(task, 2));
  const Exit exit = bench({dirname(task), "--out", out, "--target", "cpu", "--near-ceiling", "0",
                           "--model", server->base("suite", "400") + "#any", "--tune", "0"});
  EXPECT_EQ(exit.code, 1) << exit.output;
  const auto settings = read_suite(out);
  ASSERT_TRUE(settings);
  const TaskResult result = read_results(*settings).at(0);
  EXPECT_EQ(result.state, RunState::kBroken);
  EXPECT_TRUE(contains(result.reason, "no model answered")) << result.reason;
  const Exit again = bench({"--out", out});
  EXPECT_EQ(again.code, 1) << again.output;
  EXPECT_TRUE(contains(again.output, "double: goes on")) << again.output;
}

std::int64_t resident_kb() {
  std::ifstream file("/proc/self/status");
  std::int64_t kb = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("RssAnon:")) kb = std::strtoll(line.c_str() + 8, nullptr, 10);
  }
  return kb;
}

// A task whose request nobody has answered yet is not closed: the same command goes on with it.
TEST(Bench, ATaskThatWaitsForRepliesStaysOpen) {
  const TempDir folder;
  const std::string tasks = join(folder.path(), "tasks"), out = join(folder.path(), "out");
  ASSERT_TRUE(testing::write_scale_task(join(tasks, "double"), 2));
  const std::string words = tasks + " --out " + out +
                            " --target cpu --proposer exchange --exchange-wait 0 "
                            "--near-ceiling 0 --evaluations 3";
  for (int answered = 0; answered < 3; ++answered) {
    const Exit exit = bench(split(words, ' '));
    const auto settings = read_suite(out);
    ASSERT_TRUE(settings);
    const TaskResult result = read_results(*settings).at(0);
    EXPECT_EQ(result.evaluations, answered + 1);
    EXPECT_EQ(result.correct, answered > 0);
    if (answered == 2) {
      EXPECT_EQ(result.state, RunState::kFinished) << exit.output;
      break;
    }
    ASSERT_EQ(result.state, RunState::kOpen) << exit.output;
    EXPECT_EQ(exit.code, 1) << exit.output;
    const std::string exchange = join(result.directory, "exchange");
    EXPECT_TRUE(contains(exit.output, "waits for replies in " + exchange)) << exit.output;
    EXPECT_EQ(report_of(out)["measures"][0]["tasks"], answered == 0 ? 0 : 1);
    const std::string request = join(exchange, "000" + std::to_string(answered + 1));
    const auto parent = read_file(join(request, "parent.cpp"));
    ASSERT_TRUE(parent) << parent.error().text();
    ASSERT_TRUE(write_file(join(request, "reply/a.cpp"), *parent + "// " + request + "\n"));
  }
}

// Tasks of very different sizes leak nothing in the process that runs them all.
TEST(Bench, TheSupervisorDoesNotGrowFromTaskToTask) {
  const TempDir folder;
  SuiteSettings settings;
  settings.directory = join(folder.path(), "out");
  settings.suite = join(folder.path(), "tasks");
  settings.target = "cpu";
  settings.arms = {Arm()};
  settings.run.max_evaluations = 1;
  settings.run.near_ceiling = 0;
  int number = 0;
  for (const int size : {2000000, 70000, 3000000, 50000}) {
    const std::string path = join(settings.suite, "t" + std::to_string(++number));
    ASSERT_TRUE(testing::write_scale_task(path, 2, size));
    ASSERT_TRUE(write_file(join(path, "kernel.cpp"),
                           "#include \"task.h\"\nextern \"C\" void launch(const Args& args) {\n"
                           "  for (long i = 0; i < N; ++i) args.y[i] = 2.0f * args.x[i];\n}\n"));
    settings.tasks.push_back({basename(path), path, 0, 0});
  }
  ASSERT_TRUE(begin_suite(settings));
  std::vector<std::int64_t> kb;
  WorkHears hears;
  hears.end = [&](const TaskResult& result) {
    EXPECT_EQ(result.state, RunState::kFinished) << result.reason;
    kb.push_back(resident_kb());
  };
  const auto summary = work_on(settings, {}, hears);
  ASSERT_TRUE(summary) << summary.error().text();
  ASSERT_EQ(kb.size(), settings.tasks.size());
  for (const std::int64_t each : kb) EXPECT_LT(each, kb.front() + (16 << 10));
}

// Reports a kernel that is correct only at the size that the search knew.
TEST(Bench, ShowsHeldOutCases) {
  const TempDir folder;
  const std::string task = join(folder.path(), "tasks/special"), out = join(folder.path(), "out");
  ASSERT_TRUE(testing::write_scale_task(task, 2));
  const auto toml = read_file(join(task, "task.toml"));
  ASSERT_TRUE(toml);
  ASSERT_TRUE(write_file(join(task, "task.toml"),
                         *toml + "\n[[case]]\nname = \"odd\"\ndims = { N = 1111 }\n"
                                 "held_out = true\ntargets = [\"cpu\"]\n"));
  ASSERT_TRUE(write_file(join(task, "kernel.cpp"),
                         "// @knob WORK 200 0\n#include \"task.h\"\n"
                         "extern \"C\" void launch(const Args& args) {\n"
                         "  for (long i = 0; i < (WORK == 0 ? 1000 : N); ++i) {\n"
                         "    volatile float v = args.x[i];\n"
                         "    for (int k = 0; k < WORK; ++k) v = v;\n"
                         "    args.y[i] = 2.0f * v;\n  }\n}\n"));
  const Exit exit = bench({dirname(task), "--out", out, "--target", "cpu", "--near-ceiling", "0"});
  ASSERT_TRUE(exit.ok()) << exit.output;
  EXPECT_TRUE(contains(exit.output, "in held-out cases FAILED: odd")) << exit.output;
  const Json report = report_of(out);
  ASSERT_EQ(report["tasks"].size(), 1u);
  EXPECT_GT(report["tasks"][0]["speedup"].get<double>(), 2);
  EXPECT_EQ(report["tasks"][0]["held_out"]["failed"], true);
  const auto page = read_file(join(out, "report.md"));
  ASSERT_TRUE(page);
  EXPECT_TRUE(contains(*page, "in held-out cases")) << *page;
  EXPECT_TRUE(contains(*page, "wrong in others of the same task: 1 winner.")) << *page;
}

TEST(Bench, Faults) {
  const TempDir folder;
  const std::string examples = std::string(KERNELPRO_SOURCE_DIR) + "/examples";
  const std::string out = join(folder.path(), "out");
  struct Fault {
    std::vector<std::string> arguments;
    const char* message;
  };
  for (const Fault& fault : std::vector<Fault>{
           {{examples}, "runs need a folder"},
           {{"--out", out}, "holds no suite"},
           {{examples, "--out", out, "--evaluations", "0"}, "--evaluations 0"},
           {{examples, "--out", out, "--seconds", "0"}, "--seconds 0"},
           {{examples, "--out", out, "--sample", "0"}, "--sample 0"},
           {{examples, "--out", out, "--levels", "1"}, "are for KernelBench"},
           {{examples, "--out", out, "--cross"}, "--cross combines"},
           {{examples, "--out", out, "--jobs", "2"}, "--jobs needs --launcher slurm"},
           {{examples, "--out", out, "--worker", "0/2"}, "leave SUITE out"},
           {{examples, "--out", out, "--from", out}, "--from names a suite"},
           {{examples, "--out", out, "--proposer", "replay"}, "needs a suite to replay"},
           {{"--out", out, "--evaluations", "5"}, "--evaluations would change it"}}) {
    const Exit exit = bench(fault.arguments);
    EXPECT_EQ(exit.code, 2) << fault.message << exit.output;
    EXPECT_TRUE(contains(exit.output, fault.message)) << exit.output;
    EXPECT_TRUE(contains(exit.output, "next: ")) << exit.output;
    EXPECT_FALSE(exists(out)) << fault.message;
  }
}

// Asked for after the runs have ended, they are measured without running anything again.
TEST(Bench, BaselinesAreMeasuredForARunThatHasEnded) {
  const TempDir folder;
  const std::string path = join(folder.path(), "relu.py");
  ASSERT_TRUE(write_file(path,
                         "import torch\nN = 4096\n"
                         "class Model(torch.nn.Module):\n"
                         "    def forward(self, x):\n"
                         "        return torch.relu(x)\n"
                         "def get_inputs():\n    return [torch.randn(N)]\n"
                         "def get_init_inputs():\n    return []\n"));
  auto opened = open_task(path, {});
  if (!opened && opened.error().kind == ErrorKind::kEnvironment) {
    GTEST_SKIP() << opened.error().message;
  }
  ASSERT_TRUE(opened) << opened.error().text();
  SuiteSettings settings;
  settings.directory = join(folder.path(), "out");
  settings.tasks = {{"relu", path, 0, 0}};
  settings.arms = {Arm()};
  settings.baselines = true;
  const std::string run = run_folder(settings, settings.arms[0], settings.tasks[0]);
  RunHeader header;
  header.task = opened->task;
  header.machine.name = "a machine";
  header.settings_json = "{}";
  ASSERT_TRUE(Store::open(run, Store::Mode::kCreate, &header));
  ASSERT_TRUE(write_ending(run, {"the budget is spent", false, {}}));
  const auto worked = work_on(settings, {}, {});
  ASSERT_TRUE(worked) << worked.error().text();
  EXPECT_EQ(worked->ran, 1);
  EXPECT_EQ(worked->broken, 0);
  ASSERT_TRUE(has_baselines(run));
  const std::vector<Baseline> baselines =
      read_result(settings, settings.arms[0], settings.tasks[0]).baselines;
  ASSERT_EQ(baselines.size(), 1u);
  EXPECT_EQ(baselines[0].name, "eager");
  EXPECT_EQ(baselines[0].error, "");
  EXPECT_GT(baselines[0].timing.samples, 0);
  EXPECT_EQ(baselines[0].timing.case_name, largest_timed(opened->task, TargetKind::kCpu)->name);
}

TaskResult finished(int level, int number, double speedup) {
  TaskResult r;
  r.arm = "base";
  r.task = {"level1-" + std::to_string(number) + "_T", "/s/" + std::to_string(number) + "_T.py",
            level, number};
  r.state = RunState::kFinished;
  r.machine = "a GPU";
  r.start_correct = r.compiled = true;
  r.correct = speedup > 0;
  r.speedup = r.low = r.high = speedup;
  if (r.correct) {
    r.best_us = 500;
    r.timings = {{"full", 500, 490, 510, 20, "graph replay, L2 cold"}};
    Baseline eager{"eager", {"full", 1500, 1490, 1510, 20, "stream, L2 cold"}, ""};
    Baseline compile{"compile", {}, "it failed"};
    r.baselines = {eager, compile};
  } else {
    r.failure = "wrong result";
  }
  return r;
}

TEST(SuiteReport, SaysWhatWinnersAreWorthInHeldOutCases) {
  TaskResult general = finished(1, 1, 2), known = finished(1, 2, 2);
  Correct correct;
  correct.versus = {"start", 1.5, 1.4, 1.6};
  HeldOut odd;
  odd.case_name = "odd";
  odd.evaluation.outcome = correct;
  general.held_out = {odd};
  EXPECT_TRUE(contains(result_line(general), ", in held-out cases 1.50x, "))
      << result_line(general);
  EXPECT_FALSE(contains(result_line(known), "held-out")) << result_line(known);
  SuiteSettings settings;
  settings.arms = {Arm()};
  EXPECT_TRUE(contains(suite_markdown(settings, {general, known}), "in held-out cases"));
  EXPECT_FALSE(contains(suite_markdown(settings, {known}), "in held-out cases"));
}

// What has no time to compare with is finished all the same, and what has no price is not free.
TEST(SuiteReport, SaysWhatItCannotCompareOrPrice) {
  SuiteSettings settings;
  settings.arms = {Arm()};
  TaskResult alone = finished(1, 1, 2);  // its start is PyTorch, which has no time here
  alone.speedup = alone.low = alone.high = 0;
  alone.start_correct = false;
  alone.baselines.clear();
  alone.tokens = 2200;
  alone.usd_known = false;
  const std::string text = suite_markdown(settings, {alone});
  EXPECT_TRUE(contains(text, "--baselines")) << text;
  EXPECT_FALSE(contains(text, "Nothing is finished yet")) << text;
  EXPECT_TRUE(contains(text, "2200 tokens, price unknown")) << text;
  alone.usd = 0.5;
  EXPECT_TRUE(contains(suite_markdown(settings, {alone}), "$0.50 and what has no known price"));
  alone.usd_known = true;
  EXPECT_FALSE(contains(suite_markdown(settings, {alone}), "price"));
}

// The format that KernelBench's scripts/benchmark_eval_analysis.py reads.
TEST(KernelBenchJson, HasItsForm) {
  SuiteSettings settings;
  settings.kernelbench = true;
  settings.arms = {Arm()};
  const std::vector<TaskResult> results = {finished(1, 10, 2), finished(1, 9, 0)};
  std::map<std::string, Json> files;
  for (const auto& [path, text] : kernelbench_files(settings, results)) {
    files[path] = parse_json(text).value_or(Json());
  }
  const Json& eval = files["kernelbench/base-level1/eval_results.json"];
  ASSERT_EQ(eval.size(), 2u);
  EXPECT_EQ(eval.items().begin().key(), "9");  // by number
  const Json& sample = eval["10"][0];
  EXPECT_EQ(sample["sample_id"], 0);
  EXPECT_EQ(sample["compiled"], true);
  EXPECT_EQ(sample["correctness"], true);
  EXPECT_EQ(sample["runtime"], 0.5);  // milliseconds
  EXPECT_EQ(sample["runtime_stats"]["num_trials"], 20);
  EXPECT_EQ(eval["9"][0]["correctness"], false);
  EXPECT_EQ(eval["9"][0]["runtime"], -1.0);
  EXPECT_EQ(eval["9"][0]["metadata"]["correctness_issue"], "wrong result");
  EXPECT_EQ(files["kernelbench/baselines/base-start.json"]["level1"]["10_T.py"]["mean"], 1.0);
  EXPECT_EQ(files["kernelbench/baselines/base-eager.json"]["level1"]["10_T.py"]["mean"], 1.5);
  EXPECT_EQ(files.count("kernelbench/baselines/base-compile.json"), 0u);
}

TEST(Scores, AgainstTheStartAndBaselines) {
  const std::vector<TaskResult> results = {finished(1, 10, 2), finished(2, 9, 0)};
  EXPECT_EQ(yardsticks(results), (std::vector<std::string>{"start", "eager", "compile"}));
  EXPECT_EQ(scores(results, "base", 0, "start").size(), 2u);
  EXPECT_EQ(scores(results, "base", 1, "start").at(0).speedup, 2);
  EXPECT_EQ(scores(results, "base", 1, "eager").at(0).speedup, 3);
  EXPECT_EQ(scores(results, "base", 1, "compile").at(0).speedup, 0);  // not measured
  EXPECT_FALSE(scores(results, "base", 2, "eager").at(0).correct);
}

}  // namespace
}  // namespace kernelpro
