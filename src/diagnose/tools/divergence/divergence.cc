// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kThreads = 24;  // of 32, per warp instruction (Nsight Compute's ThreadDivergence)
constexpr double kLeastGain = 1.05;
// The fraction of missing lanes recovered, in logarithms: pairs measured on an H200.
constexpr double kMended = 0.85;

// Lanes with data per warp load, if the hot loads are coalesced words whose sectors carry little
// but the inputs; nullopt: unknown.
std::optional<double> fed_lanes(const Facts& facts) {
  const double loads = facts.maybe("sass.hot.global_loads").value_or(0);
  const double all = loads + facts.maybe("sass.hot.global_stores").value_or(0);
  const auto unit = facts.maybe("sass.hot.global_unit_stride");
  const auto words = facts.maybe("sass.hot.global_loads_32");
  const auto counted = global_loads(facts);
  const auto least = compulsory(facts);
  if (loads <= 0 || !unit || *unit < all || !words || *words < loads || !counted || !least) {
    return std::nullopt;
  }
  const double bytes = counted->sectors * kSectorBytes;
  if (counted->requests <= 0 || !least->split || bytes > 2 * least->reads) return std::nullopt;
  return std::min(bytes, least->reads) / counted->requests / 4;
}

std::optional<Finding> divergence(const Facts& facts) {
  const double warp = facts("smsp__inst_executed.sum");
  if (warp <= 0) return std::nullopt;
  // One elected lane that feeds the matrix units or starts copies is not divergence.
  if (facts.maybe("sass.hgmma").value_or(0) > 0 ||
      facts.maybe("sass.bulk_copies").value_or(0) > 0) {
    return std::nullopt;
  }
  const double active = facts("smsp__thread_inst_executed.sum") / warp;
  const double useful =
      facts.maybe("smsp__thread_inst_executed_pred_on.sum").value_or(active * warp) / warp;
  // Partly empty warps are left to block-shape.
  const double block = facts.maybe("launch__block_size").value_or(32);
  const double full = block / std::ceil(block / 32);
  const double fed = std::min(fed_lanes(facts).value_or(full), full);
  const double least = std::min({active, useful, fed});
  if (least >= kThreads * full / 32) return std::nullopt;
  const double left = std::clamp(least / full, 1.0 / 32, 1.0);
  const bool unfed = fed < kThreads * full / 32;

  Effect effect, most;
  for (const Resource r : {Resource::kIssue, Resource::kFma, Resource::kAlu, Resource::kXu,
                           Resource::kFp64, Resource::kLsu}) {
    effect.scale(r, std::pow(left, kMended));
    most.scale(r, left);
  }
  // Lanes that look up entries of their own wait for each of them, however they are grouped.
  const double kept = scattered(facts) ? memory_wait(facts, 0) : 0;
  effect.waiting = kept + (1 - kept) * std::pow(left, kMended);
  most.waiting = kept + (1 - kept) * left;
  if (unfed) {
    // Each access carries less than it could, so there are more of them.
    effect.scale(Resource::kL1, std::pow(left, kMended));
    most.scale(Resource::kL1, left);
  }
  const KernelModel& model = facts.model();
  Finding finding;
  finding.likely_speedup = model.gain(effect).likely;
  finding.upper_speedup = std::max(finding.likely_speedup, model.gain(most).upper);
  // If each lane chases its own pointers, lanes that diverge alike are known only afterwards: often
  // that cannot be fixed at all.
  const bool walk = chained(facts);
  if (walk) finding.likely_speedup = middle(1, finding.likely_speedup);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  const bool branches = active < kThreads * full / 32 && !unfed;
  finding.severity = left < 0.4 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"smsp__thread_inst_executed.sum", "smsp__inst_executed.sum"};
  finding.sites = joined({line_of(facts, {"sass.hot.divergent_regions", "sass.hot.predicated"}),
                          line_of(facts, {"slice.branch"})});
  if (branches) {
    finding.cause = "Lanes of a warp take different paths: on average " + number(active, 3) +
                    " of 32 are active per instruction.";
    finding.prescriptions = {
        {"divergence",
         "Make the lanes of a warp agree: sort or bin the work by branch or trip count, or give a "
         "whole warp one item.",
         "sorting costs more than the branch"},
        {"divergence", "Compute both sides of short branches and select.", "the bodies are long"},
        {"divergence",
         "Replace single-lane loops (`if (lane == 0)`) with shuffles in which all lanes take part.",
         ""}};
  } else if (unfed) {
    finding.cause = "A warp's load fetches " + number(fed, 2) +
                    " values on average, for 32 lanes: the other lanes have nothing to do.";
    finding.metrics.insert(finding.metrics.end(),
                           {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
                            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"});
    finding.prescriptions = {
        {"divergence",
         "Give a warp several short rows at a time: a group of 4, 8 or 16 lanes for each (shuffles "
         "take a width), or one row for each lane through shared memory.",
         ""},
        {"block-size", "Shape the block like the data, so that few lanes fall outside.", ""}};
  } else {
    finding.cause = "Predicates switch lanes off: " + number(active, 3) +
                    " of 32 lanes are active, but only " + number(useful, 3) + " do useful work.";
    finding.metrics.emplace_back("smsp__thread_inst_executed_pred_on.sum");
    finding.prescriptions = {
        {"divergence",
         "Skip work that is masked completely: bound loops by the row's or tile's length, and "
         "leave out fully masked tiles.",
         ""},
        {"divergence",
         "Check bounds only in the last tile, and use a version without checks for the rest.", ""},
        {"block-size", "Shape the block like the data, so that few lanes fall outside.", ""}};
  }
  return finding;
}

constexpr const char* kDivergenceNeeds[] = {"smsp__inst_executed.sum",
                                            "smsp__thread_inst_executed.sum"};

}  // namespace

extern const Tool kDivergence;
const Tool kDivergence{.name = "divergence",
                       .summary = "Not all lanes of a warp do useful work.",
                       .target = ToolTarget::kCuda,
                       .bounds = kNotMemoryBound,
                       .needs = kDivergenceNeeds,
                       .analyse = divergence};

}  // namespace kernelpro
