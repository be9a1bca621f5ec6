// SPDX-License-Identifier: Apache-2.0
// The words between module_reference.cc and python/kernelpro_torch/reference.py. For .cc files only
// (JSON).
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "core/json.h"
#include "core/module.h"
#include "core/task.h"
#include "task/reference/shared_buffer.h"

namespace kernelpro {

// Reads the answer to "describe" and gives every tensor its name: PyTorch's with "_" for what is no
// part of a C identifier, made unique and kept clear of C++, CUDA and the file's dimensions.
Result<ModuleDescription> description_from_json(const std::string& json);

// The command "attach". `fds`: the distinct descriptors, in the order that the message refers to.
Json attach_message(const Task& task, const Case& c, int set,
                    const std::vector<SharedBuffer>& buffers, std::vector<int>* fds);

}  // namespace kernelpro
