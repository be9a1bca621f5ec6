// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/worker.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "core/plan/kernel_name.h"

namespace kernelpro {

namespace {

constexpr double kLoadTimeout = 60;
constexpr std::size_t kMostNotes = 16;
constexpr std::size_t kMostName = 200;
constexpr const char* kUsedUp =
    ", all calls taken together: later ones take far longer than the first";

}  // namespace

Json tensors_json(const CudaCase& state) {
  Json all = Json::array();
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const Shaped& t = state.tensors[i];
    all.push_back({{"name", t.tensor->name},
                   {"label", i < state.labels.size() ? state.labels[i] : std::string()},
                   {"role", role_name(t.tensor->role)},
                   {"dtype", dtype_name(t.tensor->dtype)},
                   {"shape", t.shape}});
  }
  return all;
}

namespace {

std::optional<Outcome> loaded(const Answer& answer, const CudaCase& state,
                              std::map<std::string, double>* facts,
                              std::vector<std::string>* notes = nullptr) {
  const auto* reply = std::get_if<Reply>(&answer);
  if (reply == nullptr)
    return worker_outcome(answer, "loading for case " + state.c->name, state.c->name);
  for (const auto& [metric, value] : JsonReader(reply->json).object("facts").items()) {
    if (facts != nullptr && value.is_number()) (*facts)[metric] = value.get<double>();
  }
  for (const Json& note : JsonReader(reply->json).array("notes")) {
    const std::string text = note.is_string() ? note.get<std::string>() : "";
    if (notes == nullptr || text.empty() || notes->size() >= kMostNotes ||
        std::find(notes->begin(), notes->end(), text) != notes->end()) {
      continue;
    }
    notes->push_back(clip(text, 300));
  }
  return std::nullopt;
}

}  // namespace

Json case_json(const Task& task, const CudaCase& state, std::uint64_t place) {
  Json item = {{"case", state.c->name},
               {"layout", *parse_json(layout_to_json(placed(state.layout, place)))},
               {"sets", state.sets()},
               {"inputs", Json::array()}};
  for (const Tensor& tensor : task.tensors) {
    item["inputs"].push_back(tensor.role != Role::kOutput);
  }
  if (task.module) {
    item["dims"] = state.c->dims;
    item["tensors"] = tensors_json(state);
  }
  return item;
}

void post_cases(CudaLink& link, const Task& task, const std::vector<CudaCase>& cases,
                std::uint64_t place, bool writable) {
  link.set_place(place);
  Json all = Json::array();
  for (const CudaCase& state : cases) all.push_back(case_json(task, state, place));
  link.post({{"do", "open"}, {"cases", all}, {"writable", writable}});
  for (const CudaCase& state : cases) {
    for (int set = 0; set < state.sets(); ++set) {
      const auto& memory = state.memory[static_cast<std::size_t>(set)];
      for (std::size_t first = 0; first < memory.size(); first += kFdsPerFrame) {
        std::vector<int> slots, fds;
        for (std::size_t i = first; i < std::min(memory.size(), first + kFdsPerFrame); ++i) {
          slots.push_back(memory[i].first);
          fds.push_back(memory[i].second.get());
        }
        Json message = about(state, "memory", set);
        message["slots"] = slots;
        link.post(message, fds);
      }
    }
  }
}

void move_to(CudaLink& link, const Task& task, const std::vector<CudaCase>& cases,
             std::uint64_t place) {
  if (place != 0 && link.place() != place) post_cases(link, task, cases, place);
}

Json load_command(const std::string& case_name, const std::string& subject, const Binary& binary,
                  const LaunchPlan& plan) {
  Json command = {{"do", "load"},
                  {"case", case_name},
                  {"subject", subject},
                  {"cubin", binary.cubin},
                  {"plan", *parse_json(plan_to_json(plan))}};
  if (!binary.images.empty()) command["images"] = binary.images;
  return command;
}

std::optional<Outcome> load_plan(CudaWorker& worker, const CudaCase& state, const char* name,
                                 const Binary& binary, const LaunchPlan& plan,
                                 std::map<std::string, double>* facts,
                                 std::vector<std::string>* notes) {
  return loaded(worker.link.ask(load_command(state.c->name, name, binary, plan), kLoadTimeout),
                state, facts, notes);
}

