// SPDX-License-Identifier: Apache-2.0
#include "write/knowledge/scan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "write/knowledge/scan_declaration.h"

namespace kernelpro {
namespace {

const Chunk* find(const ScannedFile& file, const std::string& symbol) {
  for (const Chunk& chunk : file.chunks) {
    if (chunk.symbol == symbol) return &chunk;
  }
  return nullptr;
}

bool names(const ScannedFile& file, const std::string& name, const std::string& kind) {
  return std::any_of(file.symbols.begin(), file.symbols.end(), [&](const NamedLine& symbol) {
    return symbol.name == name && symbol.kind == kind;
  });
}

constexpr const char* kSource = R"(// Copyright (c) somebody
// Redistribution and use in source and binary forms

/*! \file
    \brief Adds numbers in the way of the field.
*/
#pragma once
#include <vector>
#include "other/adder.h"

namespace outer::inner {

/// Adds with a scale.
/// Twice.
template <class T, int N = (3 > 2)>
struct ScaledAdder {
  using Value = T;
  static constexpr int kCount = 4;

  /// The sum.
  __device__ __forceinline__ T operator()(T a, T b) const {
    if (a < b) { return '}' + b; }
    const char* text = "} not the end {";
    return a + b;
  }
  ScaledAdder() : value_{3}, other_(4) {
    start();
    more();
    stop();
  }
  T small() { return 1; }
};

#define ADD_TWICE(a, b) \
  do {                  \
    add(a, b);          \
  } while (0)

enum class Mode { kOne, kTwo };

__global__ void __launch_bounds__(128) add_kernel(float* out,
                                                  const float* in) {
#if defined(FAST)
  for (;;) {
#else
  while (true) {
#endif
    out[0] = in[0];
  }
}

float later(float x);

}  // namespace outer::inner
)";

TEST(Scan, DefinitionsOfCpp) {
  const ScannedFile file = scan(SourceKind::kCuda, kSource);
  EXPECT_EQ(file.doc, "Adds numbers in the way of the field.");
  EXPECT_EQ(file.includes, (std::vector<std::string>{"vector", "other/adder.h"}));

  const Chunk* type = find(file, "ScaledAdder");
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(type->kind, "type");
  EXPECT_EQ(type->doc, "Adds with a scale.\nTwice.");
  EXPECT_EQ(type->signature, "template <class T, int N = (3 > 2)> struct ScaledAdder");
  EXPECT_EQ(type->first, 13);

  const Chunk* call = find(file, "operator()");
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->doc, "The sum.");
  EXPECT_EQ(call->last - call->first, 5);
  EXPECT_GT(type->last, call->last);

  EXPECT_TRUE(names(file, "Value", "alias"));
  EXPECT_TRUE(names(file, "kCount", "declaration"));
  EXPECT_TRUE(names(file, "ADD_TWICE", "macro"));
  EXPECT_TRUE(names(file, "Mode", "type"));
  EXPECT_TRUE(names(file, "later", "declaration"));
  EXPECT_TRUE(names(file, "small", "function"));
  EXPECT_EQ(find(file, "small"), nullptr);  // too small to stand alone

  const Chunk* macro = find(file, "ADD_TWICE");
  ASSERT_NE(macro, nullptr);
  EXPECT_EQ(macro->last - macro->first, 3);

  const Chunk* kernel = find(file, "add_kernel");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->kind, "function");
  EXPECT_EQ(kernel->last - kernel->first, 9);
}

TEST(Scan, LineEndsOfWindows) {
  std::string text(kSource);
  std::string crlf;
  for (const char c : text) {
    if (c == '\n') crlf += '\r';
    crlf += c;
  }
  const ScannedFile a = scan(SourceKind::kCuda, text);
  const ScannedFile b = scan(SourceKind::kCuda, crlf);
  ASSERT_EQ(a.chunks.size(), b.chunks.size());
  for (std::size_t i = 0; i < a.chunks.size(); ++i) {
    EXPECT_EQ(a.chunks[i].symbol, b.chunks[i].symbol);
    EXPECT_EQ(a.chunks[i].first, b.chunks[i].first);
    EXPECT_EQ(a.chunks[i].last, b.chunks[i].last);
    EXPECT_EQ(a.chunks[i].doc, b.chunks[i].doc);
  }
}

