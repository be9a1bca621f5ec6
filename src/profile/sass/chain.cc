// SPDX-License-Identifier: Apache-2.0
#include "profile/sass/chain.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/statistics/statistics.h"
#include "base/text.h"
#include "profile/sass/opcodes.h"

namespace kernelpro {

namespace {

constexpr int kIterations = 8;  // a chain may need several to return to a register
constexpr int kScoreboards = 6;
constexpr std::size_t kMostUnderWay = 512;  // loads of one thread: registers run out first

std::size_t slot(int index) { return static_cast<std::size_t>(index); }

bool controlled(const Dataflow& body) {
  for (int p = 0; p < body.size(); ++p) {
    if (!body.at(p).control.known) return false;
  }
  return body.size() > 0;
}

int stall_of(const SassInstruction& i) { return std::max<int>(1, i.control.stall); }

// When each result of one iteration is ready, if every instruction runs once its operands are.
struct Turn {
  std::vector<double> ready;
  std::vector<int> because;   // place of the last operand to arrive; -1 = none
  std::vector<bool> carried;  // that operand is from the previous iteration
  double last = 0;
  int last_place = -1;
};

Turn run_turn(const Dataflow& body, const Turn* before) {
  Turn turn;
  const std::size_t n = slot(body.size());
  turn.ready.assign(n, 0);
  turn.because.assign(n, -1);
  turn.carried.assign(n, false);
  for (int p = 0; p < body.size(); ++p) {
    double start = 0;
    for (const Dependence& d : body.reads(p)) {
      if (d.carried && before == nullptr) continue;
      const double ready = d.carried ? before->ready[slot(d.from)] : turn.ready[slot(d.from)];
      if (ready <= start) continue;
      start = ready;
      turn.because[slot(p)] = d.from;
      turn.carried[slot(p)] = d.carried;
    }
    turn.ready[slot(p)] = start + typical_latency(body.at(p));
    if (turn.ready[slot(p)] <= turn.last) continue;
    turn.last = turn.ready[slot(p)];
    turn.last_place = p;
  }
  return turn;
}

// One turn of the chain that the last result depends on: from a place back to itself.
std::vector<int> find_cycle(const std::vector<Turn>& turns) {
  std::vector<int> path;
  std::vector<int> seen(turns.back().ready.size(), -1);
  int place = turns.back().last_place;
  for (std::size_t t = turns.size(); t-- > 0;) {
    const Turn& turn = turns[t];
    while (place >= 0) {
      if (seen[slot(place)] >= 0) {
        std::vector<int> cycle(path.begin() + seen[slot(place)], path.end());
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
      }
      seen[slot(place)] = static_cast<int>(path.size());
      path.push_back(place);
      const bool carried = turn.carried[slot(place)];
      place = turn.because[slot(place)];
      if (carried) break;
    }
    if (place < 0) break;
  }
  return {};
}

int chain_length(const Turn& turn) {
  int length = 0;
  for (int p = turn.last_place; p >= 0; p = turn.because[slot(p)]) ++length;
  return length;
}

// Simulates one warp in order by its control codes; without them, by operand readiness.
class InOrder {
 public:
  explicit InOrder(const Dataflow& body) : body_(body), coded_(controlled(body)) {
    ready_.assign(slot(body.size()), 0);
  }

  // Runs one more iteration; returns the cycle after it.
  double iterate() {
    for (int p = 0; p < body_.size(); ++p) step(p);
    return now_;
  }

 private:
  void step(int p) {
    const SassInstruction& i = body_.at(p);
    if (!coded_) {
      for (const Dependence& d : body_.reads(p)) now_ = std::max(now_, ready_[slot(d.from)]);
      ready_[slot(p)] = now_ + typical_latency(i);
      now_ += 1;
      return;
    }
    for (int b = 0; b < kScoreboards; ++b) {
      if ((i.control.waits >> b & 1) != 0) now_ = std::max(now_, board_[slot(b)]);
    }
    const auto hold = [&](int board, double cycles) {
      if (board < kScoreboards) board_[slot(board)] = std::max(board_[slot(board)], now_ + cycles);
    };
    hold(i.control.written_by, typical_latency(i));
    hold(i.control.read_by, kOperandsRead);
    now_ += stall_of(i);
  }

