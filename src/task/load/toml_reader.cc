// SPDX-License-Identifier: Apache-2.0
#include "task/load/toml_reader.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace kernelpro {

namespace {

// Levenshtein distance, for "did you mean".
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitute, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string_view nearest(std::string_view word, const TomlReader::Keys& keys) {
  return *std::min_element(keys.begin(), keys.end(), [&](auto a, auto b) {
    return edit_distance(word, a) < edit_distance(word, b);
  });
}

std::string listed(const TomlReader::Keys& keys) {
  return join_text(std::vector<std::string>(keys.begin(), keys.end()), ", ");
}

}  // namespace

tl::unexpected<Error> TomlReader::wrong(const toml::source_region& where, const std::string& what,
                                        std::string next) const {
  std::string at = path_;
  if (where.begin.line > 0) {
    at += ":" + std::to_string(where.begin.line) + ":" + std::to_string(where.begin.column);
  }
  return fail(ErrorKind::kBadInput, at + ": " + printable(what), printable(next));
}

tl::unexpected<Error> TomlReader::wrong(const toml::node& node, const std::string& what,
                                        std::string next) const {
  return wrong(node.source(), what, std::move(next));
}

tl::unexpected<Error> TomlReader::wrong_type(const toml::node& node, std::string_view key,
                                             const std::string& wanted) const {
  return wrong(node, std::string(key) + " must be " + wanted, "see docs/task-format.md");
}

Result<void> TomlReader::known_keys(const toml::table& table, const std::string& what,
                                    const Keys& keys) const {
  for (const auto& [key, value] : table) {
    if (std::find(keys.begin(), keys.end(), key.str()) != keys.end()) continue;
    return wrong(key.source(), what + " has no key \"" + std::string(key.str()) + "\"",
                 "did you mean \"" + std::string(nearest(key.str(), keys)) +
                     "\"? known keys: " + listed(keys));
  }
  return {};
}

Result<const toml::node*> TomlReader::require(const toml::table& table, std::string_view key,
                                              const std::string& what) const {
  if (const toml::node* node = table.get(key)) return node;
  return wrong(table, what + " lacks the key \"" + std::string(key) + "\"",
               "add " + std::string(key) + " = ...; see docs/task-format.md");
}

Result<void> TomlReader::read_string(const toml::table& table, std::string_view key,
                                     std::string* out) const {
  const toml::node* node = table.get(key);
  if (node == nullptr) return {};
  if (!node->is_string()) return wrong_type(*node, key, "a string in quotes");
  *out = **node->as_string();
  return {};
}

Result<void> TomlReader::read_flag(const toml::table& table, std::string_view key,
                                   bool* out) const {
  const toml::node* node = table.get(key);
  if (node == nullptr) return {};
  if (!node->is_boolean()) return wrong_type(*node, key, "true or false");
  *out = **node->as_boolean();
  return {};
}

Result<void> TomlReader::read_number(const toml::table& table, std::string_view key,
                                     double* out) const {
  const toml::node* node = table.get(key);
  if (node == nullptr) return {};
  const auto value = node->is_number() ? node->value<double>() : std::nullopt;
  if (!value || !std::isfinite(*value)) return wrong_type(*node, key, "a finite number");
  *out = *value;
  return {};
}

Result<void> TomlReader::read_expression(const toml::node& node, std::string_view key,
                                         std::string* out) const {
  if (const auto* integer = node.as_integer()) {
    *out = std::to_string(**integer);
  } else if (const auto* text = node.as_string()) {
    *out = **text;
  } else {
    return wrong_type(node, key, "an integer or an expression in quotes such as \"ROWS*COLS\"");
  }
  return {};
}

}  // namespace kernelpro
