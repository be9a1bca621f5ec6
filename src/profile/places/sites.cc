// SPDX-License-Identifier: Apache-2.0
#include "profile/places/sites.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "profile/places/source_text.h"

namespace kernelpro {

namespace {

using Kind = SourceToken::Kind;
using Span = std::pair<std::size_t, std::size_t>;  // tokens [first, second)

constexpr std::size_t kMostText = 160;
constexpr std::size_t kMostLaunches = 3;
constexpr std::size_t kFar = 400;  // tokens between __global__ and the kernel's name

bool is_keyword(std::string_view name) {
  constexpr std::string_view kWords[] = {
      "if",    "for",     "while", "switch",        "catch",   "return", "sizeof",
      "do",    "else",    "case",  "new",           "delete",  "throw",  "goto",
      "using", "typedef", "asm",   "static_assert", "decltype"};
  return std::find(std::begin(kWords), std::end(kWords), name) != std::end(kWords);
}

// How many warps have a task of their own, "kfetchwarps" or "producers", unlike "kwarps" or
// "num_warps".
bool names_role(std::string_view small) {
  if (small.ends_with("producers") || small.ends_with("consumers")) return true;
  constexpr std::string_view kAll = "warps";
  if (!small.ends_with(kAll)) return false;
  small.remove_suffix(kAll.size());
  if (small.starts_with("k")) small.remove_prefix(1);
  while (small.ends_with("_")) small.remove_suffix(1);
  constexpr std::string_view kPlain[] = {"",    "n",    "num",    "total", "all",
                                         "max", "min",  "row",    "block", "cta",
                                         "m",   "used", "active", "column"};
  return std::ranges::find(kPlain, small) == std::end(kPlain);
}

// A name under which programs keep the number of their buffers, or of warps with a task.
bool names_depth(std::string_view name) {
  const std::string small = small_letters(name);
  for (const char* part : {"stage", "depth", "buffers", "slots", "ring", "ahead", "inflight",
                           "in_flight", "prefetch", "chains", "accumulators", "pipeline"}) {
    if (contains(small, part)) return small.find("string") == std::string::npos;
  }
  return names_role(small);
}

class Scanner {
 public:
  Scanner(const std::string& file, std::string_view text, std::string kernel)
      : file_(file),
        lines_(lines(std::string(text))),
        tokens_(source_tokens(text)),
        kernel_(std::move(kernel)) {}

  bool define() {
    for (std::size_t k = 0; k < tokens_.size(); ++k) {
      if (!is(k, "__global__")) continue;
      for (std::size_t n = k + 1; n < std::min(k + kFar, tokens_.size()); ++n) {
        if (is(n, ";") || is(n, "{")) break;
        if (!is(n, kernel_) || !is(n + 1, "(")) continue;
        const std::size_t close = closing(n + 1);
        if (!is(close + 1, "{")) break;
        const Span body{close + 1, closing(close + 1)};
        add(SiteKind::kKernel, tokens_[n].line, line_at(body.second));
        bounds(k, n);
        pointers(n + 2, close);
        study_bodies(body);
        depths();
        constants();
        return true;
      }
    }
    return false;
  }

  void launches() {
    std::size_t found = 0;
    for (std::size_t k = 0; k < tokens_.size() && found < kMostLaunches; ++k) {
      if (!is(k, kernel_)) continue;
      std::size_t open = k + 1;
      if (is(open, "<") && !is(open, "<<<")) open = after_template(open);
      if (!is(open, "<<<")) continue;
      ++found;
      add(SiteKind::kLaunch, tokens_[open].line, line_at(launch_end(open)));
      arguments(open);
      host_calls(k);
    }
    if (found == 0) runtime_launches();
  }

  std::vector<SourceSite> sites() {
    std::stable_sort(sites_.begin(), sites_.end(), [](const SourceSite& a, const SourceSite& b) {
      return a.line.line < b.line.line;
    });
    if (sites_.size() > kMostSites) sites_.resize(kMostSites);
    return std::move(sites_);
  }

 private:
  bool is(std::size_t k, std::string_view text) const { return is_token(tokens_, k, text); }
  bool is_name(std::size_t k) const { return k < tokens_.size() && tokens_[k].kind == Kind::kName; }
  int line_at(std::size_t k) const {
    return tokens_.empty() ? 1 : tokens_[std::min(k, tokens_.size() - 1)].line;
  }

  void add(SiteKind kind, int line, int last = 0, std::string_view name = {}) {
    for (const SourceSite& known : sites_) {
      if (known.kind == kind && known.line.line == line && known.name == name) return;
    }
    const auto index = static_cast<std::size_t>(line - 1);
    std::string text = index < lines_.size() ? std::string(trim(lines_[index])) : "";
    sites_.push_back(
        {kind, {file_, line, clip(text, kMostText)}, std::max(line, last), std::string(name)});
  }

