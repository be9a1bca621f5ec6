// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {
// From the end of one kernel to the start of the next that depends on it, inside a graph.
constexpr double kManyKernels = 8;
constexpr double kMostlyStartUs = 4;  // a start and an end take some two microseconds
constexpr double kStartUs = 1.8;
constexpr double kStartPart = 0.75;
constexpr double kRepeated = 0.7;  // of the launches, of one kernel
constexpr double kDrainUs = 1.5;
// A start takes at most this fraction of a kernel's share of the call; the rest is work.
constexpr double kMostOfAKernel = 0.95;
// Of a traced program's time: less is not a bottleneck.
constexpr double kLeastShare = 0.15;
// Short kernels also cannot fill the GPU. Without counters, fusing is taken to gain this much of
// the way, in logarithms, from removing the starts to the best that one kernel could do.
constexpr double kFilled = 0.7;
constexpr double kLeastCounted = 0.5;  // of the kernels' time, to know what they leave unused
// One operator that multiplies in this many kernels is a recurrence: a step needs all results of
// the one before, inside one kernel too. Three recurrent networks, each written as few kernels,
// took 0.39 to 0.46 us for each level of the graph that they came from.
constexpr int kRecurrence = 64;
constexpr double kLevelUs = 0.4;
// Longer kernels hide the next launch: any gaps are then due to a slow host, not to many launches.
constexpr double kLongKernelUs = 50;

// Microseconds that recurrences took elsewhere, written as few kernels; 0: there are none.
double recurrent_us(const Facts& facts) {
  double all = 0, recurrent = 0;
  for (const OperatorCall& each : facts.operators()) {
    all += each.nodes;
    if (each.kind == OperatorKind::kProduct && each.nodes >= kRecurrence) recurrent += each.nodes;
  }
  const auto levels = facts.maybe("plan.levels");
  if (!levels || all <= 0) return 0;
  const double needed = std::min(*levels, facts.maybe("plan.data_levels").value_or(*levels));
  return needed * recurrent / all * kLevelUs;
}

// What the kernels leave unused, as shares of the call's time.
struct Unused {
  double ramp = 0;   // starts and ends
  double waves = 0;  // multiprocessors without a block
};
// nullopt: too few of them were counted.
std::optional<Unused> unused(const Facts& facts) {
  const Account* call = facts.call_account();
  if (call == nullptr) return std::nullopt;
  const double all_us = call->part(PartKind::kKernels);
  double counted_us = 0;
  Unused found;
  for (const KernelAccount& kernel : call->kernels) {  // the longest ones
    if (kernel.part(PartKind::kUnknown) >= kLeastCounted * kernel.us) continue;
    counted_us += kernel.us;
    found.ramp += kernel.part(PartKind::kRamp);
    found.waves += kernel.part(PartKind::kWaves);
  }
  if (counted_us <= 0 || counted_us < kLeastCounted * all_us) return std::nullopt;
  const double scale = all_us / call->us / counted_us;
  return Unused{found.ramp * scale, found.waves * scale};
}

// Within one graph the host does not matter: only fewer kernels help.
std::optional<Finding> of_plan(const Facts& facts, double kernels, double time_us) {
  if (kernels < 3 || time_us / kernels >= kShortKernelUs) return std::nullopt;
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.metrics = {"plan.kernels", "timing.median"};
  finding.cause =
      "One call launches " + number(kernels) + " kernels of " + human_us(time_us / kernels) +
      " on average, gaps included; each dependent kernel costs one to two microseconds to start.";
  finding.prescriptions = {
      {"algorithm",
       "Fuse neighboring kernels into one, so that intermediate results stay in registers or "
       "shared memory.",
       "a grid-wide dependency separates them; then overlap them with programmatic dependent "
       "launch"},
      {"passes", "Remove passes that only re-read what another kernel just had on chip.", ""}};
  // One fused kernel keeps the time not spent between kernels; a start takes at most the capped
  // share of a kernel, and the runner clamps the gain to the roofline.
  const double between_us = std::min(kDrainUs, kMostOfAKernel * time_us / kernels);
  finding.likely_speedup = time_us / (time_us - (kernels - 1) * between_us);
  finding.upper_speedup = kernels;
  const Roofline& roof = facts.roofline();
  const double most = roof.known() ? std::min(kernels, roof.headroom()) : 1;
  if (const auto lost = unused(facts)) {
    // Starts are a part of the ramps, or of the gaps between kernels.
    const double starts = std::max((kernels - 1) * between_us / time_us, lost->ramp);
    const double without = speedup_without(std::min(1.0, starts + lost->waves));
    finding.likely_speedup = roof.known() ? std::min(most, without) : without;
  } else if (most > finding.likely_speedup) {
    finding.likely_speedup *= std::pow(most / finding.likely_speedup, kFilled);
  }
  const double steps_us = recurrent_us(facts);
  if (steps_us > 0 && time_us < finding.likely_speedup * steps_us) {
    finding.likely_speedup = std::max(1.0, time_us / steps_us);
    finding.metrics.emplace_back("plan.levels");
    finding.cause +=
        " Its steps depend on each other, in one kernel too: by what others took for as many, " +
        human_us(steps_us) + " remain.";
  }
  return finding;
}

