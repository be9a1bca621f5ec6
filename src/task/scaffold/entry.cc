// SPDX-License-Identifier: Apache-2.0
// Finds the kernel in the user's file and classifies its parameters.
#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"
#include "core/candidate/knobs.h"
#include "task/scaffold/parts.h"

namespace kernelpro {

namespace {

using Kind = EntryParameter::Kind;

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

bool has_pointer(const CFunction& f) {
  return std::any_of(f.parameters.begin(), f.parameters.end(),
                     [](const CParameter& p) { return p.pointers > 0; });
}

std::string body_of(const std::string& text, const CFunction& f) {
  return f.defined ? text.substr(f.body_begin, f.body_end - f.body_begin) : "";
}

// Whether it moves data between host and device: a harness around a kernel.
bool is_harness(const std::string& body) {
  for (const char* word : {"cudaMalloc", "cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost",
                           "cudaMallocManaged", "cudaHostAlloc"}) {
    if (contains(body, word)) return true;
  }
  return false;
}

bool sounds_like_check(const std::string& name) {
  static const char* const words[] = {"cpu",    "ref",    "host",  "golden",   "gold",    "naive_c",
                                      "serial", "verify", "check", "expected", "compare", "test"};
  const std::string n = small_letters(name);
  return std::any_of(std::begin(words), std::end(words),
                     [&](const char* word) { return contains(n, word); });
}

struct Candidates {
  std::vector<const CFunction*> launchers, kernels;
};

Candidates candidates_in(const Entry& e) {
  Candidates found;
  for (const CFunction& f : e.functions) {
    if (!f.defined || f.device || f.name == "main" || !has_pointer(f)) continue;
    if (f.kernel) {
      found.kernels.push_back(&f);
      continue;
    }
    const bool launches = std::any_of(e.launches.begin(), e.launches.end(), [&](const CLaunch& l) {
      return l.at >= f.body_begin && l.at < f.body_end;
    });
    const bool fits =
        e.cuda ? launches && !is_harness(body_of(e.text, f)) : !sounds_like_check(f.name);
    if (fits) found.launchers.push_back(&f);
  }
  return found;
}

std::string names_of(const std::vector<const CFunction*>& functions) {
  std::vector<std::string> names;
  for (const CFunction* f : functions) names.push_back(f->name);
  return join_text(names, ", ");
}

Result<CFunction> choose(const Entry& e, const ScaffoldSource& source) {
  if (!source.function.empty()) {
    for (const CFunction& f : e.functions) {
      if (f.defined && f.name == source.function) return f;
    }
    return fail(ErrorKind::kBadInput, source.file + " has no function " + source.function,
                "name one that it defines");
  }
  const Candidates found = candidates_in(e);
  // Of several launchers take the last: it comes after its helpers.
  if (!found.launchers.empty()) return *found.launchers.back();
  if (found.kernels.size() == 1) return *found.kernels.front();
  if (found.kernels.empty()) {
    return fail(ErrorKind::kBadInput,
                source.file + " has no function that can be a kernel" +
                    (e.cuda ? ": neither a __global__ function nor one that launches them"
                            : ": none takes pointers"),
                "give the file with the kernel's source; kernelpro new NAME creates an empty task");
  }
  // Prefer kernels that are launched over helpers that are not.
  std::vector<const CFunction*> launched;
  for (const CFunction* f : found.kernels) {
    for (const CLaunch& l : e.launches) {
      if (l.kernel == f->name && (launched.empty() || launched.back() != f)) launched.push_back(f);
    }
  }
  if (launched.size() == 1) return *launched.front();
  return fail(ErrorKind::kBadInput,
              source.file + " has several kernels and no function that launches them all: " +
                  names_of(found.kernels),
              "choose one with --function NAME, or write a function that launches them and takes "
              "their pointers");
}

struct TypeRow {
  std::string_view name;
  DType dtype;
  int lanes;
};
constexpr TypeRow kTypes[] = {
    {"float", DType::kFp32, 1},         {"float2", DType::kFp32, 2},
    {"float4", DType::kFp32, 4},        {"__half", DType::kFp16, 1},
    {"half", DType::kFp16, 1},          {"__half2", DType::kFp16, 2},
    {"half2", DType::kFp16, 2},         {"at::Half", DType::kFp16, 1},
    {"c10::Half", DType::kFp16, 1},     {"__nv_bfloat16", DType::kBf16, 1},
    {"nv_bfloat16", DType::kBf16, 1},   {"__nv_bfloat162", DType::kBf16, 2},
    {"nv_bfloat162", DType::kBf16, 2},  {"at::BFloat16", DType::kBf16, 1},
    {"c10::BFloat16", DType::kBf16, 1}, {"int", DType::kInt32, 1},
    {"int32_t", DType::kInt32, 1},      {"std::int32_t", DType::kInt32, 1},
    {"unsigned", DType::kInt32, 1},     {"unsigned int", DType::kInt32, 1},
    {"uint32_t", DType::kInt32, 1},     {"int4", DType::kInt32, 4},
    {"int64_t", DType::kInt64, 1},      {"std::int64_t", DType::kInt64, 1},
    {"long long", DType::kInt64, 1},    {"long", DType::kInt64, 1},
    {"bool", DType::kBool, 1}};

bool is_integer_type(const std::string& type) {
  static const std::set<std::string> types = {
      "int",           "unsigned",      "unsigned int", "long",         "long long",
      "size_t",        "int32_t",       "int64_t",      "uint32_t",     "uint64_t",
      "std::size_t",   "unsigned long", "short",        "std::int64_t", "std::int32_t",
      "uint",          "ptrdiff_t",     "long int",     "index_t",      "unsigned long long",
      "std::uint32_t", "std::uint64_t"};
  return types.contains(type);
}
bool is_real_type(const std::string& type) {
  return type == "float" || type == "double" || type == "half" || type == "__half";
}

// How kernels use the argument that a launcher passes them under this name.
CUse use_through_launches(const Entry& e, const CFunction& f, const std::string& name) {
  CUse all;
  for (const CLaunch& launch : e.launches) {
    if (launch.at < f.body_begin || launch.at >= f.body_end) continue;
    for (const CFunction& kernel : e.functions) {
      if (!kernel.kernel || !kernel.defined || kernel.name != launch.kernel) continue;
      for (std::size_t i = 0; i < launch.arguments.size() && i < kernel.parameters.size(); ++i) {
        if (replace_word(launch.arguments[i], name, "") == launch.arguments[i]) continue;
        const CParameter& p = kernel.parameters[i];
        if (p.pointers == 0) continue;
        const CUse use = p.is_const ? CUse{true, false} : c_use(body_of(e.text, kernel), p.name);
        all.read = all.read || use.read;
        all.written = all.written || use.written;
      }
    }
  }
  return all;
}

bool sounds_like_workspace(const std::string& name) {
  const std::string n = small_letters(name);
  for (const char* word : {"workspace", "scratch", "tmp", "temp", "partial", "wksp"}) {
    if (contains(n, word)) return true;
  }
  return false;
}

Kind role_of(const Entry& e, const CParameter& p) {
  if (p.is_const) return Kind::kInput;
  CUse use = use_through_launches(e, e.function, p.name);
  if (!use.read && !use.written) use = c_use(body_of(e.text, e.function), p.name);
  if (sounds_like_workspace(p.name)) return Kind::kWorkspace;
  if (use.written && use.read) return Kind::kInOut;
  if (use.read) return Kind::kInput;
  return Kind::kOutput;
}

// A literal that a call in the file passes for parameter `i`; "" if none does.
std::string literal_argument(const Entry& e, std::size_t i) {
  const auto literal = [](const std::string& text) {
    const auto tokens = c_tokens(text);
    std::size_t first = !tokens.empty() && tokens[0].text == "-" ? 1 : 0;
    return tokens.size() == first + 1 && tokens[first].kind == CToken::Kind::kNumber;
  };
  for (const CLaunch& launch : e.launches) {
    if (launch.kernel != e.function.name || i >= launch.arguments.size()) continue;
    if (literal(launch.arguments[i])) return launch.arguments[i];
  }
  const auto tokens = c_tokens(e.text);
  for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
    if (tokens[t].text != e.function.name || tokens[t + 1].text != "(") continue;
    if (tokens[t].at >= e.function.begin && tokens[t].at < e.function.end) continue;
    std::size_t argument = 0;
    int depth = 0;
    std::size_t begin = tokens[t + 1].at + 1;
    for (std::size_t k = t + 1; k < tokens.size(); ++k) {
      const std::string_view s = tokens[k].text;
      if (s == "(" || s == "[" || s == "{") ++depth;
      if (s == ")" || s == "]" || s == "}") --depth;
      if ((s == "," && depth == 1) || depth == 0) {
        const std::string text(trim(std::string_view(e.text).substr(begin, tokens[k].at - begin)));
        if (argument == i && literal(text)) return text;
        begin = tokens[k].at + 1;
        ++argument;
      }
      if (depth == 0) break;
    }
  }
  return "";
}

void set_type(const CFunction& f, EntryParameter* p) {
  const auto& names = f.template_names;
  if (std::find(names.begin(), names.end(), p->source.type) != names.end()) return;  // float
  for (const TypeRow& row : kTypes) {
    if (row.name != p->source.type) continue;
    p->dtype = row.dtype;
    p->lanes = row.lanes;
    return;
  }
  p->dtype_known = false;
}

EntryParameter classify(const Entry& e, std::size_t i) {
  EntryParameter p;
  p.source = e.function.parameters[i];
  if (p.source.name.empty()) p.source.name = "p" + std::to_string(i);
  p.name = p.source.name;
  if (p.source.pointers > 0) {
    p.kind = role_of(e, p.source);
    set_type(e.function, &p);
    return p;
  }
  const std::string& type = p.source.type;
  if (contains(type, "cudaStream_t") || contains(type, "CUstream")) {
    p.kind = Kind::kStream;
  } else if (is_integer_type(type)) {
    p.kind = Kind::kDim;
  } else if (is_real_type(type) || type == "bool") {
    p.kind = Kind::kConstant;
    p.value = literal_argument(e, i);
    p.value_sure = !p.value.empty();
    const bool epsilon = contains(small_letters(p.name), "eps");
    if (p.value.empty()) p.value = type == "bool" ? "false" : epsilon ? "1e-5f" : "1.0f";
  }
  return p;
}

// Sizes for the n-th of `count` dimensions: small ones that no tile divides, and large ones beyond
// a last-level cache.
void set_sizes(std::size_t n, std::size_t count, EntryDim* dim) {
  static const std::vector<std::vector<std::pair<long long, long long>>> sizes = {
      {{10007, 1 << 24}},
      {{33, 4096}, {1003, 8192}},
      {{97, 2048}, {161, 2048}, {131, 2048}},
      {{2, 16}, {3, 32}, {17, 128}, {35, 256}}};
  if (count == 0) return;
  if (count <= sizes.size()) {
    dim->small = sizes[count - 1][n].first;
    dim->large = sizes[count - 1][n].second;
  } else {
    dim->small = n + 2 < count ? 2 : 17;
    dim->large = n + 3 < count ? 4 : 128;
  }
}

bool one_of(const std::string& name, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return name == word; });
}

