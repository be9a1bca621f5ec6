// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kQueued = 0.15;       // of the waits, for room in the load-store unit's queue
constexpr double kBusy = 0.5;          // of the load-store unit or the issue slots
constexpr double kLeastBytes = 0.3;    // part of the loaded bytes
constexpr double kLeastWaited = 0.03;  // of the time, for loads beside bulk copies
constexpr double kLeastGain = 1.06;

struct Widths {
  double loads = 0;
  double scalar = 0;  // 32 bits or less
  double merged = 4;  // of them in a 128-bit load
  bool narrow = false;
  double of_bytes = 0;  // part of the loaded bytes that scalar loads bring
  double instructions = 1;
};

Widths widths_of(const Facts& facts) {
  Widths w;
  w.loads = facts("sass.hot.global_loads");
  const double narrow = facts("sass.hot.global_loads_narrow");
  const double words = facts("sass.hot.global_loads_32");
  w.scalar = narrow + words;
  w.narrow = narrow > words;
  w.merged = w.narrow ? 8 : 4;  // 16-bit or 32-bit elements in 128 bits
  const double others = 16 * facts.maybe("sass.hot.global_loads_128").value_or(0) +
                        8 * facts.maybe("sass.hot.global_loads_64").value_or(0);
  const double bytes = 2 * narrow + 4 * words;
  w.of_bytes = bytes > 0 ? bytes / (bytes + others) : 0;
  w.instructions = std::max({1.0, facts("sass.hot.instructions"), w.loads});
  return w;
}

// Loads that a wider one cannot replace: uniform addresses, scattered lanes, matrix fragments
// (their layout fixes the width; they lack reuse).
bool fixed_width(const Facts& facts, const Widths& w) {
  const auto shared = facts.maybe("sass.hot.shared_loads");
  if (facts.maybe("sass.hmma").value_or(0) > 0 && shared && *shared <= 0) return true;
  const double uniform = facts.maybe("sass.hot.global_uniform").value_or(0);
  return uniform > 0.5 * w.loads || worst_excess(facts) >= 2;
}

bool gain_from_counters(const Facts& facts, const Widths& w, Finding* finding) {
  const KernelModel& model = facts.model();
  const double waits = stalls(facts, {Stall::kLongScoreboard}, 0.4);
  const double queued = stalls(facts, {Stall::kLgThrottle}, 0);
  const double busy = std::max(model.demand(Resource::kLsu), model.demand(Resource::kIssue));
  const auto have = in_flight(facts);
  const auto need = needed_in_flight(facts);
  // Enough bytes in flight and free queues: width is not the bottleneck.
  const bool short_of_bytes = !have || !need || *have < *need;
  if (model.demand(Resource::kDram) >= 0.9) return false;
  const bool pieces = chunked(facts) && model.demand(Resource::kL1) >= kBusy;
  if (queued < kQueued && busy < kBusy && !pieces && (!short_of_bytes || waits < 0.3)) {
    return false;
  }

  const double part = w.scalar / w.loads;
  const double removed = w.scalar / w.instructions * (1 - 1 / w.merged);
  const double fewer = 1 - part * (1 - 1 / w.merged);
  Effect effect;
  effect.scale(Resource::kLsu, fewer).scale(Resource::kIssue, 1 - removed);
  effect.scale(Resource::kAlu, 1 - removed);
  // A wide access looks up each sector once; the pieces look it up repeatedly.
  const auto loads = global_loads(facts);
  if (pieces && loads) {
    effect.scale(Resource::kL1, 1 - (1 - shared_part(facts)) * (1 - 1 / loads->excess()));
  }
  // Bytes in flight grow with the width, up to what the bandwidth needs.
  double filled = 1 / w.merged;
  if (have && need) filled = std::clamp(*have / *need, filled, 1.0);
  const double shorter = short_of_bytes ? waits * part * (1 - filled) : 0;
  effect.waiting = 1 - std::min(0.9, shorter + queued * part * 0.7);
  set_gain(model.gain(effect), finding);
  finding->upper_speedup =
      std::max(finding->likely_speedup, std::min(finding->upper_speedup, w.merged));
  return finding->likely_speedup >= kLeastGain;
}

