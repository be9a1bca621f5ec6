// SPDX-License-Identifier: Apache-2.0
#include "task/open/case_plan.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr int kSets = 2;  // an evaluation has at least as many input sets

bool batch_like(const std::string& name) {
  const std::string lower = small_letters(name);
  return lower == "b" || lower == "n" || lower == "bs" || contains(lower, "batch") ||
         contains(lower, "num_samples");
}

// Names worth halving, in the order to try them.
std::vector<std::string> shrinkable(const Dims& dims) {
  std::vector<std::string> names;
  for (const auto& [name, value] : dims) {
    if (value > 1) names.push_back(name);
  }
  std::stable_sort(names.begin(), names.end(), [&](const auto& a, const auto& b) {
    if (batch_like(a) != batch_like(b)) return batch_like(a);
    return dims.at(a) > dims.at(b);
  });
  return names;
}

std::string changes_text(const Dims& changed, const Dims& before) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : changed) {
    parts.push_back(name + " = " + std::to_string(value) + " instead of " +
                    std::to_string(before.at(name)));
  }
  return join_text(parts, ", ");
}

// The module with the least halving that makes it fit; nullopt if nothing does.
std::optional<PlannedCase> shrink(const ModuleDescription& full, const DescribeModule& describe,
                                  bool float64, double available_bytes) {
  PlannedCase found;
  found.description = full;
  const auto need = [&] { return evaluation_bytes(found.description, float64); };
  for (const std::string& name : shrinkable(full.dims)) {
    std::int64_t value = full.dims.at(name);
    while (need() > available_bytes && value > 1) {
      // As many halvings at once as needed if memory is proportional to this name.
      const double halvings = std::ceil(std::log2(need() / available_bytes));
      const int steps = static_cast<int>(std::clamp(halvings, 1.0, 62.0));
      value = std::max<std::int64_t>(1, value >> steps);
      Dims dims = found.changed;
      dims[name] = value;
      auto smaller = describe(dims);
      // Keep the old size if the module fails at the new one or does not depend on the name.
      if (!smaller || evaluation_bytes(*smaller, float64) > 0.9 * need()) break;
      found.changed = std::move(dims);
      found.description = std::move(*smaller);
    }
    if (need() <= available_bytes) return found;
  }
  return std::nullopt;
}

}  // namespace

double evaluation_bytes(const ModuleDescription& description, bool float64) {
  double inputs = 0, parameters = 0, outputs = 0, expected = 0, widened = 0;
  for (const ModuleDescription::Item& item : description.items) {
    double elements = 1;
    for (const std::int64_t size : item.shape) elements *= static_cast<double>(size);
    const double bytes = elements * static_cast<double>(dtype_bytes(item.dtype));
    const bool floating = is_floating(item.dtype);
    if (item.role == Role::kOutput) {
      outputs += bytes;
      expected += float64 && floating ? 8 * elements : bytes;
    } else {
      (item.role == Role::kInput ? inputs : parameters) += bytes;
    }
    if (float64 && floating) widened += 8 * elements;
  }
  const double within = description.intermediate_bytes * (float64 ? 2 : 1);
  return kSets * (inputs + outputs + expected) + parameters + widened + within + outputs;
}

Result<CasePlan> plan_cases(const ModuleDescription& full, const DescribeModule& describe,
                            double available_bytes) {
  CasePlan plan;
  const double wide = evaluation_bytes(full, true);
  const double narrow = evaluation_bytes(full, false);
  const PlannedCase whole{"full", true, {}, full};
  if (wide <= available_bytes) {
    plan.cases = {whole};
    return plan;
  }
  if (narrow <= available_bytes) {
    // Both cases are resident at once. `narrow` counts one output too many, so a little always
    // fits.
    const double room =
        std::clamp(available_bytes - narrow, available_bytes / 64, available_bytes / 4);
    auto reduced = shrink(full, describe, true, room);
    if (reduced) {
      reduced->name = "reduced";
      plan.notes.push_back("float64 does not fit at full size (" + human_bytes(wide) + " of " +
                           human_bytes(available_bytes) + "): it is checked in a reduced case, " +
                           changes_text(reduced->changed, full.dims) +
                           ", and in its own precision at full size");
      plan.cases.push_back(std::move(*reduced));
    } else {
      plan.notes.push_back(
          "float64 does not fit at full size, and no smaller size of this module was found: "
          "results are checked in its own precision only");
    }
    plan.cases.push_back(whole);
    return plan;
  }
  auto smaller = shrink(full, describe, true, available_bytes);
  if (!smaller) {
    return fail(ErrorKind::kBadInput,
                "the module needs " + human_bytes(narrow) + " at its own size, but only " +
                    human_bytes(available_bytes) + " are available",
                "give smaller sizes for integers at the top of its file: --set NAME=VALUE");
  }
  smaller->name = "smaller";
  smaller->timed = true;
  plan.notes.push_back("full size needs " + human_bytes(narrow) + ", but only " +
                       human_bytes(available_bytes) + " are available: everything runs at " +
                       changes_text(smaller->changed, full.dims));
  plan.cases.push_back(std::move(*smaller));
  return plan;
}

}  // namespace kernelpro
