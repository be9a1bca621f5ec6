// SPDX-License-Identifier: Apache-2.0
// Times that can be compared although they were measured at different times: a candidate's is its
// incumbent's divided by the ratio that was measured turn by turn, and so on back to the first
// candidate. Drift and load of the machine between evaluations cancel. Pure.
#pragma once

#include <string>
#include <unordered_map>

#include "core/evaluation.h"

namespace kernelpro {

struct Comparable {
  double us = 0;  // 0: not correct
  // Logarithms: how much smaller and larger the time may be by the 95 % intervals of all ratios on
  // the way, taken as independent.
  double less = 0, more = 0;
};

// How much faster, with its 95 % interval.
struct SpeedUp {
  double ratio = 1, low = 1, high = 1;
  bool operator==(const SpeedUp&) const = default;
};
SpeedUp speedup(const Comparable& from, const Comparable& to);

class Comparables {
 public:
  // Of an evaluation that is not recorded yet. Without an incumbent that is known: the measured
  // time itself.
  Comparable of(const Evaluation& evaluation) const;
  // Records a correct one under its content hash.
  Comparable add(const std::string& hash, const Evaluation& evaluation);
  const Comparable* find(const std::string& hash) const;

 private:
  std::unordered_map<std::string, Comparable> by_hash_;
};

}  // namespace kernelpro
