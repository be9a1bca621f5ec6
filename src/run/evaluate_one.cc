// SPDX-License-Identifier: Apache-2.0
#include "run/evaluate_one.h"

#include <algorithm>

#include "base/text.h"
#include "core/knobs.h"
#include "diagnose/diagnose.h"
#include "run/loop.h"

namespace kernelpro {

namespace {

Result<KnobValues> values_with(const std::vector<Knob>& knobs, const KnobValues& overrides) {
  KnobValues values = default_values(knobs);
  for (const auto& [name, value] : overrides) {
    const auto knob = std::find_if(knobs.begin(), knobs.end(),
                                   [&](const Knob& each) { return each.name == name; });
    if (knob == knobs.end()) {
      std::vector<std::string> names;
      for (const Knob& each : knobs) names.push_back(each.name);
      return fail(ErrorKind::kBadInput, "the kernel declares no knob " + name,
                  names.empty() ? "declare one: // @knob " + name + " " + value
                                : "its knobs are: " + join_text(names, " "));
    }
    if (std::find(knob->values.begin(), knob->values.end(), value) == knob->values.end()) {
      return fail(ErrorKind::kBadInput, "the knob " + name + " has no value " + value,
                  "its values are: " + join_text(knob->values, " "));
    }
    values[name] = value;
  }
  return values;
}

Result<Candidate> candidate_of(const Task& task, TargetKind target, const std::string& source,
                               const KnobValues& overrides) {
  auto knobs = parse_knobs(source, reserved_names(task));
  if (!knobs) return tl::unexpected<Error>(std::move(knobs.error()));
  auto values = values_with(*knobs, overrides);
  if (!values) return tl::unexpected<Error>(std::move(values.error()));
  Candidate candidate;
  candidate.language = target == TargetKind::kCpu ? Language::kCpp : Language::kCuda;
  candidate.source = source;
  candidate.knobs = std::move(*values);
  candidate.origin.proposer = "given";
  return candidate;
}

// The starting kernel to compare with; nullopt when there is none, it is the same, or it fails.
std::optional<Subject> starting_subject(const Task& task, TargetKind kind, const Target& target,
                                        const Candidate& given) {
  const auto start = start_candidate(task, kind);
  if (!start || start->content_hash() == given.content_hash()) return std::nullopt;
  double compile_ms = 0;
  auto built = build(task, kind, *target.compiler, *start, &compile_ms);
  if (!built || !std::holds_alternative<Subject>(*built)) return std::nullopt;
  Subject subject = std::get<Subject>(std::move(*built));
  const auto evaluation = target.evaluator->evaluate(subject, nullptr);
  if (!evaluation || evaluation->correct() == nullptr) return std::nullopt;
  return subject;
}

}  // namespace

Result<EvaluateOneResult> evaluate_one(const Task& task, TargetKind kind, const std::string& source,
                                       const KnobValues& overrides, const RunSettings& settings,
                                       const TargetMaker& maker) {
  auto candidate = candidate_of(task, kind, source, overrides);
  if (!candidate) return tl::unexpected<Error>(std::move(candidate.error()));
  RunSettings for_target = settings;
  for_target.target = kind;
  auto target = maker(task, for_target);
  if (!target) return tl::unexpected<Error>(std::move(target.error()));
  KP_TRY(target->evaluator->prepare());
  EvaluateOneResult result;
  result.candidate = std::move(*candidate);
  result.machine = *target->machine;
  double compile_ms = 0;
  auto built = build(task, kind, *target->compiler, result.candidate, &compile_ms);
  if (!built) return tl::unexpected<Error>(std::move(built.error()));
  if (auto* error = std::get_if<CompileError>(&*built)) {
    result.evaluation.outcome = std::move(*error);
  } else {
    const Subject& subject = std::get<Subject>(*built);
    const auto start = starting_subject(task, kind, *target, result.candidate);
    auto evaluation = target->evaluator->evaluate(subject, start ? &*start : nullptr);
    if (!evaluation) return tl::unexpected<Error>(std::move(evaluation.error()));
    result.evaluation = std::move(*evaluation);
    result.evidence = observe(task, kind, *target, subject, result.evaluation);
  }
  result.evaluation.compile_ms = compile_ms;
  if (result.evaluation.correct() != nullptr) {
    result.diagnosis = diagnose(result.evidence);
  } else {
    result.diagnosis.summary = outcome_summary(result.evaluation.outcome);
  }
  return result;
}

}  // namespace kernelpro
