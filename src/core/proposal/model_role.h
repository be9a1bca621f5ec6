// SPDX-License-Identifier: Apache-2.0
// What a model is asked to do: to plan, to write a source, or to repair one.
#pragma once

#include <optional>
#include <string_view>

namespace kernelpro {

enum class ModelRole { kPlanner, kCoder, kFixer };

// In stores and reports, and of the role's prompt: "planner".
std::string_view model_role_name(ModelRole role);
std::optional<ModelRole> model_role_from_name(std::string_view name);

}  // namespace kernelpro
