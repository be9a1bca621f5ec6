// SPDX-License-Identifier: Apache-2.0
// Where the time of a call goes: parts that add up to it, of the call and of each kernel that
// matters, and the places in the code that cost most. diagnose/account computes it from evidence;
// tools, writers and reports read it. What is not known is a part too. Times are microseconds of
// one call, in multiples of kAccountQuantum, so that sums of parts are exact. Plain values; JSON is
// safe to read from any bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/evidence/metric.h"
#include "core/evidence/operators.h"
#include "core/evidence/places.h"
#include "core/evidence/stall.h"
#include "core/evidence/work_kind.h"

namespace kernelpro {

enum class PartKind : std::uint8_t {
  // Of a call.
  kKernels,
  kCopies,
  kLaunch,
  kGaps,
  kHost,
  // Of a kernel, or of a call on the CPU.
  kFloor,
  kSurplus,
  kTraffic,
  kRamp,
  kWaves,
  kIssue,
  kWait,  // exposed: no warp of the scheduler could issue; by stall reason
  kSingleThread,
  kContention,
  kUnknown,
};
inline constexpr int kPartKinds = 15;

struct PartRow {
  PartKind kind;
  std::string_view name;   // in JSON: "single-thread"
  std::string_view words;  // for people: "waves and tail"
};
const PartRow& part_row(PartKind kind);

inline constexpr double kAccountQuantum = 0x1p-20;  // about a picosecond

struct AccountPart {
  PartKind kind = PartKind::kUnknown;
  std::optional<Stall> stall;  // of a wait
  double us = 0;               // never negative
  Level level = Level::kTiming;
  std::string how;  // the formula and its source: "compulsory bytes / measured copy bandwidth"
};
// "waits for a load from global or local memory"
std::string part_words(PartKind kind, std::optional<Stall> stall);
std::string part_words(const AccountPart& part);

// While these warps waited, another one of the scheduler issued: not a part of the time.
struct HiddenWait {
  Stall stall = Stall::kSelected;
  double us = 0;
};

// A place in the code, and what it would be worth if its wait went.
struct CostlyPlace {
  SourceLine line;
  int offset = 0;  // bytes from the function's first instruction
  std::string instruction;
  Stall stall = Stall::kSelected;    // kSelected: it waits for nothing, it issues
  double share = 0;                  // of the kernel's time, floor included
  double also = 0;                   // the same, of the line's other waits and of issuing it
  double us = 0;                     // of the call's time, beyond the floor: what can go of both
  double gain = 1;                   // speedup of the call without that
  std::optional<CodePoint> because;  // the earlier instruction that made it wait
  std::vector<SourceLine> callers;   // of `line`, as in CodePoint
  std::string condition;             // what would have to hold for the wait to go
};
// "kernel.cu:41 `x = a[i];`", or the instruction where the code has no lines. One line.
std::string place_words(const SourceLine& line, int offset, const std::string& instruction);
// The same, and for a line of an inlined function where the kernel itself calls that.
std::string place_words(const CostlyPlace& place);
// "waits for a load from global or local memory, because of kernel.cu:39 `int i = idx[j];`"
std::string place_cause(const CostlyPlace& place);
// "20 % of the kernel's time waits for ..., because of ..., 32 % with all that it costs; 1.2x if
// all of it went"; `whose`: "the kernel's time".
std::string place_costs(const CostlyPlace& place, std::string_view whose);
// Whether it waits at an mbarrier, as far as the instructions tell.
bool at_shared_barrier(const CostlyPlace& place);
// Places are shown below this fraction of the ceiling; from it on there is no reason to go on.
inline constexpr double kAtCeiling = 0.9;
inline constexpr std::size_t kCostliest = 3;
inline constexpr double kLeastMix = 0.05;

// An operator of a PyTorch module's call, and what it could take by itself.
struct OperatorCost {
  std::string name, where;  // core/evidence/operators.h
  OperatorKind kind = OperatorKind::kOther;
  double us = 0;        // of the call's time
  double floor_us = 0;  // its own bytes and operations at the measured ceilings; at most `us`
};
inline constexpr std::size_t kMostOperatorCosts = 8;

struct KernelAccount {
  std::string kernel;              // demangled; "": the call's only kernel
  std::string launched_by;         // the operator of a PyTorch module, in words; "": unknown
  double us = 0;                   // of the call's time, all launches
  std::vector<AccountPart> parts;  // add up to `us`
  std::vector<HiddenWait> hidden;
  std::vector<CostlyPlace> places;  // the costliest first, at most kCostliest
  Level places_level = Level::kStatic;
  // Of the instructions that it issues, by samples; without any, of those of its hot loops, where
  // kinds overlap a little. The largest first, from kLeastMix on.
  std::vector<WorkShare> mix;
  std::vector<IssueRegion> regions;  // where it issues them, by samples
  std::vector<WarpRole> roles;       // of its warps, by samples; empty: all run the same code
  double hot_instructions = 0;       // of one pass of the hot loops; 0: the mix is by samples
  // Of the cycles with a resident warp: the fraction in which a scheduler issued. 0: unknown.
  double issuing = 0;
  // Of a warp's resident cycles: the fraction in which it issued. 0: unknown.
  double warp_issuing = 0;
  bool memory_bound = false;  // which of the two floors the kernel has

  double part(PartKind kind) const;
  double wait(Stall stall) const;
};

struct Account {
  double us = 0;                   // a call; 0: there is no account
  std::vector<AccountPart> parts;  // add up to `us`
  // The longest first. Together at most the part kKernels.
  std::vector<KernelAccount> kernels;
  // Of a PyTorch module's call: the furthest above its own floor first, at most kMostOperatorCosts.
  std::vector<OperatorCost> operators;

  bool known() const { return us > 0; }
  double part(PartKind kind) const;
  // The weakest level of the parts that are known.
  Level level() const;
};

// "kernel.cu:44-52 `const float q = fmaf(e, e + 2, 2);`"
std::string region_words(const IssueRegion& region);

// "kernel.cu:176-195"
std::string role_words(const WarpRole& role);
// The role that the others wait for: it hardly ever waits for them. Null: there is none.
const WarpRole* pace_setter(const std::vector<WarpRole>& roles);
// "wait 18 % for a load from global or local memory (12 % at kernel.cu:286 `...`)"
std::string role_wait_words(const RoleWait& wait);
// Who waits for whom, and what takes the time of the one that sets the pace; "" without roles.
std::string roles_words(const std::vector<WarpRole>& roles);

// "by samples, it issues 41 % copies between registers, 21 % fp32 arithmetic", or "its hot loop has
// 761 instructions: 41 % ..."; "" if unknown.
std::string mix_words(const KernelAccount& kernel);

// For a writer of kernels: Markdown, at most some 12 lines; "" without an account. Parts below 1.5
// % are left out. `at_ceiling`: without places.
std::string account_to_text(const Account& account, bool at_ceiling);

}  // namespace kernelpro
