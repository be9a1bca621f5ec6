// SPDX-License-Identifier: Apache-2.0
#include "report/view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "base/text.h"
#include "report/report.h"
#include "run/planted.h"

namespace kernelpro {

namespace {

// More is no matter of intervals.
constexpr double kAboveCeiling = 1.05;

const StoredCandidate* fastest(const RunView& view) {
  const StoredCandidate* best = nullptr;
  for (const StoredCandidate& candidate : view.candidates) {
    if (!candidate.evaluated || candidate.known.evaluation.correct() == nullptr) continue;
    if (best == nullptr ||
        score_us(candidate.known.evaluation) < score_us(best->known.evaluation)) {
      best = &candidate;
    }
  }
  return best;
}

void read_speedup(const RunView& view, Story* story) {
  const Correct* confirmed = story->confirmed ? view.confirmation->evaluation.correct() : nullptr;
  if (confirmed != nullptr && confirmed->versus) {
    story->speedup = confirmed->versus->ratio;
    story->low = confirmed->versus->low;
    story->high = confirmed->versus->high;
    const double us = score_us(view.confirmation->evaluation);
    if (us > 0) {
      story->fraction *= story->best_us / us;
      story->final_us = us;
      story->final_start_us = us * story->speedup;
    }
  } else if (story->best_us > 0 && story->start_us > 0) {
    story->confirmed = false;
    story->speedup = story->low = story->high = story->start_us / story->best_us;
  }
}

void trace_path(Story* story) {
  std::set<std::int64_t> seen;
  for (const StoredCandidate* at = story->best; at != nullptr;) {
    if (!seen.insert(at->known.id).second) break;
    story->path.insert(story->path.begin(), at);
    const auto parent = story->by_id.find(at->known.candidate.origin.parent);
    at = parent == story->by_id.end() ? nullptr : parent->second;
  }
}

}  // namespace

Result<RunView> load_run_view(const std::string& directory) {
  auto store = Store::open(directory, Store::Mode::kRead);
  if (!store) return tl::unexpected<Error>(store.error());
  RunView view;
  view.directory = directory;
  auto header = (*store)->header();
  if (!header) return tl::unexpected<Error>(header.error());
  view.header = std::move(*header);
  auto candidates = (*store)->candidates(false);
  if (!candidates) return tl::unexpected<Error>(candidates.error());
  view.candidates = std::move(*candidates);
  auto confirmation = (*store)->confirmation();
  if (!confirmation) return tl::unexpected<Error>(confirmation.error());
  view.confirmation = std::move(*confirmation);
  auto steps = (*store)->tool_steps();
  if (!steps) return tl::unexpected<Error>(steps.error());
  view.steps = std::move(*steps);
  auto calls = (*store)->calls();
  if (!calls) return tl::unexpected<Error>(calls.error());
  view.calls = std::move(*calls);
  // Evidence is most of a store's text: read for those whose evidence is shown.
  const Story story = tell(view);
  for (StoredCandidate& each : view.candidates) {
    if (!each.evaluated || (&each != story.best && &each != story.start)) continue;
    auto whole = (*store)->candidate(each.known.id, true);
    if (!whole) return tl::unexpected<Error>(whole.error());
    each.evidence = std::move(whole->evidence);
  }
  // A report is worth having without the tree, too.
  if (auto nodes = stored_nodes(**store)) view.nodes = std::move(*nodes);
  view.run_seconds = (*store)->run_seconds();
  return view;
}

Story tell(const RunView& view) {
  Story story;
  for (const StoredCandidate& candidate : view.candidates) {
    story.by_id[candidate.known.id] = &candidate;
    if (!candidate.evaluated) continue;
    ++story.evaluated;
    ++story.outcomes[outcome_name(candidate.known.evaluation.outcome)];
    if (candidate.known.evaluation.correct() == nullptr) ++story.failed;
    if (story.start == nullptr && candidate.known.candidate.origin.parent == 0) {
      story.start = &candidate;
    }
  }
  story.best = fastest(view);
  if (view.confirmation) {
    const auto found = story.by_id.find(view.confirmation->best);
    if (found != story.by_id.end()) {
      story.best = found->second;
      story.confirmed = true;
    }
  }
  if (story.start != nullptr) {
    story.start_us = score_us(story.start->known.evaluation);
    story.start_fraction = story.start->known.diagnosis.fraction_of_ceiling;
  }
  if (story.best != nullptr) {
    story.best_us = score_us(story.best->known.evaluation);
    story.fraction = story.best->known.diagnosis.fraction_of_ceiling;
  }
  story.final_us = story.best_us;
  story.final_start_us = story.start_us;
  read_speedup(view, &story);
  trace_path(&story);
  return story;
}

std::string speedup_text(double ratio) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer,
                ratio < 10    ? "%.2fx"
                : ratio < 100 ? "%.1fx"
                              : "%.0fx",
                ratio);
  return buffer;
}

