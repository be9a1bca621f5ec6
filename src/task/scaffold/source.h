// SPDX-License-Identifier: Apache-2.0
// A scaffold's input and output.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kernelpro {

struct Scaffold {
  std::string name;                          // of the task
  std::map<std::string, std::string> files;  // name in the folder -> text
  std::string task;                          // argument for `evaluate`: "" the folder, or a file
  std::string kernel;                        // the kernel's file in the folder
  std::vector<std::string> derived;          // findings, one sentence each
  std::vector<std::string> confirm;          // decisions left to the user, one sentence each
};

struct ScaffoldSource {
  std::string name;      // of the task; a C identifier with - and . allowed
  std::string file;      // base name of the user's file: "softmax.cu"
  std::string text;      // of it
  std::string function;  // the launcher or kernel to take; "" chooses
  // Text of the file in `#include "x"`; nullopt if there is none. May be empty.
  std::function<std::optional<std::string>(const std::string&)> include;
};

}  // namespace kernelpro
