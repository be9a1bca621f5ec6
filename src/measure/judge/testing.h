// SPDX-License-Identifier: Apache-2.0
// For tests of the judge: a task with one input, whose values are drawn and then changed as a probe
// changes them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/task/inputs.h"
#include "core/task/key.h"
#include "core/task/mismatch.h"
#include "measure/judge/probe_shapes.h"

namespace kernelpro::testing {

inline constexpr std::int64_t kDrawnRows = 64, kDrawnColumns = 512,
                              kDrawnElements = kDrawnRows * kDrawnColumns;

struct Drawn {
  explicit Drawn(DType dtype = DType::kFp32, const Init& init = {}) {
    task.tensors.resize(2);
    task.tensors[0].dtype = dtype;
    task.tensors[0].init = init;
    task.tensors[1].role = Role::kOutput;
    tensors = {{task.tensors.data(),
                {kDrawnRows, kDrawnColumns},
                kDrawnElements,
                kDrawnElements * dtype_bytes(dtype)},
               {&task.tensors[1], {kDrawnRows}, kDrawnRows, 4 * kDrawnRows}};
    before = draw();
  }
  std::vector<char> draw() const {
    std::vector<char> data(static_cast<std::size_t>(tensors[0].bytes));
    draw_inputs(task.tensors[0], 0, key_of(7), 0, kDrawnElements, data.data());
    return data;
  }
  std::vector<double> shaped(DrawKind kind, std::uint64_t key, int linear = 0,
                             int level = 0) const {
    std::vector<char> data = before;
    const std::uint64_t word = kp::subkey(key_of(key), kp::kShapeStream);
    reshape_input(tensors[0], probe_shapes(task, tensors, kind, word, linear, false, level), 0,
                  kind, key_of(key), &data);
    return values(data);
  }
  std::vector<double> values(const std::vector<char>& data) const {
    std::vector<double> all;
    for (std::int64_t i = 0; i < kDrawnElements; ++i) {
      all.push_back(element_as_double(task.tensors[0].dtype, data.data(), i));
    }
    return all;
  }
  Task task;
  std::vector<Shaped> tensors;
  std::vector<char> before;
};

}  // namespace kernelpro::testing
