// SPDX-License-Identifier: Apache-2.0
#include "diagnose/runner.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "core/candidate/tags.h"
#include "core/evidence/metrics.h"
#include "core/evidence/rates.h"
#include "core/evidence/target.h"
#include "core/machine/machine.h"
#include "diagnose/account/costly.h"
#include "diagnose/account/gains.h"
#include "diagnose/account/make_account.h"
#include "diagnose/diagnose.h"
#include "diagnose/tools/causes.h"

namespace kernelpro {

namespace {

using State = ToolRun::State;

ToolTarget target_of(const Evidence& evidence) {
  const std::optional<TargetKind> target = evidence_target(evidence);
  if (!target) return ToolTarget::kAny;
  return *target == TargetKind::kCuda ? ToolTarget::kCuda : ToolTarget::kCpu;
}

constexpr double kLeastGain = 1.02;  // of the call: less drowns in noise

// Clamps gains to the roofline's headroom: at the measured ceilings for the likely gain, with slack
// for the upper one.
void clamp_gains(const Roofline& roof, Finding* finding) {
  const double upper = std::max(1.0, finding->upper_speedup);
  finding->upper_speedup = finding->stop  ? 1.0
                           : roof.known() ? std::min(upper, roof.most())
                                          : upper;
  const double likely =
      roof.known() ? std::min(finding->upper_speedup, roof.headroom()) : finding->upper_speedup;
  finding->likely_speedup = std::clamp(finding->likely_speedup, 1.0, likely);
}

// Without a task, a unit at this part of what good kernels take from it is near its limit. A change
// that leaves the unit its work then seldom brings all that is left.
// The damping grows linearly from kNearLimit to kAtLimit.
constexpr double kNearLimit = 0.6, kAtLimit = 0.8;
constexpr double kOfTheRest = 0.25;

// No roofline bounds a kernel's gain, and a change also removes what the models do not see.
constexpr double kSecondary = 1.3;

void damp_near_limit(const KernelModel& model, Finding* finding) {
  if (!model.counted() || model.demand() < kNearLimit) return;
  const double rest = 1 / model.demand();
  if (finding->likely_speedup > rest) return;
  const double near = std::min(1.0, (model.demand() - kNearLimit) / (kAtLimit - kNearLimit));
  finding->likely_speedup = 1 + std::lerp(1.0, kOfTheRest, near) * (finding->likely_speedup - 1);
}

// A kernel's time is measured in another process, at other clocks.
constexpr double kLonger = 1.1;

// Clamps gains to what the account allows a change of this kernel.
void clamp_to_account(const Account& account, const KernelAccount& kernel, const Roofline& roof,
                      Finding* finding) {
  const double slack = roof.known() ? roof.most() / roof.headroom() : 1;
  finding->upper_speedup =
      std::min(finding->upper_speedup, most_of_kernel(account, kernel, slack, kLonger));
  finding->likely_speedup =
      std::min({finding->likely_speedup, finding->upper_speedup, most_of_kernel(account, kernel)});
}

// A view of a call, or of one of its kernels.
struct View {
  const Evidence& evidence;
  const KernelEvidence* kernel;  // null: the call, or its only kernel
  const Roofline& roof;
  KernelModel model;
  const KernelAccount* account = nullptr;  // of the kernel, or of the call's only one
  const Account* call = nullptr;

