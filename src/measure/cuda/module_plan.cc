// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/module_plan.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/evidence/operators_json.h"
#include "core/plan/captured_call.h"
#include "measure/cuda/symbols.h"
#include "measure/cuda/worker.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kMostBytes = 1LL << 30;  // of all files of a capture
constexpr std::size_t kMostFiles = 256;
constexpr std::size_t kMostReason = 300;

// A file of a capture's folder. The descriptor was opened before any code of the candidate ran:
// whatever it renames or links since, no file from elsewhere is read.
Result<std::string> read_within(int folder, const std::string& name) {
  const bool plain = !name.empty() && name.find('/') == std::string::npos;
  const Fd file(
      plain ? ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1);
  struct stat about = {};
  if (!file.valid() || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) ||
      about.st_nlink != 1) {
    return fail(ErrorKind::kBadInput, "the capture names no file", "");
  }
  if (about.st_size > kMostBytes) {
    return fail(ErrorKind::kBadInput, "a file of the capture is too large", "");
  }
  std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t n = ::read(file.get(), bytes.data() + got, bytes.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(ErrorKind::kBadInput, "a file of the capture cannot be read", "");
    got += static_cast<std::size_t>(n);
  }
  return bytes;
}

// Copies what a process left in its folder into our cache, where no candidate can change it: each
// file once, and only as much as a capture can need.
class Kept {
 public:
  explicit Kept(int folder) : folder_(folder) {}

  // The copy's path. `code`: refused where it may not run.
  Result<std::string> keep(const std::string& name, bool code) {
    const auto known = paths_.find(name);
    if (known != paths_.end()) return known->second;
    KP_ASSIGN(const std::string bytes, read_within(folder_, name));
    bytes_ += static_cast<std::int64_t>(bytes.size());
    if (paths_.size() >= kMostFiles || bytes_ > kMostBytes) {
      return fail(ErrorKind::kBadInput, "the capture has too many or too large files", "");
    }
    if (code) {
      if (const ForbiddenSymbol symbol = forbidden_symbol(bytes); !symbol.rule.empty()) {
        return fail(ErrorKind::kBadInput, symbol.reason, "");
      }
    }
    const std::string plans = join(cache_dir(), "plans");
    KP_TRY(make_dirs(plans));
    const std::string copy = join(plans, hash_hex(bytes));
    if (!exists(copy)) KP_TRY(write_file(copy, bytes));
    paths_[name] = copy;
    return copy;
  }

 private:
  int folder_;
  std::map<std::string, std::string> paths_;
  std::int64_t bytes_ = 0;
};

Result<std::vector<std::string>> kept_images(const Json& names, Kept* files) {
  if (names.size() > kMostFiles) {
    return fail(ErrorKind::kBadInput, "the capture names too many images", "");
  }
  std::vector<std::string> paths;
  for (const Json& name : names) {
    KP_ASSIGN(std::string path, files->keep(name.is_string() ? name.get<std::string>() : "", true));
    paths.push_back(std::move(path));
  }
  return paths;
}

// Leaves the images that the plan uses.
void drop_unused(ModulePlan* made) {
  std::vector<std::string> used;
  std::map<int, int> moved;
  for (PlanNode& node : made->plan.nodes) {
    if (node.kind != PlanNode::Kind::kKernel) continue;
    const auto [place, fresh] = moved.try_emplace(node.image, static_cast<int>(used.size()));
    if (fresh) used.push_back(made->images[static_cast<std::size_t>(node.image)]);
    node.image = place->second;
  }
  made->images = std::move(used);
}

// Those that the process named; none if they do not fit the plan.
std::vector<OperatorCall> operators_of(const Json& answer, const LaunchPlan& plan) {
  const auto list =
      plain::Plain::parse(dump_json(JsonReader(answer).array("operators")), nullptr, false);
  std::vector<OperatorCall> operators = operators_from_json(list);
  std::size_t node = 0;
  for (const OperatorCall& call : operators) {
    const auto first = static_cast<std::size_t>(call.first);
    if (first < node || call.nodes < 1) return {};
    node = first + static_cast<std::size_t>(call.nodes);
  }
  if (node > plan.nodes.size()) return {};
  return operators;
}

