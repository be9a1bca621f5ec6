// SPDX-License-Identifier: Apache-2.0
#include "task/open/open_task.h"

#include <algorithm>
#include <future>

#include "base/files.h"
#include "base/text.h"
#include "core/candidate/language.h"
#include "machine/cpu.h"
#include "machine/gpu_watch.h"
#include "task/load/limits.h"
#include "task/load/loader.h"
#include "task/load/module_task.h"
#include "task/load/unfilled.h"
#include "task/open/case_plan.h"

namespace kernelpro {

namespace {

constexpr double kSpare = 6e9;  // GPU memory for contexts and PyTorch's reserve

// Memory limit for the largest case; generous if the machine's memory is unknown. What others hold
// on a GPU does not count: a task would have other cases whenever other runs share it.
double memory_for(const OpenSettings& settings) {
  if (settings.memory_bytes > 0) return settings.memory_bytes;
  if (settings.target == TargetKind::kCpu) {
    // In addition to the module's process and the workers, the supervisor holds several sets with
    // float64 results: in all up to three times the estimate for a case.
    return 0.3 * static_cast<double>(available_memory_bytes());
  }
  const auto state = gpu_state(settings.gpu);
  if (!state || state->total_bytes == 0) return 1e12;
  return static_cast<double>(state->total_bytes) - kSpare;
}

bool is_half(Precision precision) {
  return precision == Precision::kFp16 || precision == Precision::kBf16;
}

// Casts a module's tensors to the requested precision, as `.half()` or `.bfloat16()` does.
Result<void> set_precision(Precision precision, Task* task) {
  task->precision = precision;
  if (!is_half(precision)) {
    const auto half = [](const Tensor& t) {
      return t.dtype == DType::kFp16 || t.dtype == DType::kBf16;
    };
    if (!std::any_of(task->tensors.begin(), task->tensors.end(), half)) return {};
    return fail(ErrorKind::kBadInput,
                "--precision " + std::string(precision_name(precision)) + ": the task " +
                    task->name + " has tensors of half precision",
                "leave --precision out, or name fp16 or bf16");
  }
  if (!task->module) return {};
  const DType type = precision == Precision::kFp16 ? DType::kFp16 : DType::kBf16;
  for (Tensor& tensor : task->tensors) {
    if (is_floating(tensor.dtype)) tensor.dtype = type;
  }
  return {};
}

Result<std::string> read_source(const std::string& path) {
  if (!exists(path)) {
    return fail(ErrorKind::kBadInput, "there is no file " + path, "check the path");
  }
  KP_ASSIGN(auto source, read_file(path, kMaxTextBytes));
  KP_TRY(refuse_unfilled(source, path));
  return source;
}

Result<OpenedTask> open_module(const std::string& path, const OpenSettings& settings) {
  KP_ASSIGN(const auto source, read_source(path));
  ReferenceSettings reference;
  reference.python = settings.python;
  reference.target = settings.target;
  reference.gpu = settings.gpu;
  reference.timeout_s = settings.timeout_s;
  reference.folder = dirname(absolute(path));
  KP_ASSIGN(auto module, ModuleReference::start(reference));
  const auto meanwhile = std::async(std::launch::async, [&] {
    if (settings.meanwhile) settings.meanwhile(settings.target);
  });
  const std::string full_path = absolute(path);
  KP_ASSIGN(const auto full, module->describe(source, full_path, settings.dims));
  const auto describe = [&](const Dims& changed) {
    Dims dims = settings.dims;
    for (const auto& [name, value] : changed) dims[name] = value;
    return module->describe(source, full_path, dims);
  };
  KP_ASSIGN(auto plan, plan_cases(full, describe, memory_for(settings)));
  std::vector<DescribedCase> cases;
  for (PlannedCase& planned : plan.cases) {
    cases.push_back({planned.name, planned.timed, std::move(planned.description)});
  }
  KP_ASSIGN(auto task, task_from_module(source, full_path, cases));
  return OpenedTask{std::move(task), std::move(module), std::move(plan.notes)};
}

Result<void> set_start(const std::string& file, Task* task) {
  if (file.empty()) return {};
  KP_ASSIGN(auto source, read_file(file, kMaxTextBytes));
  const LanguageRow* row = language_of_file(file);
  if (row == nullptr) {
    return fail(ErrorKind::kBadInput, "a search cannot start from " + file,
                "name a kernel: " + language_files());
  }
  if (!row->of_module.empty() && !task->module) {
    return fail(ErrorKind::kBadInput,
                "a search cannot start from " + file + ": the task " + task->name +
                    " is not a PyTorch file",
                "name a kernel in the target's own language");
  }
  if (!row->native) set_kernel(native_language(row->target), "", task);  // it would go first
  set_kernel(*row, std::move(source), task);
  return {};
}

}  // namespace

bool is_module_path(const std::string& path) { return path.ends_with(".py"); }

std::string find_task(const std::string& path) {
  if (exists(path) || !path.starts_with("examples/")) return path;
  const std::string installed = join(join(executable_dir(), "../share/kernelpro"), path);
  return exists(installed) ? installed : path;
}

Result<OpenedTask> open_task(const std::string& path, const OpenSettings& settings) {
  OpenedTask opened;
  if (is_module_path(path)) {
    KP_ASSIGN(opened, open_module(find_task(path), settings));
  } else {
    if (!settings.dims.empty()) {
      return fail(ErrorKind::kBadInput,
                  "--set replaces integers of a PyTorch file, but " + path + " is a task folder",
                  "change the dims of its cases in task.toml");
    }
    KP_ASSIGN(opened.task, load_task(find_task(path), settings.cpu_only));
  }
  if (settings.precision) KP_TRY(set_precision(*settings.precision, &opened.task));
  KP_TRY(set_start(settings.start, &opened.task));
  return opened;
}

}  // namespace kernelpro