  std::optional<double> get(const std::string& name) const { return facts().maybe(name); }
  Facts facts() const { return Facts(evidence, kernel, roof, model, account, call); }
  const std::optional<Places>& places() const {
    return kernel != nullptr ? kernel->facts.places : evidence.places;
  }
  double share() const { return kernel ? kernel->facts.get("kernel.share").value_or(1) : 1; }
};

// With the collector's reason for the first of them that it gave one for.
std::string missing_reason(const View& view, const std::vector<std::string>& names) {
  const std::string absent = "not observed: " + join_text(names, ", ");
  for (const std::string& name : names) {
    const Missing* missing = view.kernel ? why_missing(view.kernel->facts, name) : nullptr;
    if (missing == nullptr) missing = why_missing(view.evidence, name);
    if (missing != nullptr) return absent + " (" + missing->reason + ")";
  }
  return absent;
}

Level weakest_level(const View& view, const Finding& finding) {
  Level weakest = Level::kCounters;
  bool seen = false;
  for (const std::string& name : finding.metrics) {
    // Theory and ceilings are not observations of the candidate.
    const Scope scope = find_metric(name)->scope;
    if (scope == Scope::kTask || scope == Scope::kMachine) continue;
    const Observation* observation = view.kernel ? view.kernel->facts.find(name) : nullptr;
    if (observation == nullptr) observation = view.evidence.find(name);
    if (observation == nullptr) continue;
    seen = true;
    weakest = std::max(weakest, observation->level);
  }
  return seen ? weakest : Level::kTiming;
}

struct Pass {
  const Evidence& evidence;
  const Roofline& roof;
  const RunnerSettings& settings;
  const Account& account;
  ToolTarget target;
  View call;
  std::vector<View> kernels;  // at least one: the call's only kernel
};

// Threads times instructions; 0: unknown.
double work_in(const Evidence& facts) {
  return facts.get("launch__grid_size").value_or(0) * facts.get("launch__block_size").value_or(0) *
         facts.get("sass.instructions").value_or(0);
}

// Of the call's time. Where nothing timed the kernels of a call apart: by the work in their code,
// or else each is as likely the long one.
double likely_share(const View& view, const Pass& pass) {
  if (view.kernel == nullptr || view.kernel->facts.get("kernel.share")) return view.share();
  double all = 0;
  bool known = true;
  for (const KernelEvidence& each : pass.evidence.kernels) {
    const double work = work_in(each.facts);
    known = known && work > 0;
    all += work;
  }
  if (known && all > 0) return work_in(view.kernel->facts) / all;
  return 1.0 / static_cast<double>(std::max<std::size_t>(1, pass.evidence.kernels.size()));
}

const KernelAccount* account_of(const Account& account, const std::string& kernel) {
  if (account.kernels.size() == 1 && account.kernels[0].kernel.empty()) return &account.kernels[0];
  for (const KernelAccount& each : account.kernels) {
    if (each.kernel == kernel) return &each;
  }
  return nullptr;
}

Pass make_pass(const Evidence& evidence, const Roofline& roof, const RunnerSettings& settings,
               const Account& account) {
  View call{evidence, nullptr, roof, KernelModel(evidence, nullptr, roof)};
  if (account.known()) call.call = &account;
  if (evidence.kernels.empty()) call.account = account_of(account, "");
  Pass pass{evidence, roof, settings, account, target_of(evidence), call, {}};
  for (const KernelEvidence& kernel : evidence.kernels) {
    const View view{evidence,
                    &kernel,
                    roof,
                    KernelModel(evidence, &kernel, roof),
                    account_of(account, kernel.name),
                    call.call};
    if (!pass.kernels.empty() && view.share() < kLeastShare) continue;
    if (static_cast<int>(pass.kernels.size()) < kMostKernels) pass.kernels.push_back(view);
  }
  if (pass.kernels.empty()) pass.kernels.push_back(call);
  return pass;
}

// Converts a kernel's speedup to the call's (Amdahl's law).
double of_call(double speedup, double share) {
  if (share >= 1) return std::max(1.0, speedup);
  return 1 / (1 - share + share / std::max(1.0, speedup));
}

ToolRun look(const Tool& tool, const Pass& pass, const View& view, std::vector<Finding>* findings) {
  const std::string name(tool.name);
  std::vector<std::string> absent;
  for (const char* metric : tool.needs) {
    if (!view.get(metric)) absent.push_back(metric);
  }
  if (std::none_of(tool.one_of.begin(), tool.one_of.end(),
                   [&](const char* metric) { return view.get(metric).has_value(); })) {
    absent.insert(absent.end(), tool.one_of.begin(), tool.one_of.end());
  }
  if (!absent.empty()) {
    return {name, State::kNotEvaluable, missing_reason(view, absent)};
  }
  const Bound measured = view.model.bound();
  const unsigned classes = bit(pass.roof.theory) | bit(pass.roof.bound) | bit(measured);
  if ((tool.bounds & classes) == 0) {
    return {name, State::kFilteredOut,
            "not for a " +
                std::string(bound_name(measured == Bound::kUnknown ? pass.roof.bound : measured)) +
                "-bound " + (view.kernel ? "kernel" : "call")};
  }
  std::optional<Finding> finding = tool.analyse(view.facts());
  if (!finding) return {name, State::kSilent, ""};
  finding->tool = name;
  if (view.kernel != nullptr && pass.kernels.size() > 1) finding->kernel = view.kernel->name;
  if (const std::string problem = finding_problem(*finding); !problem.empty()) {
    return {name, State::kNotEvaluable, "a fault in the tool: " + problem};
  }
  if (!finding->prescriptions.empty()) {
    const FindingSites defined = definitions_of(view.facts(), finding->sites);
    finding->sites.insert(finding->sites.end(), defined.begin(), defined.end());
  }
  finding->level = weakest_level(view, *finding);
  // Times measured on a busy machine are not certain.
  const bool busy = pass.roof.foreign > 0 || view.get("load.gpu_processes").value_or(0) > 0;
  if (busy && finding->level == Level::kTiming) {
    finding->severity = std::min(finding->severity, Severity::kWarning);
  }
  if (view.account != nullptr && view.places()) {
    place_finding(*view.places(), *view.account, view.get("timing.median").value_or(0), &*finding);
  }
  finding->likely_speedup = of_call(finding->likely_speedup, likely_share(view, pass));
  finding->upper_speedup = of_call(finding->upper_speedup, view.share());
  if (!pass.roof.known() && tool.scope == Scope::kKernel && finding->upper_speedup > 1) {
    finding->upper_speedup *= kSecondary;
  }
  if (finding->another_unit) {
    finding->upper_speedup = std::max(1.0, finding->upper_speedup);
    finding->likely_speedup = std::clamp(finding->likely_speedup, 1.0, finding->upper_speedup);
  } else {
    if (tool.scope == Scope::kKernel && view.account != nullptr && pass.account.known()) {
      clamp_to_account(pass.account, *view.account, pass.roof, &*finding);
    }
    clamp_gains(pass.roof, &*finding);
  }
  if (!pass.roof.known() && tool.scope == Scope::kKernel) damp_near_limit(view.model, &*finding);
  finding->likely_speedup =
      pass.settings.record.calibrated(name, finding->likely_speedup, finding->upper_speedup);
  if (finding->likely_speedup < kLeastGain && !finding->stop) finding->severity = Severity::kInfo;
  findings->push_back(std::move(*finding));
  return {name, State::kFired, ""};
}

// A tool that fired for any kernel has fired; otherwise silent outranks not evaluable.
int rank_of(State state) {
  switch (state) {
    case State::kFired:
      return 3;
    case State::kSilent:
      return 2;
    case State::kNotEvaluable:
      return 1;
    default:
      return 0;
  }
}

ToolRun run_one(const Tool& tool, const Pass& pass, std::vector<Finding>* findings) {
  const std::string name(tool.name);
  if (pass.settings.disabled.contains(name)) return {name, State::kFilteredOut, "disabled"};
  if (tool.target != ToolTarget::kAny && pass.target != ToolTarget::kAny &&
      tool.target != pass.target) {
    return {name, State::kFilteredOut,
            tool.target == ToolTarget::kCpu ? "for the cpu target" : "for the cuda target"};
  }
  if (tool.scope == Scope::kCall) {
    // The call's only kernel is the call.
    const bool one = pass.evidence.kernels.size() == 1;
    return look(tool, pass, one ? pass.kernels.front() : pass.call, findings);
  }
  ToolRun best = look(tool, pass, pass.kernels.front(), findings);
  for (std::size_t i = 1; i < pass.kernels.size(); ++i) {
    ToolRun run = look(tool, pass, pass.kernels[i], findings);
    if (rank_of(run.state) > rank_of(best.state)) best = std::move(run);
  }
  return best;
}

bool fired(const Diagnosis& diagnosis, std::string_view tool) {
  return std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                     [&](const Finding& f) { return f.tool == tool; });
}

// A finding of `tool` was withheld. One about another kernel may stand.
void tell_withheld(Diagnosis* diagnosis, const std::string& tool, const std::string& reason) {
  if (fired(*diagnosis, tool)) return;
  for (ToolRun& run : diagnosis->tools) {
    if (run.tool == tool) run = {tool, State::kFilteredOut, "withheld: " + reason};
  }
}

template <class Which>
void withhold_if(Diagnosis* diagnosis, const std::string& reason, Which which) {
  std::set<std::string> tools;
  std::erase_if(diagnosis->findings, [&](const Finding& finding) {
    const bool gone = which(finding);
    if (gone) tools.insert(finding.tool);
    return gone;
  });
  for (const std::string& tool : tools) tell_withheld(diagnosis, tool, reason);
}

// Whether advice for one is advice for the other: a call holds all of its kernels.
bool meet(const Finding& a, const Finding& b) {
  return a.kernel == b.kernel || a.kernel.empty() || b.kernel.empty();
}

// Withholds conflicting or duplicate advice.
void resolve(Diagnosis* diagnosis) {
  for (const Precedence& rule : precedences()) {
    std::vector<Finding> winners;
    for (const Finding& finding : diagnosis->findings) {
      if (finding.tool == rule.winner) winners.push_back(finding);
    }
    const auto loses = [&](const Finding& finding) {
      return finding.tool == rule.loser &&
             std::any_of(winners.begin(), winners.end(),
                         [&](const Finding& winner) { return meet(winner, finding); });
    };
    if (rule.tag.empty()) {
      withhold_if(diagnosis, std::string(rule.reason), loses);
      continue;
    }
    for (Finding& finding : diagnosis->findings) {
      if (!loses(finding)) continue;
      std::erase_if(finding.prescriptions,
                    [&](const Prescription& p) { return p.tag == rule.tag; });
    }
    withhold_if(diagnosis, std::string(rule.reason), [&](const Finding& finding) {
      return loses(finding) && finding.prescriptions.empty();
    });
  }
}

bool is_catch_all(std::span<const Tool> table, std::string_view name) {
  return std::any_of(table.begin(), table.end(),
                     [&](const Tool& tool) { return tool.name == name && tool.catch_all; });
}

// At a ceiling nothing else matters, unless another unit has a higher one: the remaining gap is
// within the threshold of "at the ceiling".
// Without the task's work, counters show that a unit is at its limit, not that its work is needed:
// then a cause with this gain comes before the stop.
constexpr double kWorthMore = 1.25;

void apply_stop(std::span<const Tool> table, const Roofline& roof, Diagnosis* diagnosis) {
  const auto stop = std::find_if(diagnosis->findings.begin(), diagnosis->findings.end(),
                                 [](const Finding& f) { return f.stop; });
  if (stop == diagnosis->findings.end()) return;
  const auto cause = std::find_if(
      diagnosis->findings.begin(), diagnosis->findings.end(), [&](const Finding& finding) {
        return !finding.stop && !is_catch_all(table, finding.tool) &&
               (!roof.known() || finding.another_unit) && finding.likely_speedup >= kWorthMore;
      });
  if (cause != diagnosis->findings.end()) {
    withhold_if(diagnosis, cause->tool + " takes work from the busiest unit",
                [](const Finding& finding) { return finding.stop; });
    return;
  }
  withhold_if(diagnosis, stop->tool + " says to stop here",
              [](const Finding& finding) { return !finding.stop; });
}

// A finding explains the gap to the ceiling if it promises this fraction of it, in logarithms.
constexpr double kAccounted = 0.5;

// If counters name a cause that explains the gap, catch-alls add nothing.
void withhold_catch_alls(std::span<const Tool> table, const Roofline& roof, bool counted,
                         Diagnosis* diagnosis) {
  if (!counted || !roof.known()) return;
  const auto accounts = [&](const Finding& finding) {
    return !finding.stop && !is_catch_all(table, finding.tool) &&
           std::log(finding.likely_speedup) >= kAccounted * std::log(roof.headroom());
  };
  const auto cause = std::find_if(diagnosis->findings.begin(), diagnosis->findings.end(), accounts);
  if (cause == diagnosis->findings.end()) return;
  withhold_if(diagnosis, cause->tool + " explains the time",
              [&](const Finding& finding) { return is_catch_all(table, finding.tool); });
}

// Named causes before catch-alls, then by likely gain, largest first.
void rank(std::span<const Tool> table, Diagnosis* diagnosis) {
  withhold_if(diagnosis, "it could gain less than 2 %", [](const Finding& finding) {
    return !finding.stop && finding.upper_speedup < kLeastGain;
  });
  std::stable_sort(diagnosis->findings.begin(), diagnosis->findings.end(),
                   [&](const Finding& a, const Finding& b) {
                     const bool a_last = is_catch_all(table, a.tool);
                     if (a_last != is_catch_all(table, b.tool)) return !a_last;
                     if (a.likely_speedup != b.likely_speedup) {
                       return a.likely_speedup > b.likely_speedup;
                     }
                     return a.tool < b.tool;
                   });
  while (diagnosis->findings.size() > kMostFindings) {
    const std::string tool = diagnosis->findings.back().tool;
    diagnosis->findings.pop_back();
    tell_withheld(diagnosis, tool, "other findings promise more");
  }
}

constexpr double kBusyUnit = 0.6;  // of what good kernels reach: it does not wait for latencies

// Those of the GPU's data sheet, where nothing was measured on it.
bool has_nominal_ceilings(const Evidence& evidence) {
  const Observation* ceiling = evidence.find("ceiling.copy_bandwidth");
  return ceiling != nullptr && contains(ceiling->source, "nominal");
}

// How a candidate on matrix units reaches its ceiling, where that is not by the products' own type.
std::string how_on_matrix_units(const Evidence& evidence) {
  if (multiplies_in_parts(evidence)) {
    return " It multiplies fp32 operands in parts on matrix units: the ceiling is that of three "
           "products of fp16 parts for each product.";
  }
  if (evidence.get("task.tf32").value_or(0) <= 0 || !uses_matrix_units(evidence)) return "";
  return " The ceiling is that of one product of fp16 operands, scaled by powers of two, which "
         "have "
         "TF32's bits; products of TF32 itself reach about half of it.";
}

std::string summarize(const Roofline& roof, const KernelModel& model, const Evidence& evidence) {
  if (!roof.known() && model.counted()) {
    return "The bytes and operations that the task needs are not known; estimated from hardware "
           "counters, the longest kernel's busiest unit, " +
           std::string(resource_name(model.busiest())) + ", is at " + percent(model.demand()) +
           " of what good kernels reach.";
  }
  if (!roof.known()) {
    return "The roofline cannot be drawn: a time, a ceiling or the task's bytes are missing.";
  }
  const std::string theory = roof.theory == Bound::kMixed
                                 ? "memory and arithmetic bound this task about equally"
                                 : std::string(bound_name(roof.theory)) + " bounds this task";
  std::string text =
      "In theory " + theory + "; the call takes " + human_us(roof.time_us) +
      (has_nominal_ceilings(evidence) ? ", the GPU's nominal peaks" : ", the measured ceilings") +
      " allow " + human_us(roof.floor_us) + " (" + (roof.fraction >= 1 ? "at the ceiling, " : "") +
      ceiling_share(roof.fraction) + " of the ceiling).";
  if (const std::string note = ceiling_note(roof.fraction); !note.empty()) {
    text += " Above 100 %, " + note + ".";
  }
  text += how_on_matrix_units(evidence);
  if (roof.less_work) {
    text +=
        " It takes less than the arithmetic of the definition would (" +
        human_us(roof.compute_floor_us) +
        "), so it does less arithmetic; how much it must do is unknown, and only memory counts.";
  }
  if (roof.bound == Bound::kLaunch) text += " Its many short kernels make it launch-bound.";
  const bool busy = model.counted() && model.demand() >= kBusyUnit;
  if (roof.bound == Bound::kLatency && !busy) {
    text += " It is far from any ceiling: latency-bound.";
  }
  if (roof.foreign > 0) {
    text += " During the measurement other processes used " + percent(roof.foreign) +
            " of this machine, so the call may take less time on a quiet one.";
  }
  if (model.counted() && roof.fraction < 0.9) {
    text += " Its busiest resource is " + std::string(resource_name(model.busiest())) + " (" +
            percent(model.demand()) + " of what good kernels reach).";
  }
  return text;
}

}  // namespace

