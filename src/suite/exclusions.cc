// SPDX-License-Identifier: Apache-2.0
#include "base/toml.h"
// (toml.h comes first)
#include "base/text.h"
#include "suite/select.h"

namespace kernelpro {

namespace {

tl::unexpected<Error> fault(const std::string& where, const std::string& what) {
  return fail(ErrorKind::kBadInput, where + ": " + what,
              "write a task and why it is left out, as in: 1/23,zeros pass");
}

Result<std::vector<ExcludedTask>> parse_toml(const std::string& text, const std::string& path) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return fault(path + ", line " + std::to_string(parsed.error().source().begin.line),
                 std::string(parsed.error().description()));
  }
  std::vector<ExcludedTask> list;
  const toml::array* rows = parsed.table()["exclude"].as_array();
  if (rows == nullptr) return fault(path, "there is no [[exclude]]");
  for (const toml::node& node : *rows) {
    const std::string where = path + ", line " + std::to_string(node.source().begin.line);
    const toml::table* row = node.as_table();
    if (row == nullptr) return fault(where, "this is not a table");
    ExcludedTask task;
    task.label = (*row)["task"].value_or(std::string());
    task.reason = (*row)["reason"].value_or(std::string());
    task.by = path;
    if (task.label.empty()) return fault(where, "no task is named");
    if (task.reason.empty()) return fault(where, task.label + " is left out without a reason");
    list.push_back(std::move(task));
  }
  return list;
}

std::string unquoted(std::string_view text) {
  text = trim(text);
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::string(text);
  return replace_all(std::string(text.substr(1, text.size() - 2)), "\"\"", "\"");
}

}  // namespace

Result<std::vector<ExcludedTask>> parse_exclusions(const std::string& text,
                                                   const std::string& path) {
  if (path.ends_with(".toml")) return parse_toml(text, path);
  std::vector<ExcludedTask> list;
  int number = 0;
  for (const std::string& line : lines(text)) {
    ++number;
    const std::string_view row = trim(line);
    if (row.empty() || row.front() == '#') continue;
    const std::string where = path + ", line " + std::to_string(number);
    const std::size_t comma = row.find(',');
    ExcludedTask task;
    task.label = unquoted(row.substr(0, comma));
    if (comma != std::string_view::npos) task.reason = unquoted(row.substr(comma + 1));
    task.by = path;
    if (task.label.empty()) return fault(where, "no task is named");
    if (task.reason.empty()) return fault(where, task.label + " is left out without a reason");
    list.push_back(std::move(task));
  }
  return list;
}

}  // namespace kernelpro
