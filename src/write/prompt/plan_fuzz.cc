// SPDX-License-Identifier: Apache-2.0
// Any bytes as a plan: ideas are one paragraph each, without duplicates, and answer only actual
// findings; a smaller limit gives a prefix of the same ideas.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "base/text.h"
#include "write/prompt/plan.h"

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
  std::set<std::string> texts;
  for (const PlannedIdea& idea : ideas) {
    if (idea.text.empty() || idea.text.size() > kLongestIdea) std::abort();
    if (printable(idea.text) != idea.text) std::abort();
    if (idea.text.find_first_of("\n\t") != std::string::npos) std::abort();
    if (!texts.insert(idea.text).second) std::abort();
    if (!idea.answers.empty() && idea.answers.text() != "scalar-loads: vectorize") std::abort();
    if (!(idea.gain >= 0 && idea.gain <= 1000)) std::abort();
  }
  const auto fewer = ideas_of(reply, diagnosis, 2);
  if (fewer.size() != std::min<std::size_t>(ideas.size(), 2)) std::abort();
  for (std::size_t i = 0; i < fewer.size(); ++i) {
    if (fewer[i].text != ideas[i].text || fewer[i].answers != ideas[i].answers) std::abort();
  }
  return 0;
}
