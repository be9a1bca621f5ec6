// SPDX-License-Identifier: Apache-2.0
// The embedded tuner: moves the knobs that a source declares. A source's first move answers the
// parent's diagnosis, one knob at a time, so that it shows the value of the answer. After that, one
// surrogate (surrogate.h) of all measurements of this source, whoever the parent, predicts how much
// faster each untried setting is than the fastest, and another predicts how likely it works; their
// product ranks the settings (expected improvement: Mockus 1978; Jones et al. 1998). A pure
// function of the request. A source that declares no knob gets some first (found_knobs.h).
#include "write/tuner/tuner.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numbers>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "base/text.h"
#include "core/candidate/knobs.h"
#include "core/candidate/requirements.h"
#include "core/proposal/proposer.h"
#include "write/tuner/direction.h"
#include "write/tuner/found_knobs.h"
#include "write/tuner/knob_history.h"
#include "write/tuner/surrogate.h"

namespace kernelpro {

namespace {

// Own; the first three were chosen on two recorded landscapes (results/search.md). Prior
// expectation: log gain per step from a larger value of a knob with one of these tags, an
// engineer's bet before any measurement.
constexpr double kStepGain = 0.15;
constexpr std::string_view kMoreIsBetter[] = {"vectorize", "unroll", "pipeline"};
// Times are capped at this multiple of the fastest, so that outliers do not drown differences near
// the optimum.
constexpr double kSlowest = 2;
// For failures: a single knob rarely decides, and most settings work.
constexpr SurrogatePrior kOfWorking{.rate = 0.2, .sd = 0.3};
constexpr double kLeastChance = 0.01;
// A larger space is ranked only around the parent and the fastest.
constexpr std::size_t kWholeSpace = 1024;
constexpr int kCornersDrawn = 400;
constexpr int kMostDraws = 10 * kCornersDrawn;  // for requirements that allow few settings
constexpr std::size_t kManyValues = 12;
// Evaluations used by the surrogates: the fastest, and as many of the latest.
constexpr std::size_t kFastest = 32, kLatest = 32;

std::uint64_t mix(std::uint64_t x) {  // splitmix64 (Steele, Lea, Flood 2014)
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Numbers in rising or falling order; names are all equally far apart.
bool ordered(const Knob& knob) {
  std::vector<double> numbers;
  for (const std::string& text : knob.values) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return false;
    numbers.push_back(number);
  }
  return std::is_sorted(numbers.begin(), numbers.end()) ||
         std::is_sorted(numbers.rbegin(), numbers.rend());
}

bool has_tag(const Knob& knob, std::string_view tag) {
  return std::find(knob.tags.begin(), knob.tags.end(), tag) != knob.tags.end();
}

// A knob's values' expected cost relative to the first, before measuring.
std::vector<double> expected_costs(const Knob& knob) {
  std::vector<double> costs(knob.values.size());
  const auto better = [&](std::string_view tag) { return has_tag(knob, tag); };
  if (!ordered(knob) || std::none_of(std::begin(kMoreIsBetter), std::end(kMoreIsBetter), better)) {
    return costs;
  }
  const bool falling = costs.size() > 1 && std::atof(knob.values.front().c_str()) >
                                               std::atof(knob.values.back().c_str());
  const double steps = static_cast<double>(costs.size()) - 1;
  const double step = kStepGain * std::min(1.0, 3 / std::max(1.0, steps));
  for (std::size_t v = 0; v < costs.size(); ++v) {
    costs[v] = (falling ? 1 : -1) * step * static_cast<double>(v);
  }
  return costs;
}

// Expected amount by which a normal variable lies below zero.
double expected_below_zero(double mean, double sd) {
  if (sd <= 0) return std::max(0.0, -mean);
  const double z = -mean / sd;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
  return -mean * 0.5 * std::erfc(-z / std::numbers::sqrt2) + sd * density;
}

struct Move {
  Setting setting;
  int tier = 1;  // 0: answers a finding; 1: by expectation; 2: has a value that only ever failed
  double order = 0;       // within the tier, lower is sooner
  std::uint64_t lot = 0;  // tie-breaker
  Surrogate::Expected expected;
  double chance = 1;  // of working
  std::string why;    // it answers the diagnosis; "": by expectation
  FindingRef answers;
};

class Moves {
 public:
  Moves(const ProposalRequest& request, const std::vector<Knob>& knobs,
        const Requirements& requirements)
      : request_(request),
        knobs_(knobs),
        requirements_(requirements),
        history_(knobs, request.parent->candidate, request.history, request.pending),
        at_(history_.parent()) {
    for (const Knob& knob : knobs) {
      axes_.push_back({static_cast<int>(knob.values.size()), ordered(knob)});
      costs_.push_back(expected_costs(knob));
    }
    learn();
  }

