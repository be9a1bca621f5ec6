// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "base/text.h"
#include "diagnose/account/costly.h"
#include "diagnose/account/gains.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

// Of what a line costs, what a change usually removes.
constexpr double kUsual = 0.5;
// Of what good kernels take from a unit.
constexpr double kBusy = 0.65;
constexpr int kRegions = 3;
constexpr double kIssues = 2;     // times what the three places cost
constexpr double kRemark = 1.08;  // what the last stretch to a ceiling usually brings

// Where most of what could go is spent on issuing, no line of many costs much, but regions do.
void tell_regions(const KernelAccount& account, Finding* finding) {
  const double issue = account.part(PartKind::kIssue);
  std::string regions;
  finding->sites.clear();
  finding->places.clear();
  for (const IssueRegion& each : account.regions) {
    if (finding->sites.size() == static_cast<std::size_t>(kRegions)) break;
    regions += (regions.empty() ? "" : ", ") + percent(each.share) + " of them at " +
               region_words(each) + " (mostly " + std::string(work_row(each.kind).words) + ")";
    finding->sites.push_back({each.line, ""});
  }
  finding->cause =
      "No single flaw explains the time. " + percent(issue / account.us) +
      " of the kernel's time goes into issuing instructions beyond the floor's: " + regions + ".";
  const Remedy& remedy = remedy_of(Stall::kSelected);
  finding->prescriptions = {
      {std::string(remedy.tag), std::string(remedy.advice), std::string(remedy.not_when)}};
  finding->likely_speedup =
      gain_eliminating(account, kUsual * issue * account.regions.front().share);
  finding->upper_speedup = gain_eliminating(account, issue);
}

std::optional<Finding> costliest_places(const Facts& facts) {
  const KernelAccount* account = facts.account();
  const Roofline& roof = facts.roofline();
  if (account == nullptr || account->places.empty()) return std::nullopt;
  if (roof.known() && roof.quiet_fraction >= kAtCeiling) return std::nullopt;
  Finding finding;
  double together = 0;
  for (const CostlyPlace& place : account->places) {
    together += place.us;
    finding.share += account->us > 0 ? place.us / facts("timing.median") : 0;
    if (!place.line.file.empty()) finding.sites.push_back({place.line, ""});
    const Remedy& remedy = remedy_of(place);
    const bool said =
        std::any_of(finding.prescriptions.begin(), finding.prescriptions.end(),
                    [&](const Prescription& each) { return each.text == remedy.advice; });
    if (!said) {
      finding.prescriptions.push_back(
          {std::string(remedy.tag), std::string(remedy.advice), std::string(remedy.not_when)});
    }
  }
  const CostlyPlace& worst = account->places.front();
  finding.places = account->places;
  finding.metrics = {"timing.median"};
  finding.cause = "No single flaw explains the time. Most of it beyond the floor is spent at " +
                  place_words(worst) + ": " + place_costs(worst, "the kernel's time") + ".";
  finding.likely_speedup = gain_eliminating(*account, kUsual * worst.us);
  finding.upper_speedup = gain_eliminating(*account, together);
  if (!account->regions.empty() && account->part(PartKind::kIssue) > kIssues * together) {
    tell_regions(*account, &finding);
  }
  // Without the task, a unit near what good kernels take from it stands for a ceiling that is near;
  // without counters, too, nothing tells what of the time can go.
  const bool near = facts.model().counted() && facts.model().demand() >= kBusy;
  if (!roof.known() && (near || !facts.model().counted())) {
    finding.likely_speedup = std::min(finding.likely_speedup, kRemark);
  }
  return finding;
}

constexpr const char* kCostliestPlacesNeeds[] = {"timing.median"};

}  // namespace

extern const Tool kCostliestPlaces;
const Tool kCostliestPlaces{.name = "costliest-places",
                            .summary = "The places in the code that cost most, below the ceiling.",
                            .target = ToolTarget::kCuda,
                            .needs = kCostliestPlacesNeeds,
                            .analyse = costliest_places,
                            .catch_all = true};

}  // namespace kernelpro