  std::size_t closing(std::size_t open) const { return closing_token(tokens_, open); }

  // The token after template arguments that open at `k`; `k` if they are none.
  std::size_t after_template(std::size_t k) const {
    int depth = 0;
    for (std::size_t n = k; n < std::min(k + 100, tokens_.size()); ++n) {
      if (is(n, "<")) ++depth;
      if (is(n, ">") && --depth == 0) return n + 1;
      if (is(n, "<<<") || is(n, ";") || is(n, "{")) break;
    }
    return k;
  }

  // The end of the statement that starts at `k`.
  std::size_t statement_end(std::size_t k) const {
    while (k < tokens_.size()) {
      if (is(k, "{")) return closing(k);
      if (is(k, ";") || is(k, "}")) return k;
      if (is(k, "(")) {
        k = closing(k) + 1;
      } else {
        ++k;
      }
    }
    return k;
  }

  void bounds(std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      if (!is(k, "__launch_bounds__") && !is(k, "__maxnreg__")) continue;
      const std::size_t close = closing(k + 1);
      bool least_blocks = is(k, "__maxnreg__");
      for (std::size_t n = k + 2; n < close; ++n) least_blocks = least_blocks || is(n, ",");
      add(SiteKind::kBounds, tokens_[k].line, line_at(close), least_blocks ? "registers" : "");
    }
  }

  // Loads may not pass stores through pointers that may overlap.
  void pointers(std::size_t begin, std::size_t end) {
    int pointers = 0, plain = 0, written = 0, first_line = 0;
    int depth = 0;
    bool pointer = false, restricted = false, constant = false;
    for (std::size_t k = begin; k <= end; ++k) {
      if (is(k, "(") || is(k, "<") || is(k, "[")) ++depth;
      if (k < end && (is(k, ")") || is(k, ">") || is(k, "]"))) --depth;
      if (k == end || (is(k, ",") && depth <= 0)) {
        pointers += pointer;
        written += pointer && !constant;
        if (pointer && !restricted && plain++ == 0) first_line = line_at(k - 1);
        pointer = restricted = constant = false;
        continue;
      }
      pointer = pointer || is(k, "*");
      constant = constant || is(k, "const");
      restricted = restricted || is(k, "__restrict__") || is(k, "__restrict");
    }
    if (pointers >= 2 && written > 0 && plain > 0) add(SiteKind::kPointers, first_line);
  }

  // The bodies of functions, by name: a name, parentheses and braces.
  std::map<std::string_view, Span> functions() const {
    std::map<std::string_view, Span> all;
    for (std::size_t k = 0; k + 1 < tokens_.size(); ++k) {
      if (!is_name(k) || !is(k + 1, "(") || is_keyword(tokens_[k].text)) continue;
      std::size_t n = closing(k + 1) + 1;
      while (is(n, "const") || is(n, "noexcept")) ++n;
      if (is(n, "{")) all.emplace(tokens_[k].text, Span{n, closing(n)});
    }
    return all;
  }

  // The kernel's body, and those of the functions that it reaches.
  void study_bodies(Span body) {
    const auto known = functions();
    std::set<std::string_view> reached = {kernel_};
    std::vector<Span> open = {body};
    while (!open.empty()) {
      const Span span = open.back();
      open.pop_back();
      study(span);
      for (std::size_t k = span.first; k < span.second; ++k) {
        if (!is_name(k)) continue;
        const auto found = known.find(tokens_[k].text);
        if (found != known.end() && reached.insert(found->first).second) {
          open.push_back(found->second);
        }
      }
    }
  }

  void study(Span span) {
    for (std::size_t k = span.first; k < span.second; ++k) {
      if (tokens_[k].kind == Kind::kUnroll) add(SiteKind::kUnroll, tokens_[k].line);
      if (is(k, "__shared__")) {
        array(k + 1, SiteKind::kSharedArray, true);
        continue;
      }
      const bool loop = is(k, "for") || is(k, "while");
      if (loop && is(k + 1, "(")) {
        const std::size_t end = statement_end(closing(k + 1) + 1);
        if (!is(closing(k + 1) + 1, ";")) add(SiteKind::kLoop, tokens_[k].line, line_at(end));
      }
      const bool starts = k == span.first || is(k, ";") || is(k, "{") || is(k, "}");
      if (starts) array(k + 1, SiteKind::kLocalArray, false);
    }
  }

