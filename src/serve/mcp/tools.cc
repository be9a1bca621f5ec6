// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp/tools.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "core/candidate/language.h"

namespace kernelpro {

// Each is in a file tools_*.cc.
McpCall list_tasks_tool, read_task_tool, evaluate_tool, compare_tool, history_tool, best_tool,
    diagnose_tool, search_code_tool, read_code_tool, list_code_tool, finish_tool, make_task_tool,
    diagnose_file_tool, diagnose_program_tool, optimize_tool, follow_tool, stop_tool,
    list_runs_tool;

namespace {

using Kind = ToolArgument::Kind;

constexpr ToolArgument kTask = {"task", Kind::kText, "Name of the task, as list_tasks shows it.",
                                true};
constexpr ToolArgument kRunTask = {"task", Kind::kText,
                                   "Task whose run is meant; by default the one used last."};
constexpr ToolArgument kTarget = {"target", Kind::kText,
                                  "Where kernels run; by default on the GPU if there is one.",
                                  false, "cpu|cuda"};
constexpr ToolArgument kPrecision = {"precision", Kind::kText,
                                     "Precision contract, instead of the task's own.", false,
                                     "fp32|tf32|fp16|bf16"};
constexpr ToolArgument kOffset = {
    "offset", Kind::kInteger,
    "Byte of the text to continue at, as given at the end of a cut answer."};
constexpr ToolArgument kMaxBytes = {"max_bytes", Kind::kInteger,
                                    "Maximum length of the text; 6000 by default."};

constexpr ToolArgument kListTasks[] = {kOffset, kMaxBytes};
constexpr ToolArgument kReadTask[] = {kTask, kTarget, kPrecision, kOffset, kMaxBytes};
constexpr ToolArgument kEvaluate[] = {
    kTask,
    {"source", Kind::kText,
     "The whole kernel: one C++ file (cpu) or CUDA file (cuda) that includes task.h and defines "
     "launch as read_task describes.",
     true},
    {"idea", Kind::kText, "What was changed and why, in one sentence; it is recorded."},
    {"parent", Kind::kInteger,
     "Candidate that this one was made from; by default the best so far."},
    {"answers", Kind::kText,
     "The finding that it answers, as \"tool: prescription\"; how it turns out is recorded. A line "
     "\"// answers: tool, tag\" "
     "in the source does the same."},
    {"knobs", Kind::kPairs,
     "Values of the knobs that the source declares; by default the first value of each."},
    {"language", Kind::kText, "Of the source; by default the target's own.", false, "",
     language_names, language_help},
    kTarget,
    kPrecision};
constexpr ToolArgument kCompare[] = {
    kTask,
    {"candidate_a", Kind::kInteger,
     "The first kernel, as a candidate of the run; or give source_a."},
    {"source_a", Kind::kText, "The first kernel, as source code."},
    {"candidate_b", Kind::kInteger,
     "The second kernel, as a candidate; without it and source_b, the best so far, or the start."},
    {"source_b", Kind::kText, "The second kernel, as source code."},
    kTarget,
    kPrecision};
constexpr ToolArgument kHistory[] = {kRunTask, kTarget, kPrecision, kOffset, kMaxBytes};
constexpr ToolArgument kBest[] = {kRunTask, kTarget, kPrecision, kOffset, kMaxBytes};
constexpr ToolArgument kDiagnose[] = {
    kRunTask,
    {"candidate", Kind::kInteger, "Candidate to diagnose; by default the one evaluated last."},
    {"tool", Kind::kText, "Show only this tool's finding."},
    {"source", Kind::kFlag, "Also show the candidate's source."},
    kTarget,
    kPrecision,
    kOffset,
    kMaxBytes};
constexpr ToolArgument kSearchCode[] = {
    {"query", Kind::kText, "Words that describe the code, or a symbol.", true},
    {"library", Kind::kText, "Search only this library; list_code names them."},
    {"limit", Kind::kInteger, "Maximum number of hits; 6 by default, 30 at most."},
    kOffset,
    kMaxBytes};
constexpr ToolArgument kReadCode[] = {
    {"library", Kind::kText, "As search_code shows it.", true},
    {"path", Kind::kText, "As search_code shows it.", true},
    {"first", Kind::kInteger, "First line; 1 by default."},
    {"last", Kind::kInteger, "Last line; the end by default, 400 lines at most."},
    kOffset,
    kMaxBytes};
constexpr ToolArgument kListCode[] = {
    {"library", Kind::kText, "Library whose files to list; without it, lists all libraries."},
    {"prefix", Kind::kText, "Folder to list; by default the top one."},
    kOffset,
    kMaxBytes};
constexpr ToolArgument kFinish[] = {kRunTask, kTarget, kPrecision};

constexpr ToolArgument kMakeTask[] = {
    {"name", Kind::kText, "Name of the new task, and of its folder.", true},
    {"source", Kind::kText,
     "Code to start from: a CUDA or C++ file with the kernel or function, or a PyTorch extension. "
     "Without it, and without a task.toml in files, an empty task is made."},
    {"file", Kind::kText, "The source's file name, such as softmax.cu; by default guessed."},
    {"function", Kind::kText,
     "The function or kernel of the source that is meant; by default the likeliest."},
    {"files", Kind::kPairs,
     "Texts of the task's files by name, in place of what is made: decisions that were open."},
    kOffset,
    kMaxBytes};

constexpr ToolArgument kFileTask = {"task", Kind::kText,
                                    "Task that it belongs to; it defines the work of one call."};
constexpr ToolArgument kFileCase = {"case", Kind::kText,
                                    "Case of the task; by default the largest timed one."};
constexpr ToolArgument kFileKernel = {"kernel", Kind::kText,
                                      "Only kernels whose names contain this."};
constexpr ToolArgument kFileRange = {"range", Kind::kText,
                                     "Of a trace: only work inside NVTX ranges of this name."};
constexpr ToolArgument kFileCode = {"code", Kind::kText,
                                    "Cubin, .so or program with the machine code of the kernels."};
constexpr ToolArgument kFileCalls = {"calls", Kind::kInteger,
                                     "Calls of the task that it covers; 1 by default."};
constexpr ToolArgument kFileBytes = {"bytes", Kind::kInteger,
                                     "Without a task: bytes that one call must read and write."};
constexpr ToolArgument kFileFlops = {"flops", Kind::kInteger,
                                     "Without a task: floating-point operations of one call."};
constexpr ToolArgument kFileType = {"dtype", Kind::kText, "Without a task: type of the inputs.",
                                    false, "fp32|fp16|bf16"};
constexpr ToolArgument kFileAll = {"all", Kind::kFlag,
                                   "Also what each tool saw, every number, and what is missing."};

constexpr ToolArgument kDiagnoseFile[] = {
    {"path", Kind::kText,
     "The file: .ncu-rep, ncu's CSV or printed pages, .nsys-rep or its SQLite or CSV export, "
     ".cubin, .so, a program, or evidence that kernelpro saved."},
    {"text", Kind::kText,
     "Instead of a path, the text of a file that lies elsewhere: CSV, printed pages, or what "
     "kernelpro diagnose FILE --evidence OUT.json wrote there of any file."},
    kFileTask,
    kFileCase,
    {"device", Kind::kText, "GPU of the report, such as H100, if it does not name one."},
    kFileKernel,
    kFileRange,
    kFileCode,
    kFileCalls,
    kFileBytes,
    kFileFlops,
    kFileType,
    kFileAll,
    kOffset,
    kMaxBytes};
constexpr ToolArgument kDiagnoseProgram[] = {
    {"command", Kind::kTexts, "The program and its arguments.", true},
    kFileTask,
    kFileCase,
    kFileKernel,
    kFileRange,
    kFileCode,
    kFileCalls,
    kFileBytes,
    kFileFlops,
    kFileType,
    {"no_counters", Kind::kFlag, "Do not run it again for hardware counters and samples."},
    kFileAll,
    kOffset,
    kMaxBytes};

constexpr ToolArgument kRun = {
    "run", Kind::kText,
    "Name or id of the run; by default the search started last, else the run that changed last."};
constexpr ToolArgument kOptimize[] = {
    kTask,
    {"model", Kind::kText,
     "Model that writes kernels, as PROVIDER:NAME; its key is in the server's environment. Without "
     "it, the kernel's knobs are tuned."},
    {"evaluations", Kind::kInteger, "Stop after so many candidates; 60 by default."},
    {"seconds", Kind::kInteger, "Stop after so many seconds; 600 by default."},
    {"max_tokens", Kind::kInteger,
     "Stop when models have used so many tokens; no limit by default."},
    {"start_from", Kind::kText,
     "A run whose best kernel is tried right after the start, such as the one that evaluate "
     "filled."},
    {"language", Kind::kText, "What the model writes; by default C++ or CUDA C++."},
    kTarget,
    kPrecision};
constexpr ToolArgument kFollow[] = {
    kRun,
    {"wait_s", Kind::kInteger,
     "Answer after so many seconds, or when the search has ended; at once by default, 60 at most."},
    kOffset,
    kMaxBytes};
constexpr ToolArgument kStop[] = {kRun};
constexpr ToolArgument kListRuns[] = {kOffset, kMaxBytes};

constexpr McpTool kTools[] = {
    {"list_tasks", "List tasks", "The tasks that this server can open, one line each.", kListTasks,
     true, Lane::kLookUp, list_tasks_tool},
    {"read_task", "Read a task",
     "What a task computes, its precision contract, its cases, the generated task.h that a kernel "
     "includes, and the kernel to start from.",
     kReadTask, true, Lane::kLookUp, read_task_tool},
    {"evaluate", "Evaluate a kernel",
     "Compiles a kernel, checks it against the task's reference, times it against the best so far "
     "and diagnoses it. Takes seconds; the first evaluation of a task takes longer. The answer "
     "says what failed, or how fast the kernel is and what limits it.",
     kEvaluate, false, Lane::kRunKernels, evaluate_tool},
    {"compare", "Compare two kernels",
     "Times two correct kernels of a task in alternation on the same inputs, and returns the "
     "ratio with its 95 % interval. New sources are evaluated first.",
     kCompare, false, Lane::kRunKernels, compare_tool},
    {"history", "What was tried",
     "Every candidate of the run in order: its parent, idea, outcome, time and speed-up.", kHistory,
     true, Lane::kLookUp, history_tool},
    {"best", "The best so far", "The fastest correct candidate: its numbers and its source.", kBest,
     true, Lane::kLookUp, best_tool},
    {"diagnose", "Diagnose a candidate",
     "Everything known about an evaluated candidate: the failure in full, or every finding, what "
     "each expert tool saw, and the numbers behind it.",
     kDiagnose, true, Lane::kLookUp, diagnose_tool},
    {"search_code", "Search code",
     "Finds definitions and examples in indexed source trees (CUTLASS, CuTe, the user's own).",
     kSearchCode, true, Lane::kLookUp, search_code_tool},
    {"read_code", "Read code", "Lines of a file in an indexed source tree.", kReadCode, true,
     Lane::kLookUp, read_code_tool},
    {"list_code", "List code", "The indexed source trees, or the files in a folder of one.",
     kListCode, true, Lane::kLookUp, list_code_tool},
    {"finish", "Finish the run",
     "Confirms the best candidate in fresh processes against the start, writes it with its header "
     "and a report, and returns their paths. Takes ten seconds or more; you may continue to "
     "evaluate afterwards.",
     kFinish, false, Lane::kRunKernels, finish_tool},
    {"make_task", "Make a task",
     "Turns code into a task that kernels can be evaluated on: definition, reference, cases, "
     "starting kernel. What cannot be derived is left open, line by line; call again with the "
     "decisions.",
     kMakeTask, false, Lane::kLookUp, make_task_tool},
    {"diagnose_file", "Diagnose a report or binary",
     "Says what limits a kernel from what was saved of it: a profiler's report, a trace, machine "
     "code. Needs no GPU and runs nothing.",
     kDiagnoseFile, true, Lane::kLookUp, diagnose_file_tool},
    {"diagnose_program", "Diagnose a program",
     "Runs a program on this machine's GPU under the tracer, again for hardware counters, and says "
     "what limits its kernels and what the time between them goes to.",
     kDiagnoseProgram, false, Lane::kRunKernels, diagnose_program_tool, true},
    {"optimize", "Start a search",
     "Starts a search for faster kernels of a task: by tuning the kernel's knobs, or with a model "
     "that writes kernels. Returns once it has begun; it goes on by itself, one at a time.",
     kOptimize, false, Lane::kRunKernels, optimize_tool},
    {"follow", "Follow a run",
     "How a run stands: running or not, the best so far, the latest candidates. Can wait for its "
     "end.",
     kFollow, true, Lane::kWait, follow_tool},
    {"stop", "Stop a search", "Ends a search after its current step; what it found stays.", kStop,
     false, Lane::kLookUp, stop_tool},
    {"list_runs", "List runs", "The runs of this server's folder, the latest first.", kListRuns,
     true, Lane::kLookUp, list_runs_tool},
};

std::vector<std::string> choices_of(const ToolArgument& argument) {
  if (argument.choices_from != nullptr) return split(argument.choices_from(), '|');
  if (argument.choices.empty()) return {};
  return split(argument.choices, '|');
}

std::string help_of(const ToolArgument& argument) {
  const std::string help(argument.help);
  return argument.help_from == nullptr ? help : help + " " + argument.help_from() + ".";
}

Json schema_of(const McpTool& tool) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const ToolArgument& argument : tool.arguments) {
    Json property = Json::object();
    switch (argument.kind) {
      case Kind::kText:
        property["type"] = "string";
        break;
      case Kind::kInteger:
        property["type"] = "integer";
        property["minimum"] = 0;
        break;
      case Kind::kFlag:
        property["type"] = "boolean";
        break;
      case Kind::kTexts:
        property["type"] = "array";
        property["items"] = {{"type", "string"}};
        break;
      case Kind::kPairs:
        property["type"] = "object";
        property["additionalProperties"] = {{"type", "string"}};
        break;
    }
    property["description"] = help_of(argument);
    const auto choices = choices_of(argument);
    if (!choices.empty()) property["enum"] = choices;
    properties[std::string(argument.name)] = std::move(property);
    if (argument.required) required.push_back(argument.name);
  }
  Json schema = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

// Describes the fault in a value; "" if it is valid.
std::string fault(const ToolArgument& argument, const Json& value) {
  switch (argument.kind) {
    case Kind::kText: {
      if (!value.is_string()) return "must be a string";
      const auto choices = choices_of(argument);
      const bool listed =
          choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end();
      return listed ? "" : "must be one of " + join_text(choices, ", ");
    }
    case Kind::kInteger: {
      if (value.is_number_unsigned() &&
          value.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max()) {
        return "";
      }
      return "must be an integer of at least 0";
    }
    case Kind::kFlag:
      return value.is_boolean() ? "" : "must be true or false";
    case Kind::kTexts: {
      const bool texts =
          value.is_array() && std::all_of(value.begin(), value.end(),
                                          [](const Json& each) { return each.is_string(); });
      return texts ? "" : "must be an array of strings";
    }
    case Kind::kPairs: {
      if (!value.is_object()) return "must be an object of strings";
      const bool texts = std::all_of(value.begin(), value.end(),
                                     [](const Json& each) { return each.is_string(); });
      return texts ? "" : "must be an object of strings: {\"TILE\": \"32\"}";
    }
  }
  return "";
}

Result<void> check(const McpTool& tool, const Json& arguments) {
  std::vector<std::string> names;
  for (const ToolArgument& argument : tool.arguments) {
    names.emplace_back(argument.name);
    const auto given = arguments.find(std::string(argument.name));
    const bool there = given != arguments.end() && !given->is_null();
    if (!there && argument.required) {
      return fail(ErrorKind::kBadInput,
                  std::string(tool.name) + " needs the argument " + names.back(),
                  help_of(argument));
    }
    if (!there) continue;
    if (const std::string problem = fault(argument, *given); !problem.empty()) {
      return fail(ErrorKind::kBadInput, "the argument " + names.back() + " " + problem,
                  help_of(argument));
    }
  }
  for (const auto& [name, value] : arguments.items()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return fail(ErrorKind::kBadInput,
                std::string(tool.name) + " has no argument " + clip(printable(name), 100),
                "it has " + join_text(names, ", "));
  }
  return {};
}

}  // namespace

