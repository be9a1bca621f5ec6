// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/prompt.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "core/evidence/metrics.h"
#include "core/finding/change.h"
#include "write/prompt/advice.h"
#include "write/prompt/recall.h"

namespace kernelpro {

namespace {

constexpr std::size_t kTriedShown = 40;
constexpr std::size_t kIdeaShown = 400;
constexpr std::size_t kLogShown = 1500;
constexpr std::size_t kFailureShown = 4000;
constexpr std::size_t kDefinitionShown = 20000;

std::string speed(const Known& known, const ProposalRequest& request) {
  const double time = comparable_us(known);
  if (time <= 0 || request.baseline == nullptr) return "";
  return number(comparable_us(*request.baseline) / time, 3) + "x the start";
}

// One line of about this many bytes, cut between words.
std::string brief(const std::string& text) {
  const std::string line = one_line(text);
  if (line.size() <= kIdeaShown) return line;
  const std::size_t space = line.rfind(' ', kIdeaShown);
  return (space == std::string::npos ? "" : line.substr(0, space)) + " ...";
}

std::string tried_line(const Known& known, const ProposalRequest& request) {
  const Origin& origin = known.candidate.origin;
  std::string line = "- " + std::to_string(known.id);
  if (origin.parent != 0) line += " (from " + std::to_string(origin.parent) + ")";
  line += ": " + (origin.idea.empty() ? origin.proposer : brief(idea_text(origin)));
  if (!known.candidate.knobs.empty()) line += " [" + knobs_to_text(known.candidate.knobs) + "]";
  const std::string outcome =
      known.evaluation.correct() != nullptr
          ? human_us(score_us(known.evaluation)) + ", " + speed(known, request)
          : outcome_summary(known.evaluation.outcome);
  const std::vector<std::string> first = lines(printable(outcome));
  return line + " => " + (first.empty() ? outcome_name(known.evaluation.outcome) : first[0]) + "\n";
}

std::string tried(const ProposalRequest& request) {
  if (!request.memory) return "- not shown: this run goes without memory\n";
  const History shown = worth_telling(request, kTriedShown);
  std::string text;
  if (shown.size() < request.history.size()) {
    text = "- (" + std::to_string(request.history.size() - shown.size()) +
           " are left out that are less related to candidate " +
           std::to_string(request.parent->id) + ")\n";
  }
  for (const KnownPtr& known : shown) text += tried_line(*known, request);
  return text.empty() ? "- nothing yet\n" : text;
}

std::string log_block(const CompileError& failed) {
  return fenced(clip(printable(failed.log), kLogShown));
}

std::string standing(const ProposalRequest& request) {
  const Known& parent = *request.parent;
  std::string text = "Candidate " + std::to_string(parent.id) + ": " +
                     outcome_text(parent.evaluation.outcome, ".", kFailureShown);
  if (!parent.candidate.knobs.empty()) {
    text += "\nIt ran with " + knobs_to_text(parent.candidate.knobs) +
            "; a reply runs with the first value of each knob that it declares.";
  }
  if (const auto* failed = std::get_if<CompileError>(&parent.evaluation.outcome)) {
    text += "\n" + std::string(trim(log_block(*failed)));
  }
  if (request.best != nullptr) {
    const Known& best = *request.best;
    text += "\nThe best so far is candidate " + std::to_string(best.id) + ", " +
            human_us(score_us(best.evaluation)) + " a call, " + speed(best, request) + ".";
  }
  return text;
}

// "float32 [16, 1024]" from the last case for a module, whose tensors have no expressions.
std::string shape_text(const Task& task, std::size_t i) {
  const Tensor& tensor = task.tensors[i];
  if (task.cases.empty() || task.cases.back().shapes.size() <= i) {
    return join_text(tensor.shape, ", ");
  }
  std::vector<std::string> sizes;
  for (const std::int64_t size : task.cases.back().shapes[i]) sizes.push_back(std::to_string(size));
  return join_text(sizes, ", ");
}

// The PyTorch module of a task, if any: its source, and its tensors' names in Args.
std::string definition(const Task& task) {
  if (!task.module) return "";
  std::string text = "\n## What it computes\nThis PyTorch module is the definition:\n\n" +
                     fenced(clip(task.module->source, kDefinitionShown), "python") +
                     "\nIts tensors in `Args`:\n";
  for (std::size_t i = 0; i < task.tensors.size(); ++i) {
    const Tensor& tensor = task.tensors[i];
    text += "  - `" + tensor.name + "`: " + std::string(role_name(tensor.role)) + ", " +
            std::string(dtype_name(tensor.dtype)) + " [" + shape_text(task, i) + "], row-major\n";
  }
  const Case* last = task.cases.empty() ? nullptr : &task.cases.back();
  if (last != nullptr && !last->constants.empty()) {
    text += "Other arguments of forward are constants in `task.h`:";
    for (const auto& [name, value] : last->constants) text += " " + name + " = " + value;
    text += "\n";
  }
  if (!task.module->note.empty()) text += "Note: " + one_line(task.module->note) + ".\n";
  return text;
}

std::string_view precision_rule(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "every product and sum in fp32 or better; no TF32, no half precision";
    case Precision::kTf32:
      return "products may be rounded to TF32; sums in fp32";
    case Precision::kFp16:
      return "products in fp16, sums in fp32";
    case Precision::kBf16:
      return "products in bf16, sums in fp32";
  }
  return "";
}

std::string contract(const Task& task) {
  std::string text = "  - precision: " + std::string(precision_rule(task.precision)) + "\n";
  for (std::size_t i = 0; i < task.tensors.size(); ++i) {
    const Tensor& tensor = task.tensors[i];
    if (tensor.role != Role::kOutput) continue;
    text += "  - `" + tensor.name + "` (" + std::string(dtype_name(tensor.dtype)) + " [" +
            shape_text(task, i) + "]): ";
    text += is_floating(tensor.dtype)
                ? "|out - r| <= " + number(tolerance_of(tensor, task.precision)) +
                      " * max(|r|, root mean square of r)\n"
                : "equal\n";
  }
  return text;
}

std::string cases(const Task& task, TargetKind target) {
  std::string text;
  for (const Case* c : cases_for(task, target)) {
    text += "  - " + c->name + (c->timed ? " (timed):" : ":");
    for (const auto& [name, value] : c->dims) text += " " + name + "=" + std::to_string(value);
    text += "\n";
  }
  return text;
}

constexpr std::size_t kMetricsShown = 200;
constexpr std::size_t kKernelsShown = 3;

std::string metric_rows(const Evidence& evidence) {
  std::string text = "| metric | value | unit |\n|---|---|---|\n";
  std::size_t rows = 0;
  for (const auto& [name, item] : evidence.items()) {
    if (++rows > kMetricsShown) break;
    const Metric* metric = find_metric(name);
    text += "| " + name + " | " + number(item.value, 6) + " | " +
            std::string(metric != nullptr ? metric->unit : "") + " |\n";
  }
  return text;
}

// All measurements, uninterpreted: the alternative to a diagnosis.
std::string metric_tables(const std::optional<Evidence>& evidence) {
  if (!evidence || (evidence->items().empty() && evidence->kernels.empty())) return "";
  std::string text = "## What was measured\n" + metric_rows(*evidence);
  for (std::size_t i = 0; i < std::min(evidence->kernels.size(), kKernelsShown); ++i) {
    text += "\nKernel `" + one_line(evidence->kernels[i].name) + "`:\n\n" +
            metric_rows(evidence->kernels[i].facts);
  }
  return text;
}

// Of the parent, against its own parent.
std::string last_change(const Known& known, const History& history) {
  const Origin& origin = known.candidate.origin;
  for (const KnownPtr& before : history) {
    if (before->id != origin.parent || origin.parent == 0) continue;
    return change_to_text(what_changed(before->diagnosis, known.diagnosis, origin.answers,
                                       drift_between(*before, known)));
  }
  return "";
}

std::string feedback_text(const ProposalRequest& request) {
  switch (request.feedback) {
    case Feedback::kNone:
      return "";
    case Feedback::kRaw:
      return metric_tables(request.evidence);
    case Feedback::kDiagnosed:
      break;
  }
  const std::string change = request.memory ? last_change(*request.parent, request.history) : "";
  const std::string diagnosis = diagnosis_to_text(request.parent->diagnosis);
  return change.empty() ? diagnosis : change + "\n" + diagnosis;
}

}  // namespace

