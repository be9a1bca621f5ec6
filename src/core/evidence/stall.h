// SPDX-License-Identifier: Apache-2.0
// Why a warp does not issue its next instruction, as NVIDIA's profilers tell it: one row each.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kernelpro {

enum class Stall : std::uint8_t {
  kSelected,  // it issues: not a stall
  kBarrier,
  kBranchResolving,
  kDispatchStall,
  kDrain,
  kGmma,
  kImcMiss,
  kLgThrottle,
  kLongScoreboard,
  kMathPipeThrottle,
  kMembar,
  kMioThrottle,
  kMisc,
  kNoInstruction,
  kNotSelected,
  kShortScoreboard,
  kSleeping,
  kTexThrottle,
  kWait,
  kWarpgroupArrive,
};
inline constexpr int kStalls = 20;

// What ends the wait, and so where its cause is to be looked for.
enum class StallCause : std::uint8_t {
  kNone,          // selected, not selected: another warp had work
  kProducer,      // an earlier instruction of the same warp, whose result or unit is waited for
  kOthers,        // other warps: barriers, arrivals
  kFront,         // the instruction itself has not arrived: fetch, branch, constant miss
  kBackPressure,  // the unit's queue is full: throttles
};

struct StallRow {
  Stall stall;
  std::string_view name;   // as the profilers have it: "long_scoreboard"
  std::string_view words;  // for people: "a load from global or local memory"
  StallCause cause;
};

const StallRow& stall_row(Stall stall);
// `name` as profilers print it, with or without what they put around it: "long_scoreboard",
// "stalled_long_scoreboard", "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued".
std::optional<Stall> stall_from_name(std::string_view name);

}  // namespace kernelpro
