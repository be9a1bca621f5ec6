// SPDX-License-Identifier: Apache-2.0
#include "task/reference/module_reference.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/process/channel.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "core/plan/refusal.h"
#include "task/reference/describe.h"
#include "task/reference/module_process.h"
#include "task/reference/python.h"

namespace kernelpro {

namespace {

constexpr double kImportTimeout = 300;        // of torch, from a cold disk
constexpr std::int64_t kPrinted = 1LL << 30;  // output limit of a module
constexpr std::int64_t kMaxDescription = 16 << 20;
constexpr std::size_t kFdsPerFrame = Channel::kMaxFds - 4;
constexpr const char* kNumerics[] = {"float64", "strict", "kernelbench", "rounded", "tight"};

// What the module itself draws.
const char* drawn_as(DrawKind kind) {
  switch (kind) {
    case DrawKind::kCentred:
      return "centred";
    case DrawKind::kScaled:
      return "scaled";
    case DrawKind::kFilled:
      return "filled";
    case DrawKind::kParameters:
      return "parameters";
    case DrawKind::kKernelBench:
      return "kernelbench";
    default:
      return "given";
  }
}

ErrorKind kind_of(RefusalKind refusal) {
  if (refusal == RefusalKind::kTask) return ErrorKind::kTask;
  if (refusal == RefusalKind::kInput) return ErrorKind::kBadInput;
  return ErrorKind::kEnvironment;
}

class PythonReference : public ModuleReference {
 public:
  // `kept`: cache folder for descriptions, keyed by interpreter, PyTorch and our package.
  PythonReference(double timeout_s, ModuleProcess process, Child child, std::string kept)
      : timeout_s_(timeout_s),
        process_(std::move(process)),
        child_(std::move(child)),
        limits_(process_.command.limits),
        kept_(std::move(kept)) {}

  Result<ModuleDescription> describe(const std::string& source, const std::string& path,
                                     const std::map<std::string, std::int64_t>& dims) override {
    if (lost_) return tl::unexpected<Error>(*lost_);
    const std::string key = hash_hex({source, path, dump_json(Json(dims))});
    if (const auto it = described_.find(key); it != described_.end()) return it->second;
    // A cached description saves waiting for the import of torch; `attach` has it confirmed.
    const Result<std::string> kept = read_file(join(kept_, key), kMaxDescription);
    if (kept) {
      if (Result<ModuleDescription> description = description_from_json(*kept)) {
        unconfirmed_[key] = *kept;
        return described_[key] = std::move(*description);
      }
    }
    KP_ASSIGN(std::string text, ask_description(source, path, dims, key));
    Result<ModuleDescription> description = description_from_json(text);
    if (description) described_[key] = *description;
    return description;
  }

  Result<void> attach(const Task& task, const Case& c, int set,
                      const std::vector<SharedBuffer>& buffers) override {
    KP_ASSERT(task.module.has_value());
    KP_TRY(confirm(task.module->source, task.module->path, c.dims));
    std::vector<int> fds;
    Json message = attach_message(task, c, set, buffers, &fds);
    // Send descriptors that exceed one frame ahead of it.
    std::size_t sent = 0;
    while (fds.size() - sent > kFdsPerFrame) {
      const std::vector<int> part(fds.begin() + static_cast<std::ptrdiff_t>(sent),
                                  fds.begin() + static_cast<std::ptrdiff_t>(sent + kFdsPerFrame));
      KP_TRY(ask({{"do", "attach"}, {"more", true}}, part));
      sent += kFdsPerFrame;
    }
    KP_TRY(ask(message, {fds.begin() + static_cast<std::ptrdiff_t>(sent), fds.end()}));
    return {};
  }

  Result<DrawFacts> draw(const Case& c, int set, std::uint64_t seed, DrawKind kind) override {
    KP_ASSIGN(const Json answer, ask({{"do", "draw"},
                                      {"dims", c.dims},
                                      {"set", set},
                                      {"seed", seed},
                                      {"kind", drawn_as(kind)}}));
    return DrawFacts{JsonReader(answer).flag("changed", true)};
  }

  Result<ComputeFacts> compute(const Case& c, int set, Numerics numerics, bool twice) override {
    KP_ASSIGN(const Json answer, ask({{"do", "compute"},
                                      {"dims", c.dims},
                                      {"set", set},
                                      {"numerics", kNumerics[static_cast<int>(numerics)]},
                                      {"twice", twice}}));
    const JsonReader r(answer);
    return ComputeFacts{r.real("milliseconds"), r.real("processor_s"), printable(r.text("random"))};
  }

  Result<void> detach(const Case& c) override {
    KP_TRY(ask({{"do", "detach"}, {"dims", c.dims}}));
    return {};
  }

  std::string versions() const override { return versions_; }

 private:
  Result<std::string> ask_description(const std::string& source, const std::string& path,
                                      const std::map<std::string, std::int64_t>& dims,
                                      const std::string& key) {
    KP_ASSIGN(const Json answer,
              ask({{"do", "describe"}, {"source", source}, {"path", path}, {"dims", dims}}));
    std::string text = dump_json(answer);
    // Failing to write only costs describing again.
    if (make_dirs(kept_)) static_cast<void>(write_file(join(kept_, key), text));
    return text;
  }

  // Checks that a cached description still matches the module.
  Result<void> confirm(const std::string& source, const std::string& path,
                       const std::map<std::string, std::int64_t>& dims) {
    const auto it = unconfirmed_.find(hash_hex({source, path, dump_json(Json(dims))}));
    if (it == unconfirmed_.end()) return {};
    const std::string before = it->second;
    KP_ASSIGN(std::string now, ask_description(source, path, dims, it->first));
    unconfirmed_.erase(it);
    if (now == before) return {};
    return fail(ErrorKind::kTask,
                "the module has changed although its file has not: something that it imports or "
                "reads is different",
                "run the command again: it will use the new description");
  }

