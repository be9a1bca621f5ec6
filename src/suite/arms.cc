// SPDX-License-Identifier: Apache-2.0
#include "suite/arms.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/text.h"
#include "core/evaluation/objective.h"
#include "search/searches.h"

namespace kernelpro {

namespace {

// A setting that arms can vary.
struct ArmRow {
  std::string_view name;
  std::string_view values;  // "none|raw|diagnosed"; "" any
  // Applies the value; false: it is not allowed.
  bool (*apply)(const std::string& value, RunSettings* settings);
  // The same as `values`, from a table elsewhere; null: `values` holds.
  std::string (*values_from)() = nullptr;
};

// REQUIRES: not empty.
template <class Number>
bool read_number(const std::string& text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && text.front() != '-';
}

bool feedback(const std::string& value, RunSettings* settings) {
  const auto kind = feedback_from_name(value);
  if (kind) settings->feedback = *kind;
  return kind.has_value();
}

bool profile(const std::string& value, RunSettings* settings) {
  const auto set = counter_set_from_name(value);
  if (set) settings->counters = *set;
  return set.has_value();
}

bool seed(const std::string& value, RunSettings* settings) {
  return read_number(value, &settings->seed);
}

bool tune(const std::string& value, RunSettings* settings) {
  return read_number(value, &settings->roles.tune);
}

bool search(const std::string& value, RunSettings* settings) {
  settings->search = value;
  settings->preset = RunSettings().preset;
  return std::any_of(searches().begin(), searches().end(),
                     [&](const SearchRow& row) { return row.name == value; });
}

bool objective(const std::string& value, RunSettings* settings) {
  const auto named = objective_from_text(value);
  if (named) settings->objective = *named;
  return named.has_value();
}

// Commas separate the values of an arm, so an objective with one cannot be among them.
std::string arm_objectives() {
  std::string text;
  for (const ObjectiveRow& row : objectives()) {
    if (contains(row.name, ",")) continue;
    text += (text.empty() ? "" : "|") + objective_form(row);
  }
  return text;
}

bool memory(const std::string& value, RunSettings* settings) {
  settings->memory = value == "on";
  return value == "on" || value == "off";
}

constexpr ArmRow kRows[] = {
    {"feedback", "none|raw|diagnosed", feedback},
    {"profile", "off|triage|full", profile},
    {"search", "", search, search_names},
    {"memory", "on|off", memory},
    {"objective", "", objective, arm_objectives},
    {"seed", "", seed},
    {"tune", "", tune},
};

const ArmRow* find_row(std::string_view name) {
  for (const ArmRow& row : kRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string known_rows() {
  std::vector<std::string> names;
  for (const ArmRow& row : kRows) {
    std::string text(row.name);
    const std::string values =
        row.values_from != nullptr ? row.values_from() : std::string(row.values);
    if (!values.empty()) text += " (" + replace_all(values, "|", ", ") + ")";
    names.push_back(std::move(text));
  }
  return join_text(names, ", ");
}

struct Item {
  std::string row;
  std::vector<std::string> values;
};

Result<Item> parse_item(const std::string& text) {
  const std::size_t equals = text.find('=');
  Item item{std::string(trim(text.substr(0, equals))), {}};
  const ArmRow* row = find_row(item.row);
  if (row == nullptr || equals == std::string::npos) {
    return fail(ErrorKind::kBadInput, "--arms \"" + text + "\" names nothing that arms can vary",
                "write, for example, --arms feedback=none,raw; arms can vary: " + known_rows());
  }
  for (const std::string& each : split(text.substr(equals + 1), ',')) {
    const std::string value(trim(each));
    RunSettings scratch;
    if (value.empty() || !row->apply(value, &scratch)) {
      return fail(ErrorKind::kBadInput, "--arms: " + item.row + " cannot be \"" + value + "\"",
                  "possible values: " + known_rows());
    }
    item.values.push_back(value);
  }
  return item;
}

Arm with(Arm arm, const std::string& row, const std::string& value) {
  const std::string text = row + "=" + value;
  arm.name = arm.values.empty() ? text : arm.name + "," + text;
  arm.values[row] = value;
  return arm;
}

}  // namespace

Result<std::vector<Arm>> parse_arms(const std::vector<std::string>& items, bool cross) {
  if (cross && items.size() < 2) {
    return fail(ErrorKind::kBadInput, "--cross combines the values of several --arms",
                "give --arms twice or more, or leave --cross out");
  }
  std::vector<Arm> arms;
  if (items.empty() || cross) arms.emplace_back();
  std::set<std::string> rows, names;
  for (const std::string& text : items) {
    KP_ASSIGN(const auto item, parse_item(text));
    if (!rows.insert(item.row).second) {
      return fail(ErrorKind::kBadInput, "--arms names " + item.row + " twice",
                  "give all its values at once, as in --arms " + item.row + "=A,B");
    }
    std::vector<Arm> next;
    if (!cross) next = arms;
    for (const Arm& arm : cross ? arms : std::vector<Arm>{Arm()}) {
      for (const std::string& value : item.values) next.push_back(with(arm, item.row, value));
    }
    arms = std::move(next);
  }
  for (const Arm& arm : arms) {
    if (names.insert(arm.name).second) continue;
    return fail(ErrorKind::kBadInput, "--arms names " + arm.name + " twice", "name it once");
  }
  return arms;
}

RunSettings settings_of(const Arm& arm, RunSettings base) {
  for (const auto& [name, value] : arm.values) {
    const ArmRow* row = find_row(name);
    KP_ASSERT(row != nullptr && row->apply(value, &base));
  }
  return base;
}

}  // namespace kernelpro
