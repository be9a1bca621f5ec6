// SPDX-License-Identifier: Apache-2.0
// References in double precision: from a CPU check function in the file, else from the entry's
// name, else empty. The CUDA one is the same code; if it is nothing but a loop, threads share the
// outermost iterations. If that was wrong, the cross-check of both references at a small case
// detects it.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "task/load/unfilled.h"
#include "task/scaffold/parts.h"

namespace kernelpro {

namespace {

using Kind = EntryParameter::Kind;

// A C function that computes the outputs; its parameters are the entry's, by `order`.
struct Definition {
  std::string name;
  std::vector<const EntryParameter*> order;
  std::vector<std::string> names;  // of its parameters, in that order
  std::string body;                // with braces, in the user's names
  std::string helpers;             // functions and macros that it uses
  bool guessed = false;            // from the name, or empty
  bool empty = false;
};

// "h_x", "x_cpu", "ref_x" -> "x"
std::string plain_name(std::string name) {
  name = small_letters(name);
  for (const char* prefix : {"h_", "host_", "ref_", "cpu_", "gold_", "d_", "in_", "p_"}) {
    if (name.starts_with(prefix)) name = name.substr(std::string_view(prefix).size());
  }
  for (const char* suffix : {"_h", "_host", "_ref", "_cpu", "_gold", "_d", "_ptr"}) {
    if (name.ends_with(suffix)) name.erase(name.size() - std::string_view(suffix).size());
  }
  return name;
}

bool same_sort(const EntryParameter& p, const CParameter& c) {
  if (p.kind == Kind::kStream || p.kind == Kind::kWorkspace || p.kind == Kind::kOther) return false;
  if (p.tensor() != (c.pointers > 0)) return false;
  if (p.kind == Kind::kDim) return c.type != "float" && c.type != "double" && c.type != "bool";
  return true;
}

// The entry's parameter for each of the function's; empty if they do not match.
std::vector<const EntryParameter*> match(const Entry& e, const CFunction& f) {
  std::vector<const EntryParameter*> order(f.parameters.size(), nullptr);
  std::set<const EntryParameter*> used;
  for (std::size_t i = 0; i < f.parameters.size(); ++i) {
    for (const EntryParameter& p : e.parameters) {
      if (order[i] != nullptr || used.contains(&p) || !same_sort(p, f.parameters[i])) continue;
      if (plain_name(p.source.name) != plain_name(f.parameters[i].name)) continue;
      order[i] = &p;
      used.insert(&p);
    }
  }
  for (std::size_t i = 0; i < f.parameters.size(); ++i) {  // the rest in order
    for (const EntryParameter& p : e.parameters) {
      if (order[i] != nullptr || used.contains(&p) || !same_sort(p, f.parameters[i])) continue;
      if (p.tensor() && f.parameters[i].is_const && p.kind == Kind::kOutput) continue;
      if (p.tensor() && !f.parameters[i].is_const && p.kind == Kind::kInput) continue;
      order[i] = &p;
      used.insert(&p);
    }
    if (order[i] == nullptr) return {};
  }
  for (const EntryParameter& p : e.parameters) {
    const bool needed = p.kind == Kind::kOutput || p.kind == Kind::kInOut;
    if (needed && !used.contains(&p)) return {};
  }
  return order;
}

bool sounds_right(const std::string& name) {
  const std::string n = small_letters(name);
  for (const char* word : {"cpu", "ref", "host", "gold", "naive", "serial", "expected"}) {
    if (contains(n, word)) return true;
  }
  return false;
}

// The file's functions and macros that `text` uses, in file order.
std::string helpers_for(const Entry& e, const CFunction& main) {
  std::set<std::string> words;
  const auto add_words = [&](std::string_view text) {
    for (const CToken& token : c_tokens(text)) {
      if (token.kind == CToken::Kind::kWord) words.insert(std::string(token.text));
    }
  };
  add_words(std::string_view(e.text).substr(main.begin, main.end - main.begin));
  std::set<const CFunction*> taken;
  for (bool more = true; more;) {
    more = false;
    for (const CFunction& f : e.functions) {
      if (!f.defined || f.kernel || f.name == main.name || f.name == "main" ||
          !words.contains(f.name) || !taken.insert(&f).second) {
        continue;
      }
      add_words(std::string_view(e.text).substr(f.begin, f.end - f.begin));
      more = true;
    }
  }
  std::string out;
  for (const CToken& token : c_tokens(e.text)) {
    if (token.kind != CToken::Kind::kDirective) continue;
    const std::vector<std::string> parts =
        split(replace_all(std::string(token.text), "(", " "), ' ');
    if (parts.size() < 2 || parts[0] != "#define" || !words.contains(parts[1])) continue;
    out += std::string(token.text) + "\n";
  }
  for (const CFunction& f : e.functions) {
    if (!taken.contains(&f)) continue;
    std::string text = e.text.substr(f.begin, f.end - f.begin);
    for (const char* word :
         {"__host__", "__device__", "__forceinline__", "__inline__", "static", "inline"}) {
      text = replace_word(text, word, "");
    }
    out += "KP_FUNCTION " + std::string(trim(text)) + "\n";
  }
  return out;
}

std::optional<Definition> from_check(const Entry& e) {
  for (const CFunction& f : e.functions) {
    if (!f.defined || f.kernel || f.device || f.name == "main" || f.name == e.function.name ||
        !sounds_right(f.name) || f.result != "void") {
      continue;
    }
    const std::string body = e.text.substr(f.body_begin, f.body_end - f.body_begin);
    if (contains(body, "<<<") || contains(body, "cudaM")) continue;
    Definition d;
    d.order = match(e, f);
    if (d.order.empty()) continue;
    d.name = f.name;
    for (const CParameter& p : f.parameters) d.names.push_back(p.name);
    d.body = body;
    d.helpers = helpers_for(e, f);
    return d;
  }
  return std::nullopt;
}

Definition from_name(const Entry& e) {
  Definition d;
  d.name = "define_" + e.function.name;
  d.guessed = true;
  for (const EntryParameter& p : e.parameters) {
    if (!p.tensor() && p.kind != Kind::kConstant && p.kind != Kind::kDim) continue;
    d.order.push_back(&p);
    d.names.push_back(p.source.name);
  }
  if (const auto body = known_body(e)) {
    d.body = *body;
    return d;
  }
  d.empty = true;
  d.body = "{\n  // for (long long i = 0; i < ...; ++i) y[i] = x[i];\n}";
  return d;
}

// "const float* row = x + 1" -> "auto row = x + 1": the pointers' types change.
std::string local_pointers_auto(const std::string& body) {
  std::string out;
  std::size_t done = 0;
  const auto tokens = c_tokens(body);
  for (std::size_t i = 0; i + 3 < tokens.size(); ++i) {
    std::size_t k = i;
    if (tokens[k].text == "const") ++k;
    if (tokens[k].text != "float" && tokens[k].text != "double") continue;
    if (k + 3 >= tokens.size() || tokens[k + 1].text != "*") continue;
    std::size_t name = k + 2;
    while (name + 1 < tokens.size() &&
           (tokens[name].text == "const" || contains(tokens[name].text, "restrict"))) {
      ++name;
    }
    if (tokens[name].kind != CToken::Kind::kWord || name + 1 >= tokens.size() ||
        tokens[name + 1].text != "=") {
      continue;
    }
    out += body.substr(done, tokens[i].at - done) + "auto ";
    done = tokens[name].at;
    i = name;
  }
  return out + body.substr(done);
}

// Replaces float by double everywhere.
std::string widened(std::string text) {
  for (const char* type : {"float", "half", "__half", "nv_bfloat16", "__nv_bfloat16"}) {
    text = replace_word(text, type, "double");
  }
  for (const char* name : {"exp", "log", "sqrt", "fabs", "fmax", "fmin", "pow", "tanh", "sin",
                           "cos", "erf", "exp2", "log2", "floor", "ceil", "rsqrt"}) {
    text = replace_word(text, std::string(name) + "f", name);
  }
  text = replace_word(text, "__expf", "exp");
  text = replace_word(text, "__half2float", "double");
  text = replace_word(text, "__bfloat162float", "double");
  text = replace_word(text, "__restrict__", "");
  text = replace_word(text, "FLT_MAX", "1e300");
  return text;
}

// Shares the outermost loop's iterations among threads; false if that is impossible.
bool share_loop(std::string* body) {
  const auto t = c_tokens(*body);
  std::size_t i = 1;
  while (i < t.size() && t[i].kind == CToken::Kind::kDirective) ++i;
  if (t.size() < 8 || i >= t.size() || t[i].text != "for" || t[i + 1].text != "(") return false;
  std::size_t semicolons[2] = {0, 0}, count = 0, close = i + 1;
  int depth = 0;
  for (; close < t.size(); ++close) {
    if (t[close].text == "(") ++depth;
    if (t[close].text == ")" && --depth == 0) break;
    if (t[close].text == ";" && depth == 1 && count < 2) semicolons[count++] = close;
  }
  if (count != 2 || close + 1 >= t.size()) return false;
  // Only the function's closing brace may follow the loop.
  std::size_t last = close + 1;
  if (t[last].text == "{") {
    depth = 0;
    for (; last < t.size(); ++last) {
      if (t[last].text == "{") ++depth;
      if (t[last].text == "}" && --depth == 0) break;
    }
  } else if (t[last].text == "for") {
    int braces = 0;
    for (; last < t.size(); ++last) {
      if (t[last].text == "{" || t[last].text == "(") ++braces;
      if (t[last].text == ")") --braces;
      if (t[last].text == "}" && --braces == 0) break;
      if (t[last].text == ";" && braces == 0) break;
    }
  } else {
    while (last < t.size() && t[last].text != ";") ++last;
  }
  if (last + 2 != t.size()) return false;
  std::size_t equals = i + 2;
  while (equals < semicolons[0] && t[equals].text != "=") ++equals;
  if (equals + 1 >= semicolons[0]) return false;
  const std::string variable(t[equals - 1].text);
  const auto text_of = [&](std::size_t a, std::size_t b) {
    return a < b ? body->substr(t[a].at, t[b - 1].at + t[b - 1].text.size() - t[a].at) : "";
  };
  std::string step = text_of(semicolons[1] + 1, close);
  std::string stride;
  if (step == variable + "++" || step == "++" + variable) stride = "1";
  if (const std::string plus = variable + " += "; step.starts_with(plus))
    stride = step.substr(plus.size());
  if (stride.empty()) return false;
  const std::string head = "for (" + text_of(i + 2, equals + 1) + " " +
                           text_of(equals + 1, semicolons[0]) + " + (" + stride +
                           ") * kp_thread; " + text_of(semicolons[0] + 1, semicolons[1]) + "; " +
                           variable + " += (" + stride + ") * kp_threads)";
  *body = body->substr(0, t[i].at) + head + body->substr(t[close].at + 1);
  return true;
}

std::string parameter_list(const Definition& d) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < d.order.size(); ++i) {
    const EntryParameter& p = *d.order[i];
    const bool floating = is_floating(p.dtype);
    const std::string integer(dtype_cpu_type(p.dtype));
    if (p.kind == Kind::kInput) {
      list.push_back((floating ? "Wide<" + std::string("KP_TYPE_") + p.name + "> "
                               : "const " + integer + "* ") +
                     d.names[i]);
    } else if (p.tensor()) {
      list.push_back((floating ? "double* " : integer + "* ") + d.names[i]);
    } else if (p.kind == Kind::kConstant) {
      list.push_back((p.source.type == "bool" ? "bool " : "double ") + d.names[i]);
    } else {
      list.push_back("long long " + d.names[i]);
    }
  }
  return join_text(list, ", ");
}

