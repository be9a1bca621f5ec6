// SPDX-License-Identifier: Apache-2.0
#include "core/task/dtype.h"

namespace kernelpro {

namespace {
struct Row {
  DType dtype;
  std::string_view name;
  std::int64_t bytes;
  bool floating;
  std::string_view cuda;
  std::string_view cpu;
};
constexpr Row kRows[] = {
    {DType::kFp32, "fp32", 4, true, "float", "float"},
    {DType::kFp16, "fp16", 2, true, "__half", "kp::half"},
    {DType::kBf16, "bf16", 2, true, "__nv_bfloat16", "kp::bfloat16"},
    {DType::kInt32, "int32", 4, false, "int", "int"},
    {DType::kInt64, "int64", 8, false, "long long", "long long"},
    {DType::kBool, "bool", 1, false, "bool", "bool"},
};
const Row& row(DType dtype) { return kRows[static_cast<int>(dtype)]; }
}  // namespace

std::string_view dtype_name(DType dtype) { return row(dtype).name; }
std::int64_t dtype_bytes(DType dtype) { return row(dtype).bytes; }
bool is_floating(DType dtype) { return row(dtype).floating; }
std::string_view dtype_cuda_type(DType dtype) { return row(dtype).cuda; }
std::string_view dtype_cpu_type(DType dtype) { return row(dtype).cpu; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Row& r : kRows) {
    if (r.name == name) return r.dtype;
  }
  return std::nullopt;
}

std::string dtype_names() {
  std::string names;
  for (const Row& r : kRows) {
    if (!names.empty()) names += ", ";
    names += r.name;
  }
  return names;
}

}  // namespace kernelpro
