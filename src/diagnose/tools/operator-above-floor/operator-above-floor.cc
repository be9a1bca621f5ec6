// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/text.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

constexpr double kLeastShare = 0.1;  // of the call's time, above the operator's floor
constexpr double kUsual = 0.6;       // of the excess, what a kernel written for it removes
constexpr std::size_t kMostNamed = 3;

struct Excess {
  const OperatorCall* call;
  double us, floor_us;
  double above() const { return us - floor_us; }
};

std::vector<Prescription> advice(const OperatorCall& call, bool by_bytes) {
  switch (call.kind) {
    case OperatorKind::kProduct:
      if (by_bytes) {
        return {{"work-distribution",
                 "Write this product for its shape: it is small for its bytes, so split the long "
                 "dimension over blocks and stream each operand once.",
                 "the library's kernel already reaches the copy bandwidth"}};
      }
      return {{"tile-size",
               "Write this product for its shape: tiles that fill all SMs, operands staged in "
               "shared memory, the next tile copied while this one is used.",
               "the shape is a plain large matrix product, which the library does well"},
              {"tensor-cores", "Use matrix instructions in the precision that the contract allows.",
               "the contract asks for exact fp32 products"}};
    case OperatorKind::kReduction:
      return {
          {"passes",
           "Reduce in one pass: each block keeps its rows on chip, and reads each byte once.",
           "rows are longer than a block's or cluster's shared memory and registers"},
          {"grid-size", "Split long rows over several blocks where there are fewer rows than SMs.",
           "there are many rows"}};
    case OperatorKind::kPointwise:
    case OperatorKind::kCopy:
      return {{"fusion", "Do this step where its input is produced or its result is read.",
               "no neighbour can take it"},
              {"vectorize", "Access 128 bits at a time, in the order of memory.",
               "addresses are not 16-byte aligned"}};
    case OperatorKind::kOther:
      break;
  }
  return {{"algorithm", "Replace this operator by a kernel written for its sizes.",
           "it is the library's best algorithm for them"}};
}

std::string words(const Excess& excess, double time_us) {
  return operator_words(excess.call->name, excess.call->where) + " " +
         percent(excess.us / time_us) + " (" + percent(excess.floor_us / time_us) + ")";
}

std::optional<Finding> operator_above_floor(const Facts& facts) {
  const double time_us = facts("timing.median");
  std::vector<Excess> all;
  double timed = 0;
  for (const OperatorCall& call : facts.operators()) timed += call.us;
  if (!(timed > 0) || !(time_us > 0)) return std::nullopt;
  const double scale = std::min(1.0, time_us / timed);
  for (const OperatorCall& call : facts.operators()) {
    const double us = scale * call.us, floor_us = facts.floor_us(call);
    if (us > 0 && floor_us > 0) all.push_back({&call, us, std::min(us, floor_us)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Excess& a, const Excess& b) { return a.above() > b.above(); });
  if (all.empty() || all[0].above() < kLeastShare * time_us) return std::nullopt;
  const Excess& worst = all[0];
  Finding finding;
  const double share = worst.above() / time_us;
  finding.severity = share >= 0.4 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"timing.median", "ceiling.copy_bandwidth"};
  finding.cause = operator_words(worst.call->name, worst.call->where) + " takes " +
                  percent(worst.us / time_us) + " of " + human_us(time_us) + ", " +
                  times(worst.us / worst.floor_us) +
                  " what it needs by itself (its tensors and products at the measured ceilings: " +
                  human_us(worst.floor_us) + ").";
  std::string others;
  for (std::size_t i = 1; i < std::min(all.size(), kMostNamed); ++i) {
    if (all[i].above() >= kLeastShare * time_us) {
      others += (others.empty() ? "" : ", ") + words(all[i], time_us);
    }
  }
  if (!others.empty()) finding.cause += " Next, with their own floors: " + others + ".";
  const double bytes_us =
      1e6 * (worst.call->read_bytes + worst.call->written_bytes) / facts("ceiling.copy_bandwidth");
  finding.prescriptions = advice(*worst.call, bytes_us >= 0.99 * worst.floor_us);
  finding.likely_speedup = speedup_without(kUsual * share);
  finding.upper_speedup = speedup_without(share);
  finding.share = share;
  return finding;
}

constexpr const char* kOperatorAboveFloorNeeds[] = {"timing.median", "ceiling.copy_bandwidth",
                                                    "plan.kernels"};

}  // namespace

extern const Tool kOperatorAboveFloor;
const Tool kOperatorAboveFloor{
    .name = "operator-above-floor",
    .summary =
        "An operator of a PyTorch module takes far more than its own tensors and products "
        "need.",
    .target = ToolTarget::kCuda,
    .needs = kOperatorAboveFloorNeeds,
    .analyse = operator_above_floor,
    .scope = Scope::kCall};

}  // namespace kernelpro
