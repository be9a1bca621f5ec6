// SPDX-License-Identifier: Apache-2.0
#include "run/store/comparable.h"

#include <cmath>
#include <limits>

namespace kernelpro {

namespace {

// Log distance between two ends of an interval; infinite if either end is open.
double apart(double from, double to) {
  if (!(from > 0) || !std::isfinite(to)) return std::numeric_limits<double>::infinity();
  return to > from ? std::log(to / from) : 0;
}

}  // namespace

SpeedUp speedup(const Comparable& from, const Comparable& to) {
  if (from.us <= 0 || to.us <= 0) return {};
  const double ratio = from.us / to.us;
  return {ratio, ratio * std::exp(-std::hypot(from.less, to.more)),
          ratio * std::exp(std::hypot(from.more, to.less))};
}

Comparable Comparables::of(const Evaluation& evaluation) const {
  const Correct* correct = evaluation.correct();
  if (correct == nullptr) return {};
  const double measured = score_us(evaluation);
  if (!correct->versus || !(correct->versus->ratio > 0)) return {measured, 0, 0};
  const Correct::Versus& v = *correct->versus;
  const Comparable* incumbent = find(v.incumbent);
  if (incumbent == nullptr) return {measured, 0, 0};
  return {incumbent->us / v.ratio, std::hypot(incumbent->less, apart(v.ratio, v.high)),
          std::hypot(incumbent->more, apart(v.low, v.ratio))};
}

Comparable Comparables::add(const std::string& hash, const Evaluation& evaluation) {
  const Comparable comparable = of(evaluation);
  if (comparable.us > 0) by_hash_[hash] = comparable;
  return comparable;
}

const Comparable* Comparables::find(const std::string& hash) const {
  const auto it = by_hash_.find(hash);
  return it == by_hash_.end() ? nullptr : &it->second;
}

}  // namespace kernelpro
