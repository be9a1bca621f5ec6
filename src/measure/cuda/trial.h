// SPDX-License-Identifier: Apache-2.0
// One evaluation of one subject on the cuda target, in its own worker: checks, timing, the fresh
// audit, probes. See docs/evaluation.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/evaluation/evaluation.h"
#include "measure/cuda/case.h"
#include "measure/cuda/reference.h"
#include "measure/cuda/timing.h"
#include "measure/cuda/worker.h"
#include "measure/judge/evaluator.h"
#include "measure/judge/probes.h"

namespace kernelpro {

// A captured plan of a host form.
struct PlacedPlan {
  LaunchPlan plan;
  std::uint64_t place = 0;  // where the addresses in it hold (core/plan/launch_plan.h)
};

// Adds the duration of a scope.
class Lap {
 public:
  explicit Lap(double* total) : total_(total), start_(real_clock().now_s()) {}
  ~Lap() { *total_ += real_clock().now_s() - start_; }
  Lap(const Lap&) = delete;
  Lap& operator=(const Lap&) = delete;

 private:
  double* total_;
  double start_;
};

// State that an evaluator keeps for its task across evaluations.
struct CudaShop {
  const Task& task;
  const Machine& machine;
  const EvaluateSettings& settings;
  CudaLink& judge;
  CudaReference& reference;
  std::vector<CudaCase>& cases;
  std::map<std::string, PlacedPlan> plans;  // of host forms, by binary
  std::optional<CudaLink> capture;          // a capture process that already has its context
  // Further workers for the current trial, which returns them. One of those that stand by; none:
  // nullopt.
  std::function<std::optional<CudaWorker>()> another = nullptr;
  // As many as asked for, alike in everything; starts them if need be.
  std::function<Result<std::vector<CudaWorker>>(int)> more = nullptr;
  std::function<void(CudaWorker)> retire = nullptr;
  // Ends a worker and puts a new one that is alike in its place.
  std::function<Result<void>(CudaWorker*)> renew = nullptr;
  int probes_each = 0;  // kinds of probes in the current trial, at random; 0: all
  // Number of foreign processes that used the GPU since the trial began.
  std::function<int()> others = [] { return 0; };
};

inline constexpr int kKernelBenchTrials = 5;  // KernelBench's input sets

// The contents on which a candidate is checked: those of the rotation, or KernelBench's trials.
std::vector<SetContent> check_contents(const CudaCase& state, Policy policy);

// Whether a variant may be screened: it and its incumbent are native, one case is timed, and that
// one has two sets. Where more are timed, a variant that loses in one may win in all.
bool may_screen(const std::vector<CudaCase>& cases, const Subject& subject,
                const Subject* incumbent);

class CudaTrial {
 public:
  // `other`: the incumbent's worker, which is alike; null without one. A candidate that shares a
  // context with its rival can write to that one's code and tables.
  CudaTrial(CudaShop& shop, CudaWorker& worker, CudaWorker* other, const CudaTimingPlan& timing)
      : shop_(shop),
        worker_(worker),
        other_(other),
        timing_(timing),
        most_kinds_(shop.probes_each) {}

  // `incumbent` may be null.
  Result<Outcome> run(const Subject& subject, const Subject* incumbent);

  // Screens a variant (Subject::variant): checks as ever, then a few pairs of calls on sets that
  // the checks left behind, without probes. Nothing that this may miss makes a kernel look slower,
  // and what looks faster, or wrong, must be judged in full, in processes of its own. So both
  // workers may have run other variants. REQUIRES: `may_screen`.
  enum class Screened { kBehind, kRefused, kPerhapsAhead, kFailed };
  Result<Screened> screen(const Subject& subject, const Subject& incumbent);
  // The verdict after kBehind and kRefused, once.
  Outcome verdict() { return refused_ ? std::move(*refused_) : Outcome(conclude()); }

 private:
  // A step's result: nothing, or the fault of the candidate.
  using Verdict = Result<std::optional<Outcome>>;
  class ProbesInPasses;

  // The kinds of probes that are run in a case, and the order: as places in `plans`, which also
  // decide where their contents lie.
  struct ChosenProbes {
    std::vector<ProbePlan> plans;
    std::vector<std::size_t> order;
    bool costly = false;                // there are no sets that keep contents
    std::map<std::size_t, bool> timed;  // those that lay among timed calls: whether all were right
  };

