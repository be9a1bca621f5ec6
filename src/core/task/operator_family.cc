// SPDX-License-Identifier: Apache-2.0
#include "core/task/operator_family.h"

#include <algorithm>
#include <initializer_list>

namespace kernelpro {

namespace {

using Words = std::initializer_list<std::string_view>;

std::string lowered(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string described(const Task& task) {
  std::string text = task.name + "\n" + task.summary + "\n";
  text += task.module ? task.module->source : task.reference_cpp + "\n" + task.reference_cu;
  return lowered(std::move(text));
}

bool has_any(const std::string& text, Words words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

bool multiplies_matrices(const Task& task, const std::string& text) {
  for (const Case& c : task.cases) {
    if (task_matmul_flops(task, c) > 0) return true;
  }
  return has_any(text, {"matmul", "linear(", ".mm(", ".bmm(", "einsum", " @ ", "gemm"});
}

// Integers that mark where things begin: offsets, sizes, indices.
bool has_groups(const Task& task) {
  return std::any_of(task.tensors.begin(), task.tensors.end(), [](const Tensor& tensor) {
    return tensor.role == Role::kInput && !is_floating(tensor.dtype);
  });
}

struct KindWords {
  const char* kind;
  Words words;
};
const KindWords kKindWords[] = {
    {"attention", {"attention", "attn"}},
    {"convolution",
     {"conv1d", "conv2d", "conv3d", "convtranspose", "conv_transpose", "convolution"}},
    {"softmax", {"softmax"}},
    {"normalization",
     {"layernorm", "layer_norm", "layer norm", "rmsnorm", "rms_norm", "batchnorm", "batch_norm",
      "groupnorm", "group_norm", "instancenorm", "instance_norm", "normaliz", "normalis"}},
    {"reduction",
     {"reduction", "reduce", ".sum(", ".mean(", "torch.sum", "torch.mean", "argmax", "argmin",
      "amax", "amin", "torch.max(", "torch.min("}},
    {"scan", {"cumsum", "cumprod", "prefix sum", "prefix_sum"}},
    {"pooling", {"pool1d", "pool2d", "pool3d", "pooling"}},
    {"loss", {"loss", "cross_entropy", "kl_div"}},
    {"sorting", {"topk", "torch.sort", "argsort", "sorts "}},
    {"recurrence", {"lstm", "nn.gru", "nn.rnn"}},
};

}  // namespace

std::vector<std::string> operator_family(const Task& task) {
  const std::string text = described(task);
  std::vector<std::string> family;
  for (const KindWords& each : kKindWords) {
    if (has_any(text, each.words)) family.emplace_back(each.kind);
  }
  if (multiplies_matrices(task, text)) {
    family.emplace_back("products");
    if (has_groups(task)) family.emplace_back("groups");
  }
  if (family.empty()) family.emplace_back("elementwise");
  std::sort(family.begin(), family.end());
  return family;
}

bool has_kind(const std::vector<std::string>& family, std::string_view kind) {
  return std::find(family.begin(), family.end(), kind) != family.end();
}

double family_likeness(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto both =
      std::count_if(a.begin(), a.end(), [&](const std::string& kind) { return has_kind(b, kind); });
  const double either = static_cast<double>(a.size() + b.size()) - static_cast<double>(both);
  return either > 0 ? static_cast<double>(both) / either : 0;
}

}  // namespace kernelpro
