// SPDX-License-Identifier: Apache-2.0
// Renders a run built by hand and opens it in a real headless Chromium if installed.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "report/replayed.h"
#include "report/view.h"

namespace kernelpro {
namespace {

constexpr const char* kHostile = "</script><img src=x onerror=\"document.title='owned'\">'&\"";

Finding a_finding() {
  Finding f;
  f.tool = "scalar-code";
  f.severity = Severity::kCritical;
  f.cause = "12 of 12 floating-point instructions in the hot loop are scalar (100 %).";
  f.prescriptions = {{"vectorize", "Give the compiler a contiguous innermost loop.",
                      "the innermost dimension is strided"}};
  f.likely_speedup = 2.9;
  f.upper_speedup = 6.4;
  f.level = Level::kStatic;
  return f;
}

StoredCandidate candidate(std::int64_t id, std::int64_t parent, double us) {
  StoredCandidate c;
  c.known.id = id;
  c.known.candidate.source = "// row softmax\nvoid launch(const Args& a) {\n  run(a, TILE);\n}\n";
  c.known.candidate.knobs = {{"TILE", std::to_string(8 << (id % 5))}, {"UNROLL", "4"}};
  c.known.candidate.origin = {id == 1 ? "start" : "tuner", parent,
                              id == 1 ? "" : "TILE moves, so that more loads are in flight",
                              FindingRef::parse(id == 1 ? "" : "scalar-code: vectorize")};
  c.evaluated = true;
  c.order = id;
  c.at_s = 0.8 * static_cast<double>(id);
  c.known.diagnosis.bound = Bound::kMemory;
  c.known.diagnosis.fraction_of_ceiling = us > 0 ? 900 / us : 0;
  c.known.diagnosis.summary = "In theory memory bounds this task.";
  c.known.diagnosis.findings = {a_finding()};
  if (us > 0) {
    Correct correct;
    correct.timings = {{"large", us, us * 0.99, us * 1.01, 40, "calls in turn"}};
    c.known.evaluation.outcome = correct;
    return c;
  }
  if (id % 3 == 0)
    c.known.evaluation.outcome = WrongResult{"small", "y", "off by 3 rows", 0.4, 1e-4};
  if (id % 3 == 1) c.known.evaluation.outcome = CompileError{"line 3: expected ';'"};
  if (id % 3 == 2) c.known.evaluation.outcome = TimedOut{10, "checking case small"};
  return c;
}

RunView a_run(int count) {
  RunView view;
  view.directory = "runs/softmax-cpu-1";
  view.header.task.name = "softmax";
  view.header.task.summary = "Row softmax of a 4096 x 4096 fp32 matrix.";
  view.header.machine.name = "AMD EPYC 9B14, 2 threads";
  view.header.machine.versions = "g++ 12.2.0";
  view.header.machine.ceilings = {2.1e10, 1.7e11, 0, "copy of 512 MB, 2 threads"};
  view.header.created = "2026-11-21T09:30:00Z";
  view.header.version = "0.1.0";
  view.header.settings_json = "{}";
  double us = 7000;
  std::int64_t parent = 1;
  for (int i = 1; i <= count; ++i) {
    const bool fails = i > 1 && i % 7 == 0;
    const double mine = fails ? 0 : i == 1 ? us : us * (0.9 + 0.35 * ((i * 37) % 11) / 11.0);
    view.candidates.push_back(candidate(i, i == 1 ? 0 : parent, std::max(mine, fails ? 0 : 950.0)));
    if (!fails && mine < us) us = mine, parent = i;
    if (i % 5 == 0 && parent > 2) parent = 1 + (i * 13) % i;
  }
  view.run_seconds = 0.8 * count;
  Correct won;
  won.timings = {{"large", 1000, 990, 1010, 80, "calls in turn"}};
  won.versus = {{"h", 6.91, 6.84, 6.99}};
  StoredConfirmation confirmation;
  confirmation.best = 1;
  double best = 1e9;
  for (const StoredCandidate& c : view.candidates) {
    const double t = score_us(c.known.evaluation);
    if (t > 0 && t < best) best = t, confirmation.best = c.known.id;
  }
  confirmation.evaluation.outcome = won;
  confirmation.stopped_by = "evaluations";
  confirmation.own_ms_per_evaluation = 0.61;
  view.confirmation = confirmation;
  return view;
}

// Each correct candidate uses slightly more energy than the previous one.
void give_energy(RunView* view) {
  double millijoules = 40;
  for (StoredCandidate& each : view->candidates) {
    auto* correct = std::get_if<Correct>(&each.known.evaluation.outcome);
    if (correct == nullptr) continue;
    Energy energy;
    energy.millijoules = millijoules += 1.5;
    energy.low = millijoules - 0.25;
    energy.high = millijoules + 0.25;
    energy.busy_w = 432;
    energy.idle_w = 118;
    correct->energy = energy;
  }
}

std::string chromium() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (const std::string path = find_program(name); !path.empty()) return path;
  }
  return "";
}

