// SPDX-License-Identifier: Apache-2.0
#include "core/evaluation/objective.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "base/error.h"
#include "base/text.h"

namespace kernelpro {

namespace {

constexpr ObjectiveRow kRows[] = {
    {.name = "time", .help = "the time of a call", .weight = 0, .wants_energy = false},
    {.name = "energy", .help = "the energy of a call", .weight = 1},
    {.name = "time,energy",
     .help = "the time; among equally fast candidates, the energy",
     .weight = 0,
     .breaks_ties = true},
    {.name = "weighted",
     .help = "time^(1 - W) * energy^W, with W between 0 and 1",
     .weight = std::nullopt},
};

// time^(1 - weight) * energy^weight, also of ratios. A factor without weight does not count, even
// where it is unknown (0).
double weighted(double time, double energy, double weight) {
  if (weight <= 0) return time;
  if (weight >= 1) return energy;
  return std::pow(time, 1 - weight) * std::pow(energy, weight);
}

// The weight of "weighted:0.3", given "0.3".
std::optional<double> weight_from_text(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool whole = !text.empty() && *end == '\0';
  if (!whole || !(value > 0) || !(value < 1)) return std::nullopt;
  return value;
}

}  // namespace

std::span<const ObjectiveRow> objectives() { return kRows; }

const ObjectiveRow& objective_row(const Objective& objective) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const auto& each) { return each.name == objective.name; });
  KP_ASSERT(row != std::end(kRows));
  return *row;
}

bool Objective::wants_energy() const { return objective_row(*this).wants_energy; }

bool equally_fast(const Correct::Versus& versus) {
  return versus.low >= 1 / (1 + kEqualSpeed) && versus.high <= 1 + kEqualSpeed;
}

std::optional<Objective> objective_from_text(std::string_view text) {
  for (const ObjectiveRow& row : kRows) {
    if (row.weight && text == row.name) return Objective{row.name, *row.weight};
    const std::string prefix = std::string(row.name) + ":";
    if (row.weight || !text.starts_with(prefix)) continue;
    const auto weight = weight_from_text(std::string(text.substr(prefix.size())));
    if (!weight) return std::nullopt;
    return Objective{row.name, *weight};
  }
  return std::nullopt;
}

std::string objective_text(const Objective& objective) {
  const ObjectiveRow& row = objective_row(objective);
  return std::string(row.name) + (row.weight ? "" : ":" + number(objective.weight, 6));
}

std::string objective_form(const ObjectiveRow& row) {
  return std::string(row.name) + (row.weight ? "" : ":W");
}

std::string objective_help() {
  std::string text;
  for (const ObjectiveRow& row : kRows) {
    text +=
        std::string(text.empty() ? "" : "; ") + objective_form(row) + ": " + std::string(row.help);
  }
  return text;
}

bool beats(const Correct& candidate, const Objective& objective, double min_effect) {
  const ObjectiveRow& row = objective_row(objective);
  const double needed = 1 + min_effect;
  const auto& time = candidate.versus;
  const bool faster = time && time->low > needed;
  if (!row.wants_energy) return faster;
  const bool measured = candidate.energy && candidate.energy->versus;
  // The incumbent's energy is unknown (a PyTorch start): only its time can be beaten.
  if (candidate.energy && !measured) return faster;
  const double saved = measured ? candidate.energy->versus->low : 0;
  if (row.breaks_ties) {
    return time && equally_fast(*time) && measured ? saved > needed : faster;
  }
  return weighted(time ? time->low : 0, saved, objective.weight) > needed;
}

bool worth_energy(const Correct& candidate, const Objective& objective) {
  if (!objective.wants_energy()) return false;
  if (!objective_row(objective).breaks_ties || !candidate.versus) return true;
  // A new best needs an energy figure for later comparisons.
  return equally_fast(*candidate.versus) || candidate.versus->low > 1;
}

double cost_of(double time_us, const Correct& candidate, const Objective& objective) {
  const double joules = candidate.energy ? candidate.energy->millijoules : 0;
  return weighted(time_us, joules, objective.weight);
}

}  // namespace kernelpro
