// SPDX-License-Identifier: Apache-2.0
// The user's code followed by `launch`, in a form that a launch plan can represent.
#include <algorithm>

#include "base/text.h"
#include "task/load/unfilled.h"
#include "task/scaffold/parts.h"

namespace kernelpro {

namespace {

using Kind = EntryParameter::Kind;

struct Edit {
  std::size_t begin, end;
  std::string text;
};

std::string apply(const std::string& text, std::vector<Edit> edits) {
  std::sort(edits.begin(), edits.end(),
            [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  std::string out;
  std::size_t done = 0;
  for (const Edit& edit : edits) {
    if (edit.begin < done) continue;  // inside an applied edit
    out += text.substr(done, edit.begin - done) + edit.text;
    done = edit.end;
  }
  return out + text.substr(done);
}

// The function that contains an offset; nullptr at file scope.
const CFunction* around(const std::vector<CFunction>& functions, std::size_t at) {
  for (const CFunction& f : functions) {
    if (f.defined && at >= f.body_begin && at < f.body_end) return &f;
  }
  return nullptr;
}

std::string stream_of(const CFunction* f, const std::string& otherwise) {
  if (f == nullptr) return otherwise;
  for (const CParameter& p : f->parameters) {
    if (contains(p.type, "cudaStream_t") && !p.name.empty()) return p.name;
  }
  return otherwise;
}

bool is_default_stream(const std::string& text) {
  return text == "0" || text == "nullptr" || text == "NULL" || text == "cudaStreamDefault" ||
         text == "cudaStreamLegacy" || text == "cudaStreamPerThread";
}

// Edits calls that cannot be captured or would go to another stream.
void edit_calls(const std::string& text, const std::vector<CFunction>& functions,
                const std::string& stream, std::vector<Edit>* edits) {
  const auto tokens = c_tokens(text);
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const std::string_view word = tokens[i].text;
    if (tokens[i].kind != CToken::Kind::kWord || tokens[i + 1].text != "(") continue;
    const CFunction* f = around(functions, tokens[i].at);
    if (f == nullptr || f->kernel || f->device) continue;
    std::size_t close = i + 1;
    int depth = 0;
    for (; close < tokens.size(); ++close) {
      if (tokens[close].text == "(") ++depth;
      if (tokens[close].text == ")" && --depth == 0) break;
    }
    if (close >= tokens.size()) continue;
    const std::size_t end = tokens[close].at + 1;
    const std::string inside =
        text.substr(tokens[i + 1].at + 1, tokens[close].at - tokens[i + 1].at - 1);
    if (word == "cudaDeviceSynchronize" || word == "cudaStreamSynchronize" ||
        word == "cudaThreadSynchronize") {
      edits->push_back({tokens[i].at, end, "cudaSuccess /* no waiting inside launch */"});
    } else if (word == "cudaMemset" ||
               (word == "cudaMemcpy" && contains(inside, "DeviceToDevice"))) {
      edits->push_back({tokens[i].at, end,
                        std::string(word) + "Async(" + inside + ", " + stream_of(f, stream) + ")"});
    }
  }
}

// Defines macros used from NVIDIA's samples and common project headers.
std::string missing_macros(const std::string& text) {
  std::string out;
  for (const char* name :
       {"checkCudaErrors", "getLastCudaError", "CUDA_CHECK", "CHECK_CUDA", "CUDACHECK", "gpuErrchk",
        "cudaCheck", "CHECK", "CUDA_CALL", "CUDA_KERNEL_CHECK", "cudaCheckErrors"}) {
    if (replace_word(text, name, "") == text) continue;  // not used
    const std::string macro = std::string("define ") + name;
    const std::string function = std::string(name) + "(";
    bool defined = contains(text, macro + "(") || contains(text, macro + " ");
    for (const CFunction& f : c_functions(text)) defined = defined || f.name == name;
    if (!defined) out += "#define " + std::string(name) + "(call) (void)(call)\n";
  }
  return out;
}

// Removes includes of project files that were not found and of framework headers.
std::string without_lost_includes(const std::string& text, std::vector<std::string>* lost) {
  std::string out;
  for (const std::string& line : lines(text)) {
    const std::string_view t = trim(line);
    if (t.starts_with("#") && trim(t.substr(1)).starts_with("include") && contains(t, "\"") &&
        !contains(t, "\"task.h\"")) {
      const std::size_t open = t.find('"');
      const std::string name(t.substr(open + 1, t.rfind('"') - open - 1));
      lost->push_back(name);
      out += "// left out, not found: " + std::string(t) + "\n";
      continue;
    }
    if (t.starts_with("#pragma once")) continue;
    out += line + "\n";
  }
  return out;
}

std::string args_type(const EntryParameter& p, bool cuda) {
  return std::string(cuda ? dtype_cuda_type(p.dtype) : dtype_cpu_type(p.dtype));
}

// args.x, cast if the user's type differs.
std::string argument(const EntryParameter& p, bool cuda, const CFunction& f) {
  const auto& templates = f.template_names;
  const bool generic =
      std::find(templates.begin(), templates.end(), p.source.type) != templates.end();
  const std::string wanted = generic ? args_type(p, cuda) : p.source.type;
  const bool input = p.kind == Kind::kInput;
  const bool same = wanted == args_type(p, cuda) && (!input || p.source.is_const);
  const std::string value = "args." + p.name;
  if (same) return value;
  return "(" + std::string(p.source.is_const ? "const " : "") + wanted + "*)" + value;
}

// Locals of `launch`: the entry's constants.
std::string constants(const Entry& e, std::vector<std::string>* confirm) {
  std::string out;
  for (const EntryParameter& p : e.parameters) {
    if (p.kind != Kind::kConstant) continue;
    out += "  const " + p.source.type + " " + p.name + " = " + p.value + ";";
    if (!p.value_sure) {
      out += "  // " + std::string(kUnfilled) + ": the value of " + p.name +
             "; the reference needs the same";
      confirm->push_back("the value of " + p.name + " in the kernel's file and in the references");
    }
    out += "\n";
  }
  return out;
}

std::string arguments(const Entry& e, const std::string& stream) {
  std::vector<std::string> list;
  std::string workspace = "";
  for (const EntryParameter& p : e.parameters) {
    switch (p.kind) {
      case Kind::kInput:
      case Kind::kOutput:
      case Kind::kInOut:
        list.push_back(argument(p, e.cuda, e.function));
        break;
      case Kind::kWorkspace:
        list.push_back("(" + p.source.type + "*)((char*)args.workspace" + workspace + ")");
        workspace += " + WORKSPACE_BYTES / 2 / 256 * 256";
        break;
      case Kind::kDim:
      case Kind::kConstant:
        list.push_back(p.name);
        break;
      case Kind::kStream:
        list.push_back(stream);
        break;
      case Kind::kOther:
        list.push_back("{} /* " + p.source.type + " " + p.name + " */");
        break;
    }
  }
  return join_text(list, ", ");
}

// Grid, block and shared memory for a kernel without a launcher: as in the file's own launch, else
// a guess.
std::string launch_kernel(const Entry& e, Scaffold* scaffold) {
  std::string configuration = "grid, block";
  std::string locals;
  const CLaunch* seen = nullptr;
  for (const CLaunch& launch : e.launches) {
    if (launch.kernel == e.function.name) seen = &launch;
  }
  std::string templates;
  if (seen != nullptr) {
    const std::size_t behind = seen->at + seen->kernel.size();
    templates = std::string(trim(e.text.substr(behind, seen->configuration_begin - 3 - behind)));
    // Let the call deduce the template arguments instead.
    if (contains(templates, "scalar_t")) templates.clear();
  }
  std::string total;
  for (const EntryDim& dim : e.dims) total += (total.empty() ? "1ll * " : " * ") + dim.name;
  locals = "  const int threads = 256;\n  const long long total = " + total + ";\n" +
           "  const dim3 block(threads), grid(unsigned((total + threads - 1) / threads));";
  const std::string was = seen == nullptr
                              ? "nothing in the file launches it"
                              : "the file has <<<" + join_text(seen->configuration, ", ") + ">>>(" +
                                    join_text(seen->arguments, ", ") + ")";
  locals +=
      "  // " + std::string(kUnfilled) + ": grid and block; " + join_text(lines(was), " ") + "\n";
  if (seen != nullptr && seen->configuration.size() > 2) {
    configuration += ", " + seen->configuration[2];
  } else {
    configuration += ", 0";
  }
  scaffold->confirm.push_back("grid, block and shared memory of " + e.function.name + " in " +
                              scaffold->kernel);
  return locals + "  " + e.function.name + templates + "<<<" + configuration + ", stream>>>(" +
         arguments(e, "stream") + ");\n";
}

}  // namespace

std::string without_function(const std::string& text, const std::string& name) {
  std::vector<Edit> edits;
  for (const CFunction& f : c_functions(text)) {
    if (f.name == name && f.defined)
      edits.push_back({f.begin, f.end, "// (" + name + " was here)"});
  }
  return apply(text, std::move(edits));
}

std::string on_stream(const std::string& text, const std::string& stream) {
  const std::vector<CFunction> functions = c_functions(text);
  std::vector<Edit> edits;
  for (const CLaunch& launch : c_launches(text)) {
    const std::string its = stream_of(around(functions, launch.at), stream);
    const std::vector<std::string>& c = launch.configuration;
    if (c.size() == 4 && !is_default_stream(c[3])) continue;
    std::vector<std::string> parts = c;
    while (parts.size() < 3) parts.push_back("0");
    parts.resize(3);
    parts.push_back(its);
    edits.push_back({launch.configuration_begin, launch.configuration_end, join_text(parts, ", ")});
  }
  edit_calls(text, functions, stream, &edits);
  return apply(text, std::move(edits));
}

std::string kernel_text(const Entry& e, const ScaffoldSource& source, Scaffold* scaffold) {
  std::vector<std::string> lost;
  std::string body = without_lost_includes(without_function(e.text, "main"), &lost);
  for (const std::string& name : lost) {
    scaffold->confirm.push_back("the file " + name +
                                " was not found; put the parts that are needed into " +
                                scaffold->kernel);
  }
  if (e.cuda) body = on_stream(body, "kernelpro_stream");
  const bool kernel = e.function.kernel;
  const bool global_stream = contains(body, "kernelpro_stream");
  std::string out = "// From " + source.file +
                    ", by `kernelpro new`. `launch`, at the end, is the entry point; task.h "
                    "has\n// the sizes as constants and Args.\n#include \"task.h\"\n" +
                    missing_macros(body);
  if (global_stream) out += "\nstatic cudaStream_t kernelpro_stream;  // of launch\n";
  out += "\n" + body;
  if (!out.ends_with("\n")) out += "\n";
  out += e.cuda ? "\nextern \"C\" void launch(const Args& args, cudaStream_t stream) {\n"
                : "\nextern \"C\" void launch(const Args& args) {\n";
  if (global_stream) out += "  kernelpro_stream = stream;\n";
  for (const EntryParameter& p : e.parameters) {
    if (p.kind != Kind::kInOut) continue;
    const std::string bytes = "sizeof(*args." + p.name + ") * " + product(p.shape);
    out += e.cuda ? "  cudaMemcpyAsync(args." + p.name + ", args." + p.name + "_in, " + bytes +
                        ", cudaMemcpyDeviceToDevice, stream);\n"
                  : "  __builtin_memcpy(args." + p.name + ", args." + p.name + "_in, " + bytes +
                        ");\n";
  }
  out += constants(e, &scaffold->confirm);
  const bool other = std::any_of(e.parameters.begin(), e.parameters.end(),
                                 [](const auto& p) { return p.kind == Kind::kOther; });
  if (other) {
    out += "  // " + std::string(kUnfilled) + ": give the arguments written {} their values\n";
    scaffold->confirm.push_back("the arguments written {} in launch of " + scaffold->kernel);
  }
  out += kernel ? launch_kernel(e, scaffold)
                : "  " + e.function.name + "(" + arguments(e, "stream") + ");\n";
  return out + "}\n";
}

}  // namespace kernelpro
