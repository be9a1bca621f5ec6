// SPDX-License-Identifier: Apache-2.0
// Any bytes as a plan: ideas that are one paragraph each and answer only what was found.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/text.h"
#include "propose/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kernelpro;
  Diagnosis diagnosis;
  Finding finding;
  finding.tool = "scalar-loads";
  finding.prescriptions.push_back({"vectorize", "widen them", ""});
  diagnosis.findings.push_back(finding);
  const std::string reply(reinterpret_cast<const char*>(data), size);
  const auto ideas = ideas_of(reply, diagnosis, 5);
  if (ideas.size() > 5) std::abort();
  for (const PlannedIdea& idea : ideas) {
    if (idea.text.empty() || printable(idea.text) != idea.text) std::abort();
    if (!idea.answers.empty() && idea.answers != "scalar-loads: vectorize") std::abort();
    if (!(idea.gain >= 0)) std::abort();
  }
  return 0;
}
