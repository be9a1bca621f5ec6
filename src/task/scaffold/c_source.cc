// SPDX-License-Identifier: Apache-2.0
#include "task/scaffold/c_source.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace kernelpro {

namespace {

using Kind = CToken::Kind;
using Tokens = std::vector<CToken>;

bool is(const Tokens& tokens, std::size_t i, std::string_view text) {
  return i < tokens.size() && tokens[i].text == text;
}

// Index of the bracket that closes the one at `open`, or tokens.size().
std::size_t closing(const Tokens& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    const std::string_view t = tokens[i].text;
    if (tokens[i].kind != Kind::kSign) continue;
    if (t == "(" || t == "[" || t == "{") ++depth;
    if ((t == ")" || t == "]" || t == "}") && --depth == 0) return i;
  }
  return tokens.size();
}

// Index behind the ">" that closes the "<" at `open`, or `open` if it is not a template list.
std::size_t behind_angles(const Tokens& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    const std::string_view t = tokens[i].text;
    if (t == "<") ++depth;
    if (t == ">" && --depth == 0) return i + 1;
    if (t == ">>>" && (depth -= 3) <= 0) return i + 1;
    if (t == "(" || t == "[") i = closing(tokens, i);
    if (t == ";" || t == "{" || t == "}") break;
  }
  return open;
}

std::string text_between(std::string_view source, std::size_t begin, std::size_t end) {
  return std::string(trim(source.substr(begin, end - begin)));
}

// Token ranges between top-level commas in (first, last).
std::vector<std::pair<std::size_t, std::size_t>> comma_separated(const Tokens& tokens,
                                                                 std::size_t first,
                                                                 std::size_t last) {
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  std::size_t begin = first;
  for (std::size_t i = first; i < last; ++i) {
    const std::string_view t = tokens[i].text;
    if (t == "(" || t == "[" || t == "{") i = std::min(closing(tokens, i), last);
    if (i < last && t == "<") {
      const std::size_t behind = behind_angles(tokens, i);
      if (behind > i && behind <= last) i = behind - 1;
    }
    if (i < last && tokens[i].text == ",") {
      parts.emplace_back(begin, i);
      begin = i + 1;
    }
  }
  if (begin < last) parts.emplace_back(begin, last);
  return parts;
}

const std::set<std::string_view>& qualifiers() {
  static const std::set<std::string_view> words = {
      "const",  "volatile", "__restrict__", "__restrict", "restrict",          "RESTRICT",
      "struct", "class",    "typename",     "register",   "__grid_constant__", "constexpr"};
  return words;
}

CParameter read_parameter(const Tokens& tokens, std::size_t first, std::size_t last) {
  CParameter parameter;
  for (std::size_t i = first; i < last; ++i) {  // drops the default value
    if (tokens[i].text == "=") last = i;
    if (tokens[i].text == "<") i = std::max(i, behind_angles(tokens, i) - 1);
  }
  std::vector<std::string> type;
  std::size_t behind_type = 0;  // how many words of `type` came before the last * or &
  for (std::size_t i = first; i < last; ++i) {
    const std::string_view t = tokens[i].text;
    if (t == "const") parameter.is_const = parameter.is_const || parameter.pointers == 0;
    if (qualifiers().contains(t)) continue;
    if (t == "*") {
      ++parameter.pointers;
      behind_type = type.size();
    } else if (t == "&" || t == "&&") {
      parameter.reference = true;
      behind_type = type.size();
    } else if (t == "[") {
      ++parameter.pointers;
      i = closing(tokens, i);
    } else if (t == "<") {
      const std::size_t behind = std::max(behind_angles(tokens, i), i + 1);
      std::string list;
      for (std::size_t k = i; k < behind && k < last; ++k) list += std::string(tokens[k].text);
      if (!type.empty()) type.back() += list;
      i = behind - 1;
    } else if (t == "::") {
      const std::string left = type.empty() ? "" : type.back();
      if (!type.empty()) type.pop_back();
      if (i + 1 < last) type.push_back(left + "::" + std::string(tokens[++i].text));
    } else if (tokens[i].kind == Kind::kWord) {
      type.push_back(std::string(t));
    }
  }
  static const std::set<std::string_view> basic = {"int",  "long",   "short",  "unsigned", "char",
                                                   "bool", "double", "float",  "signed",   "void",
                                                   "half", "size_t", "int64_t"};
  const bool named = type.size() > behind_type && type.size() > 1 && !basic.contains(type.back());
  const bool after_sign = behind_type > 0 && type.size() > behind_type;
  if (named || after_sign) {
    parameter.name = type.back();
    type.pop_back();
  }
  parameter.type = join_text(type, " ");
  return parameter;
}

bool is_keyword(std::string_view word) {
  static const std::set<std::string_view> words = {"if",
                                                   "for",
                                                   "while",
                                                   "switch",
                                                   "return",
                                                   "sizeof",
                                                   "catch",
                                                   "defined",
                                                   "alignas",
                                                   "decltype",
                                                   "static_assert",
                                                   "noexcept",
                                                   "__launch_bounds__",
                                                   "__attribute__",
                                                   "__declspec",
                                                   "alignof",
                                                   "new",
                                                   "delete",
                                                   "do",
                                                   "else",
                                                   "__align__",
                                                   "operator",
                                                   "requires"};
  return words.contains(word);
}

