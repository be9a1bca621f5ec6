// SPDX-License-Identifier: Apache-2.0
// Earlier evaluations of one source, by knob values. Pure; built for one proposal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "core/candidate/knobs.h"
#include "core/proposal/proposal.h"

namespace kernelpro {

// One value index per knob.
using Setting = std::vector<std::uint16_t>;

class KnobHistory {
 public:
  // Uses only candidates with the language and source of `parent`. `pending` ones count as tried.
  KnobHistory(const std::vector<Knob>& knobs, const Candidate& parent, const History& history,
              const std::vector<Candidate>& pending = {});

  // The setting of a candidate; a value that the source does not list counts as the default.
  static Setting setting_of(const std::vector<Knob>& knobs, const KnobValues& values);

  const Setting& parent() const { return parent_; }
  bool tried(const Setting& setting) const { return tried_.count(setting) != 0; }

  struct Seen {
    Setting setting;
    double log_time = 0;  // when correct; logarithm of us
    bool correct = false;
  };
  // In order of evaluation.
  const std::vector<Seen>& seen() const { return seen_; }
  // Index into seen(); -1: nothing was correct.
  int fastest() const { return fastest_; }
  // Whether it has a value, not the parent's, that failed in at least four contexts and never
  // worked.
  bool hopeless(const Setting& setting) const;

 private:
  Setting parent_;
  std::set<Setting> tried_;
  std::vector<Seen> seen_;
  int fastest_ = -1;
  std::vector<std::vector<int>> worked_, failed_;  // [knob][value]
};

}  // namespace kernelpro
