// SPDX-License-Identifier: Apache-2.0
// Any bytes as a reply. The result is a refusal with advice, or a source that is part of the reply,
// is UTF-8 text with plain line ends, and is read the same again: bare, in a block, and on Windows.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/text.h"
#include "write/prompt/reply.h"

namespace {

using kernelpro::Language;

void check_source(const std::string& reply, const std::string& source, Language language) {
  using namespace kernelpro;
  const std::string plain = replace_all(replace_all(reply, "\r\n", "\n"), "\r", "\n");
  if (plain.find(source) == std::string::npos) std::abort();
  if (printable(source) != source || source.find('\r') != std::string::npos) std::abort();
  const auto entries = language_row(language).entries;
  if (std::none_of(entries.begin(), entries.end(),
                   [&](const EntryWord& entry) { return contains(source, entry.word); })) {
    std::abort();
  }
  const auto windows = source_of_reply(replace_all(plain, "\n", "\r\n"), language);
  if (!windows || *windows != source) std::abort();
  if (contains(source, "```") || contains(source, "~~~")) return;
  const auto again = source_of_reply(source, language);
  if (!again || *again != source) std::abort();
  if (!source.ends_with('\n')) return;
  const auto fenced = source_of_reply("Here:\n~~~c++\n" + source + "~~~\nDone.\n", language);
  if (!fenced || *fenced != source) std::abort();
}

void check_idea(const std::string& source) {
  const std::string idea = kernelpro::idea_of(source);
  if (idea.find('\n') != std::string::npos || kernelpro::printable(idea) != idea) std::abort();
  if (idea.size() > source.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string reply(reinterpret_cast<const char*>(data), size);
  check_idea(reply);
  for (const kernelpro::LanguageRow& row : kernelpro::languages()) {
    const auto source = kernelpro::source_of_reply(reply, row.language);
    if (source) {
      check_source(reply, *source, row.language);
      check_idea(*source);
    } else if (source.error().message.empty() || source.error().next.empty()) {
      std::abort();
    }
  }
  return 0;
}
