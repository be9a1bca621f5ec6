// SPDX-License-Identifier: Apache-2.0
// Times a candidate on the cuda target, L2-cold, alternating with the incumbent on the same input
// sets. Each timed call has its own set, and its outputs are compared on the device.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/statistics/sequential.h"
#include "base/statistics/statistics.h"
#include "core/machine/machine.h"
#include "measure/cuda/case.h"
#include "measure/cuda/reference.h"
#include "measure/cuda/worker.h"

namespace kernelpro {

// Probes among timed calls. A kernel that can count calls, by whatever survives from one to the
// next, must not learn from that which of them are only timed.
class TimedProbes {
 public:
  virtual ~TimedProbes() = default;
  // The chance that a timed call gives its place to a probe. Unlikely ones are 0 only when there
  // are no probes.
  virtual double chance() const = 0;
  // Sets for at most `most` calls in the next pass, with the contents of probes, poisoned. No set
  // is one of the rotation. May be fewer.
  virtual Result<std::vector<int>> prepare(std::size_t most) = 0;
  // The pass has called the candidate on this set: compares everything. A failure is the
  // implementation's to note.
  virtual Result<void> look(int set) = 0;
  // A pass with these sets failed, perhaps because of them.
  virtual void blame(const std::vector<int>& sets, const Outcome& outcome) = 0;
  // Whether there have been enough of them.
  virtual bool enough() const = 0;
};

struct CudaTimingPlan {
  int min_samples = 10;    // timed calls of the candidate, at least
  int max_pairs = 400;     // with an incumbent
  int max_samples = 40;    // without one: this many, up to four times as many where they scatter
  double budget_s = 0.35;  // of calls; slow kernels get fewer: one of each, or two pairs
  double min_effect = 0.005;
  double alpha = 0.02;
  double timeout_s = 30;  // of one call
  double hint_us = 0;     // rough time of a call with all overhead, if known
  double row_s = 0;       // how long it is called in a row at the end; 0: it is not
  bool fresh = true;      // new inputs for every timed call where the reference is fast enough
  // A few pairs at most, to see whether the candidate may be faster than its incumbent: as soon as
  // it is likely not to be, that is enough.
  bool screening = false;
  // Looks at the right results of some timed calls of the candidate, in a set; may be null.
  std::function<Result<void>(const CudaCase&, int set)> look = nullptr;
  TimedProbes* probes = nullptr;  // may be null
};

struct CudaTimed {
  Timing timing;
  std::vector<double> times_us;   // of the candidate, in order
  std::vector<int> sets;          // the set of each
  bool paired = false;            // passes had incumbent calls too ...
  bool warm_up = true;            // ... began with an untimed call ...
  int at_most = 0;                // ... and timed at most this many calls
  bool fresh = false;             // no call was timed on inputs that its kernel had seen
  std::optional<Interval> ratio;  // incumbent's time over the candidate's
  std::string note;               // why there is no ratio despite an incumbent
};

// Calls shorter than this depend much on where a process and its graphs lie in memory.
inline constexpr double kBriefUs = 100;

// Merges the timings of several processes, the same number of samples of each. REQUIRES: not empty.
CudaTimed merge_processes(const std::vector<CudaTimed>& processes);

// How far two processes are apart, as a ratio: what one of them adds to every call, or takes from
// it, is worth a percent of a short one, and stays as long as it lives (results/evaluation.md,
// "Timings that repeat"). Covers 98 % of pairs.
double process_spread(double call_us);
// `ratio`, widened by an independent error of `spread`.
Interval widened(const Interval& ratio, double spread);
// `ratio` as it would be in processes that are equally fast; `equals`: the ratio of one kernel in
// both.
Interval corrected(const Interval& ratio, const Interval& equals);

// The subjects "candidate" and "incumbent" are loaded in their workers for this case; `incumbent`
// may be null, but not the same worker. Every timed call is compared. Where the reference takes at
// most ten times as long as a call with all overhead, no kernel is timed on inputs that it has seen
// in an earlier call, timed or not, so that nothing that it kept is of use; else inputs repeat in
// secret order. An Outcome: the candidate's fault.
Result<std::variant<CudaTimed, Outcome>> time_cuda_case(CudaLink& judge, CudaReference& reference,
                                                        CudaWorker& candidate,
                                                        CudaWorker* incumbent, CudaCase& state,
                                                        const CudaTimingPlan& plan,
                                                        double* max_error);

// The verdict when sets no longer hold their inputs after timing.
Rejected changed_inputs();

// One timed call for each of `sets`, in which a set may recur, on freshly poisoned outputs; nothing
// is compared. `warm` is the set of an untimed first call, or -1.
Result<std::variant<std::vector<double>, Outcome>> call_once(CudaLink& judge, CudaWorker& worker,
                                                             const CudaCase& state,
                                                             const std::vector<int>& sets, int warm,
                                                             const CudaTimingPlan& plan);
// ... then all are compared. For contents outside ordinary passes.
Result<std::variant<std::vector<double>, Outcome>> time_once(CudaLink& judge, CudaWorker& worker,
                                                             const CudaCase& state,
                                                             const std::vector<int>& sets, int warm,
                                                             const CudaTimingPlan& plan,
                                                             double* max_error);

}  // namespace kernelpro
