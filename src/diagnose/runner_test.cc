// SPDX-License-Identifier: Apache-2.0
#include "diagnose/runner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/candidate/tags.h"
#include "diagnose/diagnose.h"

namespace kernelpro {
namespace {

Evidence cpu_matmul(double time_us) {
  Evidence e;
  e.set("task.compulsory_bytes", 3.0 * 1024 * 1024 * 4, Level::kTiming, "task");
  e.set("task.flops", 2.0 * 1024 * 1024 * 1024, Level::kTiming, "task");
  e.set("ceiling.copy_bandwidth", 2e10, Level::kTiming, "ceilings");
  e.set("ceiling.fma_rate", 1.6e11, Level::kTiming, "ceilings");
  e.set("machine.parallel_units", 2, Level::kTiming, "ceilings");
  e.set("timing.median", time_us, Level::kTiming, "timing");
  e.set("cpu.threads_busy", 1.0, Level::kTiming, "timing");
  e.set("cpu.asm.hot.packed_fp", 0, Level::kStatic, "objdump");
  e.set("cpu.asm.hot.scalar_fp", 10, Level::kStatic, "objdump");
  return e;
}

const ToolRun* tool_run(const Diagnosis& diagnosis, std::string_view name) {
  for (const ToolRun& run : diagnosis.tools) {
    if (run.tool == name) return &run;
  }
  return nullptr;
}

TEST(Roofline, TheoryAndTiming) {
  const Roofline near = roofline(cpu_matmul(20000));
  EXPECT_EQ(near.theory, Bound::kCompute);
  EXPECT_EQ(near.bound, Bound::kCompute);
  EXPECT_NEAR(near.floor_us, 2.0 * 1024 * 1024 * 1024 / 1.6e11 * 1e6, 1e-6);
  EXPECT_NEAR(near.fraction, near.floor_us / 20000, 1e-12);
  EXPECT_EQ(roofline(cpu_matmul(900000)).bound, Bound::kLatency);
}

TEST(Roofline, LessArithmeticThanTheDefinitionCounts) {
  const Roofline direct = roofline(cpu_matmul(20000));
  const Roofline same = roofline(cpu_matmul(0.98 * direct.compute_floor_us));
  EXPECT_FALSE(same.less_work);  // a ceiling is not exact
  const Evidence e = cpu_matmul(0.5 * direct.compute_floor_us);
  const Roofline less = roofline(e);
  EXPECT_TRUE(less.less_work);
  EXPECT_EQ(less.theory, Bound::kMemory);
  EXPECT_LT(less.fraction, 1);
  EXPECT_DOUBLE_EQ(less.floor_us, less.memory_floor_us);
  EXPECT_NE(diagnose(e).summary.find("does less arithmetic"), std::string::npos);
}

TEST(Roofline, TensorRateOnlyForHalfInputs) {
  Evidence e = cpu_matmul(20000);
  e.set("task.matmul_flops", 2.0 * 1024 * 1024 * 1024, Level::kTiming, "task");
  e.set("ceiling.tensor_rate", 1.6e13, Level::kTiming, "ceilings");
  const double fp32 = roofline(e).compute_floor_us;
  e.set("task.half_inputs", 1, Level::kTiming, "task");
  EXPECT_NEAR(roofline(e).compute_floor_us, fp32 / 100, fp32 * 1e-9);
}

// Where nothing timed a call's kernels apart, a flaw of one is not worth the whole call.
TEST(Runner, AKernelOfUnknownShareIsOneOfMany) {
  double likely[2] = {0, 0};
  for (const bool timed : {false, true}) {
    Evidence e;
    e.set("timing.median", 1000, Level::kTiming, "t");
    e.set("machine.parallel_units", 132, Level::kTiming, "t");
    e.set("plan.kernels", 4, Level::kStatic, "t");
    for (const char* name : {"product", "pass", "pack", "finish"}) {
      const bool small = name == std::string("finish");
      KernelEvidence kernel;
      kernel.name = name;
      kernel.facts.set("launch__grid_size", small ? 64 : 132 * 16, Level::kStatic, "t");
      kernel.facts.set("launch__block_size", 256, Level::kStatic, "t");
      kernel.facts.set("launch__occupancy_limit_blocks", 8, Level::kStatic, "t");
      kernel.facts.set("launch__waves_per_multiprocessor", small ? 64 / 132.0 / 8 : 2,
                       Level::kStatic, "t");
      if (timed) kernel.facts.set("kernel.share", small ? 0.9 : 0.03, Level::kCounters, "t");
      e.kernels.push_back(std::move(kernel));
    }
    for (const Finding& finding : diagnose(e).findings) {
      if (finding.tool == "small-grid") likely[timed ? 1 : 0] = finding.likely_speedup;
    }
  }
  EXPECT_GT(likely[0], 1);
  EXPECT_LT(likely[0], 1.34) << "a fourth of the call, at most";
  EXPECT_GT(likely[1], 1.4);
}

// fp32 products at the ceiling of multiply-adds: matrix units multiply parts of them faster.
TEST(Runner, AnotherUnitComesBeforeAStop) {
  const double flops = 2.0 * 4096 * 4096 * 4096;
  Evidence e;
  const auto set = [&](const char* name, double value) { e.set(name, value, Level::kTiming, "t"); };
  set("task.flops", flops), set("task.matmul_flops", flops), set("task.half_inputs", 0);
  set("task.compulsory_bytes", 3.0 * 4096 * 4096 * 4);
  set("ceiling.copy_bandwidth", 4.25e12), set("ceiling.fma_rate", 63.7e12);
  set("timing.median", 1.05 * flops / 63.7e12 * 1e6);
  e.set("sass.hmma", 0, Level::kStatic, "sass");
  e.set("sass.hgmma", 0, Level::kStatic, "sass");
  e.texts["arch"] = "sm_90a";
  const Diagnosis stops = diagnose(e);
  ASSERT_FALSE(stops.findings.empty());
  EXPECT_TRUE(stops.findings[0].stop);
  set("ceiling.tensor_rate", 804e12);
  const Diagnosis goes_on = diagnose(e);
  ASSERT_FALSE(goes_on.findings.empty());
  EXPECT_EQ(goes_on.findings[0].tool, "missing-tensor-cores");
  EXPECT_GT(goes_on.findings[0].likely_speedup, 1.3) << "beyond the roofline's headroom of 1.05";
  for (const Finding& finding : goes_on.findings) EXPECT_FALSE(finding.stop) << finding.tool;
}

TEST(Roofline, NothingKnown) {
  const Diagnosis diagnosis = diagnose(Evidence());
  EXPECT_EQ(diagnosis.bound, Bound::kUnknown);
  EXPECT_TRUE(diagnosis.findings.empty());
  for (const ToolRun& run : diagnosis.tools) {
    EXPECT_EQ(run.state, ToolRun::State::kNotEvaluable) << run.tool;
    EXPECT_NE(run.reason.find("not observed"), std::string::npos) << run.tool;
  }
}

TEST(Runner, RanksByLikelyGainAndClampsToTheRoofline) {
  const Diagnosis diagnosis = diagnose(cpu_matmul(100000));
  ASSERT_GE(diagnosis.findings.size(), 2u);
  const double headroom = 1 / diagnosis.fraction_of_ceiling;
  EXPECT_EQ(diagnosis.findings.back().tool, "far-from-both-ceilings") << "the catch-all";
  double last = 1e30;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.tool == "far-from-both-ceilings") continue;
    EXPECT_LE(finding.likely_speedup, last);
    EXPECT_LE(finding.likely_speedup, finding.upper_speedup);
    EXPECT_LE(finding.upper_speedup, headroom * (1 + 1e-12));
    last = finding.likely_speedup;
  }
  EXPECT_EQ(tool_run(diagnosis, "register-spill")->state, ToolRun::State::kFilteredOut);
}

