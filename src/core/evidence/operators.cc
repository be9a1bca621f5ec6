// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/operators.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr std::string_view kKinds[] = {"pointwise", "reduction", "product", "copy", "other"};

}  // namespace

std::string_view operator_kind_name(OperatorKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::optional<OperatorKind> operator_kind_from_name(std::string_view name) {
  const auto* kind = std::find(std::begin(kKinds), std::end(kKinds), name);
  if (kind == std::end(kKinds)) return std::nullopt;
  return static_cast<OperatorKind>(kind - std::begin(kKinds));
}

std::string operator_words(const std::string& name, const std::string& where) {
  std::string text = "`" + one_line(replace_all(name, "`", "'")) + "`";
  // "fc1 (Linear)" -> "fc1"; what is outermost has no name.
  const std::string module = where.substr(0, where.find(' '));
  if (!module.empty() && module != "forward") text += " (" + one_line(module) + ")";
  return text;
}

}  // namespace kernelpro
