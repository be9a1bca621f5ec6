// SPDX-License-Identifier: Apache-2.0
// Measures the winner in cases that the search did not see.
#include "base/cancel.h"
#include "measure/station/unless_killed.h"
#include "run/bench.h"

namespace kernelpro {

namespace {

// Both kernels in one case; the start's outcome matters only for the comparison.
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
      one.problem = evaluation.error().message;  // for example, a case too large for this machine
    }
  }
  return true;
}

}  // namespace kernelpro
