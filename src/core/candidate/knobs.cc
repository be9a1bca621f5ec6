// SPDX-License-Identifier: Apache-2.0
#include "core/candidate/knobs.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"
#include "core/candidate/requirements.h"

namespace kernelpro {

namespace {

// Keywords and alternative tokens of C++20, the names of CUDA C++, task.h and the plan form. A
// #define of any of them would change the surrounding code.
constexpr std::string_view kReservedNames =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
    "char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default defined delete do double dynamic_cast else enum explicit "
    "export extern false final float for friend goto if import include inline int long module "
    "mutable namespace new noexcept not not_eq nullptr operator or or_eq override pragma private "
    "protected public register reinterpret_cast requires restrict return short signed sizeof "
    "static static_assert static_cast struct switch template this thread_local throw true try "
    "typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq "
    "std main size_t ptrdiff_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t "
    "threadIdx blockIdx blockDim gridDim warpSize half nv_bfloat16 cudaStream_t dim3 min max "
    "Args ReferenceArgs launch reference arg args stream workspace dim Dim3 Address Parameter Step "
    "StepHeader Convert launch_step memset_step "
    "NULL EOF INFINITY NAN HUGE_VAL HUGE_VALF BUFSIZ RAND_MAX CHAR_BIT CHAR_MIN CHAR_MAX SCHAR_MIN "
    "SCHAR_MAX UCHAR_MAX SHRT_MIN SHRT_MAX USHRT_MAX INT_MIN INT_MAX UINT_MAX LONG_MIN LONG_MAX "
    "ULONG_MAX LLONG_MIN LLONG_MAX ULLONG_MAX SIZE_MAX PTRDIFF_MAX errno assert offsetof stdin "
    "stdout stderr linux unix WORKSPACE_BYTES M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 "
    "M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2";

// Prefixes of names that headers define in large numbers: our own, the limits of <climits>,
// <cfloat>, <cstdint> and <cmath>, and CUDA's.
constexpr std::string_view kReservedPrefixes[] = {
    "KP_",    "kp_",    "kp",      "FLT_",   "DBL_",    "LDBL_",   "INT8_",
    "INT16_", "INT32_", "INT64_",  "UINT8_", "UINT16_", "UINT32_", "UINT64_",
    "FP_",    "CUDA_",  "CUDART_", "cuda",   "NVRTC_"};

const std::set<std::string, std::less<>>& reserved_names() {
  static const std::set<std::string, std::less<>> names = [] {
    const std::vector<std::string> list = words(kReservedNames);
    return std::set<std::string, std::less<>>(list.begin(), list.end());
  }();
  return names;
}

}  // namespace

std::string name_problem(std::string_view name) {
  if (!is_identifier(name))
    return "it is not a C identifier (letters, digits and _, no leading digit)";
  if (contains(name, "__") ||
      (name.size() > 1 && name[0] == '_' && std::isupper(static_cast<unsigned char>(name[1])))) {
    return "names with a double underscore or with _ and a capital belong to the compiler";
  }
  if (reserved_names().contains(name)) return "C++, the CUDA headers or task.h already use it";
  for (const std::string_view prefix : kReservedPrefixes) {
    if (name.starts_with(prefix)) {
      return "names that begin with " + std::string(prefix) + " belong to task.h or its headers";
    }
  }
  return "";
}

namespace {

// One line of a source: its code without comments, and its comment if it holds nothing else.
struct SourceLine {
  std::size_t end = 0;       // offset after its line end
  std::string code;          // without comments
  std::string_view comment;  // text after // of a line that holds nothing else
  bool continues = false;    // ends inside a block comment or raw string, or with a backslash
};

// Splits a source into lines, aware of comments, literals and raw strings.
class LineScanner {
 public:
  explicit LineScanner(std::string_view source) : source_(source) {}

  bool next(SourceLine* line) {
    if (at_ >= source_.size()) return false;
    *line = SourceLine{};
    std::size_t end = source_.find('\n', at_);
    line->end = end == std::string_view::npos ? source_.size() : end + 1;
    scan(source_.substr(at_, std::min(end, source_.size()) - at_), line);
    at_ = line->end;
    return true;
  }

 private:
  void scan(std::string_view text, SourceLine* line) {
    const bool inside = in_block_ || !raw_end_.empty();
    for (std::size_t i = 0; i < text.size();) {
      const std::string_view rest = text.substr(i);
      if (in_block_ || !raw_end_.empty()) {
        const std::string_view closing = in_block_ ? std::string_view("*/") : raw_end_;
        const std::size_t close = rest.find(closing);
        if (!in_block_) line->code += '"';
        if (close == std::string_view::npos) break;
        i += close + closing.size();
        in_block_ = false;
        raw_end_.clear();
      } else if (rest.starts_with("//")) {
        if (trim(line->code).empty() && !inside) line->comment = rest.substr(2);
        break;
      } else if (rest.starts_with("/*")) {
        in_block_ = true;
        line->code += ' ';
        i += 2;
      } else {
        i += literal_or_char(rest, line);
      }
    }
    line->continues = in_block_ || !raw_end_.empty() || trim(text).ends_with('\\');
  }

