// SPDX-License-Identifier: Apache-2.0
// What earlier evaluations of one source say about its knobs. Pure; built for one proposal.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "core/knobs.h"
#include "core/proposal.h"

namespace kernelpro {

// One value index per knob.
using Setting = std::vector<std::uint16_t>;

class KnobHistory {
 public:
  // Looks only at candidates with the language and source of `parent`. Those that are `pending`
  // count as tried.
  KnobHistory(const std::vector<Knob>& knobs, const Candidate& parent,
              const std::vector<const Known*>& history,
              const std::vector<const Candidate*>& pending = {});

  // The setting of a candidate; a value that the source does not list counts as the default.
  static Setting setting_of(const std::vector<Knob>& knobs, const KnobValues& values);

  const Setting& parent() const { return parent_; }
  bool tried(const Setting& setting) const { return tried_.count(setting) != 0; }

  // What changing `knob` from value `from` to `to` did elsewhere: the mean logarithm of the
  // speed-up over pairs of candidates that differ in this knob alone. `pairs` = 0: never seen.
  struct Effect {
    double gain = 0;
    int pairs = 0;
  };
  Effect effect(int knob, int from, int to) const;
  // Failed in at least two contexts and never worked.
  bool hopeless(int knob, int value) const;

 private:
  struct Cell {
    double sum = 0;
    int pairs = 0;
  };
  struct Seen {
    Setting setting;
    double log_time = 0;
    bool correct = false;
  };
  void learn(const std::vector<Seen>& all);
  std::size_t cell(int knob, int from, int to) const;

  std::vector<int> sizes_;
  Setting parent_;
  std::set<Setting> tried_;
  std::vector<std::size_t> first_cell_;  // by knob
  std::vector<Cell> cells_;
  std::vector<std::vector<int>> worked_, failed_;  // [knob][value]
};

}  // namespace kernelpro