std::string percent_text(double fraction) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, fraction < 0.0995 ? "%.1f %%" : "%.0f %%", fraction * 100);
  return buffer;
}

std::string verdict(const RunView& view, const Story& story) {
  if (story.best == nullptr) {
    return story.evaluated == 0 ? "Nothing has been evaluated yet."
                                : "No candidate gave the right result so far.";
  }
  const std::string ceiling =
      story.fraction <= 0
          ? ""
          : ", " + percent_text(story.fraction) + " of the measured ceiling" +
                (story.fraction > kAboveCeiling ? " (the machine was busier when that was "
                                                  "measured, or caches held part of the data)"
                                                : "");
  const std::string now = "one call takes " + human_us(story.final_us) + ceiling;
  if (story.best == story.start) {
    const std::string lead = view.confirmation ? "No candidate beat the starting kernel: "
                                               : "Nothing faster than the start so far: ";
    return lead + now + ".";
  }
  if (story.final_start_us <= 0) return "The start was not correct, the best is: " + now + ".";
  std::string text = speedup_text(story.speedup) + " faster than the start";
  if (story.confirmed) {
    text += " (95 % interval " + speedup_text(story.low) + " to " + speedup_text(story.high) +
            ", confirmed in fresh processes)";
  } else {
    text += " (best so far, not yet confirmed)";
  }
  return text + ": " + now + ", down from " + human_us(story.final_start_us) + ".";
}

std::string credit(const Story& story) {
  if (story.best == nullptr) return "";
  const std::string& who = story.best->known.candidate.origin.proposer;
  const std::string& idea = story.best->known.candidate.origin.idea;
  if (story.best == story.start || who == "start") return "The kernel is the one that was given.";
  if (who == "seed")
    return "The kernel was brought along (--start-from), not found here: " + printable(idea);
  const bool same_source = story.start != nullptr && story.start->known.candidate.source ==
                                                         story.best->known.candidate.source;
  if (same_source) {
    return "The structure was in the source; " +
           std::string(who == "tuner"   ? "the embedded tuner"
                       : who == "sweep" ? "a sweep over all settings"
                                        : "proposer \"" + who + "\"") +
           " chose the numbers.";
  }
  if (who == "tuner") {
    return "The structure came from an earlier candidate's source; the embedded tuner chose the "
           "numbers.";
  }
  if (who == "exchange") return "The source was written by a writer outside, through the exchange.";
  if (who == "replay") return "The candidate was replayed from a recorded run.";
  if (who == "model") return "The source was written by a language model.";
  return "The source was written by proposer \"" + who + "\".";
}

Result<std::string> html_report(const std::string& run_directory) {
  const auto view = load_run_view(run_directory);
  if (!view) return tl::unexpected<Error>(view.error());
  return render_html(*view);
}

Result<std::string> text_report(const std::string& run_directory) {
  const auto view = load_run_view(run_directory);
  if (!view) return tl::unexpected<Error>(view.error());
  return render_text(*view);
}

Result<std::string> json_report(const std::string& run_directory) {
  const auto view = load_run_view(run_directory);
  if (!view) return tl::unexpected<Error>(view.error());
  return render_json(*view);
}

}  // namespace kernelpro
