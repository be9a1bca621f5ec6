// SPDX-License-Identifier: Apache-2.0
#include "measure/station/measurement.h"

#include "base/cancel.h"
#include "measure/station/energy.h"
#include "measure/station/unless_killed.h"

namespace kernelpro {

namespace {

// Counters cost a tenth of a second. Only kernels that others will be derived from are worth them:
// the best one and, where PyTorch leads, the best one with a source to change.
bool worth_counters(const StationSettings& settings, const MeasureOrder& order,
                    const Evaluation& evaluation) {
  const Correct* correct = evaluation.correct();
  if (correct == nullptr) return false;
  if (settings.profile_each) return true;
  if (!correct->versus || correct->versus->low > 1) return true;
  const double own = order.incumbent_us > 0 && correct->versus->ratio > 0
                         ? order.incumbent_us / correct->versus->ratio
                         : score_us(evaluation);
  return order.fastest_source_us <= 0 || own < order.fastest_source_us;
}

}  // namespace

Result<Measured> carry_out(const Task& task, const StationSettings& settings, Target* target,
                           const MeasureOrder& order, const Phase& phase) {
  const auto enter = [&](const char* name) {
    if (phase) phase(name);
  };
  Measured measured;
  const BuiltKernel& built = order.built;
  if (!built.built) return tl::unexpected<Error>(built.built.error());
  if (const auto* error = std::get_if<CompileError>(&*built.built)) {
    measured.evaluation.emplace();
    measured.evaluation->outcome = *error;
    measured.evaluation->compile_ms = built.compile_ms;
    return measured;
  }
  measured.subject = std::get<Subject>(*built.built);
  const Subject& subject = measured.subject;
  const Subject* versus = order.incumbent ? &*order.incumbent : nullptr;
  if (order.as_before) {
    measured.evaluation = order.as_before;
  } else {
    enter("checking and timing");
    const auto disassembling = observe_ahead(task, settings.target, subject);
    auto evaluated = unless_killed([&] { return target->evaluator->evaluate(subject, versus); });
    // A worker that was ended from outside is no evidence about the candidate.
    if (cancel_requested()) return measured;
    if (!evaluated) return tl::unexpected<Error>(std::move(evaluated.error()));
    measured.evaluation = std::move(*evaluated);
    measured.evaluation->code = order.code;
    enter("measuring energy");
    KP_TRY(add_energy(target->evaluator.get(), settings.objective, subject, versus, EnergyPlan(),
                      &*measured.evaluation));
  }
  measured.evaluation->compile_ms = built.compile_ms;
  enter("diagnosing");
  const bool counters = worth_counters(settings, order, *measured.evaluation);
  measured.evidence = observe(task, settings.target, target, subject, *measured.evaluation,
                              counters ? settings.counters : CounterSet::kOff);
  measured.ceilings = target->ceilings;
  return measured;
}

}  // namespace kernelpro
