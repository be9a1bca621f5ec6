// SPDX-License-Identifier: Apache-2.0
// Shared by the scaffold's parts: the chosen entry, its tensors and its sizes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/task/dtype.h"
#include "task/scaffold/c_source.h"
#include "task/scaffold/source.h"

namespace kernelpro {

// One parameter of the entry, in declaration order.
struct EntryParameter {
  enum class Kind { kInput, kOutput, kInOut, kWorkspace, kDim, kConstant, kStream, kOther };
  Kind kind = Kind::kOther;
  CParameter source;
  std::string name;            // of the tensor, dimension or constant
  DType dtype = DType::kFp32;  // tensors
  bool dtype_known = true;
  int lanes = 1;                   // 4 for float4
  std::vector<std::string> shape;  // tensors: expressions over dimensions
  bool shape_sure = false;
  std::string value;  // constants: taken from a call in the file, or a guess
  bool value_sure = false;
  bool tensor() const {
    return kind == Kind::kInput || kind == Kind::kOutput || kind == Kind::kInOut;
  }
};

struct EntryDim {
  std::string name;
  std::string parameter;  // of the entry; "" if the code has no parameter for it
  long long small = 0, large = 0;
};

// The function that `launch` calls, or the kernel that it launches.
struct Entry {
  CFunction function;
  std::vector<EntryParameter> parameters;
  std::vector<EntryDim> dims;
  bool cuda = true;
  std::string text;                  // the user's file with its own includes inlined
  std::vector<CFunction> functions;  // of `text`
  std::vector<CLaunch> launches;     // of `text`
};

// Chooses the entry and classifies its parameters.
Result<Entry> find_entry(const ScaffoldSource& source, const std::string& text, bool cuda);

// kernel.cu or kernel.cpp: the user's code followed by `launch`.
std::string kernel_text(const Entry& entry, const ScaffoldSource& source, Scaffold* scaffold);

struct ReferenceTexts {
  std::string cpp, cu;  // cu only for cuda
};
// From a CPU check function in the file, else guessed from the entry's name, else left for the user
// to write.
ReferenceTexts reference_texts(const Entry& entry, const ScaffoldSource& source,
                               Scaffold* scaffold);

// The body of a definition, in the entry's own names, if the entry's name says what it computes
// ("softmax") and its parameters agree.
std::optional<std::string> known_body(const Entry& entry);

std::string task_toml(const Entry& entry, const ScaffoldSource& source, Scaffold* scaffold);

// A name valid for a dimension or tensor that the text does not use.
std::string free_name(const std::string& wanted, const std::string& text,
                      const std::vector<std::string>& taken);
// "1ll * ROWS * COLS" for {"ROWS", "COLS"}, "1" for {}.
std::string product(const std::vector<std::string>& shape);
// Removes functions of this name, such as main.
std::string without_function(const std::string& text, const std::string& name);
// Puts launches without a stream, synchronizations and copies on a stream: the function's own
// stream parameter if it has one, else `stream`.
std::string on_stream(const std::string& text, const std::string& stream);

// A PyTorch extension: torch::Tensor functions around kernels.
bool is_extension(const std::string& text);
Result<Scaffold> scaffold_extension(const ScaffoldSource& source);

}  // namespace kernelpro