class FunctionReader {
 public:
  FunctionReader(std::string_view source, const Tokens& tokens) : s_(source), t_(tokens) {}

  std::vector<CFunction> run() {
    std::size_t start = 0;  // of the current declaration
    for (std::size_t i = 0; i < t_.size(); ++i) {
      const std::string_view t = t_[i].text;
      if (t == ";" || t == "}") {
        start = i + 1;
      } else if (t == "{") {
        i = opens_scope(start, i) ? i : closing(t_, i);
        start = i + 1;
      } else if (t == "=") {  // an initializer: contains no functions
        while (i < t_.size() && t_[i].text != ";") {
          i = t_[i].text == "{" || t_[i].text == "(" ? closing(t_, i) + 1 : i + 1;
        }
        start = i + 1;
      } else if (t == "(") {
        i = at_bracket(start, i);
        if (i < t_.size() && (t_[i].text == "}" || t_[i].text == ";")) start = i + 1;
      } else if (t == "<" && i > start && t_[i - 1].text == "template") {
        i = std::max(i, behind_angles(t_, i) - 1);
      }
    }
    return std::move(found_);
  }

 private:
  // namespace x { or extern "C" {
  bool opens_scope(std::size_t start, std::size_t brace) const {
    if (start >= brace) return false;
    std::size_t i = start;
    if (t_[i].text == "inline") ++i;
    return t_[i].text == "namespace" || (t_[i].text == "extern" && brace == i + 2);
  }

  // Reads a function at the "(" if it is one; returns the index after which to continue.
  std::size_t at_bracket(std::size_t start, std::size_t open) {
    const std::size_t close = closing(t_, open);
    if (open == 0 || open == start || close >= t_.size()) return close;
    const CToken& name = t_[open - 1];
    if (name.kind != Kind::kWord || is_keyword(name.text)) return close;
    std::size_t behind = close + 1;
    while (is(t_, behind, "const") || is(t_, behind, "noexcept") || is(t_, behind, "override")) {
      ++behind;
    }
    if (is(t_, behind, "->")) {
      while (behind < t_.size() && t_[behind].text != "{" && t_[behind].text != ";") ++behind;
    }
    const bool body = is(t_, behind, "{");
    if (!body && !is(t_, behind, ";")) return close;
    // A macro's call or an expression has no result type.
    if (open - 1 == start) return close;
    CFunction f;
    f.name = std::string(name.text);
    f.begin = t_[start].at;
    f.defined = body;
    read_head(start, open - 1, &f);
    for (const auto& [a, b] : comma_separated(t_, open + 1, close)) {
      CParameter parameter = read_parameter(t_, a, b);
      if (parameter.type == "void" && parameter.pointers == 0) continue;
      f.parameters.push_back(std::move(parameter));
    }
    const std::size_t last = body ? closing(t_, behind) : behind;
    const CToken& end = t_[std::min(last, t_.size() - 1)];
    f.end = end.at + end.text.size();
    if (body) {
      f.body_begin = t_[behind].at;
      f.body_end = f.end;
    }
    found_.push_back(std::move(f));
    return std::min(last, t_.size() - 1);
  }

  // Reads the tokens before the name.
  void read_head(std::size_t start, std::size_t name, CFunction* f) const {
    static const std::set<std::string_view> specifiers = {
        "static",       "inline",   "extern",  "constexpr", "__forceinline__", "__inline__",
        "__noinline__", "__host__", "virtual", "const",     "__global__",      "__device__"};
    bool host = false;
    std::vector<std::string> result;
    for (std::size_t i = start; i < name; ++i) {
      const std::string_view t = t_[i].text;
      if (t == "template" && is(t_, i + 1, "<")) {
        const std::size_t behind = behind_angles(t_, i + 1);
        for (const auto& [a, b] : comma_separated(t_, i + 2, behind - 1)) {
          std::size_t last = b;
          for (std::size_t k = a; k < b; ++k) {
            if (t_[k].text == "=") last = std::min(last, k);
          }
          if (last > a) f->template_names.push_back(std::string(t_[last - 1].text));
        }
        i = std::max(i, behind - 1);
        continue;
      }
      if (t == "__global__") f->kernel = true;
      if (t == "__device__") f->device = true;
      if (t == "__host__") host = true;
      if (is_keyword(t) && is(t_, i + 1, "(")) {
        i = closing(t_, i + 1);
        continue;
      }
      if (specifiers.contains(t) || t_[i].kind == Kind::kText || t == "[" || t == "]") continue;
      const bool glued = t == "::" || t == "<" || t == ">" || t == "*" || t == "&" || t == ",";
      const bool after =
          !result.empty() && (result.back().ends_with("::") || result.back().ends_with("<"));
      if (!result.empty() && (glued || after)) {
        result.back() += std::string(t);
      } else {
        result.push_back(std::string(t));
      }
    }
    if (host) f->device = false;
    f->result = join_text(result, " ");
  }

