// SPDX-License-Identifier: Apache-2.0
// kernelpro-worker over the fake CUDA driver, for tests of the whole cuda evaluator without a GPU:
// real processes, memory and messages, and kernels that are functions below. All compute y = 2x
// over kElements fp32 elements, honestly or not. Static variables stand for whatever could carry
// memory between calls: a module's globals, caches, pages of modules that are gone.
//
//   fake_worker images DIR    writes DIR/NAME for every kernel, DIR/all with all of them, and the
//                             judge's own to the cache
//   fake_worker ROLE          as kernelpro-worker
//   fake_worker -c ...        as Python that is asked for its version of PyTorch
//   fake_worker FILE.py ROLE  as the Python processes of a PyTorch candidate, which is the kernel
//                             that its file is named after; "item" cannot be captured, nor can
//                             those of fake_module.h, which run in host form
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "core/plan/captured_call.h"
#include "core/plan/protocol.h"
#include "core/task/inputs.h"
#include "measure/worker/cuda/kernels.h"
#include "measure/worker/cuda/memory.h"
#include "measure/worker/cuda/message.h"
#include "measure/worker/cuda/nvrtc.h"
#include "measure/worker/roles.h"
#include "measure/worker/testing/fake_driver.h"
#include "measure/worker/testing/fake_module.h"

namespace {

using kernelpro::fake::Launch;

constexpr std::size_t kElements = 4093;
constexpr double kHonestUs = 40, kCheatUs = 4;

struct Tensors {
  const float* x;
  float* y;
};
// Null where they are not mapped.
Tensors tensors(Launch& launch) {
  return {launch.memory<float>(0, kElements), launch.memory<float>(1, kElements)};
}

void compute(const Tensors& t, float factor = 2) {
  if (t.x == nullptr || t.y == nullptr) return;
  for (std::size_t i = 0; i < kElements; ++i) t.y[i] = factor * t.x[i];
}

bool is_done(const Tensors& t) {
  for (std::size_t i = 0; i < 16; ++i) {
    if (t.y[i] != 2 * t.x[i]) return false;
  }
  return true;
}

std::uint64_t look_of(const Tensors& t) {
  std::uint64_t look = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, t.x + i, sizeof bits);
    look = look * 1000003 + bits;
  }
  return look;
}

void honest(Launch& launch) { compute(tensors(launch)); }

void reference(Launch& launch) {
  const float* x = launch.memory<float>(0, kElements);
  double* y = launch.memory<double>(1, kElements);
  if (x == nullptr || y == nullptr) return;
  for (std::size_t i = 0; i < kElements; ++i) y[i] = 2.0 * static_cast<double>(x[i]);
}

void wrong(Launch& launch) { compute(tensors(launch), 3); }

// Keeps the results of all inputs that it has seen.
void memo(Launch& launch) {
  static std::map<std::uint64_t, std::vector<float>> kept;
  const Tensors t = tensors(launch);
  const auto [at, fresh] = kept.try_emplace(look_of(t));
  if (fresh) {
    compute(t);
    at->second.assign(t.y, t.y + kElements);
  } else {
    std::memcpy(t.y, at->second.data(), kElements * sizeof(float));
    launch.us = kCheatUs;
  }
}

// Does nothing where a result stands already.
void skips_when_done(Launch& launch) {
  const Tensors t = tensors(launch);
  if (is_done(t)) {
    launch.us = kCheatUs;
  } else {
    compute(t);
  }
}

// Wrong on inputs that it has seen before: nobody should look twice.
void wrong_when_known(Launch& launch) {
  static std::set<std::uint64_t> seen;
  const Tensors t = tensors(launch);
  const bool fresh = seen.insert(look_of(t)).second;
  compute(t, fresh ? 2 : 3);
  if (!fresh) launch.us = kCheatUs;
}

// Wrong in the last of many calls.
void wrong_later(Launch& launch) {
  static int calls = 0;
  compute(tensors(launch), ++calls > 20 ? 3 : 2);
}

// Right on large inputs in the first call after loading only.
void careful_at_first(Launch& launch) {
  const Tensors t = tensors(launch);
  const bool first = (*launch.globals)["calls"]++ == 0;
  bool large = false;
  for (std::size_t i = 0; i < kElements; ++i) large = large || std::fabs(t.x[i]) > 30;
  compute(t, large && !first ? 3 : 2);
}

void changes_an_input(Launch& launch) {
  static int calls = 0;
  const Tensors t = tensors(launch);
  compute(t);
  if (++calls > 20) const_cast<float*>(t.x)[7] = t.x[7] + 1;
}

