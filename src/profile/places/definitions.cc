// SPDX-License-Identifier: Apache-2.0
#include "profile/places/definitions.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "profile/places/source_text.h"
#include "profile/places/template_arguments.h"

namespace kernelpro {

namespace {

using Kind = SourceToken::Kind;

constexpr std::size_t kMostText = 160;
constexpr int kSteps = 3;
constexpr int kShortFunction = 5;  // lines
constexpr std::size_t kMostPerName = 40;

bool no_type(std::string_view word) {
  constexpr std::string_view kWords[] = {"return", "else", "throw", "case", "goto", "using", "new"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

struct Definition {
  SiteKind kind = SiteKind::kVariable;
  int line = 0, last = 0;
  std::vector<std::string_view> uses;  // the names in it
  bool single = false;                 // it is one name and nothing else
};

bool opens_no_value(std::string_view word) {
  constexpr std::string_view kWords[] = {"struct", "class", "enum",  "union",    "namespace", "do",
                                         "else",   "try",   "const", "noexcept", "mutable"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

class Definitions {
 public:
  Definitions(const Definitions&) = delete;  // templates_ refers to tokens_
  explicit Definitions(std::string_view text) : tokens_(source_tokens(text)), templates_(tokens_) {
    for (std::size_t k = 0; k < tokens_.size(); ++k) {
      const SourceToken& token = tokens_[k];
      if (token.kind == Kind::kName) by_line_[token.line].push_back(token.text);
      if (token.kind == Kind::kDefine) {
        keep(token.text, {SiteKind::kDefinition, token.line, token.line, {}, false});
      } else if (token.kind == Kind::kName) {
        if (is(k + 1, "=")) value(k);
        if (is(k + 1, "{")) braces(k);
        if (is(k + 1, "(")) function(k);
      }
    }
  }

  // Null: none is known.
  const Definition* find(std::string_view name, int use) const {
    const auto found = all_.find(name);
    if (found == all_.end()) return nullptr;
    const Definition* best = nullptr;
    for (const Definition& each : found->second) {
      if (each.line <= use) best = &each;
    }
    // A definition after the use: of a function that was declared before.
    return best != nullptr                                       ? best
           : found->second.front().kind == SiteKind::kDefinition ? &found->second.front()
                                                                 : nullptr;
  }
  // What a name stands for at a line: a template's argument, where it is chosen; a definition; and
  // in place of one that only passes a template's parameter on, that parameter's.
  std::vector<Definition> all_of(std::string_view name, int use) const {
    std::vector<Definition> found = of_parameter(name, use);
    if (!found.empty()) return found;
    const Definition* one = find(name, use);
    if (one == nullptr) return {};
    if (one->single) found = of_parameter(one->uses[0], one->line);
    return found.empty() ? std::vector{*one} : found;
  }
  std::vector<std::string_view> names_at(int line) const {
    const auto found = by_line_.find(line);
    return found == by_line_.end() ? std::vector<std::string_view>() : found->second;
  }

 private:
  std::vector<Definition> of_parameter(std::string_view name, int use) const {
    std::vector<Definition> found;
    for (const TemplateArgument& each : templates_.chosen(name, use)) {
      const Definition* named = each.single ? find(each.uses[0], each.line) : nullptr;
      const bool constant = named != nullptr && named->kind == SiteKind::kDefinition;
      found.push_back(
          constant ? *named
                   : Definition{SiteKind::kDefinition, each.line, each.line, each.uses, false});
    }
    return found;
  }

  bool is(std::size_t k, std::string_view text) const { return is_token(tokens_, k, text); }
  bool is_name(std::size_t k) const {
    return k < tokens_.size() && tokens_[k].kind == Kind::kName && !no_type(tokens_[k].text);
  }

  void keep(std::string_view name, Definition definition) {
    std::vector<Definition>& known = all_[name];
    if (known.size() < kMostPerName) known.push_back(std::move(definition));
  }

  // "type name = value": up to the comma or semicolon that ends it. An assignment gives a value to
  // a name that has been defined before, and is no definition.
  void value(std::size_t k) {
    if (k == 0) return;
    const bool typed = is_name(k - 1) || is(k - 1, "*") || is(k - 1, "&") || is(k - 1, ">");
    if (!typed && !(is(k - 1, ",") && in_list(k))) return;
    if ((is(k - 1, "*") || is(k - 1, "&") || is(k - 1, ">")) && (k < 2 || !is_name(k - 2))) return;
    Definition found{constant(k) ? SiteKind::kDefinition : SiteKind::kVariable,
                     tokens_[k].line,
                     tokens_[k].line,
                     {},
                     false};
    int depth = 0;
    const std::size_t from = k + 2;
    std::size_t n = from;
    for (; n < tokens_.size(); ++n) {
      if (is(n, "(") || is(n, "{") || is(n, "[")) ++depth;
      const bool closes = is(n, ")") || is(n, "}") || is(n, "]");
      if (is(n, ";") || (depth == 0 && (is(n, ",") || closes))) break;
      if (closes) --depth;
      if (is_name(n)) found.uses.push_back(tokens_[n].text);
      found.last = tokens_[n].line;
    }
    found.single = n == from + 1 && found.uses.size() == 1;
    keep(tokens_[k].text, std::move(found));
  }

  // "type name{value};"
  void braces(std::size_t k) {
    if (k == 0 || opens_no_value(tokens_[k - 1].text)) return;
    const std::size_t end = closing(k + 1);
    if (is(end + 1, ";") || is(end + 1, ",")) value(k);
  }

  // Whether the comma before `k` parts the declarators of a statement, and not arguments.
  bool in_list(std::size_t k) const {
    int depth = 0;
    for (std::size_t n = k; n-- > 0 && k - n < 60;) {
      if (is(n, ")") || is(n, "]")) ++depth;
      if ((is(n, "(") || is(n, "[")) && depth-- == 0) return n > 0 && is(n - 1, "for");
      if (depth == 0 && (is(n, ";") || is(n, "{") || is(n, "}"))) return is_name(n + 1);
    }
    return false;
  }

  bool constant(std::size_t k) const {
    for (std::size_t n = k; n-- > 0 && k - n < 60;) {
      if (is(n, ";") || is(n, "}") || is(n, "{")) return false;
      if (is(n, "constexpr") || is(n, "template") || is(n, "enum")) return true;
    }
    return false;
  }

  // "type name(...) {": a definition with a short body.
  void function(std::size_t k) {
    if (k == 0 || !(is_name(k - 1) || is(k - 1, "*") || is(k - 1, "&") || is(k - 1, ">"))) return;
    std::size_t n = closing(k + 1) + 1;
    while (is(n, "const") || is(n, "noexcept")) ++n;
    if (!is(n, "{")) return;
    const std::size_t end = closing(n);
    Definition found{SiteKind::kDefinition, tokens_[k].line, tokens_[end].line, {}, false};
    if (found.last - found.line >= kShortFunction) return;
    for (std::size_t each = n; each < end; ++each) {
      if (is_name(each)) found.uses.push_back(tokens_[each].text);
    }
    keep(tokens_[k].text, std::move(found));
  }

  std::size_t closing(std::size_t open) const { return closing_token(tokens_, open); }

  std::vector<SourceToken> tokens_;
  TemplateArguments templates_;
  std::map<std::string_view, std::vector<Definition>> all_;  // of one name, in the order of lines
  std::map<int, std::vector<std::string_view>> by_line_;
};

std::string text_at(const std::vector<std::string>& lines, int line) {
  const auto index = static_cast<std::size_t>(line - 1);
  return index < lines.size() ? clip(std::string(trim(lines[index])), kMostText) : "";
}

}  // namespace

std::vector<SourceSite> followed(std::string_view text, const std::vector<SourceSite>& sites) {
  const Definitions definitions(text);
  const std::vector<std::string> lines = kernelpro::lines(std::string(text));
  std::vector<SourceSite> result;
  for (std::size_t k = 0; k < sites.size(); ++k) {
    const SourceSite& site = sites[k];
    const bool constant = site.kind == SiteKind::kDepth || site.kind == SiteKind::kBlock ||
                          site.kind == SiteKind::kGrid || site.kind == SiteKind::kShared;
    const Definition* own = constant ? definitions.find(site.name, site.line.line) : nullptr;
    std::vector<Definition> found;
    if (own != nullptr && own->line == site.line.line) {
      found = definitions.all_of(site.name, site.line.line);
    }
    const std::size_t rest = sites.size() - k - 1;
    if (found.empty() || result.size() + found.size() + rest > kMostSites) {
      result.push_back(site);
      continue;
    }
    for (const Definition& each : found) {
      result.push_back({site.kind,
                        {site.line.file, each.line, text_at(lines, each.line)},
                        each.last,
                        site.name});
    }
  }
  return result;
}

std::vector<SourceSite> definition_sites(const std::string& file, std::string_view text,
                                         const std::vector<int>& used_at) {
  const Definitions definitions(text);
  const std::vector<std::string> lines = kernelpro::lines(std::string(text));
  std::vector<SourceSite> sites;
  struct Mention {
    std::string_view name;
    int line;
  };
  std::vector<Mention> now;
  for (const int line : used_at) {
    for (const std::string_view name : definitions.names_at(line)) now.push_back({name, line});
  }
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Mention> next;
    for (const Mention& use : now) {
      for (const Definition& found : definitions.all_of(use.name, use.line)) {
        if (sites.size() >= kMostDefinitions) break;
        const bool known = std::any_of(sites.begin(), sites.end(), [&](const SourceSite& site) {
          return site.line.line == found.line && site.name == use.name;
        });
        if (known) continue;
        sites.push_back({found.kind,
                         {file, found.line, text_at(lines, found.line)},
                         found.last,
                         std::string(use.name)});
        for (const std::string_view name : found.uses) next.push_back({name, found.line});
      }
    }
    now = std::move(next);
  }
  std::stable_sort(sites.begin(), sites.end(), [](const SourceSite& a, const SourceSite& b) {
    return a.line.line < b.line.line;
  });
  return sites;
}

}  // namespace kernelpro