std::vector<Prescription> host_advice(bool graphs) {
  std::vector<Prescription> advice;
  if (!graphs) {
    advice.push_back({"graph",
                      "Capture the repeated launches once as a CUDA graph and replay it (PyTorch: "
                      "torch.cuda.CUDAGraph, or torch.compile with mode=\"reduce-overhead\").",
                      "shapes change from call to call, or the host must look at results between"});
  }
  advice.push_back(
      {"fusion",
       "Fuse small neighboring kernels into one (by hand or with torch.compile), and batch "
       "identical small launches over many tensors.",
       "a grid-wide dependency separates them; then overlap them with programmatic dependent "
       "launch"});
  advice.push_back({"host",
                    "Take work off the launching thread (attributes, allocations, Python between "
                    "launches), so that it runs ahead of the GPU.",
                    ""});
  return advice;
}

std::optional<Finding> of_trace(const Facts& facts, double span) {
  const double launch_us = facts.maybe("trace.gaps_launch").value_or(0);
  const double queue_us = facts.maybe("trace.gaps_queue").value_or(0);
  const double unknown_us = facts.maybe("trace.gaps_unknown").value_or(0);
  const double kernels = facts.maybe("trace.kernels").value_or(0);
  const double median_us = facts.maybe("trace.kernel_median").value_or(0);
  const double launches = kernels * std::max(1.0, facts.maybe("trace.periods").value_or(1));
  const double lost_us = launch_us + queue_us + unknown_us;
  if (launches < 3 || median_us >= kLongKernelUs || lost_us < kLeastShare * span) {
    return std::nullopt;
  }
  const bool graphs = facts.maybe("trace.kernels_graph").value_or(0) >= 0.5 * kernels;
  Finding finding;
  finding.severity = lost_us >= 0.5 * span ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"trace.kernels", "trace.kernel_median", "trace.span", "trace.gaps_launch",
                     "trace.gaps_queue"};
  finding.cause = "The GPU is idle for " + percent(lost_us / span) + " of " + human_us(span) +
                  " between " + number(kernels) + " kernels of " + human_us(median_us) +
                  " (median): ";
  finding.cause += launch_us >= queue_us
                       ? "the host does not launch them fast enough."
                       : "each dependent kernel costs one to two microseconds to start.";
  finding.prescriptions = host_advice(graphs);
  // A graph keeps the start of each kernel; one fused kernel has none left.
  const double starts_us = std::min(launch_us, kDrainUs * std::max(0.0, kernels - 1));
  finding.likely_speedup = span / (span - launch_us - unknown_us + starts_us);
  if (graphs || queue_us > launch_us) finding.likely_speedup = span / (span - 0.7 * lost_us);
  finding.likely_speedup = std::max(1.0, finding.likely_speedup);
  // Kernels this short are mostly their own start and end, which one for all steps has once.
  const double same = facts.kernels().empty()
                          ? 0
                          : facts.kernels().front().facts.get("kernel.launches").value_or(0);
  const bool mostly_starts =
      kernels >= kManyKernels && median_us <= kMostlyStartUs && same >= kRepeated * kernels;
  if (mostly_starts) {
    const double own_us = std::min(kStartPart * median_us, kStartUs) * (kernels - 1);
    const double left_us = span - std::min(0.95 * span, 0.9 * lost_us + own_us);
    finding.likely_speedup = std::max(finding.likely_speedup, span / left_us);
  }
  // Fused kernels also do less: they need not reload their own results.
  const double gaps_us = std::max(lost_us, facts.maybe("trace.gaps").value_or(lost_us));
  finding.upper_speedup =
      std::min(1 / std::max(0.02, 1 - gaps_us / span) * std::clamp(kernels, 1.0, 3.0), 50.0);
  if (mostly_starts)
    finding.upper_speedup = std::max(finding.upper_speedup, std::min(kernels, 50.0));
  return finding;
}

std::optional<Finding> launch_bound(const Facts& facts) {
  const auto kernels = facts.maybe("plan.kernels");
  const auto time_us = facts.maybe("timing.median");
  if (kernels && time_us && *kernels > 0) return of_plan(facts, *kernels, *time_us);
  const auto span = facts.maybe("trace.span");
  std::optional<Finding> finding = span && *span > 0 ? of_trace(facts, *span) : std::nullopt;
  if (finding) finding->sites = site_of(facts, {SiteKind::kLaunch});
  return finding;
}

constexpr const char* kLaunchBoundOneOf[] = {"plan.kernels", "trace.span"};

}  // namespace

extern const Tool kLaunchBound;
const Tool kLaunchBound{.name = "launch-bound",
                        .summary = "Many short kernels: the time goes into launching them.",
                        .target = ToolTarget::kCuda,
                        .analyse = launch_bound,
                        .scope = Scope::kCall,
                        .one_of = kLaunchBoundOneOf};

}  // namespace kernelpro
