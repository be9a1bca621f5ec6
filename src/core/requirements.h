// SPDX-License-Identifier: Apache-2.0
// Which settings of its knobs a source allows, declared in comments beside them:
//     // @require TILE % WARPS == 0 && TILE * TILE * BUFFERS <= 8192
// Integers, knobs whose values are integers, ( ), the operators ! - * / % + - < <= > >= == != && ||
// with C++'s precedence, and C++'s words not, and, or. What divides by zero does not hold.
// Immutable after parsing: for any number of threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/candidate.h"
#include "core/knob.h"

namespace kernelpro {

class Requirements {
 public:
  Requirements() = default;  // everything is allowed
  // Fails with kBadInput, naming the line, on an expression that cannot be read, that names what is
  // no knob, or a knob with a value that is no integer. `knobs`: those of the source.
  static Result<Requirements> parse(std::string_view source, const std::vector<Knob>& knobs);

  bool empty() const { return all_.empty(); }
  // `at`: by knob, the index of its value.
  bool hold(const std::vector<std::uint16_t>& at) const;
  // The text of the first that does not hold, "" when all do. A value that is not among those of
  // its knob is taken as it is; one that is no integer makes what asks for it not hold.
  std::string broken(const KnobValues& values) const;

 private:
  // nullopt: there is no result, as of a division by zero.
  using Operation = std::optional<std::int64_t> (*)(std::int64_t a, std::int64_t b);
  // In postfix order: a number, a knob's value, or an operation on the latest one or two results.
  struct Step {
    enum class Kind : std::uint8_t { kNumber, kKnob, kUnary, kBinary };
    Kind kind = Kind::kNumber;
    std::int64_t number = 0;  // of a knob, its index
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
  std::vector<std::vector<std::int64_t>> values_;  // by knob, its values; 0 where none is asked for
};

}  // namespace kernelpro
