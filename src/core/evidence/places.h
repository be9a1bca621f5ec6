// SPDX-License-Identifier: Apache-2.0
// Where a kernel's time goes, by place in the code: which instructions warps wait at, for what, and
// which earlier instruction made them wait. Evidence of a kernel; diagnose/account reads it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/evidence/stall.h"
#include "core/evidence/work_kind.h"

namespace kernelpro {

// Whether the text of an instruction, perhaps behind a guard, has this root: "@P0 LDG.E R2" has
// LDG, and UTMALDG has not.
inline bool executes(std::string_view instruction, std::string_view root) {
  const std::size_t at = instruction.starts_with('@') ? instruction.find(' ') + 1 : 0;
  return instruction.substr(at).starts_with(root);
}

// A line of the candidate's own source. When a helper was inlined, the line of the innermost
// function that stands in a file of the candidate's.
struct SourceLine {
  std::string file;  // "kernel.cu"; "": the code has no line information
  int line = 0;
  std::string text;  // trimmed, clipped; "": the source is not at hand

  bool same_place(const SourceLine& other) const {
    return line == other.line && file == other.file;
  }
};

struct CodePoint {
  SourceLine line;
  int offset = 0;           // bytes from the function's first instruction
  std::string instruction;  // "LDG.E.128 R4, [R2.64]"
  // Where `line` stands in an inlined function: the line that calls it, the innermost call first.
  std::vector<SourceLine> callers = {};
};
inline constexpr std::size_t kMostCallers = 3;

// The lines that contribute most to a metric of machine code.
struct CodeLines {
  std::vector<SourceLine> lines;    // the largest contribution first
  std::vector<SourceLine> callers;  // of those lines that stand in inlined functions
};

// What the source itself decides about a kernel, at a line from which no instruction comes.
enum class SiteKind : std::uint8_t {
  kKernel,       // the definition
  kBounds,       // __launch_bounds__, __maxnreg__
  kPointers,     // parameters: several pointers, not all of them __restrict__
  kLaunch,       // <<<...>>>, or a call of the runtime that launches it
  kGrid,         // what the number of blocks is computed from
  kBlock,        // the same of the threads per block
  kShared,       // the same of the dynamic shared memory
  kSharedArray,  // declares an array in shared memory
  kLocalArray,   // declares an array of a thread
  kConstant,     // declares a table in constant memory
  kDepth,        // how many buffers or stages are in use, or warps have a task of their own
  kUnroll,       // #pragma unroll
  kLoop,         // the head of a loop
  kCopy,         // a copy or memset by the host, around the launch
  kSync,         // a wait of the host there
  kAllocate,     // an allocation or release there
  kDefinition,   // a constant, macro or short function that a line of the evidence names
  kVariable,     // a variable that such a line names
};
struct SourceSite {
  SiteKind kind = SiteKind::kKernel;
  SourceLine line;
  int last = 0;      // the last line of what begins there
  std::string name;  // "kStages", "tile"; "": it has none
};
std::string_view site_name(SiteKind kind);  // "launch"
inline constexpr std::size_t kMostSites = 240;

// An earlier instruction that made a place wait.
struct Producer {
  CodePoint at;
  double part = 0;  // of the place's wait that is its fault, 0..1; producers add up to at most 1
};

struct Place {
  CodePoint at;
  Stall stall = Stall::kSelected;
  double share = 0;                 // of the kernel's samples, 0..1
  double exposed = 0;               // of the kernel's samples: those in which nothing was issued
  std::vector<Producer> producers;  // the largest part first; empty: none is known
};

struct StallShare {
  Stall stall = Stall::kSelected;
  double share = 0;
  double exposed = 0;
};

// Source that issues much and belongs together: a call, with all that it runs, or lines beside each
// other.
struct IssueRegion {
  SourceLine line;                   // of those lines, the one that issues most
  int first = 0, last = 0;           // line numbers, inclusive
  double share = 0;                  // of the samples in which a warp issued
  WorkKind kind = WorkKind::kOther;  // what most of its instructions do
};
inline constexpr std::size_t kMostRegions = 6;
inline constexpr double kLeastRegion = 0.05;  // smaller shares are not told

struct RoleWait {
  Stall stall = Stall::kSelected;
  double share = 0;  // of the role's samples
  // Where it waits most for that, in the kernel itself where that is in an inlined function.
  SourceLine line;
  double at_line = 0;  // of the role's samples
};
// Warps that run other code than the rest of their block, to their end: those that produce and
// those that consume in a pipeline. Shares are of the role's own samples, 0..1.
struct WarpRole {
  std::string file;
  int first = 0, last = 0;  // lines of the kernel, inclusive, where its samples lie
  double share = 0;         // of the kernel's samples
  double awaits = 0;        // waits for another role, or for copies, at a barrier in shared memory
  double ready = 0;         // issues, or could
  std::vector<RoleWait> waits;  // all else that takes kLeastRoleWait of its time, the largest first
};
inline constexpr std::size_t kMostRoles = 6, kMostRoleWaits = 4;
inline constexpr double kLeastRoleWait = 0.05;

struct Places {
  // kSampled: counted. kEstimated: from machine code, weighted by stall counters where there are
  // any.
  enum class Basis { kSampled, kEstimated } basis = Basis::kSampled;
  double samples = 0;              // 0 when estimated
  std::vector<StallShare> stalls;  // of the whole kernel, the largest first; add up to 1
  std::vector<Place> places;       // the largest exposed share first; at most kMostPlaces
  // Of the samples in which a warp issued: what its instruction did, the largest first; they add up
  // to 1. Empty when estimated.
  std::vector<WorkShare> issued;
  std::vector<IssueRegion> regions;  // of the same samples, the largest first; no two overlap
  std::vector<WarpRole> roles;  // by samples, in code order; empty: all warps run the same code
  double single_producer = 0;   // share of the waits for a producer that have exactly one
};
inline constexpr int kMostPlaces = 24;

}  // namespace kernelpro
