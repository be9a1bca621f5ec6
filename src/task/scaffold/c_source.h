// SPDX-License-Identifier: Apache-2.0
// Reads C++ and CUDA sources as far as a scaffold needs: tokens, the functions at file scope with
// their parameters, and kernel launches. Not a compiler: templates, macros and conditional parts
// are passed over with care, and what is not understood is left out. Any bytes are safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

struct CToken {
  enum class Kind { kWord, kNumber, kText, kSign, kDirective };
  Kind kind = Kind::kSign;
  std::string_view text;  // into the source
  std::size_t at = 0;     // offset in the source
};

// Comments are left out; a preprocessor line, with its continuations, is one token.
std::vector<CToken> c_tokens(std::string_view source);

struct CParameter {
  std::string type;  // as written, without const, *, &, restrict: "float", "torch::Tensor"
  std::string name;  // "" when it has none
  bool is_const = false;
  int pointers = 0;  // arrays count as one
  bool reference = false;
};

struct CFunction {
  std::string name;
  std::string result;  // its type with specifiers left out: "void", "torch::Tensor"
  std::vector<CParameter> parameters;
  std::vector<std::string> template_names;  // "T", "scalar_t"
  bool kernel = false;                      // __global__
  bool device = false;                      // __device__ without __host__
  bool defined = false;                     // has a body; else a declaration
  // Offsets in the source: of the whole, its parameter list inside the brackets, and its body with
  // the braces.
  std::size_t begin = 0, end = 0;
  std::size_t parameters_begin = 0, parameters_end = 0;
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

// How a body uses a pointer: indexed or dereferenced on the right of an assignment, on the left.
struct CUse {
  bool read = false;
  bool written = false;
};
CUse c_use(std::string_view body, std::string_view pointer);

// The source with every whole word `from` replaced.
std::string replace_word(std::string_view source, std::string_view from, std::string_view to);

}  // namespace kernelpro
