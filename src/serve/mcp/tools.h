// SPDX-License-Identifier: Apache-2.0
// The tools that an MCP client sees. A tool is a row: listing, schema and the check of arguments
// derive from it. Adding one: its function and its row in tools.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "core/json.h"
#include "serve/mcp/desk.h"
#include "serve/mcp/jobs.h"

namespace kernelpro {

struct ToolArgument {
  std::string_view name;
  enum class Kind { kText, kInteger, kFlag, kPairs } kind = Kind::kText;  // pairs: text by name
  std::string_view help;                                                  // one sentence
  bool required = false;
  std::string_view choices = "";  // "a|b|c", "" = any
};

struct ToolAnswer {
  std::string text;  // for a model: short, bounded
  Json structured;   // the same for programs; null: nothing beyond the text
};

struct McpTool {
  std::string_view name;
  std::string_view title;
  std::string_view help;
  std::span<const ToolArgument> arguments;
  bool read_only = true;
  Lane lane = Lane::kLookUp;
  // `arguments` were checked against the row. An Error is told to the model, which may call again.
  Result<ToolAnswer> (*call)(Desk& desk, const Json& arguments, Ticket& ticket) = nullptr;
};

std::span<const McpTool> mcp_tools();
const McpTool* find_mcp_tool(std::string_view name);
// Of tools/list, in the words of a protocol version.
Json tools_json(const std::string& version);
// Checks the arguments, calls, and keeps exceptions of ours from ending the server.
Result<ToolAnswer> call_tool(const McpTool& tool, Desk& desk, const Json& arguments,
                             Ticket& ticket);

// Bytes of text that a result has, unless its caller asks for more, and the most it gets.
inline constexpr std::size_t kPageBytes = 6000;
inline constexpr std::size_t kMaxPageBytes = 100000;
// The part of `text` that the arguments offset and max_bytes ask for, cut at line ends, with a last
// line that says where the next part begins. `next`: that place, 0 at the end; may be null.
std::string page_of(const std::string& text, const Json& arguments, std::size_t* next = nullptr);

// The rows' functions.
Result<ToolAnswer> list_tasks_tool(Desk& desk, const Json& arguments, Ticket& ticket);
Result<ToolAnswer> read_task_tool(Desk& desk, const Json& arguments, Ticket& ticket);
Result<ToolAnswer> evaluate_tool(Desk& desk, const Json& arguments, Ticket& ticket);
Result<ToolAnswer> compare_tool(Desk& desk, const Json& arguments, Ticket& ticket);
Result<ToolAnswer> history_tool(Desk& desk, const Json& arguments, Ticket& ticket);
Result<ToolAnswer> best_tool(Desk& desk, const Json& arguments, Ticket& ticket);
Result<ToolAnswer> diagnose_tool(Desk& desk, const Json& arguments, Ticket& ticket);
Result<ToolAnswer> search_code_tool(Desk& desk, const Json& arguments, Ticket& ticket);
Result<ToolAnswer> read_code_tool(Desk& desk, const Json& arguments, Ticket& ticket);
Result<ToolAnswer> list_code_tool(Desk& desk, const Json& arguments, Ticket& ticket);
Result<ToolAnswer> finish_tool(Desk& desk, const Json& arguments, Ticket& ticket);

}  // namespace kernelpro
