// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/recall.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "base/text.h"
#include "core/machine/machine.h"
#include "core/task/operator_family.h"

namespace kernelpro {

namespace {

constexpr RecallWeights kWeights;
constexpr double kAlike = 0.6;        // ideas with this share of common words are the same
constexpr double kErrorsAlike = 0.4;  // the same for compiler messages
constexpr double kFaster = 1 + kLeastEffect;
constexpr std::size_t kIdeaTold = 240;

using WordSet = std::set<std::string>;

// Words of three letters or more, in lower case; similar ideas differ in their numbers.
WordSet words_of(const std::string& text) {
  WordSet all;
  std::string word;
  for (const char c : text + " ") {
    const bool big = c >= 'A' && c <= 'Z';
    if (big || (c >= 'a' && c <= 'z') || c == '_') {
      word += big ? static_cast<char>(c - 'A' + 'a') : c;
      continue;
    }
    if (word.size() >= 3) all.insert(word);
    word.clear();
  }
  return all;
}

double likeness(const WordSet& a, const WordSet& b) {
  const auto both = std::count_if(a.begin(), a.end(),
                                  [&](const std::string& word) { return b.count(word) != 0; });
  const double either = static_cast<double>(a.size() + b.size()) - static_cast<double>(both);
  return either > 0 ? static_cast<double>(both) / either : 0;
}

bool is_correct(const Fact& fact) { return fact.outcome == OutcomeKind::kCorrect; }

// The subject of a question, computed once.
struct Inquiry {
  Inquiry() = default;
  Inquiry(const Task& task, const Machine* on)
      : name(task.name), hash(task.content_hash()), family(operator_family(task)), machine(on) {}
  std::string name, hash;
  std::vector<std::string> family;
  const Machine* machine = nullptr;
  // The parent's, if writers see them.
  std::set<std::string> tools;
  std::set<FindingRef> prescriptions;
  Bound bound = Bound::kUnknown;
};

Inquiry question_of(const ProposalRequest& request) {
  Inquiry question(*request.task, request.machine ? &*request.machine : nullptr);
  if (request.feedback != Feedback::kDiagnosed || request.parent == nullptr) return question;
  const Diagnosis& diagnosis = request.parent->diagnosis;
  question.bound = diagnosis.bound;
  for (const Finding& finding : diagnosis.findings) {
    question.tools.insert(finding.tool);
    for (const Prescription& each : finding.prescriptions) {
      question.prescriptions.insert({finding.tool, each.tag});
    }
  }
  return question;
}

bool of_this_arch(const Inquiry& question, const Fact& fact) {
  return question.machine != nullptr &&
         (fact.machine == question.machine->name || fact.arch == question.machine->arch);
}

double relation(const Inquiry& question, const Fact& fact) {
  double score = kWeights.family * family_likeness(question.family, fact.family);
  if (fact.task_hash == question.hash) {
    score = kWeights.same_task;
  } else if (fact.task == question.name && score > 0) {
    score = kWeights.same_name;
  }
  if (score <= 0) return 0;
  if (question.machine != nullptr && fact.machine == question.machine->name) {
    return score + kWeights.same_machine;
  }
  return score + (of_this_arch(question, fact) ? kWeights.same_arch : 0);
}

// 0: irrelevant to the question.
double score_of(const Inquiry& question, const Fact& fact) {
  double score = relation(question, fact);
  if (score <= 0) return 0;
  if (question.tools.count(fact.answers.tool) != 0) score += kWeights.same_finding;
  if (question.prescriptions.count(fact.answers) != 0) score += kWeights.same_tag;
  const bool same_bound = question.bound != Bound::kUnknown && question.bound == fact.bound;
  if (same_bound) score += kWeights.same_bound;
  if (was_faster(fact)) {
    score += kWeights.gain * std::min(1.0, std::log2(std::max(1.0, fact.speedup)));
  } else {
    score += kWeights.failure;
  }
  return score;
}

struct RankedFact {
  const Fact* fact = nullptr;
  double score = 0;
  std::size_t at = 0;  // index in the given list
};

// Relevant facts, best first; ties: latest first.
std::vector<RankedFact> ranked(const Inquiry& question, const std::vector<Fact>& facts) {
  const bool some_here = std::any_of(facts.begin(), facts.end(), [&](const Fact& fact) {
    return of_this_arch(question, fact) && relation(question, fact) > 0;
  });
  std::vector<RankedFact> all;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (some_here && !of_this_arch(question, facts[i])) continue;
    const double score = score_of(question, facts[i]);
    if (score > 0) all.push_back({&facts[i], score, i});
  }
  std::sort(all.begin(), all.end(), [](const RankedFact& a, const RankedFact& b) {
    return a.score != b.score ? a.score > b.score : a.at > b.at;
  });
  return all;
}

// Facts that agree about similar attempts.
struct Group {
  std::vector<const Fact*> facts;  // most relevant first
  WordSet words;
  double score = 0;
};

bool belongs(const Group& group, const Fact& fact, const WordSet& words) {
  const Fact& first = *group.facts.front();
  if (first.language != fact.language) return false;
  if (!first.knobs.empty() || !fact.knobs.empty()) return first.knobs == fact.knobs;
  return likeness(group.words, words) >= kAlike;
}

std::vector<Group> folded(const std::vector<RankedFact>& facts) {
  std::vector<Group> groups;
  for (const RankedFact& each : facts) {
    WordSet words = words_of(each.fact->idea);
    const auto like = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return belongs(group, *each.fact, words);
    });
    if (like == groups.end()) {
      groups.push_back({{each.fact}, std::move(words), each.score});
    } else {
      like->facts.push_back(each.fact);
    }
  }
  for (Group& group : groups) {
    if (std::any_of(group.facts.begin(), group.facts.end(),
                    [](const Fact* fact) { return was_faster(*fact); })) {
      continue;
    }
    const double more = static_cast<double>(std::min<std::size_t>(group.facts.size() - 1, 3));
    group.score += kWeights.failed_again * more;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.score > b.score; });
  return groups;
}

