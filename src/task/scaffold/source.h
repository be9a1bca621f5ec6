// SPDX-License-Identifier: Apache-2.0
// What goes into a scaffold and what comes out.
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
  std::string task;                          // what to give to `evaluate`: "" the folder, or a file
  std::string kernel;                        // the kernel's file in it
  std::vector<std::string> derived;          // what was found, a sentence each
  std::vector<std::string> confirm;          // what the user must decide, a sentence each
};

struct ScaffoldSource {
  std::string name;      // of the task; a C identifier with - and . allowed
  std::string file;      // base name of the user's file: "softmax.cu"
  std::string text;      // of it
  std::string function;  // the launcher or kernel to take; "" chooses
  // Text of a file that `#include "x"` names; nullopt when there is none. May be empty.
  std::function<std::optional<std::string>(const std::string&)> include;
};

}  // namespace kernelpro
