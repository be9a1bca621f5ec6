// SPDX-License-Identifier: Apache-2.0
// Constraints on a source's knob settings, declared in comments beside the knobs:
//     // @require TILE % WARPS == 0 && TILE * TILE * BUFFERS <= 8192
// Integers, knobs with integer values, ( ), the operators ! - * / % + - < <= > >= == != && || with
// C++'s precedence, and C++'s words not, and, or. A condition that divides by zero does not hold.
// Immutable after parsing; safe from any number of threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/candidate/candidate.h"
#include "core/candidate/knob.h"

namespace kernelpro {

class Requirements {
 public:
  Requirements() = default;  // everything is allowed
  // Fails with kBadInput, naming the line, on an expression that does not parse, an unknown name,
  // or a knob with a non-integer value. `knobs`: those of the source.
  static Result<Requirements> parse(std::string_view source, const std::vector<Knob>& knobs);

  bool empty() const { return all_.empty(); }
  // `at`: for each knob, the index of its value.
  bool hold(const std::vector<std::uint16_t>& at) const;
  // The text of the first requirement that does not hold, "" when all do. A value outside its
  // knob's list is used as it is; a non-integer value fails the requirements that use it.
  std::string broken(const KnobValues& values) const;

 private:
  // nullopt: no result, as in a division by zero.
  using Operation = std::optional<std::int64_t> (*)(std::int64_t a, std::int64_t b);
  // In postfix order: a number, a knob's value, or an operation on the last one or two results.
  struct Step {
    enum class Kind : std::uint8_t { kNumber, kKnob, kUnary, kBinary };
    Kind kind = Kind::kNumber;
    std::int64_t number = 0;  // for a knob, its index
    Operation operation = nullptr;
  };
  struct Requirement {
    std::string text;
    std::vector<Step> steps;
  };
  class Reader;

  // `values`: by knob.
  static bool holds(const Requirement& requirement, const std::vector<std::int64_t>& values);

  std::vector<Requirement> all_;
  std::vector<std::string> names_;                 // by knob
  std::vector<std::vector<std::int64_t>> values_;  // by knob, its values; 0 for unused ones
};

}  // namespace kernelpro