// The dimension whose parameter has one of these names, or "".
std::string dim_called(const Entry& e, std::initializer_list<const char*> names) {
  for (const EntryDim& dim : e.dims) {
    if (one_of(small_letters(dim.parameter), names)) return dim.name;
  }
  return "";
}

bool sounds_per_column(const std::string& name) {
  const std::string n = small_letters(name);
  return one_of(n, {"w", "g", "weight", "weights", "gamma", "beta", "bias", "scale", "shift"}) ||
         n.ends_with("_weight") || n.ends_with("_bias") || n.ends_with("gamma") ||
         n.ends_with("beta");
}

// A reduction's output: one element, or one per block.
bool reduced_output(const Entry& e, const EntryParameter& p) {
  for (const CFunction& f : e.functions) {
    if (!f.kernel || !f.defined) continue;
    const std::string body = body_of(e.text, f);
    std::string plain;
    for (const CToken& token : c_tokens(body)) plain += std::string(token.text);
    for (const CParameter& parameter : f.parameters) {
      if (parameter.pointers == 0 || parameter.is_const) continue;
      const bool this_one = f.name == e.function.name ? parameter.name == p.source.name : true;
      if (!this_one) continue;
      if (contains(plain, "atomicAdd(" + parameter.name + ",") ||
          contains(plain, parameter.name + "[0]=")) {
        return true;
      }
    }
  }
  return false;
}

