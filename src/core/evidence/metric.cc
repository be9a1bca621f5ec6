// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/metric.h"

#include <algorithm>
#include <iterator>

namespace kernelpro {

namespace {

constexpr std::string_view kLevels[] = {"counters", "static", "timing"};

struct FamilyRow {
  Family family;
  std::string_view name;
  std::string_view words;
};
constexpr FamilyRow kFamilyRows[] = {
    {Family::kTask, "task", "what the task asks for"},
    {Family::kCeilings, "ceilings", "ceilings"},
    {Family::kTiming, "timing", "timing"},
    {Family::kLoad, "load", "load of the machine"},
    {Family::kProcessor, "processor", "use of the processor"},
    {Family::kHostCode, "host-code", "instruction mix"},
    {Family::kPlan, "plan", "launch plan"},
    {Family::kLaunch, "launch", "launches"},
    {Family::kResources, "resources", "registers and spills"},
    {Family::kSass, "sass", "SASS instruction mix"},
    {Family::kCounters, "counters", "hardware counters"},
    {Family::kSamples, "samples", "program-counter samples"},
    {Family::kTrace, "trace", "trace"},
};
static_assert(std::size(kFamilyRows) == kFamilies);

const FamilyRow& row_of(Family family) { return kFamilyRows[static_cast<int>(family)]; }

}  // namespace

std::string_view level_name(Level level) { return kLevels[static_cast<int>(level)]; }

std::optional<Level> level_from_name(std::string_view name) {
  const auto* found = std::find(std::begin(kLevels), std::end(kLevels), name);
  if (found == std::end(kLevels)) return std::nullopt;
  return static_cast<Level>(found - std::begin(kLevels));
}

std::string_view family_name(Family family) { return row_of(family).name; }
std::string_view family_words(Family family) { return row_of(family).words; }

std::optional<Family> family_from_name(std::string_view name) {
  for (const FamilyRow& row : kFamilyRows) {
    if (row.name == name) return row.family;
  }
  return std::nullopt;
}

}  // namespace kernelpro
