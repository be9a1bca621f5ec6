// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/standing.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/text.h"
#include "core/candidate/knobs.h"
#include "core/candidate/language.h"
#include "core/evaluation/label.h"
#include "core/evaluation/objective.h"
#include "core/machine/machine.h"
#include "write/prompt/focus.h"
#include "write/prompt/outcome_text.h"
#include "write/prompt/tried.h"

namespace kernelpro {

namespace {

constexpr std::size_t kStandingFailure = 4000;
constexpr std::size_t kStandingLog = 1500;
constexpr std::size_t kPartialShown = 1200, kNoteShown = 300;
constexpr std::size_t kBestShown = 16000;
// Below this share of the speed of light a kernel's structure is the problem, not one of its parts.
constexpr double kRewrite = 0.05;
constexpr double kClose = 0.8;      // to the speed of light: one change, and no other design
constexpr double kExplained = 0.5;  // of what is left to win, in logarithms
constexpr double kDrift = 0.02;
constexpr std::string_view kSavesEnergy =
    "At equal speed, a kernel draws less power if it moves no bytes beyond the compulsory ones, "
    "issues fewer instructions and touches shared memory less for each byte or product, lets warps "
    "sleep instead of poll, and launches no more blocks or warps than the speed needs.";

// Where the machine's speed has drifted, its own times are on another scale than the run's.
std::string as_measured(const Known& parent) {
  const double us = score_us(parent.evaluation), scaled = comparable_us(parent);
  if (us <= 0 || std::abs(us / scaled - 1) < kDrift) return "";
  return " It took " + human_us(us) + " when it was measured, on a machine that was " +
         number(us > scaled ? us / scaled : scaled / us, 3) + "x " +
         (us > scaled ? "slower" : "faster") +
         " than at the run's start: the diagnosis is in those times.";
}

// Labels of a parent that keeps the contract in part only, and what showed it: the first thing to
// mend, since no speed makes up for it.
std::string partial_text(const ProposalRequest& request) {
  const Correct* correct = request.parent->evaluation.correct();
  const Borne borne =
      borne_by(request.start != nullptr ? request.start->evaluation.correct() : nullptr);
  if (correct == nullptr || !is_partial(*correct, borne)) return "";
  std::string text;
  for (const std::string& label : correct->labels) {
    if (!is_partial(label) || std::ranges::find(borne, label) != borne.end()) continue;
    text +=
        "\nIts verdict has the label `" + label + "`: " + std::string(label_meaning(label)) + ".";
  }
  for (const std::string& note : correct->notes) {
    if (text.size() > kPartialShown) break;
    text += "\n  - " + one_line(clip(printable(note), kNoteShown));
  }
  return text +
         "\nA kernel without such a label ranks before it, whatever their times: mend this along "
         "with whatever else you change, and keep what made it fast.";
}

std::string parent_line(const ProposalRequest& request) {
  const Known& parent = *request.parent;
  std::string text = "Candidate " + std::to_string(parent.id) + ": ";
  const bool correct = parent.evaluation.correct() != nullptr;
  text += correct ? "correct, " + speed_text(parent, request) + "." + as_measured(parent)
                  : outcome_text(parent.evaluation.outcome, ".", kStandingFailure);
  text += partial_text(request);
  if (const auto* failed = std::get_if<CompileError>(&parent.evaluation.outcome)) {
    text += "\n" + std::string(trim(fenced(clip(printable(failed->log), kStandingLog))));
  }
  if (!parent.candidate.knobs.empty()) {
    text += "\nIt ran with " + knobs_to_text(parent.candidate.knobs) +
            "; a reply runs with the first value of each knob that it declares, and its other "
            "settings are tried after it.";
  }
  return text;
}

// What counts, unless it is the time alone, and what the parent draws; "" for the time alone.
std::string wanted_line(const ProposalRequest& request) {
  const ObjectiveRow& row = objective_row(request.objective);
  if (!row.wants_energy) return "";
  std::string text = "What counts is " + std::string(row.help);
  if (row.breaks_ties) text += " (equally fast: within " + number(100 * kEqualSpeed, 2) + " %)";
  if (!row.weight) text += " (W is " + number(request.objective.weight, 3) + ")";
  const Correct* correct = request.parent->evaluation.correct();
  if (correct != nullptr && correct->energy) {
    const Energy& energy = *correct->energy;
    text += ". Candidate " + std::to_string(request.parent->id) + " takes " +
            number(energy.millijoules, energy.millijoules < 1000 ? 4 : 8) +
            " mJ a call: the board draws " + number(energy.busy_w, 4) +
            " W while calls run back to back, and " + number(energy.idle_w, 4) + " W when idle";
  }
  return text + ". " + std::string(kSavesEnergy);
}

// Of what may still be answered.
double most_promised(const ProposalRequest& request) {
  double most = 1;
  for (const Finding& finding : request.parent->diagnosis.findings) {
    if (finding.stop || was_answered(request, finding)) continue;
    most = std::max(most, finding.likely_speedup);
  }
  return most;
}

// The finding that promises most of another unit, which has a ceiling of its own. Null: none does.
const Finding* on_another_unit(const Diagnosis& diagnosis) {
  const Finding* most = nullptr;
  for (const Finding& finding : diagnosis.findings) {
    if (!finding.another_unit) continue;
    if (most == nullptr || finding.upper_speedup > most->upper_speedup) most = &finding;
  }
  return most;
}

// "Left to win: about 2.5x, ..."; "" where the speed of light is not known or not told.
std::string left_to_win(const ProposalRequest& request) {
  const Diagnosis& diagnosis = request.parent->diagnosis;
  const double fraction = diagnosis.fraction_of_ceiling;
  if (request.feedback != Feedback::kDiagnosed || fraction <= 0) return "";
  if (fraction > kBeyondCeiling) {
    return "Left to win: not known, as it is faster than the measured ceiling allows.";
  }
  const std::string share = number(100 * fraction, 2) + " % of the speed of light";
  const double left = std::max(1.0, 1 / fraction);
  std::string text = "Left to win: about " +
                     (left < 100 ? number(left, 2) : std::to_string(std::lround(left))) +
                     "x, as it runs at " + share;
  if (diagnosis.floor_us > 0) text += " (" + human_us(diagnosis.floor_us) + " a call)";
  if (const Finding* other = on_another_unit(diagnosis)) {
    text += "; at most " + number(other->upper_speedup, 2) + "x on another unit, as " +
            other->tool + " says";
  }
  return text + ".";
}

std::string left_to_spend(const ProposalRequest& request) {
  if (!request.evaluations_left) return "";
  const int left = *request.evaluations_left;
  std::string text =
      left == 1 ? "One evaluation remains" : std::to_string(left) + " evaluations remain";
  if (left <= 1) text += ": give what you are surest of";
  return text + ".";
}

std::string best_line(const ProposalRequest& request) {
  if (request.best == nullptr) return "";
  if (request.best->id == request.parent->id) return "It is the best so far.";
  std::string text = "The best so far is candidate " + std::to_string(request.best->id) + ", " +
                     speed_text(*request.best, request) +
                     (best_is_another(request) ? "." : ": the same source with other knobs.");
  const double parent_us = comparable_us(*request.parent);
  const Correct* mine = request.parent->evaluation.correct();
  const Correct* best = request.best->evaluation.correct();
  const Borne borne =
      borne_by(request.start != nullptr ? request.start->evaluation.correct() : nullptr);
  const bool by_time = mine != nullptr && best != nullptr && !outranks(*best, *mine, borne) &&
                       !objective_row(request.objective).wants_energy;
  if (by_time && parent_us <= comparable_us(*request.best)) {
    text += " Candidate " + std::to_string(request.parent->id) +
            " is no slower, but not clearly faster.";
  }
  return text;
}

}  // namespace

std::string standing_text(const ProposalRequest& request) {
  std::string text = parent_line(request);
  for (const std::string& line :
       {wanted_line(request), left_to_win(request), left_to_spend(request), best_line(request)}) {
    if (!line.empty()) text += "\n" + line;
  }
  return text;
}

bool best_is_another(const ProposalRequest& request) {
  return request.best != nullptr && request.best->id != request.parent->id &&
         !SameSource(request.parent->candidate)(*request.best);
}

bool shows_best(const ProposalRequest& request) {
  if (!request.memory || !best_is_another(request) || request.best->brief()) return false;
  const bool first = request.start != nullptr && request.best->id == request.start->id;
  return !(first && language_row(request.best->candidate.language).in_python);
}

std::string best_text(const ProposalRequest& request) {
  if (!shows_best(request)) return "";
  const Candidate& best = request.best->candidate;
  return "## The best so far: candidate " + std::to_string(request.best->id) +
         "\nTake from it what serves this change.\n\n" +
         fenced(clip(best.source, kBestShown), language_row(best.language).fence);
}

std::string scope_text(const ProposalRequest& request) {
  // There is no one change to keep to: no finding is told, or all of the kernel draws power.
  const bool energy = request.answers.empty() && !energy_focus_text(request).empty();
  if (request.feedback != Feedback::kDiagnosed || energy)
    return "Change as much as the idea needs.";
  const double fraction = request.parent->diagnosis.fraction_of_ceiling;
  const bool known = fraction > 0;
  if (known && fraction < kRewrite) {
    return "The kernel runs below 5 % of the speed of light: rewrite as much of it as the change "
           "needs.";
  }
  const double promised = most_promised(request);
  if (known && fraction < kClose && std::log(promised) < kExplained * -std::log(fraction)) {
    const std::string left = number(1 / fraction, 3) + "x that are left";
    return (promised > 1 ? "The findings promise " + number(promised, 3) + "x of the " + left
                         : "No finding explains the " + left) +
           ". If you know a design that does less work, moves less or uses a faster unit, build "
           "that instead, and change as much as it needs.";
  }
  if (known && fraction >= kClose && on_another_unit(request.parent->diagnosis) == nullptr) {
    return "Change only what that needs, and leave everything else alone.";
  }
  return "Carry it through wherever it needs to be, and take other findings along where they do "
         "not get in its way. If \"Where the time goes\" shows you a change that promises more, "
         "make "
         "that one.";
}

}  // namespace kernelpro