void set_shapes(Entry* e) {
  const std::string m = dim_called(*e, {"m"}), n = dim_called(*e, {"n"}), k = dim_called(*e, {"k"});
  std::vector<std::string> all;
  for (const EntryDim& dim : e->dims) all.push_back(dim.name);
  std::vector<EntryParameter*> inputs, outputs;
  for (EntryParameter& p : e->parameters) {
    if (!p.tensor()) continue;
    (p.kind == Kind::kInput ? inputs : outputs).push_back(&p);
  }
  const bool product_of_matrices = !m.empty() && !n.empty() && !k.empty() && e->dims.size() == 3 &&
                                   inputs.size() >= 2 && outputs.size() == 1;
  for (EntryParameter& p : e->parameters) {
    if (!p.tensor()) continue;
    p.shape = all;
    p.shape_sure = all.size() == 1;
    if (all.size() >= 2 && p.kind == Kind::kInput && sounds_per_column(p.source.name) &&
        inputs.size() > 1) {
      p.shape = {all.back()};
    }
    if (p.kind != Kind::kInput && reduced_output(*e, p)) {
      p.shape =
          all.size() >= 2 ? std::vector<std::string>{all.front()} : std::vector<std::string>{};
      p.shape_sure = false;
    }
  }
  if (product_of_matrices) {
    inputs[0]->shape = {m, k};
    inputs[1]->shape = {k, n};
    outputs[0]->shape = {m, n};
    for (std::size_t i = 2; i < inputs.size(); ++i) inputs[i]->shape = {n};
  }
}

}  // namespace

