// SPDX-License-Identifier: Apache-2.0
#include "propose/knob_history.h"

#include <algorithm>
#include <cmath>

namespace kernelpro {

namespace {

// The one knob in which two settings differ; -1 when there is none or more than one.
int single_difference(const Setting& a, const Setting& b) {
  int knob = -1;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k] == b[k]) continue;
    if (knob >= 0) return -1;
    knob = static_cast<int>(k);
  }
  return knob;
}

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
                         const std::vector<const Known*>& history,
                         const std::vector<const Candidate*>& pending)
    : parent_(setting_of(knobs, parent.knobs)) {
  std::size_t cells = 0;
  for (const Knob& knob : knobs) {
    sizes_.push_back(static_cast<int>(knob.values.size()));
    first_cell_.push_back(cells);
    cells += knob.values.size() * knob.values.size();
    worked_.emplace_back(knob.values.size());
    failed_.emplace_back(knob.values.size());
  }
  cells_.resize(cells);
  tried_.insert(parent_);
  std::vector<Seen> all;
  const SameSource same(parent);
  for (const Known* known : history) {
    if (!same(*known)) continue;
    const Candidate& candidate = known->candidate;
    const double time = score_us(known->evaluation);
    Seen seen{setting_of(knobs, candidate.knobs), 0, known->evaluation.correct() != nullptr};
    if (seen.correct && time > 0) seen.log_time = std::log(time);
    tried_.insert(seen.setting);
    all.push_back(std::move(seen));
  }
  for (const Candidate* each : pending) {
    if (each->language == parent.language && each->source == parent.source) {
      tried_.insert(setting_of(knobs, each->knobs));
    }
  }
  learn(all);
}

void KnobHistory::learn(const std::vector<Seen>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Setting& a = all[i].setting;
    for (std::size_t k = 0; k < a.size(); ++k) ++(all[i].correct ? worked_ : failed_)[k][a[k]];
    if (!all[i].correct) continue;
    for (std::size_t j = 0; j < i; ++j) {
      const int knob = all[j].correct ? single_difference(a, all[j].setting) : -1;
      if (knob < 0) continue;
      const int from = all[j].setting[knob];
      const double gain = all[j].log_time - all[i].log_time;
      Cell& forth = cells_[cell(knob, from, a[knob])];
      Cell& back = cells_[cell(knob, a[knob], from)];
      forth.sum += gain;
      back.sum -= gain;
      ++forth.pairs;
      ++back.pairs;
    }
  }
}

std::size_t KnobHistory::cell(int knob, int from, int to) const {
  return first_cell_[knob] + static_cast<std::size_t>(from * sizes_[knob] + to);
}

KnobHistory::Effect KnobHistory::effect(int knob, int from, int to) const {
  const Cell& direct = cells_[cell(knob, from, to)];
  if (direct.pairs > 0) return {direct.sum / direct.pairs, direct.pairs};
  // By way of a third value: from -> via -> to.
  for (int via = 0; via < sizes_[knob]; ++via) {
    const Cell& first = cells_[cell(knob, from, via)];
    const Cell& second = cells_[cell(knob, via, to)];
    if (first.pairs == 0 || second.pairs == 0) continue;
    return {first.sum / first.pairs + second.sum / second.pairs,
            std::min(first.pairs, second.pairs)};
  }
  return {};
}

bool KnobHistory::hopeless(int knob, int value) const {
  return failed_[knob][value] >= 2 && worked_[knob][value] == 0;
}

}  // namespace kernelpro
