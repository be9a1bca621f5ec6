// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "embedded/knowledge_synonyms.h"
#include "write/knowledge/question.h"
#include "write/knowledge/synonyms.h"
#include "write/knowledge/tokens.h"

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
  EXPECT_EQ(stem("quantised"), stem("quantize"));
  EXPECT_EQ(stem("sparsity"), stem("sparse"));
  EXPECT_EQ(stem("separately"), stem("separate"));
  EXPECT_EQ(stem("accumulators"), stem("accumulate"));
  EXPECT_EQ(stem("splitting"), stem("split"));
  EXPECT_EQ(stem("swizzled"), stem("swizzle"));
  EXPECT_EQ(stem("blocks"), "block");
  EXPECT_EQ(stem("class"), "class");
  EXPECT_EQ(stem("bus"), "bus");
  EXPECT_EQ(stem("sm90"), "sm90");
}

TEST(Synonyms, EveryGroupOfTheFileIsRead) {
  const std::string text(embedded::knowledge_synonyms);
  std::size_t groups = 0;
  for (std::size_t at = text.find("[[group]]"); at != std::string::npos;
       at = text.find("[[group]]", at + 1)) {
    ++groups;
  }
  EXPECT_EQ(synonym_groups().size(), groups);
  EXPECT_GE(groups, 150u);
  for (const SynonymGroup& group : synonym_groups()) {
    ASSERT_FALSE(group.names.empty());
    EXPECT_GE(group.names.size() + group.said.size(), 2u) << group.names[0][0];
  }
}

TEST(Synonyms, WordsThatCountAsOne) {
  EXPECT_EQ(spoken_word("many"), spoken_word("several"));
  EXPECT_EQ(spoken_word("matrices"), spoken_word("matrix"));
  EXPECT_NE(spoken_word("row"), spoken_word("column"));
  EXPECT_EQ(spoken_word("the"), "");
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

TEST(Question, WhatIsSaidIsAskedByItsName) {
  EXPECT_TRUE(asks_for(read_question("let the groups of warps take their turns"), {"pingpong"}));
  EXPECT_TRUE(asks_for(read_question("turns that warps take"), {"pingpong"}));
  // Far apart they are not one phrase.
  EXPECT_FALSE(asks_for(read_question("take a matrix tile and copy its rows to memory in turns"),
                        {"pingpong"}));
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
