// SPDX-License-Identifier: Apache-2.0
#include "report/export/export.h"

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"
#include "core/candidate/knobs.h"
#include "core/candidate/language.h"
#include "core/machine/architecture.h"
#include "core/plan/cpu_protocol.h"
#include "embedded/export_build_cpu.h"
#include "embedded/export_build_cuda.h"
#include "embedded/export_model_new.h"
#include "embedded/export_plan_on_host.h"
#include "report/export/export_text.h"
#include "task/load/header.h"

namespace kernelpro {

namespace {

constexpr const char* kCpuNativeFlags = " -march=native -fopenmp";

TargetKind target_of(const ExportRequest& request) {
  return language_row(request.candidate.language).target;
}
bool is_cuda(const ExportRequest& request) { return target_of(request) == TargetKind::kCuda; }

// Whether the source declares its launches as data (docs/launch-plan.md), not in `launch`. Ignores
// comments, so that a source with `launch` may mention the macros.
bool declares_launches(const std::string& source) {
  const std::string code = without_comments(source);
  for (const char* macro : {"KP_LAUNCH", "KP_MEMSET"}) {
    if (find_word(code, macro, true) != std::string::npos) return true;
  }
  return false;
}

std::string knob_text(const ExportRequest& request) {
  const std::string text = knobs_to_text(request.candidate.knobs);
  return text.empty() ? "none" : text;
}

std::string sizes(const Case& c) {
  std::string text;
  for (const auto& [name, value] : c.dims) {
    text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(value);
  }
  return text;
}

std::string title(const ExportRequest& request, const char* mark) {
  const Task& task = *request.task;
  const std::string begin = std::string(mark) + " ";
  std::string text = begin + "The task " + comment_line(task.name) +
                     (task.summary.empty() ? "" : ": " + comment_line(task.summary)) + "\n";
  text += begin + "Written by `kernelpro export` (KernelPro " KERNELPRO_VERSION ").\n";
  text += begin + "  sizes:     case " + comment_line(request.c->name) +
          (sizes(*request.c).empty() ? "" : " (" + sizes(*request.c) + ")") + "\n";
  text += begin + "  knobs:     " + comment_line(knob_text(request)) + "\n";
  text += begin + "  precision: " + std::string(precision_name(task.precision)) + "\n";
  text += begin + "  measured:  " +
          (request.measured.empty() ? "not measured; `kernelpro evaluate` does"
                                    : comment_line(request.measured)) +
          (request.device.empty() ? "" : ", on " + comment_line(request.device)) + "\n";
  return text;
}

std::string bracketed(const Shaped& shaped) {
  std::string text;
  for (const std::int64_t dim : shaped.shape) text += "[" + std::to_string(dim) + "]";
  return text.empty() ? "one element" : text;
}

// The type in Args; `plain`: in kernel.h, which has no half-precision types on the cpu target.
std::string type_of(const ExportRequest& request, const Shaped& shaped, bool plain = false) {
  const DType dtype = shaped.tensor->dtype;
  std::string type(is_cuda(request) ? dtype_cuda_type(dtype) : dtype_cpu_type(dtype));
  if (plain && type.starts_with("kp::")) type = "void";
  return (shaped.tensor->role == Role::kOutput ? "" : "const ") + type + "*";
}

// "cudaError_t run(const float* x, float* y, void* workspace, cudaStream_t stream)"
std::string signature(const ExportRequest& request, const std::vector<Shaped>& tensors) {
  std::string text = is_cuda(request) ? "cudaError_t run(" : "void run(";
  for (const Shaped& shaped : tensors) {
    text += type_of(request, shaped, true) + " " + shaped.tensor->name + ", ";
  }
  return text + (is_cuda(request) ? "void* workspace, cudaStream_t stream)" : "void* workspace)");
}

// The members of Args, from the arguments of `run`.
std::string members(const ExportRequest& request, const std::vector<Shaped>& tensors) {
  std::string text;
  for (const Shaped& shaped : tensors) {
    const std::string type = type_of(request, shaped), &name = shaped.tensor->name;
    const bool cast = type != type_of(request, shaped, true);
    text += (cast ? "static_cast<" + type + ">(" + name + ")" : name) + ", ";
  }
  return text + "workspace";
}

constexpr std::string_view kCudaContract =
    "// Bytes of device memory that `run` needs as scratch. 0: none, and `workspace` may be "
    "null.\nstd::size_t workspace_bytes();\n\n"
    "// Enqueues the computation on `stream` and returns; the result is cudaSuccess or what the\n"
    "// launch failed with. All pointers are device memory, contiguous (the last index runs\n"
    "// fastest) and aligned to 256 bytes; inputs are only read. One call at a time may use a\n"
    "// workspace. Sizes are fixed:\n";
constexpr std::string_view kCpuContract =
    "// Bytes that `run` needs as scratch. 0: none, and `workspace` may be null.\n"
    "std::size_t workspace_bytes();\n\n"
    "// Computes the outputs. All pointers are contiguous memory (the last index runs fastest),\n"
    "// aligned to 64 bytes; inputs are only read. One call at a time may use a workspace. Sizes "
    "are\n// fixed:\n";

std::string header_file(const ExportRequest& request, const std::vector<Shaped>& tensors) {
  const std::string space = export_namespace(*request.task);
  std::string text = title(request, "//") + "#pragma once\n\n";
  const auto has = [&](DType dtype) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const Shaped& s) { return s.tensor->dtype == dtype; });
  };
  if (is_cuda(request)) {
    text += "#include <cuda_runtime.h>\n";
    if (has(DType::kFp16)) text += "#include <cuda_fp16.h>\n";
    if (has(DType::kBf16)) text += "#include <cuda_bf16.h>\n";
    text += "\n";
  }
  text += "#include <cstddef>\n\nnamespace " + space + " {\n\n";
  text += is_cuda(request) ? kCudaContract : kCpuContract;
  for (const Shaped& shaped : tensors) {
    text += "//   " + shaped.tensor->name + ": " + std::string(role_name(shaped.tensor->role)) +
            ", " + std::string(dtype_name(shaped.tensor->dtype)) + " " + bracketed(shaped) + "\n";
  }
  return text + signature(request, tensors) + ";\n\n}  // namespace " + space + "\n";
}