PromptFields prompt_fields(const ProposalRequest& request, const Prompts& prompts) {
  const Known& parent = *request.parent;
  const LanguageRow& written = language_row(parent.candidate.language);
  const LanguageRow& wanted = native_language(request.target);
  PromptFields fields = {
      {"task", request.task->name},
      {"summary", request.task->summary},
      {"target", std::string(target_name(request.target))},
      {"parent", std::to_string(parent.id)},
      {"parent_file", "parent." + std::string(written.extension)},
      {"definition", definition(*request.task)},
      {"standing", standing(request)},
      {"focus", request.focus.empty()
                    ? "Whatever promises most. Others may be asked about the same candidate: an "
                      "unusual idea is worth more than the first one."
                    : request.focus},
      {"diagnosis", feedback_text(request)},
      {"tried", tried(request)},
      {"memory", memory_text(request)},
      {"language", std::string(wanted.title)},
      {"entry", std::string(wanted.signature)},
      {"contract", contract(*request.task)},
      {"cases", cases(*request.task, request.target)},
      {"extension", std::string(wanted.extension)},
      {"header", request.task_header},
      {"source", fenced(parent.candidate.source, written.fence)}};
  fields.merge(advice_fields(*request.task, request.target,
                             request.machine ? &*request.machine : nullptr, prompts));
  if (parent.evaluation.correct() == nullptr) {
    fields["cures"] = cures_text(request, failure_text(parent.evaluation.outcome));
  }
  if (!wanted.forms.empty()) {
    fields["forms"] = std::string(trim(prompts.fill(std::string(wanted.forms), fields))) + "\n";
  }
  fields["rules"] = prompts.fill("rules", fields);
  return fields;
}

