// SPDX-License-Identifier: Apache-2.0
// Sums of few products among factors that are dense: of two tensors whose products are added up
// over an axis, one is negligible on one half of that axis and the other on the other half, but for
// a few places. No element stands out of its row, as those of sparse inputs do (measure/judge/
// probe_shapes.h), and yet each result is a sum of a few products, which shows how precise these
// are. Shared by both targets. Pure.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/error.h"
#include "measure/judge/probe_shapes.h"

namespace kernelpro {

struct TensorAxis {
  int tensor = 0;
  int axis = 0;
};
// Products of elements at the same place of both axes are added up.
struct Contraction {
  TensorAxis a, b;
};

// The floating results of given inputs after these changes; nullopt if some are not finite.
using LookAt = std::function<Result<std::optional<std::vector<OutputLook>>>(
    const std::vector<kp::ShapeSpec>&)>;

// The contractions among these tensors, in which the results are linear and which are factors. Axes
// of fewer than 32 places are left out, and so are axes that several results have in common, such
// as that of a batch. Calls `look` a bounded number of times. Fails as `look` does.
Result<std::vector<Contraction>> find_contractions(const std::vector<Shaped>& tensors,
                                                   const std::vector<int>& factors,
                                                   const LookAt& look);

// The probe: kDimSums, or kShortSums. `word`: of kShapeStream, which also chooses among
// contractions. REQUIRES: there is one. `addend`: as for probe_shapes.
//
// In dim sums the other products are small, and add up to less than those that matter, so that no
// factor stands out; but their sums are rounded as all are, which limits what they show where there
// are thousands of terms.
std::vector<kp::ShapeSpec> short_sum_shapes(const std::vector<Shaped>& tensors,
                                            const std::vector<Contraction>& contractions,
                                            DrawKind kind, std::uint64_t word, bool addend);

}  // namespace kernelpro