  // All moves, best first.
  std::vector<Move> ranked() {
    if (history_.seen().size() <= 1) answers();
    settings();
    std::sort(moves_.begin(), moves_.end(), [](const Move& a, const Move& b) {
      return std::tie(a.tier, a.order, a.lot) < std::tie(b.tier, b.order, b.lot);
    });
    return std::move(moves_);
  }

  KnobValues values(const Setting& setting) const {
    KnobValues values = request_.parent->candidate.knobs;
    for (std::size_t k = 0; k < knobs_.size(); ++k) {
      values[knobs_[k].name] = knobs_[k].values[setting[k]];
    }
    return values;
  }

  // For display.
  std::string why(const Move& move) const {
    if (!move.why.empty()) return move.why;
    if (!times_) return "a setting not tried yet";
    std::string text = "predicted at " + number(std::exp(-move.expected.mean), 2) +
                       "x the speed of the fastest, +/- " + number(100 * move.expected.sd, 2) +
                       " %";
    if (move.chance < 0.75) text += ", if it works";
    return text;
  }

  // The finding that a change of one knob answers, in the direction that it prescribes, whatever
  // the reason for the change: it counts in the record of findings. Empty: none, or several knobs
  // move at once.
  FindingRef answered(const Move& move) const {
    int changed = -1;
    for (std::size_t k = 0; k < knobs_.size(); ++k) {
      if (move.setting[k] == at_[k]) continue;
      if (changed >= 0) return {};
      changed = static_cast<int>(k);
    }
    if (changed < 0) return {};
    for (const Finding& finding : request_.parent->diagnosis.findings) {
      for (const Prescription& prescription : finding.prescriptions) {
        const Knob& knob = knobs_[static_cast<std::size_t>(changed)];
        if (!has_tag(knob, prescription.tag)) continue;
        const auto at = static_cast<std::size_t>(changed);
        if (!follows(direction_of(prescription), knob, at_[at], move.setting[at])) continue;
        return {finding.tool, prescription.tag};
      }
    }
    return {};
  }

  std::string changes(const Setting& setting) const {
    std::string text;
    for (std::size_t k = 0; k < knobs_.size(); ++k) {
      if (setting[k] == at_[k]) continue;
      if (!text.empty()) text += ", ";
      text +=
          knobs_[k].name + " " + knobs_[k].values[at_[k]] + " -> " + knobs_[k].values[setting[k]];
    }
    return text;
  }

 private:
  double cost(const Setting& setting) const {
    double sum = 0;
    for (std::size_t k = 0; k < setting.size(); ++k) sum += costs_[k][setting[k]];
    return sum;
  }