  // A declaration of an array that begins at `k`, such as "const float t[4][8] = {".
  void array(std::size_t k, SiteKind kind, bool any) {
    std::size_t names = 0;
    for (std::size_t n = k; n < std::min(k + 40, tokens_.size()); ++n) {
      if (is(n, "static") || is(n, "__shared__")) return;
      if (is(n, "alignas") || is(n, "__align__")) {
        n = closing(n + 1);
      } else if (is(n, "<")) {
        const std::size_t after = after_template(n);
        if (after == n) return;
        n = after - 1;
      } else if (is_name(n) && !is_keyword(tokens_[n].text)) {
        if (is(n + 1, "[") && (names > 0)) {
          return add(kind, tokens_[n].line, 0, tokens_[n].text);
        }
        if (any && is(n + 1, ";")) return add(kind, tokens_[n].line, 0, tokens_[n].text);
        ++names;
      } else if (!is(n, "::") && !is(n, "*")) {
        return;
      }
    }
  }

  void constants() {
    for (std::size_t k = 0; k < tokens_.size(); ++k) {
      if (is(k, "__constant__")) array(k + 1, SiteKind::kConstant, true);
    }
  }

  // Constants that hold how many buffers or stages there are.
  void depths() {
    for (std::size_t k = 0; k < tokens_.size(); ++k) {
      const bool macro = tokens_[k].kind == Kind::kDefine;
      const bool constant = is_name(k) && is(k + 1, "=") && k > 0 && is_name(k - 1) &&
                            tokens_[k - 1].text != "return";
      if ((macro || constant) && names_depth(tokens_[k].text) && (macro || declared_constant(k))) {
        add(SiteKind::kDepth, tokens_[k].line, 0, tokens_[k].text);
      }
    }
  }

  // "constexpr int kStages =", "template <int kStages =", "const int stages =".
  bool declared_constant(std::size_t k) const {
    for (std::size_t n = k; n-- > 0 && k - n < 30;) {
      if (is(n, ";") || is(n, "}") || is(n, "{") || is(n, ")")) return false;
      if (is(n, "constexpr") || is(n, "const") || is(n, "template") || is(n, "enum")) return true;
    }
    return false;
  }

  std::size_t launch_end(std::size_t open) const {
    for (std::size_t k = open; k < tokens_.size(); ++k) {
      if (is(k, ";")) return k;
    }
    return open;
  }

  // Calls of the runtime in the blocks around a launch: of each kind those of the innermost block.
  void host_calls(std::size_t launch) {
    constexpr int kBlocks = 3;
    std::set<SiteKind> settled;
    std::size_t open = launch;
    for (int level = 0; level < kBlocks; ++level) {
      int depth = 0;
      while (open > 0 && (depth > 0 || !is(open, "{"))) {
        if (is(open, "}")) ++depth;
        if (is(open, "{")) --depth;
        --open;
        if (depth == 0 && is(open, "{")) break;
      }
      if (!is(open, "{")) return;
      std::set<SiteKind> here;
      const std::size_t end = closing(open);
      for (std::size_t k = open; k < end; ++k) {
        const std::optional<SiteKind> kind =
            is(k + 1, "(") ? host_call(tokens_[k].text) : std::nullopt;
        if (!kind || settled.count(*kind) != 0) continue;
        add(*kind, tokens_[k].line, 0, tokens_[k].text);
        here.insert(*kind);
      }
      settled.merge(here);
      if (open == 0) return;
      --open;
    }
  }

  static std::optional<SiteKind> host_call(std::string_view name) {
    if (!name.starts_with("cuda") && !name.starts_with("cu")) return std::nullopt;
    if (contains(name, "Memcpy") || contains(name, "Memset")) return SiteKind::kCopy;
    if (contains(name, "Synchronize")) return SiteKind::kSync;
    const bool allocates = contains(name, "Malloc") || contains(name, "Free") ||
                           contains(name, "HostAlloc") || contains(name, "MemAlloc");
    return allocates ? std::optional(SiteKind::kAllocate) : std::nullopt;
  }

  // What the arguments of a launch that opens at `open` are computed from.
  void arguments(std::size_t open) {
    constexpr std::array kKinds = {SiteKind::kGrid, SiteKind::kBlock, SiteKind::kShared};
    std::size_t which = 0;
    int depth = 0;
    for (std::size_t k = open + 1; k < tokens_.size() && which < kKinds.size(); ++k) {
      if (is(k, ">>>") || is(k, ";")) return;
      if (is(k, "(") || is(k, "{")) ++depth;
      if (is(k, ")") || is(k, "}")) --depth;
      if (is(k, ",") && depth == 0) ++which;
      if (is_name(k) && which < kKinds.size()) source_of(k, kKinds[which], open);
    }
  }

