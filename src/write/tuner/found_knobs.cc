// SPDX-License-Identifier: Apache-2.0
#include "write/tuner/found_knobs.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "core/candidate/c_tokens.h"
#include "core/candidate/knobs.h"

namespace kernelpro {

namespace {

using Kind = CToken::Kind;
using Tokens = std::vector<CToken>;

constexpr std::size_t kMostNamed = 4;  // knobs from named constants. Own
constexpr long long kWarp = 32, kMostThreads = 1024;
constexpr long long kLeastLiteral = 8;  // smaller numbers in a launch mean many things elsewhere

// What a constant's name says that it counts. Words are those of the name in lower case; "thread"
// also stands for "threads".
struct Meaning {
  std::string_view tag;
  long long least, most;
  std::vector<std::string_view> words;
};
const Meaning kMeanings[] = {
    {"unroll", 1, 32, {"unroll", "ilp", "items", "per", "coarsening", "coarsen"}},
    {"vectorize", 1, 16, {"vec", "vector", "simd"}},
    {"pipeline", 1, 8, {"stage", "stages", "buffers", "prefetch"}},
    {"block-size", kWarp, kMostThreads, {"threads", "thread", "tpb", "blockdim", "nthreads"}},
    {"tile-size",
     1,
     4096,
     {"tile", "blk", "block", "bsize", "chunk", "strip", "panel", "bm", "bn", "bk", "tm", "tn",
      "tk", "mc", "nc", "kc", "mr", "nr"}},
};
// These name what the machine or the problem gives.
constexpr std::string_view kFixed[] = {"warp", "warpsize", "lane", "lanes", "mask"};

// "kTileRows", "TILE_ROWS" -> tile, rows
std::vector<std::string> name_words(std::string_view name) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool upper = std::isupper(static_cast<unsigned char>(name[i])) != 0;
    const bool after_lower = i > 0 && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (name[i] == '_' || (upper && after_lower)) words.emplace_back();
    if (name[i] != '_')
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  std::erase_if(words, [](const std::string& word) { return word.empty() || word == "k"; });
  return words;
}

const Meaning* meaning_of(std::string_view name) {
  const std::vector<std::string> words = name_words(name);
  const auto any = [&](const auto& list) {
    return std::any_of(std::begin(list), std::end(list), [&](std::string_view each) {
      return std::find(words.begin(), words.end(), each) != words.end();
    });
  };
  if (any(kFixed)) return nullptr;
  for (const Meaning& meaning : kMeanings) {
    if (any(meaning.words)) return &meaning;
  }
  return nullptr;
}

std::optional<long long> integer(const CToken& token) {
  long long number = 0;
  const std::string_view text = token.text;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (token.kind != Kind::kNumber || error != std::errc()) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  return rest.empty() || rest == "u" || rest == "U" ? std::optional(number) : std::nullopt;
}

bool word(const CToken& token, std::string_view text) {
  return token.kind == Kind::kWord && token.text == text;
}
bool sign(const CToken& token, std::string_view text) {
  return token.kind == Kind::kSign && token.text == text;
}

// Rising; a quarter to four times the original, in whole numbers.
std::vector<long long> around(long long value, long long least, long long most) {
  std::set<long long> all = {value};
  for (const long long each : {value / 4, value / 2, value * 2, value * 4}) {
    if (each >= least && each <= most) all.insert(each);
  }
  return {all.begin(), all.end()};
}

std::string listed(const std::vector<long long>& values) {
  std::string text;
  for (const long long value : values) text += " " + std::to_string(value);
  return text;
}

class Finder {
 public:
  Finder(const Candidate& candidate, const KnobSite& site)
      : source_(candidate.source), site_(site), tokens_(c_tokens(source_)) {
    gpu_ = candidate.language != Language::kCpp;
    for (const CToken& token : tokens_) {
      if (token.kind == Kind::kWord) names_.insert(std::string(token.text));
    }
  }

  std::optional<FoundKnobs> find() {
    named_constants();
    if (gpu_) block_sizes();
    inner_loops();
    if (!gpu_) {
      parallel_loops();
      sums_and_vectors();
    }
    if (found_.what.empty()) return std::nullopt;
    found_.source = edited();
    const auto knobs = parse_knobs(found_.source, site_.reserved);
    if (!knobs || knobs->size() != found_.what.size()) return std::nullopt;
    return std::move(found_);
  }

 private:
  struct Edit {
    std::size_t at = 0, size = 0;
    std::string text;
  };

  // A name that neither the source nor the task uses.
  std::string free_name(const std::string& wanted) {
    std::string name = wanted;
    const auto taken = [&] {
      return names_.contains(name) || !name_problem(name).empty() ||
             std::find(site_.reserved.begin(), site_.reserved.end(), name) != site_.reserved.end();
    };
    for (int n = 2; taken(); ++n) name = wanted + "_KNOB" + (n > 2 ? std::to_string(n) : "");
    return name;
  }

