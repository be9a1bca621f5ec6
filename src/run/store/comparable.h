// SPDX-License-Identifier: Apache-2.0
// Makes times from different moments comparable: a candidate's time is its incumbent's divided by
// the ratio measured in alternation, and so on back to the first candidate. This cancels drift and
// load of the machine between evaluations. Pure.
#pragma once

#include <string>
#include <unordered_map>

#include "core/evaluation/evaluation.h"

namespace kernelpro {

struct Comparable {
  double us = 0;  // 0: not correct
  // Logarithms: how far the true time may lie below and above, from the 95 % intervals of all
  // ratios on the way, taken as independent.
  double less = 0, more = 0;
};

// Speed-up ratio with its 95 % interval.
struct SpeedUp {
  double ratio = 1, low = 1, high = 1;
  bool operator==(const SpeedUp&) const = default;
};
SpeedUp speedup(const Comparable& from, const Comparable& to);

class Comparables {
 public:
  // For an evaluation not recorded yet. Without a known incumbent: the measured time itself.
  Comparable of(const Evaluation& evaluation) const;
  // Records a correct evaluation under its content hash.
  Comparable add(const std::string& hash, const Evaluation& evaluation);
  const Comparable* find(const std::string& hash) const;

 private:
  std::unordered_map<std::string, Comparable> by_hash_;
};

}  // namespace kernelpro
