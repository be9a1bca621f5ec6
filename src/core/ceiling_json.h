// SPDX-License-Identifier: Apache-2.0
// How JSON tells of a share of the measured ceilings.
#pragma once

#include "core/json.h"
#include "core/machine.h"

namespace kernelpro {

// "fraction_of_ceiling": the share; null above kBeyondCeiling, with "ceiling_note" beside it that
// says what that means and what to do.
inline void put_fraction(double fraction, Json* json) {
  const std::string note = ceiling_note(fraction);
  (*json)["fraction_of_ceiling"] = note.empty() ? Json(fraction) : Json();
  if (!note.empty()) (*json)["ceiling_note"] = note;
}

}  // namespace kernelpro
