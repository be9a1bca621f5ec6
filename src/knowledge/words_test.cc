// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "embedded/knowledge_synonyms.h"
#include "knowledge/question.h"
#include "knowledge/synonyms.h"
#include "knowledge/tokens.h"

namespace kernelpro {
namespace {

using Parts = std::vector<std::string>;

TEST(Tokens, PartsOfIdentifiers) {
  EXPECT_EQ(identifier_parts("Sm90TmaWarpSpecialized"),
            (Parts{"sm90", "tma", "warp", "specialized"}));
  EXPECT_EQ(identifier_parts("SM90_TMA_LOAD_MULTICAST"),
            (Parts{"sm90", "tma", "load", "multicast"}));
  EXPECT_EQ(identifier_parts("splitK"), (Parts{"split", "splitk"}));
  EXPECT_EQ(identifier_parts("TMALoad"), (Parts{"tma", "load"}));
  EXPECT_EQ(identifier_parts("__x__"), (Parts{"x"}));
  EXPECT_EQ(identifier_parts("___"), Parts());
}

TEST(Tokens, EndingsOfOneWordMeet) {
  for (const char* word : {"scheduling", "scheduler", "schedules", "scheduled"}) {
    EXPECT_EQ(stem(word), stem("schedule")) << word;
  }
  EXPECT_EQ(stem("quantization"), stem("quantize"));
  EXPECT_EQ(stem("accumulators"), stem("accumulate"));
  EXPECT_EQ(stem("splitting"), stem("split"));
  EXPECT_EQ(stem("swizzled"), stem("swizzle"));
  EXPECT_EQ(stem("blocks"), "block");
  EXPECT_EQ(stem("class"), "class");
  EXPECT_EQ(stem("bus"), "bus");
  EXPECT_EQ(stem("sm90"), "sm90");
}

TEST(Synonyms, EveryRowOfTheFileIsAGroup) {
  const std::string text(embedded::knowledge_synonyms);
  std::size_t rows = 0;
  for (std::size_t at = text.find("\n  ["); at != std::string::npos;
       at = text.find("\n  [", at + 1)) {
    ++rows;
  }
  EXPECT_EQ(synonym_groups().size(), rows);
  EXPECT_GE(rows, 50u);
  for (const auto& group : synonym_groups()) EXPECT_GE(group.size(), 2u) << group[0][0];
}

bool asks_for(const Question& question, const Phrase& words) {
  for (const Concept& idea : question.concepts) {
    for (const Form& form : idea.forms) {
      if (form.words == words) return true;
    }
  }
  return false;
}

TEST(Question, OtherNamesAreAskedForAsWell) {
  EXPECT_TRUE(asks_for(read_question("copy with the Tensor Memory Accelerator"), {"tma"}));
  EXPECT_TRUE(asks_for(read_question("tma copies"), {"tensor", "memory", "acceler"}) ||
              asks_for(read_question("tma copies"), {"tensor", "memory", stem("accelerator")}));
  EXPECT_TRUE(asks_for(read_question("stream-K"), {"streamk"}));
  EXPECT_TRUE(asks_for(read_question("split K reduction"), {"splitk"}));
  EXPECT_FALSE(asks_for(read_question("tensor of memory"), {"tma"}));
}

TEST(Question, IdentifiersAreKeptWhole) {
  const Question question = read_question("PipelineTmaAsync consumer_wait of x");
  EXPECT_EQ(question.identifiers, (std::vector<std::string>{"PipelineTmaAsync", "consumer_wait"}));
  EXPECT_TRUE(asks_for(question, {"pipelinetmaasync"}));
  EXPECT_TRUE(asks_for(question, {"async"}));
}

TEST(Question, ManyWordsAndNone) {
  EXPECT_TRUE(read_question(" ?! \xff of the").concepts.empty());
  std::string many;
  for (int i = 0; i < 500; ++i) many += "word" + std::to_string(i) + " ";
  EXPECT_LE(read_question(many).concepts.size(), 24u);
  EXPECT_TRUE(read_question(std::string(1000, 'x')).concepts.empty());
}

}  // namespace
}  // namespace kernelpro
