// SPDX-License-Identifier: Apache-2.0
// The whole cuda evaluator without a GPU: judge and workers are real processes over a fake CUDA
// driver (measure/worker/testing/fake_worker.cc), which also names the candidates.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "measure/cuda/ahead.h"
#include "measure/judge/evaluator.h"

namespace kernelpro {
namespace {

constexpr double kHonestUs = 40;  // as in fake_worker.cc

PlanNode call(const std::string& name) {
  PlanNode node;
  node.kind = PlanNode::Kind::kKernel;
  node.function = name;
  node.grid = {16, 1, 1};
  node.block = {256, 1, 1};
  for (const int index : {0, 1}) {
    PlanParameter tensor;
    tensor.kind = PlanParameter::Kind::kTensor;
    tensor.index = index;
    node.parameters.push_back(tensor);
  }
  return node;
}

class WholeEvaluator : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer needs the addresses of the launch plan";
#endif
    const std::string worker = join(executable_dir(), "../fake_driver/fake_worker");
    ASSERT_TRUE(exists(worker)) << "build fake_worker";
    ::setenv("KERNELPRO_WORKER", worker.c_str(), 1);
    ::setenv("KERNELPRO_PYTHON", worker.c_str(), 1);
    ::setenv("KERNELPRO_CACHE", folder_.path().c_str(), 1);
    ::setenv("KERNELPRO_LEASES", folder_.path().c_str(), 1);
    Command images;
    images.argv = {worker, "images", folder_.path()};
    const auto written = run(images);
    ASSERT_TRUE(written) << written.error().text();
    if (!written->ok()) GTEST_SKIP() << "no NVRTC here";
    task_.name = "twice";
    task_.tensors = {{"x", Role::kInput, DType::kFp32, {"N"}, {}, 0},
                     {"y", Role::kOutput, DType::kFp32, {"N"}, {}, 0}};
    task_.cases = {{"only", {{"N", 4093}}, true, {}}};
    task_.reference_cu = "given";
    machine_.target = "cuda";
    machine_.arch = "sm_90a";
    settings_.timeout_s = 20;
    settings_.samples = 20;
    settings_.probes = false;
  }
  void TearDown() override {
    evaluator_.reset();
    for (const char* name :
         {"KERNELPRO_WORKER", "KERNELPRO_CACHE", "KERNELPRO_LEASES", "KERNELPRO_PYTHON",
          "KERNELPRO_FAKE_SAMPLING", "KERNELPRO_FAKE_NO_READ_ONLY"}) {
      ::unsetenv(name);
    }
  }

  // The image of a kernel lies in the folder under its name.
  Binary binary(const std::string& name) const {
    Binary made;
    made.form = Binary::Form::kPlanForm;
    made.case_name = task_.cases[0].name;
    made.hash = name;
    made.cubin = join(folder_.path(), name);
    made.plan.nodes = {call(name)};
    return made;
  }
  Subject subject(const std::string& name) const { return {name, {binary(name)}}; }
  // A host form with that kernel; outside of a capture it computes what `outside` does.
  Subject host_form_of(const std::string& name, const std::string& outside) const {
    Binary made = binary(name);
    made.form = Binary::Form::kHostForm;
    made.hash = "host form of " + name + " and " + outside;
    made.shared_object = join(folder_.path(), name + "," + outside);
    made.plan = {};
    return {made.hash, {made}};
  }
  // A PyTorch candidate, whose file the fake Python only takes the name of.
  Subject module(const std::string& name) const {
    Binary made;
    made.form = Binary::Form::kModule;
    made.case_name = task_.cases[0].name;
    made.hash = "module " + name;
    made.module = join(folder_.path(), name);
    return {made.hash, {made}};
  }
  Evaluation evaluate(const std::string& name, const std::string& incumbent = "") {
    const Subject against = subject(incumbent);
    return evaluate(subject(name), incumbent.empty() ? nullptr : &against);
  }
  Evaluation evaluate(const Subject& candidate, const Subject* incumbent) {
    if (!evaluator_) {
      auto made = make_cuda_evaluator(task_, machine_, settings_);
      if (made) evaluator_ = std::move(*made);
      const auto given = std::exchange(task_.module, std::nullopt);  // its reference is native
      References references;
      references.binaries.assign(task_.cases.size(), binary(reference_));
      const auto ready = evaluator_ ? evaluator_->prepare(references) : Result<void>();
      if (!ready) ADD_FAILURE() << ready.error().text();
      if (!evaluator_ || !ready) return {};
      task_.module = given;
    }
    const bool module = candidate.binaries[0].form == Binary::Form::kModule;
    if (module && !task_.module) task_.module = Module{};  // the reference stays the native one
    auto evaluation = evaluator_->evaluate(candidate, incumbent);
    if (evaluation) return std::move(*evaluation);
    ADD_FAILURE() << evaluation.error().text();
    return {};
  }
  static std::string said(const Evaluation& e) { return outcome_summary(e.outcome); }