  // Builds the surrogates: of times, relative to the fastest and minus the prior expectation, and
  // of which settings work.
  void learn() {
    const std::vector<KnobHistory::Seen>& seen = history_.seen();
    std::vector<std::size_t> correct;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i].correct) correct.push_back(i);
    }
    if (correct.size() > kFastest + kLatest) {
      std::stable_sort(correct.begin(), correct.end() - kLatest, [&](std::size_t a, std::size_t b) {
        return seen[a].log_time < seen[b].log_time;
      });
      correct.erase(correct.begin() + kFastest, correct.end() - kLatest);
    }
    std::vector<Setting> where;
    std::vector<double> what;
    for (const std::size_t i : correct) {
      const double log = seen[i].log_time - seen[history_.fastest()].log_time;
      where.push_back(seen[i].setting);
      what.push_back(std::min(log, std::log(kSlowest)) - cost(seen[i].setting));
    }
    if (!where.empty()) times_.emplace(axes_, where, what, SurrogatePrior());
    where.clear();
    what.clear();
    const std::size_t from = seen.size() - std::min(seen.size(), kFastest + kLatest);
    bool failed = false;
    for (std::size_t i = from; i < seen.size(); ++i) {
      where.push_back(seen[i].setting);
      what.push_back(seen[i].correct ? 1 : 0);
      failed |= !seen[i].correct;
    }
    if (failed) works_.emplace(axes_, where, what, kOfWorking);
  }

  // Single-knob changes that the parent's findings prescribe, in the findings' order.
  void answers() {
    std::set<Setting> given;
    int rank = 0;
    for (const Finding& finding : request_.parent->diagnosis.findings) {
      for (const Prescription& prescription : finding.prescriptions) {
        for (std::size_t k = 0; k < knobs_.size(); ++k) {
          if (has_tag(knobs_[k], prescription.tag)) answer(k, rank, finding, prescription, &given);
        }
        ++rank;
      }
    }
  }

  void answer(std::size_t k, int rank, const Finding& finding, const Prescription& prescription,
              std::set<Setting>* given) {
    const Direction direction = direction_of(prescription);
    for (int to = 0; to < axes_[k].values; ++to) {
      if (!follows(direction, knobs_[k], at_[k], to)) continue;
      Move move;
      move.setting = at_;
      move.setting[k] = static_cast<std::uint16_t>(to);
      if (history_.tried(move.setting) || !requirements_.hold(move.setting)) continue;
      if (!given->insert(move.setting).second) continue;
      move.tier = 0;
      move.order = rank * 1000 + distance(at_[k], to);
      move.lot = k;
      move.why = "because " + finding.tool + " prescribes " + prescription.tag;
      move.answers = {finding.tool, prescription.tag};
      moves_.push_back(std::move(move));
    }
  }

  // Nearest first, up before down.
  static double distance(int from, int to) {
    return to > from ? 2.0 * (to - from) - 1 : 2.0 * (from - to);
  }

  void settings() {
    std::size_t space = 1;
    for (const Surrogate::Axis& axis : axes_) {
      space *= static_cast<std::size_t>(axis.values);
      if (space > kWholeSpace) {
        around(at_);
        if (history_.fastest() >= 0) around(history_.seen()[history_.fastest()].setting);
        corners();
        return;
      }
    }
    for (std::size_t index = 0; index < space; ++index) {
      Setting setting(axes_.size());
      std::size_t rest = index;
      for (std::size_t k = 0; k < axes_.size(); ++k) {
        const auto count = static_cast<std::size_t>(axes_[k].values);
        setting[k] = static_cast<std::uint16_t>(rest % count);
        rest /= count;
      }
      add(std::move(setting));
    }
  }

  // A knob with very many values moves by one place when another moves too.
  bool in_reach(std::size_t k, int from, int to) const {
    return knobs_[k].values.size() <= kManyValues || std::abs(from - to) <= 1;
  }

  // Moves of one knob, or of two at once.
  void around(const Setting& center) {
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      for (int to_a = 0; to_a < axes_[a].values; ++to_a) {
        if (to_a == center[a]) continue;
        Setting one = center;
        one[a] = static_cast<std::uint16_t>(to_a);
        add(one);
        for (std::size_t b = a + 1; b < axes_.size() && in_reach(a, center[a], to_a); ++b) {
          for (int to_b = 0; to_b < axes_[b].values; ++to_b) {
            if (to_b == center[b] || !in_reach(b, center[b], to_b)) continue;
            Setting two = one;
            two[b] = static_cast<std::uint16_t>(to_b);
            add(std::move(two));
          }
        }
      }
    }
  }

  // Random settings over the whole space, the same for every parent of a run.
  void corners() {
    for (int i = 0, drawn = 0; i < kMostDraws && drawn < kCornersDrawn; ++i) {
      Setting setting;
      for (std::size_t k = 0; k < axes_.size(); ++k) {
        const std::uint64_t draw =
            mix(request_.seed * 0x10001 + static_cast<std::uint64_t>(i) * 64 + k);
        setting.push_back(
            static_cast<std::uint16_t>(draw % static_cast<std::uint64_t>(axes_[k].values)));
      }
      if (add(std::move(setting))) ++drawn;
    }
  }

  // False: the source's requirements forbid it.
  bool add(Setting setting) {
    if (!requirements_.hold(setting)) return false;
    if (history_.tried(setting)) return true;
    Move move;
    move.tier = history_.hopeless(setting) ? 2 : 1;
    Surrogate::Expected expected;
    double worth = 0;
    if (times_) {
      expected = times_->at(setting);
      expected.mean += cost(setting);
      worth = expected_below_zero(expected.mean, expected.sd);
    }
    const double chance = works_ ? std::clamp(works_->at(setting).mean, kLeastChance, 1.0) : 1;
    move.order = -worth * chance;
    move.lot = request_.seed;
    for (const std::uint16_t value : setting) move.lot = mix(move.lot * 0x10001 + value);
    move.expected = expected;
    move.chance = chance;
    move.setting = std::move(setting);
    moves_.push_back(std::move(move));
    return true;
  }

  const ProposalRequest& request_;
  const std::vector<Knob>& knobs_;
  const Requirements& requirements_;
  KnobHistory history_;
  Setting at_;
  std::vector<Surrogate::Axis> axes_;
  std::vector<std::vector<double>> costs_;  // [knob][value]
  std::optional<Surrogate> times_, works_;
  std::vector<Move> moves_;
};

