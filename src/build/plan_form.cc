// SPDX-License-Identifier: Apache-2.0
#include "build/plan_form.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "build/elf.h"

namespace kernelpro {

namespace {

constexpr int kMaxParameters = 4096;

// As in core/device/plan.h.
struct RawParameter {
  std::int32_t kind;
  std::int32_t size;
  std::int64_t index_or_bits;
  std::int64_t offset;
};
struct RawHeader {
  std::uint32_t magic;
  std::int32_t kind;
  std::int32_t order;
  std::int32_t parameter_count;
  std::uint32_t grid[3], block[3], cluster[3];
  std::uint32_t dynamic_shared;
  std::uint32_t value;
  std::int32_t reserved;
  std::int64_t bytes;
};
struct RawMap {
  std::int32_t type, rank, swizzle, mismatch;
  std::int64_t sizes[5], strides[5];
  std::int32_t box[6];
};
static_assert(offsetof(RawHeader, order) == kPlanRecordLine);
static_assert(sizeof(RawParameter) == 24 && sizeof(RawHeader) == 72 && sizeof(RawMap) == 120);

template <class T>
std::optional<T> record_at(std::string_view table, std::uint64_t offset) {
  if (offset > table.size() || table.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, table.data() + offset, sizeof value);
  return value;
}

struct Step {
  int order = 0;
  PlanNode node;
};

using Refused = tl::unexpected<std::string>;

constexpr std::size_t kMostRelocations = 100'000;

class PlanReader {
 public:
  PlanReader(const Elf& elf, int tensors, bool has_workspace)
      : elf_(elf), tensors_(tensors), has_workspace_(has_workspace) {}

  tl::expected<LaunchPlan, std::string> read() {
    const int symbols = elf_.find(".symtab");
    const int data = elf_.find(".nv.global.init");
    if (symbols < 0 || data < 0) return Refused("the cubin has no launch steps");
    symbol_table_ = elf_.content(static_cast<std::size_t>(symbols));
    strings_ = elf_.section(static_cast<std::size_t>(symbols)).sh_link;
    data_ = elf_.content(static_cast<std::size_t>(data));
    const int relocations = elf_.find(".rela.nv.global.init");
    if (relocations >= 0) {
      const std::string_view all = elf_.content(static_cast<std::size_t>(relocations));
      if (all.size() / sizeof(Elf64_Rela) > kMostRelocations) {
        return Refused(
            "its variables hold more than 100000 addresses, which every load relocates: "
            "keep offsets in tables instead");
      }
      note_relocations(all);
    }

    std::vector<Step> steps;
    for (std::uint64_t at = 0;; at += sizeof(Elf64_Sym)) {
      const auto symbol = record_at<Elf64_Sym>(symbol_table_, at);
      if (!symbol) break;
      const std::string_view name = elf_.text(strings_, symbol->st_name);
      if (!name.starts_with("kp_step_") || symbol->st_shndx != data) continue;
      auto step = read_step(*symbol);
      if (!step) return Refused(step.error());
      steps.push_back(std::move(*step));
    }
    std::sort(steps.begin(), steps.end(),
              [](const Step& a, const Step& b) { return a.order < b.order; });
    LaunchPlan plan;
    for (Step& step : steps) plan.nodes.push_back(std::move(step.node));
    for (int i = 1; i < static_cast<int>(plan.nodes.size()); ++i)
      plan.edges.push_back({i - 1, i, 0, 0, 0});
    const std::string problem = plan.problem();
    if (!problem.empty()) return Refused("the launch steps are not a plan: " + problem);
    return plan;
  }

 private:
  void note_relocations(std::string_view all) {
    for (std::uint64_t at = 0;; at += sizeof(Elf64_Rela)) {
      const auto relocation = record_at<Elf64_Rela>(all, at);
      if (!relocation) return;
      symbols_at_.try_emplace(relocation->r_offset, ELF64_R_SYM(relocation->r_info));
    }
  }

  std::string function_at(std::uint64_t offset) const {
    const auto known = symbols_at_.find(offset);
    if (known == symbols_at_.end()) return "";
    const auto symbol = record_at<Elf64_Sym>(symbol_table_, known->second * sizeof(Elf64_Sym));
    return symbol ? std::string(elf_.text(strings_, symbol->st_name)) : "";
  }

  tl::expected<PlanParameter, std::string> parameter(const RawParameter& raw) const {
    PlanParameter p;
    if (raw.kind == 0) {
      if (raw.size < 1 || raw.size > 8) return Refused("a parameter of an impossible size");
      p.bytes.assign(reinterpret_cast<const char*>(&raw.index_or_bits),
                     static_cast<std::size_t>(raw.size));
      return p;
    }
    p.offset = raw.offset;
    if (raw.kind == 1 || raw.kind == 3) {
      p.kind = PlanParameter::Kind::kTensor;
      p.index = static_cast<int>(raw.index_or_bits);
      if (raw.index_or_bits < 0 || raw.index_or_bits >= tensors_) {
        return Refused("a step names a tensor that Args does not have");
      }
      return p;
    }
    p.kind = PlanParameter::Kind::kWorkspace;
    if ((raw.kind != 2 && raw.kind != 4) || !has_workspace_) {
      return Refused("a step uses the workspace, but the task declares none");
    }
    return p;
  }