Result<ModulePlan> made_of(const Json& answer, const AddressLayout& layout, int folder) {
  Kept files(folder);
  std::vector<CapturedCall> calls;
  ModulePlan made;
  for (const Json& capture : JsonReader(answer).array("captures")) {
    const JsonReader r(capture);
    auto call = captured_call_from_json(dump_json(r.object("call")));
    if (!call) return fail(ErrorKind::kBadInput, "the captured call cannot be read", "");
    calls.push_back(std::move(*call));
    // Those of the second are the first's, and those that only it used.
    KP_ASSIGN(made.images, kept_images(r.array("images"), &files));
  }
  if (calls.size() != 2 || calls[0].tensors.address != layout.base) {
    return fail(ErrorKind::kBadInput, "the captured calls are not two of this case", "");
  }
  KP_ASSIGN(made.plan, plan_of_captures(calls[0], calls[1]));
  const std::string problem = made.plan.problem();
  if (!problem.empty()) return fail(ErrorKind::kBadInput, "its plan has " + problem, "");
  for (const PlanNode& node : made.plan.nodes) {
    const bool kernel = node.kind == PlanNode::Kind::kKernel;
    if (kernel && static_cast<std::size_t>(node.image) >= made.images.size()) {
      return fail(ErrorKind::kBadInput, "its plan names an image that is not there", "");
    }
  }
  drop_unused(&made);
  // Each is copied for each call, even where several are one file.
  std::uint64_t constant_bytes = 0;
  for (const PlanConstant& constant : made.plan.constants) {
    constant_bytes += std::min<std::uint64_t>(constant.bytes, kMostBytes);
  }
  if (constant_bytes > static_cast<std::uint64_t>(kMostBytes)) {
    return fail(ErrorKind::kBadInput, "the tables that it keeps take more than 1 GiB together", "");
  }
  for (PlanConstant& constant : made.plan.constants) {
    KP_ASSIGN(constant.file, files.keep(constant.file, false));
  }
  for (const Json& note : JsonReader(answer).array("notes")) {
    if (note.is_string()) made.notes.push_back(clip(note.get<std::string>(), kMostReason));
  }
  made.operators = operators_of(answer, made.plan);
  return made;
}

}  // namespace

ModuleForm module_form(const Json& answer, const AddressLayout& layout, int folder) {
  Result<ModulePlan> made = made_of(answer, layout, folder);
  if (made) return std::move(*made);
  return HostForm{clip(made.error().message, kMostReason)};
}

ModuleForm capture_module(CudaLink& link, const CudaCase& state, std::uint64_t place,
                          const Task& task, Policy policy, const Binary& binary, double timeout_s) {
  const AddressLayout layout = placed(state.layout, place);
  const std::string own = link.folder() != nullptr ? link.folder()->path() : "";
  const Result<std::string> file = module_file(link, binary);
  if (!file) return HostForm{file.error().message};
  // Under a name that nobody can have guessed, so that nothing lies in it yet.
  std::string folder = join(own, "capture-XXXXXX");
  const bool there = !own.empty() && ::mkdtemp(folder.data()) != nullptr;
  const Fd opened(there ? ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                        : -1);
  if (!opened.valid()) return HostForm{"there is no room for its files in " + own};
  const Answer answer =
      link.ask_while_busy({{"do", "capture"},
                           {"case", state.c->name},
                           {"layout", *parse_json(layout_to_json(layout))},
                           {"tensors", tensors_json(state)},
                           {"dims", state.c->dims},
                           {"module", *file},
                           {"task_source", task.module ? task.module->source : ""},
                           {"task_path", task.module ? task.module->path : ""},
                           {"precision", precision_name(task.precision)},
                           {"policy", policy_name(policy)},
                           {"folder", folder}},
                          timeout_s);
  ModuleForm form = HostForm{"its call could not be captured"};
  if (const auto* reply = std::get_if<Reply>(&answer)) {
    form = module_form(reply->json, layout, opened.get());
    if (auto* made = std::get_if<ModulePlan>(&form)) made->place = place;
  } else if (const auto* refusal = std::get_if<Refusal>(&answer)) {
    form = HostForm{clip(refusal->text, kMostReason)};
  } else {
    const Lost& lost = std::get<Lost>(answer);
    form = HostForm{lost.how + " while its call was captured", lost.timed_out ? lost.seconds : 0};
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return form;
}

}  // namespace kernelpro