  void declare(const std::string& name, const std::string& values, std::string_view tag,
               const std::string& original, const std::string& what) {
    names_.insert(name);
    declarations_ += "// @knob " + name + values + " : " + std::string(tag) + "\n";
    found_.values[name] = original;
    found_.what.push_back(name + " (" + what + ")");
  }

  // constexpr int kTile = 32;   int threads = 256;   #define TILE 32
  void named_constants() {
    for (std::size_t i = 0; i + 2 < tokens_.size() && found_.what.size() < kMostNamed; ++i) {
      if (tokens_[i].kind == Kind::kWord && sign(tokens_[i + 1], "=") && i + 3 < tokens_.size() &&
          sign(tokens_[i + 3], ";") && i > 0 && tokens_[i - 1].kind == Kind::kWord) {
        const auto value = integer(tokens_[i + 2]);
        if (value && is_integer_type(i)) constant(tokens_[i].text, *value, tokens_[i + 2]);
      }
    }
    for (const CToken& token : tokens_) {
      if (token.kind != Kind::kDirective || found_.what.size() >= kMostNamed) continue;
      const Tokens inside = c_tokens(token.text.substr(1));
      if (inside.size() != 3 || !word(inside[0], "define")) continue;
      const auto value = integer(inside[2]);
      if (value) macro(inside[1].text, *value, token);
    }
  }

  // Of the declaration whose name is token `i`: nothing but words that make an integer type.
  bool is_integer_type(std::size_t i) const {
    static const std::set<std::string_view> kWords = {
        "constexpr", "const", "static", "inline",  "auto",     "int",     "unsigned",
        "long",      "short", "size_t", "int32_t", "uint32_t", "int64_t", "uint64_t"};
    static const std::set<std::string_view> kAuto = {"constexpr", "const", "static", "inline",
                                                     "auto"};
    bool typed = false;
    while (i-- > 0 && (tokens_[i].kind == Kind::kWord || sign(tokens_[i], "::"))) {
      if (sign(tokens_[i], "::") || word(tokens_[i], "std")) continue;
      if (!kWords.contains(tokens_[i].text)) return false;
      typed = typed || !kAuto.contains(tokens_[i].text) || word(tokens_[i], "auto");
    }
    return typed;
  }

  void constant(std::string_view name, long long value, const CToken& number) {
    const Meaning* meaning = meaning_of(name);
    if (meaning == nullptr || value < meaning->least || value > meaning->most) return;
    std::string knob = join_upper(name_words(name));
    knob = free_name(knob.empty() ? "SIZE" : knob);
    edits_.push_back({number.at, number.text.size(), knob});
    declare(knob, listed(around(value, meaning->least, meaning->most)), meaning->tag,
            std::to_string(value), "the constant " + std::string(name));
  }

  void macro(std::string_view name, long long value, const CToken& directive) {
    const Meaning* meaning = meaning_of(name);
    const std::string knob(name);
    if (meaning == nullptr || value < meaning->least || value > meaning->most) return;
    if (!name_problem(knob).empty() || found_.values.contains(knob)) return;
    edits_.push_back({directive.at, directive.text.size(), "// " + knob + " is a knob."});
    declare(knob, listed(around(value, meaning->least, meaning->most)), meaning->tag,
            std::to_string(value), "the constant " + knob);
  }

  static std::string join_upper(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& each : words) text += (text.empty() ? "" : "_") + each;
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
  }

