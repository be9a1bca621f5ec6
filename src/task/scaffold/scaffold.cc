// SPDX-License-Identifier: Apache-2.0
#include "task/scaffold/scaffold.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "task/load/unfilled.h"
#include "task/scaffold/parts.h"

namespace kernelpro {

namespace {

using Kind = EntryParameter::Kind;

// Inlines the user's own files, each once, where they are included.
std::string with_includes(const std::string& text, const ScaffoldSource& source,
                          std::set<std::string>* seen, int depth) {
  std::string out;
  for (const std::string& line : lines(text)) {
    const std::string_view t = trim(line);
    const bool include = t.starts_with("#") && trim(t.substr(1)).starts_with("include");
    const std::size_t open = include ? t.find('"') : std::string_view::npos;
    if (open == std::string_view::npos || t.rfind('"') <= open || !source.include || depth > 8) {
      out += line + "\n";
      continue;
    }
    const std::string name(t.substr(open + 1, t.rfind('"') - open - 1));
    if (seen->contains(name)) continue;
    const auto found = source.include(name);
    if (!found) {
      out += line + "\n";
      continue;
    }
    seen->insert(name);
    out += with_includes(*found, source, seen, depth + 1);
  }
  return out;
}

std::string tensor_section(const std::string& name, const char* role, const EntryParameter& p,
                           Scaffold* scaffold) {
  std::vector<std::string> quoted;
  for (std::size_t i = 0; i < p.shape.size(); ++i) {
    // float4 and the like hold several elements; the last dimension counts elements.
    const bool last = i + 1 == p.shape.size() && p.lanes > 1;
    quoted.push_back("\"" + p.shape[i] + (last ? " * " + std::to_string(p.lanes) : "") + "\"");
  }
  std::string out = "\n[[tensor]]\nname = \"" + name + "\"\nrole = \"" + role + "\"\ndtype = \"" +
                    std::string(dtype_name(p.dtype)) + "\"";
  if (!p.dtype_known) {
    out += "  # " + std::string(kUnfilled) + ": the element type of " + p.source.type;
    scaffold->confirm.push_back("the dtype of " + name);
  }
  out += "\nshape = [" + join_text(quoted, ", ") + "]";
  if (!p.shape_sure) {
    out += "  # " + std::string(kUnfilled) + ": is this its shape?";
    scaffold->confirm.push_back("the shape of " + name);
  }
  out += "\n";
  if (std::string_view(role) == "output") return out;
  if (p.dtype == DType::kInt32 || p.dtype == DType::kInt64) {
    out += "init = { kind = \"integers\", low = 0, high = 9 }  # " + std::string(kUnfilled) +
           ": which integers occur in practice?\n";
    scaffold->confirm.push_back("what integers " + name + " holds");
  } else if (is_floating(p.dtype)) {
    out += "init = { kind = \"normal\", mean = 0.0, std = 1.0 }\n";
  }
  return out;
}

std::string dims_of(const Entry& e, bool large) {
  std::vector<std::string> parts;
  for (const EntryDim& dim : e.dims) {
    parts.push_back(dim.name + " = " + std::to_string(large ? dim.large : dim.small));
  }
  return "dims = { " + join_text(parts, ", ") + " }";
}

std::string extension_of(const std::string& file) {
  const std::size_t dot = file.rfind('.');
  return dot == std::string::npos ? "" : file.substr(dot);
}

Result<Scaffold> scaffold_native(const ScaffoldSource& source, const std::string& text) {
  const std::string extension = extension_of(source.file);
  const bool launches = contains(text, "__global__") || contains(text, "<<<");
  const bool cuda = extension == ".cu" || extension == ".cuh" || launches;
  KP_ASSIGN(auto entry, find_entry(source, text, cuda));
  Scaffold scaffold;
  scaffold.name = source.name;
  scaffold.kernel = cuda ? "kernel.cu" : "kernel.cpp";
  std::string call = entry.function.name + "(";
  for (std::size_t i = 0; i < entry.function.parameters.size(); ++i) {
    call += (i == 0 ? "" : ", ") + entry.function.parameters[i].name;
  }
  scaffold.derived.push_back((entry.function.kernel ? "the kernel " : "the function ") + call +
                             "), which `launch` calls");
  scaffold.files[scaffold.kernel] = kernel_text(entry, source, &scaffold);
  const ReferenceTexts references = reference_texts(entry, source, &scaffold);
  scaffold.files["reference.cpp"] = references.cpp;
  if (cuda) scaffold.files["reference.cu"] = references.cu;
  scaffold.files["task.toml"] = task_toml(entry, source, &scaffold);
  return scaffold;
}

}  // namespace

std::string task_toml(const Entry& e, const ScaffoldSource& source, Scaffold* scaffold) {
  std::string out = "# From " + source.file +
                    ", by `kernelpro new`. docs/task-format.md explains it.\n"
                    "[task]\nname = \"" +
                    source.name + "\"\nsummary = \"" + e.function.name + " of " + source.file +
                    "\"\n";
  const auto workspace = [](const EntryParameter& p) { return p.kind == Kind::kWorkspace; };
  if (std::any_of(e.parameters.begin(), e.parameters.end(), workspace)) {
    out += "workspace = \"1048576\"  # " + std::string(kUnfilled) +
           ": bytes of scratch memory that the kernel needs\n";
    scaffold->confirm.push_back("how much scratch memory the kernel needs (workspace)");
  }
  for (const EntryParameter& p : e.parameters) {
    if (p.kind == Kind::kInput) out += tensor_section(p.name, "input", p, scaffold);
    if (p.kind == Kind::kInOut) {
      out += "\n# " + p.name + " is read and written: here its value before and after.";
      out += tensor_section(p.name + "_in", "input", p, scaffold);
    }
  }
  for (const EntryParameter& p : e.parameters) {
    if (p.kind == Kind::kOutput || p.kind == Kind::kInOut) {
      out += tensor_section(p.name, "output", p, scaffold);
    }
  }
  const std::string targets = e.cuda ? "targets = [\"cuda\"]\n" : "targets = [\"cpu\"]\n";
  out +=
      "\n# Small, with sizes that no tile divides: for correctness.\n[[case]]\nname = \"small\"\n" +
      dims_of(e, false) + "\n" + targets +
      "\n# The size that counts for speed.\n[[case]]\nname = \"large\"\n" + dims_of(e, true) +
      "  # " + std::string(kUnfilled) + ": the sizes that matter to you\ntimed = true\n" + targets;
  scaffold->confirm.push_back("the sizes that matter, in [[case]]");
  return out;
}

std::string task_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
    name += plain ? c : '_';
  }
  while (!name.empty() && (name[0] == '.' || name[0] == '-')) name.erase(0, 1);
  return name.empty() ? "task" : name.substr(0, 60);
}

