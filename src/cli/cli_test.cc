// SPDX-License-Identifier: Apache-2.0
// Parsing and help in process; usage errors and exit codes through the real binary.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "cli/display.h"
#include "cli/parse.h"

namespace kernelpro {
namespace {

Exit kernelpro(std::vector<std::string> arguments) {
  Command command;
  command.argv = {join(executable_dir(), "kernelpro")};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.limits.wall_seconds = 300;
  const auto exit = run(command);
  EXPECT_TRUE(exit.has_value());
  return exit ? *exit : Exit();
}

Result<Options> parse(const char* command, std::vector<std::string> arguments) {
  return parse_options(*find_subcommand(command), arguments);
}

TEST(Parse, DefaultsAndValues) {
  const auto options = parse("optimize", {"examples/softmax", "--evaluations", "12", "--json"});
  ASSERT_TRUE(options) << options.error().text();
  EXPECT_EQ(options->text("TASK"), "examples/softmax");
  EXPECT_EQ(options->integer("--evaluations"), 12);
  EXPECT_EQ(options->real("--timeout"), 30);
  EXPECT_TRUE(options->flag("--json"));
  EXPECT_FALSE(options->has("--run"));
}

TEST(Parse, RepeatedKnobsDoNotSwallowPositionals) {
  const auto options = parse("evaluate", {"--knob", "A=1", "--knob", "B=2", "task", "kernel.cpp"});
  ASSERT_TRUE(options) << options.error().text();
  EXPECT_EQ(options->text("--knob"), "A=1\nB=2");
  EXPECT_EQ(options->text("TASK"), "task");
  EXPECT_EQ(options->text("KERNEL"), "kernel.cpp");
}

TEST(Parse, Faults) {
  EXPECT_FALSE(parse("optimize", {}));
  EXPECT_FALSE(parse("optimize", {"t", "--no-such"}));
  EXPECT_FALSE(parse("optimize", {"t", "--target", "tpu"}));
  EXPECT_FALSE(parse("optimize", {"t", "extra"}));
  EXPECT_FALSE(parse("optimize", {"t", "--seed"}));
  EXPECT_FALSE(parse("optimize", {"t", "--seed", "1", "--seed", "2"}));
  const auto options = parse("optimize", {"t", "--seed", "one", "--seconds", "nan"});
  ASSERT_TRUE(options);
  EXPECT_THROW(options->integer("--seed"), Fatal);
  EXPECT_THROW(options->real("--seconds"), Fatal);
}

TEST(Help, DocsAreDerivedFromTheRows) {
  const auto page = read_file(std::string(KERNELPRO_SOURCE_DIR) + "/docs/commands.md");
  ASSERT_TRUE(page) << "write it: kernelpro help --markdown > docs/commands.md";
  EXPECT_EQ(*page, help_markdown()) << "refresh: kernelpro help --markdown > docs/commands.md";
}

TEST(Binary, VersionAndHelp) {
  // The commit follows in parentheses, unless the source is no checkout.
  const std::string version = kernelpro({"--version"}).output;
  EXPECT_TRUE(version.starts_with("kernelpro " KERNELPRO_VERSION)) << version;
  if (exists(KERNELPRO_SOURCE_DIR "/.git") && !find_program("git").empty()) {
    EXPECT_TRUE(version.ends_with(")\n") && contains(version, " (")) << version;
  }
  EXPECT_EQ(kernelpro({"--help"}).output, help_text());
  EXPECT_EQ(kernelpro({"help", "--markdown"}).output, help_markdown());
  for (const Subcommand* subcommand : subcommands()) {
    const Exit exit = kernelpro({std::string(subcommand->name), "--help"});
    EXPECT_TRUE(exit.ok());
    EXPECT_NE(exit.output.find("usage: kernelpro"), std::string::npos) << subcommand->name;
  }
}

struct Fault {
  std::vector<std::string> arguments;
  int code;
  const char* says;
};

TEST(Binary, FaultsHaveOneMessageAndTheirCode) {
  const TempDir folder;
  const std::string empty = folder.path();
  const std::string softmax = KERNELPRO_SOURCE_DIR "/examples/softmax";
  const Fault faults[] = {
      {{}, 2, "usage:"},
      {{"frobnicate"}, 2, "no command \"frobnicate\""},
      {{"optimize"}, 2, "usage: kernelpro optimize TASK"},
      {{"optimize", empty + "/none"}, 2, "none"},
      {{"optimize", "x", "--target", "tpu"}, 2, "choose one of auto, cpu, cuda"},
      {{"optimize", empty, "--evaluations", "many"}, 2, ""},
      {{"optimize", softmax, "--evaluations", "0"}, 2, "--evaluations 0 leaves no candidate"},
      {{"optimize", softmax, "--seconds", "0"}, 2, "--seconds 0 leaves no time"},
      {{"optimize", softmax, "--timeout", "0"}, 2, "--timeout 0 ends every call"},
      {{"optimize", softmax, "--target", "cpu", "--gpu", "0"}, 2, "this run is on the CPU"},
      {{"evaluate", softmax, softmax + "/kernel.cpp", "--gpu", "0"}, 2, "on the CPU"},
      {{"evaluate", softmax, softmax + "/kernel.cpp", "--timeout", "0"}, 2, "ends every call"},
      {{"optimize", softmax, "--from", empty}, 2, "the proposer is tuner"},
      {{"optimize", softmax, "--proposer", "sweep", "--search", "beam"}, 2, "no search chooses"},
      {{"optimize", softmax, "--proposer", "exchange", "--model", "http://[::1]:9/v1#m"},
       2,
       "the proposer is exchange"},
      {{"optimize", softmax, "--target", "cpu", "--objective", "energy", "--run", empty + "/run"},
       2,
       "energy is measured on the cuda target"},
      {{"resume", empty, "--evaluations", "0"}, 2, "--evaluations 0 leaves no candidate"},
      {{"evaluate", empty + "/none", "k.cpp"}, 2, "none"},
      {{"evaluate", softmax, "-", "-"}, 2, "- was given twice"},
      {{"evaluate", softmax, softmax + "/kernel.cpp", "--language", "cpp"},
       2,
       "--language is for a source on standard input"},
      {{"help", "frobnicate"}, 2, "no command"},
      {{"list", empty + "/none"}, 2, "there is no folder"},
      {{"show", empty + "/none"}, 5, "none"},
      {{"report", empty}, 5, ""},
      {{"resume", empty + "/none"}, 5, "none"},
  };
  for (const Fault& fault : faults) {
    const Exit exit = kernelpro(fault.arguments);
    SCOPED_TRACE(join_text(fault.arguments, " ") + "\n" + exit.output);
    EXPECT_EQ(exit.kind, Exit::Kind::kExited);
    EXPECT_EQ(exit.code, fault.code);
    EXPECT_NE(exit.output.find(fault.says), std::string::npos);
    EXPECT_LT(lines(exit.output).size(), 32u);
  }
  EXPECT_FALSE(exists(empty + "/run")) << "what is refused leaves no run";
}

TEST(Binary, ListOfAnEmptyFolder) {
  const TempDir folder;
  const Exit exit = kernelpro({"list", folder.path()});
  EXPECT_TRUE(exit.ok());
  EXPECT_NE(exit.output.find("no runs in"), std::string::npos);
}

TEST(Binary, DoctorAlwaysAnswers) {
  const Exit exit = kernelpro({"doctor", "--quick"});
  EXPECT_TRUE(exit.ok()) << exit.output;
  EXPECT_NE(exit.output.find("host compiler"), std::string::npos);
  EXPECT_NE(exit.output.find("cuda target"), std::string::npos);
}

Progress sample() {
  Progress p;
  p.event = Event::kBest;
  p.candidate = 7;
  p.outcome = "correct";
  p.detail = "with\nline ends and \x1b[31m";
  p.knobs = "TILE=32";
  p.evaluations = 9;
  p.max_evaluations = 60;
  p.failures = 2;
  p.failures_by_kind = "1 compile-error, 1 timed-out";
  p.time_us = 1500;
  p.best_us = 1500;
  p.best_speedup = 4.2;
  p.fraction_of_ceiling = 0.61;
  p.left_s = 125;
  return p;
}

TEST(Display, StatusFitsTheTerminal) {
  const std::string wide = status_line(sample(), 200);
  EXPECT_EQ(wide,
            "[9/60] best 4.20x 1.50 ms, 61 % of ceiling, 2 min 05 s left, failed: 1 "
            "compile-error, 1 timed-out");
  EXPECT_EQ(status_line(sample(), 30).size(), 30u);
  Progress unlimited = sample();
  unlimited.max_evaluations = 0;
  EXPECT_TRUE(status_line(unlimited, 200).starts_with("[9] best 4.20x"));
}

TEST(Display, TheSpeedUpHasItsIntervalAndIsUnconfirmed) {
  Progress progress = sample();
  progress.best_speedup_low = 4.1;
  progress.best_speedup_high = 4.35;
  EXPECT_TRUE(contains(status_line(progress, 200), "best 4.20x (4.10x to 4.35x, unconfirmed) "));
  progress.event = Event::kBest;
  EXPECT_TRUE(contains(event_line(progress), "4.20x over the start (4.10x to 4.35x, unconfirmed)"));
  EXPECT_TRUE(contains(progress_json(progress), "\"best_speedup_low\":4.1"));
  EXPECT_TRUE(contains(progress_json(progress), "\"confirmed\":false"));
}

TEST(Display, AboveTheCeilingIsNoShare) {
  Progress progress = sample();
  progress.fraction_of_ceiling = 698.72;
  EXPECT_TRUE(contains(status_line(progress, 200), ", >100 % of ceiling"));
  const std::string json = progress_json(progress);
  EXPECT_TRUE(contains(json, "\"fraction_of_ceiling\":null")) << json;
  EXPECT_TRUE(contains(json, "doctor --remeasure")) << json;
}

TEST(Display, LoadIsALineOfItsOwn) {
  Progress progress;
  progress.event = Event::kBusy;
  progress.detail = "other processes used 63 % of this machine; timing takes longer";
  EXPECT_EQ(event_line(progress),
            "busy: other processes used 63 % of this machine; timing takes longer");
}

TEST(Display, LinesAreSingleAndClean) {
  const std::string line = event_line(sample());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  const std::string json = progress_json(sample());
  EXPECT_EQ(json.find('\n'), std::string::npos);
  EXPECT_NE(json.find("\"best_speedup\":4.2"), std::string::npos);
}

}  // namespace
}  // namespace kernelpro
