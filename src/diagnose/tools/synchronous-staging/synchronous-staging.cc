// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kLeastWaits = 0.3;
constexpr double kLeastGain = 1.08;
// Copying ahead hides the load latency, but not the barrier or the copy's own instructions.
constexpr double kHidden = 0.75;

std::optional<Finding> synchronous_staging(const Facts& facts) {
  const double staged = facts("sass.hot.staged_copies");
  const double loads = facts("sass.hot.global_loads");
  if (staged <= 0 || staged < 0.5 * loads || facts("sass.hot.async_copies") > 0) {
    return std::nullopt;
  }
  if (facts.maybe("sass.hot.shared_loads").value_or(0) <= 0) return std::nullopt;
  // Without a loop there is no tile to copy ahead.
  if (facts.maybe("sass.hot.loops").value_or(1) < 1) return std::nullopt;
  const KernelModel& model = facts.model();
  const Roofline& roof = facts.roofline();
  if (!model.counted() && (!roof.known() || roof.fraction >= 0.5)) return std::nullopt;
  // Warps wait for the tile, and the block's other warps at the barrier after it.
  const double loading = stalls(facts, {Stall::kLongScoreboard}, 0.35);
  const double barrier = stalls(facts, {Stall::kBarrier}, 0);
  const double waits = std::min(1.0, loading + 0.7 * barrier);
  if (loading < 0.15 || waits < kLeastWaits) return std::nullopt;
  // A load issued an iteration ahead does not stall: nothing to gain.
  if (facts.maybe("sass.hot.waits_global").value_or(1) <= 0) return std::nullopt;

  Effect effect;
  effect.waiting = 1 - kHidden * waits;
  // LDG and STS become one instruction that bypasses registers.
  const double instructions = std::max(1.0, facts.maybe("sass.hot.instructions").value_or(1));
  effect.scale(Resource::kIssue, 1 - std::min(0.3, staged / instructions));
  Finding finding;
  set_gain(facts, effect, &finding);
  if (!model.counted()) finding.likely_speedup = middle(1, finding.likely_speedup);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = Severity::kWarning;
  finding.cause = number(staged) +
                  " loads of the hot loop go through registers into shared memory, and the "
                  "block waits for them" +
                  (model.counted() ? " (" + percent(loading) + " of the stalls are on memory, " +
                                         percent(barrier) + " at barriers)"
                                   : std::string()) +
                  ": copying and computing do not overlap.";
  finding.metrics = {"sass.hot.staged_copies", "sass.hot.async_copies"};
  if (model.counted()) {
    finding.metrics.emplace_back(
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio");
  }
  finding.sites = joined({line_of(facts, {"sass.hot.staged_copies", "sass.shared_stores"}),
                          line_of(facts, {"sass.hot.barriers"})});
  const bool bulk = facts.has(GpuFeature::kTma);
  finding.prescriptions = {
      {"pipeline",
       "Copy ahead, asynchronously: `cp.async` (`__pipeline_memcpy_async`, 16 B each) into 2 to 4 "
       "buffers, and compute on one tile while the next ones arrive.",
       "elements are converted during the copy, or shared memory would limit the resident blocks"},
      {"pipeline",
       "Or load the next tile into registers before computing on the current one, and store it "
       "after the barrier (double buffering).",
       "registers would spill"}};
  if (bulk) {
    finding.prescriptions.insert(
        finding.prescriptions.begin() + 1,
        {"pipeline",
         "With TMA, let one thread start bulk tensor copies into a ring of buffers guarded by "
         "mbarriers.",
         "the tile is not a box of a tensor"});
  }
  return finding;
}

constexpr const char* kSynchronousStagingNeeds[] = {
    "sass.hot.staged_copies", "sass.hot.global_loads", "sass.hot.async_copies"};

}  // namespace

extern const Tool kSynchronousStaging;
const Tool kSynchronousStaging{.name = "synchronous-staging",
                               .summary = "The block waits for tiles that could be copied ahead.",
                               .target = ToolTarget::kCuda,
                               .needs = kSynchronousStagingNeeds,
                               .analyse = synchronous_staging};

}  // namespace kernelpro