std::string finding_problem(const Finding& finding) {
  if (finding.cause.empty()) return "no cause";
  if (!std::isfinite(finding.likely_speedup) || !std::isfinite(finding.upper_speedup)) {
    return "a gain that is not a number";
  }
  for (const std::string& metric : finding.metrics) {
    if (find_metric(metric) == nullptr) return "unknown metric " + metric;
  }
  if (finding.prescriptions.empty()) return "no prescription";
  for (const Prescription& prescription : finding.prescriptions) {
    if (find_tag(prescription.tag) == nullptr) return "unknown tag " + prescription.tag;
    if (prescription.text.empty()) return "an empty prescription";
  }
  return "";
}

Diagnosis run_tools(const Evidence& evidence, std::span<const Tool> table,
                    const RunnerSettings& settings) {
  const Roofline roof = roofline(evidence);
  Diagnosis diagnosis;
  diagnosis.bound = roof.bound;
  diagnosis.floor_us = roof.floor_us;
  diagnosis.fraction_of_ceiling = roof.fraction;
  diagnosis.account = make_account(evidence, roof);
  const Pass pass = make_pass(evidence, roof, settings, diagnosis.account);
  diagnosis.summary = summarize(roof, pass.kernels.front().model, evidence);
  for (const Tool& tool : table) {
    diagnosis.tools.push_back(run_one(tool, pass, &diagnosis.findings));
  }
  apply_stop(table, roof, &diagnosis);
  resolve(&diagnosis);
  withhold_catch_alls(table, roof, pass.kernels.front().model.counted(), &diagnosis);
  rank(table, &diagnosis);
  return diagnosis;
}

Diagnosis diagnose(const Evidence& evidence, const ToolRecord& record) {
  RunnerSettings settings;
  settings.record = record;
  Diagnosis diagnosis = run_tools(evidence, tools(), settings);
  diagnosis.record = record.hash();
  return diagnosis;
}

Diagnosis diagnose(const Evaluation& evaluation, const Evidence& evidence,
                   const ToolRecord& record) {
  if (evaluation.correct() != nullptr) return diagnose(evidence, record);
  Diagnosis diagnosis;
  diagnosis.summary = outcome_summary(evaluation.outcome);
  return diagnosis;
}

}  // namespace kernelpro
