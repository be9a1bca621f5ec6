// SPDX-License-Identifier: Apache-2.0
// The kinds of operation in a task. They select the texts for writers and the experience from other
// tasks that applies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/task/task.h"

namespace kernelpro {

// Its kinds, sorted, unique, never empty: {"attention", "products", "softmax"}. A module's come
// from the names in its source; a native task's from those in its summary and references and from
// the operations that it declares. A kernel's own source is ignored: it may be written in any way.
//   attention, convolution, products (of matrices), groups (products whose matrices begin at
//   offsets that are inputs), softmax, normalization, reduction, scan, pooling, loss, sorting,
//   recurrence; elementwise if none of these.
// Pure.
std::vector<std::string> operator_family(const Task& task);

bool has_kind(const std::vector<std::string>& family, std::string_view kind);

// Similarity of two families: kinds in both over kinds in either, 0 to 1.
double family_likeness(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace kernelpro
