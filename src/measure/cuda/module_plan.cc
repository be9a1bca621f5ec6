// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/module_plan.h"

#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/evidence/operators_json.h"
#include "core/plan/captured_call.h"
#include "measure/cuda/python.h"
#include "measure/cuda/symbols.h"
#include "measure/cuda/worker.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kMostBytes = 512LL << 20;  // of a file
constexpr std::size_t kMostReason = 300;

// Copies a file that the process named into our cache, where no candidate can change it.
Result<std::string> kept(const std::string& folder, const std::string& name) {
  const std::string path = join(folder, name);
  std::error_code error;
  const bool plain =
      name.find('/') == std::string::npos &&
      std::filesystem::symlink_status(path, error).type() == std::filesystem::file_type::regular;
  if (!plain) return fail(ErrorKind::kBadInput, "the capture names no file", "");
  KP_ASSIGN(const std::string bytes, read_file(path, kMostBytes));
  const std::string plans = join(cache_dir(), "plans");
  KP_TRY(make_dirs(plans));
  const std::string copy = join(plans, hash_hex(bytes));
  if (!exists(copy)) KP_TRY(write_file(copy, bytes));
  return copy;
}

Result<std::vector<std::string>> kept_images(const Json& names, const std::string& folder) {
  std::vector<std::string> paths;
  for (const Json& name : names) {
    KP_ASSIGN(std::string path, kept(folder, name.is_string() ? name.get<std::string>() : ""));
    KP_ASSIGN(const std::string image, read_file(path, kMostBytes));
    if (const ForbiddenSymbol symbol = forbidden_symbol(image); !symbol.rule.empty()) {
      return fail(ErrorKind::kBadInput, symbol.reason, "");
    }
    paths.push_back(std::move(path));
  }
  return paths;
}

// Leaves the images that the plan uses.
void drop_unused(ModulePlan* made) {
  std::vector<std::string> used;
  std::map<int, int> moved;
  for (PlanNode& node : made->plan.nodes) {
    if (node.kind != PlanNode::Kind::kKernel) continue;
    const auto [place, fresh] = moved.try_emplace(node.image, static_cast<int>(used.size()));
    if (fresh) used.push_back(made->images[static_cast<std::size_t>(node.image)]);
    node.image = place->second;
  }
  made->images = std::move(used);
}

// Those that the process named; none if they do not fit the plan.
std::vector<OperatorCall> operators_of(const Json& answer, const LaunchPlan& plan) {
  const auto list =
      plain::Plain::parse(dump_json(JsonReader(answer).array("operators")), nullptr, false);
  std::vector<OperatorCall> operators = operators_from_json(list);
  std::size_t node = 0;
  for (const OperatorCall& call : operators) {
    const auto first = static_cast<std::size_t>(call.first);
    if (first < node || call.nodes < 1) return {};
    node = first + static_cast<std::size_t>(call.nodes);
  }
  if (node > plan.nodes.size()) return {};
  return operators;
}

Result<ModulePlan> made_of(const Json& answer, const AddressLayout& layout,
                           const std::string& folder) {
  std::vector<CapturedCall> calls;
  ModulePlan made;
  for (const Json& capture : JsonReader(answer).array("captures")) {
    const JsonReader r(capture);
    auto call = captured_call_from_json(dump_json(r.object("call")));
    if (!call) return fail(ErrorKind::kBadInput, "the captured call cannot be read", "");
    calls.push_back(std::move(*call));
    // Those of the second are the first's, and those that only it used.
    KP_ASSIGN(made.images, kept_images(r.array("images"), folder));
  }
  if (calls.size() != 2 || calls[0].tensors.address != layout.base) {
    return fail(ErrorKind::kBadInput, "the captured calls are not two of this case", "");
  }
  KP_ASSIGN(made.plan, plan_of_captures(calls[0], calls[1]));
  const std::string problem = made.plan.problem();
  if (!problem.empty()) return fail(ErrorKind::kBadInput, "its plan has " + problem, "");
  for (const PlanNode& node : made.plan.nodes) {
    const bool kernel = node.kind == PlanNode::Kind::kKernel;
    if (kernel && static_cast<std::size_t>(node.image) >= made.images.size()) {
      return fail(ErrorKind::kBadInput, "its plan names an image that is not there", "");
    }
  }
  drop_unused(&made);
  for (PlanConstant& constant : made.plan.constants) {
    KP_ASSIGN(constant.file, kept(folder, constant.file));
  }
  for (const Json& note : JsonReader(answer).array("notes")) {
    if (note.is_string()) made.notes.push_back(clip(note.get<std::string>(), kMostReason));
  }
  made.operators = operators_of(answer, made.plan);
  return made;
}

}  // namespace

ModuleForm module_form(const Json& answer, const AddressLayout& layout, const std::string& folder) {
  Result<ModulePlan> made = made_of(answer, layout, folder);
  if (made) return std::move(*made);
  return HostForm{clip(made.error().message, kMostReason)};
}

ModuleForm capture_module(CudaLink& link, const CudaCase& state, std::uint64_t place,
                          const Task& task, Policy policy, const Binary& binary, double timeout_s) {
  const AddressLayout layout = placed(state.layout, place);
  const std::string folder =
      join(module_folder(), "capture-" + hash_hex({binary.hash, state.c->name}));
  const Answer answer = link.ask({{"do", "capture"},
                                  {"case", state.c->name},
                                  {"layout", *parse_json(layout_to_json(layout))},
                                  {"tensors", tensors_json(state)},
                                  {"dims", state.c->dims},
                                  {"module", binary.module},
                                  {"task_source", task.module ? task.module->source : ""},
                                  {"task_path", task.module ? task.module->path : ""},
                                  {"precision", precision_name(task.precision)},
                                  {"policy", policy_name(policy)},
                                  {"folder", folder}},
                                 timeout_s);
  ModuleForm form = HostForm{"its call could not be captured"};
  if (const auto* reply = std::get_if<Reply>(&answer)) {
    form = module_form(reply->json, layout, folder);
    if (auto* made = std::get_if<ModulePlan>(&form)) made->place = place;
  } else if (const auto* refusal = std::get_if<Refusal>(&answer)) {
    form = HostForm{clip(refusal->text, kMostReason)};
  } else {
    form = HostForm{std::get<Lost>(answer).how + " while its call was captured"};
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return form;
}

}  // namespace kernelpro
