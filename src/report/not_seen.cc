// SPDX-License-Identifier: Apache-2.0
#include "report/not_seen.h"

#include <algorithm>
#include <iterator>

#include "core/plan/kernel_name.h"

namespace kernelpro {

namespace {

void add(const Missing& missing, const std::string& of_kernel, std::vector<NotSeen>* all) {
  auto row = std::find_if(all->begin(), all->end(), [&](const NotSeen& each) {
    return each.reason == missing.reason && each.next == missing.next;
  });
  if (row == all->end()) {
    all->push_back({{}, missing.reason, missing.next});
    row = std::prev(all->end());
  }
  for (const std::string& metric : missing_names(missing)) {
    const std::string name = metric + of_kernel;
    auto& names = row->names;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
}

}  // namespace

std::vector<NotSeen> not_seen(const Evidence& evidence) {
  std::vector<NotSeen> all;
  for (const Missing& missing : evidence.missing()) add(missing, "", &all);
  for (const KernelEvidence& kernel : evidence.kernels) {
    const std::string of_kernel = " of " + short_kernel_name(kernel.name);
    for (const Missing& missing : kernel.facts.missing()) add(missing, of_kernel, &all);
  }
  return all;
}

}  // namespace kernelpro