// The page's DOM in Chromium after its scripts ran, with console errors.
std::string open_in_browser(const std::string& html) {
  TempDir folder;
  const std::string page = join(folder.path(), "report.html");
  EXPECT_TRUE(write_file(page, html).has_value());
  Command command;
  command.argv = {chromium(),
                  "--headless",
                  "--no-sandbox",
                  "--disable-gpu",
                  "--enable-logging=stderr",
                  "--v=0",
                  "--user-data-dir=" + folder.path() + "/p",
                  "--virtual-time-budget=2000",
                  "--dump-dom",
                  "file://" + page};
  command.limits.output_kept = 64 << 20;
  command.limits.output_killed = 128 << 20;
  const auto exit = run(command);
  EXPECT_TRUE(exit.has_value() && exit->ok());
  return exit ? exit->output : "";
}

TEST(Html, OpensInChromium) {
  if (chromium().empty()) GTEST_SKIP() << "no chromium on PATH: apt-get install chromium";
  const std::string dom = open_in_browser(render_html(a_run(60)));
  EXPECT_NE(dom.find("data-ready=\"60\""), std::string::npos);
  EXPECT_NE(dom.find("data-detail="), std::string::npos);  // the winner's panel
  EXPECT_EQ(dom.find("CONSOLE"), std::string::npos) << dom.substr(dom.find("CONSOLE"), 400);
}

TEST(Html, HostileTextStaysText) {
  RunView view = a_run(12);
  view.header.task.name = kHostile;
  view.header.task.summary = kHostile;
  view.header.machine.name = kHostile;
  view.directory = kHostile;
  for (StoredCandidate& c : view.candidates) {
    c.known.candidate.source += kHostile;
    c.known.candidate.source += std::to_string(c.known.id);
    c.known.candidate.origin.idea = kHostile;
    c.known.candidate.origin.answers = FindingRef::parse(kHostile);
    c.known.candidate.origin.proposer = kHostile;
    c.known.candidate.knobs[kHostile] = kHostile;
    c.known.diagnosis.summary = kHostile;
    c.known.diagnosis.findings[0].cause = kHostile;
    c.known.diagnosis.findings[0].tool = kHostile;
    c.known.diagnosis.findings[0].prescriptions[0] = {kHostile, kHostile, kHostile};
    c.evidence.note_missing({Family::kTrace, kHostile, kHostile, {kHostile}});
    c.evidence.note_missing({Family::kTrace, kHostile, kHostile, {}, kHostile});
    if (c.known.evaluation.correct() == nullptr) {
      c.known.evaluation.outcome = Crashed{kHostile, std::string("\x01\xff") + kHostile};
    }
  }
  const std::string html = render_html(view);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(split(html, '<').size(), split(render_html(a_run(12)), '<').size());
  if (chromium().empty()) GTEST_SKIP() << "no chromium on PATH: apt-get install chromium";
  const std::string dom = open_in_browser(html);
  EXPECT_NE(dom.find("data-ready=\"12\""), std::string::npos);
  EXPECT_EQ(dom.find("<img"), std::string::npos);
  EXPECT_EQ(dom.find("<title>owned"), std::string::npos);
}

TEST(Html, NeedsNoNetwork) {
  std::string html = render_html(a_run(10));
  const std::string name = "http://www.w3.org/2000/svg";  // of a vocabulary; nothing is fetched
  html.erase(html.find(name), name.size());
  EXPECT_EQ(html.find("http://"), std::string::npos);
  EXPECT_EQ(html.find("https://"), std::string::npos);
  EXPECT_EQ(html.find("url("), std::string::npos);
}