std::optional<Finding> boast(const Facts&) {
  Finding finding;
  finding.cause = "something";
  finding.prescriptions = {{"unroll", "do it", ""}};
  finding.likely_speedup = finding.upper_speedup = 5;
  return finding;
}

std::optional<Finding> modest(const Facts& facts) {
  Finding finding = *boast(facts);
  finding.likely_speedup = finding.upper_speedup = 1.5;
  return finding;
}

// One kernel of half the call's time, at 80 % of its own floor: whatever a tool promises of it, the
// launches stay, and so does the floor.
TEST(Runner, NoGainExceedsWhatTheAccountAllows) {
  Evidence e;
  e.texts["target"] = "cuda";
  e.set("timing.median", 100, "timing");
  e.set("gpu__time_duration.sum", 50e3, "cupti");
  e.set("plan.kernels", 1, "launch plan");
  e.set("task.compulsory_bytes", 160e6, "task");
  e.set("ceiling.copy_bandwidth", 4e12, "ceilings");
  Tool tool{.name = "boast", .summary = "s", .analyse = boast};
  const auto promised = [&] { return run_tools(e, std::span(&tool, 1), {}).findings.at(0); };
  EXPECT_NEAR(promised().likely_speedup, 100.0 / 90, 1e-3);
  EXPECT_NEAR(promised().upper_speedup, 100 / (45 + 40 / 1.1), 1e-3) << "a tenth of slack in both";
  tool.scope = Scope::kCall;
  EXPECT_NEAR(promised().likely_speedup, 2.5, 1e-3) << "a change of the call may remove launches";
}