KnobSite knob_site(const ProposalRequest& request) {
  KnobSite site;
  site.reserved = reserved_names(*request.task);
  for (const Case& each : request.task->cases) {
    for (const auto& [name, size] : each.dims) site.sizes.insert(size);
  }
  if (request.machine && request.target == TargetKind::kCpu) {
    site.processors = request.machine->parallel_units;
    site.instruction_sets = request.machine->instruction_sets;
  }
  return site;
}

// The parent with knobs, at the values that leave it as it is: the first candidate of a source that
// declares none.
std::optional<Proposal> with_knobs(const ProposalRequest& request, const std::string& proposer) {
  auto found = find_knobs(request.parent->candidate, knob_site(request));
  if (!found) return std::nullopt;
  Proposal proposal;
  proposal.candidate = request.parent->candidate;
  proposal.candidate.source = std::move(found->source);
  proposal.candidate.knobs = std::move(found->values);
  proposal.candidate.origin = {proposer, request.parent->id,
                               "The same kernel with knobs: " + join_text(found->what, ", ") + "."};
  const std::string hash = proposal.candidate.content_hash();
  for (const KnownPtr& known : request.history) {
    if (content_hash(*known) == hash) return std::nullopt;
  }
  return proposal;
}

class Tuner : public Proposer {
 public:
  std::string name() const override { return kTunerName; }

  Result<void> propose(const ProposalRequest& request, const WriterSink& give) override {
    const Candidate& parent = request.parent->candidate;
    KP_ASSIGN(auto knobs, parse_knobs(parent.source));
    if (knobs.empty()) {
      if (request.task == nullptr) return {};
      if (auto proposal = with_knobs(request, name())) give(std::move(*proposal));
      return {};
    }
    KP_ASSIGN(const auto requirements, Requirements::parse(parent.source, knobs));
    Moves moves(request, knobs, requirements);
    std::set<Setting> given;
    for (Move& move : moves.ranked()) {
      if (static_cast<int>(given.size()) >= request.wanted) break;
      if (!given.insert(move.setting).second) continue;
      Proposal proposal;
      proposal.candidate = parent;
      proposal.candidate.knobs = moves.values(move.setting);
      const FindingRef answers = move.answers.empty() ? moves.answered(move) : move.answers;
      proposal.candidate.origin = {name(), request.parent->id,
                                   moves.changes(move.setting) + ", " + moves.why(move) + ".",
                                   answers};
      give(std::move(proposal));
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Proposer> make_tuner() { return std::make_unique<Tuner>(); }

}  // namespace kernelpro