bool gain_from_code(const Facts& facts, const Widths& w, Finding* finding) {
  const Roofline& roof = facts.roofline();
  // At copy bandwidth, wider loads gain nothing.
  const double memory = roof.known() ? roof.memory_floor_us / roof.time_us : 0;
  if (memory >= 0.85) return false;
  // In a compute-bound loop, a few loads are not the bottleneck.
  if (roof.theory == Bound::kCompute && w.scalar < 0.05 * w.instructions) return false;
  const double fewer = speedup_without(w.scalar / w.instructions * (1 - 1 / w.merged));
  finding->upper_speedup = std::max(fewer, std::min(w.merged, roof.most()));
  // Memory-bound code below the bandwidth is limited by bytes in flight (Little's law), which grow
  // with the load width; elsewhere (and in kernels too short to fill memory) only the instructions
  // count.
  const bool waits = roof.known() && roof.theory != Bound::kCompute && roof.bound != Bound::kLaunch;
  finding->likely_speedup =
      waits ? std::max(fewer, middle(1, std::min(w.merged, roof.headroom()))) : fewer;
  return true;
}

bool is_global_load(std::string_view instruction) { return executes(instruction, "LDG"); }

// Bulk copies bring the data, and nobody waits for the few loads beside them.
bool beside_copies(const Facts& facts) {
  const Places* places = facts.places();
  return facts.maybe("sass.bulk_copies").value_or(0) > 0 && places != nullptr &&
         places->basis == Places::Basis::kSampled &&
         exposed_by(facts, is_global_load) < kLeastWaited;
}

std::optional<Finding> scalar_loads(const Facts& facts) {
  const Widths w = widths_of(facts);
  if (w.loads <= 0 || w.scalar < 0.5 * w.loads || fixed_width(facts, w) || chained(facts))
    return std::nullopt;
  // Only an occasional index load beside wide data loads.
  if (w.of_bytes < kLeastBytes || beside_copies(facts)) return std::nullopt;
  Finding finding;
  const bool counted = facts.model().counted();
  if (!(counted ? gain_from_counters(facts, w, &finding) : gain_from_code(facts, w, &finding))) {
    return std::nullopt;
  }
  const auto wide = facts.maybe("sass.hot.global_loads_128");
  const double mergeable = facts.maybe("sass.hot.global_loads_mergeable").value_or(0);
  finding.severity = Severity::kWarning;
  finding.metrics = {"sass.hot.global_loads", "sass.hot.global_loads_32",
                     "sass.hot.global_loads_narrow"};
  finding.cause = number(w.scalar) + " of " + number(w.loads) +
                  " global loads in the hot loop are " + (w.narrow ? "8- or 16-bit" : "32-bit") +
                  (wide ? " (" + number(*wide) + " are 128-bit)" : std::string()) +
                  "; one 128-bit load can do the work of " + number(w.merged) + "." +
                  (mergeable > 0 ? " " + number(mergeable) +
                                       " of them are followed by a load of the next address."
                                 : std::string());
  finding.sites = line_of(facts, {"sass.hot.global_loads_mergeable", "sass.hot.global_loads_narrow",
                                  "sass.hot.global_loads_32", "sass.hot.global_loads"});
  finding.prescriptions = {
      {"vectorize",
       "Load and store 128 bits at a time: `float4` (or eight halves as `uint4`) through "
       "`reinterpret_cast<const float4*>`, with a tail loop for the rest.",
       "rows are not a multiple of the vector or bases are not 16-byte aligned"},
      {"unroll",
       "Give each thread several independent elements and load all of them before the first use.",
       "registers would cross an occupancy step or spill"}};
  return finding;
}

constexpr const char* kScalarLoadsNeeds[] = {"sass.hot.global_loads", "sass.hot.global_loads_32",
                                             "sass.hot.global_loads_narrow",
                                             "sass.hot.instructions"};

}  // namespace

extern const Tool kScalarLoads;
const Tool kScalarLoads{.name = "scalar-loads",
                        .summary = "The hot loop loads 32 bits or less at a time.",
                        .target = ToolTarget::kCuda,
                        .bounds = kNotComputeBound,
                        .needs = kScalarLoadsNeeds,
                        .analyse = scalar_loads};

}  // namespace kernelpro
