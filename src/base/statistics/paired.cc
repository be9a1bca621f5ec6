// SPDX-License-Identifier: Apache-2.0
#include "base/statistics/paired.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace kernelpro {

namespace {

constexpr int kMostExact = 25;

// P(W <= w) for the sum W of those ranks 1..n with a positive sign, both signs equally likely.
double exact_cdf(int n, double w) {
  const int most = n * (n + 1) / 2;
  std::vector<double> ways(static_cast<std::size_t>(most + 1), 0.0);
  ways[0] = 1;
  for (int rank = 1; rank <= n; ++rank) {
    for (int sum = most; sum >= rank; --sum) {
      ways[static_cast<std::size_t>(sum)] += ways[static_cast<std::size_t>(sum - rank)];
    }
  }
  double below = 0;
  for (int sum = 0; sum <= most && sum <= w; ++sum) below += ways[static_cast<std::size_t>(sum)];
  return below / std::exp2(n);
}

// SplitMix64 (Steele, Lea and Flood 2014): the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  // 0 .. n - 1; the bias of the multiplication is below n / 2^32.
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(((next() >> 32) * n) >> 32); }

 private:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

}  // namespace

SignedRank signed_rank(const std::vector<double>& differences) {
  SignedRank result;
  std::vector<double> values;
  for (const double d : differences) {
    if (d != 0) values.push_back(d);
  }
  const std::size_t n = values.size();
  result.pairs = static_cast<int>(n);
  if (n == 0) return result;
  std::sort(values.begin(), values.end(),
            [](double a, double b) { return std::fabs(a) < std::fabs(b); });
  double ties = 0;  // sum of t^3 - t over groups of t equal sizes
  for (std::size_t from = 0; from < n;) {
    std::size_t to = from;
    while (to < n && std::fabs(values[to]) == std::fabs(values[from])) ++to;
    const double t = static_cast<double>(to - from);
    ties += t * t * t - t;
    const double rank = static_cast<double>(from + 1 + to) / 2;
    for (; from < to; ++from) (values[from] > 0 ? result.plus : result.minus) += rank;
  }
  const double total = result.plus + result.minus;
  result.effect = (result.plus - result.minus) / total;
  const double least = std::min(result.plus, result.minus);
  result.exact = ties == 0 && n == differences.size() && result.pairs <= kMostExact;
  if (result.exact) {
    result.p = std::min(1.0, 2 * exact_cdf(result.pairs, least));
    return result;
  }
  const double count = static_cast<double>(n);
  const double variance = (count * (count + 1) * (2 * count + 1) - ties / 2) / 24;
  if (variance <= 0) return result;
  const double distance = std::max(0.0, total / 2 - least - 0.5);
  result.p = std::erfc(distance / std::sqrt(2 * variance));
  return result;
}

Interval bootstrap_mean(const std::vector<double>& values, std::uint64_t seed, int resamples,
                        double level) {
  KP_ASSERT(!values.empty());
  const double n = static_cast<double>(values.size());
  Random random(seed);
  std::vector<double> means(static_cast<std::size_t>(resamples));
  for (double& mean : means) {
    for (std::size_t i = 0; i < values.size(); ++i) mean += values[random.below(values.size())];
    mean /= n;
  }
  return {quantile(means, (1 - level) / 2), std::accumulate(values.begin(), values.end(), 0.0) / n,
          quantile(means, (1 + level) / 2)};
}

std::vector<double> holm(const std::vector<double>& p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double running = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    running = std::max(running, p[order[i]] * static_cast<double>(p.size() - i));
    adjusted[order[i]] = std::min(1.0, running);
  }
  return adjusted;
}

}  // namespace kernelpro
