// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {
constexpr double kLeastShare = 0.03;
// Start cost of each graph node.
constexpr double kStartUs = 1.5;

struct Cost {
  double copies = 0, copy_bytes = 0, copies_us = 0;
  double sets = 0, set_bytes = 0, sets_us = 0;
  double time_us = 0;  // of the whole call
  std::vector<std::string> metrics;
  double all_us() const { return copies_us + sets_us; }
};

// A copy reads and writes, a memset writes. Theoretical: graph nodes are not timed individually.
std::optional<Cost> of_plan(const Facts& facts) {
  const auto time = facts.maybe("timing.median");
  const auto bandwidth = facts.maybe("ceiling.copy_bandwidth");
  if (!time || !bandwidth || *bandwidth <= 0) return std::nullopt;
  Cost cost;
  cost.time_us = *time;
  cost.copies = facts.maybe("plan.memcpys").value_or(0);
  cost.copy_bytes = facts.maybe("plan.memcpy_bytes").value_or(0);
  cost.sets = facts.maybe("plan.memsets").value_or(0);
  cost.set_bytes = facts.maybe("plan.memset_bytes").value_or(0);
  cost.copies_us = 2e6 * cost.copy_bytes / *bandwidth + kStartUs * cost.copies;
  cost.sets_us = 1e6 * cost.set_bytes / *bandwidth + kStartUs * cost.sets;
  cost.metrics = {"plan.memcpys", "plan.memcpy_bytes", "plan.memsets", "plan.memset_bytes",
                  "timing.median"};
  return cost;
}

std::optional<Cost> of_trace(const Facts& facts) {
  const auto span = facts.maybe("trace.span");
  if (!span || *span <= 0) return std::nullopt;
  Cost cost;
  cost.time_us = *span;
  cost.copies = facts.maybe("trace.copies_device").value_or(0);
  cost.copy_bytes = facts.maybe("trace.copies_device_bytes").value_or(0);
  cost.copies_us = facts.maybe("trace.copies_device_us").value_or(0);
  cost.sets = facts.maybe("trace.memsets").value_or(0);
  cost.set_bytes = facts.maybe("trace.memsets_bytes").value_or(0);
  cost.sets_us = facts.maybe("trace.memsets_us").value_or(0);
  cost.metrics = {"trace.copies_device", "trace.copies_device_us", "trace.memsets",
                  "trace.memsets_us", "trace.span"};
  return cost;
}

std::string counted(double count, const char* one, const char* many, double bytes) {
  return number(count) + " " + (count == 1 ? one : many) + " (" + human_bytes(bytes) + ")";
}

std::optional<Finding> device_copies(const Facts& facts) {
  const auto cost = facts.maybe("plan.memcpys") ? of_plan(facts) : of_trace(facts);
  if (!cost || cost->all_us() <= 0 || cost->time_us <= 0) return std::nullopt;
  const double share = std::min(0.95, cost->all_us() / cost->time_us);
  if (share < kLeastShare) return std::nullopt;

  Finding finding;
  finding.severity = share >= 0.3 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = cost->metrics;
  std::string what;
  if (cost->copies > 0) {
    what = counted(cost->copies, "copy", "copies", cost->copy_bytes) + " within the device";
  }
  if (cost->sets > 0) {
    what +=
        (what.empty() ? "" : " and ") + counted(cost->sets, "memset", "memsets", cost->set_bytes);
  }
  finding.cause = what + (cost->copies + cost->sets == 1 ? " takes" : " take") + " about " +
                  percent(share) + " of the call's " + human_us(cost->time_us) +
                  " without computing anything.";
  const Prescription copies = {
      "passes",
      "Remove the copies: read the source in place (a view, another pointer, strides as kernel "
      "arguments), and let the producing kernel write to the final location.",
      "the copy changes the layout once, and many later reads benefit from it"};
  const Prescription sets = {
      "passes",
      "Remove the memsets: let the first writer store instead of add, or clear the buffer in the "
      "preceding kernel; let the last block of a reduction reset its counters.",
      "atomics from all blocks add into the buffer and no earlier kernel could clear it"};
  if (cost->copies > 0 && cost->copies_us >= cost->sets_us) finding.prescriptions.push_back(copies);
  if (cost->sets > 0) finding.prescriptions.push_back(sets);
  if (cost->copies > 0 && cost->copies_us < cost->sets_us) finding.prescriptions.push_back(copies);
  finding.likely_speedup = speedup_without(share);
  // Copies seldom reach full bandwidth, and the kernels after them find cold caches.
  finding.upper_speedup = speedup_without(std::min(0.95, 1.6 * share));
  finding.sites = site_of(facts, {SiteKind::kCopy});
  return finding;
}

constexpr const char* kDeviceCopiesOneOf[] = {"plan.memcpys", "trace.span"};

}  // namespace

extern const Tool kDeviceCopies;
const Tool kDeviceCopies{.name = "device-copies",
                         .summary = "Device-to-device copies and memsets are on the call's path.",
                         .target = ToolTarget::kCuda,
                         .analyse = device_copies,
                         .scope = Scope::kCall,
                         .one_of = kDeviceCopiesOneOf};

}  // namespace kernelpro
