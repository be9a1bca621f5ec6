// SPDX-License-Identifier: Apache-2.0
#include "run/facts.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "core/plan/api_names.h"
#include "core/task/operator_family.h"
#include "measure/judge/evaluator.h"
#include "run/proposers.h"
#include "run/store/fact_file.h"
#include "run/store/settings.h"
#include "write/prompt/recall.h"

namespace kernelpro {

namespace {

constexpr std::size_t kFactsRead = 20000;  // the latest of a family
constexpr std::size_t kFactsHeld = 200;    // by a run
constexpr std::size_t kIdeaKept = 400;
constexpr std::size_t kKnobsKept = 200;
constexpr std::size_t kNamesKept = 16;
constexpr std::size_t kLinesKept = 3;  // of the removed lines, and of the added ones
constexpr std::size_t kLineKept = 140;
constexpr std::size_t kTellingLine = 9;  // characters; shorter ones are in any source
constexpr double kClearlyNearer = 0.05;  // of a source's lines
constexpr std::size_t kCureLines = 12;   // more of them are another kernel, and no cure

std::string one_line(const std::string& text, std::size_t most) {
  return printable(utf8_prefix(trim(replace_all(text, "\n", " ")), most));
}

// "TILE 16 -> 32, VEC 4": the knobs that differ from the parent's.
std::string moved_knobs(const KnobValues& from, const KnobValues& to) {
  std::vector<std::string> moved;
  for (const auto& [name, value] : to) {
    const auto before = from.find(name);
    if (before == from.end()) {
      moved.push_back(name + " " + value);
    } else if (before->second != value) {
      moved.push_back(name + " " + before->second + " -> " + value);
    }
  }
  return one_line(join_text(moved, ", "), kKnobsKept);
}

std::vector<std::string> new_names(const std::string& before, const std::string& after) {
  const std::set<std::string> old = api_names(before);
  std::vector<std::string> names;
  for (const std::string& name : api_names(after)) {
    if (old.count(name) == 0 && names.size() < kNamesKept) names.push_back(name);
  }
  return names;
}

std::map<std::string, int> counted_lines(const std::string& source) {
  std::map<std::string, int> counts;
  for (const std::string& line : lines(source)) ++counts[std::string(trim(line))];
  return counts;
}

// In C++ or Python.
bool is_comment(const std::string& line) {
  return line.starts_with("//") || line.starts_with("# ");
}
bool states_idea(const std::string& line) {
  return line.starts_with("// idea:") || line.starts_with("# idea:");
}

// How many lines of `source` are not in `other`.
std::size_t count_only(const std::string& source, const std::string& other) {
  std::map<std::string, int> known = counted_lines(other);
  std::size_t count = 0;
  for (const std::string& raw : lines(source)) {
    const std::string line(trim(raw));
    if (!line.empty() && !is_comment(line) && --known[line] < 0) ++count;
  }
  return count;
}

// Lines of `source` that are not in `other`, each with a sign in front.
std::string only_lines(const std::string& source, const std::string& other, const char* sign) {
  std::map<std::string, int> known = counted_lines(other);
  std::string text;
  std::size_t more = 0;
  std::size_t shown = 0;
  for (const std::string& raw : lines(source)) {
    const std::string line(trim(raw));
    if (line.empty() || states_idea(line) || --known[line] >= 0) continue;
    if (shown == kLinesKept) {
      ++more;
    } else {
      ++shown;
      text += sign + printable(utf8_prefix(line, kLineKept)) + "\n";
    }
  }
  if (more > 0) text += sign + ("(" + std::to_string(more) + " more lines)\n");
  return text;
}

// Lines that say something, without their indentation.
std::set<std::string> telling_lines(const std::string& source) {
  std::set<std::string> telling;
  for (const std::string& line : lines(source)) {
    if (trim(line).size() >= kTellingLine) telling.emplace(trim(line));
  }
  return telling;
}

double share_in(const std::set<std::string>& mine, const std::string& source) {
  const std::set<std::string> theirs = telling_lines(source);
  const auto common =
      std::ranges::count_if(mine, [&](const std::string& line) { return theirs.contains(line); });
  return static_cast<double>(common) / static_cast<double>(std::max<std::size_t>(1, mine.size()));
}

void tell_speed(const Ledger& ledger, const Known& parent, const Known& child, Fact* fact) {
  const double parent_us = ledger.comparable_us(parent.id);
  const double child_us = ledger.comparable_us(child.evaluation);
  if (parent_us > 0 && child_us > 0) fact->speedup = parent_us / child_us;
  const Correct* correct = child.evaluation.correct();
  if (correct == nullptr || !correct->versus) return;
  if (correct->versus->incumbent != parent.candidate.content_hash()) return;
  fact->speedup = correct->versus->ratio;
  fact->low = correct->versus->low;
  fact->high = correct->versus->high;
}

}  // namespace

FactFrame::FactFrame(const Task& task, TargetKind target, const Machine& machine) {
  common.machine = machine.name;
  common.arch = machine.arch;
  common.target = target;
  common.family = operator_family(task);
  common.task = task.name;
  common.task_hash = task.content_hash();
}

bool is_repair(const std::string& before, const std::string& after) {
  return count_only(before, after) <= kCureLines && count_only(after, before) <= kCureLines;
}

std::string changed_lines(const std::string& before, const std::string& after) {
  std::string text = only_lines(before, after, "- ") + only_lines(after, before, "+ ");
  if (!text.empty()) text.pop_back();
  return text;
}

KnownPtr made_from(const Ledger& ledger, const Known& child) {
  const KnownPtr parent = ledger.find(child.candidate.origin.parent);
  const Correct* correct = child.evaluation.correct();
  if (parent == nullptr || correct == nullptr || !correct->versus) return parent;
  if (parent->candidate.source == child.candidate.source) return parent;
  const KnownPtr rival = ledger.champion(correct->versus->incumbent);
  if (rival == nullptr || rival == parent || rival->brief()) return parent;
  const std::set<std::string> mine = telling_lines(child.candidate.source);
  const double of_parent = share_in(mine, parent->candidate.source);
  return share_in(mine, rival->candidate.source) > of_parent + kClearlyNearer ? rival : parent;
}

std::optional<Fact> fact_of(const FactFrame& frame, const Ledger& ledger, const Known& child) {
  const Origin& origin = child.candidate.origin;
  const KnownPtr parent = made_from(ledger, child);
  if (parent == nullptr) return std::nullopt;
  KP_ASSERT(!parent->brief());
  Fact fact = frame.common;
  fact.language = child.candidate.language;
  fact.candidate = child.candidate.content_hash();
  fact.proposer = origin.proposer;
  fact.idea = one_line(origin.idea, kIdeaKept);
  fact.answers = origin.answers;
  const bool same_source = parent->candidate.source == child.candidate.source;
  if (same_source) fact.knobs = moved_knobs(parent->candidate.knobs, child.candidate.knobs);
  fact.parent = parent->candidate.content_hash();
  fact.bound = parent->diagnosis.bound;
  fact.fraction = parent->diagnosis.fraction_of_ceiling;
  fact.outcome = outcome_kind(child.evaluation.outcome);
  fact.failure = failure_line(child.evaluation.outcome);
  if (child.evaluation.correct() == nullptr) return fact;
  tell_speed(ledger, *parent, child, &fact);
  fact.api = new_names(parent->candidate.source, child.candidate.source);
  // The candidate that it repairs, or a failed parent.
  KnownPtr failed = ledger.find(origin.repairs);
  if (failed == nullptr) failed = parent;
  if (failed->evaluation.correct() != nullptr) return fact;
  KP_ASSERT(!failed->brief());
  if (!is_repair(failed->candidate.source, child.candidate.source)) return fact;
  fact.error = failure_line(failed->evaluation.outcome);
  fact.cure = changed_lines(failed->candidate.source, child.candidate.source);
  return fact;
}

bool teaches(const RunSettings& settings) {
  const ProposerRow& row = proposer_of(settings);
  return !row.exhaustive && !row.replays;
}

bool leaves_facts(const RunSettings& settings) {
  return !settings.facts.empty() && teaches(settings);
}

std::vector<Fact> facts_to_begin_with(const Task& task, const RunSettings& settings,
                                      const Machine& machine, std::string* note) {
  if (!settings.memory || settings.facts.empty()) return {};
  FactFile file(settings.facts);
  const auto all =
      file.read(settings.target, operator_family(task), task.content_hash(), kFactsRead);
  *note = file.take_note();
  if (!all) *note = "this run goes without what earlier ones taught: " + all.error().message;
  if (!all) return {};
  return facts_for(*all, task, settings.target, machine, kFactsHeld);
}

Result<std::vector<Fact>> facts_of_run(const Store& store) {
  KP_ASSIGN(auto header, store.header());
  KP_ASSIGN(auto stored, store.candidates(false));
  std::erase_if(stored, [](const StoredCandidate& each) { return !each.evaluated; });
  std::sort(stored.begin(), stored.end(),
            [](const StoredCandidate& a, const StoredCandidate& b) { return a.order < b.order; });
  const RunSettings settings = settings_from_json(header.settings_json).value_or(RunSettings());
  if (!teaches(settings)) return std::vector<Fact>();
  const FactFrame frame(header.task, header.target, header.machine);
  Ledger ledger(settings.objective);
  std::vector<Fact> facts;
  for (StoredCandidate& each : stored) {
    if (auto fact = fact_of(frame, ledger, each.known)) facts.push_back(std::move(*fact));
    ledger.record(std::move(each.known));
  }
  return facts;
}

}  // namespace kernelpro
