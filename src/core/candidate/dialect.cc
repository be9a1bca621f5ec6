// SPDX-License-Identifier: Apache-2.0
#include "core/candidate/dialect.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/rows.h"
#include "base/text.h"

namespace kernelpro {

namespace {

constexpr DialectRow kDialects[] = {
    {Dialect::kCpp, "cpp", "C++20", Language::kCpp},
    {Dialect::kCuda, "cuda", "CUDA C++", Language::kCuda},
    {Dialect::kPlan, "plan", "CUDA C++ with its launches as data", Language::kCuda, "plan"},
    {Dialect::kCute, "cute", "CUDA C++ with CuTe", Language::kCuda, "cute"},
    {Dialect::kTorch, "torch", "PyTorch", Language::kPython},
    {Dialect::kTriton, "triton", "Python with Triton", Language::kPython, "triton"},
    {Dialect::kCuteDsl, "cute-dsl", "Python with CuTe DSL", Language::kPython, "cute_dsl"},
};

static_assert(rows_are_in_order(kDialects, &DialectRow::dialect));

}  // namespace

const DialectRow& dialect_row(Dialect dialect) {
  const auto at = static_cast<std::size_t>(dialect);
  KP_ASSERT(at < std::size(kDialects));
  return kDialects[at];
}

std::optional<Dialect> dialect_from_name(std::string_view name) {
  for (const DialectRow& row : kDialects) {
    if (row.name == name) return row.dialect;
  }
  return std::nullopt;
}

std::string dialect_names() { return names_of(kDialects); }

const DialectRow& native_dialect(TargetKind target) {
  const Language native = native_language(target).language;
  return *std::find_if(std::begin(kDialects), std::end(kDialects),
                       [&](const DialectRow& row) { return row.language == native; });
}

}  // namespace kernelpro
