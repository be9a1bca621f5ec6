// SPDX-License-Identifier: Apache-2.0
#include "profile/places/regions.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "profile/sass/work.h"

namespace kernelpro {

namespace {

constexpr double kLarge = 0.2;             // of all: worth a look inside
constexpr double kMost = 0.5;              // of all: says too little by itself
constexpr double kTelling = 0.5;           // of a call: what is not small within it
constexpr double kSmall = 0.08;            // of all: a line that is joined with those beside it
constexpr int kBeside = 2, kLongest = 16;  // lines

using Line = std::pair<int, int>;  // of SassFunction::files, and its number

// A line, and below it those of the functions that it calls.
struct Frame {
  double weight = 0;
  std::array<double, kWorkKinds> kinds{};
  std::map<Line, Frame> inner;
};

struct Piece {
  Line line;  // the heaviest
  int first = 0, last = 0;
  double weight = 0, heaviest = 0;
  std::array<double, kWorkKinds> kinds{};
};

class Regions {
 public:
  Regions(const SassFunction& f, const ControlFlow& control, const std::vector<double>& issued)
      : f_(f) {
    for (std::size_t k = 0; k < f.code.size(); ++k) {
      if (!(issued[k] > 0)) continue;
      all_ += issued[k];
      const int call = control.called_from[k];
      add(f.code[call >= 0 ? static_cast<std::size_t>(call) : k],
          static_cast<std::size_t>(kind_of_work(f.code[k])), issued[k]);
    }
  }

  std::vector<IssueRegion> found() {
    for (const auto& [line, frame] : root_.inner) cut(line, frame);
    join();
    std::stable_sort(pieces_.begin(), pieces_.end(),
                     [](const Piece& a, const Piece& b) { return a.weight > b.weight; });
    std::vector<IssueRegion> regions;
    for (const Piece& piece : pieces_) {
      if (piece.weight < kLeastRegion * all_ || regions.size() == kMostRegions) break;
      const auto most = std::max_element(piece.kinds.begin(), piece.kinds.end());
      regions.push_back(
          {{f_.files[static_cast<std::size_t>(piece.line.first)], piece.line.second, ""},
           piece.first,
           piece.last,
           piece.weight / all_,
           static_cast<WorkKind>(most - piece.kinds.begin())});
    }
    return regions;
  }

 private:
  bool known(int file) const { return file >= 0 && file < static_cast<int>(f_.files.size()); }

  void add(const SassInstruction& i, std::size_t kind, double weight) {
    if (!known(i.file)) return;
    Frame* at = &root_;
    const auto enter = [&](int file, int line) {
      if (!known(file)) return;
      at = &at->inner[{file, line}];
      at->weight += weight;
      at->kinds[kind] += weight;
    };
    if (i.calls >= 0) {  // the innermost first
      const auto& calls = f_.calls[static_cast<std::size_t>(i.calls)];
      for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
        enter(call->first, call->second);
      }
    }
    enter(i.file, i.line);
  }

  // A call that is large is told by what is large within it, if anything is.
  void cut(const Line& line, const Frame& frame) {
    double telling = 0;
    for (const auto& [at, inner] : frame.inner) {
      if (inner.weight >= kSmall * all_) telling += inner.weight;
    }
    const bool tells = frame.weight >= kLarge * all_ && telling >= kTelling * frame.weight;
    if (!frame.inner.empty() && (tells || frame.weight >= kMost * all_)) {
      for (const auto& [at, inner] : frame.inner) cut(at, inner);
      return;
    }
    pieces_.push_back({line, line.second, line.second, frame.weight, frame.weight, frame.kinds});
  }

  // Brings together what stands on the same line, and small pieces beside each other.
  void join() {
    std::stable_sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) {
      return std::pair(a.line.first, a.first) < std::pair(b.line.first, b.first);
    });
    std::vector<Piece> joined;
    double before = 0;  // of the piece that was joined last
    for (const Piece& piece : pieces_) {
      Piece* last = joined.empty() ? nullptr : &joined.back();
      const bool near = last != nullptr && last->line.first == piece.line.first &&
                        piece.first - last->last <= kBeside &&
                        piece.last - last->first < kLongest &&
                        std::max(before, piece.weight) < kSmall * all_;
      const bool same = last != nullptr && last->line == piece.line && last->last == piece.first;
      before = piece.weight;
      if (!near && !same) {
        joined.push_back(piece);
        continue;
      }
      last->last = std::max(last->last, piece.last);
      last->weight += piece.weight;
      for (std::size_t k = 0; k < last->kinds.size(); ++k) last->kinds[k] += piece.kinds[k];
      if (piece.heaviest > last->heaviest) {
        last->heaviest = piece.heaviest;
        last->line = piece.line;
      }
    }
    pieces_ = std::move(joined);
  }

  const SassFunction& f_;
  Frame root_;
  double all_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace

std::vector<IssueRegion> issue_regions(const SassFunction& function, const ControlFlow& control,
                                       const std::vector<double>& issued) {
  return Regions(function, control, issued).found();
}

}  // namespace kernelpro