// The source, preceded by its declarations and followed by the functions of kernel.h.
std::string kernel_body(const ExportRequest& request, const std::vector<Shaped>& tensors) {
  const std::string space = export_namespace(*request.task);
  const Candidate& candidate = request.candidate;
  const bool cuda = is_cuda(request);
  const Task& task = *request.task;
  const std::string declared = task_declarations(task, *request.c, target_of(request));
  std::string before = "\n" + std::string(trim(declared)) + "\n";
  std::string call = cuda ? "  ::launch(kp_args, stream);\n" : "  ::launch(kp_args);\n";
  if (cuda && declares_launches(candidate.source)) {
    const std::string_view text = embedded::export_plan_on_host;
    before += "\n" + std::string(text.substr(text.find('\n') + 1)) + "\n" +  // skip license line
              plan_argument_names(task);
    call =
        "  for (int i = 0; i < kp::steps.count; ++i) {\n"
        "    const cudaError_t status = kp::steps.all[i](kp_args, stream);\n"
        "    if (status != cudaSuccess) return status;\n"
        "  }\n";
  } else {
    // A unique symbol, so that several exported kernels can be linked into one program.
    before += "\nextern \"C\" void launch(const Args& args" +
              std::string(cuda ? ", cudaStream_t stream" : "") + ") __asm__(\"" + space +
              "_launch\");\n";
  }
  if (cuda) call += "  return cudaGetLastError();\n";
  return before + "\n" + without_task_header(with_fixed_knobs(candidate.source, candidate.knobs)) +
         "\nnamespace " + space + " {\n\n" +
         "std::size_t workspace_bytes() { return WORKSPACE_BYTES; }\n\n" +
         signature(request, tensors) + " {\n  const Args kp_args{" + members(request, tensors) +
         "};\n" + call + "}\n\n}  // namespace " + space + "\n";
}

std::string kernel_file(const ExportRequest& request, const std::vector<Shaped>& tensors) {
  return title(request, "//") + "// Build: " + (is_cuda(request) ? "nvcc " : "c++ ") +
         join_text(export_build(request), " ") + "\n#include \"kernel.h\"\n" +
         kernel_body(request, tensors);
}

std::string torch_dtype(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
      return "_kp_torch.float32";
    case DType::kFp16:
      return "_kp_torch.float16";
    case DType::kBf16:
      return "_kp_torch.bfloat16";
    case DType::kInt32:
      return "_kp_torch.int32";
    case DType::kInt64:
      return "_kp_torch.int64";
    case DType::kBool:
      return "_kp_torch.bool";
  }
  return "";
}

std::string python_list(const std::vector<Shaped>& tensors, Role role) {
  std::string text = "[";
  for (const Shaped& shaped : tensors) {
    if (shaped.tensor->role != role) continue;
    std::string dims;
    for (const std::int64_t dim : shaped.shape) dims += std::to_string(dim) + ", ";
    text += "\n    (\"" + shaped.tensor->name + "\", " + torch_dtype(shaped.tensor->dtype) +
            ", _kp_torch.Size((" + dims + "))),";
  }
  return text + (text == "[" ? "]" : "\n]");
}

// Entry point for PyTorch's extension or ctypes; its signature uses none of the kernel's types.
std::string entry(const ExportRequest& request, const std::vector<Shaped>& tensors) {
  const std::string space = export_namespace(*request.task);
  std::string call = space + "::run(\n";
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    call += "      static_cast<" + type_of(request, tensors[i], true) + ">(pointers[" +
            std::to_string(i) + "]),\n";
  }
  if (!is_cuda(request)) {
    return "\nextern \"C\" void " + space + "_entry(void* const* pointers, void* workspace) {\n  " +
           call + "      workspace);\n}\n";
  }
  return "\nextern \"C\" int " + space +
         "_entry(void* const* pointers, void* workspace, void* stream) {\n  return " + call +
         "      workspace, static_cast<cudaStream_t>(stream));\n}\n";
}