std::string speed_text(const Fact& fact) {
  if (fact.speedup <= 0) return "correct, where its parent was not";
  std::string text = number(fact.speedup, 3) + "x its parent";
  if (fact.low > 0) text += " (" + number(fact.low, 3) + " to " + number(fact.high, 3) + ")";
  return text;
}

std::string result_text_of(const Fact& fact) {
  if (is_correct(fact)) return speed_text(fact);
  const std::string outcome(outcome_name(fact.outcome));
  if (fact.outcome == OutcomeKind::kCompileError) return outcome + ": `" + fact.failure + "`";
  return fact.failure.empty() ? outcome : fact.failure;
}

// "2 compile-error, 1 0.93x its parent": attempts without gain, by kind.
std::string failures_text(const Group& group) {
  std::map<std::string, int> kinds;
  double best = 0;
  int slower = 0;
  for (const Fact* fact : group.facts) {
    if (was_faster(*fact)) continue;
    if (is_correct(*fact)) {
      ++slower;
      best = std::max(best, fact->speedup);
    } else {
      ++kinds[std::string(outcome_name(fact->outcome))];
    }
  }
  std::vector<std::string> parts;
  for (const auto& [kind, count] : kinds) parts.push_back(std::to_string(count) + " " + kind);
  if (slower > 0) {
    parts.push_back(std::to_string(slower) + " no faster" +
                    (best > 0 ? ", at best " + number(best, 3) + "x the parent" : ""));
  }
  return join_text(parts, "; ");
}

std::string result_text_of(const Group& group) {
  if (group.facts.size() == 1) return result_text_of(*group.facts.front());
  const auto times = "tried " + std::to_string(group.facts.size()) + " times, ";
  double most = 0;
  double least = 0;
  int faster = 0;
  for (const Fact* fact : group.facts) {
    if (!was_faster(*fact)) continue;
    ++faster;
    most = std::max(most, fact->speedup);
    least = least > 0 ? std::min(least, fact->speedup) : fact->speedup;
  }
  if (faster == 0) return times + "never faster: " + failures_text(group);
  std::string text = times + "faster " + std::to_string(faster) + " times: " + number(least, 3) +
                     "x to " + number(most, 3) + "x the parent";
  if (faster < static_cast<int>(group.facts.size())) text += "; " + failures_text(group);
  return text;
}

// One line, cut between words.
std::string told_idea(const Fact& fact) {
  const std::string line = printable(replace_all(fact.idea, "\n", " "));
  if (line.size() <= kIdeaTold) return line.empty() ? "an idea without a name" : line;
  const std::size_t space = line.rfind(' ', kIdeaTold);
  return (space == std::string::npos ? std::string(utf8_prefix(line, kIdeaTold))
                                     : line.substr(0, space)) +
         " ...";
}

