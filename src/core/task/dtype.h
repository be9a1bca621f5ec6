// SPDX-License-Identifier: Apache-2.0
// Element types of tensors, named as in task.toml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kernelpro {

enum class DType { kFp32, kFp16, kBf16, kInt32, kInt64, kBool };

std::string_view dtype_name(DType dtype);  // "fp32"
std::optional<DType> dtype_from_name(std::string_view name);
std::int64_t dtype_bytes(DType dtype);
bool is_floating(DType dtype);
// The type in a candidate's Args: "float", "__half", "__nv_bfloat16" (CUDA). On the CPU target the
// 16-bit types are kp::half and kp::bfloat16, which task.h defines.
std::string_view dtype_cuda_type(DType dtype);
std::string_view dtype_cpu_type(DType dtype);
// "fp32|fp16|..." for messages.
std::string dtype_names();

}  // namespace kernelpro
