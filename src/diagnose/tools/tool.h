// SPDX-License-Identifier: Apache-2.0
// One expert heuristic: its trigger as data, its analysis as a pure function. Each tool has a
// folder here (code, a README with the source of its formula, fixtures) and one row in ../tools.cc.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/evidence/evidence.h"
#include "core/evidence/metric.h"
#include "core/evidence/target.h"
#include "core/finding/account.h"
#include "core/finding/finding.h"
#include "core/machine/architecture.h"
#include "diagnose/roofline/model.h"
#include "diagnose/roofline/roofline.h"

namespace kernelpro {

// The input of an analysis: one kernel and its call, or the call alone. Looks a name up in the
// kernel's evidence first. REQUIRES: every metric in the tool's `needs` is present.
class Facts {
 public:
  Facts(const Evidence& evidence, const KernelEvidence* kernel, const Roofline& roofline,
        const KernelModel& model, const KernelAccount* account = nullptr,
        const Account* call = nullptr)
      : evidence_(evidence),
        kernel_(kernel),
        roofline_(roofline),
        model_(model),
        account_(account),
        call_(call) {}
  // A metric listed in the row's `needs`.
  double operator()(const std::string& name) const;
  // A metric that may be missing; an analysis never replaces it with a made-up number.
  std::optional<double> maybe(const std::string& name) const;
  std::string text(const std::string& name) const;
  // Of the candidate; nullopt: unknown.
  std::optional<TargetKind> target() const { return evidence_target(evidence_); }
  // The lines that contribute to a metric of machine code, or a slice (profile/places/causes.h).
  // Null: unknown.
  const CodeLines* lines(const std::string& metric) const;
  // What the kernel's source decides; empty: unknown.
  const std::vector<SourceSite>& sites() const;
  // Where the kernel's time goes; null: unknown.
  const Places* places() const;
  // Whether the evidence's GPU has the feature; false if unknown.
  bool has(GpuFeature feature) const;
  // Of its multiprocessors; those of sm_90 if unknown.
  const SmLimits& limits() const;
  const Roofline& roofline() const { return roofline_; }
  // The roofline's fraction or, with neither a task nor counters, that of the bandwidth alone:
  // moving once all that the program has allocated. It says nothing of arithmetic. 1: unknown.
  double fraction_of_light() const;
  // The kernel's counters as a model: busy resources, waiting, and the gain of a change.
  const KernelModel& model() const { return model_; }
  // Where the kernel's time goes; gains are counterfactuals on it (diagnose/account/gains.h). Null:
  // the analysis is of a call, or the time is not known.
  const KernelAccount* account() const { return account_; }
  // Where the call's time goes; null: unknown.
  const Account* call_account() const { return call_; }
  // Of the call, the longest first; empty: the call's only kernel is the evidence's own.
  std::span<const KernelEvidence> kernels() const { return evidence_.kernels; }
  // Of a PyTorch module's call, those that launch something, in order; empty: unknown.
  std::span<const OperatorCall> operators() const { return evidence_.operators; }
  // Of the kernel, or of one of `kernels()` (diagnose/roofline/parts.h).
  double products_of_parts() const;
  double products_of_parts(const KernelEvidence& kernel) const;
  // What one of them needs by itself (diagnose/account/make_account.h).
  double floor_us(const OperatorCall& call) const;

 private:
  const Evidence& evidence_;
  const Evidence& of_kernel() const;
  const KernelEvidence* kernel_;  // null: the call, or its only kernel
  const Roofline& roofline_;
  const KernelModel& model_;
  const KernelAccount* account_;
  const Account* call_;
};

// Bounds as a bit mask, for the trigger.
constexpr unsigned bit(Bound bound) { return 1u << static_cast<unsigned>(bound); }
inline constexpr unsigned kAnyBound = ~0u;
// For advice that cannot matter to a kernel in which theory, timing and counters all see that
// bound.
inline constexpr unsigned kNotMemoryBound = kAnyBound & ~bit(Bound::kMemory);
inline constexpr unsigned kNotComputeBound = kAnyBound & ~bit(Bound::kCompute);
inline constexpr unsigned kMemoryLike = bit(Bound::kMemory) | bit(Bound::kMixed);
inline constexpr unsigned kComputeLike = bit(Bound::kCompute) | bit(Bound::kMixed);

enum class ToolTarget { kAny, kCpu, kCuda };

// A folder exports its row: `const Tool kBankConflicts{.name = "bank-conflicts", ...}`.
struct Tool {
  std::string_view name;     // its folder
  std::string_view summary;  // one sentence, for help and docs
  ToolTarget target = ToolTarget::kAny;
  unsigned bounds = kAnyBound;  // runs if the theoretical or measured class is among them
  std::span<const char* const> needs = {};  // required metrics
  // nullopt: no finding. Fills cause, sites, metrics, prescriptions, severity, likely and upper
  // gain of the kernel (scope kKernel) or the call. The runner fills tool, kernel, where and level,
  // converts a kernel's gain to the call's (Amdahl) and clamps gains to the roofline's headroom.
  std::optional<Finding> (*analyse)(const Facts& facts);
  // Names no specific cause: its finding ranks after every specific one, whatever gain it promises.
  bool catch_all = false;
  Scope scope = Scope::kKernel;  // kCall: runs once; kKernel: for each kernel that matters
  // At least one of these metrics must be present: alternative evidence for the same thing.
  std::span<const char* const> one_of = {};
};

// "37 %"
std::string percent(double fraction);
// "1.8x"
std::string times(double factor);
// "3.10 TB/s", "812 GFLOP/s"
std::string per_second(double rate, std::string_view unit);
// Speedup when a share of the time (0..1) goes away.
double speedup_without(double share);
// The geometric mean of two speedups, KernelPro's convention for a gain when only its two bounds
// are known. REQUIRES: both are positive.
double middle(double low, double high);

}  // namespace kernelpro
