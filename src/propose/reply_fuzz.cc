// SPDX-License-Identifier: Apache-2.0
// Any bytes as a reply: a source or a refusal, and a source is text that is read the same again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "propose/reply.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kernelpro;
  const std::string reply(reinterpret_cast<const char*>(data), size);
  for (const Language language : {Language::kCuda, Language::kPython}) {
    const auto source = source_of_reply(reply, language);
    if (!source) {
      if (source.error().message.empty() || source.error().next.empty()) std::abort();
      continue;
    }
    if (source->find('\r') != std::string::npos) std::abort();
    static_cast<void>(idea_of(*source));
  }
  return 0;
}