  // The address is the parameter's; the driver encodes map and address at use.
  static tl::expected<PlanTensorMap, std::string> tensor_map(const RawMap& raw,
                                                             std::int64_t offset) {
    PlanTensorMap map;
    map.type = raw.type;
    map.rank = raw.rank;
    map.swizzle = raw.swizzle;
    std::copy(raw.sizes, raw.sizes + 5, map.sizes.begin());
    std::copy(raw.strides, raw.strides + 5, map.strides.begin());
    std::copy(raw.box, raw.box + 5, map.box.begin());
    if (raw.mismatch != 0) {
      return Refused("a tensor map whose box or strides do not have the dimensions of its sizes");
    }
    const std::string problem = map.problem();
    if (!problem.empty()) return Refused("a tensor map " + problem);
    if (offset % 16 != 0)
      return Refused("a tensor map whose address is not a multiple of 16 bytes");
    return map;
  }

  tl::expected<Step, std::string> read_step(const Elf64_Sym& symbol) const {
    const auto raw = record_at<RawHeader>(data_, symbol.st_value + 8);
    if (!raw || raw->magic != kPlanRecord) return Refused("a launch step that cannot be read");
    if (raw->parameter_count < 0 || raw->parameter_count > kMaxParameters) {
      return Refused("a launch step with an impossible number of parameters");
    }
    Step step;
    step.order = raw->order;
    PlanNode& n = step.node;
    std::vector<PlanParameter> parameters;
    std::uint64_t maps =
        symbol.st_value + 8 + sizeof(RawHeader) +
        static_cast<std::uint64_t>(std::max(1, raw->parameter_count)) * sizeof(RawParameter);
    for (int i = 0; i < raw->parameter_count; ++i) {
      const auto p =
          record_at<RawParameter>(data_, symbol.st_value + 8 + sizeof(RawHeader) +
                                             static_cast<std::uint64_t>(i) * sizeof(RawParameter));
      if (!p) return Refused("a launch step that ends too early");
      auto made = parameter(*p);
      if (!made) return Refused(made.error());
      if (p->kind >= 3) {
        const auto record = record_at<RawMap>(data_, maps);
        if (!record) return Refused("a launch step that ends too early");
        maps += sizeof(RawMap);
        auto map = tensor_map(*record, p->offset);
        if (!map) return Refused(map.error());
        made->map = *map;
      }
      parameters.push_back(std::move(*made));
    }
    if (raw->kind == 1) {
      if (parameters.size() != 1 || raw->bytes < 0) return Refused("a memset that cannot be read");
      n.kind = PlanNode::Kind::kMemset;
      n.destination = parameters[0];
      n.value = raw->value & 0xff;
      n.width = static_cast<std::uint64_t>(raw->bytes);
      return step;
    }
    n.kind = PlanNode::Kind::kKernel;
    n.function = function_at(symbol.st_value);
    if (n.function.empty()) return Refused("a launch step whose kernel is not in the cubin");
    std::copy(raw->grid, raw->grid + 3, n.grid.begin());
    std::copy(raw->block, raw->block + 3, n.block.begin());
    std::copy(raw->cluster, raw->cluster + 3, n.cluster.begin());
    n.dynamic_shared = raw->dynamic_shared;
    n.parameters = std::move(parameters);
    return step;
  }

  const Elf& elf_;
  int tensors_;
  bool has_workspace_;
  std::string_view symbol_table_, data_;
  std::unordered_map<std::uint64_t, std::uint64_t> symbols_at_;  // by offset in the data
  std::size_t strings_ = 0;
};

}  // namespace

bool is_plan_form(std::string_view source) {
  for (std::size_t i = 0; i < source.size(); ++i) {
    const std::string_view rest = source.substr(i);
    if (rest.starts_with("//")) {
      i = std::min(source.find('\n', i), source.size());
    } else if (rest.starts_with("/*")) {
      const std::size_t end = source.find("*/", i + 2);
      i = end == std::string_view::npos ? source.size() : end + 1;
    } else if (rest.starts_with("KP_LAUNCH(") || rest.starts_with("KP_LAUNCH_CLUSTER(")) {
      return true;
    }
  }
  return false;
}

tl::expected<LaunchPlan, std::string> plan_from_cubin(std::string_view cubin, int tensors,
                                                      bool has_workspace) {
  Elf elf(cubin);
  if (!elf.read_sections()) return Refused("the compiler's output is not a cubin");
  return PlanReader(elf, tensors, has_workspace).read();
}

}  // namespace kernelpro
