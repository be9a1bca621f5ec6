// SPDX-License-Identifier: Apache-2.0
#include "propose/prompt.h"

#include <map>

#include "base/error.h"
#include "base/text.h"
#include "embedded/exchange_prompt.h"

namespace kernelpro {

namespace {

constexpr std::size_t kTriedShown = 40;
constexpr std::size_t kLogShown = 1500;

// The first correct candidate: what speed is counted against.
double start_us(const std::vector<const Known*>& history) {
  for (const Known* known : history) {
    if (known->evaluation.correct() != nullptr) return score_us(known->evaluation);
  }
  return 0;
}

std::string speed(const Known& known, const std::vector<const Known*>& history) {
  const double time = score_us(known.evaluation);
  const double start = start_us(history);
  if (time <= 0 || start <= 0) return "";
  return number(start / time, 3) + "x the start";
}

std::string tried_line(const Known& known, const std::vector<const Known*>& history) {
  const Origin& origin = known.candidate.origin;
  std::string line = "- " + std::to_string(known.id);
  if (origin.parent != 0) line += " (from " + std::to_string(origin.parent) + ")";
  line += ": " + (origin.idea.empty() ? origin.proposer : origin.idea);
  if (!known.candidate.knobs.empty()) line += " [" + knobs_to_text(known.candidate.knobs) + "]";
  const std::string outcome =
      known.evaluation.correct() != nullptr
          ? human_us(score_us(known.evaluation)) + ", " + speed(known, history)
          : outcome_summary(known.evaluation.outcome);
  const std::vector<std::string> first = lines(outcome);
  return line + " => " + (first.empty() ? outcome_name(known.evaluation.outcome) : first[0]) + "\n";
}

std::string tried(const std::vector<const Known*>& history) {
  std::string text;
  std::size_t from = 0;
  if (history.size() > kTriedShown) {
    from = history.size() - kTriedShown;
    text = "- (" + std::to_string(from) + " older ones are left out)\n";
  }
  for (std::size_t i = from; i < history.size(); ++i) text += tried_line(*history[i], history);
  return text.empty() ? "- nothing yet\n" : text;
}

std::string standing(const ProposalRequest& request) {
  const Known& parent = *request.parent;
  const Known* best = nullptr;
  for (const Known* known : request.history) {
    if (known->evaluation.correct() == nullptr) continue;
    if (best == nullptr || score_us(known->evaluation) < score_us(best->evaluation)) best = known;
  }
  std::string text = "Candidate " + std::to_string(parent.id) + ": " +
                     outcome_summary(parent.evaluation.outcome) + ".";
  if (!parent.candidate.knobs.empty()) {
    text += "\nIt ran with " + knobs_to_text(parent.candidate.knobs) +
            "; a reply runs with the first value of each knob that it declares.";
  }
  if (const auto* failed = std::get_if<CompileError>(&parent.evaluation.outcome)) {
    text += "\n```\n" + clip(failed->log, kLogShown) + "\n```";
  }
  if (best != nullptr) {
    text += "\nThe fastest so far is candidate " + std::to_string(best->id) + ", " +
            human_us(score_us(best->evaluation)) + " a call, " + speed(*best, request.history) +
            ".";
  }
  return text;
}

std::string contract(const Task& task) {
  std::string text;
  for (const Tensor& tensor : task.tensors) {
    if (tensor.role != Role::kOutput) continue;
    text += "  - `" + tensor.name + "` (" + std::string(dtype_name(tensor.dtype)) + " [" +
            join_text(tensor.shape, ", ") + "]): ";
    text += is_floating(tensor.dtype) ? "|out - r| <= " + number(tolerance_of(tensor)) +
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

std::string without_last_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

std::string source_extension(Language language) {
  return language == Language::kCpp ? "cpp" : "cu";
}

std::string exchange_prompt(const ProposalRequest& request, const std::string& number) {
  const Known& parent = *request.parent;
  const bool cpu = request.target == TargetKind::kCpu;
  const std::string extension = source_extension(parent.candidate.language);
  const std::map<std::string, std::string> fields = {
      {"task", request.task->name},
      {"number", number},
      {"summary", request.task->summary},
      {"target", std::string(target_name(request.target))},
      {"parent", std::to_string(parent.id)},
      {"parent_file", "parent." + extension},
      {"standing", standing(request)},
      {"diagnosis", diagnosis_to_text(parent.diagnosis)},
      {"tried", tried(request.history)},
      {"language", cpu ? "C++20" : "CUDA C++"},
      {"entry", cpu ? "extern \"C\" void launch(const Args& args)"
                    : "extern \"C\" void launch(const Args& args, cudaStream_t stream)"},
      {"contract", contract(*request.task)},
      {"cases", cases(*request.task, request.target)},
      {"extension", extension}};
  // One pass over the template, so that nothing in a filled-in text is taken for a field.
  std::string out;
  std::string_view rest = embedded::exchange_prompt;
  for (;;) {
    const std::size_t open = rest.find("{{");
    const std::size_t close = open == std::string_view::npos ? open : rest.find("}}", open);
    if (close == std::string_view::npos) break;
    out += rest.substr(0, open);
    const auto field = fields.find(std::string(rest.substr(open + 2, close - open - 2)));
    KP_ASSERT(field != fields.end());
    out += without_last_newline(field->second);
    rest.remove_prefix(close + 2);
  }
  return out + std::string(rest);
}

std::string result_text(const Known& known, const std::vector<const Known*>& history) {
  std::string text = "# Candidate " + std::to_string(known.id) + ": " +
                     outcome_summary(known.evaluation.outcome) + "\n";
  if (known.evaluation.correct() != nullptr) {
    text += "\n" + human_us(score_us(known.evaluation)) + " a call, " + speed(known, history) +
            ".\n\n" + diagnosis_to_text(known.diagnosis);
  } else if (const auto* failed = std::get_if<CompileError>(&known.evaluation.outcome)) {
    text += "\n```\n" + clip(failed->log, kLogShown) + "\n```\n";
  }
  return text;
}

}  // namespace kernelpro
