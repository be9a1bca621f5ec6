// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/focus.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "core/evaluation/objective.h"

namespace kernelpro {

namespace {

constexpr double kLittle = 0.25;        // of what was promised, in logarithms
constexpr double kMost = 0.75;          // of it, in logarithms: there is little left
constexpr double kLeastPromise = 1.02;  // smaller ones drown in noise
constexpr std::size_t kMostTold = 4;    // answers of a finding
constexpr std::size_t kEnough = 2;      // sources that followed a finding for little

// A candidate that followed a finding, and what its parent's diagnosis promised. Other settings of
// the parent's source follow nothing: its structure stays.
struct Attempt {
  std::int64_t parent = 0;
  double promised = 1, brought = 1;
};

std::optional<Attempt> attempt_of(const Known& known, const History& history,
                                  const std::string& tool) {
  const Origin& origin = known.candidate.origin;
  if (known.evaluation.correct() == nullptr || origin.answers.tool != tool) return std::nullopt;
  const auto parent = std::ranges::find_if(
      history, [&](const KnownPtr& each) { return each->id == origin.parent; });
  if (parent == history.end() || comparable_us(**parent) <= 0) return std::nullopt;
  if ((*parent)->candidate.source == known.candidate.source) return std::nullopt;
  Attempt attempt;
  attempt.parent = origin.parent;
  for (const Finding& finding : (*parent)->diagnosis.findings) {
    if (finding.tool == tool) attempt.promised = std::max(attempt.promised, finding.likely_speedup);
  }
  if (attempt.promised < kLeastPromise) return std::nullopt;
  // A source is worth what its best setting is.
  double us = comparable_us(known);
  for (const KnownPtr& each : history) {
    const bool same = each->candidate.source == known.candidate.source;
    if (same && each->evaluation.correct() != nullptr) us = std::min(us, comparable_us(*each));
  }
  attempt.brought = comparable_us(**parent) / us;
  return attempt;
}

std::vector<Attempt> attempts_of(const History& history, const std::string& tool) {
  std::vector<Attempt> attempts;
  for (const KnownPtr& known : history) {
    if (const auto attempt = attempt_of(*known, history, tool)) attempts.push_back(*attempt);
  }
  return attempts;
}

// A child of the parent brought most of what the finding promised: it has been answered there.
bool answered(const ProposalRequest& request, const Finding& finding) {
  return std::ranges::any_of(request.history, [&](const KnownPtr& each) {
    if (each->candidate.origin.parent != request.parent->id) return false;
    const auto attempt = attempt_of(*each, request.history, finding.tool);
    return attempt && std::log(attempt->brought) >= kMost * std::log(finding.likely_speedup);
  });
}

// Every source that followed it brought little: one made of this parent is enough, since the next
// would be its like; elsewhere a single one may have been written badly.
bool brought_little(const ProposalRequest& request, const std::string& tool) {
  const std::vector<Attempt> attempts = attempts_of(request.history, tool);
  const bool here = std::ranges::any_of(
      attempts, [&](const Attempt& each) { return each.parent == request.parent->id; });
  return (here || attempts.size() >= kEnough) &&
         std::ranges::all_of(attempts, [](const Attempt& each) {
           return std::log(each.brought) < kLittle * std::log(each.promised);
         });
}

}  // namespace

bool was_answered(const ProposalRequest& request, const Finding& finding) {
  return request.memory && (brought_little(request, finding.tool) || answered(request, finding));
}

std::vector<const Finding*> findings_to_answer(const ProposalRequest& request) {
  std::vector<const Finding*> all;
  for (const Finding& finding : request.parent->diagnosis.findings) {
    if (finding.stop || finding.prescriptions.empty()) continue;
    if (finding.severity == Severity::kInfo || finding.likely_speedup < kLeastPromise) continue;
    if (was_answered(request, finding)) continue;
    all.push_back(&finding);
  }
  return all;
}

std::string brought_text(const ProposalRequest& request) {
  std::string text;
  for (const Finding& finding : request.parent->diagnosis.findings) {
    const std::vector<Attempt> attempts = attempts_of(request.history, finding.tool);
    if (attempts.empty() || finding.stop) continue;
    text += (text.empty() ? "What its findings brought so far in this run: " : "; ") +
            finding.tool + " promised " + number(attempts.back().promised, 3) + "x, and brought ";
    const std::size_t shown = std::min(attempts.size(), kMostTold);
    for (std::size_t i = attempts.size() - shown; i < attempts.size(); ++i) {
      if (i > attempts.size() - shown) text += i + 1 == attempts.size() ? " and " : ", ";
      text += number(attempts[i].brought, 3) + "x";
    }
  }
  return text.empty() ? "" : text + ".\n";
}

std::string focus_text(const Finding& finding) {
  // Its first sentence: all of it stands in the diagnosis. Code is quoted whole.
  const std::string& cause = finding.cause;
  std::size_t end = cause.find(". ");
  while (end != std::string::npos &&
         std::count(cause.begin(), cause.begin() + static_cast<std::ptrdiff_t>(end), '`') % 2 !=
             0) {
    end = cause.find(". ", end + 1);
  }
  return "Answer the finding " + finding.tool + ": " +
         cause.substr(0, end == std::string::npos ? end : end + 1);
}

bool chose_freely(const ProposalRequest& request) {
  const Known& parent = *request.parent;
  return std::ranges::any_of(request.history, [&](const KnownPtr& each) {
    const Candidate& child = each->candidate;
    return child.origin.parent == parent.id && child.origin.answers.empty() &&
           child.source != parent.candidate.source;
  });
}

std::string energy_focus_text(const ProposalRequest& request) {
  const Correct* correct = request.parent->evaluation.correct();
  const ObjectiveRow& row = objective_row(request.objective);
  if (!row.wants_energy || correct == nullptr || !correct->energy) return "";
  const Energy& energy = *correct->energy;
  return "Use less energy a call, " +
         std::string(row.breaks_ties ? "without losing speed"
                                     : "even at some cost in time, as what counts allows") +
         ": of the " + number(energy.busy_w, 4) + " W that the board draws, " +
         number(energy.busy_w - energy.idle_w, 4) + " W are this kernel's.";
}

}  // namespace kernelpro
