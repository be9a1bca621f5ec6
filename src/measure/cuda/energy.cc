// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/energy.h"

#include <algorithm>
#include <cmath>

#include "base/statistics/statistics.h"
#include "base/text.h"
#include "core/task/key.h"
#include "measure/cuda/capture.h"

namespace kernelpro {

namespace {

constexpr const char* kCase = "energy";
constexpr double kLoadTimeout = 60;
constexpr double kIdleS = 0.5;
constexpr double kPreheatS = 0.3;  // power rises for this long after the first call

// One arm: the subject's graphs, one per copy.
struct Arm {
  CudaWorker* worker = nullptr;
  Json subjects = Json::array();
  std::vector<double> millijoules, watts, call_us, window_s;
};

class EnergyTrial {
 public:
  EnergyTrial(CudaShop& shop, CudaWorker& worker, CudaWorker* other, const std::string& gpu,
              CudaCase& state, const EnergyPlan& plan)
      : shop_(shop),
        worker_(worker),
        other_(other),
        gpu_(gpu),
        state_(state),
        plan_(plan),
        layout_(placed(state.layout, fresh_secret())) {}

  Result<std::variant<Energy, Outcome>> run(const Binary& candidate, const Binary* incumbent) {
    double set_bytes = 0;
    for (const AddressLayout::Slot& slot : layout_.slots) {
      set_bytes += static_cast<double>(slot.bytes);
    }
    copies_ = copies_wanted(set_bytes, shop_.machine.l2_bytes, state_.plan.rotation);
    KP_TRY(fill_sets());
    KP_TRY(open(worker_));
    if (incumbent != nullptr) KP_TRY(open(*other_));
    KP_ASSIGN(
        const Reply idle,
        trusted(worker_.link.ask({{"do", "idle"}, {"gpu", gpu_}, {"window", kIdleS}}, kIdleS + 10),
                "the worker"));
    Energy energy;
    energy.idle_w = JsonReader(idle.json).real("watts");
    Arm mine, other;
    mine.worker = &worker_;
    other.worker = other_;
    auto loaded = load("candidate", candidate, &mine);
    if (!loaded) return tl::unexpected<Error>(loaded.error());
    if (*loaded) return {std::move(**loaded)};
    if (incumbent != nullptr) {
      loaded = load("incumbent", *incumbent, &other);
      if (!loaded) return tl::unexpected<Error>(loaded.error());
      if (*loaded) incumbent = nullptr;  // its failure is not the candidate's fault
    }
    for (int window = 0; window < std::max(2, plan_.windows); ++window) {
      const bool first = window % 2 == 0;
      for (const bool candidates : {first, !first}) {
        if (!candidates && incumbent == nullptr) continue;
        KP_ASSIGN(auto wrong, burn(candidates ? &mine : &other));
        if (!wrong) continue;
        if (candidates) return {std::move(*wrong)};
        incumbent = nullptr;
      }
    }
    describe(mine, set_bytes, &energy);
    if (incumbent != nullptr) energy.versus = compare(mine, other);
    return {std::move(energy)};
  }

 private:
  Result<void> fill_sets() {
    const std::vector<SetContent> contents = check_contents(state_, shop_.settings.policy);
    for (int set = 0; set < copies_; ++set) {
      const SetContent& content = contents[static_cast<std::size_t>(set) % contents.size()];
      KP_TRY(shop_.reference.fill(state_, set, content));
    }
    return {};
  }

  // One case whose single set holds the buffers of all copies.
  Result<void> open(CudaWorker& worker) {
    const std::size_t n = layout_.slots.size();
    const AddressLayout wide = copies_layout(layout_, copies_);
    const Json item = {{"case", kCase},
                       {"layout", *parse_json(layout_to_json(wide))},
                       {"sets", 1},
                       {"inputs", Json::array()}};
    worker.link.post({{"do", "open"}, {"cases", Json::array({item})}});
    std::vector<int> slots, fds;
    const auto send = [&] {
      worker.link.post({{"do", "memory"}, {"case", kCase}, {"set", 0}, {"slots", slots}}, fds);
      slots.clear();
      fds.clear();
    };
    for (int copy = 0; copy < copies_; ++copy) {
      std::vector<int> own(n, -1);  // where a set has none, set 0's is used
      for (const int set : {0, copy}) {
        for (const auto& [slot, fd] : state_.memory[static_cast<std::size_t>(set)]) {
          own[static_cast<std::size_t>(slot)] = fd.get();
        }
      }
      for (std::size_t i = 0; i < n; ++i) {
        slots.push_back(static_cast<int>(static_cast<std::size_t>(copy) * n + i));
        fds.push_back(own[i]);
        if (slots.size() == kFdsPerFrame) send();
      }
    }
    if (!slots.empty()) send();
    KP_TRY(trusted(worker.link.settle(kLoadTimeout), "the worker"));
    return {};
  }

