// SPDX-License-Identifier: Apache-2.0
// What a writer is asked for: a language, and where it has several, the library or form within it.
// One row each. A candidate's language stays that of its file (core/candidate/language.h). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/candidate/language.h"
#include "core/task/task.h"

namespace kernelpro {

enum class Dialect {
  kCpp,
  kCuda,
  kPlan,
  kCute,
  kTorch,
  kTriton,
  kCuteDsl
};  // in order of the rows

struct DialectRow {
  Dialect dialect;
  std::string_view name;   // of --language and in stores: "cute"
  std::string_view title;  // in prompts: "CUDA C++ with CuTe"
  Language language;
  // A text of prompts/contract/ on how to write it; "" = none.
  std::string_view contract = "";
};

const DialectRow& dialect_row(Dialect dialect);
std::optional<Dialect> dialect_from_name(std::string_view name);
std::string dialect_names();  // "cpp|cuda|plan|..."
// The target's own language, without a library.
const DialectRow& native_dialect(TargetKind target);

}  // namespace kernelpro
