// SPDX-License-Identifier: Apache-2.0
// From a PyTorch extension: the function on torch::Tensor stays unchanged and uses stand-ins for
// PyTorch's types; the reference is a PyTorch module.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "embedded/torch_stand_in.h"
#include "task/load/unfilled.h"
#include "task/scaffold/parts.h"
#include "task/scaffold/python_source.h"

namespace kernelpro {

namespace {

bool is_tensor_type(const std::string& type) {
  return contains(type, "Tensor") && !contains(type, "vector") && !contains(type, "Options");
}

bool is_python(const std::string& file) { return file.ends_with(".py"); }

// The C++ and CUDA texts inside a Python file that define something.
std::string sources_in_python(const std::string& text) {
  std::string out;
  for (const std::string& literal : python_strings(text)) {
    if (contains(literal, "__global__") ||
        (contains(literal, "Tensor") && contains(literal, "{") && contains(literal, ";"))) {
      out += literal + "\n";
    }
  }
  return out;
}

// Removes framework headers and bindings.
std::string without_bindings(const std::string& text) {
  std::string kept;
  for (const std::string& line : lines(text)) {
    const std::string_view t = trim(line);
    const bool include = t.starts_with("#") && contains(t, "include");
    bool framework = contains(t, "namespace py =");
    for (const char* name : {"torch/", "ATen/", "c10/", "pybind11", "Python.h"}) {
      framework = framework || (include && contains(t, name));
    }
    if (!framework) kept += line + "\n";
  }
  const auto tokens = c_tokens(kept);
  std::string out;
  std::size_t done = 0;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const std::string_view word = tokens[i].text;
    if (word != "PYBIND11_MODULE" && !word.starts_with("TORCH_LIBRARY")) continue;
    int depth = 0;
    std::size_t k = i;
    for (; k < tokens.size(); ++k) {
      if (tokens[k].text == "{") ++depth;
      if (tokens[k].text == "}" && --depth == 0) break;
    }
    out += kept.substr(done, tokens[i].at - done);
    done = k < tokens.size() ? tokens[k].at + 1 : kept.size();
    i = k;
  }
  return out + kept.substr(done);
}

// Names that the file exports to Python: m.def("f", &g) and functions=["g"].
std::set<std::string> exported(const std::string& text) {
  std::set<std::string> names;
  const auto tokens = c_tokens(text);
  for (std::size_t i = 0; i + 3 < tokens.size(); ++i) {
    if (tokens[i].text == "def" && tokens[i + 1].text == "(") {
      for (std::size_t k = i + 2; k < tokens.size() && tokens[k].text != ";"; ++k) {
        if (tokens[k].text == "&" && k + 1 < tokens.size()) {
          names.insert(std::string(tokens[k + 1].text));
        }
      }
    }
    if (tokens[i].text == "functions" && tokens[i + 1].text == "=") {
      for (std::size_t k = i + 2; k < tokens.size() && tokens[k].text != "]"; ++k) {
        const std::string_view t = tokens[k].text;
        if (tokens[k].kind == CToken::Kind::kText && t.size() > 2) {
          names.insert(std::string(t.substr(1, t.size() - 2)));
        }
      }
    }
  }
  return names;
}

Result<CFunction> choose(const ScaffoldSource& source, const std::string& text,
                         const std::vector<CFunction>& functions) {
  const std::set<std::string> given = exported(source.text);
  const CFunction* best = nullptr;
  int best_rank = -1;
  std::vector<std::string> names;
  for (const CFunction& f : functions) {
    const auto tensor = [](const CParameter& p) { return is_tensor_type(p.type); };
    if (!f.defined || f.kernel || f.device ||
        std::none_of(f.parameters.begin(), f.parameters.end(), tensor)) {
      continue;
    }
    names.push_back(f.name);
    if (!source.function.empty() && f.name != source.function) continue;
    const bool backward =
        contains(small_letters(f.name), "backward") || contains(small_letters(f.name), "grad");
    const std::string body = text.substr(f.body_begin, f.body_end - f.body_begin);
    const int rank =
        (given.contains(f.name) ? 4 : 0) + (backward ? 0 : 2) + (contains(body, "<<<") ? 1 : 0);
    if (rank >= best_rank) {
      best = &f;
      best_rank = rank;
    }
  }
  if (best != nullptr) return *best;
  return fail(ErrorKind::kBadInput,
              source.file + " has no function on torch::Tensor" +
                  (source.function.empty() ? "" : " named " + source.function),
              names.empty() ? "give the file that defines the extension's functions"
                            : "it has " + join_text(names, ", ") + "; choose one with --function");
}

struct Parameter {
  CParameter source;
  bool tensor = false;
  bool output = false;  // a tensor that the function writes
  int rank = 1;
  std::vector<std::string> shape;  // constants of the Python file
};

// One more than the highest k in x.size(k).
int rank_of(const std::string& body, const std::string& name) {
  const auto t = c_tokens(body);
  int rank = 0;
  for (std::size_t i = 0; i + 4 < t.size(); ++i) {
    if (t[i].text != name || t[i + 1].text != ".") continue;
    const bool indexed = t[i + 2].text == "size" || t[i + 2].text == "sizes";
    if (!indexed || t[i + 3].text != "(") continue;
    std::size_t k = i + 4;
    if (t[i + 2].text == "sizes") k += 2;  // x.sizes()[k]
    if (k < t.size() && t[k].text == "-") rank = std::max(rank, 2);
    if (k < t.size() && t[k].kind == CToken::Kind::kNumber) {
      rank = std::max(rank, std::atoi(std::string(t[k].text).c_str()) + 1);
    }
  }
  return rank == 0 ? 2 : std::min(rank, 6);
}

bool written_by_launches(const std::string& text, const CFunction& f, const std::string& name,
                         const std::vector<CFunction>& functions) {
  for (const CLaunch& launch : c_launches(text)) {
    if (launch.at < f.body_begin || launch.at >= f.body_end) continue;
    for (const CFunction& kernel : functions) {
      if (!kernel.kernel || kernel.name != launch.kernel) continue;
      for (std::size_t i = 0; i < launch.arguments.size() && i < kernel.parameters.size(); ++i) {
        if (replace_word(launch.arguments[i], name, "") == launch.arguments[i]) continue;
        const CParameter& p = kernel.parameters[i];
        if (p.pointers > 0 && !p.is_const &&
            c_use(text.substr(kernel.body_begin, kernel.body_end - kernel.body_begin), p.name)
                .written) {
          return true;
        }
      }
    }
  }
  return false;
}

// Shapes that get_inputs of a Python file draws, in order: {{"batch_size", "dim"}}.
std::vector<std::vector<std::string>> drawn_shapes(const std::string& get_inputs) {
  std::vector<std::vector<std::string>> shapes;
  const auto t = c_tokens(get_inputs);
  for (std::size_t i = 2; i + 1 < t.size(); ++i) {
    const std::string_view word = t[i].text;
    const bool draws = word == "rand" || word == "randn" || word == "ones" || word == "zeros" ||
                       word == "empty" || word == "randint";
    if (!draws || t[i - 1].text != "." || t[i + 1].text != "(") continue;
    std::vector<std::string> shape;
    std::string part;
    int depth = 0;
    for (std::size_t k = i + 1; k < t.size(); ++k) {
      const std::string_view s = t[k].text;
      if (s == "(" || s == "[") {
        if (depth++ > 0 && word == "randint") shape.clear();
        continue;
      }
      if (s == "=") part = "=";  // a keyword argument
      if (s == "," || s == ")" || s == "]") {
        if (!part.empty() && part.find('=') == std::string::npos) shape.push_back(part);
        part.clear();
        if (s != "," && --depth == 0) break;
        continue;
      }
      if (part != "=") part += std::string(s);
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

struct PythonTask {
  std::string text;
  std::vector<std::vector<std::string>> shapes;  // of forward's tensors, where known
  bool given = false;                            // from the user's file
};

// Extracts Model, get_inputs and their dependencies from a file that also builds an extension.
std::optional<PythonTask> model_in(const std::string& text) {
  const std::vector<PythonBlock> blocks = python_blocks(text);
  bool model = false, inputs = false;
  for (const PythonBlock& block : blocks) {
    model = model || (block.keyword == "class" && block.name == "Model");
    inputs = inputs || (block.keyword == "def" && block.name == "get_inputs");
  }
  if (!model || !inputs) return std::nullopt;
  std::set<std::string> dropped = {"load_inline", "cpp_extension", "ModelNew"};
  PythonTask task;
  task.given = true;
  for (const PythonBlock& block : blocks) {
    bool drop = block.keyword == "if" || contains(block.text, "__global__");
    for (const CToken& token : c_tokens(block.text)) {
      drop = drop || dropped.contains(std::string(token.text));
    }
    if (block.keyword == "class" && block.name == "Model") drop = false;
    if (drop) {
      if (!block.name.empty()) dropped.insert(block.name);
      continue;
    }
    if (block.keyword == "def" && block.name == "get_inputs")
      task.shapes = drawn_shapes(block.text);
    task.text += block.text;
  }
  return task;
}

struct KnownModule {
  const char* word;
  int tensors;
  const char* expression;  // A, B: the tensors
};
constexpr KnownModule kKnown[] = {
    {"log_softmax", 1, "torch.log_softmax(A, dim=-1)"},
    {"softmax", 1, "torch.softmax(A, dim=-1)"},
    {"leaky_relu", 1, "torch.nn.functional.leaky_relu(A)"},
    {"relu", 1, "torch.relu(A)"},
    {"gelu", 1, "torch.nn.functional.gelu(A)"},
    {"silu", 1, "torch.nn.functional.silu(A)"},
    {"swish", 1, "torch.nn.functional.silu(A)"},
    {"sigmoid", 1, "torch.sigmoid(A)"},
    {"tanh", 1, "torch.tanh(A)"},
    {"rms_norm", 2, "A * torch.rsqrt(A.pow(2).mean(-1, keepdim=True) + 1e-6) * B"},
    {"layer_norm", 3, "torch.nn.functional.layer_norm(A, A.shape[-1:], B, C)"},
    {"layernorm", 3, "torch.nn.functional.layer_norm(A, A.shape[-1:], B, C)"},
    {"bmm", 2, "torch.bmm(A, B)"},
    {"matmul", 2, "torch.matmul(A, B)"},
    {"gemm", 2, "torch.matmul(A, B)"},
    {"add", 2, "A + B"},
    {"mul", 2, "A * B"},
    {"sub", 2, "A - B"},
    {"sum", 1, "A.sum(dim=-1)"},
    {"mean", 1, "A.mean(dim=-1)"}};

// An expression for forward; "" if the name is unknown.
std::string known_expression(const std::string& name, const std::vector<std::string>& tensors) {
  for (const KnownModule& known : kKnown) {
    if (!contains(small_letters(name), known.word) ||
        known.tensors != static_cast<int>(tensors.size())) {
      continue;
    }
    std::string text = known.expression;
    const char* letters[] = {"A", "B", "C"};
    for (std::size_t i = 0; i < tensors.size(); ++i)
      text = replace_word(text, letters[i], tensors[i]);
    return text;
  }
  return "";
}

// A PyTorch expression that the file compares its result with: torch.allclose(f(x), torch.relu(x)).
std::string compared_expression(const std::string& text, const std::vector<std::string>& tensors) {
  for (const std::string& line : lines(text)) {
    const std::size_t at = line.find("allclose(");
    if (at == std::string::npos) continue;
    const std::size_t torch = line.find("torch.", at + 9);
    if (torch == std::string::npos) continue;
    int depth = 0;
    std::size_t end = torch;
    for (; end < line.size(); ++end) {
      if (line[end] == '(') ++depth;
      if (line[end] == ')' && --depth <= 0) break;
      if (line[end] == ',' && depth == 0) break;
    }
    const std::string expression =
        line.substr(torch, end + (depth == 0 && end < line.size() && line[end] == ')') - torch);
    for (const std::string& name : tensors) {
      if (replace_word(expression, name, "") != expression) return expression;
    }
  }
  return "";
}

PythonTask new_module(const ScaffoldSource& source, const CFunction& f,
                      std::vector<Parameter>* parameters, Scaffold* scaffold) {
  const std::string todo(kUnfilled);
  static const char* const names[] = {"ROWS", "COLS", "DEPTH", "HEIGHT", "WIDTH", "LANES"};
  std::vector<std::string> tensors;
  int most = 1;
  for (Parameter& p : *parameters) {
    if (!p.tensor || p.output) continue;
    most = std::max(most, p.rank);
    tensors.push_back(p.source.name);
    for (int i = 0; i < p.rank; ++i) p.shape.push_back(names[i]);
    if (p.rank == 1 && tensors.size() > 1) p.shape = {most > 1 ? "COLS" : "ROWS"};
  }
  PythonTask task;
  std::string& t = task.text;
  t = "# SPDX-License-Identifier: Apache-2.0\n# What " + f.name + " of " + source.file +
      " computes, by `kernelpro new`.\nimport torch\nimport torch.nn as nn\n\n";
  for (int i = 0; i < most; ++i) {
    const int size = most == 1 ? 1 << 24 : most == 2 ? (i == 0 ? 4096 : 8192) : i == 0 ? 16 : 128;
    t += std::string(names[i]) + " = " + std::to_string(size) + "  # " + todo +
         ": the size that matters to you\n";
  }
  std::string expression = compared_expression(source.text, tensors);
  const bool found = !expression.empty();
  if (!found) expression = known_expression(f.name, tensors);
  t += "\n\nclass Model(nn.Module):\n    def forward(self, " + join_text(tensors, ", ") + "):\n";
  if (found) {
    t += "        return " + expression + "\n";
    scaffold->derived.push_back("the definition " + expression + ", from a comparison in the file");
  } else if (!expression.empty()) {
    t +=
        "        return " + expression + "  # " + todo + ": a guess from the name " + f.name + "\n";
    scaffold->confirm.push_back("the definition " + expression + ", a guess from the name");
  } else {
    t += "        raise NotImplementedError  # " + todo +
         ": return what the kernel computes, in PyTorch\n";
    scaffold->confirm.push_back("what the kernel computes, in forward of the module");
  }
  t += "\n\ndef get_inputs():\n    return [";
  bool first = true;
  for (const Parameter& p : *parameters) {
    if (!p.tensor || p.output) continue;
    t += std::string(first ? "" : ", ") + "torch.randn(" + join_text(p.shape, ", ") + ")";
    task.shapes.push_back(p.shape);
    first = false;
  }
  t += "]  # " + todo +
       ": shapes and types of the inputs\n\n\ndef get_init_inputs():\n    return []\n";
  scaffold->confirm.push_back("sizes, shapes and types of the inputs");
  return task;
}

std::string scalar_value(const CParameter& p, Scaffold* scaffold) {
  const bool integer = contains(p.type, "int") || contains(p.type, "long") || p.type == "size_t";
  scaffold->confirm.push_back("the value of " + p.name + " in kernel.cu");
  return p.type == "bool" ? "false" : integer ? "1" : "1.0";
}

// The body of launch: stand-ins for the tensors, the call, the result.
std::string launch_text(const CFunction& f, const std::vector<Parameter>& parameters,
                        const PythonTask& task, Scaffold* scaffold) {
  const std::string todo(kUnfilled);
  std::string out =
      "extern \"C\" void launch(const Args& args, cudaStream_t stream) {\n"
      "  torch::StandIn& s = torch::stand_in();\n  s = torch::StandIn{};\n"
      "  s.stream = stream;\n  s.workspace = static_cast<char*>(args.workspace);\n"
      "  s.left = WORKSPACE_BYTES;\n";
  std::vector<std::string> list;
  std::vector<std::string> first_shape;
  std::size_t input = 0;
  bool output_given = false;
  for (const Parameter& p : parameters) {
    const std::string name =
        p.source.name.empty() ? "p" + std::to_string(list.size()) : p.source.name;
    list.push_back(name);
    if (!p.tensor) {
      out += "  const " + p.source.type + " " + name + " = " + scalar_value(p.source, scaffold) +
             ";  // " + todo + ": its value\n";
      continue;
    }
    std::vector<std::string> shape = p.shape;
    bool sure = !p.output;
    if (!p.output) {
      if (input < task.shapes.size()) {
        shape = task.shapes[input];
      } else {
        sure = false;
      }
      ++input;
      if (first_shape.empty()) first_shape = shape;
    } else {
      shape = first_shape;
      output_given = true;
    }
    const std::string member = p.output ? "out" : name;
    out += "  torch::Tensor " + name + "((void*)args." + member + ", KP_DTYPE, {" +
           join_text(shape, ", ") + "});";
    if (!sure) {
      out += "  // " + todo + ": which tensor of Args this is, and its sizes";
      scaffold->confirm.push_back("the tensor " + name + " in launch of kernel.cu");
    }
    out += "\n";
  }
  const std::string bytes = "torch::bytes_of(KP_DTYPE) * " + product(first_shape);
  const std::string call = f.name + "(" + join_text(list, ", ") + ")";
  if (contains(f.result, "vector") || contains(f.result, "tuple")) {
    out += "  // " + todo +
           ": several results; hand each to its tensor of Args as below\n"
           "  const auto results = " +
           call + ";\n  torch::deliver(results[0], args.out_0, " + bytes + ");\n";
    scaffold->confirm.push_back("how the results map to the outputs, in launch of kernel.cu");
  } else if (f.result == "void" || output_given) {
    out += "  " + call + ";\n";
  } else {
    out += "  s.outputs = {{args.out, " + bytes + "}};  // " + todo +
           ": are these the result's sizes?\n"
           "  torch::deliver(" +
           call + ", args.out, " + bytes + ");\n";
    scaffold->confirm.push_back("the size of the result, in launch of kernel.cu");
  }
  return out + "}\n";
}

std::string kernel_text_of(const ScaffoldSource& source, const std::string& text,
                           const std::string& launch) {
  std::string body = on_stream(without_function(text, "main"), "torch::stand_in().stream");
  const bool half = contains(body, "Half") || contains(body, "__half");
  return "// From " + source.file +
         ", by `kernelpro new`: its code over stand-ins for PyTorch's types. `launch`, at\n// the "
         "end, is the entry point.\n#include \"task.h\"\n\n#define KP_SCALAR " +
         std::string(half ? "__half" : "float") +
         "\n#define KP_DTYPE torch::" + (half ? "kHalf" : "kFloat") + "\n\n" +
         std::string(embedded::torch_stand_in) + "\n" + body + "\n" + launch;
}

}  // namespace

bool is_extension(const std::string& text) {
  return contains(text, "torch::Tensor") || contains(text, "at::Tensor") ||
         contains(text, "load_inline") || contains(text, "torch/extension.h");
}

Result<Scaffold> scaffold_extension(const ScaffoldSource& source) {
  const std::string all = is_python(source.file) ? sources_in_python(source.text) : source.text;
  const std::string text = without_bindings(all);
  const std::vector<CFunction> functions = c_functions(text);
  KP_ASSIGN(auto f, choose(source, text, functions));
  Scaffold scaffold;
  scaffold.name = source.name;
  scaffold.task = "model.py";
  scaffold.kernel = "kernel.cu";
  const std::string body = text.substr(f.body_begin, f.body_end - f.body_begin);
  std::vector<Parameter> parameters;
  for (const CParameter& p : f.parameters) {
    Parameter parameter;
    parameter.source = p;
    parameter.tensor = is_tensor_type(p.type);
    parameter.output = parameter.tensor && written_by_launches(text, f, p.name, functions);
    parameter.rank = rank_of(body, p.name);
    parameters.push_back(std::move(parameter));
  }
  scaffold.derived.push_back("the function " + f.name + " on " + std::to_string(parameters.size()) +
                             " arguments, which `launch` calls");
  std::optional<PythonTask> task;
  if (is_python(source.file)) task = model_in(source.text);
  if (task) {
    scaffold.derived.push_back("the module Model with get_inputs, from the file");
  } else {
    task = new_module(source, f, &parameters, &scaffold);
  }
  const std::string launch = launch_text(f, parameters, *task, &scaffold);
  scaffold.files["model.py"] = task->text;
  scaffold.files["kernel.cu"] = kernel_text_of(source, text, launch);
  return scaffold;
}

}  // namespace kernelpro
