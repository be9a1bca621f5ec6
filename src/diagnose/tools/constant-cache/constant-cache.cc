// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {
constexpr double kShare = 0.15;
constexpr double kLeastGain = 1.05;
constexpr double kRemoved = 0.95;  // of the waits for constant loads
constexpr double kMost = 1.2;      // of them: the loads also keep other warps from issuing

bool is_constant_load(std::string_view instruction) {
  const std::size_t at = instruction.starts_with("@") ? instruction.find(' ') + 1 : 0;
  return instruction.substr(at).starts_with("LDC");
}

std::optional<Finding> constant_cache(const Facts& facts) {
  const double indexed = facts("sass.hot.constant_loads_indexed");
  const double instructions = facts("sass.hot.instructions");
  if (indexed <= 0 || instructions <= 0) return std::nullopt;
  const KernelModel& model = facts.model();
  Finding finding;
  Effect effect, none;
  const Places* places = facts.places();
  if (places != nullptr && places->basis == Places::Basis::kSampled) {
    // Samples show what waits for these loads.
    const double share = exposed_by(facts, is_constant_load);
    if (share < kShare) return std::nullopt;
    effect.waiting = 1 - kRemoved * share;
    none.waiting = 1 - share;
    finding.likely_speedup = speedup_without(kRemoved * share);
    finding.upper_speedup = speedup_without(std::min(0.98, kMost * share));
  } else if (model.stall(Stall::kShortScoreboard)) {
    // Indexed constant loads return through the same queue as shared memory.
    const bool shared = facts.maybe("sass.hot.shared_loads").value_or(0) > indexed;
    const double share =
        stalls(facts, {Stall::kImcMiss}, 0) +
        (shared ? 0 : stalls(facts, {Stall::kShortScoreboard, Stall::kMioThrottle}, 0));
    if (share < kShare) return std::nullopt;
    effect.waiting = 1 - 0.8 * share;
    none.waiting = std::max(0.03, 1 - share);
  } else {
    if (indexed / instructions < 0.05 || facts.fraction_of_light() >= 0.5) {
      return std::nullopt;
    }
    effect.waiting = 0.35;
    none.waiting = 0.2;
  }
  if (finding.upper_speedup <= 1) {
    finding.likely_speedup = model.gain(effect).likely;
    finding.upper_speedup = std::max(finding.likely_speedup, model.gain(none).upper);
  }
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = Severity::kWarning;
  finding.metrics = {"sass.hot.constant_loads_indexed", "sass.hot.instructions"};
  finding.cause = number(indexed) +
                  " loads of the hot loop read constant memory at a different index per lane: "
                  "distinct addresses are served one after another.";
  finding.sites =
      joined({line_of(facts, {"sass.hot.constant_loads_indexed"}),
              array_of(facts, SiteKind::kConstant, {"sass.hot.constant_loads_indexed"}),
              aliases_of(facts, SiteKind::kConstant), site_of(facts, {SiteKind::kConstant})});
  finding.prescriptions = {
      {"shared-memory",
       "Put the table into shared memory (loaded once per block), or read it from global memory "
       "with `__ldg`.",
       "all lanes of a warp read the same entry"},
      {"algorithm", "Keep small tables in registers, or compute the entry.", ""}};
  return finding;
}

constexpr const char* kConstantCacheNeeds[] = {"sass.hot.constant_loads_indexed",
                                               "sass.hot.instructions"};

}  // namespace

extern const Tool kConstantCache;
const Tool kConstantCache{.name = "constant-cache",
                          .summary = "Lanes read constant memory at different addresses.",
                          .target = ToolTarget::kCuda,
                          .bounds = kNotMemoryBound,
                          .needs = kConstantCacheNeeds,
                          .analyse = constant_cache};

}  // namespace kernelpro
