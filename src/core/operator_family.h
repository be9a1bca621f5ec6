// SPDX-License-Identifier: Apache-2.0
// What kind of operation a task is: what texts for writers are chosen by, and by which experience
// of one task is of use for another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/task.h"

namespace kernelpro {

// Its kinds, sorted, none twice; never empty: {"attention", "products", "softmax"}. A module is
// known by the names in its source, a native task by those in its summary and references and by the
// operations that it declares; a kernel's own source says nothing, it may be written in any way.
//   attention, convolution, products (of matrices), groups (products whose matrices begin at
//   offsets that are inputs), softmax, normalization, reduction, scan, pooling, loss, sorting,
//   recurrence; elementwise where it is none of these.
// Pure.
std::vector<std::string> operator_family(const Task& task);

bool has_kind(const std::vector<std::string>& family, std::string_view kind);

// How much two families have in common: kinds in both over kinds in either, 0 to 1.
double family_likeness(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace kernelpro
