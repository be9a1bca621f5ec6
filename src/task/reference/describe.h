// SPDX-License-Identifier: Apache-2.0
// Messages between module_reference.cc and python/kernelpro_torch/reference.py. For .cc files only
// (JSON).
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "core/task/module.h"
#include "core/task/task.h"
#include "task/reference/shared_buffer.h"

namespace kernelpro {

// Parses the answer to "describe" and names every tensor: PyTorch's name with "_" for characters
// not in C identifiers, made unique and distinct from names of C++, CUDA and the file's dimensions.
Result<ModuleDescription> description_from_json(const std::string& json);

// The command "attach". `fds`: the distinct descriptors, in the order of the message's indices.
Json attach_message(const Task& task, const Case& c, int set,
                    const std::vector<SharedBuffer>& buffers, std::vector<int>* fds);

}  // namespace kernelpro
