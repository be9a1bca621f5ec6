// SPDX-License-Identifier: Apache-2.0
// Host side of the probes' shapes (core/device/shapes.h defines each). Pure, except that large
// tensors are changed by several threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/task/inputs.h"
// After draw.h.
#include "core/device/shapes.h"

namespace kernelpro {

// What a tensor's drawn values are like.
struct Surveyed {
  double low = 0, high = 0;  // of the finite ones; 0 without any
  bool rises = false;        // no element is smaller than the one before it
  bool whole = false;        // all finite ones are whole numbers
};

// Whether a shape depends on the range of the drawn values. A spec whose `range` is not 0 has it
// already: the declared range of integers.
bool wants_survey(const kp::ShapeSpec& spec);
// Completes such a spec. False: there is nothing to change. (One value; or rising integers of
// unknown range: they may be offsets, which have to rise.)
bool fit(const Surveyed& values, kp::ShapeSpec* spec);

// Reshapes a tensor's elements. `key`: from kp::shape_key. Whether any changed.
bool reshape(kp::ShapeSpec spec, std::uint64_t key, std::vector<char>* data);
// Replaces the last digits of binary32 values (kp::lean_bits).
void lean(std::uint64_t digits, std::vector<char>* floats);

// One spec per tensor.
std::string shape_specs_to_json(const std::vector<kp::ShapeSpec>& specs);
std::optional<std::vector<kp::ShapeSpec>> shape_specs_from_json(const std::string& json);

}  // namespace kernelpro
