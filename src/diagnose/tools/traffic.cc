// SPDX-License-Identifier: Apache-2.0
#include "diagnose/tools/traffic.h"

#include <algorithm>

namespace kernelpro {

namespace {

// Latency of a load from a loaded device memory: 600 to 800 ns measured on Ampere and Hopper.
constexpr double kLoadedLatency = 700e-9;
// A kernel with this share of the call's time is assumed to do all of its work.
constexpr double kWholeCall = 0.8;
constexpr double kInPlace = 0.9;
constexpr double kSlack = 1.2;    // on upper gains: resource limits are only the best seen so far
constexpr double kChained = 0.8;  // of an iteration's cycles in one chain

// Sectors per full-warp access, from the hot loops' widths; nullopt: no such access.
std::optional<double> ideal_sectors(const Facts& facts, const std::string& kind) {
  const std::string name = "sass.hot.global_" + kind;
  const auto all = facts.maybe(name);
  if (!all || *all <= 0) return std::nullopt;
  const double wide = facts.maybe(name + "_128").value_or(0);
  const double narrow = facts.maybe(name + "_narrow").value_or(0);
  const double pairs = facts.maybe(name + "_64").value_or(0);
  const double words = std::max(0.0, *all - wide - narrow - pairs);
  return (16 * wide + 8 * pairs + 4 * words + 2 * narrow) / *all;
}

std::optional<Accesses> accesses(const Facts& facts, const std::string& direction,
                                 const std::string& kind, const std::string& other) {
  const std::string stem = "_pipe_lsu_mem_global_op_" + direction + ".sum";
  const auto requests = facts.maybe("l1tex__t_requests" + stem);
  const auto sectors = facts.maybe("l1tex__t_sectors" + stem);
  if (!requests || !sectors) return std::nullopt;
  Accesses result{*requests, *sectors, *sectors};
  if (*requests <= 0) return result;
  std::optional<double> each = ideal_sectors(facts, kind);
  if (!each) each = ideal_sectors(facts, other);
  // Asynchronous copies count as loads; they are usually wide and may be outside the hot loops.
  if (kind == "loads" && facts.maybe("sass.ldgsts").value_or(0) > 0) each = 16;
  // Without widths, only sectors beyond the widest access are certainly wasted.
  result.ideal = std::min(*sectors, *requests * each.value_or(16));
  return result;
}

}  // namespace

std::optional<Accesses> global_loads(const Facts& facts) {
  return accesses(facts, "ld", "loads", "stores");
}

std::optional<Accesses> global_stores(const Facts& facts) {
  return accesses(facts, "st", "stores", "loads");
}

bool chunked(const Facts& facts) {
  const double strided = facts.maybe("sass.hot.global_strided").value_or(0);
  const double filled = facts.maybe("sass.hot.global_strided_filled").value_or(0);
  const double stride = facts.maybe("sass.hot.global_lane_stride").value_or(0);
  return strided > 0 && filled >= 0.8 * strided && stride > 0 && stride <= 16;
}

double worst_excess(const Facts& facts) {
  if (chunked(facts)) return 1;
  const auto loads = global_loads(facts);
  const auto stores = global_stores(facts);
  const double all = (loads ? loads->sectors : 0) + (stores ? stores->sectors : 0);
  double worst = 1;
  for (const auto& some : {loads, stores}) {
    // A few scattered accesses among many good ones do not matter.
    if (some && some->sectors >= 0.1 * all) worst = std::max(worst, some->excess());
  }
  return worst;
}

double stalls(const Facts& facts, std::initializer_list<Stall> reasons, double otherwise) {
  double sum = 0;
  bool counted = false;
  for (const Stall reason : reasons) {
    const auto share = facts.model().stall(reason);
    if (!share) continue;
    counted = true;
    sum += *share;
  }
  return counted ? std::min(1.0, sum) : otherwise;
}

double memory_wait(const Facts& facts, double otherwise) {
  return stalls(facts, {Stall::kLongScoreboard, Stall::kLgThrottle, Stall::kDrain}, otherwise);
}

std::optional<double> l2_read_bytes(const Facts& facts) {
  const auto all = facts.maybe("lts__t_sectors_srcunit_tex.sum");
  const auto stores = facts.maybe("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum");
  if (!all || !stores) return std::nullopt;
  double others = *stores;
  for (const char* name :
       {"lts__t_sectors_srcunit_tex_op_atom.sum", "lts__t_sectors_srcunit_tex_op_red.sum"}) {
    others += facts.maybe(name).value_or(0);
  }
  return kSectorBytes * std::max(0.0, *all - others);
}

double shared_part(const Facts& facts) {
  const auto loads = facts.maybe("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum");
  const auto stores = facts.maybe("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum");
  if (!loads && !stores) return 0;
  const double shared = loads.value_or(0) + stores.value_or(0);
  // The pipe processes one wavefront per cycle and multiprocessor.
  const auto busy = facts.model().busy(Resource::kL1);
  const auto cycles = facts.maybe("gpc__cycles_elapsed.max");
  const auto units = facts.maybe("machine.parallel_units");
  double all = busy && cycles && units ? *busy * *cycles * *units : 0;
  if (all <= 0) {
    // One wavefront holds at most 128 bytes of sectors.
    all = shared + (facts.maybe("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum").value_or(0) +
                    facts.maybe("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum").value_or(0)) /
                       4;
  }
  return all > 0 ? std::min(1.0, shared / all) : 0;
}

std::optional<double> local_part(const Facts& facts) {
  const auto loads = facts.maybe("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum");
  const auto stores = facts.maybe("l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum");
  const auto global = facts.maybe("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum");
  if (!loads || !stores || !global) return std::nullopt;
  const double local = *loads + *stores;
  const double all =
      local + *global + facts.maybe("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum").value_or(0);
  return all > 0 ? local / all : 0;
}

std::optional<Compulsory> compulsory(const Facts& facts) {
  const auto bytes = facts.maybe("task.compulsory_bytes");
  if (!bytes || *bytes <= 0) return std::nullopt;
  if (facts.maybe("kernel.share").value_or(1) < kWholeCall) return std::nullopt;
  Compulsory result{*bytes, *bytes, 0, false};
  const auto outputs = facts.maybe("task.output_bytes");
  if (outputs && *outputs >= 0 && *outputs <= *bytes) {
    result = {*bytes, *bytes - *outputs, *outputs, true};
  }
  return result;
}

std::optional<Compulsory> compulsory_at_most(const Facts& facts) {
  if (facts.maybe("task.compulsory_bytes")) return compulsory(facts);
  const auto allocated = facts.maybe("trace.allocated_bytes");
  const auto stores = facts.maybe("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum");
  if (!allocated || *allocated <= 0 || !stores) return std::nullopt;
  if (facts.maybe("kernel.share").value_or(1) < kWholeCall) return std::nullopt;
  const double bytes = *allocated * std::max(1.0, facts.maybe("kernel.launches").value_or(1));
  const double stored = std::min(bytes, *stores * kSectorBytes);
  // A kernel that works in place reads what it stores, and so, surely, does one that stores nearly
  // everything. Where asynchronous copies read, the code does not show it.
  const bool in_place =
      stored >= kInPlace * bytes || facts.maybe("sass.hot.global_updates").value_or(0) > 0 ||
      facts.maybe("sass.ldgsts").value_or(0) > 0 || facts.maybe("sass.bulk_copies").value_or(0) > 0;
  return Compulsory{bytes, in_place ? bytes : bytes - stored, stored, true};
}

std::optional<Dram> dram(const Facts& facts) {
  const auto reads = facts.maybe("dram__bytes_read.sum");
  const auto writes = facts.maybe("dram__bytes_write.sum");
  if (!reads || !writes) return std::nullopt;
  return Dram{*reads, *writes};
}

bool own_passes(const Facts& facts) {
  const auto loops = facts.maybe("sass.hot.loops");
  if (!loops) return true;
  return *loops >= 2 || (*loops >= 1 && facts.maybe("sass.hot.depth").value_or(2) >= 2);
}

std::optional<double> needed_in_flight(const Facts& facts) {
  const auto bandwidth = facts.maybe("ceiling.copy_bandwidth");
  const auto units = facts.maybe("machine.parallel_units");
  if (!bandwidth || !units || *units <= 0) return std::nullopt;
  return *bandwidth * kLoadedLatency / *units;
}

bool scattered(const Facts& facts) {
  const double all = facts.maybe("sass.hot.global_loads").value_or(0) +
                     facts.maybe("sass.hot.global_stores").value_or(0);
  const auto unit = facts.maybe("sass.hot.global_unit_stride");
  if (all <= 0 || !unit) return false;
  const double known = *unit + facts.maybe("sass.hot.global_uniform").value_or(0) +
                       facts.maybe("sass.hot.global_strided").value_or(0);
  return 2 * known < all;
}

bool chained(const Facts& facts) {
  const double loads = facts.maybe("sass.hot.global_loads").value_or(0);
  const double alone = facts.maybe("sass.loop.alone_cycles").value_or(0);
  return loads > 0 && loads <= 2 && alone > 0 &&
         facts.maybe("sass.loop.carried_cycles").value_or(0) >= kChained * alone;
}

std::optional<double> resident_warps(const Facts& facts) {
  if (const auto counted = facts.maybe("smsp__warps_active.avg.per_cycle_active")) {
    return *counted * 4;  // schedulers per multiprocessor
  }
  const auto grid = facts.maybe("launch__grid_size");
  const auto block = facts.maybe("launch__block_size");
  const auto waves = facts.maybe("launch__waves_per_multiprocessor");
  const auto units = facts.maybe("machine.parallel_units");
  if (!grid || !block || !waves || !units || *waves <= 0 || *units <= 0) return std::nullopt;
  const double blocks = *grid / (*units * std::max(1.0, *waves));
  return std::min<double>(facts.limits().warps, blocks * *block / 32);
}

std::optional<double> in_flight(const Facts& facts) {
  const auto bytes = facts.maybe("sass.hot.global_bytes_in_flight");
  const auto warps = resident_warps(facts);
  if (!bytes || !warps || *bytes <= 0) return std::nullopt;
  return *bytes * *warps * 32;
}

void set_gain(const Gain& gain, Finding* finding) {
  finding->likely_speedup = gain.likely;
  finding->upper_speedup = gain.upper;
}

void set_gain(const Facts& facts, const Effect& likely, Finding* finding) {
  set_gain(facts.model().gain(likely), finding);
  Effect most = likely;
  for (double& left : most.work) {
    if (left < 1) left *= 0.5;
  }
  for (const Resource r : {Resource::kIssue, Resource::kAlu, Resource::kLsu, Resource::kFma}) {
    most.scale(r, 0.75);
  }
  finding->upper_speedup =
      std::max(finding->upper_speedup, kSlack * facts.model().gain(most).upper);
}

}  // namespace kernelpro
