// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>

#include "base/text.h"
#include "diagnose/tools/causes.h"

namespace kernelpro {

namespace {

constexpr double kShare = 0.05;
constexpr double kGoes = 0.75;  // of that time, where one lane copies what 32 did
constexpr double kSlack = 1.2;

// The branch that closes such a loop.
bool takes_lanes_in_turn(std::string_view instruction) {
  return instruction.find("BRA.U.ANY") != std::string_view::npos;
}

// The role whose lines a place belongs to, if it sets the pace; else null.
const WarpRole* pace_at(const Places& places, const Place& place) {
  const WarpRole* pace = pace_setter(places.roles);
  if (pace == nullptr) return nullptr;
  const SourceLine& line = place.at.callers.empty() ? place.at.line : place.at.callers.back();
  const bool within =
      line.file == pace->file && line.line >= pace->first && line.line <= pace->last;
  return within ? pace : nullptr;
}

std::optional<Finding> lanes_in_turn(const Facts& facts) {
  const Places* places = facts.places();
  if (places == nullptr || places->basis != Places::Basis::kSampled) return std::nullopt;
  double share = 0;
  bool of_pace = false;
  for (const Place& place : places->places) {
    if (!takes_lanes_in_turn(place.at.instruction)) continue;
    const WarpRole* pace = pace_at(*places, place);
    of_pace = of_pace || pace != nullptr;
    share += place.share / (pace != nullptr ? std::max(0.05, pace->share) : 1);
  }
  share = std::min(share, 0.9);
  if (share < kShare) return std::nullopt;
  Finding finding;
  finding.likely_speedup = speedup_without(kGoes * share);
  finding.upper_speedup = kSlack * speedup_without(share);
  finding.severity = Severity::kWarning;
  finding.metrics = {"samples.taken"};
  finding.cause =
      "The lanes of a warp are taken one after another, in a loop that the compiler makes where "
      "each lane has its own bulk copy (or another operand that must be the warp's): " +
      percent(share) + " of the time" + (of_pace ? " of the warps that set the pace." : ".");
  finding.prescriptions = {
      {"layout",
       "Let one elected lane start one larger copy: let pieces lie side by side in shared and in "
       "device memory, as by another assignment of the output to warps.",
       "the pieces lie apart in device memory and cannot be assigned otherwise"},
      {"work-distribution",
       "Hand the copies to a warp of their own, which waits for them; the warps that compute go "
       "on.",
       "there is no room for another buffer"},
      {"vectorize",
       "Store straight from registers, 16 bytes a lane, so that a warp's store fills whole "
       "sectors.",
       "the layout of the registers does not allow it"}};
  finding.sites = waits_at(facts, takes_lanes_in_turn);
  return finding;
}

constexpr const char* kLanesInTurnNeeds[] = {"samples.taken"};

}  // namespace

extern const Tool kLanesInTurn;
const Tool kLanesInTurn{.name = "lanes-in-turn",
                        .summary = "Each lane starts its own bulk copy, one after another.",
                        .target = ToolTarget::kCuda,
                        .needs = kLanesInTurnNeeds,
                        .analyse = lanes_in_turn};

}  // namespace kernelpro
