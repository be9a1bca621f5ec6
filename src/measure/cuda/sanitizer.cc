// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/sanitizer.h"

#include <cstdlib>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/process/worker_path.h"
#include "base/text.h"
#include "core/plan/worker_role.h"
#include "measure/cuda/replay.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMaxField = 400;
constexpr std::int64_t kMaxReport = 64 << 20;
// What compiled code traps on: seven of seven recorded ones.
constexpr std::string_view kLikelyTrap =
    "; a tensor copy traps so if its box does not begin at a multiple of 16 bytes in the "
    "contiguous "
    "dimension";

// The text between <tag> and </tag>, first occurrence; "" if absent.
std::string_view inner(std::string_view xml, std::string_view tag) {
  const std::string open = "<" + std::string(tag) + ">", close = "</" + std::string(tag) + ">";
  const std::size_t begin = xml.find(open);
  if (begin == std::string_view::npos) return {};
  const std::size_t end = xml.find(close, begin);
  if (end == std::string_view::npos) return {};
  return xml.substr(begin + open.size(), end - begin - open.size());
}

std::string text_of(std::string_view xml, std::string_view tag) {
  std::string text = printable(trim(inner(xml, tag)).substr(0, kMaxField));
  for (const auto& [code, plain] :
       {std::pair{"&lt;", "<"}, std::pair{"&gt;", ">"}, std::pair{"&quot;", "\""},
        std::pair{"&apos;", "'"}, std::pair{"&amp;", "&"}}) {
    text = replace_all(text, code, plain);
  }
  return text;
}

std::string position(std::string_view record, std::string_view tag) {
  const std::string_view at = inner(record, tag);
  if (at.empty()) return "";
  return "(" + text_of(at, "x") + ", " + text_of(at, "y") + ", " + text_of(at, "z") + ")";
}

// "64 bytes past the end of tensor y".
std::string neighbour(std::uint64_t address, const AddressLayout& layout,
                      const std::vector<JudgeTensor>& tensors) {
  std::string nearest;
  std::uint64_t least = ~0ull;
  for (std::size_t i = 0; i < layout.slots.size(); ++i) {
    const AddressLayout::Slot& slot = layout.slots[i];
    const std::uint64_t end = slot.address + slot.bytes;
    const std::string name = i < tensors.size() ? "tensor " + tensors[i].name : "the workspace";
    if (slot.bytes == 0) continue;
    if (address >= slot.address && address < end) {
      return number(static_cast<double>(address - slot.address), 20) + " bytes into " + name;
    }
    const bool past = address >= end;
    const std::uint64_t distance = past ? address - end : slot.address - address;
    if (distance >= least) continue;
    least = distance;
    nearest = (distance < 1'000'000 ? std::to_string(distance) + " bytes"
                                    : human_bytes(static_cast<double>(distance))) +
              (past ? " past the end of " : " before the start of ") + name;
  }
  return least < (1ull << 40) ? nearest : "far from every tensor";
}

// " at kernel.cu:85"; "" if unknown.
std::string source_line(std::string_view frame) {
  const std::string file = text_of(frame, "path"), line = text_of(frame, "line");
  return file.empty() || line.empty() ? "" : " at " + basename(file) + ":" + line;
}

std::string sentence_of(std::string_view record, const AddressLayout& layout,
                        const std::vector<JudgeTensor>& tensors) {
  const std::string_view what = inner(record, "what");
  const std::string_view where = inner(record, "where");
  std::string text = text_of(what, "text");
  // A hardware trap has a name instead, and its location is where it was noticed.
  if (text.empty()) text = text_of(what, "exception");
  if (text.empty()) return "";
  if (text.back() == '.') text.pop_back();
  const std::string thread = position(record, "threadIdx"), block = position(record, "blockIdx");
  if (!thread.empty()) text += ", by thread " + thread;
  if (!block.empty()) text += " of block " + block;
  const std::string kernel = text_of(where, "func");
  if (!kernel.empty()) text += " in " + kernel;
  text += source_line(where);
  // The functions that were inlined around it, the kernel last.
  std::string_view callers = inner(record, "deviceStack");
  for (std::size_t at = callers.find("<frame>"); at != std::string_view::npos;
       at = callers.find("<frame>")) {
    callers.remove_prefix(at + 1);
    const std::string_view frame = callers.substr(0, callers.find("</frame>"));
    const std::string caller = text_of(frame, "func");
    if (!caller.empty()) text += ", called in " + caller + source_line(frame);
  }
  if (contains(text, "Illegal instruction")) text += kLikelyTrap;
  const std::string address = text_of(what, "address");
  if (!address.empty()) {
    text += "; address " + address;
    const std::uint64_t value = std::strtoull(address.c_str(), nullptr, 16);
    // Shared and local memory have separate address spaces.
    if (contains(text, "__global__") && value != 0) {
      text += ", " + neighbour(value, layout, tensors);
    }
  }
  return "compute-sanitizer: " + text;
}

}  // namespace

std::string sanitizer_sentence(std::string_view xml, const AddressLayout& layout,
                               const std::vector<JudgeTensor>& tensors) {
  for (std::size_t at = xml.find("<record>"); at != std::string_view::npos;
       at = xml.find("<record>", at + 1)) {
    const std::size_t end = xml.find("</record>", at);
    if (end == std::string_view::npos) return "";
    const std::string_view record = xml.substr(at, end - at);
    // Failed API calls come before and after; the first fault caused them.
    if (text_of(record, "kind") == "Api") continue;
    std::string sentence = sentence_of(record, layout, tensors);
    if (!sentence.empty()) return sentence;
  }
  return "";
}

std::string sanitize(const Binary& binary, const LaunchPlan& plan, const AddressLayout& layout,
                     const std::vector<JudgeTensor>& tensors, double timeout_s,
                     const std::string& gpu) {
  const std::string tool = find_cuda_tool("compute-sanitizer");
  const Result<std::string> worker = worker_path();
  if (tool.empty() || !worker || binary.cubin.empty()) return "";
  TempDir folder;
  const std::string replay = join(folder.path(), "replay.json");
  const std::string report = join(folder.path(), "report.xml");
  if (!write_replay(replay, binary, plan, layout, tensors)) return "";
  Command command;
  command.argv = {tool,
                  "--tool",
                  "memcheck",
                  "--report-api-errors",
                  "no",
                  "--xml",
                  "--print-limit",
                  "4",
                  "--save",
                  report,
                  "--error-exitcode",
                  "42",
                  *worker,
                  worker_role_name(WorkerRole::kCudaReplay),
                  replay};
  if (!gpu.empty()) command.env.push_back("CUDA_VISIBLE_DEVICES=" + gpu);
  command.limits.wall_seconds = timeout_s;
  if (!run(command)) return "";
  // Whether or not it ended in time, its output counts.
  const Result<std::string> xml = read_file(report, kMaxReport);
  return xml ? sanitizer_sentence(*xml, layout, tensors) : "";
}

}  // namespace kernelpro