  // A host form is captured again for each copy's addresses.
  Result<std::variant<LaunchPlan, Outcome>> plan_of(const Binary& binary, int copy) {
    if (binary.form == Binary::Form::kPlanForm) {
      return {plan_for_copy(binary.plan, layout_, copy)};
    }
    KP_ASSIGN(CudaLink link,
              CudaLink::start(WorkerRole::kCudaCapture, shop_.settings.gpu, Queues::kOne));
    return capture_plan(std::move(link), binary, "launch", copy_layout(layout_, copies_, copy),
                        shop_.settings.timeout_s);
  }

  Result<std::optional<Outcome>> load(const std::string& name, const Binary& binary, Arm* arm) {
    for (int copy = 0; copy < copies_; ++copy) {
      KP_ASSIGN(auto plan, plan_of(binary, copy));
      if (auto* outcome = std::get_if<Outcome>(&plan)) {
        return std::optional<Outcome>(std::move(*outcome));
      }
      const std::string subject = name + "." + std::to_string(copy);
      const Answer answer = arm->worker->link.ask(
          load_command(kCase, subject, binary, std::get<LaunchPlan>(plan)), kLoadTimeout);
      if (!std::holds_alternative<Reply>(answer)) {
        return std::optional<Outcome>(worker_outcome(answer, "loading for energy", state_.c->name));
      }
      arm->subjects.push_back(subject);
    }
    return std::optional<Outcome>();
  }

  // One window of an arm, on poisoned outputs, which are compared afterwards.
  Result<std::optional<Outcome>> burn(Arm* arm) {
    SetKeys keys;
    std::vector<int> sets;
    for (int set = 0; set < copies_; ++set) {
      sets.push_back(set);
      keys.emplace_back(set, fresh_secret());
    }
    KP_TRY(poison(shop_.judge, state_, keys, true));
    const Answer answer =
        arm->worker->link.ask({{"do", "burn"},
                               {"case", kCase},
                               {"gpu", gpu_},
                               {"subjects", arm->subjects},
                               {"preheat", kPreheatS},
                               {"window", plan_.window_s}},
                              kPreheatS + plan_.window_s + 10 + shop_.settings.timeout_s);
    const auto* reply = std::get_if<Reply>(&answer);
    if (reply == nullptr) {
      return std::optional<Outcome>(worker_outcome(answer, "measuring energy", state_.c->name));
    }
    double ignored = 0;
    KP_ASSIGN(auto wrong, verify(shop_.judge, state_, sets, true, {}, &ignored));
    if (wrong) return std::optional<Outcome>(std::move(wrong->outcome));
    const JsonReader r(reply->json);
    arm->watts.push_back(r.real("watts"));
    arm->call_us.push_back(r.real("us"));
    arm->window_s.push_back(r.real("window"));
    arm->millijoules.push_back(r.real("watts") * r.real("us") * 1e-3);
    return std::optional<Outcome>();
  }

  void describe(const Arm& arm, double set_bytes, Energy* energy) const {
    const Interval interval = mean_interval(arm.millijoules);
    energy->case_name = state_.c->name;
    energy->millijoules = interval.mid;
    energy->low = interval.low;
    energy->high = interval.high;
    energy->variation = variation(arm.millijoules);
    energy->windows = static_cast<int>(arm.millijoules.size());
    energy->window_s = median(arm.window_s);
    energy->busy_w = median(arm.watts);
    energy->call_us = median(arm.call_us);
    const double bytes = copies_ * set_bytes;
    energy->method = "calls in a row over " + std::to_string(copies_) + " sets of buffers, " +
                     number(bytes / 1e6, 3) + " MB" +
                     (bytes > shop_.machine.l2_bytes ? "" : ", which L2 may hold");
  }