  std::string reference_ = "reference";
  TempDir folder_;
  Task task_;
  Machine machine_;
  EvaluateSettings settings_;
  std::unique_ptr<Evaluator> evaluator_;
};

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

TEST_F(WholeEvaluator, WhatWasKeptFromEarlierCallsIsOfNoUse) {
  for (const char* name : {"memo", "skips_when_done"}) {
    for (const char* incumbent : {"", "honest"}) {
      const Evaluation e = evaluate(name, incumbent);
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
  const Evaluation e = evaluate(module(host_form(4000)), nullptr);
  ASSERT_TRUE(e.correct() != nullptr) << said(e);
  EXPECT_EQ(e.trust, "module");
  EXPECT_TRUE(is_host_form(*e.correct()));
  // Sleeping takes longer than asked for on a busy machine, but not many times.
  EXPECT_GE(e.correct()->timings[0].median_us, 3500);
  EXPECT_LT(e.correct()->timings[0].median_us, 400000);
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
  const Evaluation e = evaluate(module(host_form(4000, "keeps_results")), nullptr);
  ASSERT_TRUE(e.correct() != nullptr) << said(e);
  EXPECT_GE(e.correct()->timings[0].median_us, 3500);
}

TEST_F(WholeEvaluator, AnIncumbentInHostFormIsTimedAlike) {
  const Subject slow = module(host_form(100000));
  const Evaluation e = evaluate(module(host_form(4000)), &slow);
  ASSERT_TRUE(e.correct() && e.correct()->versus) << said(e);
  EXPECT_GT(e.correct()->versus->ratio, 1.2);  // a busy machine adds to both
  EXPECT_LT(e.correct()->versus->ratio, 50);
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

TEST_F(WholeEvaluator, PythonStartsBeforeTheTaskIsKnown) {
  settings_.modules_ahead = 2;
  task_.module = Module{join(folder_.path(), "task.py"), "", ""};
  settings_.ahead = start_cuda_ahead("", 0, {2, folder_.path()});
  ASSERT_TRUE(settings_.ahead);
  ASSERT_EQ(settings_.ahead->captures.size(), 2u);
  ASSERT_EQ(settings_.ahead->modules.size(), 1u);
  const std::string capture = process_of(settings_.ahead->captures[0]);
  const std::string module_process = process_of(settings_.ahead->modules[0]);
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
  ASSERT_TRUE(settings_.ahead && settings_.ahead->captures.size() == 1);
  const std::string capture = process_of(settings_.ahead->captures[0]);
  const Evaluation plan = evaluate(module("honest"), nullptr);
  ASSERT_TRUE(plan.correct() != nullptr) << said(plan);
  EXPECT_FALSE(has(plan.correct()->notes, capture));
}

// One that died while it waited is the machine's misfortune, not the candidate's.
TEST_F(WholeEvaluator, AStandbyThatIsGoneIsReplaced) {
  task_.module = Module{join(folder_.path(), "task.py"), "", ""};
  settings_.ahead = start_cuda_ahead("", 0, {1, folder_.path()});
  ASSERT_TRUE(settings_.ahead && settings_.ahead->modules.size() == 1);
  const std::string gone = process_of(settings_.ahead->modules[0]);
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

TEST_F(WholeEvaluator, ProbesShowWhatTheUsualInputsHide) {
  settings_.probes = true;
  task_.matmul_flops = "2*N";
  const Evaluation honest = evaluate("honest");
  ASSERT_TRUE(honest.correct() != nullptr) << said(honest);
  EXPECT_TRUE(honest.correct()->labels.empty()) << honest.correct()->labels[0];
  // A row of a few elements tells little: a draw may hide it, and draws serve several times.
  Evaluation rounded = evaluate("two_parts");
  for (int k = 0; k < 40 && rounded.correct() != nullptr; ++k) rounded = evaluate("two_parts");
  EXPECT_EQ(outcome_name(rounded.outcome), "rejected") << said(rounded);
  EXPECT_TRUE(contains(said(rounded), "precision")) << said(rounded);
  const Evaluation skips = evaluate("skips_when_small");
  ASSERT_TRUE(skips.correct() != nullptr) << said(skips);
  EXPECT_EQ(skips.correct()->labels, std::vector<std::string>{"given-distribution-only"});
}

TEST_F(WholeEvaluator, ProbesFindFewElementsAmongMany) {
  settings_.probes = true;
  // A sample may happen to hold one of them, and draws serve several times.
  bool found = false;
  for (int k = 0; k < 40 && !found; ++k) {
    const Evaluation sampled = evaluate("trusts_a_sample");
    ASSERT_TRUE(sampled.correct() != nullptr) << said(sampled);
    found = sampled.correct()->labels == std::vector<std::string>{"given-distribution-only"};
  }
  EXPECT_TRUE(found);
}

TEST_F(WholeEvaluator, ProbesBeyondTheRangeAreTriedWithSmallerValues) {
  settings_.probes = true;
  reference_ = "huge_reference";
  for (int k = 0; k < 2; ++k) {  // levels are remembered
    const Evaluation honest = evaluate("huge");
    ASSERT_TRUE(honest.correct() != nullptr) << said(honest);
    EXPECT_TRUE(honest.correct()->labels.empty());
    const Evaluation table = evaluate("huge_in_a_table");
    ASSERT_TRUE(table.correct() != nullptr) << said(table);
    EXPECT_EQ(table.correct()->labels, std::vector<std::string>{"given-distribution-only"});
  }
}

TEST_F(WholeEvaluator, SizesThatNobodyTimesAreProbedToo) {
  settings_.probes = true;
  Case other = task_.cases[0];
  other.name = "other";
  other.timed = false;
  task_.cases.push_back(other);
  Subject subject{"careless elsewhere", {binary("honest"), binary("skips_when_small")}};
  subject.binaries[1].case_name = "other";
  const Evaluation careless = evaluate(subject, nullptr);
  ASSERT_TRUE(careless.correct() != nullptr) << said(careless);
  EXPECT_EQ(careless.correct()->labels, std::vector<std::string>{"given-distribution-only"});
  subject.binaries[1] = subject.binaries[0];
  subject.binaries[1].case_name = "other";
  const Evaluation honest = evaluate(subject, nullptr);
  ASSERT_TRUE(honest.correct() != nullptr) << said(honest);
  EXPECT_TRUE(honest.correct()->labels.empty());
}

TEST_F(WholeEvaluator, AProbeIsNotAlwaysTheFirstCall) {
  settings_.probes = true;
  const Evaluation careful = evaluate("careful_at_first");
  ASSERT_TRUE(careful.correct() != nullptr) << said(careful);
  EXPECT_EQ(careful.correct()->labels, std::vector<std::string>{"given-distribution-only"});
}

TEST_F(WholeEvaluator, ASearchFindsItInAFewEvaluations) {
  settings_.probes = true;
  settings_.probes_each = 4;
  task_.matmul_flops = "2*N";
  bool found = false;
  for (int k = 0; k < 100 && !found; ++k) {
    const Evaluation honest = evaluate("honest");
    ASSERT_TRUE(honest.correct() != nullptr) << said(honest);
    EXPECT_TRUE(honest.correct()->labels.empty());
    found = evaluate("two_parts").correct() == nullptr;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace kernelpro
