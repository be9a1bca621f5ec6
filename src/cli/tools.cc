// SPDX-License-Identifier: Apache-2.0
#include "diagnose/tools.h"

#include <cstdio>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "core/task/task.h"
#include "report/diagnosis.h"
#include "run/store/tool_record.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kToolsOptions[] = {
    {"TOOL", "", "", "Show one tool in full."},
    {"--record", "FILE", "", "Record of how past findings turned out; by default this user's."},
    {"--json", "", "", "Print as JSON."},
};

std::string target_text(ToolTarget target) {
  if (target == ToolTarget::kAny) return "any";
  return std::string(
      target_name(target == ToolTarget::kCpu ? TargetKind::kCpu : TargetKind::kCuda));
}

const char* scope_text(const Tool& tool) {
  return tool.scope == Scope::kKernel ? "kernel" : "call";
}

std::vector<std::string> needs_of(const Tool& tool) {
  return std::vector<std::string>(tool.needs.begin(), tool.needs.end());
}

std::vector<std::string> bounds_of(const Tool& tool) {
  std::vector<std::string> names;
  if (tool.bounds == kAnyBound) return {"any"};
  for (int i = 0; i < 6; ++i) {
    const auto bound = static_cast<Bound>(i);
    if ((tool.bounds & bit(bound)) != 0) names.emplace_back(bound_name(bound));
  }
  return names;
}

const ToolHistory* history_of(const ToolRecord& record, const Tool& tool) {
  const auto found = record.tools.find(std::string(tool.name));
  return found == record.tools.end() || found->second.tried == 0 ? nullptr : &found->second;
}

Json as_json(const Tool& tool, const ToolRecord& record) {
  Json json = {{"name", tool.name},
               {"summary", tool.summary},
               {"target", target_text(tool.target)},
               {"scope", scope_text(tool)},
               {"bounds", bounds_of(tool)},
               {"needs", needs_of(tool)},
               {"catch_all", tool.catch_all},
               {"record", nullptr}};
  if (const ToolHistory* h = history_of(record, tool)) {
    json["record"] = {{"tried", h->tried},
                      {"hit_rate", h->hit_rate()},
                      {"mean_gain", h->mean_gain()},
                      {"calibration", h->calibration()}};
  }
  return json;
}

std::string in_full(const Tool& tool, const ToolRecord& record, int width) {
  std::string text = std::string(tool.name) + "\n" + wrapped(std::string(tool.summary), width, 2);
  text += std::string("  target  ") + target_text(tool.target) + "\n";
  text += std::string("  looks at a ") + scope_text(tool) + "\n";
  text += wrapped("classes " + join_text(bounds_of(tool), ", "), width, 2);
  text += wrapped("needs " + join_text(needs_of(tool), ", "), width, 2);
  const ToolHistory* h = history_of(record, tool);
  if (h == nullptr) return text + "  its advice has not been tried yet\n";
  char line[200];
  std::snprintf(line, sizeof line,
                "  tried %d times, at least 5 %% faster in %.0f %% of them, mean gain %.2fx, "
                "ln(gain) was %.2f of the estimate\n",
                h->tried, 100 * h->hit_rate(), h->mean_gain(), h->calibration());
  return text + line;
}

std::string table(const ToolRecord& record) {
  int width = 4;
  for (const Tool& tool : tools()) width = std::max(width, static_cast<int>(tool.name.size()));
  char line[400];
  std::snprintf(line, sizeof line, "%-*s  %-6s %-6s %5s %5s %6s %6s  %s\n", width, "tool", "target",
                "scope", "tried", "hits", "gain", "calib.", "what it finds");
  std::string text = line;
  for (const Tool& tool : tools()) {
    const ToolHistory* h = history_of(record, tool);
    std::string figures = "    -     -      -      -";
    if (h != nullptr) {
      char numbers[80];
      std::snprintf(numbers, sizeof numbers, "%5d %3.0f %% %5.2fx %6.2f", h->tried,
                    100 * h->hit_rate(), h->mean_gain(), h->calibration());
      figures = numbers;
    }
    std::snprintf(line, sizeof line, "%-*s  %-6s %-6s %s  ", width, std::string(tool.name).c_str(),
                  target_text(tool.target).c_str(), scope_text(tool), figures.c_str());
    text += line + std::string(tool.summary) + "\n";
  }
  return text;
}

int run_tools_command(const Options& options) {
  const bool named = options.has("--record");
  const std::string path = named ? options.text("--record") : user_record_path();
  const ToolRecord record = require(read_record(path, named));
  const std::string name = options.text("TOOL");
  Json all = Json::array();
  std::string text = name.empty() ? table(record) : "";
  for (const Tool& tool : tools()) {
    if (!name.empty() && tool.name != name) continue;
    all.push_back(as_json(tool, record));
    if (!name.empty()) text = in_full(tool, record, terminal_columns(stdout));
  }
  if (all.empty()) {
    throw Fatal({ErrorKind::kBadInput, "there is no tool \"" + name + "\"",
                 "list them with: kernelpro tools"});
  }
  if (options.flag("--json")) {
    const Json json = {{"record", path}, {"hash", record.hash()}, {"tools", all}};
    std::printf("%s\n", dump_json(json, 2).c_str());
    return 0;
  }
  std::fputs(text.c_str(), stdout);
  if (name.empty()) {
    std::printf(
        "\nhits: steps at least 5 %% faster; gain: geometric mean; calib.: ln(measured gain) over "
        "ln(estimated gain).\nrecord: %s%s\n",
        path.c_str(), record.tools.empty() ? " (nothing in it yet)" : "");
  }
  return 0;
}

}  // namespace

extern const Subcommand kTools{"tools", "List the diagnosis tools and how their advice turned out.",
                               kToolsOptions, run_tools_command};

}  // namespace kernelpro
