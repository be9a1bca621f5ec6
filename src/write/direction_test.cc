// SPDX-License-Identifier: Apache-2.0
#include "write/tuner/direction.h"

#include <gtest/gtest.h>

#include <memory>

#include "write/testing.h"
#include "write/tuner/tuner.h"

namespace kernelpro {
namespace {

using namespace proposing;

Direction of(const char* tag, const char* text) { return direction_of({tag, text, ""}); }

// Sentences of our tools.
TEST(Direction, IsReadFromThePrescription) {
  EXPECT_EQ(of("tile-size", "Use a larger tile per warpgroup."), Direction::kUp);
  EXPECT_EQ(of("tile-size", "Compute a larger tile per block, so that fewer blocks fetch it."),
            Direction::kUp);
  EXPECT_EQ(of("tile-size", "Keep less live per thread: a smaller tile."), Direction::kDown);
  EXPECT_EQ(of("unroll", "Unroll less (`#pragma unroll 4`)."), Direction::kDown);
  EXPECT_EQ(of("block-size", "Use smaller blocks: fewer warps wait."), Direction::kDown);
  EXPECT_EQ(of("grid-size", "Give each block more or fewer rows."), Direction::kEither);
  EXPECT_EQ(of("vectorize", "Use ordinary global loads, fewer and wider."), Direction::kUp);
  EXPECT_EQ(of("pipeline", "Copy the next tile asynchronously."), Direction::kUp);
  EXPECT_EQ(of("registers", "Change the number of registers."), Direction::kEither);
}

TEST(Direction, ComparesValuesAndNotPlaces) {
  const Knob falling{"TILE", {"64", "32", "128"}, {"tile-size"}};
  EXPECT_FALSE(follows(Direction::kUp, falling, 0, 1));
  EXPECT_TRUE(follows(Direction::kUp, falling, 0, 2));
  EXPECT_TRUE(follows(Direction::kDown, falling, 0, 1));
  const Knob named{"ORDER", {"rows", "columns"}, {"block-order"}};
  EXPECT_TRUE(follows(Direction::kUp, named, 0, 1));
}

// A list that falls: the next value in it is the smaller one.
TEST(Direction, TheTunerAnswersALargerTileWithALargerOne) {
  Known start = known(1, {}, 100);
  start.candidate.source =
      "// @knob TILE 32 16 64 : tile-size\n#include \"task.h\"\n"
      "extern \"C\" void launch(const Args& args) {}\n";
  start.candidate.knobs = {{"TILE", "32"}};
  start.diagnosis.findings = {finding("re-read-excess", {"tile-size"})};
  start.diagnosis.findings[0].prescriptions[0].text = "Use a larger tile.";
  const Task t = task();
  ProposalRequest request;
  request.task = &t;
  request.parent = shared(start);
  set_history({start}, 1, &request);
  request.wanted = 2;
  Given given;
  ASSERT_TRUE(make_tuner()->propose(request, given.sink()));
  ASSERT_EQ(given.proposals.size(), 2u);
  EXPECT_EQ(given.proposals[0].candidate.knobs.at("TILE"), "64");
  EXPECT_EQ(given.proposals[0].candidate.origin.answers.tool, "re-read-excess");
  EXPECT_EQ(given.proposals[1].candidate.knobs.at("TILE"), "16");
  EXPECT_TRUE(given.proposals[1].candidate.origin.answers.empty())
      << "a smaller tile is no answer, and is not counted as one";
}

}  // namespace
}  // namespace kernelpro
