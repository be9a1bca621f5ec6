// SPDX-License-Identifier: Apache-2.0
// Whole evaluations without a GPU (testing/whole_evaluator.h).
#include <algorithm>
#include <csignal>
#include <utility>

#include "base/text.h"
#include "measure/cuda/ahead.h"
#include "measure/cuda/evaluator.h"
#include "measure/cuda/start_ahead.h"
#include "measure/cuda/testing/whole_evaluator.h"

namespace kernelpro::testing {
namespace {

TEST_F(WholeEvaluator, TimesHonestKernels) {
  const Evaluation alone = evaluate("honest");
  ASSERT_TRUE(alone.correct() != nullptr) << said(alone);
  EXPECT_EQ(alone.trust, "plan");
  ASSERT_EQ(alone.correct()->timings.size(), 1u);
  EXPECT_NEAR(alone.correct()->timings[0].median_us, kHonestUs, 0.1);
  EXPECT_GE(alone.correct()->timings[0].samples, 10);
  const Evaluation against = evaluate("honest", "twice_as_slow");
  ASSERT_TRUE(against.correct() && against.correct()->versus) << said(against);
  EXPECT_NEAR(against.correct()->versus->ratio, 2, 0.01);
}

constexpr double kRowS = 0.2;  // thousands of calls of the fake kernels, which really take 20 us

TEST_F(WholeEvaluator, AKernelServesAnyNumberOfCallsInARow) {
  settings_.probes = true;
  settings_.row_s = kRowS;
  EXPECT_TRUE(evaluate("honest").correct() != nullptr);
  for (const auto& [name, outcome] : {std::pair("tires", "wrong-result"),
                                      {"gives_up", "wrong-result"},
                                      {"hangs_in_the_end", "timed-out"}}) {
    const Evaluation e = evaluate(name);
    EXPECT_EQ(outcome_name(e.outcome), outcome) << said(e);
    EXPECT_TRUE(contains(said(e), "in a row")) << said(e);
    EXPECT_TRUE(contains(said(e), "valid for the next one")) << said(e);
  }
}

TEST_F(WholeEvaluator, ManyCallsInARowAreLeftToTheConfirmation) {
  settings_.probes = true;
  settings_.probes_each = 4;
  settings_.row_s = kRowS;
  EXPECT_TRUE(evaluate("tires").correct() != nullptr);
  const auto confirmed = evaluator_->confirm(subject("tires"), subject("honest"));
  ASSERT_TRUE(confirmed);
  EXPECT_TRUE(contains(said(*confirmed), "in a row")) << said(*confirmed);
}

// Another setting of a judged source.
TEST_F(WholeEvaluator, AVariantIsScreenedAndJudgedInFullOnlyIfItMayBeFaster) {
  settings_.probes = true;
  const auto variant = [&](const std::string& name) {
    Subject made = subject(name);
    made.variant = true;
    return made;
  };
  const Subject honest = subject("honest"), slow = subject("twice_as_slow");
  for (int again = 0; again < 3; ++again) {
    const Evaluation slower = evaluate(variant("twice_as_slow"), &honest);
    ASSERT_TRUE(slower.correct() && slower.correct()->versus) << said(slower);
    EXPECT_TRUE(is_screened(slower));
    EXPECT_NEAR(slower.correct()->versus->ratio, 0.5, 0.01);
    EXPECT_LT(slower.correct()->versus->high, 1);
    EXPECT_NEAR(slower.correct()->timings.at(0).median_us, 2 * kHonestUs, 0.2);
    EXPECT_LT(slower.correct()->timings[0].samples, 10);
    EXPECT_TRUE(slower.correct()->labels.empty());
  }
  Subject large = variant("honest");
  large.binaries[0].plan.nodes[0].block = {4096, 1, 1};
  const Evaluation refused = evaluate(large, &honest);
  const auto* rejected = std::get_if<Rejected>(&refused.outcome);
  ASSERT_NE(rejected, nullptr) << said(refused);
  EXPECT_EQ(rejected->rule, "plan");
  const Evaluation equal = evaluate(variant("honest"), &honest);
  EXPECT_TRUE(is_screened(equal)) << said(equal);
  EXPECT_TRUE(std::holds_alternative<WrongResult>(evaluate(variant("wrong"), &honest).outcome));
  // Faster, or seemingly so, than another incumbent: judged as any other.
  const Evaluation faster = evaluate(variant("honest"), &slow);
  ASSERT_TRUE(faster.correct() && faster.correct()->versus) << said(faster);
  EXPECT_FALSE(is_screened(faster));
  EXPECT_NEAR(faster.correct()->versus->ratio, 2, 0.01);
  EXPECT_GE(faster.correct()->timings[0].samples, 10);
  const Outcome alone = evaluate("memo", "twice_as_slow").outcome;
  EXPECT_EQ(outcome_kind(evaluate(variant("memo"), &slow).outcome), outcome_kind(alone));
  const Evaluation partly = evaluate(variant("skips_when_small"), &slow);
  ASSERT_TRUE(partly.correct() != nullptr) << said(partly);
  EXPECT_FALSE(partly.correct()->labels.empty());
}

TEST_F(WholeEvaluator, AVariantOfATaskOfTwoTimedCasesIsNotScreened) {
  Case other = task_.cases[0];
  other.name = "other";
  task_.cases.push_back(other);
  Subject both{"slow in both", {binary("twice_as_slow"), binary("twice_as_slow")}};
  Subject honest{"honest in both", {binary("honest"), binary("honest")}};
  both.binaries[1].case_name = honest.binaries[1].case_name = "other";
  both.variant = true;
  const Evaluation e = evaluate(both, &honest);
  ASSERT_TRUE(e.correct() && e.correct()->versus) << said(e);
  EXPECT_FALSE(is_screened(e));
  EXPECT_EQ(e.correct()->timings.size(), 2u);
}

TEST_F(WholeEvaluator, FactsOfAScreenedVariantAreOfItsTimedCase) {
  Case checked = task_.cases[0];
  checked.name = "checked";
  checked.timed = false;
  task_.cases.push_back(checked);
  Subject both{"longer where timed", {binary("twice_as_slow"), binary("twice_as_slow")}};
  both.binaries[0].plan.nodes[0].grid = {64, 1, 1};
  both.binaries[1].case_name = "checked";
  both.variant = true;
  Subject honest{"honest", {binary("honest"), binary("honest")}};
  honest.binaries[1].case_name = "checked";
  const Evaluation e = evaluate(both, &honest);
  ASSERT_TRUE(is_screened(e)) << said(e);
  EXPECT_EQ(e.correct()->observed.at("launch__waves_per_multiprocessor"), 2);
}

// As evidence is about that case.
TEST_F(WholeEvaluator, TheDriversFactsAreOfTheLongestTimedCase) {
  Case other = task_.cases[0];
  other.name = "other";
  task_.cases.push_back(other);
  Binary brief = binary("honest"), longer = binary("twice_as_slow");
  longer.plan.nodes[0].grid = {64, 1, 1};
  for (const bool last : {true, false}) {
    Subject both{last ? "longer last" : "longer first", {brief, longer}};
    if (!last) std::swap(both.binaries[0], both.binaries[1]);
    both.binaries[0].case_name = "only";
    both.binaries[1].case_name = "other";
    const Evaluation e = evaluate(both, nullptr);
    ASSERT_TRUE(e.correct() != nullptr) << said(e);
    // 8 blocks of 256 threads fit on each of the fake driver's 4 multiprocessors.
    EXPECT_EQ(e.correct()->observed.at("launch__waves_per_multiprocessor"), 2) << both.hash;
  }
}

TEST_F(WholeEvaluator, SamplesCorrectKernels) {
  settings_.counters = CounterSet::kTriage;  // starts the process early
  ASSERT_TRUE(evaluate("honest").correct() != nullptr);
  for (int again = 0; again < 2; ++again) {
    const SampleAnswers answers = evaluator_->sample(subject("honest"), 0);
    ASSERT_EQ(answers.kernels.size(), 1u)
        << (answers.missing.empty() ? "" : answers.missing[0].reason);
    EXPECT_EQ(answers.source, "cupti");
    EXPECT_EQ(answers.kernels[0].function, "honest");
    EXPECT_EQ(answers.kernels[0].pcs.size(), 2u);
    // The next verdict is as good as the one before.
    ASSERT_TRUE(evaluate("honest").correct() != nullptr);
  }
  EXPECT_TRUE(evaluator_->sample(subject("honest"), 1).kernels.empty()) << "no such case";
}

TEST_F(WholeEvaluator, SaysWhyThereAreNoSamples) {
  // 26: the hardware is busy; 35: no permission.
  for (const auto& [refusal, reason] :
       {std::pair("Enable 26 2", "HARDWARE_BUSY"), {"Enable 35 1000", "INSUFFICIENT_PRIVILEGES"}}) {
    evaluator_.reset();
    ::setenv("KERNELPRO_FAKE_SAMPLING", refusal, 1);
    EXPECT_TRUE(evaluate("honest").correct() != nullptr);
    const SampleAnswers answers = evaluator_->sample(subject("honest"), 0);
    ASSERT_EQ(answers.missing.size(), 1u);
    EXPECT_EQ(answers.missing[0].family, Family::kSamples);
    EXPECT_TRUE(contains(answers.missing[0].reason, reason)) << answers.missing[0].reason;
    EXPECT_FALSE(answers.missing[0].next.empty());
  }
  // Busy once: it is asked again when the counters have been freed.
  evaluator_.reset();
  ::setenv("KERNELPRO_FAKE_SAMPLING", "Enable 26 1", 1);
  EXPECT_TRUE(evaluate("honest").correct() != nullptr);
  EXPECT_EQ(evaluator_->sample(subject("honest"), 0).kernels.size(), 1u);
}

// A run that goes on profiles what an earlier process judged.
TEST_F(WholeEvaluator, SamplesWhatItHasNotJudged) {
  ::unsetenv("KERNELPRO_FAKE_SAMPLING");
  evaluate("memo");  // opens the case
  const SampleAnswers answers = evaluator_->sample(host_form_of("honest", "honest"), 0);
  EXPECT_EQ(answers.kernels.size(), 1u);
  EXPECT_TRUE(answers.missing.empty());
}

TEST_F(WholeEvaluator, SamplesAgainWhatSamplesSayNothingOf) {
  for (const auto& [asked, found] : {std::pair("Forget 0 1", true), {"Forget 0 2", false}}) {
    evaluator_.reset();
    ::setenv("KERNELPRO_FAKE_SAMPLING", asked, 1);
    EXPECT_TRUE(evaluate("honest").correct() != nullptr);
    const SampleAnswers answers = evaluator_->sample(subject("honest"), 0);
    ASSERT_EQ(answers.kernels.size(), 1u);
    EXPECT_EQ(answers.kernels[0].function != "another", found)
        << "once more, and no more than that";
  }
  ::unsetenv("KERNELPRO_FAKE_SAMPLING");
}

TEST_F(WholeEvaluator, WhatWasKeptFromEarlierCallsIsOfNoUse) {
  for (const char* name : {"memo", "skips_when_done"}) {
    for (const char* incumbent : {"", "honest"}) {
      const Evaluation e = evaluate(name, incumbent);
      // Where the reference seems slow, on a busy machine, the audit finds it instead.
      if (outcome_name(e.outcome) == "rejected" && contains(said(e), "memoised")) continue;
      ASSERT_TRUE(e.correct() != nullptr) << name << ": " << said(e);
      EXPECT_NEAR(e.correct()->timings[0].median_us, kHonestUs, 0.1) << name;
      if (*incumbent == 0) continue;
      ASSERT_TRUE(e.correct()->versus.has_value()) << name;
      EXPECT_NEAR(e.correct()->versus->ratio, 1, 0.01) << name;
    }
  }
}

TEST_F(WholeEvaluator, EveryTimedCallIsCompared) {
  for (const char* name : {"wrong", "wrong_later", "wrong_when_known"}) {
    const Evaluation e = evaluate(name, "honest");
    EXPECT_EQ(outcome_name(e.outcome), "wrong-result") << name << ": " << said(e);
  }
}

TEST_F(WholeEvaluator, PyTorchCandidatesAreTimedAsTheirPlans) {
  const Evaluation alone = evaluate(module("honest"), nullptr);
  ASSERT_TRUE(alone.correct() != nullptr) << said(alone);
  EXPECT_EQ(alone.trust, "plan");
  EXPECT_FALSE(is_host_form(*alone.correct()));
  EXPECT_NEAR(alone.correct()->timings[0].median_us, kHonestUs, 0.1);
  const Subject slow = module("twice_as_slow");
  const Evaluation against = evaluate(subject("honest"), &slow);
  ASSERT_TRUE(against.correct() && against.correct()->versus) << said(against);
  EXPECT_NEAR(against.correct()->versus->ratio, 2, 0.01);
}

TEST_F(WholeEvaluator, PyTorchCandidatesWithoutASoundPlanRunInHostForm) {
  for (const char* name : {"item", "wrong"}) {
    const Evaluation e = evaluate(module(name), nullptr);
    EXPECT_EQ(e.trust, "module") << name;
    EXPECT_TRUE(contains(said(e), "it ran in host form")) << name << ": " << said(e);
  }
}

// What a call takes, and what else the process does (fake_module.h).
std::string host_form(int takes_us, const std::string& does = "") {
  return "item " + std::to_string(takes_us) + (does.empty() ? "" : " " + does);
}

TEST_F(WholeEvaluator, HostFormsAreTimedByTheJudgesClock) {
  const Evaluation e = evaluate(module(host_form(20'000)), nullptr);
  ASSERT_TRUE(e.correct() != nullptr) << said(e);
  EXPECT_EQ(e.trust, "module");
  EXPECT_TRUE(is_host_form(*e.correct()));
  // Sleeping takes longer than asked for on a busy machine, but not many times.
  EXPECT_GE(e.correct()->timings[0].median_us, 10'000);
  EXPECT_LT(e.correct()->timings[0].median_us, 2e6);
}

TEST_F(WholeEvaluator, AHostFormKnowsNothingBeforeItsOrderAndAddsNothingAfterItsAnswer) {
  for (const auto& [does, verdict] : {std::pair("works_ahead", "wrong-result"),
                                      {"works_later", "wrong-result"},
                                      {"changes_an_input", "rejected"},
                                      {"gives_no_sign", "rejected"}}) {
    const Evaluation e = evaluate(module(host_form(3000, does)), nullptr);
    EXPECT_EQ(outcome_name(e.outcome), verdict) << does << ": " << said(e);
  }
}

TEST_F(WholeEvaluator, AHostFormGainsNothingByResultsThatItKept) {
  // Long beside the overhead, which load makes uncertain by milliseconds.
  const Evaluation e = evaluate(module(host_form(20'000, "keeps_results")), nullptr);
  // Where the reference seems slow, on a busy machine, the audit finds it instead.
  if (outcome_name(e.outcome) == "rejected" && contains(said(e), "memoised")) return;
  ASSERT_TRUE(e.correct() != nullptr) << said(e);
  EXPECT_GE(e.correct()->timings[0].median_us, 10'000)
      << e.correct()->timings[0].samples << " samples, " << e.correct()->timings[0].method;
}

TEST_F(WholeEvaluator, AnIncumbentInHostFormIsTimedAlike) {
  const Subject slow = module(host_form(100000));
  const Evaluation e = evaluate(module(host_form(4000)), &slow);
  ASSERT_TRUE(e.correct() && e.correct()->versus) << said(e);
  EXPECT_GT(e.correct()->versus->ratio, 1.2);  // a busy machine adds to both
  EXPECT_LT(e.correct()->versus->ratio, 50);
  const std::vector<std::string>& notes = e.correct()->notes;
  EXPECT_TRUE(std::ranges::any_of(notes, [](const std::string& note) {
    return contains(note, "compared with a PyTorch file in host form");
  })) << "its ratio holds what Python does for a call";
}

TEST_F(WholeEvaluator, AnIncumbentMayTuneItselfInItsFirstCall) {
  // Probes give the candidate's calls a closer limit. The pass that estimates how long a call takes
  // is left out for long ones.
  for (const int us : {20'000, 60'000}) {
    settings_.probes = us == 20'000;
    const Subject incumbent = module(host_form(2 * us, "tunes_itself"));
    const Evaluation e = evaluate(module(host_form(us)), &incumbent);
    ASSERT_TRUE(e.correct() != nullptr) << said(e);
    ASSERT_TRUE(e.correct()->versus) << said(e);
    EXPECT_LT(e.correct()->versus->ratio, 8) << "its first call takes 5 s";
  }
}

TEST_F(WholeEvaluator, SlowCallsArePairedTwiceAtLeast) {
  settings_.probes = false;
  const Subject slower = module(host_form(200'000));  // a pair is over the budget
  const Evaluation e = evaluate(module(host_form(100'000)), &slower);
  ASSERT_TRUE(e.correct() && e.correct()->versus) << said(e);
  const Correct::Versus& versus = *e.correct()->versus;
  EXPECT_GT(versus.ratio, 1.2);
  EXPECT_LT(versus.low, versus.ratio) << "one pair has no scatter";
  EXPECT_GT(versus.high, versus.ratio);
}

// What the process answers with.
std::string process_of(CudaLink& link) {
  const Answer answer = link.ask({{"do", "hello"}}, 60);
  const auto* reply = std::get_if<Reply>(&answer);
  return reply == nullptr ? "none" : reply->json["notes"][0].get<std::string>();
}
bool has(const std::vector<std::string>& notes, const std::string& note) {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

CudaAhead* of_cuda(const std::shared_ptr<Ahead>& ahead) {
  return dynamic_cast<CudaAhead*>(ahead.get());
}

TEST_F(WholeEvaluator, PythonStartsBeforeTheTaskIsKnown) {
  settings_.modules_ahead = 2;
  task_.module = Module{join(folder_.path(), "task.py"), "", ""};
  settings_.ahead = start_cuda_ahead("", 0, {2, folder_.path()});
  ASSERT_TRUE(settings_.ahead);
  ASSERT_EQ(of_cuda(settings_.ahead)->captures.size(), 2u);
  ASSERT_EQ(of_cuda(settings_.ahead)->modules.size(), 1u);
  const std::string capture = process_of(of_cuda(settings_.ahead)->captures[0]);
  const std::string module_process = process_of(of_cuda(settings_.ahead)->modules[0]);
  const Evaluation plan = evaluate(module("honest"), nullptr);
  ASSERT_TRUE(plan.correct() != nullptr) << said(plan);
  EXPECT_TRUE(has(plan.correct()->notes, capture));
  const Evaluation host = evaluate(module(host_form(2000)), nullptr);
  ASSERT_TRUE(host.correct() != nullptr) << said(host);
  EXPECT_TRUE(has(host.correct()->notes, module_process)) << "the plan did not use it up";
  const Evaluation again = evaluate(module(host_form(2001)), nullptr);
  ASSERT_TRUE(again.correct() != nullptr) << said(again);
  EXPECT_FALSE(has(again.correct()->notes, module_process)) << "each process runs one candidate";
}

TEST_F(WholeEvaluator, ProcessesThatMayReadAnotherFolderAreNotUsed) {
  task_.module = Module{join(folder_.path(), "task.py"), "", ""};
  settings_.ahead = start_cuda_ahead("", 0, {1, "/elsewhere"});
  ASSERT_TRUE(settings_.ahead && of_cuda(settings_.ahead)->captures.size() == 1);
  const std::string capture = process_of(of_cuda(settings_.ahead)->captures[0]);
  const Evaluation plan = evaluate(module("honest"), nullptr);
  ASSERT_TRUE(plan.correct() != nullptr) << said(plan);
  EXPECT_FALSE(has(plan.correct()->notes, capture));
}

// One that died while it waited is the machine's misfortune, not the candidate's.
TEST_F(WholeEvaluator, AStandbyThatIsGoneIsReplaced) {
  task_.module = Module{join(folder_.path(), "task.py"), "", ""};
  settings_.ahead = start_cuda_ahead("", 0, {1, folder_.path()});
  ASSERT_TRUE(settings_.ahead && of_cuda(settings_.ahead)->modules.size() == 1);
  const std::string gone = process_of(of_cuda(settings_.ahead)->modules[0]);
  ::kill(std::stoi(gone.substr(gone.rfind(' '))), SIGKILL);
  const Evaluation host = evaluate(module(host_form(2000)), nullptr);
  ASSERT_TRUE(host.correct() != nullptr) << said(host);
  EXPECT_FALSE(has(host.correct()->notes, gone));
}

TEST_F(WholeEvaluator, HostFormsAreCapturedWhereTheyRun) {
  const Subject honest = host_form_of("honest", "honest");
  const Subject other = subject("twice_as_slow");
  for (int again = 0; again < 2; ++again) {  // at one place, as a candidate and as an incumbent
    const Evaluation e = evaluate(honest, &other);
    ASSERT_TRUE(e.correct() && e.correct()->versus) << said(e);
    EXPECT_NEAR(e.correct()->versus->ratio, 2, 0.01);
    EXPECT_TRUE(e.correct()->notes.empty()) << e.correct()->notes[0];
    const Evaluation slower = evaluate(other, &honest);
    ASSERT_TRUE(slower.correct() && slower.correct()->versus) << said(slower);
    EXPECT_NEAR(slower.correct()->versus->ratio, 0.5, 0.01);
  }
  const Evaluation alone = evaluate(honest, nullptr);
  ASSERT_TRUE(alone.correct() != nullptr) << said(alone);
}

TEST_F(WholeEvaluator, HostFormsAreRightOutsideOfACaptureToo) {
  const Evaluation e = evaluate(host_form_of("honest", "copies"), nullptr);
  EXPECT_EQ(outcome_name(e.outcome), "wrong-result") << said(e);
  EXPECT_TRUE(contains(said(e), "outside of a stream capture")) << said(e);
  // A failure there would be an excuse for every one that computes something else.
  const Evaluation ends = evaluate(host_form_of("honest", "ends"), nullptr);
  EXPECT_EQ(outcome_name(ends.outcome), "crashed") << said(ends);
  EXPECT_TRUE(contains(said(ends), "outside of a stream capture")) << said(ends);
}

TEST_F(WholeEvaluator, WatchesMemoryThatIsNotTheirs) {
  for (const bool read_only : {true, false}) {
    if (!read_only) ::setenv("KERNELPRO_FAKE_NO_READ_ONLY", "1", 1);
    evaluator_.reset();
    for (const auto& [name, rule] : {std::pair("changes_an_input", "input-mutation"),
                                     {"writes_past_the_end", "out-of-bounds"}}) {
      const Evaluation e = evaluate(name);
      EXPECT_EQ(outcome_name(e.outcome), "rejected") << name << ": " << said(e);
      EXPECT_TRUE(contains(said(e), rule)) << said(e);
    }
    EXPECT_TRUE(evaluate("honest").correct() != nullptr);
  }
}

TEST_F(WholeEvaluator, InputsCannotBeBorrowedWhereTheDriverMapsThemReadOnly) {
  const Evaluation e = evaluate("borrows_an_input");
  EXPECT_EQ(outcome_name(e.outcome), "rejected") << said(e);
  EXPECT_TRUE(contains(said(e), "input-mutation")) << said(e);
  // A driver that cannot do that refuses nobody.
  ::setenv("KERNELPRO_FAKE_NO_READ_ONLY", "1", 1);
  evaluator_.reset();
  EXPECT_TRUE(evaluate("borrows_an_input").correct() != nullptr);
}

TEST_F(WholeEvaluator, ACandidateDoesNotReachItsRival) {
  const Evaluation e = evaluate("writes_a_page", "reads_a_page");
  ASSERT_TRUE(e.correct() && e.correct()->versus) << said(e);
  EXPECT_NEAR(e.correct()->versus->ratio, 1, 0.01);
  const Evaluation other = evaluate("reads_a_page", "twice_as_slow");
  ASSERT_TRUE(other.correct() && other.correct()->versus) << said(other);
  EXPECT_NEAR(other.correct()->versus->ratio, 2, 0.01);
}

TEST_F(WholeEvaluator, AnIncumbentThatFailsIsNotTheCandidatesFault) {
  for (const char* name : {"wrong_later", "borrows_an_input", "writes_past_the_end"}) {
    const Evaluation e = evaluate("honest", name);
    ASSERT_TRUE(e.correct() != nullptr) << name << ": " << said(e);
    EXPECT_NEAR(e.correct()->timings[0].median_us, kHonestUs, 0.1);
  }
}

TEST_F(WholeEvaluator, AddressesComeFromParametersAlone) {
  for (const char* name : {"literal_addresses", "literal_distance"}) {
    Evaluation e = evaluate(name);
    if (e.correct()) e = evaluate(name);  // one of 256 distances is the usual one
    EXPECT_EQ(outcome_name(e.outcome), "crashed") << name << ": " << said(e);
    EXPECT_TRUE(contains(said(e), "ILLEGAL_ADDRESS")) << said(e);
  }
}

// The fake driver runs what no edge orders in the opposite order: as it was captured, this is
// right.
TEST_F(WholeEvaluator, AMissingEdgeShowsInAnotherOrder) {
  Subject racy = subject("all");
  racy.binaries[0].plan.nodes = {call("doubles"), call("copies")};
  const Evaluation e = evaluate(racy, nullptr);
  EXPECT_EQ(outcome_name(e.outcome), "wrong-result") << said(e);
  EXPECT_TRUE(contains(said(e), "dependency between launches is missing")) << said(e);
  // Two branches that may come in any order.
  Subject sound = racy;
  sound.binaries[0].plan.nodes = {call("honest"), call("honest"), call("doubles"), call("copies")};
  sound.binaries[0].plan.edges = {{0, 3, 0, 0, 0}, {1, 3, 0, 0, 0}, {3, 2, 0, 0, 0}};
  const Evaluation good = evaluate(sound, nullptr);
  EXPECT_TRUE(good.correct() != nullptr) << said(good);
}

// No call is too long, but there are some hundred of them.
TEST_F(WholeEvaluator, CallsTogetherHaveALimitToo) {
  settings_.timeout_s = 4;
  Evaluation dawdles = evaluate("dawdles_later");
  // Where the first call seems long, on a busy machine, only few follow.
  if (dawdles.correct()) dawdles = evaluate("dawdles_later");
  EXPECT_EQ(outcome_name(dawdles.outcome), "timed-out") << said(dawdles);
  EXPECT_TRUE(contains(said(dawdles), "taken together")) << said(dawdles);
}

}  // namespace
}  // namespace kernelpro::testing
