// SPDX-License-Identifier: Apache-2.0
#include "suite/measures.h"

#include <cmath>
#include <map>

namespace kernelpro {

namespace {

bool scored(const Score& score) { return !score.correct || score.speedup > 0; }
double counted(const Score& score) { return score.correct ? score.speedup : 1; }

ArmComparison compare(const std::string& a, const std::vector<Score>& of_a, const std::string& b,
                      const std::vector<Score>& of_b, std::uint64_t seed) {
  ArmComparison result;
  result.a = a;
  result.b = b;
  std::map<std::string, const Score*> first;
  for (const Score& score : of_a) {
    if (scored(score)) first[score.task] = &score;
  }
  std::vector<double> differences;
  for (const Score& score : of_b) {
    const auto found = first.find(score.task);
    if (found == first.end() || !scored(score)) continue;
    differences.push_back(std::log(counted(score)) - std::log(counted(*found->second)));
    result.only_a += found->second->correct && !score.correct;
    result.only_b += score.correct && !found->second->correct;
  }
  result.pairs = static_cast<int>(differences.size());
  result.test = signed_rank(differences);
  if (differences.empty()) return result;
  const Interval mean = bootstrap_mean(differences, seed);
  result.ratio = std::exp(mean.mid);
  result.low = std::exp(mean.low);
  result.high = std::exp(mean.high);
  return result;
}

}  // namespace

Measures measure_scores(const std::vector<Score>& scores) {
  Measures m;
  std::vector<double> speedups, all, fractions;
  for (const Score& score : scores) {
    if (!scored(score)) {
      ++m.not_compared;
      continue;
    }
    ++m.tasks;
    all.push_back(counted(score));
    if (!score.correct) continue;
    ++m.correct;
    speedups.push_back(score.speedup);
    if (score.fraction > 0) fractions.push_back(score.fraction);
  }
  const double tasks = m.tasks;
  for (const double p : kFastThresholds) {
    int faster = 0;
    for (const double speedup : speedups) faster += speedup > p;
    m.fast.emplace_back(p, m.tasks > 0 ? faster / tasks : 0);
  }
  if (m.tasks > 0) m.success = m.correct / tasks;
  m.geomean_correct = geometric_mean(speedups);
  m.geomean_all = geometric_mean(all);
  m.median_correct = median(speedups);
  m.fraction = geometric_mean(fractions);
  return m;
}

std::vector<ArmComparison> compare_arms(
    const std::vector<std::pair<std::string, std::vector<Score>>>& arms, std::uint64_t seed) {
  std::vector<ArmComparison> all;
  std::vector<double> p;
  for (std::size_t a = 0; a < arms.size(); ++a) {
    for (std::size_t b = a + 1; b < arms.size(); ++b) {
      all.push_back(compare(arms[a].first, arms[a].second, arms[b].first, arms[b].second, seed));
      p.push_back(all.back().test.p);
    }
  }
  const std::vector<double> adjusted = holm(p);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].adjusted_p = adjusted[i];
  return all;
}

}  // namespace kernelpro