// " (for scalar-loads: vectorize; on softmax; memory-bound at 41 %)": the differences from here.
std::string setting_text(const Inquiry& question, const Fact& fact, Feedback feedback) {
  std::vector<std::string> parts;
  if (feedback == Feedback::kDiagnosed && !fact.answers.empty()) {
    parts.push_back("for " + fact.answers.text());
  }
  if (fact.task_hash != question.hash) parts.push_back("on " + fact.task);
  if (question.machine == nullptr || fact.machine != question.machine->name) {
    parts.push_back("on " + fact.machine);
  }
  if (feedback == Feedback::kDiagnosed && fact.bound != Bound::kUnknown) {
    parts.push_back("the parent was " + std::string(bound_name(fact.bound)) + "-bound" +
                    (fact.fraction > kBeyondCeiling ? ", above the measured ceiling"
                     : fact.fraction > 0
                         ? ", at " + number(100 * fact.fraction, 2) + " % of the ceiling"
                         : ""));
  }
  return parts.empty() ? "" : " (" + join_text(parts, "; ") + ")";
}

std::string line_of(const Inquiry& question, const Group& group, Feedback feedback) {
  const Fact& fact = *group.facts.front();
  // Where only knobs moved, they say it; an idea adds at most a prediction, overtaken by the
  // result.
  return "- " + (fact.knobs.empty() ? told_idea(fact) : fact.knobs) +
         setting_text(question, fact, feedback) + " => " + result_text_of(group) + "\n";
}

// Features of correct kernels that the parent does not use yet.
std::string names_line(const std::vector<RankedFact>& facts, const ProposalRequest& request,
                       std::size_t most) {
  std::map<std::string, int> counts;
  const std::string& source = request.parent->candidate.source;
  for (const RankedFact& each : facts) {
    for (const std::string& name : each.fact->api) {
      if (!contains(source, name)) ++counts[name];
    }
  }
  std::vector<std::pair<int, std::string>> names;
  for (const auto& [name, count] : counts) names.emplace_back(-count, name);
  std::sort(names.begin(), names.end());
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) {
    text += (i == 0 ? "`" : ", `") + names[i].second + "`";
  }
  return text.empty() ? "" : "- Compiled, and in correct kernels: " + text + "\n";
}

std::string cure_lines(const Fact& fact) {
  std::string text;
  for (const std::string& line : lines(fact.cure)) text += "      " + line + "\n";
  return text;
}

std::string error_entry(const Fact& fact) {
  return "- `" + fact.error + "` was gone after:\n\n" + cure_lines(fact) + "\n";
}

// Not a slip of the pen, whose name no other kernel has. Earlier versions kept a few lines of whole
// rewrites: they cure nothing.
bool is_cure(const Fact& fact) {
  if (fact.error.empty() || fact.cure.empty()) return false;
  if (contains(fact.error, "did you mean")) return false;
  constexpr int kMostLeftOut = 9;
  for (const std::string& line : lines(fact.cure)) {
    if (line.ends_with(" more lines)") && line.size() > 3 && line[2] == '(' &&
        std::atoi(line.c_str() + 3) > kMostLeftOut) {
      return false;
    }
  }
  return true;
}

// For each kind of error, the most relevant cure.
std::string errors_lines(const std::vector<RankedFact>& facts, std::size_t most) {
  std::vector<WordSet> told;
  std::string text;
  for (const RankedFact& each : facts) {
    const Fact& fact = *each.fact;
    if (!is_cure(fact) || told.size() >= most) continue;
    const WordSet words = words_of(fact.error);
    if (std::any_of(told.begin(), told.end(),
                    [&](const WordSet& other) { return likeness(words, other) >= kErrorsAlike; })) {
      continue;
    }
    told.push_back(words);
    text += error_entry(fact);
  }
  return text;
}

}  // namespace

bool was_faster(const Fact& fact) { return (fact.low > 0 ? fact.low : fact.speedup) > kFaster; }

std::string fact_text(const Fact& fact) {
  Group alone;
  alone.facts = {&fact};
  const std::string line = line_of(Inquiry(), alone, Feedback::kDiagnosed);
  return line.substr(2, line.size() - 3);
}

