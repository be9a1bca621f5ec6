// SPDX-License-Identifier: Apache-2.0
// One expert heuristic: its trigger as data, its analysis as a pure function. Each tool has a
// folder here (code, a README with its formula's source, fixtures) and one row in ../tools.cc.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/evidence.h"
#include "core/finding.h"
#include "diagnose/model.h"
#include "diagnose/roofline.h"

namespace kernelpro {

// What an analysis sees: of one kernel and its call, or of the call alone. A name is looked up in
// the kernel's evidence first. REQUIRES: every metric of the tool's `needs` is there.
class Facts {
 public:
  Facts(const Evidence& evidence, const KernelEvidence* kernel, const Roofline& roofline,
        const KernelModel& model)
      : evidence_(evidence), kernel_(kernel), roofline_(roofline), model_(model) {}
  // A metric that the row names under `needs`.
  double operator()(const std::string& name) const;
  // One that may be missing; an analysis never replaces it with a made-up number.
  std::optional<double> maybe(const std::string& name) const;
  std::string text(const std::string& name) const;
  const Roofline& roofline() const { return roofline_; }
  // The kernel's counters as a model: busy resources, waiting, and what a change would gain.
  const KernelModel& model() const { return model_; }

 private:
  const Evidence& evidence_;
  const KernelEvidence* kernel_;  // null: the call, or its only kernel
  const Roofline& roofline_;
  const KernelModel& model_;
};

// Bounds as bits, for the trigger.
constexpr unsigned bit(Bound bound) { return 1u << static_cast<unsigned>(bound); }
inline constexpr unsigned kAnyBound = ~0u;

enum class ToolTarget { kAny, kCpu, kCuda };
// Runs once for each kernel that matters, or once for the call.
enum class Scope { kKernel, kCall };

struct Tool {
  std::string_view name;     // its folder
  std::string_view summary;  // one sentence, for help and docs
  ToolTarget target = ToolTarget::kAny;
  unsigned bounds = kAnyBound;         // runs when theory's or the timing's class is among them
  std::span<const char* const> needs;  // metrics without which it cannot be evaluated
  // nullopt: nothing to say. Fills cause, metrics, prescriptions, severity, likely and upper gain
  // of the kernel (scope kKernel) or of the call; the runner fills tool, kernel and level, makes a
  // kernel's gain one of the call (Amdahl) and clamps gains to what the roofline leaves.
  std::optional<Finding> (*analyse)(const Facts& facts);
  // Names no cause of its own: its finding comes after every specific one, whatever it promises.
  bool catch_all = false;
  Scope scope = Scope::kKernel;
  // Metrics of which one at least must be there: other kinds of evidence for the same thing.
  std::span<const char* const> one_of = {};
};

// "37 %"
std::string percent(double fraction);
// "1.8x"
std::string times(double factor);
// "3.10 TB/s", "812 GFLOP/s"
std::string per_second(double rate, std::string_view unit);
// Speed-up when a share of the time (0..1) goes away.
double speedup_without(double share);
// The geometric middle of two speed-ups: half way on a logarithmic scale, KernelPro's convention
// for a gain of which only the two ends are known. REQUIRES: both are positive.
double middle(double low, double high);

// The analyses, one per folder.
std::optional<Finding> scalar_code(const Facts& facts);
std::optional<Finding> one_thread_busy(const Facts& facts);
std::optional<Finding> streaming_stores(const Facts& facts);
std::optional<Finding> at_bandwidth_ceiling(const Facts& facts);
std::optional<Finding> at_compute_ceiling(const Facts& facts);
std::optional<Finding> far_from_both_ceilings(const Facts& facts);
std::optional<Finding> register_spill(const Facts& facts);
std::optional<Finding> scalar_loads(const Facts& facts);
std::optional<Finding> missing_tensor_cores(const Facts& facts);
std::optional<Finding> small_grid(const Facts& facts);
std::optional<Finding> launch_bound(const Facts& facts);
std::optional<Finding> host_copies(const Facts& facts);
std::optional<Finding> host_syncs(const Facts& facts);
std::optional<Finding> allocations_in_path(const Facts& facts);
std::optional<Finding> device_copies(const Facts& facts);
std::optional<Finding> unfused_kernels(const Facts& facts);
std::optional<Finding> serial_graph(const Facts& facts);
// About memory.
std::optional<Finding> uncoalesced_access(const Facts& facts);
std::optional<Finding> re_read_excess(const Facts& facts);
std::optional<Finding> excess_writes(const Facts& facts);
std::optional<Finding> l2_locality(const Facts& facts);
std::optional<Finding> bank_conflicts(const Facts& facts);
std::optional<Finding> missing_shared_memory_tiling(const Facts& facts);
std::optional<Finding> missing_register_tiling(const Facts& facts);
std::optional<Finding> register_pressure(const Facts& facts);
std::optional<Finding> atomics_contention(const Facts& facts);
std::optional<Finding> synchronous_staging(const Facts& facts);
std::optional<Finding> missing_tma(const Facts& facts);
std::optional<Finding> low_memory_parallelism(const Facts& facts);
// About arithmetic, latency and the launch.
std::optional<Finding> occupancy_limiter(const Facts& facts);
std::optional<Finding> load_imbalance(const Facts& facts);
std::optional<Finding> dominant_stall(const Facts& facts);
std::optional<Finding> excessive_barriers(const Facts& facts);
std::optional<Finding> dependent_chain(const Facts& facts);
std::optional<Finding> divergence(const Facts& facts);
std::optional<Finding> scalar_half_math(const Facts& facts);
std::optional<Finding> expensive_math(const Facts& facts);
std::optional<Finding> accidental_fp64(const Facts& facts);
std::optional<Finding> integer_division(const Facts& facts);
std::optional<Finding> address_overhead(const Facts& facts);
std::optional<Finding> unfused_multiply_add(const Facts& facts);
std::optional<Finding> instruction_cache(const Facts& facts);
std::optional<Finding> wide_fences(const Facts& facts);
std::optional<Finding> constant_cache(const Facts& facts);
std::optional<Finding> block_shape(const Facts& facts);
std::optional<Finding> shallow_pipeline(const Facts& facts);

}  // namespace kernelpro
