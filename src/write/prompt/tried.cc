// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/tried.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "core/candidate/knobs.h"
#include "core/evaluation/label.h"
#include "write/prompt/recall.h"
#include "write/prompt/reply.h"

namespace kernelpro {

namespace {

constexpr std::size_t kTriedShown = 40;
constexpr std::size_t kIdeaShown = 240;

// One line of about this many bytes, cut between words.
std::string brief(const std::string& text) {
  const std::string line = one_line(text);
  if (line.size() <= kIdeaShown) return line;
  const std::size_t space = line.rfind(' ', kIdeaShown);
  return (space == std::string::npos ? std::string(utf8_prefix(line, kIdeaShown))
                                     : line.substr(0, space)) +
         " ...";
}

// Evaluations of one source.
struct Settings {
  History all;    // in order of evaluation
  KnownPtr best;  // the fastest, or the first when none is correct
  int failed = 0;
  double slowest_us = 0;
};

void add(const KnownPtr& known, Settings* settings) {
  settings->all.push_back(known);
  const double us = comparable_us(*known);
  if (us <= 0) ++settings->failed;
  settings->slowest_us = std::max(settings->slowest_us, us);
  const double best_us = settings->best == nullptr ? 0 : comparable_us(*settings->best);
  if (settings->best == nullptr || (us > 0 && (best_us <= 0 || us < best_us))) {
    settings->best = known;
  }
}

// The sources of the history, in the order of their first evaluation.
std::vector<Settings> by_source(const History& history) {
  std::vector<Settings> sources;
  std::map<std::string, std::size_t> places;
  for (const KnownPtr& known : history) {
    const auto [place, added] = places.emplace(source_key(*known), sources.size());
    if (added) sources.emplace_back();
    add(known, &sources[place->second]);
  }
  return sources;
}

// The incumbent that a candidate was timed against in turn; 0: it is not known.
std::int64_t incumbent_of(const Correct& correct, const History& history) {
  for (const KnownPtr& known : history) {
    if (content_hash(*known) == correct.versus->incumbent) return known->id;
  }
  return 0;
}

std::string settings_text(const Settings& settings) {
  if (settings.all.size() < 2) return "";
  std::string text = "; the fastest of " + std::to_string(settings.all.size()) + " settings";
  if (settings.slowest_us > 0) text += ", the slowest took " + human_us(settings.slowest_us);
  if (settings.failed > 0) text += ", " + std::to_string(settings.failed) + " failed";
  return text;
}

std::string line_of(const Settings& settings, const ProposalRequest& request) {
  const Known& known = *settings.best;
  // The idea of the source; its settings' own are numbers.
  const Origin& origin = settings.all.front()->candidate.origin;
  std::string line = "- " + std::to_string(known.id);
  if (origin.parent != 0) line += " (from " + std::to_string(origin.parent) + ")";
  line += ": " + (origin.idea.empty() ? origin.proposer : brief(idea_text(origin)));
  if (!known.candidate.knobs.empty()) line += " [" + knobs_to_text(known.candidate.knobs) + "]";
  const bool correct = known.evaluation.correct() != nullptr;
  line += " => " + (correct ? speed_text(known, request)
                            : one_line(first_line(outcome_summary(known.evaluation.outcome))));
  if (correct) {
    for (const std::string& label : known.evaluation.correct()->labels) {
      if (is_partial(label)) line += ", " + label;
    }
  }
  return line + settings_text(settings) + "\n";
}

}  // namespace

std::string speed_text(const Known& known, const ProposalRequest& request) {
  const double us = comparable_us(known);
  std::string text = human_us(us);
  const bool is_start = request.baseline != nullptr && request.baseline->id == known.id;
  // The first correct candidate is the start, unless that failed.
  const bool same = request.baseline != nullptr && request.start != nullptr &&
                    request.start->id == request.baseline->id;
  const std::string over = same || request.start == nullptr ? "the start" : "the first correct one";
  if (is_start) return text + ", " + over;
  if (request.baseline != nullptr) {
    text += ", " + number(comparable_us(*request.baseline) / us, 3) + "x " + over;
  }
  const Correct* correct = known.evaluation.correct();
  if (correct == nullptr || !correct->versus) return text;
  const std::int64_t incumbent = incumbent_of(*correct, request.history);
  if (incumbent == 0) return text;
  return text + ", " + number(correct->versus->ratio, 3) + "x candidate " +
         std::to_string(incumbent) + " (" + number(correct->versus->low, 3) + " to " +
         number(correct->versus->high, 3) + ")";
}

std::string tried_text(const ProposalRequest& request) {
  if (!request.memory) return "- not shown: this run goes without memory\n";
  std::vector<Settings> sources = by_source(request.history);
  History fastest;
  for (const Settings& each : sources) fastest.push_back(each.best);
  std::string text;
  if (sources.size() > kTriedShown) {
    ProposalRequest narrowed = request;
    narrowed.history = fastest;
    const History shown = worth_telling(narrowed, kTriedShown);
    std::erase_if(sources, [&](const Settings& each) {
      return std::find(shown.begin(), shown.end(), each.best) == shown.end();
    });
    text = "- (" + std::to_string(fastest.size() - shown.size()) +
           " are left out that are less related to candidate " +
           std::to_string(request.parent->id) + ")\n";
  }
  for (const Settings& each : sources) text += line_of(each, request);
  return text.empty() ? "- nothing yet\n" : text;
}

}  // namespace kernelpro
