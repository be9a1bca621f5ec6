// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {
constexpr double kLeastShare = 0.4;
constexpr double kLeastBusy = 0.6;
constexpr double kMostRemovable = 0.9;
constexpr double kAside = 16;  // kernel instructions per hot-loop instruction
constexpr double kLeastGain = 1.05;

std::optional<Finding> address_overhead(const Facts& facts) {
  const double instructions = facts("sass.hot.instructions");
  const double address = facts("sass.hot.address");
  if (instructions < 8 || address <= 0) return std::nullopt;
  if (facts.maybe("sass.hot.integer_divisions").value_or(0) > 0) return std::nullopt;
  const double share = std::min(1.0, address / instructions);
  if (share < kLeastShare) return std::nullopt;
  const KernelModel& model = facts.model();
  // The multiply-adds that keep the machine busy are elsewhere: this loop only stages their data.
  if (model.demand(Resource::kFma) >= 0.4 &&
      facts.maybe("sass.hot.ffma").value_or(0) < 0.1 * instructions &&
      facts.maybe("sass.instructions").value_or(0) > kAside * instructions) {
    return std::nullopt;
  }
  if (model.counted()) {
    if (std::max(model.demand(Resource::kIssue), model.demand(Resource::kAlu)) < kLeastBusy) {
      return std::nullopt;
    }
  } else if (share < 0.5 || !facts.roofline().known() || facts.roofline().fraction >= 0.5) {
    return std::nullopt;
  }
  // The larger the share of address arithmetic, the more of it is removable.
  const double removed = std::min(kMostRemovable, share) * share;
  Effect effect, most;
  for (const Resource r : {Resource::kIssue, Resource::kAlu, Resource::kFma}) {
    effect.scale(r, 1 - removed);
    most.scale(r, 1 - kMostRemovable * share);
  }
  effect.waiting = 1 - 0.5 * removed;
  Finding finding;
  set_gain(model.gain(effect), &finding);
  finding.upper_speedup = std::max(finding.likely_speedup, model.gain(most).upper);
  if (!model.counted()) finding.likely_speedup = middle(1, finding.likely_speedup);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  const double wide = facts.maybe("sass.hot.integer_wide").value_or(0);
  finding.severity = Severity::kWarning;
  finding.metrics = {"sass.hot.address", "sass.hot.instructions"};
  finding.cause = percent(share) + " of the hot loop's " + number(instructions) +
                  " instructions only compute addresses and loop counters" +
                  (wide > 0 ? " (" + number(wide) + " of them 64-bit)" : std::string()) + ".";
  finding.sites = line_of(facts, {"sass.hot.address"});
  finding.prescriptions = {
      {"index-arithmetic",
       "Hoist loop invariants: set up one base pointer per array before the loop and advance it by "
       "a constant stride.",
       ""},
      {"index-arithmetic",
       "Make strides and shapes compile-time constants, so that offsets become immediates.",
       "they change from call to call"},
      {"unroll", "Unroll, so that one address serves several accesses at constant offsets.",
       "registers would spill"},
      {"vectorize", "Access 128 bits at a time: that needs a quarter of the addresses.",
       "addresses are not 16-byte aligned"}};
  return finding;
}

constexpr const char* kAddressOverheadNeeds[] = {"sass.hot.address", "sass.hot.instructions"};

}  // namespace

extern const Tool kAddressOverhead;
const Tool kAddressOverhead{.name = "address-overhead",
                            .summary = "Address arithmetic takes up the issue slots.",
                            .target = ToolTarget::kCuda,
                            .bounds = kNotMemoryBound,
                            .needs = kAddressOverheadNeeds,
                            .analyse = address_overhead};

}  // namespace kernelpro
