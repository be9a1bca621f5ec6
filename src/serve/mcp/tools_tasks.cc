// SPDX-License-Identifier: Apache-2.0
// list_tasks and read_task.
#include "base/text.h"
#include "core/candidate/language.h"
#include "serve/mcp/arguments.h"
#include "serve/mcp/tools.h"
#include "task/load/header.h"
#include "write/prompt/prompt.h"

namespace kernelpro {

namespace {

std::string init_text(const Tensor& tensor) {
  if (tensor.role == Role::kOutput) return "";
  const Init& init = tensor.init;
  return ", drawn " + std::string(init_name(init.kind)) + "(" + number(init.a) + ", " +
         number(init.b) + ")";
}

std::string tensors_text(const Task& task) {
  std::string text;
  for (const Tensor& tensor : task.tensors) {
    text += "- `" + tensor.name + "`: " + std::string(role_name(tensor.role)) + ", " +
            std::string(dtype_name(tensor.dtype)) + " [" + join_text(tensor.shape, ", ") +
            "], row-major" + init_text(tensor) + "\n";
  }
  return text;
}

std::string cases_text(const Task& task, TargetKind target) {
  std::string text;
  for (const Case* c : cases_for(task, target)) {
    text += "- " + c->name + (c->timed ? " (timed):" : ":");
    for (const auto& [name, value] : c->dims) text += " " + name + "=" + std::to_string(value);
    text += "\n";
  }
  return text;
}

std::string task_text(const Task& task, TargetKind target) {
  const LanguageRow& language = native_language(target);
  const std::string fence(language.fence);
  const std::string& reference = task.*language.reference;
  const std::string& kernel = task.*language.kernel;
  std::string text = "# Task " + printable(task.name) + ", " + std::string(target_name(target)) +
                     " target\n" + printable(task.summary) + "\n";
  if (task.module) {
    text += definition_text(task, target);
  } else {
    text += "\n## Tensors\n" + tensors_text(task);
  }
  text += "\n## Contract\nWith r the reference in higher precision, every element of an output:\n" +
          contract_text(task) +
          "\n## Cases\nEvery case counts for correctness, timed ones for "
          "speed.\n" +
          cases_text(task, target);
  text +=
      "\n## What to write\nOne " + std::string(language.title) +
      " file that includes \"task.h\" and defines\n" +
      fenced(std::string(language.signature) + ";", fence) +
      "Declare constants worth tuning as knobs, in comments: `// @knob TILE 16 32 64`; evaluate "
      "takes their values. `// @require TILE % WARPS == 0` restricts the combinations.\n";
  if (const Case* c = largest_timed(task, target)) {
    text +=
        "\n## task.h of the case " + c->name + "\n" + fenced(task_header(task, *c, target), "cpp");
  }
  if (!kernel.empty()) text += "\n## The kernel to start from\n" + fenced(kernel, fence);
  if (!task.module && !reference.empty()) {
    text += "\n## The reference\n" + fenced(reference, fence);
  }
  return text;
}

}  // namespace

Result<ToolAnswer> list_tasks_tool(Desk& desk, const Json& arguments, Ticket&) {
  const std::vector<TaskEntry> all = desk.tasks();
  std::string text;
  Json list = Json::array();
  for (const TaskEntry& each : all) {
    text += "- " + each.name + ": " + each.summary + "\n";
    if (list.size() < 100) list.push_back({{"name", each.name}, {"summary", each.summary}});
  }
  if (all.empty()) {
    text =
        "No task was found. Start the server with a folder that contains task folders (task.toml) "
        "or PyTorch files with Model and get_inputs.\n";
  }
  return ToolAnswer{page_of(text, arguments), {{"tasks", std::move(list)}, {"count", all.size()}}};
}

Result<ToolAnswer> read_task_tool(Desk& desk, const Json& arguments, Ticket& ticket) {
  ticket.phase("reading the task");
  TargetKind target = TargetKind::kCpu;
  KP_ASSIGN(const auto task, desk.read_task(task_choice(arguments), &target));
  return ToolAnswer{page_of(task_text(*task, target), arguments), nullptr};
}

}  // namespace kernelpro