  // The numbers of threads at launches: kernel<<<grid, 256>>>, dim3 block(16, 16), and the third
  // argument of KP_LAUNCH. Every equal number of the source goes with them, the one below it, as in
  // (n + 255) / 256, and its half, with which a reduction begins.
  void block_sizes() {
    std::set<long long> numbers;
    bool square = false;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      std::vector<long long> sides;
      if (sign(tokens_[i], "<<<")) sides = sides_of(argument(i, 1, ">>>"));
      if (word(tokens_[i], "KP_LAUNCH") && i + 1 < tokens_.size()) {
        sides = sides_of(argument(i + 1, 2, ")"));
      }
      square = square || std::count_if(sides.begin(), sides.end(),
                                       [](long long side) { return side > 1; }) > 1;
      numbers.insert(sides.begin(), sides.end());
    }
    for (const long long number : numbers) {
      const long long most = square ? kWarp : kMostThreads;
      const long long least = square ? kLeastLiteral : kWarp;
      if (number < least || number > most || site_.sizes.contains(number)) continue;
      if (!square && number == kWarp) continue;  // 32 means a warp's lanes elsewhere
      std::string knob = free_name("BLOCK");
      for (std::size_t i = 0; i < tokens_.size(); ++i) {
        const CToken& token = tokens_[i];
        const auto value = integer(token);
        if (value == number) edits_.push_back({token.at, token.text.size(), knob});
        if (value == number - 1) {
          edits_.push_back({token.at, token.text.size(), "(" + knob + " - 1)"});
        }
        const bool set = i > 0 && sign(tokens_[i - 1], "=");  // int k = 128
        if (set && !square && number > kWarp && value == number / 2) {
          edits_.push_back({token.at, token.text.size(), "(" + knob + " / 2)"});
        }
      }
      declare(knob, listed(around(number, least, most)), "block-size", std::to_string(number),
              "blocks of " + std::to_string(number) + (square ? " on a side" : " threads"));
    }
  }

  // The tokens of argument `n` of the list that begins at the bracket `open`.
  Tokens argument(std::size_t open, std::size_t n, std::string_view close) const {
    Tokens found;
    int depth = 0;
    for (std::size_t i = open + 1; i < tokens_.size(); ++i) {
      const CToken& token = tokens_[i];
      if (depth == 0 && (sign(token, close) || sign(token, ";"))) break;
      if (sign(token, "(") || sign(token, "{") || sign(token, "[")) ++depth;
      if (sign(token, ")") || sign(token, "}") || sign(token, "]")) --depth;
      if (depth == 0 && sign(token, ",")) {
        if (n-- == 0) break;
        continue;
      }
      if (n == 0) found.push_back(token);
    }
    return found;
  }

  // The numbers in 256, dim3(16, 16) or kp::dim(128), or in the declaration of a named dim3.
  std::vector<long long> sides_of(const Tokens& argument) const {
    std::vector<long long> sides;
    if (argument.size() == 1 && argument[0].kind == Kind::kWord) {
      for (std::size_t i = 0; i + 2 < tokens_.size(); ++i) {
        if (!word(tokens_[i], "dim3") || tokens_[i + 1].text != argument[0].text) continue;
        const bool round = sign(tokens_[i + 2], "(");
        for (std::size_t n = 0; n < 3; ++n) {
          for (const CToken& token : this->argument(i + 2, n, round ? ")" : "}")) {
            if (const auto side = integer(token)) sides.push_back(*side);
          }
        }
      }
      return sides;
    }
    for (const CToken& token : argument) {
      if (const auto side = integer(token)) sides.push_back(*side);
      if (sign(token, "*") || sign(token, "+") || sign(token, "/")) return {};  // computed
    }
    return sides;
  }

  // `for` loops without a loop inside, at the beginning of their lines. 0 leaves a loop to the
  // compiler; a number that the source gave stands for it.
  void inner_loops() {
    struct Loop {
      std::size_t at;
      const CToken* pragma;  // that unrolls it, or null
    };
    std::vector<Loop> loops;
    long long given = 0;
    bool several = false;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (!word(tokens_[i], "for") || has_loop_inside(i)) continue;
      const CToken* before =
          i > 0 && tokens_[i - 1].kind == Kind::kDirective ? &tokens_[i - 1] : nullptr;
      if (before != nullptr && contains(before->text, "unroll")) {
        const Tokens inside = c_tokens(before->text.substr(1));
        const auto number = inside.empty() ? std::nullopt : integer(inside.back());
        if (!number) continue;  // entirely, or by an expression: the author decided
        several = several || (given != 0 && given != *number);
        given = *number;
        loops.push_back({tokens_[i].at, before});
        continue;
      }
      if (before != nullptr && contains(before->text, "pragma")) continue;
      const std::size_t line = source_.rfind('\n', tokens_[i].at);
      const std::size_t begin = line == std::string::npos ? 0 : line + 1;
      if (!trim(std::string_view(source_).substr(begin, tokens_[i].at - begin)).empty()) continue;
      loops.push_back({begin, nullptr});
    }
    if (given != 0) std::erase_if(loops, [](const Loop& loop) { return loop.pragma == nullptr; });
    if (loops.empty() || several) return;
    const std::string knob = free_name("UNROLL");
    const std::string constant = free_name("kUnrollBy");
    const std::string pragma = std::string("#pragma ") + (gpu_ ? "unroll " : "GCC unroll ");
    for (const Loop& loop : loops) {
      if (loop.pragma != nullptr) {
        edits_.push_back({loop.pragma->at, loop.pragma->text.size(), pragma + constant});
      } else {
        edits_.push_back({loop.at, 0, "#if " + knob + " > 0\n" + pragma + constant + "\n#endif\n"});
      }
    }
    prologue_ += "constexpr int " + constant + " = " + knob + ";\n";
    const std::string values = given != 0 ? listed(around(given, 1, 64)) : " 0 2 4 8 16";
    declare(knob, values, "unroll", std::to_string(given), how_many(loops.size(), "inner loop"));
  }

  // Whether the body of the `for` at token `i` has a loop.
  bool has_loop_inside(std::size_t i) const {
    int depth = 0;
    std::size_t at = i + 1;
    for (; at < tokens_.size(); ++at) {  // over the head
      if (sign(tokens_[at], "(")) ++depth;
      if (sign(tokens_[at], ")") && --depth == 0) break;
    }
    depth = 0;
    for (++at; at < tokens_.size(); ++at) {
      const CToken& token = tokens_[at];
      if (word(token, "for") || word(token, "while") || word(token, "do")) return true;
      if (sign(token, "{")) ++depth;
      if (sign(token, "}") && --depth <= 0) return false;
      if (sign(token, ";") && depth == 0) return false;
    }
    return true;  // not understood
  }

  // #pragma omp parallel for
  void parallel_loops() {
    std::vector<const CToken*> loops;
    for (const CToken& token : tokens_) {
      if (token.kind != Kind::kDirective) continue;
      const std::vector<std::string> words = kernelpro::words(std::string(token.text.substr(1)));
      const auto has = [&](std::string_view text) {
        return std::any_of(words.begin(), words.end(),
                           [&](const std::string& each) { return each.starts_with(text); });
      };
      if (!has("omp") || !has("parallel") || !has("for") || has("schedule") || has("num_threads")) {
        continue;
      }
      loops.push_back(&token);
    }
    if (loops.empty()) return;
    const std::string what = how_many(loops.size(), "parallel loop");
    const std::string schedule = free_name("SCHEDULE");
    std::string clauses = " schedule(" + schedule + ")";
    declare(schedule, " static dynamic guided", "work-distribution", "static", what);
    if (site_.processors > 1) {
      const std::string threads = free_name("THREADS");
      std::set<long long> counts = {site_.processors, site_.processors / 2, 2LL * site_.processors};
      clauses += " num_threads(" + threads + ")";
      declare(threads, listed({counts.begin(), counts.end()}), "threads",
              std::to_string(site_.processors), what);
    }
    for (const CToken* loop : loops) {
      std::size_t end = loop->text.find("//");
      end = std::min(end, loop->text.size());
      while (end > 0 && std::isspace(static_cast<unsigned char>(loop->text[end - 1]))) --end;
      edits_.push_back({loop->at + end, 0, clauses});
    }
  }

  // What the contract leaves free: sums in any order, without the special cases of negative zero
  // and of traps. NaN and infinity stay as they are.
  void sums_and_vectors() {
    if (!names_.contains("for") && !names_.contains("while")) return;
    if (contains(source_, "#pragma GCC optimize") || contains(source_, "#pragma GCC target"))
      return;
    const bool sums = std::any_of(tokens_.begin(), tokens_.end(), [](const CToken& token) {
      return sign(token, "+=") || sign(token, "-=");
    });
    if (sums) {
      const std::string order = free_name("REORDER");
      prologue_ += "#if " + order +
                   "\n#pragma GCC optimize(\"associative-math\", \"no-signed-zeros\", "
                   "\"no-trapping-math\")\n#endif\n";
      declare(order, " 0 1", "vectorize", "0", "sums in any order");
    }
    if (!contains(site_.instruction_sets, "AVX-512")) return;
    const std::string width = free_name("VECTOR_BITS");
    for (const char* bits : {"256", "512"}) {
      prologue_ += "#if " + width + " == " + bits +
                   "\n#pragma GCC target(\"prefer-vector-width=" + bits + "\")\n#endif\n";
    }
    declare(width, " 0 256 512", "vectorize", "0", "the compiler's vectors; 0: its own choice");
  }

  std::string edited() {
    const std::size_t header = header_block_end(source_);
    edits_.push_back({header, 0, prologue_});
    std::stable_sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) {
      return std::pair(a.at, a.size) < std::pair(b.at, b.size);
    });
    std::string text = declarations_;
    std::size_t done = 0;
    for (const Edit& edit : edits_) {
      if (edit.at < done) continue;
      text += source_.substr(done, edit.at - done) + edit.text;
      done = edit.at + edit.size;
    }
    return text + source_.substr(done);
  }

  const std::string& source_;
  const KnobSite& site_;
  Tokens tokens_;
  bool gpu_ = false;
  std::set<std::string> names_;
  std::vector<Edit> edits_;
  std::string declarations_, prologue_;
  FoundKnobs found_;
};

}  // namespace

std::optional<FoundKnobs> find_knobs(const Candidate& candidate, const KnobSite& site) {
  if (language_row(candidate.language).in_python) return std::nullopt;
  if (!annotations(candidate.source, "@knob").empty()) return std::nullopt;
  return Finder(candidate, site).find();
}

}  // namespace kernelpro
