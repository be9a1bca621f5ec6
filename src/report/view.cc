// SPDX-License-Identifier: Apache-2.0
#include "report/view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "core/evaluation/label.h"
#include "report/report.h"
#include "run/planted.h"
#include "run/proposers.h"
#include "run/store/winner.h"
#include "write/proposer.h"

namespace kernelpro {

namespace {

// Speedups and the machine's load.
void compare(const RankedRun& run, Story* story) {
  for (std::size_t i = 0; i < run.order.size(); ++i) {
    const Known& known = run.order[i]->known;
    if (const Correct* correct = known.evaluation.correct()) {
      story->load.add(load_of(correct->observed));
    }
    if (const auto speedup = run.ranking.speedup_of(i)) story->speedups[known.id] = *speedup;
  }
}

void read_speedup(const RunView& view, Story* story) {
  const Correct* confirmed = story->confirmed ? view.confirmation->evaluation.correct() : nullptr;
  if (confirmed != nullptr && confirmed->versus) {
    story->speedup = confirmed->versus->ratio;
    story->low = confirmed->versus->low;
    story->high = confirmed->versus->high;
    const double us = score_us(view.confirmation->evaluation);
    if (us > 0) {
      story->fraction = confirmed_fraction(story->best->known, view.confirmation->evaluation);
      story->final_us = us;
      story->final_baseline_us = us * story->speedup;
    }
    return;
  }
  story->confirmed = false;
  const auto found =
      story->best == nullptr ? story->speedups.end() : story->speedups.find(story->best->known.id);
  if (found == story->speedups.end()) return;
  story->speedup = found->second.ratio;
  story->low = found->second.low;
  story->high = found->second.high;
  story->final_us = story->baseline_us / story->speedup;  // comparable with baseline_us
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

namespace {

// What both kinds of views have besides candidates.
Result<void> load_rest(const Store& store, RunView* view) {
  KP_ASSIGN(view->header, store.header());
  KP_ASSIGN(view->confirmation, store.confirmation());
  KP_ASSIGN(view->steps, store.tool_steps());
  KP_ASSIGN(view->calls, store.calls());
  // The report is useful without the tree: ignore errors.
  if (auto nodes = stored_nodes(store)) view->nodes = std::move(*nodes);
  view->run_seconds = store.run_seconds();
  return {};
}

}  // namespace

Result<RunView> load_brief_view(const Store& store, const std::string& directory) {
  RunView view;
  view.directory = directory;
  KP_TRY(load_rest(store, &view));
  KP_TRY(store.briefs([&](StoredBrief brief) {
    StoredCandidate& each = view.candidates.emplace_back();
    each.known = std::move(brief.known);
    each.evaluated = true;
    each.order = static_cast<std::int64_t>(view.candidates.size());
    each.at_s = brief.at_s;
  }));
  KP_ASSIGN(auto waiting, store.waiting());
  std::move(waiting.begin(), waiting.end(), std::back_inserter(view.candidates));
  make_comparable(view.header, &view.candidates);
  const Story story = tell(view);
  for (const StoredCandidate* each : {story.start, story.best}) {
    if (each == nullptr) continue;
    KP_ASSIGN(auto whole, store.candidate(each->known.id, true));
    StoredCandidate& kept = view.candidates[static_cast<std::size_t>(each - &view.candidates[0])];
    whole.known.comparable = kept.known.comparable;
    kept = std::move(whole);
  }
  return view;
}

Result<RunView> load_run_view(const std::string& directory) {
  KP_ASSIGN(auto store, Store::open(directory, Store::Mode::kRead));
  RunView view;
  view.directory = directory;
  KP_TRY(load_rest(*store, &view));
  view.open_requests = open_requests(join(directory, "exchange"));
  KP_ASSIGN(view.candidates, store->candidates(false));
  make_comparable(view.header, &view.candidates);
  // Evidence is most of a store's text, so read it only for the candidates that show it.
  const Story story = tell(view);
  for (StoredCandidate& each : view.candidates) {
    if (!each.evaluated || (&each != story.best && &each != story.start)) continue;
    KP_ASSIGN(auto whole, store->candidate(each.known.id, true));
    each.evidence = std::move(whole.evidence);
  }
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
  }
  const RankedRun run(view.header, view.candidates);
  story.start = run.start();
  story.baseline = run.baseline();
  story.borne = run.ranking.borne();
  compare(run, &story);
  const Winner winner = winner_of(run, view.confirmation ? &*view.confirmation : nullptr);
  story.best = winner.candidate;
  story.confirmed = winner.confirmed;
  if (story.baseline != nullptr) {
    story.baseline_us = score_us(story.baseline->known.evaluation);
    story.baseline_fraction = story.baseline->known.diagnosis.fraction_of_ceiling;
  }
  if (story.best != nullptr) {
    story.best_us = score_us(story.best->known.evaluation);
    story.fraction = story.best->known.diagnosis.fraction_of_ceiling;
  }
  story.final_us = story.best_us;
  story.final_baseline_us = story.baseline_us;
  read_speedup(view, &story);
  trace_path(&story);
  return story;
}

std::string_view baseline_words(const Story& story) {
  return story.baseline == story.start ? "start" : "first correct candidate";
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

// What the confirmation found beside the time: labels of the winner that the start has not.
std::string caveats(const RunView& view, const Story& story) {
  const Correct* won = view.confirmation ? view.confirmation->evaluation.correct() : nullptr;
  if (won == nullptr) return "";
  std::string text;
  for (const std::string& label : won->labels) {
    if (std::ranges::find(story.borne, label) != story.borne.end()) continue;
    const std::string meaning(label_meaning(label));
    text += " Caveat, " + printable(label) + (meaning.empty() ? "" : ": " + meaning) + ".";
  }
  return text;
}

// The fastest that keeps the contract in part only, where it is faster than the best.
std::string ranked_below(const Story& story) {
  const Borne& borne = story.borne;
  const StoredCandidate* fastest = nullptr;
  for (const auto& [id, speedup] : story.speedups) {
    const auto found = story.by_id.find(id);
    const Correct* correct =
        found == story.by_id.end() ? nullptr : found->second->known.evaluation.correct();
    if (correct == nullptr || !is_partial(*correct, borne)) continue;
    const double least = fastest == nullptr ? story.speedup_of(story.best->known.id)
                                            : story.speedup_of(fastest->known.id);
    if (speedup.ratio > least * (1 + kLeastEffect)) fastest = found->second;
  }
  if (fastest == nullptr || fastest == story.best) return "";
  const Correct& correct = *fastest->known.evaluation.correct();
  std::string text = " Candidate " + std::to_string(fastest->known.id) + " is faster (" +
                     speedup_text(story.speedup_of(fastest->known.id)) + ") and ranks below it";
  for (const std::string& label : correct.labels) {
    if (!is_partial(label) || std::ranges::find(borne, label) != borne.end()) continue;
    text += ", " + printable(label) + ": " + std::string(label_meaning(label));
  }
  return text + ".";
}

std::string verdict(const RunView& view, const Story& story) {
  if (story.best == nullptr) {
    return story.evaluated == 0 ? "Nothing has been evaluated yet."
                                : "No candidate is correct so far.";
  }
  std::string ceiling;
  if (story.fraction > 0) {
    ceiling = ", " + ceiling_share(story.fraction) + " of the measured ceiling";
    if (const std::string note = ceiling_note(story.fraction); !note.empty()) {
      ceiling += " (" + note + ")";
    } else if (!view.header.machine.ceilings.quiet) {
      ceiling += " (measured on a busy machine: the true ceiling may be higher)";
    }
  }
  const std::string now = "one call takes " + human_us(story.final_us) + ceiling;
  const std::string over(baseline_words(story));
  std::string text = story.baseline == story.start ? "" : "The start is incorrect. ";
  if (story.best == story.baseline) {
    const std::string it = story.best == story.start ? "starting kernel" : over;
    text += view.confirmation ? "No candidate beat the " + it
                              : "Nothing faster than the " + over + " so far";
    return text + ": " + now + "." + ranked_below(story);
  }
  const bool shown = !story.confirmed || story.low > 1;
  text += shown ? speedup_text(story.speedup) + " faster than the " + over
                : "Not shown to be faster than the " + over + ": " + speedup_text(story.speedup);
  if (story.confirmed) {
    text += " (95 % interval " + speedup_text(story.low) + " to " + speedup_text(story.high) +
            ", confirmed in fresh processes)";
  } else {
    text += " (best so far" +
            (story.low > 0 && story.low < story.high && std::isfinite(story.high)
                 ? ", 95 % interval " + speedup_text(story.low) + " to " + speedup_text(story.high)
                 : std::string()) +
            ", not yet confirmed)";
  }
  return text + ": " + now + (shown ? ", down from " : ", against ") +
         human_us(story.final_baseline_us) + "." + (story.confirmed ? caveats(view, story) : "") +
         ranked_below(story);
}

std::string credit(const Story& story) {
  if (story.best == nullptr) return "";
  const std::string& who = story.best->known.candidate.origin.proposer;
  const std::string idea = idea_text(story.best->known.candidate.origin);
  if (story.best == story.start || who == Origin::kStart)
    return "The kernel is the starting kernel.";
  if (who == Origin::kSeed)
    return "The kernel came from --start-from, not from this search: " + printable(idea);
  const auto row = find_proposer(who);
  const std::string quoted = "proposer \"" + who + "\"";
  const bool same_source = story.start != nullptr && story.start->known.candidate.source ==
                                                         story.best->known.candidate.source;
  if (same_source) {
    return "The structure came with the source; " +
           (row && !(*row)->chose.empty() ? std::string((*row)->chose) : quoted) +
           " chose the numbers.";
  }
  if (row && !(*row)->wrote.empty()) return std::string((*row)->wrote);
  return "The source was written by " + quoted + ".";
}

Result<std::string> html_report(const std::string& run_directory) {
  KP_ASSIGN(const auto view, load_run_view(run_directory));
  return render_html(view);
}

Result<std::string> text_report(const std::string& run_directory) {
  KP_ASSIGN(const auto view, load_run_view(run_directory));
  return render_text(view);
}

Result<std::string> json_report(const std::string& run_directory) {
  KP_ASSIGN(const auto view, load_run_view(run_directory));
  return render_json(view);
}

}  // namespace kernelpro