TEST(Html, ThousandCandidates) {
  const std::string html = render_html(a_run(1000));
  EXPECT_LT(html.size(), 3u << 20);
  if (chromium().empty()) GTEST_SKIP() << "no chromium on PATH: apt-get install chromium";
  EXPECT_NE(open_in_browser(html).find("data-ready=\"1000\""), std::string::npos);
}

TEST(Html, ItsFunctionsInNode) {
  if (find_program("node").empty()) GTEST_SKIP() << "no node on PATH: apt-get install nodejs";
  Command command;
  command.argv = {"node", std::string(KERNELPRO_SOURCE_DIR) + "/src/report/page/page_test.js"};
  const auto exit = run(command);
  ASSERT_TRUE(exit.has_value());
  EXPECT_TRUE(exit->ok()) << exit->output;
}

TEST(Html, EmptyAndUnfinishedRuns) {
  RunView view;
  view.header.task.name = "nothing";
  EXPECT_NE(render_html(view).find("Nothing has been evaluated yet."), std::string::npos);
  view = a_run(9);
  view.confirmation.reset();
  view.candidates.back().evaluated = false;
  std::get<Correct>(view.candidates[2].known.evaluation.outcome).versus = {
      view.candidates[0].known.candidate.content_hash(), 2, 1.9, 2.1};
  EXPECT_NE(render_html(view).find("not yet confirmed"), std::string::npos);
  view = a_run(1);
  EXPECT_NE(render_html(view).find("No candidate beat the starting kernel"), std::string::npos);
}

TEST(Html, CirclesAndMissingParentsDoNotHang) {
  RunView view = a_run(8);
  view.candidates[3].known.candidate.origin.parent = 6;
  view.candidates[5].known.candidate.origin.parent = 4;
  view.candidates[6].known.candidate.origin.parent = 99;
  if (chromium().empty()) GTEST_SKIP() << "no chromium on PATH: apt-get install chromium";
  EXPECT_NE(open_in_browser(render_html(view)).find("data-ready=\"8\""), std::string::npos);
}

TEST(Story, CreditSaysWhoWroteWhat) {
  const RunView view = a_run(20);
  EXPECT_EQ(credit(tell(view)),
            "The structure came with the source; the embedded tuner chose the numbers.");
  const std::string text = verdict(view, tell(view));
  EXPECT_NE(text.find("6.91x faster"), std::string::npos) << text;
  EXPECT_NE(text.find("confirmed in fresh processes"), std::string::npos) << text;
  EXPECT_EQ(text.find("Caveat"), std::string::npos) << text;
}

// A winner of the search, of which fresh processes show no difference.
TEST(Story, AnIntervalThatHoldsOneIsNoGain) {
  RunView view = a_run(20);
  Correct confirmed = *view.confirmation->evaluation.correct();
  ASSERT_TRUE(confirmed.versus);
  confirmed.versus->low = 0.8;
  view.confirmation->evaluation.outcome = confirmed;
  const std::string text = verdict(view, tell(view));
  EXPECT_TRUE(contains(text, "Not shown to be faster than the start: 6.91x (95 % interval 0.80x"))
      << text;
  EXPECT_FALSE(contains(text, "6.91x faster")) << text;
  EXPECT_FALSE(contains(text, "down from")) << text;
}

// The confirmation runs all probes; a search runs a few of them.
TEST(Story, WhatTheConfirmationFoundIsToldWithTheVerdict) {
  RunView view = a_run(20);
  Correct confirmed = *view.confirmation->evaluation.correct();
  confirmed.labels = {"given-distribution-only"};
  view.confirmation->evaluation.outcome = confirmed;
  const std::string text = verdict(view, tell(view));
  EXPECT_NE(text.find("Caveat, given-distribution-only: right on the task's own inputs"),
            std::string::npos)
      << text;
  const auto json = parse_json(render_json(view));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["best"]["labels"].dump(), R"(["given-distribution-only"])");
}