  // Where the name at `use` was last given a value before the launch.
  void source_of(std::size_t use, SiteKind kind, std::size_t launch) {
    const std::string_view name = tokens_[use].text;
    if (is_keyword(name) || is(use + 1, "::")) return;
    for (std::size_t k = launch; k-- > 1;) {
      if (!is(k, name) || k >= use) continue;
      const bool member = is(k - 1, ".") || is(k - 1, "->");
      const bool given = is(k + 1, "=") || is(k + 1, "+=") || is(k + 1, "*=") ||
                         ((is(k + 1, "(") || is(k + 1, "{")) && (is_name(k - 1) || is(k - 1, ",")));
      const bool type = is(k - 1, "struct") || is(k - 1, "class") || is(k - 1, "namespace");
      if (member || !given || type || is(k - 1, "return")) continue;
      add(kind, tokens_[k].line, 0, name);
      return;
    }
  }

  // Launches by calls of the runtime that name the kernel; failing those, other uses of its name.
  void runtime_launches() {
    std::size_t found = 0;
    for (const bool launch : {true, false}) {
      for (std::size_t k = 0; k < tokens_.size() && found < kMostLaunches; ++k) {
        if (!is(k, kernel_)) continue;
        const std::string_view call = call_around(k);
        const bool launches = contains(call, "aunch");
        const bool asks = contains(call, "cudaFunc") || contains(call, "Occupancy") ||
                          contains(call, "cuFunc") || contains(call, "__global__");
        if (call.empty() || asks || launches != launch) continue;
        ++found;
        add(SiteKind::kLaunch, tokens_[k].line);
        host_calls(k);
        for (const auto& [member, kind] :
             {std::pair{"gridDim", SiteKind::kGrid}, std::pair{"blockDim", SiteKind::kBlock},
              std::pair{"dynamicSmemBytes", SiteKind::kShared}}) {
          for (std::size_t n = k; n-- > 1;) {
            if (!is(n, member) || !is(n - 1, ".") || is(n + 1, ".")) continue;
            add(kind, tokens_[n].line);
            break;
          }
        }
      }
      if (found > 0) return;
    }
  }

  // The name of the call that has the token at `k` among its arguments.
  std::string_view call_around(std::size_t k) const {
    int depth = 0;
    for (std::size_t n = k; n-- > 1 && k - n < 60;) {
      if (is(n, ";") || is(n, "}") || is(n, "{")) return "";
      if (is(n, ")")) ++depth;
      if (is(n, "(") && depth-- == 0) {
        const std::string_view name = is_name(n - 1) ? tokens_[n - 1].text : "";
        if (contains(name, "aunch") || contains(name, "Func") || contains(name, "Occupancy")) {
          return name;
        }
        if (!name.empty() && !is_keyword(name)) return name;
        depth = 0;
      }
    }
    return "";
  }

  const std::string& file_;
  std::vector<std::string> lines_;
  std::vector<SourceToken> tokens_;
  std::string kernel_;
  std::vector<SourceSite> sites_;
};

}  // namespace

std::string kernel_base_name(std::string_view demangled) {
  // The parameters begin at the first parenthesis outside template arguments.
  int depth = 0;
  std::size_t end = demangled.size();
  std::size_t begin = 0;
  for (std::size_t k = 0; k < demangled.size(); ++k) {
    const char c = demangled[k];
    if (c == '<') {
      if (depth++ == 0) end = std::min(end, k);
    } else if (c == '>') {
      --depth;
    } else if (depth == 0 && c == '(') {
      if (demangled.substr(k).starts_with("(anonymous namespace)")) {
        k += std::string_view("(anonymous namespace)").size() - 1;
        continue;
      }
      end = std::min(end, k);
      break;
    } else if (depth == 0 && (c == ':' || c == ' ')) {
      begin = k + 1;
      end = demangled.size();
    }
  }
  return end > begin ? std::string(demangled.substr(begin, end - begin)) : std::string();
}

std::vector<SourceSite> kernel_sites(const std::string& file, std::string_view text,
                                     const std::string& kernel) {
  if (kernel.empty() || text.find(kernel) == std::string_view::npos) return {};
  Scanner scanner(file, text, kernel);
  if (!scanner.define()) return {};
  scanner.launches();
  return scanner.sites();
}

std::vector<SourceSite> launch_sites(const std::string& file, std::string_view text,
                                     const std::string& kernel) {
  if (kernel.empty() || text.find(kernel) == std::string_view::npos) return {};
  Scanner scanner(file, text, kernel);
  scanner.launches();
  return scanner.sites();
}

}  // namespace kernelpro
