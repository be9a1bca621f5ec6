// SPDX-License-Identifier: Apache-2.0
// What a search optimizes: time, energy, or both. One row per objective; to add one, a row in
// objective.cc. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/evaluation/evaluation.h"

namespace kernelpro {

struct Objective {
  std::string_view name = "time";  // of its row
  double weight = 0;               // of energy: the row's, where it has one

  bool wants_energy() const;
  bool operator==(const Objective&) const = default;
};
inline constexpr Objective kLeastEnergy{"energy", 1};

// The cost is time^(1 - weight) * energy^weight.
struct ObjectiveRow {
  std::string_view name;  // as in --objective
  std::string_view help;  // what gets better
  // 0 to 1; nullopt: it is given after the name, as in "weighted:0.3".
  std::optional<double> weight;
  bool wants_energy = true;  // to be measured
  bool breaks_ties = false;  // energy decides among equally fast candidates
};
std::span<const ObjectiveRow> objectives();
const ObjectiveRow& objective_row(const Objective& objective);
std::string objective_form(const ObjectiveRow& row);  // "energy", "weighted:W"
// For help: "time: the time of a call; energy: ...".
std::string objective_help();

// Two candidates are equally fast when the interval of their time ratio lies within this.
inline constexpr double kEqualSpeed = 0.01;
bool equally_fast(const Correct::Versus& versus);

// "time", "energy", "time,energy", "weighted:0.3"; nullopt for anything else.
std::optional<Objective> objective_from_text(std::string_view text);
std::string objective_text(const Objective& objective);

// Whether a candidate beats the incumbent it was measured against by more than `min_effect`, with
// confidence. Energy counts only if it was measured.
bool beats(const Correct& candidate, const Objective& objective, double min_effect);

// Whether to measure a candidate's energy after its time is known. Where time comes first, energy
// cannot outweigh a clear difference in time.
bool worth_energy(const Correct& candidate, const Objective& objective);

// The cost that a search minimizes: microseconds or millijoules per call, or their weighted
// geometric mean; 0 if unknown. `time_us`: of the candidate.
double cost_of(double time_us, const Correct& candidate, const Objective& objective);

}  // namespace kernelpro