// A processor's kernel between half and nine tenths of its ceiling: its costliest parts.
TEST(Runner, NoSilenceBelowTheCeiling) {
  Evidence e = cpu_matmul(0);
  e.set("timing.median", 1e6 * 2.0 * 1024 * 1024 * 1024 / 1.6e11 / 0.7, "timing");
  e.set("cpu.threads_busy", 1.6, "timing");
  e.set("cpu.asm.hot.scalar_fp", 0, "objdump");
  e.set("cpu.asm.hot.packed_fp", 10, "objdump");
  const Diagnosis diagnosis = diagnose(e);
  EXPECT_NEAR(diagnosis.fraction_of_ceiling, 0.7, 1e-9);
  ASSERT_FALSE(diagnosis.findings.empty());
  const Finding& finding = diagnosis.findings.back();
  EXPECT_EQ(finding.tool, "far-from-both-ceilings");
  EXPECT_NE(finding.cause.find("idle threads beside a busy one, which goes if"), std::string::npos)
      << finding.cause;
  EXPECT_EQ(finding.cause.find("waiting or repeated"), std::string::npos) << finding.cause;
}

TEST(Runner, ACatchAllComesAfterEverySpecificFinding) {
  Tool table[] = {{"boast", "", ToolTarget::kAny, kAnyBound, {}, boast},
                  {"modest", "", ToolTarget::kAny, kAnyBound, {}, modest}};
  EXPECT_EQ(run_tools(cpu_matmul(900000), table, {}).findings.at(0).tool, "boast");
  table[0].catch_all = true;
  EXPECT_EQ(run_tools(cpu_matmul(900000), table, {}).findings.at(0).tool, "modest");
}

TEST(Roofline, TheCopyBandwidthHasSlackAndTheRateHasNone) {
  Evidence e = cpu_matmul(900000);
  EXPECT_DOUBLE_EQ(roofline(e).most(), roofline(e).headroom());
  e.set("task.flops", 1000, Level::kTiming, "task");
  EXPECT_DOUBLE_EQ(roofline(e).most(), kCopySlack * roofline(e).headroom());
}

TEST(Runner, FindingsStateTheirWeakestLevel) {
  for (const Finding& finding : diagnose(cpu_matmul(100000)).findings) {
    if (finding.tool == "scalar-code") {
      EXPECT_EQ(finding.level, Level::kStatic);
    } else if (finding.tool == "one-thread-busy") {
      EXPECT_EQ(finding.level, Level::kTiming);
    }
  }
}

TEST(Runner, StopSilencesTheRest) {
  const Diagnosis diagnosis = diagnose(cpu_matmul(14000));
  ASSERT_EQ(diagnosis.findings.size(), 1u);
  EXPECT_EQ(diagnosis.findings[0].tool, "at-compute-ceiling");
  EXPECT_TRUE(diagnosis.findings[0].stop);
  EXPECT_EQ(diagnosis.findings[0].upper_speedup, 1);
  EXPECT_EQ(tool_run(diagnosis, "scalar-code")->state, ToolRun::State::kFilteredOut);
}

TEST(Runner, SharedAdviceIsGivenOnce) {
  const Diagnosis diagnosis = diagnose(cpu_matmul(900000));
  int vectorize = 0;
  for (const Finding& finding : diagnosis.findings) {
    for (const Prescription& prescription : finding.prescriptions) {
      vectorize += prescription.tag == "vectorize" ? 1 : 0;
    }
  }
  EXPECT_EQ(vectorize, 1);
}

TEST(Runner, DisabledToolsDoNotRun) {
  const Diagnosis diagnosis = run_tools(cpu_matmul(900000), tools(), {{"scalar-code"}, {}});
  EXPECT_EQ(tool_run(diagnosis, "scalar-code")->reason, "disabled");
}