std::vector<Fact> facts_for(const std::vector<Fact>& all, const Task& task, TargetKind target,
                            const Machine& machine, std::size_t most) {
  std::vector<Fact> here;
  for (const Fact& fact : all) {
    if (fact.target == target) here.push_back(fact);
  }
  std::vector<RankedFact> best = ranked(Inquiry(task, &machine), here);
  if (best.size() > most) best.resize(most);
  std::sort(best.begin(), best.end(),
            [](const RankedFact& a, const RankedFact& b) { return a.at < b.at; });
  std::vector<Fact> chosen;
  for (const RankedFact& each : best) chosen.push_back(*each.fact);
  return chosen;
}

std::string memory_text(const ProposalRequest& request, const RecallLimits& limits) {
  if (!request.memory || request.earlier.empty()) return "";
  const Inquiry question = question_of(request);
  const std::vector<RankedFact> facts = ranked(question, request.earlier);
  std::string text;
  std::size_t told = 0;
  for (const Group& group : folded(facts)) {
    if (told == limits.lines) break;
    const std::string line = line_of(question, group, request.feedback);
    if (text.size() + line.size() > limits.bytes) continue;
    text += line;
    ++told;
  }
  text += names_line(facts, request, limits.names);
  text += errors_lines(facts, limits.errors);
  return text.empty() ? "" : "\n## What earlier runs taught\n" + text;
}

std::string cures_text(const ProposalRequest& request, const std::string& failure,
                       const RecallLimits& limits) {
  if (!request.memory) return "";
  const WordSet wrong = words_of(failure_line(failure));
  struct Cure {
    const Fact* fact;
    double like;
  };
  std::vector<Cure> cures;
  // This run's facts come last in the list, so that ties put them first below.
  for (const std::vector<Fact>* facts : {&request.earlier, &request.lately}) {
    for (const Fact& fact : *facts) {
      if (!is_cure(fact)) continue;
      const double like = likeness(wrong, words_of(fact.error));
      if (like >= kErrorsAlike) cures.push_back({&fact, like});
    }
  }
  std::reverse(cures.begin(), cures.end());
  std::stable_sort(cures.begin(), cures.end(),
                   [](const Cure& a, const Cure& b) { return a.like > b.like; });
  std::string text;
  std::set<std::string> told;
  for (const Cure& each : cures) {
    if (told.size() >= limits.errors || !told.insert(each.fact->cure).second) continue;
    text += error_entry(*each.fact);
  }
  return text.empty() ? "" : "\n## What cured failures like it\n" + text;
}

namespace {

// Closeness of a run's candidates to a parent; larger is closer.
class Nearness {
 public:
  explicit Nearness(const ProposalRequest& request) : parent_(*request.parent) {
    std::map<std::int64_t, std::int64_t> above;
    for (const KnownPtr& known : request.history) {
      above[known->id] = known->candidate.origin.parent;
    }
    for (const KnownPtr& known : {request.baseline, request.best}) {
      if (known != nullptr) marks_.insert(known->id);
    }
    for (std::int64_t id = parent_.id; id != 0 && line_.insert(id).second;) {
      const auto up = above.find(id);
      id = up == above.end() ? 0 : up->second;
    }
    if (request.feedback != Feedback::kDiagnosed) return;
    for (const Finding& finding : parent_.diagnosis.findings) tools_.insert(finding.tool);
  }

  int of(const Known& known) const {
    const Origin& origin = known.candidate.origin;
    if (marks_.count(known.id) != 0 || line_.count(known.id) != 0) return 5;
    if (origin.parent == parent_.id) return 4;
    const bool answers = tools_.count(origin.answers.tool) != 0;
    const bool sibling = origin.parent != 0 && origin.parent == parent_.candidate.origin.parent;
    return (answers ? 2 : 0) + (sibling ? 1 : 0);
  }

 private:
  const Known& parent_;
  std::set<std::int64_t> marks_;  // baseline and best
  std::set<std::int64_t> line_;   // the parent and its ancestors
  std::set<std::string> tools_;
};

}  // namespace

History worth_telling(const ProposalRequest& request, std::size_t most) {
  History chosen = request.history;
  if (chosen.size() <= most) return chosen;
  const Nearness nearness(request);
  std::vector<std::pair<int, std::size_t>> order;  // nearness, index in the history
  for (std::size_t i = 0; i < chosen.size(); ++i) order.emplace_back(nearness.of(*chosen[i]), i);
  std::sort(order.begin(), order.end(), std::greater<>());
  order.resize(most);
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  chosen.clear();
  for (const auto& [near, at] : order) chosen.push_back(request.history[at]);
  return chosen;
}

}  // namespace kernelpro
