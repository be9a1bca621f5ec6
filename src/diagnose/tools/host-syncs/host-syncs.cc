// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {
constexpr double kLeastShare = 0.04;
// A program that runs once may wait at its end.
constexpr double kMostOnce = 2;
// Of the time of late launches: a host that does not wait runs ahead and hides them.
constexpr double kHidden = 0.4;

// Copies that the host waits for.
FindingSites blocking_copies(const Facts& facts) {
  return site_of(facts, {SiteKind::kCopy}, [](const SourceSite& site) {
    const std::string& text = site.line.text;
    return contains(text, "emcpy") && !contains(text, "Async") && !contains(text, "DeviceToDevice");
  });
}

std::optional<Finding> host_syncs(const Facts& facts) {
  const double span = facts("trace.span");
  const double idle_us = facts("trace.gaps_sync");
  const double syncs = facts("trace.syncs");
  if (span <= 0 || idle_us < kLeastShare * span) return std::nullopt;
  const bool steady = facts.maybe("trace.periods").value_or(0) > 0;
  if (!steady && syncs <= kMostOnce) return std::nullopt;

  Finding finding;
  finding.severity = idle_us >= 0.3 * span ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"trace.gaps_sync", "trace.syncs", "trace.span"};
  const std::string waits = syncs < 0.5  ? "in blocking copies"
                            : syncs == 1 ? "in one synchronizing call"
                                         : "in " + number(syncs) + " synchronizing calls";
  finding.cause = "The host waits for the GPU " + waits + ", and the GPU is idle for " +
                  percent(idle_us / span) + " of " + human_us(span) +
                  " because the next launch comes only afterwards.";
  finding.prescriptions = {
      {"host",
       "Remove the waits: kernels of one stream run in order without cudaDeviceSynchronize or "
       "cudaStreamSynchronize; wait once, where the host needs the result.",
       "the host must see this result before it can decide what comes next"},
      {"host",
       "Order streams with events on the device (cudaStreamWaitEvent) instead of waiting on the "
       "host; make copies to the host asynchronous and read them one step later.",
       ""},
      {"host",
       "Where the host reads a single value to decide (.item(), .cpu(), a copied flag), decide on "
       "the device.",
       "the number of launches depends on it"}};
  const double late_us = facts.maybe("trace.gaps_launch").value_or(0);
  finding.likely_speedup = speedup_without((idle_us + kHidden * late_us) / span);
  finding.upper_speedup = speedup_without((idle_us + late_us) / span);
  if (syncs < 0.5) finding.sites = blocking_copies(facts);
  if (finding.sites.empty()) finding.sites = site_of(facts, {SiteKind::kSync});
  return finding;
}

constexpr const char* kHostSyncsNeeds[] = {"trace.span", "trace.gaps_sync", "trace.syncs"};

}  // namespace

extern const Tool kHostSyncs;
const Tool kHostSyncs{
    .name = "host-syncs",
    .summary = "The GPU is idle because the host waits for it before launching more work.",
    .target = ToolTarget::kCuda,
    .needs = kHostSyncsNeeds,
    .analyse = host_syncs,
    .scope = Scope::kCall};

}  // namespace kernelpro