  static constexpr double kOperandsRead = 12;
  const Dataflow& body_;
  bool coded_;
  double now_ = 0;
  std::vector<double> ready_;
  std::array<double, kScoreboards> board_{};
};

}  // namespace

Chain chain_of(const Dataflow& body) {
  Chain chain;
  if (body.size() == 0) return chain;
  for (int p = 0; p < body.size(); ++p) {
    chain.issue_cycles += body.at(p).control.known ? stall_of(body.at(p)) : 1;
  }
  std::vector<Turn> turns;
  turns.push_back(run_turn(body, nullptr));
  chain.chain_cycles = turns[0].last;
  chain.chain_length = chain_length(turns[0]);
  InOrder warp(body);
  if (!body.loops()) {
    chain.alone_cycles = warp.iterate();
    return chain;
  }
  for (int t = 1; t < kIterations; ++t) turns.push_back(run_turn(body, &turns.back()));
  constexpr int kFrom = kIterations / 2 - 1, kTo = kIterations - 1;
  chain.carried_cycles = (turns[kTo].last - turns[kFrom].last) / (kTo - kFrom);
  chain.carried = find_cycle(turns);
  warp.iterate();
  const double settled = warp.iterate();
  warp.iterate();
  chain.alone_cycles = (warp.iterate() - settled) / 2;
  return chain;
}

namespace {

struct Outstanding {
  int place = 0;
  double issued = 0;
};

// "DEPBAR.LE SB0, 0x1": async-copy groups that may stay in flight; -1: not such a wait.
int groups_left(const SassInstruction& i) {
  if (i.root != "DEPBAR" || !i.has("LE")) return -1;
  const std::vector<std::string_view> operands = split_operands(i.operands);
  if (operands.size() < 2 || !operands[1].starts_with("0x") || operands[1].size() > 4) return -1;
  int value = 0;
  for (const char c : operands[1].substr(2)) {
    value = value * 16 + (c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
  }
  return value;
}

// Does the instruction at `place` wait for the result of `load`?
bool waits_for(const Dataflow& body, int place, int load, bool coded) {
  if (coded) {
    const int board = body.at(load).control.written_by;
    return board < kScoreboards && (body.at(place).control.waits >> board & 1) != 0;
  }
  return std::any_of(body.reads(place).begin(), body.reads(place).end(),
                     [&](const Dependence& d) { return d.from == load; });
}

}  // namespace

Flight loads_in_flight(const Dataflow& body) {
  Flight flight;
  const bool coded = controlled(body);
  std::vector<Outstanding> under_way;
  std::vector<double> distances;
  double now = 0;
  int bytes = 0;
  const int turns = body.loops() ? 2 : 1;
  for (int t = 0; t < turns; ++t) {
    for (int p = 0; p < body.size(); ++p) {
      const SassInstruction& i = body.at(p);
      const auto waited = [&](const Outstanding& o) { return waits_for(body, p, o.place, coded); };
      if (!coded || i.control.waits != 0) {
        for (const Outstanding& o : under_way) {
          if (!waited(o)) continue;
          bytes -= access_bits(body.at(o.place)) / 8;
          if (t == turns - 1) distances.push_back(now - o.issued);
        }
        under_way.erase(std::remove_if(under_way.begin(), under_way.end(), waited),
                        under_way.end());
      }
      flight.async_groups = std::max(flight.async_groups, groups_left(i));
      if (i.op == Op::kGlobalLoad && under_way.size() < kMostUnderWay) {
        under_way.push_back({p, now});
        bytes += access_bits(i) / 8;
        flight.loads = std::max(flight.loads, static_cast<int>(under_way.size()));
        flight.bytes = std::max(flight.bytes, bytes);
      }
      now += i.control.known ? stall_of(i) : 1;
    }
  }
  flight.use_cycles = median(std::move(distances));
  return flight;
}

std::vector<Wait> waits_of(const Dataflow& body) {
  std::vector<Wait> waits;
  if (!controlled(body)) return waits;
  // The last instruction to release each scoreboard, and whether by its result or by operand reads.
  std::array<int, kScoreboards> producer;
  producer.fill(-1);
  const int turns = body.loops() ? 2 : 1;
  for (int t = 0; t < turns; ++t) {
    for (int p = 0; p < body.size(); ++p) {
      const SassControl& control = body.at(p).control;
      for (int b = 0; b < kScoreboards; ++b) {
        int& from = producer[slot(b)];
        if ((control.waits >> b & 1) == 0 || from < 0) continue;
        if (t == turns - 1) waits.push_back({p, from});
        from = -1;  // nothing waits twice for it
      }
      if (control.read_by < kScoreboards) producer[control.read_by] = -1;
      if (control.written_by < kScoreboards) producer[control.written_by] = p;
    }
  }
  return waits;
}

}  // namespace kernelpro
