// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kLeastExcess = 1.3;  // inputs read from device memory, over the inputs
constexpr double kLeastShared = 3;    // L2 requests over the inputs: gathers may repeat less
constexpr double kReached = 1.3;      // reached with a good block order
constexpr double kLeastBytes = 10e6;
constexpr double kLeastBusy = 0.3;  // of device memory's limit
constexpr double kLeastGain = 1.08;

std::vector<Prescription> advice(bool tiles, bool hints) {
  std::vector<Prescription> list = {
      {"block-order",
       "Order the blocks so that concurrent ones share operands: walk the tiles in groups of 8 or "
       "16 rows (a `GROUP_M` swizzle of `blockIdx`), or let the fastest block index run over "
       "blocks that share the larger operand.",
       "one wave of blocks already covers the whole output"}};
  if (tiles) {
    list.push_back({"tile-size",
                    "Compute a larger tile per block, so that fewer blocks fetch each operand.",
                    "the tile no longer fits in shared memory and registers"});
    list.push_back({"cluster",
                    "Share operand tiles among the blocks of a cluster (TMA multicast, sm_90).",
                    "the GPU has no clusters"});
  }
  if (!hints) {
    list.push_back({"cache-hints",
                    "Mark data that is used once as streaming (`__ldcs`, `__stcs`, "
                    "`L2::evict_first`), so that it does not evict reused data; pin a reused table "
                    "with `L2::evict_last` or an access-policy window.",
                    "everything is reused about equally often"});
  }
  return list;
}

// All hot accesses are coalesced: loaded data is used, and is loaded again because another block
// needs it.
bool side_by_side(const Facts& facts) {
  const double all = facts.maybe("sass.hot.global_loads").value_or(0) +
                     facts.maybe("sass.hot.global_stores").value_or(0);
  return all > 0 && facts.maybe("sass.hot.global_unit_stride").value_or(0) >= all;
}

std::optional<Finding> l2_locality(const Facts& facts) {
  const auto least = compulsory_at_most(facts);
  const auto moved = dram(facts);
  const auto asked = l2_read_bytes(facts);
  if (!least || !moved || !asked || least->reads <= 0) return std::nullopt;
  // Lanes that leave gaps waste sectors; where their distance is not known, they gather.
  const bool gaps = facts.maybe("task.compulsory_bytes") ||
                    facts.maybe("sass.hot.global_strided").value_or(0) > 0;
  if (moved->reads < kLeastBytes || (gaps && worst_excess(facts) >= 2)) return std::nullopt;
  const double reads = moved->reads / least->reads;
  const double shared = side_by_side(facts) ? kLeastExcess : kLeastShared;
  if (reads < kLeastExcess || std::max(*asked, moved->reads) < shared * least->reads) {
    return std::nullopt;
  }
  const KernelModel& model = facts.model();
  if (model.counted() && model.demand(Resource::kDram) < kLeastBusy) return std::nullopt;
  // Loops that make several passes over their block's input belong to re-read-excess.
  const bool tiles = facts.roofline().theory == Bound::kCompute ||
                     std::max(*asked, moved->reads) > kManyPasses * least->reads;
  if (!tiles && own_passes(facts)) return std::nullopt;

  const double after = std::min(moved->reads, kReached * least->reads);
  Effect effect;
  effect.scale(Resource::kDram, (after + moved->writes) / moved->bytes());
  // L2 looks a sector up on request and on fill.
  effect.scale(Resource::kL2, (*asked + after) / (*asked + moved->reads));
  // Hits in L2 take about half as long as misses.
  effect.waiting = 1 - memory_wait(facts, 0.5) * 0.5 * (1 - after / moved->reads);
  Finding finding;
  set_gain(facts, effect, &finding);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = reads >= 3 ? Severity::kCritical : Severity::kWarning;
  finding.cause = "Device memory reads the inputs " + number(reads, 3) + " times (" +
                  human_bytes(moved->reads) + " for " + human_bytes(least->reads) +
                  "): blocks that share data run too far apart in time for L2, which serves only " +
                  percent(std::max(0.0, 1 - moved->reads / *asked)) + " of its requests.";
  finding.metrics = {
      "dram__bytes_read.sum", "lts__t_sectors_srcunit_tex.sum",
      facts.maybe("task.compulsory_bytes") ? "task.compulsory_bytes" : "trace.allocated_bytes"};
  finding.sites = joined({line_of(facts, {"slice.block"}), site_of(facts, {SiteKind::kLaunch})});
  finding.prescriptions = advice(tiles, facts.maybe("sass.hot.global_evict_hints").value_or(0) > 0);
  return finding;
}

constexpr const char* kL2LocalityNeeds[] = {"dram__bytes_read.sum",
                                            "lts__t_sectors_srcunit_tex.sum"};
constexpr const char* kL2LocalityOneOf[] = {"task.compulsory_bytes", "trace.allocated_bytes"};

}  // namespace

extern const Tool kL2Locality;
const Tool kL2Locality{
    .name = "l2-locality",
    .summary = "Blocks that share data run too far apart in time for L2 to serve the reuse.",
    .target = ToolTarget::kCuda,
    .bounds = kNotComputeBound,
    .needs = kL2LocalityNeeds,
    .analyse = l2_locality,
    .one_of = kL2LocalityOneOf};

}  // namespace kernelpro
