// SPDX-License-Identifier: Apache-2.0
#include "write/tuner/knob_history.h"

#include <algorithm>
#include <cmath>

namespace kernelpro {

namespace {

// Failures. Moves change several knobs, so that one or two failures say little about a value.
constexpr int kEnough = 4;

}  // namespace

Setting KnobHistory::setting_of(const std::vector<Knob>& knobs, const KnobValues& values) {
  Setting setting;
  for (const Knob& knob : knobs) {
    const auto given = values.find(knob.name);
    const auto begin = knob.values.begin();
    const auto at =
        given == values.end() ? begin : std::find(begin, knob.values.end(), given->second);
    setting.push_back(static_cast<std::uint16_t>(at == knob.values.end() ? 0 : at - begin));
  }
  return setting;
}

KnobHistory::KnobHistory(const std::vector<Knob>& knobs, const Candidate& parent,
                         const History& history, const std::vector<Candidate>& pending)
    : parent_(setting_of(knobs, parent.knobs)) {
  for (const Knob& knob : knobs) {
    worked_.emplace_back(knob.values.size());
    failed_.emplace_back(knob.values.size());
  }
  tried_.insert(parent_);
  const SameSource same(parent);
  for (const KnownPtr& known : history) {
    if (!same(*known)) continue;
    const Candidate& candidate = known->candidate;
    const double time = comparable_us(*known);
    Seen seen{setting_of(knobs, candidate.knobs), 0, known->evaluation.correct() && time > 0};
    if (seen.correct) seen.log_time = std::log(time);
    for (std::size_t k = 0; k < knobs.size(); ++k) {
      ++(seen.correct ? worked_ : failed_)[k][seen.setting[k]];
    }
    tried_.insert(seen.setting);
    seen_.push_back(std::move(seen));
    const int last = static_cast<int>(seen_.size()) - 1;
    if (!seen_[last].correct) continue;
    if (fastest_ < 0 || seen_[last].log_time < seen_[fastest_].log_time) fastest_ = last;
  }
  for (const Candidate& each : pending) {
    if (each.language == parent.language && each.source == parent.source) {
      tried_.insert(setting_of(knobs, each.knobs));
    }
  }
}

bool KnobHistory::hopeless(const Setting& setting) const {
  for (std::size_t k = 0; k < setting.size(); ++k) {
    const std::uint16_t value = setting[k];
    if (value != parent_[k] && failed_[k][value] >= kEnough && worked_[k][value] == 0) return true;
  }
  return false;
}

}  // namespace kernelpro
