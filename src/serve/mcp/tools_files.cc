// SPDX-License-Identifier: Apache-2.0
// make_task, diagnose_file and diagnose_program: from what an agent has, without a task.
#include <algorithm>

#include "base/files.h"
#include "base/text.h"
#include "diagnose/diagnose.h"
#include "report/diagnosis.h"
#include "run/gather/gather.h"
#include "run/store/tool_record.h"
#include "serve/mcp/arguments.h"
#include "serve/mcp/tools.h"
#include "task/load/unfilled.h"
#include "task/scaffold/scaffold.h"

namespace kernelpro {

namespace {

constexpr std::size_t kSourceBytes = 1 << 20;
constexpr double kProgramSeconds = 600;

// A file name for code that came without one.
std::string file_for(const std::string& name, const std::string& source) {
  if (contains(source, "import torch")) return name + ".py";
  return name + (contains(source, "__global__") || contains(source, "cuda") ? ".cu" : ".cpp");
}

Result<Scaffold> scaffold_of(const std::string& name, const JsonReader& given) {
  const std::string source = given.text("source");
  if (source.empty()) return scaffold_empty(name);
  ScaffoldSource from;
  from.name = name;
  from.text = source;
  from.file = given.text("file").empty() ? file_for(name, source) : basename(given.text("file"));
  from.function = given.text("function");
  return scaffold_from(from);
}

// "task.toml:12: the sizes that matter to you", one line each.
std::string open_decisions(const std::string& folder, int* count) {
  std::string text;
  for (const std::string& name : list_dir(folder)) {
    int number = 0;
    for (const std::string& line : lines(read_file(join(folder, name), 8 << 20).value_or(""))) {
      ++number;
      if (!contains(line, kUnfilled)) continue;
      ++*count;
      text += "- " + name + ":" + std::to_string(number) + ": " + clip(printable(trim(line)), 200) +
              "\n";
    }
  }
  return text;
}

Theory theory_of(const Desk& desk, const JsonReader& given) {
  Theory theory;
  theory.case_name = given.text("case");
  theory.device = given.text("device");
  theory.kernel = given.text("kernel");
  theory.range = given.text("range");
  theory.calls = static_cast<int>(std::clamp<std::int64_t>(given.integer("calls", 1), 1, 1000000));
  theory.dtype = dtype_from_name(given.text("dtype"));
  const auto number = [&](const char* name) {
    return given.member(name) != nullptr ? std::optional(static_cast<double>(given.integer(name)))
                                         : std::nullopt;
  };
  theory.bytes = number("bytes");
  theory.flops = number("flops");
  theory.open.gpu = desk.settings().gpu;
  theory.open.python = desk.settings().python;
  return theory;
}

// `theory` with the task and the machine code that the call names.
Result<Theory> complete_theory(const Desk& desk, const JsonReader& given) {
  Theory theory = theory_of(desk, given);
  if (const std::string task = given.text("task"); !task.empty()) {
    KP_ASSIGN(theory.task, desk.find_task(task));
  }
  if (const std::string code = given.text("code"); !code.empty()) {
    KP_ASSIGN(theory.code, desk.find_file(code));
  }
  return theory;
}

ToolAnswer diagnosed(const Desk& desk, const Gathered& gathered, const Json& arguments) {
  const std::string& file = desk.settings().record;
  const ToolRecord record =
      file.empty() ? ToolRecord() : read_record(file, false).value_or(ToolRecord());
  const Diagnosis diagnosis = diagnose(gathered.evidence, record);
  std::string text = printable(gathered.subject) + ": based on " + gathered.basis;
  if (!gathered.ceilings.empty()) text += "; ceilings " + gathered.ceilings;
  text += ".\n";
  for (const std::string& note : gathered.notes) text += "Note: " + printable(note) + "\n";
  text += "\n";
  if (JsonReader(arguments).flag("all")) {
    DiagnosisStyle style;
    style.all = true;
    style.width = 100;
    text += diagnosis_for_terminal(diagnosis, gathered.evidence, style);
  } else {
    text += diagnosis_to_text(diagnosis);
  }
  Json json = {{"subject", gathered.subject},
               {"basis", gathered.basis},
               {"notes", gathered.notes},
               {"diagnosis", parse_json(diagnosis_to_json(diagnosis)).value_or(Json())}};
  return {page_of(text, arguments), std::move(json)};
}

}  // namespace

Result<ToolAnswer> make_task_tool(Desk& desk, const Json& arguments, Ticket&) {
  const JsonReader given(arguments);
  const std::string name = task_name(given.text("name"));
  if (given.text("source").size() > kSourceBytes) {
    return fail(ErrorKind::kBadInput, "the source has more than 1 MiB",
                "give the function and what it calls alone");
  }
  bool again = false;
  KP_ASSIGN(const std::string folder, desk.task_folder(name, &again));
  Scaffold scaffold;
  const bool whole = again || given.object("files").contains("task.toml");
  if (!whole || !given.text("source").empty()) {
    KP_ASSIGN(scaffold, scaffold_of(name, given));
  }
  for (const auto& [file, text] : given.object("files").items()) {
    if (file != basename(file) || file.starts_with(".") || file.empty()) {
      return fail(ErrorKind::kBadInput, "files has the name " + clip(printable(file), 100),
                  "use names such as task.toml and reference.cpp, without folders");
    }
    scaffold.files[file] = text.get<std::string>();
  }
  KP_TRY(make_dirs(folder));
  for (const auto& [file, text] : scaffold.files) KP_TRY(write_file(join(folder, file), text));
  desk.made(folder);
  std::string text = "Task " + name + ": " + join_text(list_dir(folder), " ") + "\n";
  for (const std::string& line : scaffold.derived) text += "- found: " + line + "\n";
  int open = 0;
  const std::string decisions = open_decisions(folder, &open);
  if (open > 0) {
    text +=
        "\nTo decide, before the task can be opened:\n" + decisions +
        "\nNext: decide each from what the code is for, then call make_task again with this name "
        "and the changed texts in files (without the words " +
        std::string(kUnfilled) + ").\n";
  } else {
    text += "Next: read_task " + name + (scaffold.task.empty() ? "" : "/" + scaffold.task) +
            ", then evaluate its kernel.\n";
  }
  for (const auto& [file, content] : scaffold.files) {
    text += "\n## " + file + "\n" + fenced(content);
  }
  return ToolAnswer{page_of(text, arguments),
                    {{"task", name},
                     {"folder", folder},
                     {"files", list_dir(folder)},
                     {"open", open},
                     {"derived", scaffold.derived},
                     {"confirm", scaffold.confirm}}};
}

Result<ToolAnswer> diagnose_file_tool(Desk& desk, const Json& arguments, Ticket& ticket) {
  const JsonReader given(arguments);
  const std::string text = given.text("text"), path = given.text("path");
  if (text.empty() == path.empty()) {
    return fail(ErrorKind::kBadInput, "diagnose_file needs a path or a text, one of them",
                "give the path of a file of this machine, or the text of one that lies elsewhere");
  }
  KP_ASSIGN(const Theory theory, complete_theory(desk, given));
  if (!text.empty()) {
    KP_ASSIGN(const Gathered gathered, gather_text(text, "the text", theory));
    return diagnosed(desk, gathered, arguments);
  }
  KP_ASSIGN(const std::string file, desk.find_file(path));
  ticket.phase("reading " + basename(file));
  KP_ASSIGN(const Gathered gathered, gather_file(file, theory));
  return diagnosed(desk, gathered, arguments);
}

Result<ToolAnswer> diagnose_program_tool(Desk& desk, const Json& arguments, Ticket& ticket) {
  const JsonReader given(arguments);
  KP_TRY(desk.runners().check_idle());
  std::vector<std::string> argv;
  for (const Json& each : given.array("command")) argv.push_back(each.get<std::string>());
  if (argv.empty()) {
    return fail(ErrorKind::kBadInput, "the command is empty",
                "give the program and its arguments, as in [\"./bench\", \"--size\", \"4096\"]");
  }
  KP_ASSIGN(const Theory theory, complete_theory(desk, given));
  ticket.phase("running " + basename(argv.front()));
  KP_ASSIGN(const Gathered gathered,
            gather_program(argv, theory, kProgramSeconds, !given.flag("no_counters")));
  return diagnosed(desk, gathered, arguments);
}

}  // namespace kernelpro
