// SPDX-License-Identifier: Apache-2.0
// The embedded tuner: moves the knobs that a source declares. Every untried move of the parent gets
// a rank (lower is sooner) from three things: which finding of the parent's diagnosis it answers,
// how far it goes, and what the same change did elsewhere in this run. A pure function of the
// request.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/knobs.h"
#include "propose/knob_history.h"
#include "propose/proposer.h"

namespace kernelpro {

namespace {

// Order of kinds of moves. Within one, the gain seen elsewhere decides, then the distance.
enum Tier {
  kProven,     // the same change was faster elsewhere
  kAnswer,     // answers a finding
  kNeighbour,  // the next value of one knob
  kJump,       // any other value of one knob
  kPair,       // two knobs at once
  kDisproved,  // the same change was slower elsewhere
  kCorner,     // far away
  kHopeless,   // has a value that has only ever failed
};

constexpr double kTie = 0.01;  // log speed-ups below this are no news
constexpr int kCornersDrawn = 400;
constexpr std::size_t kManyValues = 12;

struct Move {
  Setting setting;
  Tier tier = kCorner;
  double order = 0;  // within the tier
  std::string why;
  std::string answers;
};

std::uint64_t mix(std::uint64_t x) {  // splitmix64 (Steele, Lea, Flood 2014)
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Moves {
 public:
  Moves(const ProposalRequest& request, const std::vector<Knob>& knobs)
      : request_(request),
        knobs_(knobs),
        history_(knobs, request.parent->candidate, request.history, request.pending),
        at_(history_.parent()) {}

  // All moves, best first.
  std::vector<Move> ranked() {
    combined();
    singles();
    pairs();
    corners();
    std::stable_sort(moves_.begin(), moves_.end(), [](const Move& a, const Move& b) {
      return a.tier != b.tier ? a.tier < b.tier : a.order < b.order;
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
  struct Answer {
    int rank = 0;  // 0 for the first prescription of the first finding
    std::string why;
    std::string answers;
  };

  std::optional<Answer> answer(const Knob& knob) const {
    int rank = 0;
    for (const Finding& finding : request_.parent->diagnosis.findings) {
      for (const Prescription& prescription : finding.prescriptions) {
        if (std::find(knob.tags.begin(), knob.tags.end(), prescription.tag) != knob.tags.end()) {
          return Answer{rank, finding.tool + " asks for " + prescription.tag,
                        finding.tool + ": " + prescription.tag};
        }
        ++rank;
      }
    }
    return std::nullopt;
  }

  // Nearest first, up before down.
  static double distance(int from, int to) {
    return to > from ? 2.0 * (to - from) - 1 : 2.0 * (from - to);
  }

  bool hopeless(const Setting& setting) const {
    for (std::size_t k = 0; k < setting.size(); ++k) {
      if (setting[k] != at_[k] && history_.hopeless(static_cast<int>(k), setting[k])) return true;
    }
    return false;
  }

  void add(Move move) {
    if (history_.tried(move.setting)) return;
    if (hopeless(move.setting)) move.tier = kHopeless;
    moves_.push_back(std::move(move));
  }

  void singles() {
    for (int k = 0; k < static_cast<int>(knobs_.size()); ++k) {
      const std::optional<Answer> asked = answer(knobs_[k]);
      for (int to = 0; to < static_cast<int>(knobs_[k].values.size()); ++to) {
        if (to != at_[k]) single(k, to, asked);
      }
    }
  }

  void single(int k, int to, const std::optional<Answer>& asked) {
    Move move;
    move.setting = at_;
    move.setting[k] = static_cast<std::uint16_t>(to);
    const double far = distance(at_[k], to);
    const bool next_to = to == at_[k] + 1 || to == at_[k] - 1;
    const KnobHistory::Effect effect = history_.effect(k, at_[k], to);
    move.tier = next_to ? kNeighbour : kJump;
    move.order = far * 100 + k;
    move.why = next_to ? "an untried neighbour" : "an untried value further off";
    if (asked) {
      move.tier = kAnswer;
      move.order = asked->rank * 100 + far;
      move.why = "because " + asked->why;
      move.answers = asked->answers;
    }
    if (effect.pairs > 0 && effect.gain > kTie) {
      move.tier = kProven;
      move.order = -effect.gain;
      move.why = "which was faster elsewhere" + (asked ? "; " + asked->why : std::string());
    } else if (effect.pairs > 0) {
      move.tier = kDisproved;
      move.order = -effect.gain;
      move.why = "which did not help elsewhere, to see whether it does here";
      move.answers.clear();
    }
    add(std::move(move));
  }

  // A space with very many values is explored by its neighbours only.
  bool in_reach(int k, int to) const {
    return knobs_[k].values.size() <= kManyValues || distance(at_[k], to) <= 2;
  }

  void pairs() {
    for (int a = 0; a < static_cast<int>(knobs_.size()); ++a) {
      for (int b = a + 1; b < static_cast<int>(knobs_.size()); ++b) pair(a, b);
    }
  }

  // Every knob at the value that was best elsewhere, as if knobs did not depend on each other.
  void combined() {
    Move move;
    move.setting = at_;
    double gain = 0;
    for (int k = 0; k < static_cast<int>(knobs_.size()); ++k) {
      double most = kTie;
      for (int to = 0; to < static_cast<int>(knobs_[k].values.size()); ++to) {
        const KnobHistory::Effect effect = history_.effect(k, at_[k], to);
        if (effect.pairs == 0 || effect.gain <= most || history_.hopeless(k, to)) continue;
        most = effect.gain;
        move.setting[k] = static_cast<std::uint16_t>(to);
      }
      if (move.setting[k] != at_[k]) gain += most;
    }
    move.tier = kProven;
    move.order = -gain;
    move.why = "the values that were fastest elsewhere, together";
    add(std::move(move));
  }

  // Two knobs at once; those whose parts hurt least come first.
  void pair(int a, int b) {
    for (int to_a = 0; to_a < static_cast<int>(knobs_[a].values.size()); ++to_a) {
      for (int to_b = 0; to_b < static_cast<int>(knobs_[b].values.size()); ++to_b) {
        if (to_a == at_[a] || to_b == at_[b]) continue;
        if (!in_reach(a, to_a) || !in_reach(b, to_b)) continue;
        Move move;
        move.setting = at_;
        move.setting[a] = static_cast<std::uint16_t>(to_a);
        move.setting[b] = static_cast<std::uint16_t>(to_b);
        move.tier = kPair;
        const double gain =
            history_.effect(a, at_[a], to_a).gain + history_.effect(b, at_[b], to_b).gain;
        move.order = -gain + 0.001 * (distance(at_[a], to_a) + distance(at_[b], to_b));
        move.why = "two knobs that may only help together";
        if (gain > kTie) {
          move.tier = kProven;
          move.order = -gain;
          move.why = "each of which was faster elsewhere, or nearly so";
        }
        add(std::move(move));
      }
    }
  }

  // Settings drawn over the whole space, the same for every parent of a run.
  void corners() {
    for (int i = 0; i < kCornersDrawn; ++i) {
      Move move;
      for (std::size_t k = 0; k < knobs_.size(); ++k) {
        const std::uint64_t draw =
            mix(request_.seed * 0x10001 + static_cast<std::uint64_t>(i) * 64 + k);
        move.setting.push_back(static_cast<std::uint16_t>(draw % knobs_[k].values.size()));
      }
      move.tier = kCorner;
      move.order = i;
      move.why = "a far corner of the space";
      add(std::move(move));
    }
  }

  const ProposalRequest& request_;
  const std::vector<Knob>& knobs_;
  KnobHistory history_;
  Setting at_;
  std::vector<Move> moves_;
};

class Tuner : public Proposer {
 public:
  std::string name() const override { return "tuner"; }

  std::string credit() const override {
    return "The structure of the kernel was in the source; the embedded tuner chose the values of "
           "the knobs that it declares.";
  }

  Result<std::vector<Proposal>> propose(const ProposalRequest& request) override {
    std::vector<Proposal> proposals;
    const Candidate& parent = request.parent->candidate;
    auto knobs = parse_knobs(parent.source);
    if (!knobs) return tl::unexpected<Error>(std::move(knobs.error()));
    if (knobs->empty()) return proposals;
    Moves moves(request, *knobs);
    std::vector<Setting> given;
    for (Move& move : moves.ranked()) {
      if (static_cast<int>(proposals.size()) >= request.wanted) break;
      if (std::find(given.begin(), given.end(), move.setting) != given.end()) continue;
      given.push_back(move.setting);
      Proposal proposal;
      proposal.candidate = parent;
      proposal.candidate.knobs = moves.values(move.setting);
      proposal.candidate.origin = {"tuner", request.parent->id,
                                   moves.changes(move.setting) + ", " + move.why + ".",
                                   move.answers};
      proposals.push_back(std::move(proposal));
    }
    return proposals;
  }
};

}  // namespace

std::unique_ptr<Proposer> make_tuner() { return std::make_unique<Tuner>(); }

}  // namespace kernelpro
