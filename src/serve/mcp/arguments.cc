// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp/arguments.h"

#include "base/text.h"
#include "core/evaluation/label.h"
#include "core/machine/ceiling_json.h"
#include "report/view.h"
#include "write/prompt/prompt.h"

namespace kernelpro {

namespace {

constexpr std::size_t kLogShown = 3000;
constexpr std::size_t kReasonShown = 1500;
constexpr std::size_t kIdeaShown = 300;

std::string interval(const Correct::Versus& versus) {
  return speedup_text(versus.ratio) + " (" + speedup_text(versus.low) + " to " +
         speedup_text(versus.high) + ")";
}

// The candidate that this one was timed against.
Sitting::RowPtr incumbent_of(const Sitting& sitting, const Correct::Versus& versus) {
  for (const auto& row : sitting.rows()) {
    if (row->known.candidate.content_hash() == versus.incumbent) return row;
  }
  return nullptr;
}

std::string details_text(const Outcome& outcome) {
  if (const auto* error = std::get_if<CompileError>(&outcome)) {
    return fenced(clip(printable(error->log), kLogShown));
  }
  if (const auto* crash = std::get_if<Crashed>(&outcome)) {
    if (trim(crash->output).empty()) return "";
    return "It printed:\n" + fenced(clip(printable(crash->output), kReasonShown));
  }
  return "";
}

}  // namespace

TaskChoice task_choice(const Json& arguments) {
  const JsonReader given(arguments);
  return {given.text("task"), given.text("target"), precision_from_name(given.text("precision"))};
}

std::string row_line(const Sitting::Row& row) {
  const Evaluation& evaluation = row.known.evaluation;
  if (evaluation.correct() == nullptr) {
    return clip(first_line(printable(outcome_summary(evaluation.outcome))), kIdeaShown);
  }
  std::string text = human_us(score_us(evaluation)) + " a call";
  if (row.speedup > 0) {
    text += ", " + speedup_text(row.speedup) +
            (row.start_failed ? " the first correct one" : " the start");
  }
  return text;
}

std::string row_text(const Sitting& sitting, const Sitting::Row& row) {
  const Known& known = row.known;
  const Correct* correct = known.evaluation.correct();
  std::string text = "Candidate " + std::to_string(known.id) + ": ";
  if (correct == nullptr) {
    const bool compiles = !std::holds_alternative<CompileError>(known.evaluation.outcome);
    text +=
        compiles ? outcome_text(known.evaluation.outcome, ".", kReasonShown) : "does not compile.";
    text += "\n" + details_text(known.evaluation.outcome);
  } else {
    text += "correct, " + row_line(row) + ".\n";
    if (correct->versus) {
      const auto incumbent = incumbent_of(sitting, *correct->versus);
      text += interval(*correct->versus) + " the speed of " +
              (incumbent ? "candidate " + std::to_string(incumbent->known.id) : "the best then") +
              ", measured in turn.\n";
    }
    for (const std::string& label : correct->labels) {
      text += "Label " + label + ": " + std::string(label_meaning(label)) + "\n";
    }
    for (const std::string& note : correct->notes) text += "Note: " + one_line(note) + "\n";
  }
  const auto best = sitting.best();
  if (best == nullptr) {
    text += "Nothing is correct yet.\n";
  } else if (best->known.id == known.id) {
    text += "It is the best so far.\n";
  } else {
    text +=
        "The best is candidate " + std::to_string(best->known.id) + ": " + row_line(*best) + ".\n";
  }
  return text;
}

Json row_json(const Sitting& sitting, const Sitting::Row& row) {
  const Known& known = row.known;
  const Evaluation& evaluation = known.evaluation;
  Json json = {{"candidate", known.id},
               {"parent", known.candidate.origin.parent},
               {"outcome", outcome_name(evaluation.outcome)}};
  const Correct* correct = evaluation.correct();
  if (correct == nullptr) {
    json["reason"] =
        std::holds_alternative<CompileError>(evaluation.outcome)
            ? clip(printable(std::get<CompileError>(evaluation.outcome).log), kLogShown)
            : clip(printable(outcome_summary(evaluation.outcome)), kReasonShown);
  } else {
    json["time_us"] = score_us(evaluation);
    json["speedup"] = row.speedup;
    if (correct->versus) {
      const auto incumbent = incumbent_of(sitting, *correct->versus);
      json["versus"] = {{"candidate", incumbent ? incumbent->known.id : 0},
                        {"ratio", correct->versus->ratio},
                        {"low", correct->versus->low},
                        {"high", correct->versus->high}};
    }
    json["labels"] = correct->labels;
    put_fraction(known.diagnosis.fraction_of_ceiling, &json);
    json["bound"] = bound_name(known.diagnosis.bound);
    json["summary"] = printable(known.diagnosis.summary);
    Json findings = Json::array();
    for (const Finding& finding : known.diagnosis.findings) {
      Json steps = Json::array();
      for (const Prescription& step : finding.prescriptions) {
        steps.push_back({{"tag", step.tag}, {"text", step.text}, {"not_when", step.not_when}});
      }
      findings.push_back({{"tool", finding.tool},
                          {"severity", severity_name(finding.severity)},
                          {"cause", finding.cause},
                          {"where", sites_text(finding.sites)},
                          {"likely_speedup", finding.likely_speedup},
                          {"upper_speedup", finding.upper_speedup},
                          {"prescriptions", std::move(steps)}});
    }
    json["findings"] = std::move(findings);
  }
  const auto best = sitting.best();
  json["best"] = best ? Json(best->known.id) : Json(nullptr);
  return json;
}

}  // namespace kernelpro
