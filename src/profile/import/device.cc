// SPDX-License-Identifier: Apache-2.0
#include "profile/import/device.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "core/evidence/rates.h"
#include "core/machine/architecture.h"
#include "core/task/task.h"

namespace kernelpro {

namespace {

// Datasheet peaks: dense matrix rates with fp32 accumulation, memory read plus written.
struct Listed {
  const char* name;  // lower-case words of the device name
  int major, minor;
  int multiprocessors;
  double tera_bytes;   // per second
  double tera_fp32;    // fused multiply-adds, two operations each
  double tera_tensor;  // half precision
  double l2_mib;
};

// More specific names first.
constexpr Listed kListed[] = {
    {"gb300", 10, 3, 148, 8.0, 77, 2500, 126},
    {"b300", 10, 3, 148, 8.0, 77, 2500, 126},
    {"gb200", 10, 0, 148, 8.0, 80, 2500, 126},
    {"b200", 10, 0, 148, 8.0, 75, 2250, 126},
    {"gh200 144g", 9, 0, 132, 4.9, 67, 989, 50},
    {"gh200", 9, 0, 132, 4.0, 67, 989, 50},
    {"h200 nvl", 9, 0, 132, 4.8, 60, 835, 50},
    {"h200", 9, 0, 132, 4.8, 67, 989, 50},
    {"h100 pcie", 9, 0, 114, 2.04, 51, 756, 50},
    {"h100 nvl", 9, 0, 132, 3.94, 60, 835, 50},
    {"h100", 9, 0, 132, 3.35, 67, 989, 50},
    {"h800", 9, 0, 132, 3.35, 67, 989, 50},
    {"h20", 9, 0, 78, 4.0, 44, 148, 60},
    {"a100 sxm4 80gb", 8, 0, 108, 2.04, 19.5, 312, 40},
    {"a100 80gb", 8, 0, 108, 1.94, 19.5, 312, 40},
    {"a100", 8, 0, 108, 1.555, 19.5, 312, 40},
    {"a800", 8, 0, 108, 2.04, 19.5, 312, 40},
    {"a30", 8, 0, 56, 0.933, 10.3, 165, 24},
    {"a40", 8, 6, 84, 0.696, 37.4, 150, 6},
    {"a6000", 8, 6, 84, 0.768, 38.7, 155, 6},
    {"a10g", 8, 6, 80, 0.600, 31.5, 70, 6},
    {"a10", 8, 6, 72, 0.600, 31.2, 125, 6},
    {"3090 ti", 8, 6, 84, 1.008, 40.0, 80, 6},
    {"3090", 8, 6, 82, 0.936, 35.6, 71, 6},
    {"3080", 8, 6, 68, 0.760, 29.8, 59.5, 5},
    {"6000 ada", 8, 9, 142, 0.960, 91.1, 364, 96},
    {"l40s", 8, 9, 142, 0.864, 91.6, 362, 96},
    {"l40", 8, 9, 142, 0.864, 90.5, 181, 96},
    {"l20", 8, 9, 92, 0.864, 59.8, 119.5, 96},
    {"l4", 8, 9, 58, 0.300, 30.3, 121, 48},
    {"4090", 8, 9, 128, 1.008, 82.6, 165, 72},
    {"4080", 8, 9, 76, 0.717, 48.7, 97.5, 64},
    {"4070", 8, 9, 46, 0.504, 29.1, 58.3, 36},
    {"pro 6000", 12, 0, 188, 1.79, 125, 503, 128},
    {"5090", 12, 0, 170, 1.79, 104.8, 209.5, 96},
    {"5080", 12, 0, 84, 0.960, 56.3, 112.6, 64},
    {"5070 ti", 12, 0, 70, 0.896, 43.9, 87.9, 48},
    {"gb10", 12, 1, 48, 0.273, 31, 62, 24},
    {"thor", 11, 0, 20, 0.273, 8, 130, 32},
    {"orin", 8, 7, 16, 0.205, 5.3, 42, 4},
    {"v100", 7, 0, 80, 0.900, 15.7, 125, 6},
    {"titan v", 7, 0, 80, 0.653, 14.9, 110, 4.5},
    {"t4", 7, 5, 40, 0.320, 8.1, 65, 4},
    {"2080 ti", 7, 5, 68, 0.616, 13.4, 53.8, 5.5},
};

// Fractions of the peaks that good kernels reach.
constexpr double kCopyShare = 0.9;
constexpr double kFmaShare = 0.93;
constexpr double kTensorShare = 0.8;

// "NVIDIA A100-SXM4-80GB" -> nvidia, a100, sxm4, 80gb; "rtx4090" -> rtx, 4090.
std::vector<std::string> name_words(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool parts = c == '-' || c == '_' || c == '/';
    text += parts ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return words(replace_all(text, "rtx", "rtx "));
}

const Listed* find_listed(const std::string& name) {
  const std::vector<std::string> given = name_words(name);
  const auto has = [&](const std::string& word) {
    return std::find(given.begin(), given.end(), word) != given.end();
  };
  // Laptop GPUs share the names of faster ones.
  if (has("laptop") || has("mobile") || has("max")) return nullptr;
  for (const Listed& row : kListed) {
    const std::vector<std::string> asked = words(row.name);
    if (std::all_of(asked.begin(), asked.end(), has)) return &row;
  }
  return nullptr;
}

}  // namespace

std::string DeviceFacts::arch() const {
  if (major <= 0) return "";
  return Architecture{major, minor, 0}.name();
}

DeviceFacts listed_device(const std::string& name) {
  DeviceFacts facts;
  facts.name = name;
  const Listed* row = find_listed(name);
  if (row == nullptr) return facts;
  facts.major = row->major;
  facts.minor = row->minor;
  facts.multiprocessors = row->multiprocessors;
  facts.bytes_per_s = 1e12 * row->tera_bytes;
  facts.l2_bytes = row->l2_mib * (1 << 20);
  return facts;
}

Machine nominal_machine(const DeviceFacts& facts) {
  Machine machine;
  machine.target = target_name(TargetKind::kCuda);
  machine.name = facts.name;
  machine.arch = facts.arch();
  machine.parallel_units = static_cast<int>(facts.multiprocessors);
  machine.l2_bytes = facts.l2_bytes;
  machine.theoretical_bytes_per_s = facts.bytes_per_s;
  const Listed* row = find_listed(facts.name);
  Ceilings& c = machine.ceilings;
  if (row != nullptr) {
    // A slice of the chip (MIG, a cut-down board) has the same fraction of the rates.
    const double part = facts.multiprocessors > 0 && facts.multiprocessors < row->multiprocessors
                            ? facts.multiprocessors / row->multiprocessors
                            : 1;
    if (machine.parallel_units == 0) machine.parallel_units = row->multiprocessors;
    if (machine.arch.empty()) {
      machine.arch = Architecture{row->major, row->minor, 0}.name();
    }
    c.copy_bytes_per_s =
        kCopyShare * (facts.bytes_per_s > 0 ? facts.bytes_per_s : 1e12 * row->tera_bytes);
    c.fma_flops_per_s = kFmaShare * part * 1e12 * row->tera_fp32;
    c.tensor_flops_per_s = kTensorShare * part * 1e12 * row->tera_tensor;
    c.how = "nominal peaks of " + facts.name + ", scaled to what good kernels reach";
    return machine;
  }
  if (facts.bytes_per_s > 0) {
    c.copy_bytes_per_s = kCopyShare * facts.bytes_per_s;
    c.how = "nominal peaks from clock and width, scaled to what good kernels reach";
  }
  const SmLimits* sm = Architecture{facts.major, facts.minor, 0}.limits();
  if (sm != nullptr && facts.multiprocessors > 0 && facts.clock_hz > 0) {
    c.fma_flops_per_s = kFmaShare * 2 * facts.multiprocessors * sm->fp32_lanes * facts.clock_hz;
  }
  return machine;
}

namespace {

void put(const std::string& name, double value, const std::string& source, Evidence* evidence) {
  if (value > 0 && std::isfinite(value) && !evidence->get(name)) {
    evidence->set(name, value, source);
  }
}

}  // namespace

void add_ceilings(const Machine& machine, const std::string& source, Evidence* e) {
  const Ceilings& c = machine.ceilings;
  put("ceiling.copy_bandwidth", c.copy_bytes_per_s, source, e);
  put("ceiling.fma_rate", c.fma_flops_per_s, source, e);
  put("ceiling.tensor_rate", c.tensor_flops_per_s, source, e);
  put("machine.parallel_units", machine.parallel_units, source, e);
  const Floors least = floors(*e);
  put("roofline.memory_floor", least.memory_us, source, e);
  put("roofline.compute_floor", least.compute_us, source, e);
  const double seconds = 1e-6 * e->get("timing.median").value_or(0);
  if (seconds > 0) {
    put("roofline.achieved_bandwidth", e->get("task.compulsory_bytes").value_or(0) / seconds,
        source, e);
    put("roofline.achieved_flops", e->get("task.flops").value_or(0) / seconds, source, e);
  }
}

}  // namespace kernelpro
