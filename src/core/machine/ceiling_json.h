// SPDX-License-Identifier: Apache-2.0
// Writes a fraction of the measured ceilings to JSON.
#pragma once

#include "base/json.h"
#include "core/machine/machine.h"

namespace kernelpro {

// "fraction_of_ceiling": the fraction; null above kBeyondCeiling, with a "ceiling_note" that
// explains it and gives the next step.
inline void put_fraction(double fraction, Json* json) {
  const std::string note = ceiling_note(fraction);
  (*json)["fraction_of_ceiling"] = note.empty() ? Json(fraction) : Json();
  if (!note.empty()) (*json)["ceiling_note"] = note;
}

}  // namespace kernelpro