std::string exchange_prompt(const ProposalRequest& request, const std::string& number,
                            const Prompts& prompts) {
  PromptFields fields = prompt_fields(request, prompts);
  fields["number"] = number;
  return prompts.fill("exchange", fields);
}

std::string task_prompt(const PromptFields& fields, const Prompts& prompts,
                        const std::string& library) {
  PromptFields all = fields;
  all["library"] = library;
  return prompts.fill("task", all);
}

std::string outcome_text(const Outcome& outcome, const std::string& end, std::size_t most) {
  const std::string summary = printable(outcome_summary(outcome));
  const std::size_t line_end = std::min(summary.find('\n'), summary.size());
  const std::string_view rest = trim(std::string_view(summary).substr(line_end));
  const std::string first = clip(summary.substr(0, line_end), most) + end;
  return rest.empty() ? first : first + "\n" + std::string(trim(fenced(clip(rest, most))));
}

std::string failure_text(const Outcome& outcome) {
  std::string text = outcome_text(outcome, "", kFailureShown) + "\n";
  std::string more;
  if (const auto* failed = std::get_if<CompileError>(&outcome)) {
    text = "It does not compile:\n";
    more = failed->log;
  } else if (const auto* crashed = std::get_if<Crashed>(&outcome)) {
    more = crashed->output;
  }
  if (trim(more).empty()) return text;
  return text + "\n" + fenced(clip(printable(more), kFailureShown));
}

std::string result_text(const Known& known, const ProposalRequest& request) {
  std::string text = "# Candidate " + std::to_string(known.id) + ": " +
                     outcome_text(known.evaluation.outcome, "", kFailureShown) + "\n";
  if (known.evaluation.correct() != nullptr) {
    text +=
        "\n" + human_us(score_us(known.evaluation)) + " a call, " + speed(known, request) + ".\n";
    if (request.feedback == Feedback::kDiagnosed) {
      const std::string change = last_change(known, request.history);
      text += (change.empty() ? "" : "\n" + change) + "\n" + diagnosis_to_text(known.diagnosis);
    }
  } else if (const auto* failed = std::get_if<CompileError>(&known.evaluation.outcome)) {
    text += "\n" + log_block(*failed);
  }
  return text;
}

std::string definition_text(const Task& task) { return definition(task); }

std::string contract_text(const Task& task) { return contract(task); }

}  // namespace kernelpro
