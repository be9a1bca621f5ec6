// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "diagnose/tools/causes.h"

namespace kernelpro {

namespace {

constexpr double kShare = 0.1;
constexpr double kMost = 0.9;
constexpr double kLeastPart = 0.02;  // of the samples: a role has more
constexpr double kGoes = 0.75;       // of that time: assumed
constexpr double kSlack = 1.2;
constexpr std::size_t kMostSites = 2;

// A bulk copy, or the branch that closes the loop in which lanes start theirs one after another.
bool starts_copy(std::string_view instruction) {
  return instruction.find("BRA.U.ANY") != std::string_view::npos ||
         instruction.find("UBLKCP") != std::string_view::npos ||
         instruction.find("UTMASTG") != std::string_view::npos;
}

bool lies_in(const WarpRole& role, const Place& place) {
  const SourceLine& line = place.at.callers.empty() ? place.at.line : place.at.callers.back();
  return line.file == role.file && line.line >= role.first && line.line <= role.last;
}

std::optional<Finding> queued_copies(const Facts& facts) {
  const Places* places = facts.places();
  if (places == nullptr || places->basis != Places::Basis::kSampled) return std::nullopt;
  // Where one role sets the pace, waits of the others are no lost time.
  const WarpRole* pace = pace_setter(places->roles);
  double share = 0;
  std::vector<SourceLine> lines;
  for (const Place& place : places->places) {
    if (!starts_copy(place.at.instruction)) continue;
    if (pace != nullptr && !lies_in(*pace, place)) continue;
    share += place.share / (pace != nullptr ? std::max(kLeastPart, pace->share) : 1);
    lines.push_back(place.at.line);
  }
  share = std::min(share, kMost);
  if (share < kShare) return std::nullopt;
  Finding finding;
  finding.likely_speedup = speedup_without(kGoes * share);
  finding.upper_speedup = kSlack * speedup_without(share);
  finding.severity = Severity::kWarning;
  finding.metrics = {"samples.taken"};
  finding.cause = "Warps wait to start bulk copies, " + percent(share) + " of the time" +
                  (pace != nullptr ? " of those that set the pace" : "") +
                  ". Lanes that start one each do so one after another; many small copies queue, "
                  "and those whose addresses in shared and in device memory do not agree modulo "
                  "128 bytes probably take longer.";
  finding.prescriptions = {
      {"layout",
       "Let a copy's addresses in shared and in device memory agree modulo 128 bytes, and whole "
       "sectors of 32 bytes be written.",
       "they agree already"},
      {"layout",
       "Let one elected lane start one larger copy: let pieces lie side by side in both memories, "
       "as by another assignment of the output to warps.",
       "the pieces lie apart in device memory and cannot be assigned otherwise"},
      {"work-distribution",
       "Hand the copies to a warp of their own, which waits for them; the warps that compute go "
       "on.",
       "there is no room for another buffer"}};
  finding.sites = sites_at(lines, kMostSites);
  return finding;
}

constexpr const char* kQueuedCopiesNeeds[] = {"samples.taken"};

}  // namespace

extern const Tool kQueuedCopies;
const Tool kQueuedCopies{.name = "queued-copies",
                         .summary = "Warps wait to start their bulk copies.",
                         .target = ToolTarget::kCuda,
                         .needs = kQueuedCopiesNeeds,
                         .analyse = queued_copies};

}  // namespace kernelpro
