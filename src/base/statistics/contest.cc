// SPDX-License-Identifier: Apache-2.0
#include "base/statistics/contest.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/statistics/randomised.h"

namespace kernelpro {

namespace {

constexpr double kPlainAlpha = 0.05;  // of intervals that decide nothing
constexpr double kHopeless = 1.2;     // a candidate this much slower need not be proven slower
constexpr int kFewestPairs = 3;
constexpr double kBusyPatience = 4;    // budget multiplier while most pairs are disturbed
constexpr int kBusyLooks = 4;          // at 12, 18, 27, 40 pairs
constexpr int kFewestForInterval = 6;  // fewer pairs have a range with less than 95 % confidence

}  // namespace

void Contest::Side::add(TurnTime turn) {
  KP_ASSERT(turn.least > 0 && turn.least <= turn.time);
  times.push_back(turn.time);
  least.push_back(turn.least);
}

// `ratio(incumbent, candidate, ends)` with its ends as far out as load can have been the cause: a
// turn's time without load lies anywhere from `least` to `times`.
template <class Ratio>
Interval Contest::widened(const Side& incumbent, const Side& candidate, const Ratio& ratio) {
  if (incumbent.least == incumbent.times && candidate.least == candidate.times) {
    return ratio(incumbent.times, candidate.times, Ends::kBoth);
  }
  const double low = ratio(incumbent.least, candidate.times, Ends::kLow).low;
  const double high = std::max(low, ratio(incumbent.times, candidate.least, Ends::kHigh).high);
  const double mid = std::min(ratio(incumbent.times, candidate.times, Ends::kNone).mid,
                              ratio(incumbent.least, candidate.least, Ends::kNone).mid);
  return {low, std::clamp(mid, low, high), high};
}

Interval Contest::block_interval() const {
  return widened(block_incumbent_, block_candidate_,
                 [](const auto& incumbent, const auto& candidate, Ends) {
                   return block_ratio(incumbent, candidate);
                 });
}

Contest::Contest(const ContestSettings& settings) : settings_(settings) {
  KP_ASSERT(settings.candidate_s > 0 && settings.max_pairs >= 1);
  if (!paired()) return;
  const double pair_s = settings.incumbent_s + settings.candidate_s;
  only_block_ = !settings.stop_early && settings.enough_pairs * pair_s > settings.hard_budget_s;
  if (settings.stop_early || only_block_) {
    order_ = block_order(cheapest_block(settings.incumbent_s, settings.candidate_s,
                                        only_block_ ? kPlainAlpha : settings.alpha / 2),
                         settings.seed);
  }
  SequentialSettings looks;
  looks.alpha = settings.alpha / 2;
  looks.min_effect = settings.min_effect;
  looks.max_pairs = settings.max_pairs;
  // Slow pairs get a single look, at the earliest useful count.
  const int fewest = 1 + static_cast<int>(std::ceil(std::log2(1 / looks.alpha)));
  if (looks.first_look * pair_s > settings.hard_budget_s) {
    looks.max_pairs = std::min(looks.max_pairs, fewest);
  }
  test_.emplace(looks);
  first_look_ = next_busy_look_ = test_->until_look();
}

Contest::Next Contest::next(double spent_s) const {
  if (in_block() && !hopeless(spent_s)) {
    return order_[block_next_] ? Next::kIncumbent : Next::kCandidate;
  }
  if (clear_ || hopeless(spent_s)) return Next::kDone;
  if (only_block_) return Next::kDone;
  if (pairs_ >= settings_.max_pairs) return Next::kDone;
  const bool sequential = paired() && settings_.stop_early;
  if (sequential && (busy() ? busy_decided_ : test_->done())) return Next::kDone;
  if (spent_s > settings_.hard_budget_s &&
      std::max(pairs_, static_cast<int>(block_candidate_.times.size())) >= kFewestPairs) {
    return Next::kDone;
  }
  const int fewest = std::max(settings_.enough_pairs, sequential ? first_look_ : 0);
  const double budget_s = settings_.budget_s * (paired() && busy() ? kBusyPatience : 1);
  if (spent_s > budget_s && pairs_ >= fewest) return Next::kDone;
  return Next::kPair;
}

// Slower in every turn so far, and further measurements are expensive.
bool Contest::hopeless(double spent_s) const {
  return settings_.stop_early && pairs_ == 0 && spent_s > settings_.hard_budget_s / 4 &&
         !block_incumbent_.empty() && !block_candidate_.empty() &&
         block_interval().high < 1 / kHopeless;
}

void Contest::add_turn(bool incumbent, TurnTime time) {
  KP_ASSERT(in_block() && order_[block_next_] == incumbent);
  if (!incumbent) candidate_.add(time);
  (incumbent ? block_incumbent_ : block_candidate_).add(time);
  ++block_next_;
  if (only_block_ || block_incumbent_.empty() || block_candidate_.empty()) return;
  if (!separated(block_incumbent_.times, block_candidate_.times)) return end_block();
  if (in_block()) return;
  const Interval ratio = block_interval();
  clear_ = ratio.low > 1 + settings_.min_effect || ratio.high < 1 - settings_.min_effect;
}

void Contest::add_pair(TurnTime incumbent, TurnTime candidate, bool disturbed) {
  KP_ASSERT(!in_block());
  candidate_.add(candidate);
  ++pairs_;
  disturbed_ += disturbed ? 1 : 0;
  if (!paired()) return;
  pair_incumbent_.add(incumbent);
  pair_candidate_.add(candidate);
  test_->add(incumbent.time / candidate.time);
  if (pairs_ == next_busy_look_) look_while_busy();
}

void Contest::look_while_busy() {
  next_busy_look_ = std::min(settings_.max_pairs, next_busy_look_ * 3 / 2);
  if (!settings_.stop_early || !busy()) return;
  busy_look_ = busy_ratio(settings_.alpha / 2 / kBusyLooks);
  const double above = 1 + settings_.min_effect, below = 1 - settings_.min_effect;
  busy_decided_ = busy_look_.low > above || busy_look_.high < below ||
                  (busy_look_.low > below && busy_look_.high < above);
}

Interval Contest::busy_ratio(double alpha) const {
  return widened(pair_incumbent_, pair_candidate_,
                 [&](const auto& incumbent, const auto& candidate, Ends ends) {
                   return randomised_ratio(incumbent, candidate, alpha, settings_.seed, ends);
                 });
}

void Contest::drop_incumbent() {
  settings_.incumbent_s = 0;
  only_block_ = false;
  end_block();
}

Interval Contest::ratio() const {
  KP_ASSERT(paired());
  if (clear_ || only_block_) return block_interval();
  if (!settings_.stop_early && pairs_ >= kFewestForInterval) {
    if (busy()) return busy_ratio(kPlainAlpha);
    return widened(pair_incumbent_, pair_candidate_,
                   [](const auto& incumbent, const auto& candidate, Ends) {
                     return paired_ratio(incumbent, candidate);
                   });
  }
  if (settings_.stop_early && pairs_ >= first_look_) {
    return busy() ? busy_look_ : test_->interval();
  }
  Interval interval = pairs_ > 0 ? test_->interval() : Interval{1, 1, 1};
  if (pairs_ == 0 && !block_incumbent_.empty() && !block_candidate_.empty()) {
    interval = block_interval();
  }
  return {std::min(interval.low, 1.0), interval.mid, std::max(interval.high, 1.0)};
}

}  // namespace kernelpro
