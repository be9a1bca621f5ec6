// SPDX-License-Identifier: Apache-2.0
// The inputs, state and outputs of a PyTorch module, as found by reference/ and needed by task/.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/task/task.h"

namespace kernelpro {

// A module at one set of values for the integers at the top of its file.
struct ModuleDescription {
  struct Item {
    std::string name;   // a C identifier, unique: "x", "conv_weight", "out"
    std::string label;  // PyTorch's name: "conv.weight"
    Role role = Role::kInput;
    bool buffer = false;  // a registered buffer (its role is kParameter)
    DType dtype = DType::kFp32;
    std::vector<std::int64_t> shape;
  };
  std::vector<Item> items;  // inputs, then parameters and buffers, then outputs: order of Args
  std::map<std::string, std::int64_t> dims;      // integers at the top of the file, current values
  std::map<std::string, std::string> constants;  // other arguments of forward, as C literals
  bool training = false;                         // the mode set by the constructor
  // Peak memory of one call beyond inputs and parameters, including results, in declared dtypes;
  // estimated from the shapes. Float64 takes twice that, and inputs and parameters again.
  double intermediate_bytes = 0;
  double flops = 0;         // of one call, as PyTorch's counter reports; 0: unknown
  double matmul_flops = 0;  // those in matrix products and convolutions
  std::string torch_version;
  std::string note;  // Module::note
};

}  // namespace kernelpro
