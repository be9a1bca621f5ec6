// SPDX-License-Identifier: Apache-2.0
// The places of a kernel that cost most beyond its floor, each with what would have to hold for its
// wait to go. Pure.
#pragma once

#include <array>
#include <string_view>

#include "core/finding/finding.h"

namespace kernelpro {

// How much of what places show lies beyond the floor.
struct BeyondFloor {
  double active_us = 0;                 // of the kernel: multiprocessors have warps
  double issue_us = 0;                  // of it, issuing beyond the floor
  std::array<double, kStalls> waits{};  // fraction of a reason's exposed time
};

// Fills account->places; `call_us`: for the gains, which are the call's.
void add_costly_places(const Places& places, const BeyondFloor& beyond, double call_us,
                       KernelAccount* account);

// Fills a finding's places and share from the lines of its sites. Leaves a finding alone
// that has places already, or whose lines cost nothing.
void place_finding(const Places& places, const KernelAccount& account, double call_us,
                   Finding* finding);

// For a wait of that kind to go. `condition` follows "it goes if"; `tag` is one of
// core/candidate/tags.h.
struct Remedy {
  Stall stall;
  std::string_view condition;
  std::string_view tag;
  std::string_view advice;
  std::string_view not_when;
};
const Remedy& remedy_of(Stall stall);
const Remedy& remedy_of(const CostlyPlace& place);

}  // namespace kernelpro
