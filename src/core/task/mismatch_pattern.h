// SPDX-License-Identifier: Apache-2.0
// Finds what the wrong elements of an output have in common: their positions and their values. For
// describe_mismatch (core/task/mismatch.h). Pure; one thread per object.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/task/task.h"

namespace kernelpro {

// Positions of the wrong elements. Add all of them, in ascending order.
class WrongPlaces {
 public:
  explicit WrongPlaces(const Shaped& output);
  void add(std::int64_t index);
  std::int64_t count() const { return count_; }
  // "only in the tail of rows, from column 14 of 16"; "" if there is no pattern.
  std::string pattern() const;

 private:
  // The coordinates in one dimension that have a wrong element.
  struct Axis {
    std::int64_t size = 1;
    std::int64_t low = 0, high = -1;
    std::int64_t distinct = 0;
    std::vector<bool> seen;
    bool full() const { return distinct == size; }
    bool run() const { return distinct > 0 && high - low + 1 == distinct; }
  };
  void mark(Axis* axis, std::int64_t at);
  std::string run_pattern() const;
  std::string box_pattern() const;
  std::string plane_pattern() const;
  std::string regular_pattern() const;

  std::int64_t elements_;
  std::vector<Axis> axes_;  // of the shape, without dimensions of size 1
  std::vector<int> dims_;   // which dimension each axis is
  std::int64_t count_ = 0, first_ = -1, last_ = -1, step_ = 0, runs_ = 0;
  std::uint32_t lanes_ = 0;  // bit i: an index is i modulo 32
};

// A wrong element. Floating outputs only.
struct WrongValue {
  std::int64_t index = 0;
  double got = 0;
  double expected = 0;
};

// A pattern in the wrong values: "all of them are 0", "each is 0.5 times what was expected", "they
// are the transpose of what was expected"; "" if there is none. `values`: a sample spread over all
// of them. `expected`: the whole output; `rms`: its root mean square.
std::string value_pattern(const Shaped& output, const std::vector<WrongValue>& values,
                          const std::vector<double>& expected, double rms);

}  // namespace kernelpro