// Labels decide before times.
TEST(Story, AFasterOneThatKeepsPartOfTheContractIsTold) {
  RunView view = a_run(20);
  EXPECT_FALSE(contains(verdict(view, tell(view)), "ranks below"));
  const std::int64_t best = tell(view).best->known.id;
  for (StoredCandidate& each : view.candidates) {
    auto* correct = std::get_if<Correct>(&each.known.evaluation.outcome);
    if (!each.evaluated || correct == nullptr || each.known.id == best) continue;
    if (each.known.id == tell(view).baseline->known.id) continue;
    correct->labels = {"given-distribution-only"};
    correct->timings[0].median_us = 50;
    const std::string text = verdict(view, tell(view));
    EXPECT_TRUE(contains(text, "Candidate " + std::to_string(each.known.id) + " is faster"))
        << text;
    EXPECT_TRUE(contains(text, "ranks below it, given-distribution-only: right on")) << text;
    return;
  }
  FAIL() << "no other correct candidate";
}

TEST(Text, SaysWhatModelsCostAndWhereTheyFailed) {
  RunView view = a_run(3);
  EXPECT_FALSE(contains(render_text(view), "models"));
  ModelCall call;
  call.role = ModelRole::kCoder;
  call.outcome = CallOutcome::kReply;
  call.usage =
      R"({"requests":2,"input":1000,"output":234,"cost_usd":0.125,"tools":{"read_code":1}})";
  view.calls = {call, call};
  view.calls[1].outcome = CallOutcome::kNoCode;
  const char* line =
      "2 questions to models (2 coder): 4 requests, 2468 tokens, $0.2500; looked up: 2 read_code; "
      "1 came to nothing: 1 no-code";
  EXPECT_TRUE(contains(render_text(view), line)) << render_text(view);
  EXPECT_TRUE(contains(render_html(view), line));
  view.calls[0].usage = R"({"requests":1,"input":10,"cost_known":false,"estimated":true})";
  const std::string partly = render_text(view);
  EXPECT_TRUE(contains(partly, "(partly estimated), $0.1250 and what has no known price"))
      << partly;
  EXPECT_TRUE(contains(render_json(view), "\"no-code\""));
}

TEST(ReportTest, DeadEndsHaveAReason) {
  RunView view = a_run(12);
  EXPECT_FALSE(contains(render_text(view), "nothing more is tried")) << "the tree is not known";
  for (const StoredCandidate& each : view.candidates) {
    SearchNode node;
    node.id = each.known.id;
    if (each.known.evaluation.correct() == nullptr) node.reason = "failed";
    view.nodes.push_back(node);
  }
  view.nodes[3].reason = "slower than the best by more than 8x";
  const std::string text = render_text(view);
  EXPECT_TRUE(contains(text, "nothing more is tried below 2 of 12 candidates:\n")) << text;
  EXPECT_TRUE(contains(text, "  1: failed (#7)\n")) << text;
  EXPECT_TRUE(contains(text, "  1: slower than the best by more than 8x (#4)\n")) << text;
  const std::string html = render_html(view);
  EXPECT_TRUE(contains(html, "\"4\":\"slower than the best by more than 8x\""));
  EXPECT_TRUE(contains(render_json(view), "\"dead_end\": \"slower than the best"));
}

TEST(ReportTest, TimeAndEnergyBesideEachOther) {
  RunView view = a_run(12);
  EXPECT_FALSE(contains(render_html(view), "\"mj\":"));
  EXPECT_FALSE(contains(render_json(view), "pareto_front"));
  give_energy(&view);
  const std::string html = render_html(view);
  EXPECT_TRUE(contains(html, "\"front\":["));
  EXPECT_TRUE(contains(html, "{\"mj\":41.5,\"low\":41.25,\"high\":41.75,")) << html;
  EXPECT_TRUE(contains(render_text(view), "Pareto front of time and energy:"));
  const std::string json = render_json(view);
  EXPECT_TRUE(contains(json, "\"pareto_front\": ["));
  EXPECT_TRUE(contains(json, "\"millijoules\": 41.5"));
}

