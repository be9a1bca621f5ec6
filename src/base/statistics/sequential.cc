// SPDX-License-Identifier: Apache-2.0
#include "base/statistics/sequential.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace kernelpro {

namespace {

struct Rank {
  int rank = 0;
  double error = 0;  // chance that the median lies outside
};

// The largest rank whose interval misses the median of n values with at most `alpha`:
// 2 P(Bin(n, 1/2) < rank) <= alpha.
Rank rank_for(int n, double alpha) {
  double term = std::exp2(-n), below = 0;
  Rank best;
  for (int k = 0; k < n / 2; ++k) {
    below += term;
    if (2 * below > alpha) break;
    best = {k + 1, 2 * below};
    term *= static_cast<double>(n - k) / (k + 1);
  }
  return best;
}

// Lag-one correlation of the signs about the median, less half its standard error; at least 0.
double persistence(const std::vector<double>& values, double median) {
  double same = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    same += (values[i] > median) == (values[i - 1] > median) ? 1 : -1;
  }
  const double n = static_cast<double>(values.size());
  // Signs about the sample median are biased by -1 / n.
  const double r = same / (n - 1) + 1 / n - 0.5 / std::sqrt(n);
  return std::clamp(r, 0.0, 0.9);
}

}  // namespace

SequentialRatio::SequentialRatio(const SequentialSettings& settings) : settings_(settings) {
  KP_ASSERT(settings.max_pairs >= 1 && settings.growth > 1 && settings.alpha > 0);
  plan_looks();
}

void SequentialRatio::plan_looks() {
  for (double at = settings_.first_look; at < settings_.max_pairs;
       at = std::max(std::floor(at) + 1, at * settings_.growth)) {
    looks_.push_back({static_cast<int>(at), 0});
  }
  looks_.push_back({settings_.max_pairs, 0});
  double left = settings_.alpha;
  for (std::size_t k = 0; k < looks_.size(); ++k) {
    const Rank found = rank_for(looks_[k].pairs, left / static_cast<double>(looks_.size() - k));
    looks_[k].rank = found.rank;
    left -= found.error;
  }
}

void SequentialRatio::add(double ratio) {
  KP_ASSERT(ratio > 0);
  if (done()) return;
  ratios_.push_back(ratio);
  if (pairs() < looks_[next_look_].pairs) return;
  look(looks_[next_look_]);
  ++next_look_;
}

void SequentialRatio::look(const Look& at) {
  std::vector<double> sorted = ratios_;
  std::sort(sorted.begin(), sorted.end());
  const double half = static_cast<double>(sorted.size()) / 2;
  const double mid = median(sorted);
  const double r = persistence(ratios_, mid);
  const double wider = std::sqrt((1 + r) / (1 - r));
  const int rank = at.rank == 0 ? 0 : static_cast<int>(std::floor(half - wider * (half - at.rank)));
  const std::size_t low = static_cast<std::size_t>(std::max(rank, 1) - 1);
  interval_ = {sorted[low], mid, sorted[sorted.size() - 1 - low]};
  if (rank < 1) return;
  const double above = 1 + settings_.min_effect, below = 1 - settings_.min_effect;
  if (interval_.low > above) state_ = State::kFaster;
  if (interval_.high < below) state_ = State::kSlower;
  if (interval_.low > below && interval_.high < above) state_ = State::kTie;
}

bool SequentialRatio::done() const {
  return state_ != State::kUndecided || next_look_ >= looks_.size();
}

int SequentialRatio::until_look() const { return done() ? 0 : looks_[next_look_].pairs - pairs(); }

Interval SequentialRatio::interval() const {
  if (next_look_ > 0) return interval_;
  if (ratios_.empty()) return {1, 1, 1};
  const auto [low, high] = std::minmax_element(ratios_.begin(), ratios_.end());
  return {*low, median(ratios_), *high};
}

}  // namespace kernelpro
