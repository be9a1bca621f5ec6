// SPDX-License-Identifier: Apache-2.0
#include "compile/diagnostics.h"

#include <algorithm>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMaxLead = 1024;  // template backtraces have no end

enum class Weight { kError, kWarning, kOther };

// A diagnostic: its head line, what leads to it ("In file included from", "In function") and the
// source lines and notes below it.
struct Entry {
  Weight weight = Weight::kOther;
  std::string text;
};

bool is_lead_in(std::string_view line) {
  return line.starts_with("In file included from") || line.starts_with("                 from ") ||
         contains(line, ": In ") || contains(line, ": At global scope:") ||
         contains(line, "In instantiation of") || contains(line, "required from");
}

Weight weight_of(std::string_view line) {
  for (const std::string_view sign :
       {"error:", "error :", "undefined reference", "required symbol", "undefined symbol",
        "ptxas fatal", "catastrophic error", "error #"}) {
    if (contains(line, sign)) return Weight::kError;
  }
  if (contains(line, "warning:") || contains(line, "warning #")) return Weight::kWarning;
  return Weight::kOther;
}

std::vector<Entry> entries_of(const std::vector<std::string>& all) {
  std::vector<Entry> entries;
  std::string lead;
  for (const std::string& line : all) {
    const Weight weight = weight_of(line);
    if (weight != Weight::kOther) {
      entries.push_back({weight, lead + line + "\n"});
      lead.clear();
    } else if (is_lead_in(line)) {
      if (lead.size() < kMaxLead) lead += line + "\n";
    } else if (entries.empty()) {
      entries.push_back({Weight::kOther, line + "\n"});
    } else {
      entries.back().text += line + "\n";
    }
  }
  if (!lead.empty()) entries.push_back({Weight::kOther, lead});
  return entries;
}

}  // namespace

std::string trim_diagnostics(std::string_view log, const std::vector<std::string>& hidden_folders,
                             std::size_t max_bytes) {
  std::string text = printable(log);
  for (const std::string& folder : hidden_folders) {
    if (folder.empty()) continue;
    text = replace_all(text, folder + "/", "");
    text = replace_all(text, folder, ".");
  }
  std::vector<Entry> entries = entries_of(lines(text));
  const auto rank = [](const Entry& e) {
    return e.weight == Weight::kError ? 0 : e.weight == Weight::kWarning ? 1 : 2;
  };
  std::stable_sort(entries.begin(), entries.end(),
                   [&](const Entry& a, const Entry& b) { return rank(a) < rank(b); });
  std::string result;
  std::size_t left_out = 0;
  // One diagnostic must not crowd out the others: template errors can have pages of notes.
  const std::size_t max_entry = max_bytes / 2;
  for (const Entry& entry : entries) {
    if (result.size() >= max_bytes) {
      if (entry.weight == Weight::kError) ++left_out;
      continue;
    }
    result += clip(entry.text, std::min(max_entry, max_bytes - result.size()));
    if (!result.empty() && result.back() != '\n') result += '\n';
  }
  if (left_out > 0) result += "(" + std::to_string(left_out) + " more errors)\n";
  return std::string(trim(result));
}

}  // namespace kernelpro
