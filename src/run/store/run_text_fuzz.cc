// SPDX-License-Identifier: Apache-2.0
// Any bytes as a run's text. The result is a refusal with advice, or a run whose own text is read
// again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "run/store/run_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kernelpro;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Result<StoredRun> run = run_from_text(text, "run.jsonl");
  if (!run) {
    if (run.error().message.empty() || run.error().next.empty()) std::abort();
    return 0;
  }
  const Result<StoredRun> again = run_from_text(run_to_text(*run), "run.jsonl");
  if (!again || again->candidates.size() != run->candidates.size()) std::abort();
  return 0;
}
