// SPDX-License-Identifier: Apache-2.0
// What a model may ask about the run itself while it writes: the source and diagnosis of any
// candidate, what a diagnosis tool said of it, and what changed between two. As tools for a model;
// the answers come from the request, so nothing is measured. Any thread.
#pragma once

#include <string>
#include <vector>

#include "core/proposal/proposal.h"
#include "write/code_tools.h"
#include "write/model/chat.h"

namespace kernelpro {

class RunTools {
 public:
  // Offers nothing where there is no other candidate to see, or a writer may not see it.
  explicit RunTools(const ProposalRequest& request);

  const std::vector<ToolSpec>& specs() const { return specs_; }
  bool has(const std::string& name) const;
  // `arguments`: JSON from a model; accepts any bytes. REQUIRES: has(name).
  CodeTools::Answered call(const std::string& name, const std::string& arguments) const;

 private:
  ProposalRequest request_;
  std::vector<ToolSpec> specs_;
};

}  // namespace kernelpro
