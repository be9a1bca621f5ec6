// SPDX-License-Identifier: Apache-2.0
// For .cc files only: accounts and places within other values' JSON.
#pragma once

#include "base/json.h"
#include "core/finding/account.h"

namespace kernelpro {

SourceLine read_source_line(const Json& json);
Json account_json(const Account& account);
Account read_account(const Json& json);
Json costly_place_json(const CostlyPlace& place);
CostlyPlace read_costly_place(const Json& json);

}  // namespace kernelpro