TEST(ReportTest, HeldOutCasesStandBesideTheScore) {
  RunView view = a_run(5);
  EXPECT_FALSE(contains(render_html(view), "\"held_out\":"));
  EXPECT_FALSE(contains(render_json(view), "held_out"));
  HeldOut tall{"tall", view.confirmation->evaluation, ""};
  view.confirmation->held_out = {tall};
  EXPECT_TRUE(contains(render_text(view), "held out: case tall: 6.91x the baseline"))
      << render_text(view);
  EXPECT_TRUE(contains(render_html(view), "[\"tall\",\"6.91x the baseline (95 % interval 6.84"));
  HeldOut odd{"<odd>", {}, ""};
  odd.evaluation.outcome = WrongResult{"<odd>", "y", "off by 3 rows", 0.4, 1e-4};
  view.confirmation->held_out.push_back(odd);
  const std::string html = render_html(view);
  EXPECT_TRUE(contains(html, "[\"\\u003codd>\",\"FAILED: "));
  EXPECT_TRUE(contains(html, "\"failed\":true"));
  EXPECT_TRUE(contains(render_text(view), "search again in a new run"));
  EXPECT_TRUE(contains(render_json(view), "\"failed\": true"));
}

TEST(Story, AKernelThatWasBroughtAlongIsSaidToBe) {
  RunView view = a_run(3);
  for (StoredCandidate& each : view.candidates) {
    if (each.known.id != view.confirmation->best) continue;
    each.known.candidate.origin.proposer = "seed";
    each.known.candidate.origin.idea = "The best of the run runs/a: candidate 7, 12 us there.";
  }
  EXPECT_EQ(credit(tell(view)),
            "The kernel came from --start-from, not from this search: The best of the run runs/a: "
            "candidate 7, 12 us there.");
}

TEST(Text, IsShort) {
  const std::string text = render_text(a_run(200));
  EXPECT_NE(text.find("fastest:"), std::string::npos);
  EXPECT_LT(lines(text).size(), 30u) << text;
}

TEST(Text, TimesOfTheFastestAreOnTheScaleOfTheirRatios) {
  RunView view = a_run(3);
  const Story story = tell(view);
  const std::int64_t id = view.candidates[1].known.id;
  const double ratio = story.speedup_of(id);
  ASSERT_GT(ratio, 0);
  const std::string text = render_text(view);
  const std::string line = text.substr(text.find("  #" + std::to_string(id) + " "));
  EXPECT_TRUE(contains(first_line(line), human_us(story.baseline_us / ratio))) << line;
}

TEST(Text, SaysWhereKernelsAreAwaited) {
  RunView view = a_run(2);
  EXPECT_FALSE(contains(render_text(view), "waiting for kernels"));
  view.directory = "runs/a";
  view.open_requests = {"runs/a/exchange/0001", "runs/a/exchange/0003"};
  EXPECT_FALSE(contains(render_text(view), "waiting for kernels")) << "it is confirmed";
  view.confirmation.reset();
  const std::string text = render_text(view);
  EXPECT_TRUE(contains(
      text, "waiting for kernels in runs/a/exchange/0003/reply (and of 1 earlier request)"))
      << text;
  EXPECT_TRUE(contains(text, "kernelpro measure runs/a")) << text;
}

TEST(Text, SaysWhyTheLatestCandidatesFailed) {
  RunView view = a_run(6);
  EXPECT_FALSE(contains(render_text(a_run(1)), "failed"));
  for (std::size_t i = 1; i < 6; ++i) {
    WrongResult wrong;
    wrong.tensor = "y";
    wrong.reason = "reason " + std::to_string(i);
    view.candidates[i].known.evaluation.outcome = wrong;
  }
  const std::string text = render_text(view);
  EXPECT_TRUE(contains(text, "failed, the latest:\n")) << text;
  EXPECT_TRUE(contains(text, "reason 5")) << text;
  EXPECT_FALSE(contains(text, "reason 1")) << "of many, the latest three";
}

