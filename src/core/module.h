// SPDX-License-Identifier: Apache-2.0
// What a PyTorch module takes, holds and gives, as reference/ found it out and task/ needs it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/task.h"

namespace kernelpro {

// What a module is, at one set of values for the integers at the top of its file.
struct ModuleDescription {
  struct Item {
    std::string name;   // a C identifier, unique: "x", "conv_weight", "out"
    std::string label;  // as PyTorch says it: "conv.weight"
    Role role = Role::kInput;
    bool buffer = false;  // a registered buffer (its role is kParameter)
    DType dtype = DType::kFp32;
    std::vector<std::int64_t> shape;
  };
  std::vector<Item> items;  // inputs, then parameters and buffers, then outputs: order of Args
  std::map<std::string, std::int64_t> dims;      // integers at the top of the file, as they are now
  std::map<std::string, std::string> constants;  // other arguments of forward, as C literals
  bool training = false;                         // the mode that the constructor left it in
  // What one call holds at once besides inputs and parameters, its results included, in declared
  // dtypes; an estimate from the shapes. Float64 takes twice that and inputs and parameters anew.
  double intermediate_bytes = 0;
  double flops = 0;         // of one call, as far as PyTorch's counter knows; 0 unknown
  double matmul_flops = 0;  // how many of them are matrix products and convolutions
  std::string torch_version;
  std::string note;  // Module::note
};

}  // namespace kernelpro
