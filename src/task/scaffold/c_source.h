// SPDX-License-Identifier: Apache-2.0
// Reads as much of C++ and CUDA sources as a scaffold needs: functions at file scope with their
// parameters, and kernel launches. Not a compiler: it steps over templates, macros and conditional
// blocks, and omits what it does not understand. Safe on any bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/candidate/c_tokens.h"

namespace kernelpro {

struct CParameter {
  std::string type;  // as written, without const, *, &, restrict: "float", "torch::Tensor"
  std::string name;  // "" if unnamed
  bool is_const = false;
  int pointers = 0;  // an array counts as one
  bool reference = false;
};

struct CFunction {
  std::string name;
  std::string result;  // type without specifiers: "void", "torch::Tensor"
  std::vector<CParameter> parameters;
  std::vector<std::string> template_names;  // "T", "scalar_t"
  bool kernel = false;                      // __global__
  bool device = false;                      // __device__ without __host__
  bool defined = false;                     // has a body; false: a declaration
  // Offsets in the source: the whole function, and the body including its braces.
  std::size_t begin = 0, end = 0;
  std::size_t body_begin = 0, body_end = 0;
};

// kernel<<<grid, block, shared, stream>>>(arguments)
struct CLaunch {
  std::string kernel;
  std::vector<std::string> configuration;  // two to four expressions
  std::vector<std::string> arguments;
  std::size_t at = 0;                                          // of the kernel's name
  std::size_t configuration_begin = 0, configuration_end = 0;  // inside <<< and >>>
};

std::vector<CFunction> c_functions(std::string_view source);
std::vector<CLaunch> c_launches(std::string_view source);

// How a body uses a pointer: indexed or dereferenced right or left of an assignment.
struct CUse {
  bool read = false;
  bool written = false;
};
CUse c_use(std::string_view body, std::string_view pointer);

}  // namespace kernelpro
