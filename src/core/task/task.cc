// SPDX-License-Identifier: Apache-2.0
#include "core/task/task.h"

#include <algorithm>

#include "base/hash.h"
#include "base/json.h"
#include "core/task/expression.h"

namespace kernelpro {

namespace {

constexpr std::string_view kTargets[] = {"cpu", "cuda"};
constexpr std::string_view kRoles[] = {"input", "parameter", "output"};
constexpr std::string_view kInits[] = {"uniform",   "normal",   "integers",
                                       "bernoulli", "constant", "module"};
constexpr std::string_view kPrecisions[] = {"fp32", "tf32", "fp16", "bf16"};

template <class Enum, std::size_t N>
std::optional<Enum> from_name(const std::string_view (&names)[N], std::string_view name) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

// Tasks that passed the loader always evaluate; a hand-made one that fails counts as 0.
std::int64_t value_of(const std::string& expression, const Case& c) {
  if (expression.empty()) return 0;
  return evaluate_expression(expression, c.dims).value_or(0);
}

}  // namespace

std::string_view target_name(TargetKind target) { return kTargets[static_cast<int>(target)]; }
std::optional<TargetKind> target_from_name(std::string_view name) {
  return from_name<TargetKind>(kTargets, name);
}
std::string_view role_name(Role role) { return kRoles[static_cast<int>(role)]; }
std::optional<Role> role_from_name(std::string_view name) { return from_name<Role>(kRoles, name); }
std::string_view init_name(Init::Kind kind) { return kInits[static_cast<int>(kind)]; }
std::optional<Init::Kind> init_from_name(std::string_view name) {
  return from_name<Init::Kind>(kInits, name);
}

std::string_view precision_name(Precision precision) {
  return kPrecisions[static_cast<int>(precision)];
}
std::optional<Precision> precision_from_name(std::string_view name) {
  return from_name<Precision>(kPrecisions, name);
}

std::vector<Shaped> shaped_tensors(const Task& task, const Case& c) {
  std::vector<Shaped> result;
  for (const Tensor& tensor : task.tensors) {
    Shaped shaped;
    shaped.tensor = &tensor;
    const std::size_t i = result.size();
    if (i < c.shapes.size()) {
      shaped.shape = c.shapes[i];
    } else {
      for (const std::string& dim : tensor.shape) shaped.shape.push_back(value_of(dim, c));
    }
    shaped.elements = 1;
    for (const std::int64_t dim : shaped.shape) shaped.elements *= dim;
    shaped.bytes = shaped.elements * dtype_bytes(tensor.dtype);
    result.push_back(std::move(shaped));
  }
  return result;
}

std::int64_t workspace_bytes(const Task& task, const Case& c) {
  return task.module ? c.workspace : value_of(task.workspace, c);
}

double compulsory_bytes(const Task& task, const Case& c) {
  double bytes = 0;
  for (const Shaped& shaped : shaped_tensors(task, c)) bytes += static_cast<double>(shaped.bytes);
  return bytes;
}

double task_flops(const Task& task, const Case& c) {
  return task.module ? c.flops : static_cast<double>(value_of(task.flops, c));
}

double task_matmul_flops(const Task& task, const Case& c) {
  return task.module ? c.matmul_flops : static_cast<double>(value_of(task.matmul_flops, c));
}

namespace {

bool holds_for(const Case& c, TargetKind target) {
  return c.targets.empty() ||
         std::find(c.targets.begin(), c.targets.end(), target) != c.targets.end();
}

}  // namespace

std::vector<const Case*> cases_for(const Task& task, TargetKind target) {
  std::vector<const Case*> result;
  for (const Case& c : task.cases) {
    if (holds_for(c, target)) result.push_back(&c);
  }
  return result;
}

const Case* largest_timed(const Task& task, TargetKind target) {
  const Case* largest = nullptr;
  for (const Case* c : cases_for(task, target)) {
    if (!c->timed) continue;
    if (largest == nullptr || compulsory_bytes(task, *c) > compulsory_bytes(task, *largest)) {
      largest = c;
    }
  }
  return largest;
}

std::vector<Task> held_out_tasks(const Task& task, TargetKind target) {
  std::vector<Task> result;
  for (const Case& c : task.held_out) {
    if (!holds_for(c, target)) continue;
    Task& one = result.emplace_back(task);
    one.cases = {c};
    one.held_out.clear();
  }
  return result;
}

std::vector<std::string> reserved_names(const Task& task) {
  std::vector<std::string> names;
  for (const Tensor& tensor : task.tensors) names.push_back(tensor.name);
  for (const Case& c : task.cases) {
    for (const auto& [name, value] : c.dims) names.push_back(name);
    for (const auto& [name, value] : c.constants) names.push_back(name);
  }
  return names;
}

double tolerance_of(const Tensor& tensor, Precision precision) {
  if (tensor.tolerance > 0) return tensor.tolerance;
  switch (tensor.dtype) {
    case DType::kFp32:
      if (precision == Precision::kFp16) return 1e-2;  // half products behind an fp32 store
      if (precision == Precision::kBf16) return 3e-2;
      if (precision == Precision::kTf32) return 5e-3;  // 4e-4 rms of centred sums, 2.5e-3 at worst
      return 1e-4;  // room for a long fp32 sum, none for TF32 (3e-4 typical, more at worst)
    case DType::kFp16:
      return 1e-2;
    case DType::kBf16:
      return 3e-2;
    default:
      return 0;
  }
}

namespace {

Json cases_to_json(const std::vector<Case>& all) {
  Json cases = Json::array();
  for (const Case& c : all) {
    Json targets = Json::array();
    for (const TargetKind target : c.targets) targets.push_back(target_name(target));
    Json item = {{"name", c.name}, {"dims", c.dims}, {"timed", c.timed}, {"targets", targets}};
    if (!c.shapes.empty()) {
      item["shapes"] = c.shapes;
      item["constants"] = c.constants;
      item["flops"] = c.flops;
      item["matmul_flops"] = c.matmul_flops;
      item["workspace"] = c.workspace;
    }
    cases.push_back(std::move(item));
  }
  return cases;
}

std::optional<Case> case_from_json(const Json& json) {
  const JsonReader cr(json);
  Case out;
  out.name = cr.text("name");
  for (const auto& [name, value] : cr.object("dims").items()) {
    if (!value.is_number_integer()) return std::nullopt;
    out.dims[name] = value.get<std::int64_t>();
  }
  out.timed = cr.flag("timed");
  for (const Json& target : cr.array("targets")) {
    const auto kind =
        target.is_string() ? target_from_name(target.get<std::string>()) : std::nullopt;
    if (!kind) return std::nullopt;
    out.targets.push_back(*kind);
  }
  for (const Json& shape : cr.array("shapes")) {
    std::vector<std::int64_t>& dims = out.shapes.emplace_back();
    if (!shape.is_array()) return std::nullopt;
    for (const Json& dim : shape) {
      if (!dim.is_number_integer()) return std::nullopt;
      dims.push_back(dim.get<std::int64_t>());
    }
  }
  for (const auto& [name, value] : cr.object("constants").items()) {
    if (!value.is_string()) return std::nullopt;
    out.constants[name] = value.get<std::string>();
  }
  out.flops = cr.real("flops");
  out.matmul_flops = cr.real("matmul_flops");
  out.workspace = cr.integer("workspace");
  return out;
}

}  // namespace

std::string task_to_json(const Task& task) {
  Json tensors = Json::array();
  for (const Tensor& t : task.tensors) {
    tensors.push_back(
        {{"name", t.name},
         {"role", role_name(t.role)},
         {"dtype", dtype_name(t.dtype)},
         {"shape", t.shape},
         {"init", {{"kind", init_name(t.init.kind)}, {"a", t.init.a}, {"b", t.init.b}}},
         {"tolerance", t.tolerance}});
  }
  Json module;
  if (task.module) {
    module = {
        {"path", task.module->path}, {"source", task.module->source}, {"note", task.module->note}};
  }
  Json json = {{"name", task.name},
               {"module", module},
               {"precision", precision_name(task.precision)},
               {"summary", task.summary},
               {"folder", task.folder},
               {"tensors", tensors},
               {"cases", cases_to_json(task.cases)},
               {"flops", task.flops},
               {"matmul_flops", task.matmul_flops},
               {"workspace", task.workspace},
               {"reference_cpp", task.reference_cpp},
               {"reference_cu", task.reference_cu},
               {"kernel_cpp", task.kernel_cpp},
               {"kernel_cu", task.kernel_cu}};
  for (const auto& [extension, kernel] : task.other_kernels) json["kernel_" + extension] = kernel;
  if (!task.held_out.empty()) json["held_out"] = cases_to_json(task.held_out);
  return dump_json(json);
}

std::optional<Task> task_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root || !root->is_object()) return std::nullopt;
  const JsonReader r(*root);
  Task task;
  task.name = r.text("name");
  task.summary = r.text("summary");
  task.folder = r.text("folder");
  for (const Json& t : r.array("tensors")) {
    const JsonReader tr(t);
    Tensor tensor;
    tensor.name = tr.text("name");
    const auto role = role_from_name(tr.text("role"));
    const auto dtype = dtype_from_name(tr.text("dtype"));
    const JsonReader init(tr.object("init"));
    const auto kind = init_from_name(init.text("kind"));
    if (!role || !dtype || !kind) return std::nullopt;
    tensor.role = *role;
    tensor.dtype = *dtype;
    for (const Json& dim : tr.array("shape")) {
      if (!dim.is_string()) return std::nullopt;
      tensor.shape.push_back(dim.get<std::string>());
    }
    tensor.init = {*kind, init.real("a"), init.real("b")};
    tensor.tolerance = tr.real("tolerance");
    task.tensors.push_back(std::move(tensor));
  }
  for (const auto& [key, cases] :
       {std::pair{"cases", &task.cases}, std::pair{"held_out", &task.held_out}}) {
    for (const Json& json_case : r.array(key)) {
      auto c = case_from_json(json_case);
      if (!c || (!c->shapes.empty() && c->shapes.size() != task.tensors.size())) {
        return std::nullopt;
      }
      cases->push_back(std::move(*c));
    }
  }
  task.flops = r.text("flops");
  task.matmul_flops = r.text("matmul_flops");
  task.workspace = r.text("workspace");
  task.reference_cpp = r.text("reference_cpp");
  task.reference_cu = r.text("reference_cu");
  task.kernel_cpp = r.text("kernel_cpp");
  task.kernel_cu = r.text("kernel_cu");
  for (const auto& [key, kernel] : root->items()) {
    const bool other = key.starts_with("kernel_") && key != "kernel_cpp" && key != "kernel_cu";
    if (other && kernel.is_string()) task.other_kernels[key.substr(7)] = kernel.get<std::string>();
  }
  if (const auto precision = precision_from_name(r.text("precision"))) task.precision = *precision;
  if (const JsonReader m(r.object("module")); !m.text("source").empty()) {
    task.module = Module{m.text("path"), m.text("source"), m.text("note")};
  }
  if (task.tensors.empty() || task.cases.empty()) return std::nullopt;
  return task;
}

std::string Task::content_hash() const {
  Task copy = *this;
  copy.folder.clear();  // the location is not part of the content
  if (copy.module) copy.module->path.clear();
  return hash_hex(task_to_json(copy));
}

}  // namespace kernelpro
