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
#include "diagnose/roofline.h"

namespace kernelpro {

// What an analysis sees. REQUIRES: every metric of the tool's `needs` is there.
class Facts {
 public:
  Facts(const Evidence& evidence, const Roofline& roofline)
      : evidence_(evidence), roofline_(roofline) {}
  // A metric that the row names under `needs`.
  double operator()(const char* name) const;
  // One that may be missing; an analysis never replaces it with a made-up number.
  std::optional<double> maybe(const char* name) const { return evidence_.get(name); }
  std::string text(const std::string& name) const;
  const Roofline& roofline() const { return roofline_; }

 private:
  const Evidence& evidence_;
  const Roofline& roofline_;
};

// Bounds as bits, for the trigger.
constexpr unsigned bit(Bound bound) { return 1u << static_cast<unsigned>(bound); }
inline constexpr unsigned kAnyBound = ~0u;

enum class ToolTarget { kAny, kCpu, kCuda };

struct Tool {
  std::string_view name;     // its folder
  std::string_view summary;  // one sentence, for help and docs
  ToolTarget target = ToolTarget::kAny;
  unsigned bounds = kAnyBound;         // runs when theory's or the timing's class is among them
  std::span<const char* const> needs;  // metrics without which it cannot be evaluated
  // nullopt: nothing to say. Fills cause, metrics, prescriptions, severity, likely and upper gain;
  // the runner fills tool and level, and clamps gains to what the roofline leaves.
  std::optional<Finding> (*analyse)(const Facts& facts);
  // Names no cause of its own: its finding comes after every specific one, whatever it promises.
  bool catch_all = false;
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

}  // namespace kernelpro
