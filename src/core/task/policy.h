// SPDX-License-Identifier: Apache-2.0
// The rule by which outputs are judged. The contract (core/task/task.h) is ours; `kernelbench` is
// KernelBench's rule, for comparable verdicts: the seeds and tensors of its five trials, the
// module's flags, casts and training mode as its harness sets them, and torch.allclose against the
// module's result in the declared precision.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/task/task.h"

namespace kernelpro {

enum class Policy { kContract, kKernelBench };
std::string_view policy_name(Policy policy);  // "contract", "kernelbench"
std::optional<Policy> policy_from_name(std::string_view name);

// How an element `out` is compared with its expected value r:
//   scaled:   |out - r| <= tolerance * max(|r|, scale of the tensor); NaN equals NaN, an infinity
//             the same infinity; integers and bools must be equal;
//   allclose: |out - r| <= absolute + relative * |out|; NaN equals nothing, infinities equal
//             themselves (torch.allclose with its defaults).
// The reported error over tolerance is, for allclose, |out - r| / (absolute + relative * |out|)
// with tolerance 1. (KernelBench calls torch.allclose(reference, candidate), so the relative part
// is the candidate's.)
struct Rule {
  enum class Kind { kScaled, kAllclose };
  Kind kind = Kind::kScaled;
  double tolerance = 0;  // scaled; 0 for integers and bools
  double absolute = 0;   // allclose
  double relative = 0;   // allclose
  bool typical = true;   // scaled: see scale_of; false: the scale is the root mean square
  double least = 0;      // scaled: minimum scale (core/task/mismatch.h, `admit`)
};

// The scale of a tensor with root mean square `rms`: `rms`, but at most ten times the median of
// `sizes`, the magnitudes of a sample of its elements (sample_place), so that a few large results
// do not excuse errors in all others. Sizes without the type's full precision do not count (0,
// infinities, subnormal numbers); without any others, `rms`.
double scale_of(double rms, std::vector<double> sizes, DType dtype);
inline constexpr std::int64_t kScaleSample = 16384;  // sample size, at most

// allclose's tolerances are KernelBench's: 1e-4 for fp32, 1e-2 for fp16 and bf16.
Rule rule_for(const Task& task, const Tensor& output, Policy policy);

}  // namespace kernelpro
