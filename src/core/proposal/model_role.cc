// SPDX-License-Identifier: Apache-2.0
#include "core/proposal/model_role.h"

#include <cstddef>

#include "base/rows.h"

namespace kernelpro {

namespace {

struct RoleRow {
  ModelRole role;
  std::string_view name;
};
constexpr RoleRow kRows[] = {
    {ModelRole::kPlanner, "planner"}, {ModelRole::kCoder, "coder"}, {ModelRole::kFixer, "fixer"}};
static_assert(rows_are_in_order(kRows, &RoleRow::role));

}  // namespace

std::string_view model_role_name(ModelRole role) {
  return kRows[static_cast<std::size_t>(role)].name;
}

std::optional<ModelRole> model_role_from_name(std::string_view name) {
  for (const RoleRow& row : kRows) {
    if (row.name == name) return row.role;
  }
  return std::nullopt;
}

}  // namespace kernelpro