// The reasons are for families; tools ask for metrics.
TEST(Runner, SaysWhyAToolCannotLook) {
  Evidence e;
  e.note_missing({Family::kCeilings,
                  "it was not measured on this machine",
                  "run `kernelpro doctor`",
                  {"ceiling.copy_bandwidth"}});
  e.note_missing({Family::kCounters, "they were not collected", "evaluate with --profile"});
  e.kernels.push_back({"k", {}});
  e.kernels[0].facts.set("kernel.share", 1, "cupti");
  e.kernels[0].facts.note_missing({Family::kResources, "ptxas said nothing about it", ""});
  const Diagnosis diagnosis = diagnose(e);
  const auto reason = [&](std::string_view tool) { return tool_run(diagnosis, tool)->reason; };
  EXPECT_NE(reason("far-from-both-ceilings").find("(it was not measured"), std::string::npos)
      << reason("far-from-both-ceilings");
  EXPECT_NE(reason("dominant-stall").find("(they were not collected)"), std::string::npos)
      << reason("dominant-stall");
  EXPECT_NE(reason("register-pressure").find("(ptxas said nothing about it)"), std::string::npos)
      << reason("register-pressure");
}

TEST(Runner, SameEvidenceSameBytes) {
  EXPECT_EQ(diagnosis_to_json(diagnose(cpu_matmul(900000))),
            diagnosis_to_json(diagnose(cpu_matmul(900000))));
}

std::optional<Finding> faulty(const Facts&) {
  Finding finding;
  finding.cause = "something";
  finding.prescriptions = {{"no-such-tag", "do it", ""}};
  return finding;
}

TEST(Runner, AFaultyToolCannotPrescribe) {
  const Tool tool{"faulty", "", ToolTarget::kAny, kAnyBound, {}, faulty};
  const Diagnosis diagnosis = run_tools(cpu_matmul(900000), std::span<const Tool>(&tool, 1), {});
  EXPECT_TRUE(diagnosis.findings.empty());
  EXPECT_NE(diagnosis.tools.at(0).reason.find("no-such-tag"), std::string::npos);
  Finding infinite;
  infinite.cause = "x";
  infinite.upper_speedup = INFINITY;
  EXPECT_NE(finding_problem(infinite), "");
}

// A call of several equal kernels.
Evidence kernels_of(const std::vector<std::string>& names) {
  Evidence e = cpu_matmul(900000);
  for (const std::string& name : names) {
    KernelEvidence kernel{name, {}};
    kernel.facts.set("kernel.share", 1.0 / static_cast<double>(names.size()), "test");
    kernel.facts.texts["kernel"] = name;
    e.kernels.push_back(std::move(kernel));
  }
  return e;
}

Finding promising(double gain, const char* tag) {
  Finding finding;
  finding.cause = "something";
  finding.prescriptions = {{tag, "do it", ""}};
  finding.likely_speedup = finding.upper_speedup = gain;
  return finding;
}

std::optional<Finding> in_every_kernel(const Facts&) { return promising(3, "vectorize"); }
std::optional<Finding> in_kernel_a(const Facts& facts) {
  if (facts.text("kernel") != "a") return std::nullopt;
  return promising(2, "vectorize");
}
std::optional<Finding> little_in_kernel_a(const Facts& facts) {
  return promising(facts.text("kernel") == "a" ? 1.001 : 2, "vectorize");
}

std::vector<std::string> kernels_named_by(const Diagnosis& diagnosis, std::string_view tool) {
  std::vector<std::string> kernels;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.tool == tool) kernels.push_back(finding.kernel);
  }
  return kernels;
}

constexpr char kLongName[] = "a-name-that-does-not-fit-into-a-short-string";

// The fifth finding goes alone, and the tool has still fired.
TEST(Runner, AFindingTooManyLeavesTheOthersOfItsTool) {
  const Tool tool{kLongName, "", ToolTarget::kAny, kAnyBound, {}, in_every_kernel};
  const std::span<const Tool> table(&tool, 1);
  for (const auto& names : {std::vector<std::string>{"a", "b", "c", "d"},
                            std::vector<std::string>{"a", "b", "c", "d", "e", "f"}}) {
    const Diagnosis diagnosis = run_tools(kernels_of(names), table, {});
    EXPECT_EQ(kernels_named_by(diagnosis, kLongName).size(), 4u);
    EXPECT_EQ(tool_run(diagnosis, kLongName)->state, ToolRun::State::kFired);
  }
}

