// SPDX-License-Identifier: Apache-2.0
// What changes did: the accounts of parents and children side by side.
#pragma once

#include <optional>
#include <string>

#include "core/finding/change.h"
#include "report/view.h"

namespace kernelpro {

// What a candidate's change did, against its parent; nullopt without both times.
std::optional<WhatChanged> change_of(const StoredCandidate& candidate,
                                     const StoredCandidate& parent);
// The same for each change on the path to the winner; "" when there are none.
std::string path_changes_text(const Story& story);

}  // namespace kernelpro
