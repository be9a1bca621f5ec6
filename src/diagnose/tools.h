// SPDX-License-Identifier: Apache-2.0
// The explicit table of tools, and the precedence among conflicting prescriptions.
#pragma once

#include <span>
#include <string_view>

#include "diagnose/tools/tool.h"

namespace kernelpro {

std::span<const Tool> tools();

// When `winner` fires, `loser`'s prescriptions with `tag` are withheld ("" = the whole finding):
// conflicting or duplicate advice is given once.
struct Precedence {
  std::string_view winner;
  std::string_view loser;
  std::string_view tag;
  std::string_view reason;
};
std::span<const Precedence> precedences();

}  // namespace kernelpro
