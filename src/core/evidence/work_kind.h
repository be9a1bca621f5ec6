// SPDX-License-Identifier: Apache-2.0
// What an instruction of a GPU does, for shares of what a kernel issues: one row each.
// Pure; safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kernelpro {

enum class WorkKind : std::uint8_t {
  kMatrix,
  kFp32,
  kFp64,
  kHalf,
  kSpecial,
  kHalfConversion,
  kConversion,
  kAddress,  // only where the uses of a result are known; else kInteger
  kInteger,
  kMove,
  kSelect,
  kShared,
  kGlobal,
  kLocal,
  kCopy,
  kShuffle,
  kSync,
  kBranch,
  kOther,
};
inline constexpr int kWorkKinds = 19;

struct WorkRow {
  WorkKind kind;
  std::string_view name;   // in JSON: "half-conversion"
  std::string_view words;  // "conversions of halves"
};
const WorkRow& work_row(WorkKind kind);
std::optional<WorkKind> work_from_name(std::string_view name);

struct WorkShare {
  WorkKind kind = WorkKind::kOther;
  double share = 0;
};

}  // namespace kernelpro