std::string call_arguments(const Definition& d) {
  std::vector<std::string> list;
  for (const EntryParameter* p : d.order) {
    const bool wide = p->kind == Kind::kInput && is_floating(p->dtype);
    list.push_back(p->tensor() ? (wide ? "{args." + p->name + "}" : "args." + p->name) : p->name);
  }
  return join_text(list, ", ");
}

std::string constant_lines(const Definition& d) {
  std::string out;
  for (const EntryParameter* p : d.order) {
    if (p->kind != Kind::kConstant) continue;
    out += "  const double " + p->name + " = " + p->value + ";";
    if (!p->value_sure) out += "  // " + std::string(kUnfilled) + ": the value of " + p->name;
    out += "\n";
  }
  return out;
}

constexpr const char* kWide = R"(
// A tensor read as double.
template <class T>
struct Wide {
  const T* at;
  KP_FUNCTION double operator[](long long i) const { return static_cast<float>(at[i]); }
  KP_FUNCTION double operator*() const { return static_cast<float>(*at); }
  KP_FUNCTION Wide operator+(long long n) const { return {at + n}; }
};
)";

std::string in_out_copy(const EntryParameter& p, const std::string& from, const std::string& step) {
  return "  for (long long i = " + from + "; i < " + product(p.shape) + "; i += " + step +
         ") args." + p.name + "[i] = args." + p.name + "_in[i];\n";
}

