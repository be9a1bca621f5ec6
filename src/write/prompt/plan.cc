// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/plan.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <set>
#include <string_view>

#include "base/text.h"
#include "write/prompt/focus.h"
#include "write/prompt/reply.h"

namespace kernelpro {

namespace {

constexpr double kLargestGain = 1000;

// Strips the Markdown prefix of a line: "2. **", "- ", "> ", "### ".
std::string_view undecorated(std::string_view line) {
  line = trim(line);
  for (;;) {
    const std::size_t digits = line.find_first_not_of("0123456789");
    const bool numbered = digits != std::string_view::npos && digits > 0 &&
                          (line[digits] == '.' || line[digits] == ')');
    if (numbered) {
      line = trim(line.substr(digits + 1));
    } else if (!line.empty() &&
               std::string_view("*-#>_`+").find(line[0]) != std::string_view::npos) {
      line = trim(line.substr(1));
    } else {
      return line;
    }
  }
}

// The text after "IDEA:" in any spelling: "Idea 3:", "**IDEA**:", "IDEA**:".
std::optional<std::string> after(std::string_view line, std::string_view word) {
  if (line.size() < word.size()) return std::nullopt;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (std::toupper(static_cast<unsigned char>(line[i])) != word[i]) return std::nullopt;
  }
  line.remove_prefix(word.size());
  const std::size_t colon = line.find_first_not_of("*_` 0123456789");
  if (colon == std::string_view::npos || line[colon] != ':') return std::nullopt;
  line = trim(line.substr(colon + 1));
  while (line.starts_with('*') || line.starts_with('_')) line = trim(line.substr(1));
  return std::string(line);
}

// Without the extra line that clip() would add.
std::string shortened(std::string_view text) {
  if (text.size() <= kLongestIdea) return std::string(text);
  return std::string(utf8_prefix(text, kLongestIdea - 4)) + " ...";
}

double gain_of(const std::string& text) {
  const std::size_t at = text.find_first_of("0123456789");
  if (at == std::string::npos) return 0;
  const double gain = std::strtod(text.substr(at, 16).c_str(), nullptr);
  return gain > 0 && gain <= kLargestGain ? gain : 0;
}

}  // namespace

std::vector<PlannedIdea> ideas_of(const std::string& reply, const Diagnosis& diagnosis, int most) {
  std::vector<PlannedIdea> ideas;
  bool open = false;  // the next lines still belong to the idea's text
  for (const std::string& each : lines(printable(replace_all(reply, "\r", "")))) {
    const std::string_view line = undecorated(each);
    if (const auto text = after(line, "IDEA")) {
      ideas.push_back({*text, {}, 0});
      open = true;
    } else if (ideas.empty()) {
      continue;
    } else if (const auto named = after(line, "ANSWERS")) {
      ideas.back().answers = answer_of(*named, diagnosis);
      open = false;
    } else if (const auto gain = after(line, "GAIN")) {
      ideas.back().gain = gain_of(*gain);
      open = false;
    } else if (open && line.empty()) {
      open = ideas.back().text.empty();
    } else if (open) {
      std::string& all = ideas.back().text;
      all += (all.empty() ? "" : " ") + std::string(line);
    }
  }
  std::vector<PlannedIdea> result;
  for (PlannedIdea& idea : ideas) {
    if (static_cast<int>(result.size()) >= most) break;
    idea.text = shortened(trim(replace_all(idea.text, "\t", " ")));
    const bool twice = std::any_of(result.begin(), result.end(), [&](const PlannedIdea& other) {
      return other.text == idea.text;
    });
    if (!idea.text.empty() && !twice) result.push_back(std::move(idea));
  }
  return result;
}

std::vector<PlannedIdea> ideas_without_planner(const ProposalRequest& request, int most) {
  std::vector<PlannedIdea> all;
  std::set<FindingRef> answered;
  int unnamed = 0;  // children that do not say what they answer: taken to have been asked in turn
  for (const KnownPtr& known : request.history) {
    const Origin& origin = known->candidate.origin;
    if (origin.parent != request.parent->id) continue;
    answered.insert(origin.answers);
    unnamed += origin.answers.empty() ? 1 : 0;
  }
  if (const std::string energy = energy_focus_text(request); !energy.empty()) {
    if (chose_freely(request)) {
      --unnamed;  // that was energy's
    } else {
      all.push_back({energy, {}, 0});
    }
  }
  if (request.feedback == Feedback::kDiagnosed) {
    for (const Finding* finding : findings_to_answer(request)) {
      if (static_cast<int>(all.size()) >= most) return all;
      const FindingRef answers{finding->tool, finding->prescriptions.front().tag};
      if (!answered.insert(answers).second || unnamed-- > 0) continue;
      all.push_back({focus_text(*finding), answers, 0});
    }
  }
  if (static_cast<int>(all.size()) < most) {
    all.push_back({"Whatever promises most and has not been tried yet.", {}, 0});
  }
  return all;
}

}  // namespace kernelpro