  // Waits for the greeting before the first command: torch is imported, or it explains why not.
  Result<void> greet() {
    if (greeted_) return {};
    KP_ASSIGN(const Json answer,
              exchange({{"do", "hello"}}, {}, kImportTimeout, "to import PyTorch"));
    versions_ = printable(JsonReader(answer).text("versions"));
    greeted_ = true;
    return {};
  }

  Result<Json> ask(const Json& message, const std::vector<int>& fds = {}) {
    KP_TRY(greet());
    return exchange(message, fds, timeout_s_, "for the command " + message["do"].dump());
  }

  Result<Json> exchange(const Json& message, const std::vector<int>& fds, double timeout_s,
                        const std::string& purpose) {
    if (lost_) return tl::unexpected<Error>(*lost_);
    if (child_.send(dump_json(message), fds)) {
      std::optional<Frame> frame = child_.receive(timeout_s);
      std::optional<Json> json = frame ? parse_json(frame->bytes) : std::nullopt;
      if (json && json->is_object()) {
        const JsonReader r(*json);
        if (r.flag("ok")) return std::move(*json);
        if (r.member("error") != nullptr) {
          return fail(kind_of(refusal_kind(r.text("rule"))), printable(r.text("error")),
                      printable(r.text("next",
                                       "run the command again; if it fails again, `kernelpro "
                                       "doctor` shows what is missing")));
        }
      }
    }
    lost_ = loss(timeout_s, purpose);
    return tl::unexpected<Error>(*lost_);
  }

  Error loss(double timeout_s, const std::string& purpose) {
    const Exit& exit = child_.finish();
    const std::string advice = module_limit_advice(exit.kind);
    if (exit.kind == Exit::Kind::kTimedOut) {
      return {ErrorKind::kTask,
              "the module's process needed more than " + number(timeout_s) + " s " + purpose +
                  " and was ended",
              advice};
    }
    if (exit.kind == Exit::Kind::kOutOfMemory) {
      return {ErrorKind::kBadInput, "the module's process " + exit.describe(limits_), advice};
    }
    if (!advice.empty()) {
      return {ErrorKind::kTask, "the module's process " + exit.describe(limits_), advice};
    }
    std::string text = "the module's process " + exit.describe(limits_);
    const std::string said(trim(exit.output));
    // The end of the output is the useful part.
    constexpr std::size_t kShown = 3000;
    if (!said.empty()) {
      text += ":\n" + (said.size() > kShown ? "..." + said.substr(said.size() - kShown) : said);
    }
    return {greeted_ ? ErrorKind::kTask : ErrorKind::kEnvironment, text,
            greeted_ ? "check what the file does at import and in forward"
                     : "try `python3 -c 'import torch'`; `kernelpro doctor` shows what is missing"};
  }

  const double timeout_s_;
  const ModuleProcess process_;  // its scratch folder outlives the child
  Child child_;
  Limits limits_;
  bool greeted_ = false;
  std::string versions_;
  std::optional<Error> lost_;
  std::string kept_;
  std::map<std::string, ModuleDescription> described_;
  std::map<std::string, std::string> unconfirmed_;  // cached text, by the same key
};

}  // namespace

Result<std::unique_ptr<ModuleReference>> ModuleReference::start(const ReferenceSettings& settings) {
  KP_ASSIGN(const PythonFacts facts, find_python(settings.python));
  const bool cuda = settings.target == TargetKind::kCuda;
  if (cuda && !version_at_least(facts.torch_version, 2, 1)) {
    return fail(ErrorKind::kEnvironment,
                facts.interpreter + " has PyTorch " + facts.torch_version +
                    ", but the cuda target needs 2.1 or newer with CUDA",
                "pip install torch, or set KERNELPRO_PYTHON to another interpreter");
  }
  KP_ASSIGN(const double timeout_s, module_seconds(settings.timeout_s));
  KP_ASSIGN(ModuleProcess process,
            module_process({"reference", settings.python, settings.target, settings.gpu,
                            settings.folder, settings.memory_bytes}));
  process.command.env.emplace_back("CUBLAS_WORKSPACE_CONFIG=:4096:8");  // reproducible results
  process.command.limits.output_killed = kPrinted;
  KP_ASSIGN(Child child, Child::start(process.command));
  KP_ASSIGN(const std::string package, unpacked_package());
  const std::string kept = join(
      join(cache_dir(), "descriptions"),
      hash_hex({facts.interpreter, facts.torch_version, package, target_name(settings.target)}));
  return std::make_unique<PythonReference>(timeout_s, std::move(process), std::move(child), kept);
}

Result<std::unique_ptr<ModuleReference>> restart_module(const Task& task, TargetKind target,
                                                        const std::string& gpu,
                                                        const std::string& python) {
  KP_ASSERT(task.module.has_value());
  ReferenceSettings settings;
  settings.python = python;
  settings.target = target;
  settings.gpu = gpu;
  if (!task.module->path.empty()) settings.folder = dirname(absolute(task.module->path));
  KP_ASSIGN(auto module, ModuleReference::start(settings));
  const auto dims = task.cases.empty() ? decltype(Case::dims)() : task.cases.back().dims;
  KP_TRY(module->describe(task.module->source, task.module->path, dims));
  return module;
}

}  // namespace kernelpro
