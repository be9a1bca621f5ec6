// SPDX-License-Identifier: Apache-2.0
// The tools that an MCP client sees. A tool is a row; its listing, schema and argument checks
// derive from it. To add one, write its function and add its row to tools.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "serve/mcp/desk.h"
#include "serve/mcp/jobs.h"

namespace kernelpro {

struct ToolArgument {
  std::string_view name;
  enum class Kind {
    kText,
    kInteger,
    kFlag,
    kTexts,  // a list
    kPairs   // text by name
  } kind = Kind::kText;
  std::string_view help;  // one sentence
  bool required = false;
  std::string_view choices = "";  // "a|b|c", "" = any
  // More of both from a table elsewhere: choices, and sentences after `help`; null: none.
  std::string (*choices_from)() = nullptr;
  std::string (*help_from)() = nullptr;
};

struct ToolAnswer {
  std::string text;  // for a model: short, bounded
  Json structured;   // the same for programs; null: nothing beyond the text
};

// A row's function. The arguments were checked against the row. An Error goes to the model, which
// may call again.
using McpCall = Result<ToolAnswer>(Desk& desk, const Json& arguments, Ticket& ticket);

struct McpTool {
  std::string_view name;
  std::string_view title;
  std::string_view help;
  std::span<const ToolArgument> arguments;
  bool read_only = true;
  Lane lane = Lane::kLookUp;
  McpCall* call = nullptr;
  bool for_trusted = false;  // only offered to trusted clients (DeskSettings)
};

std::span<const McpTool> mcp_tools();
const McpTool* find_mcp_tool(std::string_view name, bool trusted);
// The result of tools/list, as a protocol version defines it.
Json tools_json(const std::string& version, bool trusted);
// Checks the arguments and calls the tool. Catches our exceptions, so that none ends the server.
Result<ToolAnswer> call_tool(const McpTool& tool, Desk& desk, const Json& arguments,
                             Ticket& ticket);

// Default and largest number of bytes of text in a result.
inline constexpr std::size_t kPageBytes = 6000;
inline constexpr std::size_t kMaxPageBytes = 100000;
// The part of `text` selected by the arguments offset and max_bytes, cut at line ends, with a last
// line that gives the offset of the next part. `next`: that offset, 0 at the end; may be null.
std::string page_of(const std::string& text, const Json& arguments, std::size_t* next = nullptr);

}  // namespace kernelpro