  // Consumes a string or character literal (or opens a raw string), else one character.
  std::size_t literal_or_char(std::string_view rest, SourceLine* line) {
    std::size_t size = 1;
    if (rest.starts_with("R\"") && rest.find('(') != std::string_view::npos) {
      const std::size_t open = rest.find('(');
      raw_end_ = ")" + std::string(rest.substr(2, open - 2)) + "\"";
      size = open + 1;
    } else if (rest[0] == '"' || (rest[0] == '\'' && !digit_separator(line->code))) {
      while (size < rest.size() && rest[size] != rest[0]) size += rest[size] == '\\' ? 2 : 1;
      size = std::min(size + 1, rest.size());
    }
    line->code += rest.substr(0, size);
    return size;
  }

  static bool digit_separator(const std::string& code) {
    return !code.empty() && std::isalnum(static_cast<unsigned char>(code.back()));
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool in_block_ = false;
  std::string raw_end_;
};

// An integer, a floating number or a name, with an optional sign.
bool is_value(std::string_view value) {
  if (value.starts_with('-') || value.starts_with('+')) value.remove_prefix(1);
  if (value.empty()) return false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.') continue;
    const bool exponent = i > 0 && contains("eEpP", value.substr(i - 1, 1)) &&
                          std::isdigit(static_cast<unsigned char>(value[0]));
    if (!exponent || (c != '+' && c != '-')) return false;
  }
  return true;
}

bool is_tag(std::string_view tag) {
  return std::all_of(tag.begin(), tag.end(), [](char c) {
    return std::islower(static_cast<unsigned char>(c)) ||
           std::isdigit(static_cast<unsigned char>(c)) || c == '-';
  });
}

tl::unexpected<Error> wrong_knob(int line, const std::string& what, std::string next) {
  return fail(ErrorKind::kBadInput, "line " + std::to_string(line) + ": " + what, std::move(next));
}

Result<Knob> parse_knob(std::string_view declaration, int line) {
  const std::size_t colon = declaration.find(':');
  std::vector<std::string> tokens = words(declaration.substr(0, colon));
  if (tokens.empty()) {
    return wrong_knob(line, "a @knob without a name", "write // @knob NAME value value : tag");
  }
  Knob knob;
  knob.line = line;
  knob.name = tokens[0];
  knob.values.assign(tokens.begin() + 1, tokens.end());
  const std::string who = "the knob " + printable(knob.name);
  if (const std::string problem = name_problem(knob.name); !problem.empty()) {
    return wrong_knob(line, who + " cannot have this name: " + problem, "choose another name");
  }
  if (knob.values.empty()) {
    return wrong_knob(
        line, who + " has no values",
        "list at least one value, the default first: // @knob " + knob.name + " 16 32");
  }
  std::set<std::string> seen;
  for (const std::string& value : knob.values) {
    if (!is_value(value)) {
      return wrong_knob(line, who + " has the value \"" + printable(value) + "\"",
                        "give numbers or names such as 16, 4u, 0.5f or float4, between spaces");
    }
    if (!seen.insert(value).second) {
      return wrong_knob(line, who + " lists the value " + value + " twice", "list each value once");
    }
  }
  if (colon == std::string_view::npos) return knob;
  const std::string tags = replace_all(std::string(declaration.substr(colon + 1)), ",", " ");
  knob.tags = words(replace_all(tags, "_", "-"));  // a matter of spelling
  // Other words make it a remark: not worth a kernel.
  if (!std::all_of(knob.tags.begin(), knob.tags.end(), is_tag)) knob.tags.clear();
  return knob;
}

}  // namespace

std::vector<Annotation> annotations(std::string_view source, std::string_view word) {
  std::vector<Annotation> all;
  LineScanner scanner(source);
  SourceLine line;
  for (int number = 1; scanner.next(&line); ++number) {
    std::string_view comment = trim(line.comment);
    if (!comment.starts_with(word)) continue;
    comment.remove_prefix(word.size());
    if (!comment.empty() && comment[0] != ' ' && comment[0] != '\t') continue;
    all.push_back({std::string(trim(comment)), number});
  }
  return all;
}

Result<std::vector<Knob>> parse_knobs(std::string_view source,
                                      const std::vector<std::string>& reserved) {
  std::vector<Knob> knobs;
  for (const auto& [text, number] : annotations(source, "@knob")) {
    KP_ASSIGN(Knob knob, parse_knob(text, number));
    if (std::find(reserved.begin(), reserved.end(), knob.name) != reserved.end()) {
      return wrong_knob(number, "the knob " + knob.name + " has the name of a task's constant",
                        "choose another name; task.h already gives " + knob.name + " a value");
    }
    const auto other = std::find_if(knobs.begin(), knobs.end(),
                                    [&](const Knob& each) { return each.name == knob.name; });
    if (other == knobs.end()) {
      knobs.push_back(std::move(knob));
      continue;
    }
    if (other->values != knob.values) {
      return wrong_knob(number,
                        "the knob " + knob.name + " is declared with other values in line " +
                            std::to_string(other->line),
                        "declare it once, or with the same values in the same order");
    }
    if (other->tags.empty()) other->tags = std::move(knob.tags);
  }
  KP_ASSIGN(const Requirements requirements, Requirements::parse(source, knobs));
  const std::string broken = requirements.broken(default_values(knobs));
  if (!broken.empty()) {
    return fail(ErrorKind::kBadInput,
                "the first values of the knobs do not meet `@require " + broken + "`",
                "order the values so that those that come first, the defaults, go together");
  }
  return knobs;
}

KnobValues default_values(const std::vector<Knob>& knobs) {
  KnobValues values;
  for (const Knob& knob : knobs) values[knob.name] = knob.values.front();
  return values;
}

namespace {

Result<KnobValues> values_with(const std::string& source, const std::vector<Knob>& knobs,
                               const KnobValues& chosen) {
  KnobValues values = default_values(knobs);
  for (const auto& [name, value] : chosen) {
    const auto knob = std::find_if(knobs.begin(), knobs.end(),
                                   [&](const Knob& each) { return each.name == name; });
    if (knob == knobs.end()) {
      std::vector<std::string> names;
      for (const Knob& each : knobs) names.push_back(each.name);
      return fail(ErrorKind::kBadInput, "the kernel declares no knob " + name,
                  names.empty() ? "declare one: // @knob " + name + " " + value
                                : "its knobs are: " + join_text(names, " "));
    }
    if (std::find(knob->values.begin(), knob->values.end(), value) == knob->values.end()) {
      return fail(ErrorKind::kBadInput, "the knob " + name + " has no value " + value,
                  "its values are: " + join_text(knob->values, " "));
    }
    values[name] = value;
  }
  if (chosen.empty()) return values;  // parse_knobs has checked these
  KP_ASSIGN(const auto requirements, Requirements::parse(source, knobs));
  if (const std::string broken = requirements.broken(values); !broken.empty()) {
    return fail(ErrorKind::kBadInput,
                "these values of the knobs do not meet the kernel's `@require " + broken + "`",
                "choose others that do");
  }
  return values;
}

}  // namespace

Result<Candidate> candidate_of(const Task& task, Language language, std::string source,
                               Origin origin, const KnobValues& chosen) {
  std::vector<Knob> knobs;
  if (language_row(language).knobs) {
    KP_ASSIGN(knobs, parse_knobs(source, reserved_names(task)));
  }
  KP_ASSIGN(auto values, values_with(source, knobs, chosen));
  return Candidate{language, std::move(source), std::move(values), std::move(origin)};
}

namespace {

struct Place {
  std::size_t offset = 0;
  int line = 1;  // number of the next line
};

// After the last leading #include, and after the #endif of a condition around it.
Place end_of_header_block(std::string_view source) {
  Place place;
  int depth = 0;           // #if nesting
  bool close = false;      // the last #include is inside a condition that is still open
  bool continued = false;  // this line continues the previous directive
  bool include = false;    // ... and that was an #include
  LineScanner scanner(source);
  SourceLine line;
  for (int number = 1; scanner.next(&line); ++number) {
    std::string_view code = trim(line.code);
    bool mark = continued && include;
    if (!continued && !code.empty()) {
      if (code[0] != '#') break;
      code = trim(code.substr(1));
      include = code.starts_with("include");
      if (code.starts_with("if")) ++depth;
      if (code.starts_with("endif")) --depth;
      mark = include || (close && depth == 0 && code.starts_with("endif"));
      if (include) close = depth > 0;
    }
    if (mark) place = {line.end, number + 1};
    continued = line.continues && (continued || !code.empty());
  }
  return place;
}

}  // namespace

std::size_t header_block_end(std::string_view source) { return end_of_header_block(source).offset; }

std::string apply_knobs(std::string_view source, const KnobValues& values,
                        std::string_view separator) {
  const Place place = end_of_header_block(source);
  std::string text(source.substr(0, place.offset));
  if (!text.empty() && text.back() != '\n') text += '\n';
  if (!separator.empty()) text += std::string(separator) + "\n";
  for (const auto& [name, value] : values) text += "#define " + name + " " + value + "\n";
  text += "#line " + std::to_string(place.line) + "\n";
  text += source.substr(place.offset);
  return text;
}

}  // namespace kernelpro
