// SPDX-License-Identifier: Apache-2.0
#include "write/tuner/surrogate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"

namespace kernelpro {

namespace {

constexpr int kRounds = 2;
// Factors tried on the current rate.
constexpr double kFactors[] = {0.125, 0.5, 2, 8};
constexpr double kLeastRate = 0.01;
constexpr double kMostRate = 3;
constexpr double kFarthest = 3;  // maximum distance between a knob's first and last value

}  // namespace

Surrogate::Surrogate(std::vector<Axis> knobs, std::vector<Setting> settings,
                     std::vector<double> values, const SurrogatePrior& prior)
    : knobs_(std::move(knobs)),
      settings_(std::move(settings)),
      values_(std::move(values)),
      prior_(prior),
      rates_(knobs_.size(), prior.rate),
      alike_(knobs_.size()) {
  KP_ASSERT(!settings_.empty() && settings_.size() == values_.size());
  choose_rates();
}

void Surrogate::tabulate(std::size_t k) {
  const Axis& knob = knobs_[k];
  const double step = knob.values > 1 ? std::min(1.0, kFarthest / (knob.values - 1)) : 0;
  alike_[k].resize(static_cast<std::size_t>(knob.values));
  for (std::size_t places = 0; places < alike_[k].size(); ++places) {
    const double distance = knob.ordered ? step * static_cast<double>(places) : places > 0 ? 1 : 0;
    alike_[k][places] = std::exp(-rates_[k] * distance);
  }
}

double Surrogate::alike(const Setting& a, const Setting& b) const {
  double sum = 0, product = 1;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const double each = alike_[k][static_cast<std::size_t>(std::abs(int(a[k]) - int(b[k])))];
    sum += each;
    product *= each;
  }
  return prior_.apart * sum / static_cast<double>(a.size()) + (1 - prior_.apart) * product;
}

// Returns the log determinant.
double Surrogate::factorize() {
  const std::size_t n = settings_.size();
  lower_.resize(n * n);
  double log = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double* const row = &lower_[i * n];
    for (std::size_t j = 0; j <= i; ++j) {
      const double* const above = &lower_[j * n];
      double sum = i == j ? 1 + prior_.noise : alike(settings_[i], settings_[j]);
      for (std::size_t m = 0; m < j; ++m) sum -= row[m] * above[m];
      row[j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / above[j];
    }
    log += 2 * std::log(row[i]);
  }
  return log;
}

// Log likelihood plus log prior of the rates, up to a constant.
double Surrogate::likelihood() {
  const std::size_t n = settings_.size();
  const double log_determinant = factorize();
  std::vector<double> white(n);
  ones_.resize(n);
  double ones = 0, both = 0, values = 0;  // sums of products
  for (std::size_t i = 0; i < n; ++i) {
    double one = 1, value = values_[i];
    for (std::size_t m = 0; m < i; ++m) {
      one -= lower_[i * n + m] * ones_[m];
      value -= lower_[i * n + m] * white[m];
    }
    ones_[i] = one / lower_[i * n + i];
    white[i] = value / lower_[i * n + i];
    ones += ones_[i] * ones_[i];
    both += ones_[i] * white[i];
    values += white[i] * white[i];
  }
  ones_squared_ = ones;
  level_ = both / ones;
  const double squares = std::max(0.0, values - level_ * both);
  const double count = prior_.weight + static_cast<double>(n);
  variance_ = (prior_.weight * prior_.sd * prior_.sd + squares) / count;
  weights_.resize(n);
  for (std::size_t i = n; i-- > 0;) {
    double sum = white[i] - level_ * ones_[i];
    for (std::size_t m = i + 1; m < n; ++m) sum -= lower_[m * n + i] * weights_[m];
    weights_[i] = sum / lower_[i * n + i];
  }
  double log = -0.5 * (log_determinant + count * std::log(variance_) + std::log(ones));
  for (const double rate : rates_) {
    const double off = std::log(rate / prior_.rate) / prior_.spread;
    log -= 0.5 * off * off;
  }
  return log;
}

// One rate at a time.
void Surrogate::choose_rates() {
  for (std::size_t k = 0; k < rates_.size(); ++k) tabulate(k);
  double best = likelihood();
  for (int round = 0; round < kRounds && settings_.size() > 2; ++round) {
    for (std::size_t k = 0; k < rates_.size(); ++k) {
      if (knobs_[k].values < 2) continue;
      const double from = rates_[k];
      double chosen = from;
      for (const double factor : kFactors) {
        rates_[k] = std::clamp(from * factor, kLeastRate, kMostRate);
        tabulate(k);
        const double found = likelihood();
        if (found <= best) continue;
        best = found;
        chosen = rates_[k];
      }
      rates_[k] = chosen;
      tabulate(k);
    }
  }
  likelihood();
}

Surrogate::Expected Surrogate::at(const Setting& setting) const {
  const std::size_t n = settings_.size();
  std::vector<double> white(n);
  Expected expected{level_, 0};
  double known = 0, level = 1;
  for (std::size_t i = 0; i < n; ++i) {
    double sum = alike(settings_[i], setting);
    expected.mean += sum * weights_[i];
    for (std::size_t m = 0; m < i; ++m) sum -= lower_[i * n + m] * white[m];
    white[i] = sum / lower_[i * n + i];
    known += white[i] * white[i];
    level -= white[i] * ones_[i];
  }
  // The last term accounts for the unknown level.
  expected.sd = std::sqrt(variance_ * std::max(0.0, 1 - known + level * level / ones_squared_));
  return expected;
}

}  // namespace kernelpro
