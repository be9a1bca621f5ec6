// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/work_kind.h"

#include <iterator>

#include "base/rows.h"

namespace kernelpro {

namespace {

constexpr WorkRow kWorkRows[] = {
    {WorkKind::kMatrix, "matrix", "matrix products"},
    {WorkKind::kFp32, "fp32", "fp32 arithmetic"},
    {WorkKind::kFp64, "fp64", "fp64 arithmetic"},
    {WorkKind::kHalf, "half", "half arithmetic"},
    {WorkKind::kSpecial, "special", "special functions"},
    {WorkKind::kHalfConversion, "half-conversion", "conversions of halves"},
    {WorkKind::kConversion, "conversion", "other conversions"},
    {WorkKind::kAddress, "address", "addresses and loop control"},
    {WorkKind::kInteger, "integer", "integer arithmetic"},
    {WorkKind::kMove, "move", "copies between registers"},
    {WorkKind::kSelect, "select", "comparisons and selections"},
    {WorkKind::kShared, "shared", "shared-memory accesses"},
    {WorkKind::kGlobal, "global", "global accesses"},
    {WorkKind::kLocal, "local", "local-memory accesses"},
    {WorkKind::kCopy, "copy", "asynchronous copies"},
    {WorkKind::kShuffle, "shuffle", "shuffles and votes"},
    {WorkKind::kSync, "sync", "barriers and fences"},
    {WorkKind::kBranch, "branch", "branches and calls"},
    {WorkKind::kOther, "other", "other instructions"},
};
static_assert(std::size(kWorkRows) == kWorkKinds);
static_assert(rows_are_in_order(kWorkRows, &WorkRow::kind));

}  // namespace

const WorkRow& work_row(WorkKind kind) { return kWorkRows[static_cast<std::size_t>(kind)]; }

std::optional<WorkKind> work_from_name(std::string_view name) {
  for (const WorkRow& row : kWorkRows) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

}  // namespace kernelpro
