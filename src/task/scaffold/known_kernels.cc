// SPDX-License-Identifier: Apache-2.0
// Kernels whose name says what they compute, with the body of a definition in C.
#include "base/text.h"
#include "task/scaffold/parts.h"

namespace kernelpro {

namespace {

using Kind = EntryParameter::Kind;

struct KnownKernel {
  const char* words;  // the entry's name contains one of these
  int inputs, dims;   // how many it must have; 0 dims: any
  const char* body;   // I0, I1: inputs; O: output; C0: constant; D0..: dims; T: all elements
};
constexpr KnownKernel kKnownKernels[] = {
    {"saxpy daxpy axpy", 2, 0, "{ for (long long i = 0; i < T; ++i) O[i] = C0 * I0[i] + I1[i]; }"},
    {"softmax", 1, 2,
     "{\n  for (long long r = 0; r < D0; ++r) {\n    double most = I0[r * D1];\n"
     "    for (long long c = 1; c < D1; ++c) most = fmax(most, I0[r * D1 + c]);\n"
     "    double sum = 0;\n"
     "    for (long long c = 0; c < D1; ++c) sum += exp(I0[r * D1 + c] - most);\n"
     "    for (long long c = 0; c < D1; ++c) O[r * D1 + c] = exp(I0[r * D1 + c] - most) / sum;\n"
     "  }\n}"},
    {"matmul gemm sgemm mm", 2, 3,
     "{\n  for (long long i = 0; i < 1ll * DM * DN; ++i) {\n    double sum = 0;\n"
     "    for (long long k = 0; k < DK; ++k) sum += I0[i / DN * DK + k] * I1[k * DN + i % DN];\n"
     "    O[i] = sum;\n  }\n}"},
    {"transpose", 1, 2, "{ for (long long i = 0; i < T; ++i) O[i % D1 * D0 + i / D1] = I0[i]; }"},
    {"leaky", 1, 0, "{ for (long long i = 0; i < T; ++i) O[i] = I0[i] > 0 ? I0[i] : C0 * I0[i]; }"},
    {"relu", 1, 0, "{ for (long long i = 0; i < T; ++i) O[i] = I0[i] > 0 ? I0[i] : 0.0; }"},
    {"sigmoid", 1, 0, "{ for (long long i = 0; i < T; ++i) O[i] = 1 / (1 + exp(-I0[i])); }"},
    {"silu swish", 1, 0, "{ for (long long i = 0; i < T; ++i) O[i] = I0[i] / (1 + exp(-I0[i])); }"},
    {"gelu", 1, 0,
     "{ for (long long i = 0; i < T; ++i) O[i] = 0.5 * I0[i] * (1 + erf(I0[i] / sqrt(2.0))); }"},
    {"tanh", 1, 0, "{ for (long long i = 0; i < T; ++i) O[i] = tanh(I0[i]); }"},
    {"add sum_vectors", 2, 0, "{ for (long long i = 0; i < T; ++i) O[i] = I0[i] + I1[i]; }"},
    {"sub", 2, 0, "{ for (long long i = 0; i < T; ++i) O[i] = I0[i] - I1[i]; }"},
    {"mul hadamard", 2, 0, "{ for (long long i = 0; i < T; ++i) O[i] = I0[i] * I1[i]; }"},
    {"scale", 1, 0, "{ for (long long i = 0; i < T; ++i) O[i] = C0 * I0[i]; }"},
    {"square", 1, 0, "{ for (long long i = 0; i < T; ++i) O[i] = I0[i] * I0[i]; }"},
    {"copy", 1, 0, "{ for (long long i = 0; i < T; ++i) O[i] = I0[i]; }"}};

// Inputs as a definition sees them: an in-out tensor is read as well.
std::vector<std::string> input_names(const Entry& e) {
  std::vector<std::string> names;
  for (const EntryParameter& p : e.parameters) {
    if (p.kind == Kind::kInput || p.kind == Kind::kInOut) names.push_back(p.source.name);
  }
  return names;
}

}  // namespace

std::optional<std::string> known_body(const Entry& e) {
  const std::string entry = small_letters(e.function.name);
  const std::vector<std::string> inputs = input_names(e);
  std::string output, constant, total;
  int outputs = 0;
  for (const EntryParameter& p : e.parameters) {
    if (p.kind == Kind::kOutput || p.kind == Kind::kInOut) {
      output = p.source.name;
      total = product(p.shape);
      ++outputs;
    }
    if (p.kind == Kind::kConstant) constant = p.source.name;
  }
  if (outputs != 1) return std::nullopt;
  for (const KnownKernel& known : kKnownKernels) {
    bool named = false;
    for (const std::string& word : words(known.words)) named = named || contains(entry, word);
    if (!named || static_cast<int>(inputs.size()) != known.inputs) continue;
    if (known.dims != 0 && static_cast<int>(e.dims.size()) != known.dims) continue;
    std::string body = known.body;
    if (contains(body, "C0") && constant.empty()) continue;
    const auto put = [&](const char* from, const std::string& to) {
      body = replace_word(body, from, to);
    };
    if (contains(body, "DM")) {
      std::map<std::string, std::string> by_letter;
      for (const EntryDim& dim : e.dims) by_letter[small_letters(dim.parameter)] = dim.name;
      if (by_letter.size() != 3 || !by_letter.contains("m") || !by_letter.contains("k")) continue;
      put("DM", by_letter["m"]);
      put("DN", by_letter["n"]);
      put("DK", by_letter["k"]);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) put(i == 0 ? "I0" : "I1", inputs[i]);
    for (std::size_t i = 0; i < e.dims.size() && i < 2; ++i)
      put(i == 0 ? "D0" : "D1", e.dims[i].name);
    put("O", output);
    put("C0", constant);
    put("T", total);
    return body;
  }
  return std::nullopt;
}

}  // namespace kernelpro