TEST(Runner, WhatIsDroppedWholeIsSaidToBeWithheld) {
  const Tool table[] = {{"other-tool", "", ToolTarget::kAny, kAnyBound, {}, in_every_kernel},
                        {kLongName, "", ToolTarget::kAny, kAnyBound, {}, in_kernel_a}};
  const Diagnosis diagnosis = run_tools(kernels_of({"a", "b", "c", "d"}), table, {});
  EXPECT_TRUE(kernels_named_by(diagnosis, kLongName).empty());
  EXPECT_EQ(tool_run(diagnosis, kLongName)->state, ToolRun::State::kFilteredOut);
  EXPECT_EQ(tool_run(diagnosis, kLongName)->reason, "withheld: other findings promise more");
}

TEST(Runner, AKernelWithNothingToGainDoesNotSilenceTheOthers) {
  const Tool tool{kLongName, "", ToolTarget::kAny, kAnyBound, {}, little_in_kernel_a};
  const Diagnosis diagnosis =
      run_tools(kernels_of({"a", "b", "c"}), std::span<const Tool>(&tool, 1), {});
  EXPECT_EQ(kernels_named_by(diagnosis, kLongName), (std::vector<std::string>{"b", "c"}));
}

TEST(Runner, APrecedenceHoldsWithinAKernel) {
  const Tool table[] = {{"uncoalesced-access", "", ToolTarget::kAny, kAnyBound, {}, in_kernel_a},
                        {"scalar-loads", "", ToolTarget::kAny, kAnyBound, {}, in_every_kernel}};
  const Diagnosis diagnosis = run_tools(kernels_of({"a", "b"}), table, {});
  EXPECT_EQ(kernels_named_by(diagnosis, "scalar-loads"), (std::vector<std::string>{"b"}));
  EXPECT_EQ(tool_run(diagnosis, "scalar-loads")->state, ToolRun::State::kFired);
}

// The same finding of two kernels: what is promised is the larger gain, for every reader.
TEST(Finding, AnAnswerMeansTheLargestGain) {
  Diagnosis diagnosis;
  for (const double gain : {1.5, 1.2}) {
    diagnosis.findings.push_back(promising(gain, gain > 1.3 ? "vectorize" : "unroll"));
    diagnosis.findings.back().tool = "scalar-loads";
  }
  EXPECT_EQ(answered(diagnosis, {"scalar-loads", ""})->likely_speedup, 1.5);
  EXPECT_EQ(answered(diagnosis, {"scalar-loads", "unroll"})->likely_speedup, 1.2);
  EXPECT_EQ(answered(diagnosis, {"scalar-loads", "pipeline"})->likely_speedup, 1.5);
  EXPECT_EQ(answered(diagnosis, {"bank-conflicts", ""}), nullptr);
  EXPECT_EQ(answered(diagnosis, {}), nullptr);
}

TEST(Runner, PrecedencesNameToolsAndTags) {
  const auto is_tool = [](std::string_view name) {
    for (const Tool& tool : tools()) {
      if (tool.name == name) return true;
    }
    return false;
  };
  for (const Precedence& rule : precedences()) {
    EXPECT_TRUE(is_tool(rule.winner)) << rule.winner;
    EXPECT_TRUE(is_tool(rule.loser)) << rule.loser;
    EXPECT_TRUE(rule.tag.empty() || find_tag(rule.tag) != nullptr) << rule.tag;
  }
}

TEST(Text, IsShortAndHasNoCounters) {
  const std::string text = diagnosis_to_text(diagnose(cpu_matmul(900000)));
  EXPECT_NE(text.find("[vectorize]"), std::string::npos) << text;
  EXPECT_EQ(text.find("cpu.asm."), std::string::npos) << text;
  EXPECT_LT(text.size(), 4000u);
}

// A multithreaded kernel while four other processes compute: it gets only part of the threads.
Evidence on_a_busy_machine(double foreign) {
  Evidence e = cpu_matmul(40000);
  e.set("cpu.asm.hot.packed_fp", 10, Level::kStatic, "objdump");
  e.set("cpu.asm.hot.scalar_fp", 0, Level::kStatic, "objdump");
  e.set("cpu.threads_busy", 0.96, Level::kTiming, "timing");
  e.set("cpu.asm.parallel_regions", 1, Level::kStatic, "objdump");
  if (foreign > 0) e.set("load.foreign_cpu", foreign, Level::kTiming, "load");
  return e;
}

const Finding* finding(const Diagnosis& diagnosis, std::string_view tool) {
  for (const Finding& each : diagnosis.findings) {
    if (each.tool == tool) return &each;
  }
  return nullptr;
}