TEST(ReportTest, SaysWhatEachChangeDid) {
  RunView view = a_run(1);
  EXPECT_FALSE(contains(render_text(view), "On the way")) << "nothing was changed";
  const auto account = [](double wait_us) {
    Account made;
    made.us = 900 + wait_us;
    made.parts = {{PartKind::kKernels, {}, made.us, Level::kCounters, ""}};
    KernelAccount kernel;
    kernel.us = made.us;
    kernel.parts = {{PartKind::kFloor, {}, 900, Level::kTiming, ""},
                    {PartKind::kWait, Stall::kBarrier, wait_us, Level::kCounters, ""}};
    made.kernels = {kernel};
    return made;
  };
  view.candidates = {candidate(1, 0, 2900), candidate(2, 1, 1900), candidate(3, 2, 0)};
  view.candidates[0].known.diagnosis.account = account(2000);
  view.candidates[1].known.diagnosis.account = account(1000);
  view.confirmation->best = 2;
  const std::string text = render_text(view);
  EXPECT_TRUE(contains(text, "#1 to #2: 2.90 ms became 1.90 ms (1.53x)")) << text;
  EXPECT_TRUE(contains(text, "scalar-code: vectorize, which promised 2.9x")) << text;
  EXPECT_TRUE(contains(text, "at a barrier: 2.00 ms to 1.00 ms (-1.00 ms)")) << text;
  const std::string html = render_html(view);
  EXPECT_TRUE(contains(html, "at a barrier\",2000.0,1000.0]"));
  // The third one was never timed.
  EXPECT_EQ(html.find("\"change\":{"), html.rfind("\"change\":{"));
}

TEST(JsonReport, HoldsAllCandidates) {
  const std::string json = render_json(a_run(30));
  EXPECT_NE(json.find("\"id\": 30"), std::string::npos);
  EXPECT_NE(json.find("\"speedup\": 6.91"), std::string::npos);
}

// KERNELPRO_SAMPLE_REPORT=file writes the page of these tests for inspection.
TEST(Html, Sample) {
  const char* path = std::getenv("KERNELPRO_SAMPLE_REPORT");
  if (path == nullptr) GTEST_SKIP() << "set KERNELPRO_SAMPLE_REPORT=FILE to write one";
  const char* count = std::getenv("KERNELPRO_SAMPLE_COUNT");
  RunView view = a_run(count != nullptr ? std::atoi(count) : 60);
  give_energy(&view);
  ASSERT_TRUE(write_file(path, render_html(view)));
}

// Three of twelve results differ, one was not measured again.
TEST(ReportTest, AReplaySaysWhichResultsChanged) {
  RunView view = a_run(12);
  Recorded recorded{"runs/first", "AMD EPYC 9B14, 2 threads", {}};
  for (StoredCandidate& each : view.candidates) {
    each.known.candidate.source += "// " + std::to_string(each.known.id) + "\n";  // no two equal
    const double us = score_us(each.known.evaluation);
    // The recording's machine was twice as slow, which does not count as a change.
    recorded.results.push_back({each.known.candidate.content_hash(), each.known.id,
                                outcome_name(each.known.evaluation.outcome), 2 * us,
                                us > 0 ? 7000 / us : 0});
  }
  view.header.recorded_json = recorded_to_json(recorded);
  const std::vector<Replayed> same = replayed(view, tell(view));
  ASSERT_EQ(same.size(), 12U);
  for (const Replayed& row : same) EXPECT_EQ(row.change, Change::kSame) << row.then.id;
  EXPECT_EQ(replayed_summary(same), "Of 12 recorded results 12 came out as recorded.");
  EXPECT_EQ(replayed_text(same), "");

  recorded.results.at(1).speedup *= 1.2;
  recorded.results.at(2).outcome = "compile-error";
  recorded.results.at(2).speedup = recorded.results.at(2).us = 0;
  recorded.results.at(3).hash = "another";
  view.header.recorded_json = recorded_to_json(recorded);
  const std::vector<Replayed> rows = replayed(view, tell(view));
  EXPECT_EQ(rows.at(1).change, Change::kSlower);
  EXPECT_EQ(rows.at(2).change, Change::kOutcome);
  EXPECT_EQ(rows.at(3).change, Change::kNotMeasured);
  EXPECT_EQ(replayed_summary(rows),
            "Of 12 recorded results 9 came out as recorded, 1 is slower, 1 has a different "
            "outcome, 1 is not measured again.");
  EXPECT_NE(replayed_text(rows).find("#3 a different outcome: recorded compile-error, now "),
            std::string::npos);
  const std::string html = render_html(view);
  EXPECT_TRUE(contains(html, "\"outcomes\":[\"compile-error\",\"correct\"]"));
  EXPECT_NE(render_text(view).find("1 is slower"), std::string::npos);
  EXPECT_FALSE(contains(render_html(a_run(12)), "\"replay\":"));
}

