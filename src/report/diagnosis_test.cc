// SPDX-License-Identifier: Apache-2.0
#include "report/diagnosis.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace kernelpro {
namespace {

Diagnosis sample() {
  Diagnosis d;
  d.summary = "In theory memory bounds this task; the call takes 2.00 ms.";
  Finding first;
  first.tool = "uncoalesced-access";
  first.kernel = "void at::native::gather<float, 4>(float*, const int*)";
  first.severity = Severity::kCritical;
  first.cause = "Each warp touches 32 sectors where 4 would do.";
  first.sites = {{{"kernel.cu", 41, ""}, ""}};
  first.prescriptions = {
      {"algorithm", "Let neighbouring threads read neighbouring elements.", "the layout is given"}};
  first.likely_speedup = 12.5;
  first.upper_speedup = 31;
  first.level = Level::kCounters;
  Finding second;
  second.tool = "small-grid";
  second.cause = "8 blocks for 132 multiprocessors.";
  second.prescriptions = {{"grid-size", "Make more blocks.", ""}};
  second.likely_speedup = 1.5;
  second.upper_speedup = 2;
  second.level = Level::kStatic;
  d.findings = {first, second};
  d.tools = {{"uncoalesced-access", ToolRun::State::kFired, ""},
             {"small-grid", ToolRun::State::kFired, ""},
             {"dominant-stall", ToolRun::State::kNotEvaluable, "not observed: smsp__x"},
             {"scalar-code", ToolRun::State::kFilteredOut, "for the cpu target"}};
  return d;
}

Evidence evidence() {
  Evidence e;
  e.set("timing.median", 2000, Level::kTiming, "ncu");
  e.note_missing({Family::kCounters,
                  "the report does not have it",
                  "use --set full",
                  {"smsp__inst_executed.sum"}});
  e.note_missing({Family::kCounters,
                  "the report does not have it",
                  "use --set full",
                  {"dram__bytes_read.sum"}});
  e.kernels.push_back({"void f<int>(int*)", {}});
  e.kernels[0].facts.note_missing({Family::kResources, "ptxas said nothing", ""});
  return e;
}

TEST(Terminal, GainsAreAlignedAndLevelsNamed) {
  const std::string text = diagnosis_for_terminal(sample(), evidence(), {});
  EXPECT_TRUE(
      contains(text, " 1. uncoalesced-access  likely 12.5x, at most 31.0x  (hardware counters)"))
      << text;
  EXPECT_TRUE(contains(text, " 2. small-grid          likely 1.50x, at most 2.00x  (machine code)"))
      << text;
  EXPECT_TRUE(contains(text, "    gather<float, 4>: Each warp")) << text;
  EXPECT_TRUE(contains(text, "at kernel.cu:41")) << text;
  EXPECT_TRUE(contains(text, "Not when the layout\n      is given.")) << text;
  EXPECT_TRUE(contains(text, "1 of 4 tools could not run for lack of evidence.")) << text;
}

TEST(Terminal, KeepsToItsWidth) {
  for (const int width : {40, 60, 100}) {
    DiagnosisStyle style;
    style.width = width;
    style.all = true;
    for (const std::string& line : lines(diagnosis_for_terminal(sample(), evidence(), style))) {
      // The line with the name, the gain and the level is not wrapped.
      if (contains(line, "at most")) continue;
      EXPECT_LE(static_cast<int>(line.size()), width) << line;
    }
  }
}

TEST(Terminal, ColourOnlyWhereAsked) {
  EXPECT_FALSE(contains(diagnosis_for_terminal(sample(), evidence(), {}), "\x1b"));
  DiagnosisStyle style;
  style.color = true;
  EXPECT_TRUE(contains(diagnosis_for_terminal(sample(), evidence(), style), "\x1b[31m"));
}

TEST(Terminal, AllTellsWhatBecameOfEachToolAndWhatIsMissing) {
  DiagnosisStyle style;
  style.all = true;
  const std::string text = diagnosis_for_terminal(sample(), evidence(), style);
  EXPECT_TRUE(contains(text, "could not run: not observed: smsp__x")) << text;
  EXPECT_TRUE(contains(text, "left out: for the cpu target")) << text;
  // One line per reason.
  EXPECT_TRUE(contains(text, "smsp__inst_executed.sum, dram__bytes_read.sum:")) << text;
  EXPECT_TRUE(contains(text, "registers and spills of f<int>: ptxas said nothing.")) << text;
  EXPECT_TRUE(contains(text, "timing.median  2000 us")) << text;
}

// Its text is data for the page's script, never markup.
TEST(DiagnosisPage, HoldsFindingsNumbersAndWhatIsMissingAndNoMarkupOfOthers) {
  Diagnosis diagnosis = sample();
  diagnosis.findings[0].cause = "</script><script>alert(1)</script>";
  const std::string page =
      diagnosis_html({"report <b>", "based on a test", {"a note"}}, diagnosis, evidence());
  for (const char* text : {"uncoalesced-access", "small-grid", "based on a test", "a note",
                           "timing.median", "use --set full", "not observed: smsp__x"}) {
    EXPECT_TRUE(contains(page, text)) << text;
  }
  EXPECT_TRUE(contains(page, "report &lt;b>")) << page.substr(0, 600);
  EXPECT_FALSE(contains(page, "<script>alert"));
  EXPECT_FALSE(contains(page, "report <b>\"")) << "in JSON, too, < is escaped";
}

TEST(Terminal, ForeignBytesDoNoHarm) {
  Diagnosis d = sample();
  d.findings[0].kernel = "evil\x1b[2Jkernel";
  d.findings[0].cause = "line\nbreak\x07";
  const std::string text = diagnosis_for_terminal(d, evidence(), {});
  EXPECT_FALSE(contains(text, "\x1b"));
  EXPECT_FALSE(contains(text, "\x07"));
  EXPECT_TRUE(contains(text, "line break?")) << text;
}

TEST(Terminal, NothingToSay) {
  Diagnosis d;
  d.summary = "At the ceiling.";
  EXPECT_TRUE(contains(diagnosis_for_terminal(d, Evidence(), {}), "No tool found anything"));
}

}  // namespace
}  // namespace kernelpro
