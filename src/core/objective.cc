// SPDX-License-Identifier: Apache-2.0
#include "core/objective.h"

#include <cmath>
#include <cstdlib>

#include "base/text.h"

namespace kernelpro {

namespace {
constexpr std::string_view kWeightedPrefix = "weighted:";
}

bool equally_fast(const Correct::Versus& versus) {
  return versus.low >= 1 / (1 + kEqualSpeed) && versus.high <= 1 + kEqualSpeed;
}

std::optional<Objective> objective_from_text(std::string_view text) {
  if (text == "time") return Objective{Objective::Kind::kTime, 0};
  if (text == "energy") return Objective{Objective::Kind::kEnergy, 1};
  if (text == "time,energy") return Objective{Objective::Kind::kTimeThenEnergy, 0};
  if (!text.starts_with(kWeightedPrefix)) return std::nullopt;
  const std::string weight(text.substr(kWeightedPrefix.size()));
  char* end = nullptr;
  const double value = std::strtod(weight.c_str(), &end);
  const bool whole = !weight.empty() && *end == '\0';
  if (!whole || !(value > 0) || !(value < 1)) return std::nullopt;
  return Objective{Objective::Kind::kWeighted, value};
}

std::string objective_text(const Objective& objective) {
  switch (objective.kind) {
    case Objective::Kind::kTime:
      return "time";
    case Objective::Kind::kEnergy:
      return "energy";
    case Objective::Kind::kTimeThenEnergy:
      return "time,energy";
    case Objective::Kind::kWeighted:
      break;
  }
  return std::string(kWeightedPrefix) + number(objective.weight, 6);
}

bool beats(const Correct& candidate, const Objective& objective, double min_effect) {
  const double needed = 1 + min_effect;
  const auto& time = candidate.versus;
  const bool faster = time && time->low > needed;
  if (objective.kind == Objective::Kind::kTime) return faster;
  const bool measured = candidate.energy && candidate.energy->versus;
  // The incumbent's energy is unknown (a PyTorch start): only its time can be beaten.
  if (candidate.energy && !measured) return faster;
  const double saved = measured ? candidate.energy->versus->low : 0;
  switch (objective.kind) {
    case Objective::Kind::kEnergy:
      return saved > needed;
    case Objective::Kind::kTimeThenEnergy:
      return time && equally_fast(*time) && measured ? saved > needed : faster;
    case Objective::Kind::kWeighted:
      return time && measured &&
             std::pow(time->low, 1 - objective.weight) * std::pow(saved, objective.weight) > needed;
    case Objective::Kind::kTime:
      break;
  }
  return faster;
}

bool worth_energy(const Correct& candidate, const Objective& objective) {
  if (!objective.wants_energy()) return false;
  if (objective.kind != Objective::Kind::kTimeThenEnergy || !candidate.versus) return true;
  // A new best needs an energy figure for later comparisons.
  return equally_fast(*candidate.versus) || candidate.versus->low > 1;
}

double cost_of(double time_us, const Correct& candidate, const Objective& objective) {
  const double joules = candidate.energy ? candidate.energy->millijoules : 0;
  switch (objective.kind) {
    case Objective::Kind::kTime:
    case Objective::Kind::kTimeThenEnergy:
      return time_us;
    case Objective::Kind::kEnergy:
      return joules;
    case Objective::Kind::kWeighted:
      break;
  }
  if (joules <= 0) return 0;
  return std::pow(time_us, 1 - objective.weight) * std::pow(joules, objective.weight);
}

}  // namespace kernelpro
