// SPDX-License-Identifier: Apache-2.0
// --launcher slurm against a real Slurm that the test starts on this machine.
#include "suite/slurm.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "suite/slurm_testing.h"
#include "suite/testing.h"

namespace kernelpro {
namespace {

Exit bench(const std::vector<std::string>& arguments, const std::vector<std::string>& env = {}) {
  Command command;
  command.argv = {join(executable_dir(), "kernelpro"), "bench"};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.env = env;
  command.limits.wall_seconds = 120;
  const auto exit = run(command);
  EXPECT_TRUE(exit.has_value());
  return exit ? *exit : Exit();
}

std::vector<std::string> command_for(const std::string& tasks, const std::string& out) {
  return {tasks, "--out",      out,     "--target", "cpu", "--evaluations", "2", "--near-ceiling",
          "0",   "--launcher", "slurm", "--poll",   "0.2"};
}

TEST(Slurm, AKilledJobIsToldFromOneThatFailed) {
  EXPECT_TRUE(is_cut_off("base softmax: begins\n"));
  EXPECT_TRUE(is_cut_off("base a: 1.00x, 12 evaluations\nbase b: goes on\n  candidate 3: correct"));
  EXPECT_TRUE(is_cut_off(
      "base b: begins\nslurmstepd: error: *** JOB 7 ON here CANCELLED AT 2026-01-02T03:04:05 ***"));
  EXPECT_FALSE(is_cut_off(""));
  EXPECT_FALSE(is_cut_off("base b: begins\nkernelpro: there is no GPU"));
  EXPECT_FALSE(is_cut_off("exec: kernelpro: not found"));
}

TEST(Slurm, WordsForSbatch) {
  SuiteSettings suite;
  suite.directory = "/shared/out";
  SlurmSettings slurm;
  slurm.options = {"partition=gpu", "--time=10"};
  const std::string words = join_text(sbatch_words(suite, slurm, 3, "/shared/out/job.sh"), " ");
  EXPECT_TRUE(contains(words, "--array=0-2 ")) << words;
  EXPECT_TRUE(contains(words, " --requeue "));
  EXPECT_TRUE(words.ends_with("--gres=gpu:1 --partition=gpu --time=10 /shared/out/job.sh"));
  slurm.options = {"gres=gpu:h200:1"};
  EXPECT_FALSE(contains(join_text(sbatch_words(suite, slurm, 1, "s"), " "), "--gres=gpu:1 "));
  suite.target = "cpu";
  EXPECT_FALSE(contains(join_text(sbatch_words(suite, {}, 1, "s"), " "), "gres"));
}

TEST(Slurm, WithoutSlurm) {
  const TempDir folder;
  ASSERT_TRUE(testing::write_scale_task(join(folder.path(), "tasks/a"), 2));
  const Exit exit = bench(command_for(join(folder.path(), "tasks"), join(folder.path(), "out")),
                          {"PATH=" + folder.path()});
  EXPECT_EQ(exit.code, 3);
  EXPECT_TRUE(contains(exit.output, "there is no sbatch on this machine")) << exit.output;
}

// Jobs with one GPU each run the tasks; a second array resumes the tasks of a cancelled job; a
// refusal is reported with Slurm's message.
TEST(Slurm, RunsAnArrayAndMakesGoodWhatWasLost) {
  if (const std::string why = testing::SlurmCluster::missing(); !why.empty()) GTEST_SKIP() << why;
  const testing::SlurmCluster cluster;
  ASSERT_TRUE(cluster.up()) << cluster.why();
  const TempDir folder;
  const std::string tasks = join(folder.path(), "tasks"), out = join(folder.path(), "out");
  ASSERT_TRUE(testing::write_scale_task(join(tasks, "a"), 2));
  ASSERT_TRUE(testing::write_scale_task(join(tasks, "b"), 3));
  std::vector<std::string> command = command_for(tasks, out);
  command.insert(command.end(), {"--slurm-option", "partition=none"});
  const Exit refused = bench(command);
  EXPECT_EQ(refused.code, 3);
  EXPECT_TRUE(contains(refused.output, "Slurm refused the job: ")) << refused.output;
  EXPECT_TRUE(contains(refused.output, "invalid partition")) << refused.output;

  command.back() = "gres=gpu:1";
  command.push_back("--no-wait");
  const Exit submitted = bench(command);
  EXPECT_TRUE(submitted.ok()) << submitted.output;
  EXPECT_TRUE(contains(submitted.output, "submitted array")) << submitted.output;
  testing::SlurmCluster::output(
      {"scancel", "--user=" + testing::SlurmCluster::output({"id", "-un"})});
  command.pop_back();
  const Exit exit = bench(command);
  EXPECT_TRUE(exit.ok()) << exit.output;
  const auto settings = read_suite(out);
  ASSERT_TRUE(settings);
  for (const TaskResult& result : read_results(*settings)) {
    EXPECT_EQ(result.state, RunState::kFinished) << result.task.name << exit.output;
    EXPECT_EQ(result.evaluations, 2);
  }
  EXPECT_TRUE(exists(join(out, "report.json")));
}

}  // namespace
}  // namespace kernelpro
