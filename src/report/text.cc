// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>

#include "base/files.h"
#include "report/dead_ends.h"
#include "report/diagnosis.h"
#include "report/moves.h"
#include "report/pareto.h"
#include "report/replayed.h"
#include "report/view.h"
#include "write/calls.h"

namespace kernelpro {

namespace {

std::string outcomes_line(const Story& story) {
  std::string text;
  for (const auto& [name, count] : story.outcomes) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  }
  return text;
}

constexpr std::size_t kFailuresShown = 3, kFailureShown = 240;  // characters of each
constexpr std::size_t kWordsShown = 120;                        // characters, beside a time

std::string pad(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

// The fastest few candidates, by interleaved measurements.
std::string leaders(const RunView& view, const Story& story) {
  std::vector<const StoredCandidate*> correct;
  for (const StoredCandidate& candidate : view.candidates) {
    if (candidate.evaluated && score_us(candidate.known.evaluation) > 0) {
      correct.push_back(&candidate);
    }
  }
  std::sort(correct.begin(), correct.end(), [&](const auto* a, const auto* b) {
    const double x = story.speedup_of(a->known.id);
    const double y = story.speedup_of(b->known.id);
    return x != y ? x > y : a->known.id < b->known.id;
  });
  if (correct.size() > 5) correct.resize(5);
  std::string text;
  for (const StoredCandidate* candidate : correct) {
    const Known& known = candidate->known;
    const double speedup = story.speedup_of(known.id);
    // Comparable with the start's, as the ratio is, not as it was on a busy machine.
    const double us = speedup > 0 ? story.baseline_us / speedup : score_us(known.evaluation);
    std::string line = "  " + pad("#" + std::to_string(known.id), 6) + pad(human_us(us), 11) +
                       pad(speedup > 0 ? speedup_text(speedup) : "", 8);
    const std::string knobs = knobs_to_text(known.candidate.knobs);
    const std::string& words = knobs.empty() ? known.candidate.origin.idea : knobs;
    line += clip(one_line(words), kWordsShown);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text.empty() ? "" : "fastest:\n" + text;
}

// Why the latest few candidates failed.
std::string failures(const RunView& view) {
  std::vector<const StoredCandidate*> failed;
  for (const StoredCandidate& candidate : view.candidates) {
    if (candidate.evaluated && candidate.known.evaluation.correct() == nullptr) {
      failed.push_back(&candidate);
    }
  }
  if (failed.empty()) return "";
  const std::size_t first = failed.size() - std::min(failed.size(), kFailuresShown);
  std::string text = first == 0 ? "failed:\n" : "failed, the latest:\n";
  for (std::size_t i = first; i < failed.size(); ++i) {
    const Known& known = failed[i]->known;
    text += "  " + pad("#" + std::to_string(known.id), 6) +
            clip(printable(outcome_summary(known.evaluation.outcome)), kFailureShown) + "\n";
  }
  return text;
}

// Where writers' replies are awaited.
std::string waiting(const RunView& view) {
  if (view.confirmation || view.open_requests.empty()) return "";
  const std::size_t more = view.open_requests.size() - 1;
  return "waiting for kernels in " + printable(join(view.open_requests.back(), "reply")) +
         (more > 0 ? " (and of " + how_many(more, "earlier request") + ")" : "") +
         "; once the run has stopped, `kernelpro measure " + printable(view.directory) +
         "` evaluates them\n";
}

}  // namespace

std::string render_text(const RunView& view) {
  const Story story = tell(view);
  std::string text = printable(view.header.task.name) + " on " + view.header.machine.name + " (" +
                     std::string(target_name(view.header.target)) + ", " + view.header.created +
                     ")\n" + verdict(view, story) + "\n";
  if (!credit(story).empty()) text += credit(story) + "\n";
  text += how_many(story.evaluated, "evaluation") + " in " + human_seconds(view.run_seconds);
  if (story.evaluated > 0) text += " (" + outcomes_line(story) + ")";
  if (view.confirmation && !view.confirmation->stopped_by.empty()) {
    text += "; stopped: " + view.confirmation->stopped_by;
  }
  text += "\n";
  if (const std::string load = load_text(story.load); !load.empty()) text += load + "\n";
  if (!view.calls.empty()) text += calls_text(view.calls) + "\n";
  const std::vector<Replayed> again = replayed(view, story);
  if (!again.empty()) text += replayed_summary(again) + "\n" + replayed_text(again);
  text += leaders(view, story) + failures(view) + waiting(view);
  if (view.confirmation) text += held_out_text(view.confirmation->held_out);
  text += energy_lines(view);
  text += dead_end_lines(view);
  text += path_changes_text(story);
  if (story.best != nullptr) {
    DiagnosisStyle style;
    style.more = "kernelpro diagnose --all";
    text += "\nWhat limits it now:\n" +
            diagnosis_for_terminal(story.best->known.diagnosis, story.best->evidence, style);
  }
  return text;
}

}  // namespace kernelpro
