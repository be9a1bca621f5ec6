// SPDX-License-Identifier: Apache-2.0
// search_code, read_code and list_code: MCP tools over src/write/knowledge.
#include <algorithm>

#include "base/text.h"
#include "serve/mcp/tools.h"

namespace kernelpro {

namespace {

constexpr std::size_t kQueryBytes = 1000;
constexpr const char* kNone =
    "No source tree is indexed. The user can add one: kernelpro knowledge add NAME DIR\n";

int line_of(const JsonReader& given, const char* name, int otherwise) {
  return static_cast<int>(std::min<std::int64_t>(given.integer(name, otherwise), 1 << 30));
}

}  // namespace

Result<ToolAnswer> search_code_tool(Desk& desk, const Json& arguments, Ticket&) {
  const JsonReader given(arguments);
  SearchSettings settings;
  settings.limit = std::clamp(line_of(given, "limit", 6), 1, 30);
  if (desk.knowledge().list().empty()) return ToolAnswer{kNone, {{"hits", Json::array()}}};
  KP_ASSIGN(const auto hits, desk.knowledge().search_code(clip(given.text("query"), kQueryBytes),
                                                          given.text("library"), settings));
  std::string text;
  Json list = Json::array();
  for (const Hit& hit : hits) {
    text += hit.library + " " + printable(hit.path) + ":" + std::to_string(hit.first) + "-" +
            std::to_string(hit.last);
    if (!hit.symbol.empty()) text += "  " + hit.kind + " " + printable(full_name(hit));
    text += "\n";
    if (!hit.doc.empty()) text += "  " + clip(printable(hit.doc), 160) + "\n";
    int line = hit.excerpt_first;
    for (const std::string& each : lines(hit.excerpt)) {
      text += "  " + std::to_string(line++) + "  " + clip(printable(each), 200) + "\n";
    }
    list.push_back({{"library", hit.library},
                    {"path", printable(hit.path)},
                    {"first", hit.first},
                    {"last", hit.last},
                    {"kind", hit.kind},
                    {"symbol", printable(hit.symbol)},
                    {"scope", printable(hit.scope)},
                    {"signature", clip(printable(hit.signature), 200)},
                    {"doc", clip(printable(hit.doc), 160)}});
  }
  if (hits.empty()) text = "Nothing was found; try other words.\n";
  return ToolAnswer{page_of(text, arguments), {{"hits", std::move(list)}}};
}

Result<ToolAnswer> read_code_tool(Desk& desk, const Json& arguments, Ticket&) {
  const JsonReader given(arguments);
  KP_ASSIGN(const auto code, desk.knowledge().read_code(given.text("library"), given.text("path"),
                                                        std::max(line_of(given, "first", 1), 1),
                                                        line_of(given, "last", 0)));
  std::string text = printable(code.path) + ", lines " + std::to_string(code.first) + " to " +
                     std::to_string(code.last) + " of " + std::to_string(code.lines) + "\n";
  int line = code.first;
  for (const std::string& each : lines(code.text)) {
    text += std::to_string(line++) + "  " + each + "\n";
  }
  if (code.clipped) {
    text += "[continue with first = " + std::to_string(code.last + 1) + "]\n";
  }
  if (code.changed) text += "[the file has changed since it was indexed]\n";
  return ToolAnswer{page_of(text, arguments), nullptr};
}

Result<ToolAnswer> list_code_tool(Desk& desk, const Json& arguments, Ticket&) {
  const JsonReader given(arguments);
  std::string text;
  Json list = Json::array();
  if (given.text("library").empty()) {
    for (const Library& library : desk.knowledge().list()) {
      text += "- " + library.name + ": " + std::to_string(library.files) + " files" +
              (library.fault.empty() ? "" : ", cannot be used: " + printable(library.fault)) + "\n";
      list.push_back({{"library", library.name}, {"files", library.files}});
    }
    if (list.empty()) text = kNone;
    return ToolAnswer{page_of(text, arguments), {{"libraries", std::move(list)}}};
  }
  KP_ASSIGN(const auto entries,
            desk.knowledge().list_code(given.text("library"), given.text("prefix")));
  for (const CodeEntry& entry : entries) {
    text += "- " + printable(entry.path);
    if (entry.path.ends_with('/')) text += " (" + std::to_string(entry.files) + " files)";
    text += "\n";
    if (list.size() < 200) list.push_back(printable(entry.path));
  }
  return ToolAnswer{page_of(text, arguments), {{"entries", std::move(list)}}};
}

}  // namespace kernelpro