std::string extension(const std::string& space) {
  return "#include <stdexcept>\n#include <string>\n#include <vector>\n\nextern \"C\" int " + space +
         R"(_entry(void* const* pointers, void* workspace, void* stream);

void kp_run(const std::vector<torch::Tensor>& tensors, const torch::Tensor& workspace,
            int64_t stream) {
  std::vector<void*> pointers;
  for (const torch::Tensor& tensor : tensors) pointers.push_back(tensor.data_ptr());
  const int status = )" +
         space + R"(_entry(pointers.data(), workspace.data_ptr(), reinterpret_cast<void*>(stream));
  if (status != 0) {
    throw std::runtime_error("the kernel's launch failed with CUDA error " +
                             std::to_string(status));
  }
}
)";
}

std::string module_file(const ExportRequest& request, const std::vector<Shaped>& tensors) {
  const Task& task = *request.task;
  const std::string space = export_namespace(task);
  const std::string header = header_file(request, tensors);
  const std::string kernel = replace_all(header, "#pragma once\n\n", "") +
                             kernel_body(request, tensors) + entry(request, tensors);
  std::string build;
  if (is_cuda(request)) {
    const std::string cpp = extension(space);
    build = filled(embedded::export_build_cuda,
                   {{"CPP", python_literal(cpp)},
                    {"CUDA", python_literal(kernel)},
                    {"EXTENSION", space + "_" + hash_hex({kernel, cpp}).substr(0, 12)}});
  } else {
    build = filled(embedded::export_build_cpu, {{"CPP", python_literal(kernel)},
                                                {"FLAGS", std::string(kCpuFlags) + kCpuNativeFlags},
                                                {"ENTRY", space + "_entry"}});
  }
  return title(request, "#") + "# ModelNew is Model with its forward done by the kernel. " +
         (is_cuda(request) ? "Building takes about a minute the\n# first time.\n\n"
                           : "Importing builds it, in seconds.\n\n") +
         with_sizes(task.module->source, request.c->dims) + "\n\n\n" +
         filled(embedded::export_model_new,
                {{"BUILD", build},
                 {"INPUTS", python_list(tensors, Role::kInput)},
                 {"STATE", python_list(tensors, Role::kParameter)},
                 {"OUTPUTS", python_list(tensors, Role::kOutput)},
                 {"WORKSPACE", std::to_string(workspace_bytes(task, *request.c))},
                 {"PRECISION", std::string(precision_name(task.precision))}});
}

}  // namespace

Result<std::vector<ExportedFile>> export_kernel(const ExportRequest& request) {
  const LanguageRow& language = language_row(request.candidate.language);
  if (!language.instead_of_export.empty()) {
    return fail(ErrorKind::kBadInput,
                "kernels in " + std::string(language.title) + " are not exported",
                std::string(language.instead_of_export));
  }
  const std::vector<Shaped> tensors = shaped_tensors(*request.task, *request.c);
  std::vector<ExportedFile> files = {{"kernel.h", header_file(request, tensors)},
                                     {kernel_file_name(language), kernel_file(request, tensors)}};
  if (request.task->module) files.push_back({"model_new.py", module_file(request, tensors)});
  return files;
}

std::vector<std::string> export_build(const ExportRequest& request) {
  const std::string file = kernel_file_name(language_row(request.candidate.language));
  std::vector<std::string> flags;
  if (is_cuda(request)) {
    flags = {"-std=c++20", "-O3", "--expt-relaxed-constexpr"};
    if (const auto arch = Architecture::parse(request.arch)) flags.push_back(arch->gencode());
  } else {
    flags = words(std::string(kCpuFlags) + kCpuNativeFlags);
  }
  flags.insert(flags.end(), {"-c", file});
  return flags;
}

Result<const Case*> export_case(const Task& task, TargetKind target, const std::string& name) {
  const std::vector<const Case*> cases = cases_for(task, target);
  const Case* chosen = name.empty() ? largest_timed(task, target) : nullptr;
  std::string known;
  for (const Case* c : cases) {
    if (!name.empty() && c->name == name) chosen = c;
    known += (known.empty() ? "" : ", ") + c->name;
  }
  if (chosen != nullptr) return chosen;
  if (cases.empty()) {
    return fail(ErrorKind::kBadInput,
                "the task " + task.name + " has no case for the " +
                    std::string(target_name(target)) + " target",
                "export a kernel for the other target, or give the task such a case");
  }
  return fail(ErrorKind::kBadInput,
              name.empty() ? "no case of the task is timed" : "the task has no case " + name,
              "name one with --case: " + known);
}

}  // namespace kernelpro