Result<std::string> module_file(CudaLink& link, const Binary& binary) {
  if (link.folder() == nullptr || !exists(binary.module)) return binary.module;
  return link.folder()->copy_of(binary.module);
}

std::optional<Outcome> load_module(CudaWorker& worker, const CudaCase& state, const Task& task,
                                   Policy policy, const char* name, const Binary& binary,
                                   double timeout_s, std::map<std::string, double>* facts,
                                   std::vector<std::string>* notes) {
  const Result<std::string> file = module_file(worker.link, binary);
  if (!file) return Crashed{file.error().message, "", Crashed::By::kOutside};
  return loaded(worker.link.ask({{"do", "load"},
                                 {"case", state.c->name},
                                 {"subject", name},
                                 {"module", *file},
                                 {"task_source", task.module ? task.module->source : ""},
                                 {"task_path", task.module ? task.module->path : ""},
                                 {"precision", precision_name(task.precision)},
                                 {"policy", policy_name(policy)}},
                                timeout_s),
                state, facts, notes);
}

std::optional<Outcome> run_sets(CudaWorker& worker, const CudaCase& state, const char* name,
                                const SetKeys& steps, double timeout_s, const std::string& doing,
                                std::set<int>* reordered) {
  Json all = Json::array();
  for (const auto& [set, key] : steps) all.push_back({{"set", set}, {"key", key}});
  const Answer answer = worker.link.ask(
      {{"do", "run"}, {"case", state.c->name}, {"subject", name}, {"steps", all}}, timeout_s);
  const auto* reply = std::get_if<Reply>(&answer);
  if (reply == nullptr) return worker_outcome(answer, doing, state.c->name);
  for (const Json& set : JsonReader(reply->json).array("reordered")) {
    if (reordered != nullptr && set.is_number_integer()) reordered->insert(set.get<int>());
  }
  return std::nullopt;
}

Missing missing_from(const Answer& answer, Family family, const std::string& doing,
                     const std::string& otherwise) {
  if (const auto* refusal = std::get_if<Refusal>(&answer)) {
    return {family, refusal->text,
            refusal->next.empty() ? "run again; `kernelpro doctor` shows what this GPU allows"
                                  : refusal->next};
  }
  const Lost& lost = std::get<Lost>(answer);
  if (lost.timed_out) {
    return {family,
            doing + " one at a time, the kernels did not finish within " + number(lost.seconds, 3) +
                " s (kernels that wait for each other never do)",
            "raise the time limit, unless the kernels of a call wait for each other"};
  }
  return {family, "the process in which kernels are " + doing + " ended: " + lost.how,
          "run again; if it fails again, " + otherwise};
}

Outcome worker_outcome(const Answer& answer, const std::string& doing,
                       const std::string& case_name) {
  if (const auto* lost = std::get_if<Lost>(&answer)) {
    if (lost->timed_out) return TimedOut{lost->seconds, lost->used_up ? doing + kUsedUp : doing};
    if (!lost->refused.empty()) {
      return Rejected{lost->refused,
                      "it tried something that a candidate may not do: " + lost->refused};
    }
    return Crashed{lost->how + " while " + doing, lost->output, lost->by};
  }
  const Refusal& refusal = std::get<Refusal>(answer);
  switch (refusal.kind) {
    case RefusalKind::kCompile:
      return CompileError{refusal.text};
    case RefusalKind::kOutput:
      return WrongResult{case_name, "", refusal.text, INFINITY, 0};
    case RefusalKind::kNone:
    // A process that runs a candidate cannot blame the machine.
    case RefusalKind::kEnvironment:
    case RefusalKind::kTask:
    case RefusalKind::kInput:
    case RefusalKind::kMemory:
      return Crashed{refusal.text + " while " + doing, "", refusal.by};
    default:
      return Rejected{refusal.rule, refusal.text};
  }
}

std::string kernel_names(const LaunchPlan& plan) {
  std::vector<std::string> names;
  for (const PlanNode& node : plan.nodes) {
    if (node.kind != PlanNode::Kind::kKernel) continue;
    std::string name = demangled(node.function);
    name = clip(name.substr(0, name.find('(')), kMostName);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.size() > 4) {
    names.resize(4);
    names.emplace_back("...");
  }
  return join_text(names, ", ");
}

}  // namespace kernelpro
