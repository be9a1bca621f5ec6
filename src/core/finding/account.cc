// SPDX-License-Identifier: Apache-2.0
#include "core/finding/account.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace kernelpro {

namespace {

// In the order of the enum.
constexpr std::array<PartRow, kPartKinds> kRows{{
    {PartKind::kKernels, "kernels", "kernels"},
    {PartKind::kCopies, "copies", "copies and memsets"},
    {PartKind::kLaunch, "launch", "launch latency"},
    {PartKind::kGaps, "gaps", "gaps between kernels"},
    {PartKind::kHost, "host", "waiting for the host"},
    {PartKind::kFloor, "floor", "floor: the task's own work at the ceiling"},
    {PartKind::kSurplus, "surplus", "products beyond the fewest that the contract needs"},
    {PartKind::kTraffic, "traffic", "excess memory traffic"},
    {PartKind::kRamp, "ramp", "ramp: start, prologue and drain"},
    {PartKind::kWaves, "waves", "waves and tail: SMs without a block"},
    {PartKind::kIssue, "issue", "issuing instructions"},
    {PartKind::kWait, "wait", "waits"},
    {PartKind::kSingleThread, "single-thread", "idle threads beside a busy one"},
    {PartKind::kContention, "contention", "other processes"},
    {PartKind::kUnknown, "unknown", "unknown"},
}};

double sum_of(const std::vector<AccountPart>& parts, PartKind kind) {
  double sum = 0;
  for (const AccountPart& part : parts) {
    if (part.kind == kind) sum += part.us;
  }
  return sum;
}

}  // namespace

const PartRow& part_row(PartKind kind) {
  const PartRow& row = kRows[static_cast<std::size_t>(kind)];
  KP_ASSERT(row.kind == kind);
  return row;
}

double KernelAccount::part(PartKind kind) const { return sum_of(parts, kind); }

double KernelAccount::wait(Stall stall) const {
  double sum = 0;
  for (const AccountPart& part : parts) {
    if (part.kind == PartKind::kWait && part.stall == stall) sum += part.us;
  }
  return sum;
}

double Account::part(PartKind kind) const { return sum_of(parts, kind); }

Level Account::level() const {
  Level weakest = Level::kCounters;
  bool seen = false;
  const auto look = [&](const std::vector<AccountPart>& all) {
    for (const AccountPart& part : all) {
      // Theory and the clock stand behind every account.
      if (part.kind == PartKind::kUnknown || part.level == Level::kTiming) continue;
      weakest = std::max(weakest, part.level);
      seen = true;
    }
  };
  look(parts);
  for (const KernelAccount& kernel : kernels) look(kernel.parts);
  return seen ? weakest : Level::kTiming;
}

}  // namespace kernelpro
