// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {
constexpr double kLeastLoss = 0.1;
constexpr double kLeastGain = 1.03;

std::optional<Finding> block_shape(const Facts& facts) {
  const double block = facts("launch__block_size");
  if (block <= 0) return std::nullopt;
  const double warps = std::ceil(block / 32);
  const double left = block / (32 * warps);
  if (1 - left < kLeastLoss) return std::nullopt;
  const KernelModel& model = facts.model();
  Effect effect;
  for (const Resource r : {Resource::kIssue, Resource::kFma, Resource::kAlu, Resource::kXu,
                           Resource::kFp64, Resource::kLsu}) {
    effect.scale(r, left);
  }
  // An access to shared memory takes a pass, however many lanes it has.
  effect.scale(Resource::kL1, 1 - (1 - left) * shared_part(facts));
  effect.waiting = left;
  Finding finding;
  set_gain(model.gain(effect), &finding);
  finding.upper_speedup =
      std::max(finding.likely_speedup, std::min(finding.upper_speedup, 1 / left));
  finding.likely_speedup = std::min(finding.likely_speedup, finding.upper_speedup);
  if (!model.counted()) finding.likely_speedup = middle(1, finding.likely_speedup);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = left <= 0.5 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"launch__block_size"};
  finding.cause = "Blocks have " + number(block) + " threads in " + number(warps) +
                  " warps of 32: " + percent(1 - left) + " of the lanes have no thread.";
  finding.sites = joined({site_of(facts, {SiteKind::kLaunch}), site_of(facts, {SiteKind::kBlock})});
  finding.prescriptions = {
      {"block-size", "Use a multiple of 32 threads per block; start with 128 or 256.", ""}};
  return finding;
}

constexpr const char* kBlockShapeNeeds[] = {"launch__block_size"};

}  // namespace

extern const Tool kBlockShape;
const Tool kBlockShape{.name = "block-shape",
                       .summary = "The block size leaves lanes of its warps empty.",
                       .target = ToolTarget::kCuda,
                       .needs = kBlockShapeNeeds,
                       .analyse = block_shape};

}  // namespace kernelpro