RunView timed_in_turn() {
  RunView view = a_run(1);
  view.confirmation.reset();
  StoredCandidate best = candidate(2, 1, 100);
  auto& correct = std::get<Correct>(best.known.evaluation.outcome);
  correct.versus = {view.candidates[0].known.candidate.content_hash(), 13.1, 12.8, 13.5};
  correct.observed["load.foreign_cpu"] = 0.63;
  best.known.diagnosis.fraction_of_ceiling = 0.5;
  view.candidates.push_back(best);
  // The start was timed alone on a busy machine: 210 times the best, by the clock.
  std::get<Correct>(view.candidates[0].known.evaluation.outcome).timings[0].median_us = 21000;
  return view;
}

TEST(Report, AnUnconfirmedSpeedUpIsThatOfTheTurns) {
  const RunView view = timed_in_turn();
  const Story story = tell(view);
  EXPECT_DOUBLE_EQ(story.speedup, 13.1);
  EXPECT_NEAR(story.low, 12.8, 1e-9);
  EXPECT_TRUE(contains(verdict(view, story),
                       "13.1x faster than the start (best so far, 95 % "
                       "interval 12.8x to 13.5x, not yet confirmed)"))
      << verdict(view, story);
  for (const std::string& text : {render_text(view), render_html(view), render_json(view)}) {
    const std::size_t at = text.find("210x");
    EXPECT_EQ(at, std::string::npos) << text.substr(at < 100 ? 0 : at - 100, 200);
    EXPECT_FALSE(contains(text, "\"speedup\":210"));
  }
}

// Speed-ups are over the first correct candidate, in reports as in the loop.
TEST(Report, AnIncorrectStartIsSaidToBe) {
  RunView view = timed_in_turn();
  view.candidates.push_back(candidate(3, 1, 50));
  std::get<Correct>(view.candidates[2].known.evaluation.outcome).versus = {
      view.candidates[1].known.candidate.content_hash(), 2, 1.9, 2.1};
  view.candidates[0].known.evaluation.outcome = WrongResult{"small", "y", "off", 0.4, 1e-4};
  const Story story = tell(view);
  EXPECT_EQ(story.start, &view.candidates[0]);
  EXPECT_EQ(story.baseline, &view.candidates[1]);
  EXPECT_DOUBLE_EQ(story.speedup_of(3), 2);
  EXPECT_TRUE(contains(verdict(view, story),
                       "The start is incorrect. 2.00x faster than the first correct candidate"))
      << verdict(view, story);
  view.candidates.pop_back();
  EXPECT_TRUE(contains(verdict(view, tell(view)),
                       "The start is incorrect. Nothing faster than the first correct candidate"));
}

TEST(Report, LoadIsToldOnceAndInJson) {
  const RunView view = timed_in_turn();
  const std::string told = "The machine was busy while 1 of 2 candidates were timed";
  EXPECT_TRUE(contains(render_text(view), told));
  EXPECT_TRUE(contains(render_html(view), told));
  EXPECT_TRUE(contains(render_json(view), "\"foreign_cpu_most\": 0.63")) << render_json(view);
  EXPECT_FALSE(contains(render_text(a_run(3)), "The machine was busy"));
}

TEST(Report, AboveTheCeilingIsNoShare) {
  RunView view = timed_in_turn();
  view.candidates[1].known.diagnosis.fraction_of_ceiling = 698.72;
  const std::string said = verdict(view, tell(view));
  EXPECT_TRUE(contains(said, ">100 % of the measured ceiling")) << said;
  EXPECT_TRUE(contains(said, "doctor --remeasure")) << said;
  EXPECT_FALSE(contains(render_text(view), "69872"));
  EXPECT_FALSE(contains(render_html(view), "69872"));
  EXPECT_TRUE(contains(render_json(view), "\"ceiling_note\""));
}

}  // namespace
}  // namespace kernelpro
