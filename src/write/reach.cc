// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "write/model/client.h"
#include "write/proposer.h"

namespace kernelpro {

Result<void> reach_models(const RoleSettings& roles) {
  std::vector<std::string> asked;
  for (const std::string& name : {roles.coder, roles.planner, roles.fixer}) {
    if (name.empty() || std::find(asked.begin(), asked.end(), name) != asked.end()) continue;
    asked.push_back(name);
    KP_ASSIGN(const ClientSettings settings, settings_for(name));
    KP_ASSIGN(const auto client, make_client(settings));
    const std::optional<Failure> failure = client->knock();
    if (!failure) continue;
    const bool unknown = failure->kind == FailureKind::kUnknownModel;
    return fail(unknown ? ErrorKind::kBadInput : ErrorKind::kEnvironment,
                client->name() + ": " + failure->message, failure->next);
  }
  return {};
}

}  // namespace kernelpro
