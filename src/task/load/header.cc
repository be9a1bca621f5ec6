// SPDX-License-Identifier: Apache-2.0
#include "task/load/header.h"

#include <algorithm>
#include <limits>

#include "embedded/plan_vocabulary.h"
#include "task/load/module_task.h"

namespace kernelpro {

namespace {

bool uses(const Task& task, DType dtype) {
  return std::any_of(task.tensors.begin(), task.tensors.end(),
                     [&](const Tensor& tensor) { return tensor.dtype == dtype; });
}

// IEEE 754 binary16 by the compiler; bfloat16 is the upper half of a float, rounded to nearest
// even.
constexpr std::string_view kHalf = R"(
namespace kp {
struct half {
  _Float16 value;
  half() = default;
  half(float from) : value(static_cast<_Float16>(from)) {}
  operator float() const { return static_cast<float>(value); }
};
}  // namespace kp
)";
constexpr std::string_view kBfloat16 = R"(
namespace kp {
struct bfloat16 {
  unsigned short bits;
  bfloat16() = default;
  bfloat16(float from) {
    unsigned word;
    __builtin_memcpy(&word, &from, 4);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    const unsigned rounded = is_nan ? word | 0x400000u : word + 0x7fffu + ((word >> 16) & 1u);
    bits = static_cast<unsigned short>(rounded >> 16);
  }
  operator float() const {
    const unsigned word = static_cast<unsigned>(bits) << 16;
    float result;
    __builtin_memcpy(&result, &word, 4);
    return result;
  }
};
}  // namespace kp
)";

std::string types(const Task& task, TargetKind target) {
  std::string text;
  const bool cuda = target == TargetKind::kCuda;
  if (uses(task, DType::kFp16)) text += cuda ? "#include <cuda_fp16.h>\n" : kHalf;
  if (uses(task, DType::kBf16)) text += cuda ? "#include <cuda_bf16.h>\n" : kBfloat16;
  return text;
}

std::string constant(std::string_view name, std::int64_t value) {
  const bool small =
      value <= std::numeric_limits<int>::max() && value > std::numeric_limits<int>::min();
  return std::string(small ? "constexpr int " : "constexpr long long ") + std::string(name) +
         " = " + std::to_string(value) + (small ? ";\n" : "ll;\n");
}

std::string type_of(const Tensor& tensor, TargetKind target) {
  return std::string(target == TargetKind::kCuda ? dtype_cuda_type(tensor.dtype)
                                                 : dtype_cpu_type(tensor.dtype));
}

// "[ROWS][COLS] = [33][1024]", for readers of the header.
std::string shape_remark(const Task& task, const Shaped& shaped) {
  std::string text = "  //";
  if (shaped.shape.empty()) return text + " one element";
  if (!task.module) {  // a module's shapes are plain numbers
    for (const std::string& dim : shaped.tensor->shape) text += " [" + dim + "]";
    text += " =";
  }
  for (const std::int64_t size : shaped.shape) text += " [" + std::to_string(size) + "]";
  return text;
}

std::string args_struct(const Task& task, const Case& c, TargetKind target) {
  std::string text = "\nstruct Args {\n";
  for (const Shaped& shaped : shaped_tensors(task, c)) {
    const Tensor& tensor = *shaped.tensor;
    text += "  " + std::string(tensor.role == Role::kOutput ? "" : "const ") +
            type_of(tensor, target) + "* " + tensor.name + ";" + shape_remark(task, shaped) + "\n";
  }
  return text + "  void* workspace;  // WORKSPACE_BYTES\n};\n";
}

std::string reference_struct(const Task& task, TargetKind target) {
  std::string text =
      "\n// What the task's reference gets: floating-point outputs in double precision.\n"
      "struct ReferenceArgs {\n";
  for (const Tensor& tensor : task.tensors) {
    const bool output = tensor.role == Role::kOutput;
    text += "  " + std::string(output ? "" : "const ") +
            (output && is_floating(tensor.dtype) ? "double" : type_of(tensor, target)) + "* " +
            tensor.name + ";\n";
  }
  return text + "};\n";
}

}  // namespace

std::string task_declarations(const Task& task, const Case& c, TargetKind target) {
  std::string text = types(task, target);
  for (const auto& [name, value] : c.dims) text += constant(header_name(name), value);
  for (const auto& [name, value] : c.constants) {
    text += "constexpr auto " + header_name(name) + " = " + value + ";\n";
  }
  text += constant("WORKSPACE_BYTES", workspace_bytes(task, c));
  return text + args_struct(task, c, target);
}

std::string plan_argument_names(const Task& task) {
  std::string text = "namespace arg {\n";
  for (std::size_t i = 0; i < task.tensors.size(); ++i) {
    text += "constexpr kp::Address<" + type_of(task.tensors[i], TargetKind::kCuda) + "> " +
            task.tensors[i].name + "{" + std::to_string(i) + ", 0};\n";
  }
  return text + "constexpr kp::Address<void> workspace{-1, 0};\n}  // namespace arg\n";
}

std::string task_header(const Task& task, const Case& c, TargetKind target) {
  std::string text = "// task.h: the task " + task.name + ", case " + c.name + "; generated.\n" +
                     "#pragma once\n\n" + task_declarations(task, c, target) +
                     reference_struct(task, target);
  if (target == TargetKind::kCpu) {
    return text +
           "\nextern \"C\" void launch(const Args& args);\n"
           "extern \"C\" void reference(const ReferenceArgs& args);\n";
  }
  text +=
      "\n#ifndef __CUDACC_RTC__  // the host form\n"
      "extern \"C\" void launch(const Args& args, cudaStream_t stream);\n"
      "extern \"C\" void reference(const ReferenceArgs& args, cudaStream_t stream);\n"
      "#endif\n\n";
  return text + std::string(embedded::plan_vocabulary) + "\n" + plan_argument_names(task);
}

}  // namespace kernelpro
