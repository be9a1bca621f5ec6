// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <vector>

#include "base/text.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

constexpr double kBusy = 0.75;       // of what good kernels reach of a resource
constexpr double kFar = 0.5;         // of the ceiling
constexpr double kLeastPart = 0.02;  // of the call's time

using Prescriptions = std::vector<Prescription>;

Prescriptions memory_advice(bool gpu) {
  Prescriptions advice = {
      {"passes",
       "Read each input only once: fuse the passes over it (a running maximum, sum or mean instead "
       "of "
       "a pass of its own), or keep it in registers or cache between them.",
       "it is too large to keep and a one-pass form loses too much precision"},
      {"unroll",
       "Keep more independent loads in flight: handle several elements per iteration and load all "
       "of them before the first use.",
       "registers would spill"},
      {"vectorize",
       gpu ? "Load and store 128 bits at a time (float4)."
           : "Make the innermost loop contiguous and vectorised.",
       "addresses are not aligned or rows are not a multiple of the vector"}};
  if (gpu) {
    advice.push_back({"block-size", "Change the threads per block so that more warps are resident.",
                      "the block already covers exactly one row"});
    advice.push_back(
        {"grid-size", "Give each block more or less work so that all SMs stay busy.", ""});
  } else {
    advice.push_back({"threads", "Distribute the work over all hardware threads.",
                      "the call takes less time than starting the threads"});
  }
  return advice;
}

Prescriptions compute_advice(bool gpu) {
  Prescriptions advice = {
      {"tile-size",
       "Compute a larger tile of the output per thread or loop nest, so that each loaded operand "
       "is used for many multiply-adds.",
       "the tile no longer fits in registers or cache"},
      {"unroll",
       "Keep several independent accumulators: a dependent chain of multiply-adds waits for the "
       "latency of each.",
       "registers would spill, or the order of the sum must stay fixed"}};
  if (gpu) {
    advice.push_back({"shared-memory",
                      "Stage tiles of the operands in shared memory and reuse them block-wide.",
                      "each operand is used only once"});
    advice.push_back({"pipeline", "Copy the next tile asynchronously while this one is used.",
                      "shared memory would limit the resident blocks"});
  } else {
    advice.push_back({"packing",
                      "Copy the operands' tiles to contiguous buffers first, so that the innermost "
                      "loop streams through cache and TLB.",
                      "the operands already fit in the first-level cache"});
    advice.push_back(
        {"vectorize", "Make the innermost loop contiguous and vectorised.", "it already is"});
  }
  return advice;
}

// What would have to hold for a part of a call's time to go.
struct Remedy {
  PartKind kind;
  const char* condition;
};
constexpr Remedy kRemedies[] = {
    {PartKind::kSingleThread, "the work is spread over all threads"},
    {PartKind::kContention, "other processes leave the machine alone"},
    {PartKind::kTraffic, "each byte is read once: loops in blocks that fit a cache"},
    {PartKind::kIssue, "fewer or wider instructions do the work"},
    {PartKind::kLaunch, "the call launches less"},
    {PartKind::kGaps, "kernels follow each other without gaps, or are fused"},
    {PartKind::kHost, "the host does not wait within the call"},
    {PartKind::kWaves, "the blocks fill all SMs to the end"},
    {PartKind::kRamp, "the kernel starts and drains faster: less set-up per block"},
};
constexpr const char* kOfUnknown =
    "loads come earlier and from contiguous addresses, and chains of dependent operations are "
    "split";

// The three largest parts beyond the floor, and what would have to hold for each to go; "" without
// an account.
std::string costliest_parts(const Account* account) {
  if (account == nullptr) return "";
  std::vector<AccountPart> parts;
  for (const AccountPart& part : account->parts) {
    if (part.kind != PartKind::kFloor && part.kind != PartKind::kKernels) parts.push_back(part);
  }
  for (const KernelAccount& kernel : account->kernels) {
    for (const AccountPart& part : kernel.parts) {
      if (part.kind != PartKind::kFloor) parts.push_back(part);
    }
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const AccountPart& a, const AccountPart& b) { return a.us > b.us; });
  std::string text;
  for (std::size_t i = 0; i < std::min(parts.size(), kCostliest); ++i) {
    if (parts[i].us < kLeastPart * account->us) break;
    const auto* row = std::find_if(std::begin(kRemedies), std::end(kRemedies),
                                   [&](const Remedy& each) { return each.kind == parts[i].kind; });
    text += (text.empty() ? "" : "; ") + percent(parts[i].us / account->us) + " " +
            part_words(parts[i]) + ", which goes if " +
            (row == std::end(kRemedies) ? kOfUnknown : row->condition);
  }
  return text.empty() ? "" : " Beyond the ceiling's time: " + text + ".";
}

std::optional<Finding> far_from_both_ceilings(const Facts& facts) {
  const Roofline& roof = facts.roofline();
  if (!roof.known() || roof.quiet_fraction >= kAtCeiling) return std::nullopt;
  // Other processes may explain what is left; of a GPU's kernels costliest-places knows more.
  const bool kernels_known = facts.maybe("plan.kernels") || facts.maybe("launch__grid_size");
  if (roof.quiet_fraction >= kFar && (roof.foreign > 0 || kernels_known)) return std::nullopt;
  // A resource is busy rather than waiting: other tools identify the excess work.
  if (facts.model().counted() && facts.model().demand() >= kBusy) return std::nullopt;

  const double memory = roof.memory_floor_us / roof.time_us;
  const double compute = roof.compute_floor_us / roof.time_us;
  const bool gpu = facts.target() == TargetKind::kCuda;
  Finding finding;
  const bool far = roof.quiet_fraction < kFar;
  finding.severity = roof.quiet_fraction < 0.1 ? Severity::kCritical
                     : far                     ? Severity::kWarning
                                               : Severity::kInfo;
  finding.metrics = {"timing.median", "task.compulsory_bytes", "task.flops"};
  finding.cause = "The call takes " + human_us(roof.time_us) + " where " + human_us(roof.floor_us) +
                  " is possible: it reaches " + percent(memory) + " of the measured bandwidth" +
                  (compute > 0 ? " and " + percent(compute) + " of the measured arithmetic rate"
                               : std::string()) +
                  (far ? ", so the time goes into waiting or repeated work" : "") +
                  (roof.foreign > 0 ? "; other processes, which used " + percent(roof.foreign) +
                                          " of this machine, explain at most part of it."
                                    : std::string("."));
  finding.cause += costliest_parts(facts.call_account());
  if (roof.foreign > 0) finding.metrics.emplace_back("load.foreign_cpu");
  finding.prescriptions = roof.theory == Bound::kCompute ? compute_advice(gpu) : memory_advice(gpu);
  if (roof.theory == Bound::kMixed) {
    for (Prescription& more : compute_advice(gpu)) {
      if (more.tag == "tile-size") finding.prescriptions.push_back(std::move(more));
    }
  }
  finding.upper_speedup = roof.most();
  finding.likely_speedup = middle(1, roof.headroom());
  return finding;
}

constexpr const char* kFarFromBothCeilingsNeeds[] = {"timing.median", "ceiling.copy_bandwidth"};

}  // namespace

extern const Tool kFarFromBothCeilings;
const Tool kFarFromBothCeilings{
    .name = "far-from-both-ceilings",
    .summary = "The call is below its ceiling: where the rest of the time goes.",
    .target = ToolTarget::kAny,
    .needs = kFarFromBothCeilingsNeeds,
    .analyse = far_from_both_ceilings,
    .catch_all = true,
    .scope = Scope::kCall};

}  // namespace kernelpro
