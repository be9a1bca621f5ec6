// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/stall.h"

#include <array>

#include "base/error.h"

namespace kernelpro {

namespace {

// In the order of the enum.
constexpr std::array<StallRow, kStalls> kRows{{
    {Stall::kSelected, "selected", "it issues", StallCause::kNone},
    {Stall::kBarrier, "barrier", "other warps of the block, at a barrier", StallCause::kOthers},
    {Stall::kBranchResolving, "branch_resolving", "the target of a branch", StallCause::kFront},
    {Stall::kDispatchStall, "dispatch_stall", "the dispatcher", StallCause::kBackPressure},
    {Stall::kDrain, "drain", "its stores to leave before it exits", StallCause::kBackPressure},
    {Stall::kGmma, "gmma", "a warpgroup's matrix product", StallCause::kProducer},
    {Stall::kImcMiss, "imc_miss", "a constant that was not in its cache", StallCause::kFront},
    {Stall::kLgThrottle, "lg_throttle", "room in the queue of global and local accesses",
     StallCause::kBackPressure},
    {Stall::kLongScoreboard, "long_scoreboard", "a load from global or local memory",
     StallCause::kProducer},
    {Stall::kMathPipeThrottle, "math_pipe_throttle", "a busy arithmetic unit",
     StallCause::kBackPressure},
    {Stall::kMembar, "membar", "a memory fence", StallCause::kProducer},
    {Stall::kMioThrottle, "mio_throttle", "room in the queue of shared-memory and special accesses",
     StallCause::kBackPressure},
    {Stall::kMisc, "misc", "something that the hardware does not name", StallCause::kFront},
    {Stall::kNoInstruction, "no_instruction", "the next instruction to be fetched",
     StallCause::kFront},
    {Stall::kNotSelected, "not_selected", "its turn: another warp issued", StallCause::kNone},
    {Stall::kShortScoreboard, "short_scoreboard", "shared memory or a special function",
     StallCause::kProducer},
    {Stall::kSleeping, "sleeping", "the end of its own sleep", StallCause::kFront},
    {Stall::kTexThrottle, "tex_throttle", "room in the queue of texture accesses",
     StallCause::kBackPressure},
    {Stall::kWait, "wait", "a fixed latency between dependent instructions", StallCause::kProducer},
    {Stall::kWarpgroupArrive, "warpgroup_arrive", "other warps of its warpgroup",
     StallCause::kOthers},
}};

}  // namespace

const StallRow& stall_row(Stall stall) {
  const StallRow& row = kRows[static_cast<std::size_t>(stall)];
  KP_ASSERT(row.stall == stall);
  return row;
}

std::optional<Stall> stall_from_name(std::string_view name) {
  constexpr std::string_view kHidden = "_not_issued";
  constexpr std::string_view kBefore = "stalled_";
  if (name.ends_with(kHidden)) name.remove_suffix(kHidden.size());
  if (const auto at = name.rfind(kBefore); at != std::string_view::npos) {
    name.remove_prefix(at + kBefore.size());
  }
  if (name == "no_instructions") name = "no_instruction";  // as Nsight Compute has it
  if (name == "dispatch") name = "dispatch_stall";
  for (const StallRow& row : kRows) {
    if (row.name == name) return row.stall;
  }
  return std::nullopt;
}

}  // namespace kernelpro