std::string remark(const Definition& d, const ScaffoldSource& source) {
  if (d.empty) {
    return "// " + std::string(kUnfilled) +
           ": write what the kernel computes, in double precision; in both references\n";
  }
  if (d.guessed) {
    return "// " + std::string(kUnfilled) +
           ": this is a guess from the name; check that it is what " + source.file + " computes\n";
  }
  return "// " + d.name + " of " + source.file + ", in double precision.\n";
}

std::string with_types(std::string text, const Definition& d, bool cuda) {
  for (const EntryParameter* p : d.order) {
    if (p->kind != Kind::kInput) continue;
    text = replace_word(text, "KP_TYPE_" + p->name,
                        std::string(cuda ? dtype_cuda_type(p->dtype) : dtype_cpu_type(p->dtype)));
  }
  return text;
}

std::string cpp_text(const Definition& d, const ScaffoldSource& source) {
  std::string out =
      "// The reference: the definition of what the kernel computes.\n#include \"task.h\"\n\n"
      "#include <algorithm>\n#include <cfloat>\n#include <cmath>\n#include <cstdint>\n"
      "#include <cstdlib>\n#include <limits>\n#include <vector>\n\nnamespace {\n\n"
      "using namespace std;\n#define KP_FUNCTION\n" +
      std::string(kWide) + "\n" + widened(local_pointers_auto(d.helpers)) + remark(d, source) +
      "void " + d.name + "(" + parameter_list(d) + ") " + widened(local_pointers_auto(d.body)) +
      "\n\n}  // namespace\n\nextern \"C\" void reference(const ReferenceArgs& args) {\n";
  for (const EntryParameter* p : d.order) {
    if (p->kind == Kind::kInOut) out += in_out_copy(*p, "0", "1");
  }
  out += constant_lines(d) + "  " + d.name + "(" + call_arguments(d) + ");\n}\n";
  return with_types(out, d, false);
}