void writes_past_the_end(Launch& launch) {
  const Tensors t = tensors(launch);
  compute(t);
  if (float* past = launch.memory<float>(1, kElements + 1)) past[kElements] = 1;
}

// Uses an input as its scratch, and puts back what was there.
void borrows_an_input(Launch& launch) {
  const Tensors t = tensors(launch);
  if (t.x == nullptr) return;
  volatile float* borrowed = const_cast<float*>(t.x);
  const float kept = borrowed[7];
  borrowed[7] = 0;
  borrowed[7] = kept;
  compute(t);
}

// Two steps of a call: y = x, then y = 2y.
void copies(Launch& launch) { compute(tensors(launch), 1); }
void doubles(Launch& launch) {
  const Tensors t = tensors(launch);
  if (t.y == nullptr) return;
  for (std::size_t i = 0; i < kElements; ++i) t.y[i] *= 2;
}

// A page of the context: whoever runs there can write to it.
bool page_was_written = false;
void writes_a_page(Launch& launch) {
  page_was_written = true;
  honest(launch);
}
void reads_a_page(Launch& launch) {
  if (page_was_written) launch.us = 20 * kHonestUs;
  honest(launch);
}

// Knows from the source where tensors lie: both of them, or the second from the first.
std::uint64_t literal(std::size_t slot) {
  return kernelpro::make_layout({4 * kElements, 4 * kElements}, 0, 2u << 20,
                                kernelpro::kCandidateBase)
      .slots[slot]
      .address;
}
void literal_addresses(Launch& launch) {
  compute({static_cast<const float*>(launch.bytes_at(literal(0), 4 * kElements)),
           static_cast<float*>(launch.bytes_at(literal(1), 4 * kElements))});
}
void literal_distance(Launch& launch) {
  const std::uint64_t y = launch.value<std::uint64_t>(0) + literal(1) - literal(0);
  compute(
      {launch.memory<float>(0, kElements), static_cast<float*>(launch.bytes_at(y, 4 * kElements))});
}

// Two bf16 parts of each element, the second cut off: about as far off as a product of two such
// operands.
void two_parts(Launch& launch) {
  const Tensors t = tensors(launch);
  if (t.x == nullptr || t.y == nullptr) return;
  for (std::size_t i = 0; i < kElements; ++i) {
    const float high = kp::from_bfloat16(kp::to_bfloat16(t.x[i]));
    const float low = kp::bits_float(kp::float_bits(t.x[i] - high) & 0xffff0000u);
    t.y[i] = 2 * (high + low);
  }
}

float largest(const Tensors& t) {
  float found = 0;
  for (std::size_t i = 0; t.x != nullptr && i < kElements; ++i) {
    found = std::max(found, std::fabs(t.x[i]));
  }
  return found;
}

// The usual inputs are never all small.
void skips_when_small(Launch& launch) {
  const Tensors t = tensors(launch);
  compute(t, largest(t) < 0.25f ? 0 : 2);
}

// Counts its calls, past every reload: checks come first, and probes came after 20 timed calls.
void careless_when_timed(Launch& launch) {
  static int calls = 0;
  const Tensors t = tensors(launch);
  ++calls;
  const bool careless = calls > 9 && calls <= 29 && (largest(t) < 0.25f || largest(t) > 30);
  compute(t, careless ? 0 : 2);
}

// Reads far beyond its input for values of another size.
void strays_when_large(Launch& launch) {
  const Tensors t = tensors(launch);
  if (largest(t) > 30) static_cast<void>(launch.memory<float>(0, kElements + (64u << 20)));
  compute(t);
}

// Quick in the first call after loading, by which limits are chosen; later ones take a second.
void dawdles_later(Launch& launch) {
  compute(tensors(launch));
  if ((*launch.globals)["calls"]++ > 0) ::sleep(1);
}

// Right as long as its counter, which nothing resets, is small.
void tires(Launch& launch) { compute(tensors(launch), (*launch.globals)["calls"]++ < 300 ? 2 : 3); }

// The same, and then does nothing.
void gives_up(Launch& launch) {
  if ((*launch.globals)["calls"]++ < 300) compute(tensors(launch));
}

// Loses a race once in many calls, and then waits for ever.
void hangs_in_the_end(Launch& launch) {
  compute(tensors(launch));
  if ((*launch.globals)["calls"]++ >= 300) ::sleep(1000);
}

// Another path for values of another size.
void slow_when_large(Launch& launch) {
  if (largest(tensors(launch)) > 30) launch.us = 3 * kHonestUs;
  honest(launch);
}
void slow_when_small(Launch& launch) {
  if (largest(tensors(launch)) < 0.25f) launch.us = 3 * kHonestUs;
  honest(launch);
}