TEST(Scan, Python) {
  const ScannedFile file = scan(SourceKind::kPython, R"PY(# Copyright (c) somebody
# Redistribution and use in source

"""Sorts things.

By size."""
import torch
from a.b import c

LIMIT = 3


@decorated
class Sorter(Base):
    """Keeps an order."""

    def __init__(self, size: int,
                 other: str = "def x():"):
        self.size = size

    async def run(self):
        text = """
def not_a_function():
    pass
"""
        return text


def free(): return 1
)PY");
  EXPECT_EQ(file.doc, "Sorts things.\nBy size.");
  EXPECT_EQ(file.includes, (std::vector<std::string>{"torch", "a.b"}));
  const Chunk* type = find(file, "Sorter");
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(type->doc, "Keeps an order.");
  EXPECT_EQ(type->first, 13);
  const Chunk* run = find(file, "run");
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->kind, "function");
  EXPECT_GE(type->last, run->last);
  EXPECT_NE(find(file, "free"), nullptr);
  EXPECT_EQ(find(file, "not_a_function"), nullptr);
  EXPECT_TRUE(names(file, "LIMIT", "declaration"));
}

TEST(Scan, PythonStatementsOverSeveralLines) {
  const ScannedFile file = scan(SourceKind::kPython, R"PY(@jit(
    heuristics={"x": 3},
)
def kernel(
    out, text="a ) # b",
    size=(1, 2),
):
    """Adds rows."""
    call(
        out
)
    total = \
out
    return total


class After(
    Base,
):
    def last(self,
    ): return """
def inside():
"""


def broken(
def next_one():
    pass
)PY");
  const Chunk* kernel = find(file, "kernel");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->first, 1);
  EXPECT_EQ(kernel->last, 14);
  EXPECT_EQ(kernel->doc, "Adds rows.");
  const Chunk* after = find(file, "After");
  ASSERT_NE(after, nullptr);
  EXPECT_EQ(after->first, 17);
  EXPECT_EQ(after->last, 23);
  EXPECT_NE(find(file, "last"), nullptr);
  EXPECT_EQ(find(file, "inside"), nullptr);
  EXPECT_NE(find(file, "next_one"), nullptr);
}

TEST(Scan, ALicenceIsNoIntroduction) {
  const std::string licence =
      "# Copyright (c) 2025 somebody\n\n# Redistribution and use in source and binary forms\n"
      "# are permitted:\n\n# 1. Redistributions of source code must retain this list.\n\n"
      "# 3. Neither the name of the holder may be used\n# to endorse.\n\n"
      "# THIS SOFTWARE IS PROVIDED \"AS IS\"\n# AND MORE.\n\n";
  EXPECT_EQ(scan(SourceKind::kPython, licence + "import a\n").doc, "");
  EXPECT_EQ(scan(SourceKind::kPython, licence + "\"\"\"Sorts.\"\"\"\nimport a\n").doc, "Sorts.");
  EXPECT_EQ(scan(SourceKind::kCpp,
                 "/*\n * Adds rows.\n *\n * Licensed under the Apache License\n */\nint a;\n")
                .doc,
            "Adds rows.");
}

TEST(Scan, TemplateListsWithCommentsAndDefaults) {
  const ScannedFile file =
      scan(SourceKind::kCpp,
           "/// Stores rows.\ntemplate <\n  class Element,  ///< of a row\n"
           "  int Width = 4,  /* > 0 */\n  class Layout = Rows<Width>  ///< it's"
           " here\n>\nclass Store {\n  int a;\n};\n");
  const Chunk* store = find(file, "Store");
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->kind, "type");
  EXPECT_EQ(store->doc, "Stores rows.");
  EXPECT_TRUE(names(file, "Store", "type"));
}

TEST(Scan, Markdown) {
  const ScannedFile file =
      scan(SourceKind::kMarkdown,
           "# Title\n\nWhat it is.\n\n```\n# no heading\n```\n## Part two\nMore.\n");
  const Chunk* title = find(file, "Title");
  ASSERT_NE(title, nullptr);
  EXPECT_EQ(title->doc, "What it is.");
  EXPECT_EQ(title->last, 7);
  EXPECT_NE(find(file, "Part two"), nullptr);
  EXPECT_EQ(find(file, "no heading"), nullptr);
}

// Every line has its chunk or is blank; no chunk leaves the file.
void expect_sane(const ScannedFile& file) {
  for (const Chunk& chunk : file.chunks) {
    EXPECT_GE(chunk.first, 1);
    EXPECT_LE(chunk.last, std::max(file.lines, 1));
  }
}