std::string cu_text(const Definition& d, const ScaffoldSource& source, Scaffold* scaffold) {
  std::string body = widened(local_pointers_auto(d.body));
  std::string helpers = widened(local_pointers_auto(d.helpers));
  for (std::string* text : {&body, &helpers}) {
    *text = replace_all(replace_all(*text, "std::max", "kp_larger"), "std::min", "kp_smaller");
    *text = replace_all(*text, "std::", "");
  }
  const bool host_only =
      contains(d.body, "std::vector") || contains(d.body, "malloc") || contains(d.body, "new ");
  const bool shared = share_loop(&body);
  std::string out =
      "// The same as reference.cpp, for the GPU; the two are checked against each "
      "other.\n#include \"task.h\"\n\n#include <cfloat>\n#include <cmath>\n#include "
      "<cstdint>\n\nnamespace {\n\n#define KP_FUNCTION __host__ __device__\n" +
      std::string(kWide) +
      "template <class A, class B>\nKP_FUNCTION auto kp_larger(A a, B b) {\n  return a < b ? b : "
      "a;\n}\n"
      "template <class A, class B>\nKP_FUNCTION auto kp_smaller(A a, B b) {\n  return b < a ? b : "
      "a;\n}\n\n" +
      helpers + remark(d, source);
  if (host_only) {
    out += "// " + std::string(kUnfilled) + ": memory cannot be allocated here; write it without\n";
    scaffold->confirm.push_back("reference.cu: the check function allocates memory");
  }
  std::string list = parameter_list(d);
  if (shared)
    list += (list.empty() ? "" : ", ") + std::string("long long kp_thread, long long kp_threads");
  out += "__device__ void " + d.name + "(" + list + ") " + body + "\n\n";
  std::string copies;
  for (const EntryParameter* p : d.order) {
    if (p->kind == Kind::kInOut) copies += in_out_copy(*p, "thread", "threads");
  }
  const std::string indices =
      "  const long long thread = 1ll * blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  const long long threads = 1ll * gridDim.x * blockDim.x;\n";
  if (!copies.empty()) {
    out += "__global__ void copy_in(ReferenceArgs args) {\n" + indices + copies + "}\n\n";
  }
  out += "__global__ void define(ReferenceArgs args) {\n" + (shared ? indices : "") +
         constant_lines(d) + "  " + d.name + "(" + call_arguments(d) +
         (shared ? ", thread, threads" : "") + ");\n}\n\n}  // namespace\n\n" +
         "extern \"C\" void reference(const ReferenceArgs& args, cudaStream_t stream) {\n";
  if (!copies.empty()) out += "  copy_in<<<1024, 256, 0, stream>>>(args);\n";
  out += shared ? "  define<<<4096, 128, 0, stream>>>(args);\n}\n"
                : "  // One thread: slow. Divide the work among threads if the sizes are large.\n  "
                  "define<<<1, 1, 0, stream>>>(args);\n}\n";
  return with_types(out, d, true);
}

}  // namespace

ReferenceTexts reference_texts(const Entry& e, const ScaffoldSource& source, Scaffold* scaffold) {
  const auto check = from_check(e);
  const Definition d = check ? *check : from_name(e);
  if (check) {
    scaffold->derived.push_back("the references, from " + d.name + " of the file");
  } else {
    scaffold->confirm.push_back(d.empty ? "what the kernel computes, in the references"
                                        : "the references, which are a guess from the name " +
                                              e.function.name);
  }
  ReferenceTexts texts;
  texts.cpp = cpp_text(d, source);
  if (e.cuda) texts.cu = cu_text(d, source, scaffold);
  return texts;
}

}  // namespace kernelpro
