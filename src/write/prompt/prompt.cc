// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/prompt.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "core/evidence/metrics.h"
#include "core/finding/change.h"
#include "write/prompt/advice.h"
#include "write/prompt/focus.h"
#include "write/prompt/parts.h"
#include "write/prompt/recall.h"
#include "write/prompt/standing.h"
#include "write/prompt/tried.h"

namespace kernelpro {

namespace {

constexpr std::size_t kLogShown = 1500;
constexpr std::size_t kFailureShown = 4000;
constexpr std::size_t kDefinitionShown = 12000;

std::string log_block(const CompileError& failed) {
  return fenced(clip(printable(failed.log), kLogShown));
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

constexpr const char* kInDoubt =
    "If you are unsure of a number, declare it as a knob with two to five values, the one you "
    "expect "
    "to be best first: its values are measured, too.";

// The reference of a task folder, in the target's language where there is one.
std::string reference_text(const Task& task, TargetKind target) {
  const LanguageRow* row = &native_language(target);
  if ((task.*row->reference).empty()) row = &native_language(TargetKind::kCpu);
  const std::string& source = task.*row->reference;
  if (trim(source).empty()) return "";
  return "\n## What it computes\nResults are compared with this reference, which need not be "
         "fast:\n\n" +
         fenced(clip(source, kDefinitionShown), row->fence);
}

// What a task computes: the PyTorch module with its tensors' names in Args, or the reference.
std::string definition(const Task& task, TargetKind target, const LanguageRow& wanted) {
  if (!task.module) return reference_text(task, target);
  std::string text = "\n## What it computes\nThis PyTorch module is the definition:\n\n" +
                     fenced(clip(task.module->source, kDefinitionShown), "python") +
                     (wanted.in_python ? "\nIts tensors:\n" : "\nIts tensors in `Args`:\n");
  for (std::size_t i = 0; i < task.tensors.size(); ++i) {
    const Tensor& tensor = task.tensors[i];
    text += "  - `" + tensor.name + "`: " + std::string(role_name(tensor.role)) + ", " +
            std::string(dtype_name(tensor.dtype)) + " [" + shape_text(task, i) + "], row-major\n";
  }
  const Case* last = task.cases.empty() ? nullptr : &task.cases.back();
  if (last != nullptr && !last->constants.empty()) {
    text += wanted.in_python ? "Other arguments of forward:"
                             : "Other arguments of forward are constants in `task.h`:";
    for (const auto& [name, value] : last->constants) text += " " + name + " = " + value;
    text += "\n";
  }
  if (!task.module->note.empty()) text += "Note: " + one_line(task.module->note) + ".\n";
  return text;
}

std::string_view precision_rule(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "every product and sum in fp32 or better; no TF32, no half precision, unless operands "
             "are split into parts that together keep fp32's precision and range: three bf16 "
             "parts, "
             "or two fp16 parts (22 bits) that are scaled row by row to what the row holds, not by "
             "a "
             "constant. A kernel that is coarser, or wrong on other values of these shapes (large "
             "and tiny ones, outliers in a row, zeros), is labelled, and ranks below any without a "
             "label";
    case Precision::kTf32:
      return "operands of products may be rounded to TF32's 10 bits, also where you store them "
             "between products; sums in fp32";
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

constexpr std::size_t kKernelsShown = 3;
constexpr std::size_t kDiagnosisBytes = 8000;  // raw tables have more (write/prompt/parts.cc)

// Machine code last: if a table is cut, the counters remain.
std::string metric_rows(const Evidence& evidence) {
  std::string counted, code;
  for (const auto& [name, item] : evidence.items()) {
    const Metric* metric = find_metric(name);
    (metric != nullptr && metric->family == Family::kSass ? code : counted) +=
        "| " + name + " | " + number(item.value, 6) + " | " +
        std::string(metric != nullptr ? metric->unit : "") + " |\n";
  }
  return "| metric | value | unit |\n|---|---|---|\n" + counted + code;
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
  const std::string brought = request.memory ? brought_text(request) : "";
  const std::string diagnosis =
      diagnosis_to_text(request.parent->diagnosis) + (brought.empty() ? "" : "\n" + brought);
  return shortened_part(change.empty() ? diagnosis : change + "\n" + diagnosis, kDiagnosisBytes);
}

// The rules for a language and the form within it, and its header where it includes one.
void fill_rules(const DialectRow& dialect, const Prompts& prompts, PromptFields* fields) {
  const LanguageRow& row = language_row(dialect.language);
  for (const std::string_view form : {row.forms, dialect.contract}) {
    if (form.empty()) continue;
    (*fields)["forms"] += std::string(trim(prompts.fill(std::string(form), *fields))) + "\n";
  }
  (*fields)["rules"] = prompts.fill(row.in_python ? "module" : "rules", *fields);
  if (row.in_python) {
    fields->erase("compile");
    return;
  }
  (*fields)["include"] = "; they include the generated header `task.h`, which is beside this file";
  (*fields)["header_section"] = "## task.h\nAs generated for the largest timed case:\n\n" +
                                fenced((*fields)["header"], "cpp");
}

}  // namespace

PromptFields prompt_fields(const ProposalRequest& request, const Prompts& prompts) {
  const Known& parent = *request.parent;
  const LanguageRow& written = language_row(parent.candidate.language);
  const DialectRow& dialect = wanted_dialect(request);
  const LanguageRow& wanted = language_row(dialect.language);
  PromptFields fields = {
      {"task", request.task->name},
      {"summary", request.task->summary},
      {"target", std::string(target_name(request.target))},
      {"parent", std::to_string(parent.id)},
      {"parent_file", "parent." + std::string(written.extension)},
      {"definition", definition(*request.task, request.target, wanted)},
      {"standing", standing_text(request)},
      {"best", best_text(request)},
      {"scope", scope_text(request)},
      {"focus", request.focus.empty()
                    ? "Whatever promises most. Others may be asked about the same candidate: an "
                      "unusual idea is worth more than the first one."
                    : request.focus},
      {"diagnosis", feedback_text(request)},
      {"tried", tried_text(request)},
      {"memory", memory_text(request)},
      {"language", std::string(dialect.title)},
      {"entry", std::string(wanted.signature)},
      {"contract", contract(*request.task)},
      {"cases", cases(*request.task, request.target)},
      {"extension", std::string(wanted.extension)},
      {"comment", wanted.syntax == Syntax::kPython ? "#" : "//"},
      {"in_doubt", wanted.knobs ? kInDoubt : ""},
      {"header", request.task_header},
      {"source", fenced(parent.candidate.source, written.fence)}};
  fields.merge(advice_fields(*request.task, request.target,
                             request.machine ? &*request.machine : nullptr, prompts));
  if (parent.evaluation.correct() == nullptr) {
    fields["cures"] = cures_text(request, failure_text(parent.evaluation.outcome));
  }
  fill_rules(dialect, prompts, &fields);
  shorten_parts(&fields);
  return fields;
}

std::string exchange_prompt(const ProposalRequest& request, const std::string& number,
                            const Prompts& prompts) {
  PromptFields fields = prompt_fields(request, prompts);
  fields["number"] = number;
  // Its source is a file of the request.
  if (!fields["best"].empty()) {
    fields["best"] = "## The best so far\nIt is another source, beside this file: `best." +
                     std::string(language_row(request.best->candidate.language).extension) +
                     "`. Take from it what serves this change.";
  }
  return prompts.fill("exchange", fields);
}

std::string task_prompt(const PromptFields& fields, const Prompts& prompts,
                        const std::string& library) {
  PromptFields all = fields;
  all["library"] = library;
  return prompts.fill("task", all);
}

std::string result_text(const Known& known, const ProposalRequest& request) {
  std::string text = "# Candidate " + std::to_string(known.id) + ": " +
                     outcome_text(known.evaluation.outcome, "", kFailureShown) + "\n";
  if (known.evaluation.correct() != nullptr) {
    text += "\n" + speed_text(known, request) + ".\n";
    if (request.feedback == Feedback::kDiagnosed) {
      const std::string change = last_change(known, request.history);
      text += (change.empty() ? "" : "\n" + change) + "\n" + diagnosis_to_text(known.diagnosis);
    }
  } else if (const auto* failed = std::get_if<CompileError>(&known.evaluation.outcome)) {
    text += "\n" + log_block(*failed);
  }
  return text;
}

std::string definition_text(const Task& task, TargetKind target) {
  return definition(task, target, native_language(target));
}

std::string contract_text(const Task& task) { return contract(task); }

}  // namespace kernelpro