TEST(Scan, TakesWhatIsNoSource) {
  expect_sane(scan(SourceKind::kCpp, ""));
  EXPECT_TRUE(scan(SourceKind::kCpp, "").chunks.empty());
  for (const SourceKind language :
       {SourceKind::kCpp, SourceKind::kPython, SourceKind::kMarkdown, SourceKind::kText}) {
    for (const char* text : {"{",
                             "}",
                             "}}}}{{{{",
                             "\"",
                             "'",
                             "/*",
                             "R\"(",
                             "#define",
                             "#if\n#else\n",
                             "struct {",
                             "(((((",
                             "template<<<<",
                             "\xff\xfe{\x80",
                             "def",
                             "class",
                             "operator",
                             "namespace",
                             "\\\n",
                             "using = ;",
                             "=;",
                             "\"\"\"",
                             "\r\r\n"}) {
      expect_sane(scan(language, text));
    }
    expect_sane(scan(language, std::string(1 << 20, '{')));
    expect_sane(scan(language, "int x = \"" + std::string(2 << 20, 'x')));
  }
}

// Each of these once took time quadratic in its length; a file may have 8 MiB.
TEST(Scan, TakesLinearTime) {
  const auto repeated = [](const std::string& part) {
    std::string text;
    while (text.size() < (2u << 20)) text += part;
    return text;
  };
  std::string deep;
  for (int i = 0; i < 2000; ++i) deep += std::string(i, ' ') + "class A:\n";
  deep += std::string(1 << 20, '\n') + std::string(2000, ' ') + "x = 1\n";
  const std::pair<SourceKind, std::string> texts[] = {
      {SourceKind::kCpp, repeated("R\"\n")},
      {SourceKind::kCpp, repeated("R\"(\n")},
      {SourceKind::kCpp, "int x" + repeated("{}")},
      {SourceKind::kCpp, repeated("int x = 1 " + std::string(19000, '<') + ";\n")},
      {SourceKind::kPython, deep},
      {SourceKind::kPython, repeated("f(\n")},
      {SourceKind::kPython, repeated("x = \"\"\"\n")},
  };
  for (const auto& [language, text] : texts) {
    const double begin = thread_cpu_s();
    const ScannedFile file = scan(language, text);
    EXPECT_LT(thread_cpu_s() - begin, 10) << text.substr(0, 20);
    expect_sane(file);
  }
}

TEST(Scan, CutsLeaveCharactersWhole) {
  std::string euros;
  for (int i = 0; i < 400; ++i) euros += "\xe2\x82\xac";
  for (const char* before : {"", "a", "ab"}) {
    const ScannedFile page = scan(SourceKind::kMarkdown, "# " + (before + euros) + "\n");
    EXPECT_EQ(page.chunks.at(1).symbol, printable(page.chunks.at(1).symbol));
    const ScannedFile code =
        scan(SourceKind::kPython, "def f(a='" + (before + euros) + "'):\n  pass\n");
    EXPECT_EQ(code.chunks.at(1).signature, printable(code.chunks.at(1).signature));
  }
}

TEST(Scan, ABodyThatNeverEndsStopsAtTheNextNamespace) {
  const ScannedFile file = scan(SourceKind::kCpp,
                                "void broken() {\n  OPEN_BRACE {\n  x();\n}\n\n"
                                "namespace a {\nvoid whole() {\n  y();\n}\n}\n");
  EXPECT_NE(find(file, "whole"), nullptr);
}

TEST(Declaration, Names) {
  EXPECT_EQ(
      read_declaration("CUTE_HOST_DEVICE constexpr auto make_thing(A<B, C> const& a) -> D", '{')
          .name,
      "make_thing");
  EXPECT_EQ(read_declaration("struct alignas(16) Wide final : Base<int>", '{').name, "Wide");
  EXPECT_EQ(read_declaration("template <> struct Special<float, 4>", '{').name, "Special");
  EXPECT_EQ(read_declaration("bool operator==(A a, A b)", '{').name, "operator==");
  EXPECT_EQ(read_declaration("Outer<T>::~Outer()", '{').name, "~Outer");
  EXPECT_EQ(read_declaration("std::array<int, 3> list = ", '{').what, Declaration::kOther);
  EXPECT_EQ(read_declaration("extern \"C\"", '{').what, Declaration::kNamespace);
  EXPECT_EQ(read_declaration("using A = B<C>", ';').name, "A");
  EXPECT_EQ(read_declaration("typedef int Number", ';').name, "Number");
}

TEST(Scan, TypesWithoutANameNameNothing) {
  const ScannedFile file = scan(SourceKind::kCpp, "enum { kA };\nstruct {\n  int a;\n} x;\n");
  EXPECT_EQ(file.chunks.size(), 3u);
  for (const NamedLine& symbol : file.symbols) EXPECT_NE(symbol.name, "");
}

TEST(Scan, BinaryFiles) {
  EXPECT_TRUE(is_binary(std::string_view("ab\0cd", 5)));
  EXPECT_FALSE(is_binary("text \xff\xfe"));
}

}  // namespace
}  // namespace kernelpro