Scaffold scaffold_empty(const std::string& name) {
  const std::string todo(kUnfilled);
  Scaffold s;
  s.name = name;
  s.kernel = "kernel.cpp";
  s.files["task.toml"] =
      "# docs/task-format.md explains it.\n[task]\nname = \"" + name +
      "\"\nsummary = \"y = x\"  # " + todo +
      ": what it computes, in a few words\n"
      "# flops = \"ROWS*COLS\"\n\n"
      "[[tensor]]\nname = \"x\"\nrole = \"input\"\ndtype = \"fp32\"\nshape = [\"ROWS\", \"COLS\"]  "
      "# " +
      todo +
      ": inputs, their types and shapes\n"
      "init = { kind = \"normal\", mean = 0.0, std = 1.0 }\n\n"
      "[[tensor]]\nname = \"y\"\nrole = \"output\"\ndtype = \"fp32\"\nshape = [\"ROWS\", \"COLS\"] "
      " # " +
      todo +
      ": outputs\n\n"
      "# Small, with sizes that no tile divides: for correctness.\n[[case]]\nname = \"small\"\n"
      "dims = { ROWS = 33, COLS = 1003 }\n\n"
      "# The size that counts for speed.\n[[case]]\nname = \"large\"\n"
      "dims = { ROWS = 4096, COLS = 8192 }  # " +
      todo +
      ": the sizes that matter to you\n"
      "timed = true\n";
  s.files["reference.cpp"] =
      "// The definition of what the task computes, in double precision.\n#include \"task.h\"\n\n"
      "extern \"C\" void reference(const ReferenceArgs& args) {\n  // " +
      todo +
      ": the definition\n  for (long long i = 0; i < 1ll * ROWS * COLS; ++i) args.y[i] = "
      "args.x[i];\n}\n";
  s.files["reference.cu"] =
      "// The same as reference.cpp for the GPU.\n#include \"task.h\"\n\n"
      "__global__ void define(ReferenceArgs args) {\n  // " +
      todo +
      ": the definition, in double precision\n"
      "  const long long step = 1ll * gridDim.x * blockDim.x;\n"
      "  for (long long i = 1ll * blockIdx.x * blockDim.x + threadIdx.x; i < 1ll * ROWS * COLS; i "
      "+= step) {\n"
      "    args.y[i] = args.x[i];\n  }\n}\n\n"
      "extern \"C\" void reference(const ReferenceArgs& args, cudaStream_t stream) {\n"
      "  define<<<4096, 128, 0, stream>>>(args);\n}\n";
  s.files["kernel.cpp"] =
      "// A starting kernel for the CPU.\n#include \"task.h\"\n\n"
      "// Threads that share the rows.\n// @knob THREADS 1 2 4 8 16 32 : threads\n\n"
      "extern \"C\" void launch(const Args& args) {\n  // " +
      todo +
      ": the kernel\n"
      "#pragma omp parallel for num_threads(THREADS)\n"
      "  for (long long i = 0; i < 1ll * ROWS * COLS; ++i) args.y[i] = args.x[i];\n}\n";
  s.files["kernel.cu"] =
      "// A starting kernel for the GPU.\n#include \"task.h\"\n\n"
      "// @knob THREADS 128 64 256 512 : block-size\n\n"
      "__global__ void kernel(const float* x, float* y) {\n  // " +
      todo +
      ": the kernel\n"
      "  const long long i = 1ll * blockIdx.x * THREADS + threadIdx.x;\n"
      "  if (i < 1ll * ROWS * COLS) y[i] = x[i];\n}\n\n"
      "KP_LAUNCH(kernel, kp::dim((1ll * ROWS * COLS + THREADS - 1) / THREADS), kp::dim(THREADS), "
      "0,\n"
      "          arg::x, arg::y)\n";
  s.confirm = {"tensors and sizes in task.toml", "the definition in reference.cpp and reference.cu",
               "the starting kernels kernel.cpp and kernel.cu (either may be removed)"};
  return s;
}

Result<Scaffold> scaffold_from(const ScaffoldSource& source) {
  if (is_extension(source.text)) return scaffold_extension(source);
  std::set<std::string> seen;
  const std::string text = with_includes(source.text, source, &seen, 0);
  if (is_extension(text)) {
    ScaffoldSource whole = source;
    whole.text = text;
    return scaffold_extension(whole);
  }
  return scaffold_native(source, text);
}

}  // namespace kernelpro
