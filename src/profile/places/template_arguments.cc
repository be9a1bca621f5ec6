// SPDX-License-Identifier: Apache-2.0
#include "profile/places/template_arguments.h"

#include <algorithm>
#include <map>

namespace kernelpro {

namespace {
constexpr std::size_t kMostTemplates = 200, kMostInstances = 16;
constexpr std::size_t kMostLists = 2000;  // that look like arguments
constexpr int kMostVisited = 64;          // instances, to answer one question
constexpr std::size_t kFar = 400;         // tokens of a list, or of a declaration
constexpr int kMostPassedOn = 4;
}  // namespace

TemplateArguments::TemplateArguments(const std::vector<SourceToken>& tokens) : tokens_(tokens) {
  for (std::size_t k = 0; k < tokens_.size() && templates_.size() < kMostTemplates; ++k) {
    if (is(k, "template") && is(k + 1, "<")) declare(k);
  }
  find_instances();
}

std::size_t TemplateArguments::list(std::size_t open,
                                    std::vector<std::pair<std::size_t, std::size_t>>* parts) const {
  int depth = 0;
  std::size_t from = open + 1;
  for (std::size_t k = open + 1; k < std::min(tokens_.size(), open + kFar); ++k) {
    if (is(k, ";") || is(k, "{")) return 0;
    if (is(k, "(") || is(k, "[")) {
      k = closing_token(tokens_, k);
      continue;
    }
    if (is(k, "<")) ++depth;
    const bool closes = is(k, ">");
    if ((closes || is(k, ",")) && depth == 0) {
      parts->emplace_back(from, k);
      from = k + 1;
      if (closes) return k + 1;
    }
    if (closes) --depth;
  }
  return 0;
}

void TemplateArguments::declare(std::size_t k) {
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  const std::size_t after = list(k + 1, &parts);
  if (after == 0) return;
  Template found;
  found.first = tokens_[k].line;
  for (const auto& [from, to] : parts) {
    std::string_view name;
    std::size_t n = from;
    for (; n < to && !is(n, "="); ++n) {
      if (is_name(n)) name = tokens_[n].text;
    }
    found.parameters.push_back(name);
    found.defaults.push_back(n + 1 < to ? argument(n + 1, to, tokens_[n].line)
                                        : TemplateArgument());
  }
  // "struct NAME", "using NAME =", or the name before the parameters of a function.
  std::size_t n = after;
  for (; n < std::min(tokens_.size(), after + kFar) && found.name.empty(); ++n) {
    if (is(n, ";") || is(n, "{") || is(n, "template")) return;
    if (is(n, "struct") || is(n, "class") || is(n, "using")) {
      if (is_name(n + 1)) found.name = tokens_[n + 1].text;
    } else if (is(n, "(") && n > after && is_name(n - 1)) {
      const std::string_view before = tokens_[n - 1].text;
      if (!before.starts_with("__") && before != "alignas") found.name = before;
      n = closing_token(tokens_, n);
    }
  }
  if (found.name.empty()) return;
  while (n < tokens_.size() && !is(n, "{") && !is(n, ";")) {
    n = is(n, "(") ? closing_token(tokens_, n) + 1 : n + 1;
  }
  if (n >= tokens_.size()) return;
  found.last = tokens_[is(n, "{") ? closing_token(tokens_, n) : n].line;
  templates_.push_back(std::move(found));
}

TemplateArgument TemplateArguments::argument(std::size_t from, std::size_t to, int line) const {
  TemplateArgument found;
  found.line = from < to ? tokens_[from].line : line;
  for (std::size_t n = from; n < to; ++n) {
    if (is_name(n)) found.uses.push_back(tokens_[n].text);
  }
  found.single = to == from + 1 && found.uses.size() == 1;
  return found;
}

void TemplateArguments::find_instances() {
  std::map<std::string_view, std::vector<Template*>> by_name;
  for (Template& each : templates_) by_name[each.name].push_back(&each);
  std::size_t lists = 0;
  for (std::size_t k = 0; k < tokens_.size() && lists < kMostLists; ++k) {
    if (!is_name(k) || !is(k + 1, "<")) continue;
    const auto found = by_name.find(tokens_[k].text);
    if (found == by_name.end()) continue;
    ++lists;
    std::vector<std::pair<std::size_t, std::size_t>> parts;
    if (list(k + 1, &parts) == 0) continue;
    Instance instance{tokens_[k].line, {}};
    for (const auto& [from, to] : parts) {
      instance.arguments.push_back(argument(from, to, instance.line));
    }
    for (Template* each : found->second) {
      const bool own = instance.line >= each->first && instance.line <= each->last;
      if (!own && each->instances.size() < kMostInstances) each->instances.push_back(instance);
    }
  }
}

void TemplateArguments::add(std::string_view name, int line, int depth, int* left,
                            std::vector<TemplateArgument>* all) const {
  for (const Template& each : templates_) {
    if (line < each.first || line > each.last) continue;
    const auto found = std::find(each.parameters.begin(), each.parameters.end(), name);
    if (found == each.parameters.end()) continue;
    const auto place = static_cast<std::size_t>(found - each.parameters.begin());
    for (const Instance& instance : each.instances) {
      if (--*left < 0) return;
      const bool given = place < instance.arguments.size();
      const TemplateArgument& chosen = given ? instance.arguments[place] : each.defaults[place];
      if (chosen.line == 0) continue;
      const std::size_t before = all->size();
      if (chosen.single && depth > 0) add(chosen.uses[0], chosen.line, depth - 1, left, all);
      if (all->size() == before) all->push_back(chosen);
    }
  }
}

std::vector<TemplateArgument> TemplateArguments::chosen(std::string_view name, int line) const {
  std::vector<TemplateArgument> all;
  int left = kMostVisited;
  if (!name.empty()) add(name, line, kMostPassedOn, &left, &all);
  std::stable_sort(
      all.begin(), all.end(),
      [](const TemplateArgument& a, const TemplateArgument& b) { return a.line < b.line; });
  const auto same = [](const TemplateArgument& a, const TemplateArgument& b) {
    return a.line == b.line;
  };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  if (all.size() > kMost) all.resize(kMost);
  return all;
}

}  // namespace kernelpro
