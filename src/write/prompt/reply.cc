// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/reply.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "write/prompt/code_text.h"

namespace kernelpro {

namespace {

// A whole word: not part of an identifier.
bool has_word(std::string_view text, std::string_view word) {
  const auto inside = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const bool left = at == 0 || !inside(text[at - 1]);
    const std::size_t end = at + word.size();
    if (left && (end == text.size() || !inside(text[end]))) return true;
  }
  return false;
}

// Whether the code, rather than its comments or prose, has the entry.
bool has_entry(const std::string& text, Language language) {
  const std::string code = without_comments(text, language);
  const auto entries = language_row(language).entries;
  return std::any_of(entries.begin(), entries.end(), [&](const EntryWord& entry) {
    return has_word(code, entry.word) && contains(code, entry.with);
  });
}

std::string entry_name(Language language) { return std::string(language_row(language).entry); }

// The run of backticks or tildes that opens or closes a block, at the start of a line; "" = none.
std::string_view fence(std::string_view line) {
  const std::string_view text = trim(line);
  if (text.empty() || (text[0] != '`' && text[0] != '~')) return "";
  const std::size_t n = std::min(text.find_first_not_of(text[0]), text.size());
  return text.substr(0, n >= 3 ? n : 0);
}

// An opening fence has no backticks after it: "```launch``` is new" is prose.
bool opens(std::string_view line, std::string_view mark) {
  if (mark.empty()) return false;
  return mark[0] == '~' || trim(line).substr(mark.size()).find('`') == std::string_view::npos;
}

// A closing fence has the kind of the opening one, is at least as long, and stands alone.
bool closes(std::string_view line, std::string_view opened) {
  const std::string_view mark = fence(line);
  return mark.starts_with(opened) && trim(line).size() == mark.size();
}

struct Blocks {
  std::vector<std::string> closed;
  bool cut = false;  // the last one was not closed
};

Blocks blocks_of(const std::string& text) {
  Blocks blocks;
  std::string block;
  std::string opened;  // the open block's fence
  for (const std::string& line : lines(text)) {
    if (opened.empty()) {
      const std::string_view mark = fence(line);
      if (!opens(line, mark)) continue;
      opened = mark;
      block.clear();
    } else if (closes(line, opened)) {
      blocks.closed.push_back(block);
      opened.clear();
    } else {
      block += line + "\n";
    }
  }
  blocks.cut = !opened.empty();
  return blocks;
}

std::string with_plain_ends(std::string text) {
  text = replace_all(text, "\r\n", "\n");
  return replace_all(text, "\r", "\n");
}

// A source that is code throughout.
Result<std::string> code_only(const std::string& source, Language language) {
  const std::string prose = first_prose(source, language);
  if (prose.empty()) return source;
  return fail(ErrorKind::kBadInput,
              "the reply has text where only code may be: \"" + clip(prose, 80) + "\"",
              "put the source into a block between ``` lines, or the text into comments");
}

}  // namespace

Result<std::string> source_of_reply(const std::string& reply, Language language) {
  const auto refused = [](const std::string& what, const std::string& next) {
    return fail(ErrorKind::kBadInput, what, next);
  };
  if (reply.size() > kMaxReplyBytes) {
    return refused("the reply has " + human_bytes(static_cast<double>(reply.size())) +
                       "; at most " + human_bytes(static_cast<double>(kMaxReplyBytes)) +
                       " are read",
                   "write one kernel, and let tables be computed");
  }
  const std::string text = with_plain_ends(reply);
  if (trim(text).empty()) return refused("the reply is empty", "write the whole source into it");
  if (printable(text) != text) {
    return refused("the reply has control characters or invalid UTF-8", "write plain text");
  }
  const Blocks blocks = blocks_of(text);
  if (blocks.closed.empty() && !blocks.cut) {
    if (has_entry(text, language)) return code_only(text, language);
    return refused(
        "the reply does not define " + entry_name(language),
        "write one complete source that defines it; the rules of the task give its form");
  }
  std::vector<const std::string*> kernels;
  for (const std::string& block : blocks.closed) {
    if (has_entry(block, language)) kernels.push_back(&block);
  }
  if (kernels.size() == 1) return code_only(*kernels[0], language);
  if (kernels.size() > 1) {
    return refused("the reply has " + std::to_string(kernels.size()) + " blocks that define " +
                       entry_name(language),
                   "give one of them, complete, or write a reply for each");
  }
  if (blocks.cut) {
    return refused("the reply ends inside a block of code", "write it to its end");
  }
  return refused("no block of the reply defines " + entry_name(language),
                 "write one complete source that defines it; the rules of the task give its form");
}

namespace {

// The text after "// NAME:" or "# NAME:"; nullopt: the line is something else.
std::optional<std::string> comment(std::string_view line, std::string_view name) {
  line = trim(line);
  if (line.starts_with("//")) {
    line = trim(line.substr(2));
  } else if (line.starts_with("#")) {
    line = trim(line.substr(1));
  } else {
    return std::nullopt;
  }
  if (!line.starts_with(name) || !line.substr(name.size()).starts_with(":")) return std::nullopt;
  return printable(trim(line.substr(name.size() + 1)));
}

constexpr int kFirstLines = 20;

}  // namespace

std::string idea_of(const std::string& source) {
  const std::string_view line = std::string_view(source).substr(0, source.find('\n'));
  return comment(line, "idea").value_or("");
}

FindingRef answer_of(const std::string& text, const Diagnosis& diagnosis) {
  std::string plain;
  for (const char c : text) {
    const bool kept = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    plain += kept ? c : ' ';
  }
  const std::vector<std::string> named = words(plain);
  const auto has = [&](const std::string& word) {
    return std::find(named.begin(), named.end(), word) != named.end();
  };
  for (const Finding& finding : diagnosis.findings) {
    if (finding.stop || !has(finding.tool)) continue;
    for (const Prescription& prescription : finding.prescriptions) {
      if (has(prescription.tag)) return {finding.tool, prescription.tag};
    }
    // A finding without its tag: use its first prescription.
    if (!finding.prescriptions.empty()) {
      return {finding.tool, finding.prescriptions.front().tag};
    }
  }
  return {};
}

std::optional<FindingRef> named_answer(const std::string& source, const Diagnosis& offered) {
  std::string_view rest = source;
  for (int line = 0; line < kFirstLines && !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (const auto named = comment(rest.substr(0, end), "answers")) {
      return answer_of(*named, offered);
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::nullopt;
}

bool offers_one(const Diagnosis& diagnosis) {
  return std::count_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                       [](const Finding& finding) { return !finding.stop; }) == 1;
}

}  // namespace kernelpro