std::span<const McpTool> mcp_tools() { return kTools; }

const McpTool* find_mcp_tool(std::string_view name, bool trusted) {
  for (const McpTool& tool : kTools) {
    if (tool.name == name && (trusted || !tool.for_trusted)) return &tool;
  }
  return nullptr;
}

Json tools_json(const std::string& version, bool trusted) {
  Json all = Json::array();
  for (const McpTool& tool : kTools) {
    if (tool.for_trusted && !trusted) continue;
    Json json = {{"name", tool.name}};
    if (version >= "2025-06-18") json["title"] = tool.title;
    json["description"] = tool.help;
    json["inputSchema"] = schema_of(tool);
    if (version >= "2025-03-26") {
      json["annotations"] = {{"title", tool.title}, {"readOnlyHint", tool.read_only}};
      if (!tool.read_only) {
        json["annotations"]["destructiveHint"] = false;
        json["annotations"]["idempotentHint"] = false;
      }
      json["annotations"]["openWorldHint"] = false;
    }
    all.push_back(std::move(json));
  }
  return all;
}

Result<ToolAnswer> call_tool(const McpTool& tool, Desk& desk, const Json& arguments,
                             Ticket& ticket) {
  KP_TRY(check(tool, arguments));
  try {
    return tool.call(desk, arguments, ticket);
  } catch (const Fatal& fatal) {
    return tl::unexpected<Error>(fatal.error());
  } catch (const std::exception& error) {
    return fail(ErrorKind::kInternal, std::string("internal error: ") + error.what(),
                "this is a bug in KernelPro: report it with the call that you made");
  }
}

std::string page_of(const std::string& text, const Json& arguments, std::size_t* next) {
  const JsonReader given(arguments);
  const auto from = std::min(
      static_cast<std::size_t>(std::max<std::int64_t>(given.integer("offset"), 0)), text.size());
  const auto wanted = static_cast<std::size_t>(std::clamp<std::int64_t>(
      given.integer("max_bytes", kPageBytes), 200, static_cast<std::int64_t>(kMaxPageBytes)));
  if (next != nullptr) *next = 0;
  if (text.size() - from <= wanted) return text.substr(from);
  std::size_t end = text.rfind('\n', from + wanted - 1);
  // Cut a line longer than a page at a character boundary.
  if (end == std::string::npos || end < from) {
    end = from + wanted;
    while (end > from + 1 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  } else {
    ++end;
  }
  if (next != nullptr) *next = end;
  return text.substr(from, end - from) + "[" + std::to_string(text.size() - end) +
         " bytes more: call again with offset " + std::to_string(end) + "]\n";
}

}  // namespace kernelpro
