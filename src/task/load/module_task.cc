// SPDX-License-Identifier: Apache-2.0
#include "task/load/module_task.h"

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/text.h"
#include "core/candidate/knobs.h"
#include "task/load/limits.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kScratch = 16 << 20;
constexpr double kMostScratch = 8.0 * (1LL << 30);

using Item = ModuleDescription::Item;

std::string task_name(const std::string& path) {
  std::string name = basename(path);
  if (name.ends_with(".py")) name.resize(name.size() - 3);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
  }
  if (name.empty() || name[0] == '.' || name[0] == '-') name = "module" + name;
  if (name.size() > kMaxNameBytes) name.resize(kMaxNameBytes);
  return name;
}

std::int64_t elements(const Item& item) {
  std::int64_t count = 1;
  for (const std::int64_t size : item.shape) {
    if (size < 1 || count > kMaxBytes / size) return 0;
    count *= size;
  }
  return count;
}

Result<void> check_item(const Item& item) {
  const std::int64_t count = elements(item);
  if (item.shape.size() > kMaxRank) {
    return fail(ErrorKind::kTask,
                item.label + " has more than " + std::to_string(kMaxRank) + " dimensions",
                "merge some of them in the file");
  }
  if (count == 0 || count > kMaxBytes / 8) {
    return fail(ErrorKind::kTask, item.label + " is empty or beyond any memory",
                "choose other sizes in the file");
  }
  return {};
}

Result<void> check_alike(const DescribedCase& first, const DescribedCase& other) {
  const auto same = [](const Item& a, const Item& b) {
    return a.name == b.name && a.role == b.role && a.dtype == b.dtype;
  };
  if (std::equal(first.description.items.begin(), first.description.items.end(),
                 other.description.items.begin(), other.description.items.end(), same)) {
    return {};
  }
  return fail(ErrorKind::kTask,
              "the module has other tensors or types in the case " + other.name +
                  " than in the case " + first.name,
              "choose sizes that keep its layers the same");
}

Precision precision_of(const ModuleDescription& description) {
  bool fp16 = false, bf16 = false, other = false;
  for (const Item& item : description.items) {
    if (item.role != Role::kInput || !is_floating(item.dtype)) continue;
    fp16 |= item.dtype == DType::kFp16;
    bf16 |= item.dtype == DType::kBf16;
    other |= item.dtype == DType::kFp32;
  }
  if (other || fp16 == bf16) return Precision::kFp32;
  return fp16 ? Precision::kFp16 : Precision::kBf16;
}

// The module's own intermediates, so that a kernel may be as simple as the module.
std::int64_t scratch(const ModuleDescription& description) {
  double bytes = description.intermediate_bytes;
  for (const Item& item : description.items) {
    if (item.role != Role::kOutput) continue;
    bytes -= static_cast<double>(elements(item)) * static_cast<double>(dtype_bytes(item.dtype));
  }
  const double own = std::clamp(bytes, 0.0, kMostScratch);
  const auto whole = static_cast<std::int64_t>(std::ceil(own / (1 << 20))) << 20;
  return whole + kScratch;
}

Tensor tensor_of(const Item& item) {
  Tensor tensor;
  tensor.name = item.name;
  tensor.role = item.role;
  tensor.dtype = item.dtype;
  for (const std::int64_t size : item.shape) tensor.shape.push_back(std::to_string(size));
  tensor.init = {Init::Kind::kModule, 0, 0};
  if (item.role == Role::kOutput) tensor.init = Init{};
  return tensor;
}

Case case_of(const DescribedCase& each) {
  Case c;
  c.name = each.name;
  c.dims = each.description.dims;
  c.timed = each.timed;
  c.constants = each.description.constants;
  c.flops = each.description.flops;
  c.matmul_flops = each.description.matmul_flops;
  c.workspace = scratch(each.description);
  for (const Item& item : each.description.items) c.shapes.push_back(item.shape);
  return c;
}

}  // namespace

Result<Task> task_from_module(const std::string& source, const std::string& path,
                              const std::vector<DescribedCase>& cases) {
  KP_ASSERT(!cases.empty());
  Task task;
  task.name = task_name(path);
  task.folder = dirname(absolute(path));
  // The task's nominal sizes: those of the last timed case.
  const DescribedCase* main = &cases.back();
  for (const DescribedCase& each : cases) {
    if (each.timed) main = &each;
  }
  const std::size_t count = main->description.items.size();
  if (count > kMaxModuleTensors) {
    return fail(ErrorKind::kTask,
                "the module has " + std::to_string(count) +
                    " inputs, parameters and outputs; a kernel can be given " +
                    std::to_string(kMaxModuleTensors),
                "make a part of the model the task: the layers that take the time");
  }
  for (const DescribedCase& each : cases) {
    KP_TRY(check_alike(*main, each));
    for (const Item& item : each.description.items) KP_TRY(check_item(item));
    task.cases.push_back(case_of(each));
  }
  for (const Item& item : main->description.items) task.tensors.push_back(tensor_of(item));
  task.module = Module{absolute(path), source, main->description.note};
  task.precision = precision_of(main->description);
  return task;
}

std::string header_name(const std::string& name) {
  std::string plain = name;
  for (char& c : plain) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  }
  if (!is_identifier(plain)) plain = "_" + plain;
  return name_problem(plain).empty() ? plain : plain + "_";
}

}  // namespace kernelpro
