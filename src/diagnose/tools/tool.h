// SPDX-License-Identifier: Apache-2.0
// One expert heuristic: its trigger as data, its analysis as a pure function. Each tool has a
// folder here (code, a README with its formula's source, fixtures) and one row in ../tools.cc.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/architecture.h"
#include "core/evidence.h"
#include "core/finding.h"
#include "diagnose/roofline/model.h"
#include "diagnose/roofline/roofline.h"

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
  // Does the GPU that the evidence is about have it? False where that is not known.
  bool has(GpuFeature feature) const;
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
inline constexpr unsigned kMemoryLike = bit(Bound::kMemory) | bit(Bound::kMixed);
inline constexpr unsigned kComputeLike = bit(Bound::kCompute) | bit(Bound::kMixed);

enum class ToolTarget { kAny, kCpu, kCuda };
// Runs once for each kernel that matters, or once for the call.
enum class Scope { kKernel, kCall };

// A folder exports its row: `const Tool kBankConflicts{.name = "bank-conflicts", ...}`.
struct Tool {
  std::string_view name;     // its folder
  std::string_view summary;  // one sentence, for help and docs
  ToolTarget target = ToolTarget::kAny;
  unsigned bounds = kAnyBound;  // runs when theory's or the timing's class is among them
  std::span<const char* const> needs = {};  // metrics without which it cannot be evaluated
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

}  // namespace kernelpro
