// SPDX-License-Identifier: Apache-2.0
#include "core/plan/api_names.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr std::size_t kLongestName = 64;

// Instructions worth reporting; loads, moves and arithmetic are in every kernel.
constexpr std::string_view kPtxHeads[] = {
    "bar",      "barrier", "cp",         "createpolicy",   "discard",
    "elect",    "ex2",     "fence",      "griddepcontrol", "ldmatrix",
    "mbarrier", "mma",     "movmatrix",  "multimem",       "prefetch",
    "red",      "redux",   "setmaxnreg", "stmatrix",       "tanh",
    "tcgen05",  "wgmma"};
// An instruction's name ends before these.
constexpr std::string_view kPtxModifiers[] = {"sync",    "aligned", "shared", "global",  "cta",
                                              "cluster", "gpu",     "sys",    "relaxed", "acquire",
                                              "release", "acq_rel", "weak",   "volatile"};
constexpr std::string_view kLibraries[] = {
    "cg", "cooperative_groups", "cub", "cuda", "cute", "cutlass", "kp", "nvcuda", "wmma"};
// Too common to report.
constexpr std::string_view kCommon[] = {"__syncthreads"};

template <class List>
bool listed(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool is_number(char c) { return c >= '0' && c <= '9'; }

// A source in three views.
struct Views {
  std::string plain;  // without comments
  std::string code;   // without comments and string literals
  std::string texts;  // string literals, one per line
};

// The offset after the closing quote of a literal that begins at `from`.
std::size_t end_of_literal(std::string_view source, std::size_t from) {
  const char quote = source[from];
  for (std::size_t i = from + 1; i < source.size(); ++i) {
    if (source[i] == '\\') {
      ++i;
    } else if (source[i] == quote || source[i] == '\n') {
      return i + 1;
    }
  }
  return source.size();
}

Views views_of(std::string_view source) {
  Views views;
  for (std::size_t i = 0; i < source.size();) {
    const char c = source[i];
    const std::string_view two = source.substr(i, 2);
    if (two == "//") {
      i = std::min(source.find('\n', i), source.size());
    } else if (two == "/*") {
      const std::size_t end = source.find("*/", i + 2);
      i = end == std::string_view::npos ? source.size() : end + 2;
    } else if (c == '"' || (c == '\'' && (i == 0 || !in_identifier(source[i - 1])))) {
      const std::size_t end = end_of_literal(source, i);
      const std::string_view literal = source.substr(i, end - i);
      views.plain += literal;
      views.code += ' ';
      if (c == '"') (views.texts += literal) += '\n';
      i = end;
    } else {
      views.plain += c;
      views.code += c;
      ++i;
    }
  }
  return views;
}

void add_name(std::string_view name, std::set<std::string>* names) {
  if (!name.empty() && name.size() <= kLongestName) names->insert(printable(name));
}

void add_directives(const std::string& plain, std::set<std::string>* names) {
  for (const std::string& line : lines(plain)) {
    std::string_view rest = trim(line);
    if (!rest.starts_with('#')) continue;
    rest = trim(rest.substr(1));
    if (rest.starts_with("include")) {
      rest = trim(rest.substr(7));
      if (rest != "\"task.h\"") add_name(rest, names);
      continue;
    }
    const std::vector<std::string> all = words(rest);
    if (all.size() >= 3 && all[0] == "pragma" && all[1] == "omp") {
      add_name("#pragma omp " + all[2].substr(0, all[2].find('(')), names);
    }
  }
}

bool ends_name(std::string_view part) {
  return part.empty() || listed(kPtxModifiers, part) ||
         std::any_of(part.begin(), part.end(), [](char c) { return is_number(c) || c == ':'; });
}

// "cp.async.bulk.tensor" of "cp.async.bulk.tensor.2d.shared::cluster.global".
void add_instruction(std::string_view token, std::set<std::string>* names) {
  const std::vector<std::string> parts = split(token, '.');
  if (parts.size() < 2 || !listed(kPtxHeads, parts[0])) return;
  std::string name = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    // The first part selects the kind, as in mma.sync.
    const bool first = i == 1 && listed(kPtxModifiers, parts[i]);
    if (!first && ends_name(parts[i])) break;
    name += "." + parts[i];
    if (first) break;
  }
  // A head alone carries no information.
  if (name.size() > parts[0].size()) add_name(name, names);
}

void add_instructions(const std::string& texts, std::set<std::string>* names) {
  const auto in_token = [](char c) { return in_identifier(c) || c == '.' || c == ':'; };
  for (std::size_t i = 0; i < texts.size();) {
    // The character after a backslash is not part of a name.
    if (texts[i] == '\\') {
      i += 2;
      continue;
    }
    std::size_t end = i;
    while (end < texts.size() && in_token(texts[end])) ++end;
    if (end > i) add_instruction(std::string_view(texts).substr(i, end - i), names);
    i = std::max(end, i + 1);
  }
}

bool is_intrinsic(std::string_view word) {
  if (word.starts_with("_mm")) return true;
  if (!word.starts_with("__") || word.ends_with("__") || listed(kCommon, word)) return false;
  return word.size() > 3 && word[2] >= 'a' && word[2] <= 'z';
}

void add_identifiers(const std::string& code, std::set<std::string>* names) {
  std::string root;  // of an unfinished qualified name
  for (std::size_t i = 0; i < code.size();) {
    if (!in_identifier(code[i]) || is_number(code[i])) {
      // Letters in a number are not a name.
      while (i < code.size() && in_identifier(code[i])) ++i;
      if (i < code.size() && !in_identifier(code[i])) ++i;
      continue;
    }
    std::size_t end = i;
    while (end < code.size() && in_identifier(code[end])) ++end;
    const std::string_view word = std::string_view(code).substr(i, end - i);
    const std::string_view after = trim(std::string_view(code).substr(end, 8));
    if (!root.empty()) {
      add_name(root + "::" + std::string(word), names);
      root.clear();
    } else if (after.starts_with("::") && listed(kLibraries, word)) {
      root = word;
    } else if (after.starts_with('(') && is_intrinsic(word)) {
      add_name(word, names);
    }
    i = end;
  }
}

}  // namespace

std::set<std::string> api_names(std::string_view source) {
  const Views views = views_of(source);
  std::set<std::string> names;
  add_directives(views.plain, &names);
  add_instructions(views.texts, &names);
  add_identifiers(views.code, &names);
  return names;
}

}  // namespace kernelpro
