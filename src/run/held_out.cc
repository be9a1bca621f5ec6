// SPDX-License-Identifier: Apache-2.0
#include "run/held_out.h"

#include <algorithm>

#include "base/cancel.h"
#include "base/statistics.h"
#include "base/text.h"
#include "core/json.h"
#include "run/bench.h"
#include "run/unless_killed.h"

namespace kernelpro {

namespace {

bool failed(const HeldOut& one) {
  return one.problem.empty() && one.evaluation.correct() == nullptr;
}

const Correct::Versus* versus(const HeldOut& one) {
  const Correct* correct = one.problem.empty() ? one.evaluation.correct() : nullptr;
  return correct != nullptr && correct->versus ? &*correct->versus : nullptr;
}

// Both in one case; an outcome of the start is no concern but for the comparison.
Result<Evaluation> both(const Task& task, TargetKind kind, Target& target, const Candidate& winner,
                        const Candidate& start) {
  KP_TRY(target.evaluator->prepare());
  std::vector<Subject> subjects;
  for (const Candidate* each : {&winner, &start}) {
    const BuiltKernel now = build_kernel(task, kind, *target.compiler, *each);
    if (!now.built) return tl::unexpected<Error>(now.built.error());
    if (const auto* error = std::get_if<CompileError>(&*now.built)) {
      if (each == &start) break;
      Evaluation evaluation;
      evaluation.outcome = *error;
      return evaluation;
    }
    subjects.push_back(std::get<Subject>(*now.built));
  }
  const bool same = winner.content_hash() == start.content_hash();
  bool compare = subjects.size() == 2 && !same;
  if (compare) {
    const auto alone =
        unless_killed([&] { return target.evaluator->evaluate(subjects[1], nullptr); });
    if (!alone) return alone;
    compare = alone->correct() != nullptr;
  }
  return unless_killed([&] {
    return compare ? target.evaluator->confirm(subjects[0], subjects[1])
                   : target.evaluator->evaluate(subjects[0], nullptr);
  });
}

}  // namespace

Result<bool> Bench::measure_held_out(const Known& winner, std::vector<HeldOut>* cases) {
  if (parts_.maker == nullptr) return true;
  for (const Task& task : held_out_tasks(*parts_.task, parts_.settings->target)) {
    if (stopped() || cancel_requested()) return false;
    phase("measuring a held-out case");
    auto target = (*parts_.maker)(task, *parts_.settings);
    if (!target) return tl::unexpected<Error>(std::move(target.error()));
    HeldOut& one = cases->emplace_back(HeldOut{task.cases.front().name, {}});
    auto evaluation = both(task, parts_.settings->target, *target, winner.candidate,
                           ledger_.baseline()->candidate);
    if (cancel_requested() || (evaluation && ended_with_us(*evaluation))) return false;
    if (evaluation) {
      one.evaluation = std::move(*evaluation);
    } else {
      one.problem = evaluation.error().message;  // a case too large for this machine, say
    }
  }
  return true;
}

double held_out_speedup(const std::vector<HeldOut>& cases) {
  std::vector<double> ratios;
  for (const HeldOut& one : cases) {
    if (versus(one) == nullptr) return 0;
    ratios.push_back(versus(one)->ratio);
  }
  return ratios.empty() ? 0 : geometric_mean(ratios);
}

bool held_out_failed(const std::vector<HeldOut>& cases) {
  return std::any_of(cases.begin(), cases.end(), failed);
}

std::string held_out_outcome(const HeldOut& one) {
  if (!one.problem.empty()) return "not measured: " + one.problem;
  if (failed(one)) return "FAILED: " + outcome_summary(one.evaluation.outcome);
  const std::string time = human_us(score_us(one.evaluation)) + " a call";
  const Correct::Versus* v = versus(one);
  if (v == nullptr) return time;
  return number(v->ratio, 3) + "x the start (95 % interval " + number(v->low, 3) + " to " +
         number(v->high, 3) + "), " + time;
}

std::string held_out_text(const std::vector<HeldOut>& cases) {
  if (cases.empty()) return "";
  std::string text;
  for (const HeldOut& one : cases) {
    text += "held out: case " + one.case_name + ": " + printable(held_out_outcome(one)) + "\n";
  }
  if (const double mean = held_out_speedup(cases); mean > 0 && cases.size() > 1) {
    text += "held out: " + number(mean, 3) + "x the start over all " +
            std::to_string(cases.size()) + " (geometric mean)\n";
  }
  if (held_out_failed(cases)) {
    text +=
        "held out: the winner holds only for the sizes that the search knew. Use it for those "
        "alone, or leave held_out out of the case that failed and search again in a new run.\n";
  }
  return text;
}

std::string held_out_to_json(const std::vector<HeldOut>& cases) {
  Json all = Json::array();
  for (const HeldOut& one : cases) {
    Json json = {{"case", one.case_name}, {"text", held_out_outcome(one)}};
    if (one.problem.empty()) {
      json["outcome"] = outcome_name(one.evaluation.outcome);
      json["time_us"] = score_us(one.evaluation);
    } else {
      json["problem"] = one.problem;
    }
    if (const Correct::Versus* v = versus(one)) {
      json["speedup"] = v->ratio;
      json["speedup_low"] = v->low;
      json["speedup_high"] = v->high;
    }
    all.push_back(std::move(json));
  }
  return dump_json({{"speedup", held_out_speedup(cases)},
                    {"failed", held_out_failed(cases)},
                    {"cases", std::move(all)}});
}

}  // namespace kernelpro