  std::string_view s_;
  const Tokens& t_;
  std::vector<CFunction> found_;
};

}  // namespace

std::vector<CFunction> c_functions(std::string_view source) {
  const Tokens tokens = c_code_tokens(source);
  return FunctionReader(source, tokens).run();
}

std::vector<CLaunch> c_launches(std::string_view source) {
  const Tokens tokens = c_code_tokens(source);
  std::vector<CLaunch> found;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    if (tokens[i].text != "<<<") continue;
    CLaunch launch;
    std::size_t name = i - 1;
    if (tokens[name].text == ">" || tokens[name].text == ">>>") {  // kernel<float><<<...>>>
      int depth = 0;
      while (name > 0) {
        if (tokens[name].text == ">") ++depth;
        if (tokens[name].text == "<" && --depth == 0) break;
        --name;
      }
      if (name == 0) continue;
      --name;
    }
    if (tokens[name].kind != Kind::kWord) continue;
    launch.kernel = std::string(tokens[name].text);
    launch.at = tokens[name].at;
    std::size_t close = i + 1;
    while (close < tokens.size() && tokens[close].text != ">>>") {
      close = tokens[close].text == "(" ? closing(tokens, close) + 1 : close + 1;
    }
    if (close >= tokens.size() || !is(tokens, close + 1, "(")) continue;
    launch.configuration_begin = tokens[i].at + 3;
    launch.configuration_end = tokens[close].at;
    const auto texts = [&](std::size_t first, std::size_t last) {
      std::vector<std::string> out;
      for (const auto& [a, b] : comma_separated(tokens, first, last)) {
        if (a == b) continue;
        const CToken& end = tokens[b - 1];
        out.push_back(text_between(source, tokens[a].at, end.at + end.text.size()));
      }
      return out;
    };
    launch.configuration = texts(i + 1, close);
    const std::size_t last = closing(tokens, close + 1);
    launch.arguments = texts(close + 2, last);
    found.push_back(std::move(launch));
  }
  return found;
}

namespace {

// The local pointer that the statement around token `i` derives from it ("float* q = p + 1"), or
// "".
std::string alias_made_at(const Tokens& tokens, std::size_t i) {
  std::size_t begin = i;
  while (begin > 0) {
    const std::string_view t = tokens[begin - 1].text;
    if (t == ";" || t == "{" || t == "}") break;
    --begin;
  }
  for (std::size_t k = begin; k + 1 < i; ++k) {
    if (tokens[k + 1].text != "=" || tokens[k].kind != Kind::kWord) continue;
    const bool pointer =
        std::any_of(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                    tokens.begin() + static_cast<std::ptrdiff_t>(k),
                    [](const CToken& t) { return t.text == "*" || t.text == "auto"; });
    return pointer ? std::string(tokens[k].text) : "";
  }
  return "";
}

CUse use_of(const Tokens& tokens, std::string_view body, std::string_view pointer, int depth);

}  // namespace

CUse c_use(std::string_view body, std::string_view pointer) {
  return use_of(c_code_tokens(body), body, pointer, 0);
}

namespace {

CUse use_of(const Tokens& tokens, std::string_view body, std::string_view pointer, int depth) {
  CUse use;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text != pointer) continue;
    if (i > 0 && (tokens[i - 1].text == "." || tokens[i - 1].text == "->")) continue;
    const bool starred = i > 0 && tokens[i - 1].text == "*" &&
                         (i < 2 || tokens[i - 2].kind == Kind::kSign) &&
                         (i < 2 || (tokens[i - 2].text != ")" && tokens[i - 2].text != "]"));
    std::size_t behind = i + 1;
    if (is(tokens, behind, "[")) behind = closing(tokens, behind) + 1;
    if (behind == i + 1 && !starred && is(tokens, behind, "=")) continue;  // the pointer itself
    if (behind == i + 1 && !starred) {
      // Passed on or offset: an atomic's target is written, anything else may be read and written.
      const bool atomic =
          i >= 2 && (tokens[i - 1].text == "(" || tokens[i - 1].text == "&") &&
          contains(body.substr(0, tokens[i].at).substr(tokens[i].at > 24 ? tokens[i].at - 24 : 0),
                   "atomic");
      const std::string alias = atomic || depth > 4 ? "" : alias_made_at(tokens, i);
      if (!alias.empty() && alias != pointer) {
        const CUse its = use_of(tokens, body, alias, depth + 1);
        use.read = use.read || its.read;
        use.written = use.written || its.written;
        continue;
      }
      use.written = use.written || atomic;
      use.read = use.read || !atomic;
      continue;
    }
    const bool address = i > 0 && tokens[i - 1].text == "&";
    const std::string_view next = behind < tokens.size() ? tokens[behind].text : "";
    if (next == "=") {
      use.written = true;
    } else if (next.size() == 2 && next[1] == '=' &&
               std::string_view("+-*/%&|^").find(next[0]) != std::string_view::npos) {
      use.read = use.written = true;
    } else if (address) {
      use.written = true;
    } else {
      use.read = true;
    }
  }
  return use;
}

}  // namespace

}  // namespace kernelpro