  void begin(const Subject& subject, const Subject* incumbent);
  Correct conclude();
  Result<Screened> compare_briefly(CudaCase& state);
  Verdict run_case(std::size_t i, const Subject& subject, const Subject* incumbent);
  Verdict load(CudaWorker& worker, const char* name, const CudaCase& state, const Binary& binary,
               std::map<std::string, double>* facts);
  Result<std::variant<LaunchPlan, Outcome>> plan_of(const CudaWorker& worker, const CudaCase& state,
                                                    const Binary& binary, bool candidate);
  Verdict call_outside(CudaLink capture, const CudaCase& given);
  CudaCase& own(const CudaCase& state);
  void settle_in(CudaWorker& worker, const Subject& subject);
  Verdict check(CudaCase& state);
  Verdict check_batch(CudaCase& state, const std::vector<int>& sets);
  Verdict run_on(const CudaCase& state, const SetKeys& steps);
  Verdict call_on(const CudaCase& state, const SetKeys& steps, double limit_s);
  Verdict time_case(CudaCase& state, const Binary* incumbent);
  Result<std::variant<CudaTimed, Outcome>> time_with_probes(CudaWorker& worker,
                                                            CudaWorker* incumbent, CudaCase& state);
  Verdict time_first(CudaCase& state, CudaWorker* incumbent, CudaTimed* timed);
  bool failed_on_a_probe();
  Verdict renew_worker(CudaCase& state);
  Result<ChosenProbes*> chosen(CudaCase& state);
  Result<bool> fill_probe(CudaCase& state, const ProbePlan& plan, int set, bool keep = false);
  Verdict time_elsewhere(CudaCase& state, CudaTimed* timed);
  Verdict decide(CudaCase& state, const Binary& incumbent, CudaTimed* timed);
  Result<std::optional<Interval>> difference(CudaCase& state, CudaWorker& mine, CudaWorker& theirs,
                                             const Binary& incumbent);
  Verdict audit(CudaCase& state, CudaTimed* timed);
  Verdict slower_counts(const std::string& rule, const std::string& sentence, double by,
                        CudaTimed* timed);
  Verdict check_floors(CudaCase& state, const CudaTimed& timed);
  Verdict call_in_a_row(CudaCase& state, double call_us);
  Verdict row_part(CudaCase& state, std::int64_t calls, std::int64_t number, double limit_s,
                   bool load, double* took_s);
  Verdict probe_among_others(CudaCase& state, DrawKind kind, int set);
  Verdict look_at_probe(CudaCase& state, DrawKind kind, int set);
  void compare_times(const CudaCase& state, DrawKind kind, const std::vector<double>& given_us,
                     const std::vector<double>& probe_us);
  void compare_pooled_times(const CudaCase& state);
  void lead();
  Verdict probe_cases();
  Verdict probe(CudaCase& state);
  Verdict probe_once(CudaCase& state, const ProbePlan& plan, std::size_t place);
  SetContent fresh_content(const ProbePlan& plan) const;
  SetContent probe_content(const CudaCase& state, const ProbePlan& plan, int set, bool keep);
  bool is_of(const SetContent& content, const ProbePlan& plan) const;
  Result<bool> sparse_applies(CudaCase& state);
  Result<void> note_norms(const CudaCase& state, DrawKind kind, int set);
  Verdict judge_found();
  bool writes_inputs();
  Outcome explained(Outcome outcome);
  void label(const std::string& name);
  void label(Label known) { label(std::string(label_name(known))); }
  std::string doing(const char* what, const CudaCase& state) const;

  CudaShop& shop_;
  CudaWorker& worker_;
  CudaWorker* other_;
  const Subject* subject_ = nullptr;
  const Subject* incumbent_ = nullptr;
  CudaTimingPlan timing_;
  int most_kinds_;      // of probes in a case, at random; 0: all
  bool leads_ = false;  // a search, which runs all kinds for what it would build on
  Correct correct_;
  std::vector<Interval> ratios_;
  std::map<std::string, double> facts_;  // the driver's, of the longest timed case
  struct Loaded {
    const CudaCase* state = nullptr;
    const Binary* binary = nullptr;
    LaunchPlan plan;
    std::uint64_t place = 0;
  };
  Loaded loaded_;              // the native candidate
  std::string kernels_;        // of the current subject, for messages
  std::set<int> reordered_;    // of the latest calls: sets with launches in an unusual order
  double call_s_ = 0;          // time of a call with all overhead; 0 unknown
  double longest_call_s_ = 0;  // of all cases
  std::shared_ptr<Allowance> allowance_ = std::make_shared<Allowance>();
  std::vector<ProbeFailure> failures_;                     // of the current case's probes
  std::vector<NormError> norms_;                           // of the current case
  std::vector<double> pooled_given_us_, pooled_probe_us_;  // where times are compared, of all kinds
  std::map<const CudaCase*, ChosenProbes> chosen_;
  std::optional<ProbeFailure> blamed_;  // the latest timing ended, perhaps on this probe
  std::optional<Outcome> refused_;      // a variant that could not be loaded
  bool crashed_ = false;                // by a probe: its worker runs nothing further
  double reference_ms_ = 0;             // of the module before this trial
  double capture_s_ = 0, check_s_ = 0, time_s_ = 0, audit_s_ = 0, row_s_ = 0, probe_s_ = 0;
};

}  // namespace kernelpro