// Takes all elements for usual ones if one in 256 are.
void trusts_a_sample(Launch& launch) {
  const Tensors t = tensors(launch);
  if (t.x == nullptr || t.y == nullptr) return;
  bool usual = true;
  for (std::size_t i = 5; i < kElements; i += 256) usual = usual && std::fabs(t.x[i]) < 10;
  for (std::size_t i = 0; i < kElements; ++i) {
    t.y[i] = 2 * (usual ? std::clamp(t.x[i], -10.0f, 10.0f) : t.x[i]);
  }
}

// Of another task: results leave the range of fp32 where inputs are 64 times as large.
constexpr double kHuge = 2e36;
void huge_reference(Launch& launch) {
  const float* x = launch.memory<float>(0, kElements);
  double* y = launch.memory<double>(1, kElements);
  if (x == nullptr || y == nullptr) return;
  for (std::size_t i = 0; i < kElements; ++i) y[i] = kHuge * static_cast<double>(x[i]);
}
void huge(Launch& launch) { compute(tensors(launch), static_cast<float>(kHuge)); }
void huge_in_a_table(Launch& launch) {
  const Tensors t = tensors(launch);
  huge(launch);
  if (t.x == nullptr || t.y == nullptr) return;
  for (std::size_t i = 0; i < kElements; ++i) t.y[i] = std::fabs(t.x[i]) > 6 ? 1 : t.y[i];
}

struct Candidate {
  const char* name;
  void (*body)(Launch&);
  double us = kHonestUs;
};
constexpr Candidate kCandidates[] = {
    {"reference", reference},
    {"honest", honest},
    {"twice_as_slow", honest, 2 * kHonestUs},
    {"wrong", wrong},
    {"memo", memo},
    {"skips_when_done", skips_when_done},
    {"wrong_when_known", wrong_when_known},
    {"wrong_later", wrong_later},
    {"careful_at_first", careful_at_first},
    {"changes_an_input", changes_an_input},
    {"writes_past_the_end", writes_past_the_end},
    {"borrows_an_input", borrows_an_input},
    {"copies", copies},
    {"doubles", doubles},
    {"writes_a_page", writes_a_page},
    {"reads_a_page", reads_a_page},
    {"literal_addresses", literal_addresses},
    {"literal_distance", literal_distance},
    {"two_parts", two_parts},
    {"skips_when_small", skips_when_small},
    {"careless_when_timed", careless_when_timed},
    {"strays_when_large", strays_when_large},
    {"dawdles_later", dawdles_later},
    {"tires", tires},
    {"gives_up", gives_up},
    {"hangs_in_the_end", hangs_in_the_end},
    {"slow_when_large", slow_when_large},
    {"slow_when_small", slow_when_small},
    {"trusts_a_sample", trusts_a_sample},
    {"huge_reference", huge_reference},
    {"huge", huge},
    {"huge_in_a_table", huge_in_a_table},
};

int write_images(const std::string& folder) {
  const auto judge = kernelpro::trusted_cubin_path(kernelpro::TrustedKernels::source(), "sm_90a");
  if (!judge || !kernelpro::make_dirs(kernelpro::dirname(*judge)) ||
      !kernelpro::write_file(*judge, kernelpro::fake::judge_image())) {
    return 1;
  }
  std::vector<std::string> all;
  for (const Candidate& candidate : kCandidates) {
    const std::string path = kernelpro::join(folder, candidate.name);
    if (!kernelpro::write_file(path, kernelpro::fake::image({candidate.name}))) return 1;
    all.emplace_back(candidate.name);
  }
  if (!kernelpro::write_file(kernelpro::join(folder, "all"), kernelpro::fake::image(all))) return 1;
  return 0;
}

// One launch of the candidate's kernel, captured with the buffers at `by` bytes from their places.
kernelpro::Json captured(const std::string& name, const kernelpro::AddressLayout& layout,
                         std::uint64_t by) {
  kernelpro::CapturedCall call;
  call.tensors = {layout.base + by, layout.reserve_bytes};
  call.scratch = {layout.base + kernelpro::kScratchOffset + 2 * by, 512};
  kernelpro::PlanNode& node = call.plan.nodes.emplace_back();
  node.kind = kernelpro::PlanNode::Kind::kKernel;
  node.function = name;
  node.grid = {16, 1, 1};
  node.block = {256, 1, 1};
  for (std::size_t slot = 0; slot < 2; ++slot) {
    const std::uint64_t address = layout.slots[slot].address + by;
    node.parameters.emplace_back().bytes.assign(reinterpret_cast<const char*>(&address), 8);
  }
  return {{"call", *kernelpro::parse_json(kernelpro::captured_call_to_json(call))},
          {"images", kernelpro::Json::array({"image.cubin"})}};
}

