// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/target.h"

#include "core/evidence/metrics.h"

namespace kernelpro {

namespace {

constexpr const char* kText = "target";

// The only target whose candidates have metrics of the family; nullopt: both have them.
std::optional<TargetKind> target_of(Family family) {
  switch (family) {
    case Family::kProcessor:
    case Family::kHostCode:
      return TargetKind::kCpu;
    case Family::kPlan:
    case Family::kLaunch:
    case Family::kResources:
    case Family::kSass:
    case Family::kCounters:
    case Family::kSamples:
    case Family::kTrace:
      return TargetKind::kCuda;
    case Family::kTask:
    case Family::kCeilings:
    case Family::kTiming:
    case Family::kLoad:
      break;
  }
  return std::nullopt;
}

std::optional<TargetKind> target_of_items(const Evidence& evidence) {
  for (const auto& [name, observation] : evidence.items()) {
    if (const auto target = target_of(find_metric(name)->family)) return target;
  }
  return std::nullopt;
}

}  // namespace

std::optional<TargetKind> evidence_target(const Evidence& evidence) {
  if (const auto text = evidence.texts.find(kText); text != evidence.texts.end()) {
    if (const auto named = target_from_name(text->second)) return named;
  }
  if (const auto own = target_of_items(evidence)) return own;
  for (const KernelEvidence& kernel : evidence.kernels) {
    if (const auto target = target_of_items(kernel.facts)) return target;
  }
  return std::nullopt;
}

void set_evidence_target(TargetKind target, Evidence* evidence) {
  evidence->texts[kText] = target_name(target);
}

}  // namespace kernelpro
