// SPDX-License-Identifier: Apache-2.0
// What a search makes better: time, energy, or both. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/evaluation.h"

namespace kernelpro {

struct Objective {
  enum class Kind {
    kTime,
    kEnergy,          // joules of a call
    kTimeThenEnergy,  // time; among equally fast ones, energy
    kWeighted,        // time^(1 - weight) * energy^weight
  };
  Kind kind = Kind::kTime;
  double weight = 0;

  bool wants_energy() const { return kind != Kind::kTime; }
  bool operator==(const Objective&) const = default;
};

// Two candidates are equally fast when the interval of the ratio of their times lies within this.
inline constexpr double kEqualSpeed = 0.01;
bool equally_fast(const Correct::Versus& versus);

// "time", "energy", "time,energy", "weighted:0.3"; nullopt for anything else.
std::optional<Objective> objective_from_text(std::string_view text);
std::string objective_text(const Objective& objective);

// Is a candidate better than the incumbent that it was measured against, by more than `min_effect`
// with confidence? Without a measured energy, energy is no reason.
bool beats(const Correct& candidate, const Objective& objective, double min_effect);

// Is it worth measuring what a candidate draws, after its time is known? Energy cannot reverse a
// time that is clearly not equal where time comes first.
bool worth_energy(const Correct& candidate, const Objective& objective);

// What a search compares, smaller is better: microseconds of a call, millijoules of it, or their
// weighted geometric mean; 0 where it is not known. `time_us`: of the candidate.
double cost_of(double time_us, const Correct& candidate, const Objective& objective);

}  // namespace kernelpro
