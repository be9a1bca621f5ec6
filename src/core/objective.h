// SPDX-License-Identifier: Apache-2.0
// What a search optimizes: time, energy, or both. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/evaluation.h"

namespace kernelpro {

struct Objective {
  enum class Kind {
    kTime,
    kEnergy,          // joules per call
    kTimeThenEnergy,  // time; energy among equally fast candidates
    kWeighted,        // time^(1 - weight) * energy^weight
  };
  Kind kind = Kind::kTime;
  double weight = 0;

  bool wants_energy() const { return kind != Kind::kTime; }
  bool operator==(const Objective&) const = default;
};

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