TEST(Load, ThreadsThatOthersHeldAreNotIdle) {
  const Diagnosis diagnosis = diagnose(on_a_busy_machine(0.6));
  EXPECT_EQ(finding(diagnosis, "one-thread-busy"), nullptr);
  EXPECT_NE(diagnosis.summary.find("other processes used 60 %"), std::string::npos)
      << diagnosis.summary;
}

TEST(Load, ParallelCodeIsNotToldToBecomeParallel) {
  const Diagnosis diagnosis = diagnose(on_a_busy_machine(0));
  const Finding* idle = finding(diagnosis, "one-thread-busy");
  ASSERT_NE(idle, nullptr);
  EXPECT_EQ(idle->severity, Severity::kWarning);
  for (const Prescription& step : idle->prescriptions) {
    EXPECT_EQ(step.text.find("#pragma omp parallel"), std::string::npos) << step.text;
  }
}

// A team waits for its slowest thread: whatever it did not use, the load may have taken.
TEST(Load, ParallelCodeIsNotAccusedBesideOtherWork) {
  for (const double foreign : {0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95}) {
    for (const double busy : {0.1, 0.9, 1.5, 2.5}) {
      for (const double units : {16.0, 64.0}) {
        Evidence e = on_a_busy_machine(foreign);
        e.set("machine.parallel_units", units, Level::kTiming, "ceilings");
        e.set("cpu.threads_busy", busy, Level::kTiming, "timing");
        EXPECT_EQ(finding(diagnose(e), "one-thread-busy"), nullptr) << foreign << " " << busy;
      }
    }
  }
  for (const char* disturbed : {"load.pairs_dropped", "load.pairs_disturbed"}) {
    Evidence e = on_a_busy_machine(0);
    e.set(disturbed, 3, Level::kTiming, "load");
    EXPECT_EQ(finding(diagnose(e), "one-thread-busy"), nullptr) << disturbed;
  }
}

TEST(Load, SerialCodeIsStillFoundBesideALittleLoad) {
  Evidence e = on_a_busy_machine(0.08);
  e.set("cpu.asm.parallel_regions", 0, Level::kStatic, "objdump");
  const Diagnosis diagnosis = diagnose(e);
  const Finding* idle = finding(diagnosis, "one-thread-busy");
  ASSERT_NE(idle, nullptr);
  EXPECT_NE(idle->severity, Severity::kCritical) << "a clock on a busy machine is no certainty";
  EXPECT_NE(idle->cause.find("other processes left"), std::string::npos) << idle->cause;
}

TEST(Load, ATimeThatTheLoadExplainsIsNoLatency) {
  const double floor = roofline(cpu_matmul(1)).compute_floor_us;
  Evidence e = cpu_matmul(floor / 0.2);  // a fifth of the ceiling
  EXPECT_EQ(roofline(e).bound, Bound::kLatency);
  e.set("load.foreign_cpu", 0.66, Level::kTiming, "load");
  EXPECT_EQ(roofline(e).bound, Bound::kCompute);
  EXPECT_EQ(finding(diagnose(e), "far-from-both-ceilings"), nullptr);
}

TEST(Ceilings, WhatOtherWorkDisturbedIsNoReasonToStop) {
  const double floor = roofline(cpu_matmul(1)).compute_floor_us;
  Evidence e = cpu_matmul(floor / 0.95);
  ASSERT_NE(finding(diagnose(e), "at-compute-ceiling"), nullptr);
  e.set("ceiling.disturbed", 1, Level::kTiming, "ceilings");
  EXPECT_EQ(finding(diagnose(e), "at-compute-ceiling"), nullptr);
}

TEST(Ceilings, FarAboveThemIsNoShare) {
  Evidence e = cpu_matmul(roofline(cpu_matmul(1)).memory_floor_us / 698.72);
  const Diagnosis diagnosis = diagnose(e);
  EXPECT_EQ(diagnosis.summary.find("69872"), std::string::npos) << diagnosis.summary;
  EXPECT_NE(diagnosis.summary.find(">100 %"), std::string::npos) << diagnosis.summary;
  EXPECT_NE(diagnosis.summary.find("doctor --remeasure"), std::string::npos) << diagnosis.summary;
  for (const Finding& each : diagnosis.findings) {
    EXPECT_EQ(each.cause.find("69872"), std::string::npos) << each.cause;
  }
}

}  // namespace
}  // namespace kernelpro