  // Ratios of neighboring windows, as logarithms.
  static Energy::Versus compare(const Arm& mine, const Arm& other) {
    std::vector<double> logs;
    for (std::size_t i = 0; i < std::min(mine.millijoules.size(), other.millijoules.size()); ++i) {
      logs.push_back(std::log(other.millijoules[i] / mine.millijoules[i]));
    }
    const Interval interval = mean_interval(logs);
    return {std::exp(interval.mid), std::exp(interval.low), std::exp(interval.high)};
  }

  CudaShop& shop_;
  CudaWorker& worker_;
  CudaWorker* other_;  // the incumbent's
  const std::string& gpu_;
  CudaCase& state_;
  const EnergyPlan& plan_;
  const AddressLayout layout_;  // of the first copy
  int copies_ = 1;
};

// Applies `change` to every address of a plan, by reference to its slot.
template <class Change>
void each_parameter(LaunchPlan* plan, Change change) {
  for (PlanNode& node : plan->nodes) {
    for (PlanParameter& parameter : node.parameters) change(&parameter);
    change(&node.destination);
    change(&node.source);
  }
}

}  // namespace

AddressLayout copies_layout(const AddressLayout& one, int copies) {
  AddressLayout wide = one;
  wide.slots.clear();
  wide.has_workspace = false;
  wide.reserve_bytes = one.reserve_bytes * static_cast<std::uint64_t>(copies);
  for (int copy = 0; copy < copies; ++copy) {
    const AddressLayout part = copy_layout(one, copies, copy);
    wide.slots.insert(wide.slots.end(), part.slots.begin(), part.slots.end());
  }
  return wide;
}

AddressLayout copy_layout(const AddressLayout& one, int copies, int copy) {
  AddressLayout part = one;
  part.reserve_bytes = one.reserve_bytes * static_cast<std::uint64_t>(copies);
  const std::uint64_t shift = one.reserve_bytes * static_cast<std::uint64_t>(copy);
  for (AddressLayout::Slot& slot : part.slots) {
    slot.address += shift;
    slot.mapping += shift;
  }
  return part;
}

LaunchPlan plan_for_copy(const LaunchPlan& plan, const AddressLayout& one, int copy) {
  LaunchPlan moved = plan;
  const int n = static_cast<int>(one.slots.size());
  each_parameter(&moved, [&](PlanParameter* parameter) {
    if (parameter->kind == PlanParameter::Kind::kBytes) return;
    const bool workspace = parameter->kind == PlanParameter::Kind::kWorkspace;
    parameter->index = copy * n + (workspace ? n - 1 : parameter->index);
    parameter->kind = PlanParameter::Kind::kTensor;
  });
  return moved;
}

int copies_wanted(double set_bytes, double l2_bytes, int sets) {
  const double wanted = std::floor(2 * l2_bytes / std::max(set_bytes, 1.0)) + 1;
  return static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(std::max(sets, 1))));
}

std::size_t largest_timed_case(const Task& task, const std::vector<CudaCase>& cases) {
  const Case* largest = largest_timed(task, TargetKind::kCuda);
  const auto at = std::find_if(cases.begin(), cases.end(),
                               [&](const CudaCase& each) { return each.c == largest; });
  return static_cast<std::size_t>(at - cases.begin());
}

Result<std::variant<Energy, Outcome>> measure_energy(CudaShop& shop, CudaWorker& worker,
                                                     CudaWorker* incumbents, const std::string& gpu,
                                                     std::size_t at, const Subject& subject,
                                                     const Subject* incumbent,
                                                     const EnergyPlan& plan) {
  KP_ASSERT(at < shop.cases.size());
  const Binary& mine = subject.binaries[at];
  const Binary* other = incumbent != nullptr ? &incumbent->binaries[at] : nullptr;
  if (mine.form == Binary::Form::kModule) {
    return fail(ErrorKind::kBadInput, "the energy of a PyTorch candidate is not measured",
                "give a CUDA source; a PyTorch one is timed without --objective");
  }
  // A PyTorch incumbent's process is not trusted to report energy.
  const bool module = other != nullptr && other->form == Binary::Form::kModule;
  if (module || incumbents == nullptr) other = nullptr;
  return EnergyTrial(shop, worker, incumbents, gpu, shop.cases[at], plan).run(mine, other);
}

}  // namespace kernelpro