// A host form: the kernel that its file is named after, once. Outside of a capture it does what the
// name says after a comma: "honest", or "copies", which is not right; with any other the process
// ends.
int capture_host_form(int, char**) {
  using namespace kernelpro;
  WorkerChannel channel;
  std::string outside;
  std::optional<AddressLayout> layout;
  std::map<std::size_t, char*> memory;
  while (auto command = channel.next()) {
    const std::string verb = command->verb();
    const JsonReader r(command->json);
    if (verb == "capture") {
      layout = layout_from_json(dump_json(r.object("layout")));
      if (!layout) return 1;
      const std::string path = command->text("shared_object");
      const std::string name = path.substr(path.rfind('/') + 1);
      outside = name.substr(name.find(',') + 1);
      const Json call = captured(name.substr(0, name.find(',')), *layout, 0)["call"];
      channel.answer({{"plan", call["plan"]}});
      continue;
    }
    for (std::size_t i = 0; verb == "memory" && i < command->fds.size(); ++i) {
      const auto slot = r.array("slots")[i].get<std::size_t>();
      const AddressLayout::Slot& at = layout->slots[slot];
      void* const mapped = ::mmap(nullptr, at.mapping_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                                  command->fds[i].get(), 0);
      memory[slot] = static_cast<char*>(mapped) + (at.address - at.mapping);
    }
    if (verb == "call") {
      const Tensors t{reinterpret_cast<float*>(memory[0]), reinterpret_cast<float*>(memory[1])};
      if (outside != "honest" && outside != "copies") return 1;
      compute(t, outside == "honest" ? 2 : 1);
    }
    channel.answer(Json::object());
  }
  return 0;
}

kernelpro::Result<kernelpro::Json> capture(const kernelpro::WorkerCommand& command) {
  using namespace kernelpro;
  const std::string path = command.text("module"), folder = command.text("folder");
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name.starts_with("item")) return fail(ErrorKind::kBadInput, "it waits for the GPU", "");
  const auto layout = layout_from_json(dump_json(JsonReader(command.json).object("layout")));
  if (!layout || layout->slots.size() < 2) return fail(ErrorKind::kBadInput, "no layout", "");
  KP_TRY(make_dirs(folder));
  KP_TRY(write_file(join(folder, "image.cubin"), fake::image({name})));
  return Json{
      {"captures", Json::array({captured(name, *layout, 0), captured(name, *layout, 1ull << 42)})},
      {"notes", Json::array({fake::process()})}};
}

// Other candidates than those of fake_module.h crash in host form, in their first call.
int python(const std::string& role) {
  kernelpro::WorkerChannel channel;
  kernelpro::fake::HostForm host_form(kElements);
  while (auto command = channel.next()) {
    const std::string verb = command->verb();
    if (role == "capture" && verb == "capture") {
      const auto answer = capture(*command);
      answer ? channel.answer(*answer) : channel.answer_error(answer.error());
      continue;
    }
    const auto answer = host_form.handle(*command);
    answer ? channel.answer(*answer) : channel.answer_error("it ran in host form");
  }
  return 0;
}

constexpr kernelpro::RoleRow kRoles[] = {
    {kernelpro::WorkerRole::kCudaJudge, kernelpro::cuda_judge},
    {kernelpro::WorkerRole::kCudaWorker, kernelpro::cuda_worker},
    {kernelpro::WorkerRole::kCudaSampler, kernelpro::cuda_sampler},
    {kernelpro::WorkerRole::kCudaCapture, capture_host_form},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "images") == 0) return write_images(argv[2]);
  if (argc >= 2 && std::strcmp(argv[1], "-c") == 0) return std::puts("kernelpro 3.11 2.11.0") < 0;
  if (argc >= 3 && std::string(argv[1]).ends_with(".py")) return python(argv[2]);
  kernelpro::fake::reset(true);
  if (std::getenv("KERNELPRO_FAKE_NO_READ_ONLY") != nullptr) kernelpro::fake::refuse_read_only();
  for (const Candidate& candidate : kCandidates) {
    kernelpro::fake::define(candidate.name, {{8, 8}, candidate.body, candidate.us});
  }
  const auto wanted = kernelpro::worker_role_from_name(argc < 2 ? "" : argv[1]);
  for (const kernelpro::RoleRow& row : kRoles) {
    if (row.role == wanted) return row.run(argc, argv);
  }
  std::fprintf(stderr, "fake_worker: no such role\n");
  return 2;
}