std::string free_name(const std::string& wanted, const std::string& text,
                      const std::vector<std::string>& taken) {
  std::set<std::string> used(taken.begin(), taken.end());
  for (const CToken& token : c_tokens(text)) {
    if (token.kind == CToken::Kind::kWord) used.insert(std::string(token.text));
    if (token.kind != CToken::Kind::kDirective) continue;
    std::string word;
    for (const char c : std::string(token.text) + " ") {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
        word += c;
      } else if (!word.empty()) {
        used.insert(word);
        word.clear();
      }
    }
  }
  std::string base = wanted;
  while (base.starts_with('_')) base.erase(0, 1);
  base = replace_all(base, "__", "_");
  if (!is_identifier(base)) base = "SIZE";
  for (const char* suffix : {"", "_DIM", "_SIZE", "_COUNT", "_EXTENT", "_LENGTH"}) {
    const std::string name = base + suffix;
    if (!used.contains(name) && name_problem(name).empty()) return name;
  }
  for (int i = 2;; ++i) {
    const std::string name = "DIM_" + base + std::to_string(i);
    if (!used.contains(name) && name_problem(name).empty()) return name;
  }
}

std::string product(const std::vector<std::string>& shape) {
  if (shape.size() <= 1) return shape.empty() ? "1" : shape[0];
  return "1ll * " + join_text(shape, " * ");
}

Result<Entry> find_entry(const ScaffoldSource& source, const std::string& text, bool cuda) {
  Entry e;
  e.cuda = cuda;
  e.text = text;
  e.functions = c_functions(text);
  e.launches = c_launches(text);
  KP_ASSIGN(e.function, choose(e, source));
  std::vector<std::string> taken;
  for (std::size_t i = 0; i < e.function.parameters.size(); ++i) {
    EntryParameter p = classify(e, i);
    if (p.kind == Kind::kDim) {
      EntryDim dim;
      dim.parameter = p.source.name;
      dim.name = free_name(upper(p.source.name), text, taken);
      p.name = dim.name;
      taken.push_back(dim.name);
      e.dims.push_back(std::move(dim));
    }
    e.parameters.push_back(std::move(p));
  }
  for (EntryParameter& p : e.parameters) {  // names in Args and task.h are taken
    if (p.tensor() && !name_problem(p.name).empty())
      p.name = free_name(p.name + "_data", "", taken);
  }
  if (e.dims.empty()) e.dims.push_back({free_name("SIZE", text, taken), "", 0, 0});
  for (std::size_t i = 0; i < e.dims.size(); ++i) set_sizes(i, e.dims.size(), &e.dims[i]);
  const auto writes = [](const EntryParameter& p) {
    return p.kind == Kind::kOutput || p.kind == Kind::kInOut;
  };
  if (std::none_of(e.parameters.begin(), e.parameters.end(), writes)) {
    // Passed to functions that were not analyzed: take the one named like a result, else the last
    // that may be written.
    EntryParameter* result = nullptr;
    for (EntryParameter& p : e.parameters) {
      if (p.kind != Kind::kInput || p.source.is_const) continue;
      const bool named =
          one_of(small_letters(p.source.name), {"out", "output", "y", "dst", "result", "c"});
      if (result == nullptr || named ||
          !one_of(small_letters(result->source.name), {"out", "output", "y"})) {
        result = &p;
      }
    }
    if (result != nullptr) result->kind = Kind::kOutput;
  }
  if (std::none_of(e.parameters.begin(), e.parameters.end(), writes)) {
    return fail(ErrorKind::kBadInput,
                e.function.name + " of " + source.file + " writes to no tensor",
                "choose another function with --function NAME");
  }
  set_shapes(&e);
  return e;
}

}  // namespace kernelpro
