// SPDX-License-Identifier: Apache-2.0
// Generates task.h, the header that every candidate and reference includes: the case's dimensions
// as constants, `Args`, `ReferenceArgs`, and for CUDA the plan-form vocabulary (KP_LAUNCH).
#pragma once

#include <string>

#include "core/task/task.h"

namespace kernelpro {

// Args: `const T* name` for inputs and parameters, `T* name` for outputs, in order, then
// `void* workspace`. ReferenceArgs: the same inputs; floating outputs are `double*`, integer and
// bool outputs keep their type; no workspace.
//   cpu:  extern "C" void launch(const Args& args);
//         extern "C" void reference(const ReferenceArgs& args);
//   cuda: extern "C" void launch(const Args& args, cudaStream_t stream);
//         extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream);
std::string task_header(const Task& task, const Case& c, TargetKind target);

// Parts of it that other programs need, as `kernelpro export` writes: the case's constants, the
// types of the tensors' elements, and Args;
std::string task_declarations(const Task& task, const Case& c, TargetKind target);
// and the names of a plan form's arguments (namespace arg).
std::string plan_argument_names(const Task& task);

}  // namespace kernelpro
